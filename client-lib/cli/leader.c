/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `lockbroker leader` and `lockbroker observe`: print the leader of an election, once or at each change. */
#include <stdio.h>
#include <time.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/table.h"

/* One line, with fields separated by tabs. */
static void print_leader(int64_t token, struct slice host, struct slice data)
{
	if (cli_json_asked) {
		printf("{\"token\":%lld,\"host\":", (long long)token);
		cli_json_text(host);
		printf(",\"data\":");
		cli_json_text(data);
		puts("}");
		return;
	}
	printf("%lld\t", (long long)token);
	cli_text(host.data, host.len);
	putchar('\t');
	cli_text(data.data, data.len);
	putchar('\n');
}

int cli_leader(struct lb *lb, char **arguments)
{
	const struct lb_reply *reply;
	enum lb_result r = lb_leader(lb, arguments[0], &reply);

	if (r != LB_OK) {
		cli_say("%s", lb_error(lb));
		return r == LB_NONE ? CLI_NOBODY : cli_exit_of(r);
	}
	print_leader(lb_reply_integer(lb_reply_field(reply, "token")), reply_field(reply, "host"), reply_field(reply, "data"));
	return CLI_OK;
}

/* Prints what is told, and why the observation has ended. Returns that; LB_OK: nothing can be printed. */
static enum lb_result print_events(struct lb *lb)
{
	struct lb_event event;
	enum lb_result r;

	while ((r = lb_event(lb, -1, &event)) == LB_OK && event.type != LB_EVENT_UNOBSERVED) {
		if (event.type != LB_EVENT_LEADER)
			continue;
		print_leader(event.token, slice_of(event.reason), slice_of(event.data));
		if (fflush(stdout) == EOF)
			return LB_OK;
	}
	if (lb_fd(lb) < 0) {
		cli_say("The connection to lockbrokerd has ended. Waiting for the broker to come back.");
		return LB_CONNECTION;
	}
	cli_say("%s", r == LB_OK ? event.reason : lb_error(lb));
	return r == LB_OK ? event.result : r;
}

/* While it is not known whether the name is an election, the broker is asked once a second. */
static enum lb_result observe(struct lb *lb, const char *name)
{
	static const struct timespec pause = { .tv_sec = 1 };
	bool said = false;
	enum lb_result r;

	for (; (r = lb_observe(lb, name)) == LB_UNAVAILABLE; nanosleep(&pause, NULL)) {
		if (!said)
			cli_say("Waiting until it is known whether %s is an election.", name);
		said = true;
	}
	return r;
}

/* A broker that was killed, or is started again, knows nothing of who observed: it is asked again when it is back. */
int cli_observe(struct lb *lb, char **arguments)
{
	enum lb_result r = observe(lb, arguments[0]);

	while (r == LB_OK) {
		r = print_events(lb);
		if (r != LB_CONNECTION)
			return r == LB_OK ? CLI_OSERR : cli_exit_of(r);
		do
			r = observe(lb, arguments[0]);
		while (r == LB_CONNECTION);
	}
	return cli_failed(lb, r);
}
