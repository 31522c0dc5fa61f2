/* SPDX-License-Identifier: Apache-2.0 */
/* LOG: the flight recorder. */
#include "core/client/reply.h"
#include "core/command/call.h"
#include "protocol/number.h"

/* What is recorded while it is answered comes after it. */
static void reply_records(struct client *c, int64_t count)
{
	const struct flight_ring *f = c->locks->env->conf->flight;
	uint64_t at = f ? flight_oldest(f) : 0, next = f ? f->next : 0;
	char line[FLIGHT_LINE_MAX];

	if (next - at > (uint64_t)count)
		at = next - (uint64_t)count;
	resp_array(reply_out(c), next - at);
	for (; at < next; at++) {
		size_t len = flight_line(f, at, line);

		resp_bulk(reply_out(c), (struct slice){ line, len });
	}
	reply_end(c);
}

void cmd_log(struct client *c, struct call *call)
{
	int64_t count = INT64_MAX;

	if (!client_is_operator(c))
		reply_denied(c, "see the flight recorder");
	else if (call->argc > 1 && (!number_parse(call->argv[1], &count) || count < 1))
		args_syntax_error(call);
	else
		reply_records(c, count);
}
