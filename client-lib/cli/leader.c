/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `lockbroker leader` and `lockbroker observe`: print the leader of an election, once or at each change. */
#include <stdio.h>
#include <time.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"

/* One line, with fields separated by tabs. */
static void print_leader(int64_t token, struct slice host, struct slice data)
{
	if (cli_json_asked && !token) {
		puts("null");
		return;
	}
	if (cli_json_asked) {
		printf("{\"token\":%lld", (long long)token);
		cli_json_field(false, SLICE("host"), host);
		cli_json_field(false, SLICE("data"), data);
		puts("}");
		return;
	}
	printf("%lld\t", (long long)token);
	cli_text(host);
	putchar('\t');
	cli_text(data);
	putchar('\n');
}

int cli_leader(struct lb *lb, const struct cli_words *w)
{
	const struct lb_reply *reply;
	enum lb_result r = lb_leader(lb, w->arguments[0], &reply);

	if (r == LB_NONE && cli_json_asked)
		print_leader(0, SLICE(""), SLICE(""));
	if (r == LB_NONE) {
		cli_say("Nobody leads the election %s: `lockbroker observe %s` shows who does next.", w->arguments[0],
			w->arguments[0]);
		return CLI_NOBODY;
	}
	if (r != LB_OK)
		return cli_failed(lb, r);
	print_leader(reply_number(reply, "token"), reply_field(reply, "host"), reply_field(reply, "data"));
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
	if (r == LB_OK)
		cli_say("%s", event.reason);
	else
		cli_failed(lb, r);
	return r == LB_OK ? event.result : r;
}

static const struct timespec a_second = { .tv_sec = 1 };

/* While it is not known whether the name is an election, the broker is asked once a second. */
static enum lb_result observe(struct lb *lb, const char *name)
{
	bool said = false;
	enum lb_result r;

	for (; (r = lb_observe(lb, name)) == LB_UNAVAILABLE; nanosleep(&a_second, NULL)) {
		if (!said)
			cli_say("Waiting until it is known whether %s is an election.", name);
		said = true;
	}
	return r;
}

/*
 * A broker that was killed, or is started again, knows nothing of who observed: it is asked again when it is back, and
 * the next one if it is just being stopped.
 */
int cli_observe(struct lb *lb, const struct cli_words *w)
{
	enum lb_result r = observe(lb, w->arguments[0]);

	while (r == LB_OK) {
		r = print_events(lb);
		if (r != LB_CONNECTION)
			return r == LB_OK ? CLI_OSERR : cli_exit_of(r);
		while ((r = observe(lb, w->arguments[0])) == LB_CONNECTION || r == LB_DRAINING)
			nanosleep(&a_second, NULL);
	}
	return cli_failed(lb, r);
}
