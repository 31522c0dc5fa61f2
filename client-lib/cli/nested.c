/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/nested.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/reply_text.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

static const char variable[] = "LOCKBROKER_HELD";

/* Whether the grant stands and excludes a grant that is `shared`, or exclusive. */
static bool excludes(struct lb *lb, const char *name, int64_t token, bool shared)
{
	const char *words[] = { "HOLDERS", name };
	const struct lb_reply *reply, *holder;
	size_t i;

	if (lb_command(lb, 2, words, &reply) != LB_OK)
		return false;
	for (i = 0; i < lb_reply_count(reply); i++) {
		holder = lb_reply_item(reply, i);
		if (lb_reply_integer(lb_reply_field(holder, "token")) == token)
			return !shared || !slice_is(reply_field(holder, "mode"), "shared");
	}
	return false;
}

bool cli_nested(struct lb *lb, const char *name, bool shared)
{
	const char *line = getenv(variable), *end;
	size_t len = strlen(name);

	for (; line && *line; line = *end ? end + 1 : end) {
		char *space;
		long long token = strtoll(line, &space, 10);

		end = strchrnul(line, '\n');
		if (*space == ' ' && (size_t)(end - space) == len + 1 && memcmp(space + 1, name, len) == 0 &&
		    excludes(lb, name, token, shared))
			return true;
	}
	return false;
}

int cli_nested_export(size_t count, char *const *names, const int64_t *tokens)
{
	const char *outer = getenv(variable);
	struct bytes text = { 0 };
	char number[32];
	int r;

	if (outer && *outer) {
		bytes_text(&text, outer);
		bytes_text(&text, "\n");
	}
	for (size_t i = 0; i < count; i++) {
		snprintf(number, sizeof(number), "%s%lld ", i > 0 ? "\n" : "", (long long)tokens[i]);
		bytes_text(&text, number);
		bytes_text(&text, names[i]);
	}
	bytes_append(&text, "", 1);
	r = setenv(variable, text.data, 1);
	bytes_free(&text);
	return r;
}
