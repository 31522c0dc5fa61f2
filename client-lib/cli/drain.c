/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `lockbroker drain`: nothing is granted any longer; with --wait until nothing is held, telling what still is. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/progress.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"

enum { SHOWN_MAX = 20 };

/* The locks that have a holder here; those that are not among them, a number. The caller frees them. */
static int held_names(struct lb *lb, char *names[SHOWN_MAX], int *ret_count, int *ret_more)
{
	const struct lb_reply *reply;
	int status = cli_ask(lb, "LOCKS", NULL, &reply);

	*ret_count = *ret_more = 0;
	for (size_t i = 0; status == CLI_OK && i < lb_reply_count(reply); i++) {
		const struct lb_reply *lock = lb_reply_item(reply, i);
		struct slice name = reply_field(lock, "name");

		if (reply_number(lock, "holders") == 0)
			continue;
		if (*ret_count < SHOWN_MAX && (names[*ret_count] = strndup(name.data, name.len)))
			++*ret_count;
		else
			++*ret_more;
	}
	return status;
}

static int show_holders(struct lb *lb, const char *name)
{
	const char *const words[] = { "HOLDERS", name, "KNOWN" };
	const struct lb_reply *reply;
	int status = cli_ask_words(lb, 3, words, &reply);

	for (size_t i = 0; status == CLI_OK && i < lb_reply_count(reply); i++) {
		const struct lb_reply *holder = lb_reply_item(reply, i);

		printf("  ");
		cli_text(slice_of(name));
		printf(": client %lld, uid %lld, pid %lld (", reply_number(holder, "client"), reply_number(holder, "uid"),
		       reply_number(holder, "pid"));
		cli_text(cli_progress_program(holder));
		printf("), for %.1f s\n", (double)reply_number(holder, "held_ms") / 1e3);
	}
	return status;
}

static int show_held(struct lb *lb, long long held)
{
	char *names[SHOWN_MAX];
	int count, more, status = held_names(lb, names, &count, &more);

	printf("still held: %lld\n", held);
	for (int i = 0; i < count; i++) {
		if (status == CLI_OK)
			status = show_holders(lb, names[i]);
		free(names[i]);
	}
	if (status == CLI_OK && more > 0)
		printf("  and %d more locks\n", more);
	fflush(stdout);
	return status;
}

static int wait_until_nothing_is_held(struct lb *lb)
{
	static const struct timespec pause = { .tv_nsec = 250000000 };
	const struct lb_reply *reply;
	long long before = -1, held;
	int status;

	for (;; nanosleep(&pause, NULL)) {
		status = cli_ask(lb, "DRAIN", "STATE", &reply);
		if (status != CLI_OK)
			return status;
		if (!reply_number(reply, "draining")) {
			cli_say("Somebody has ended the drain: `lockbroker drain --wait` begins it again.");
			return CLI_UNAVAILABLE;
		}
		held = reply_number(reply, "held");
		if (held != before && cli_json_asked)
			cli_json_line(reply);
		if (held == 0)
			break;
		if (held != before && !cli_json_asked)
			status = show_held(lb, held);
		fflush(stdout);
		if (status != CLI_OK)
			return status;
		before = held;
	}
	if (!cli_json_asked)
		puts("Nothing is held any longer.");
	return CLI_OK;
}

int cli_drain(struct lb *lb, const struct cli_words *w)
{
	bool off = w->given[OPT_DRAIN_OFF], waits = w->given[OPT_DRAIN_WAIT];
	const struct lb_reply *reply;
	int status;

	if (off && waits)
		return cli_usage("drain takes --wait or --off, not both.");
	status = cli_ask(lb, "DRAIN", off ? "OFF" : NULL, &reply);
	if (status != CLI_OK)
		return status;
	if (cli_json_asked && !waits)
		cli_json_line(reply);
	else if (off)
		puts("The broker grants again.");
	else if (!waits)
		printf("The broker grants nothing any longer; still held: %lld.\n", reply_number(reply, "held"));
	return waits ? wait_until_nothing_is_held(lb) : CLI_OK;
}
