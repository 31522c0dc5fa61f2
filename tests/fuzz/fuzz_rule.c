/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule of [access] of any bytes: it is refused with a sentence, or what it says lies in its own text and comes out the
 * same if that is read again; and it is decided for any name.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Idaemon tests/fuzz/fuzz_rule.c daemon/base/rule.c
 *         daemon/core/port/access.c protocol/?*.c
 */
#include <assert.h>
#include <stdlib.h>

#include "core/port/access.h"
#include "fuzz.h"

static bool within(struct slice part, const char *text)
{
	return part.len == 0 || (part.data >= text && part.data + part.len <= text + strlen(text));
}

static void decide(struct rule *r, struct slice name)
{
	const struct access_rules rules = { r, 1, r->verbs };
	const uint32_t groups[] = { 0, 100 };
	const struct access_peer peer = { .uid = 1000, .unit = name, .groups = groups, .group_count = 2 };

	if (r->low > r->high)
		r->low = r->high = 100;
	for (int verb = 0; verb < RULE_VERB_COUNT; verb++)
		access_may(&rules, &peer, (enum rule_verb)verb, name, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), error[RULE_ERROR_MAX] = "";
	struct rule r, again;

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (rule_parse(&r, text, "file:1", error) < 0) {
		assert(error[0] && !r.text);
	} else {
		assert(within(r.name, r.text) && within(r.pattern, r.text) && r.verbs && r.pattern.len);
		assert(rule_parse(&again, r.text, "file:1", error) == 0 && strcmp(again.text, r.text) == 0);
		assert(again.who == r.who && again.verbs == r.verbs && again.low == r.low && again.high == r.high);
		rule_free(&again);
		decide(&r, (struct slice){ (const char *)data, size < 512 ? size : 512 });
		rule_free(&r);
	}
	free(text);
	return 0;
}
