/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/nested.h"

#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "protocol/bytes_format.h"

static const char variable[] = "LOCKBROKER_HELD";

/* Whether the grant stands and excludes a grant that is `shared`, or exclusive. */
static bool excludes(struct lb *lb, const char *name, int64_t token, bool shared)
{
	const struct lb_reply *reply = cli_reply(lb, "HOLDERS", name);

	for (size_t i = 0; i < lb_reply_count(reply); i++) {
		const struct lb_reply *holder = lb_reply_item(reply, i);

		if (reply_number(holder, "token") == token)
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
	int r;

	if (outer && *outer)
		bytes_format(&text, "%s\n", outer);
	for (size_t i = 0; i < count; i++)
		bytes_format(&text, "%s%d %s", i > 0 ? "\n" : "", tokens[i], names[i]);
	bytes_char(&text, '\0');
	r = setenv(variable, text.data, 1);
	bytes_free(&text);
	return r;
}
