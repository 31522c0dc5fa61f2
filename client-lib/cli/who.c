/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `lockbroker who`: prints the holders of a lock and the clients that wait for it. */
#include <stdio.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/holder.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/cli/shown.h"
#include "protocol/bytes.h"

/* So that the user reads one line for each host. */
static bool is_first_of_its_host(const struct lb_reply *holders, const struct lb_reply *row)
{
	const struct lb_reply *other = lb_reply_item(holders, 0);

	while (other != row && !slice_eq(reply_field(other, "host"), reply_field(row, "host")))
		other = lb_reply_next(other);
	return other == row;
}

/* A host writes about its holders only once somebody elsewhere waits for them. */
static void say_unknown(const struct lb_reply *holders, const char *name, struct slice here)
{
	const struct lb_reply *row = NULL;

	for (size_t i = 0; i < lb_reply_count(holders); i++) {
		struct slice host;

		row = i ? lb_reply_next(row) : lb_reply_item(holders, 0);
		if (reply_number(row, "held_ms") >= 0 || !is_first_of_its_host(holders, row))
			continue;
		host = reply_field(row, "host");
		if (host.len == 0) {
			puts("Which process it is, and since when, is known to the other software only that holds it.");
			continue;
		}
		/* This daemon knows its own holders: this is one of a daemon before it, which was killed with its keeper. */
		if (slice_eq(host, here)) {
			puts("Which process it is, and since when, is not known: a daemon of this host that was killed has left "
			     "it. It ends with that process, or with the session that daemon had.");
			continue;
		}
		fputs("Which process it is, and since when, is known to host ", stdout);
		cli_text(host);
		fputs(" only, until somebody elsewhere waits: run there: lockbroker who ", stdout);
		cli_text(slice_of(name));
		putchar('\n');
	}
}

/* ---- the tables ---- */

static void show_holders(const struct lb_reply *holders, long long limit)
{
	static const struct sheet_column columns[] = {
		{ "HOST", "host", 8, SHEET_ALWAYS, NULL },
		{ "PID", "pid", 0, SHEET_ALWAYS, NULL },
		{ "HOLDER", NULL, 12, SHEET_ALWAYS, holder_cell },
		{ "MODE", NULL, 0, SHEET_ALWAYS, holder_mode_cell },
		{ "HELD", NULL, 0, SHEET_ALWAYS, holder_held_cell },
		{ "LEASE", "lease_ms", 0, SHEET_IF_ANY, NULL },
		{ "TOKEN", "token", 0, SHEET_IF_ANY, NULL },
		{ "CLIENT", "client", 0, SHEET_WIDE, NULL },
		{ "UID", "uid", 0, SHEET_WIDE, NULL },
		{ "COMMAND", "command", 12, SHEET_WIDE, NULL },
		{ "ZNODE", "znode", 12, SHEET_WIDE, NULL },
		{ "AGE", "age_ms", 0, SHEET_WIDE, NULL },
	};

	sheet_show(columns, sizeof(columns) / sizeof(columns[0]), holders, limit);
}

static void show_waiters(const struct lb_reply *waiters, long long limit)
{
	static const struct sheet_column columns[] = {
		{ "PLACE", "position", 0, SHEET_ALWAYS, NULL },
		{ "HOST", "host", 8, SHEET_ALWAYS, NULL },
		{ "PID", "pid", 0, SHEET_ALWAYS, NULL },
		{ "WAITER", NULL, 12, SHEET_ALWAYS, holder_cell },
		{ "MODE", NULL, 0, SHEET_ALWAYS, holder_mode_cell },
		{ "WAITED", "waited_ms", 0, SHEET_ALWAYS, NULL },
		{ "CLIENT", "client", 0, SHEET_WIDE, NULL },
		{ "UID", "uid", 0, SHEET_WIDE, NULL },
		{ "COMMAND", "command", 12, SHEET_WIDE, NULL },
		{ "ZNODE", "znode", 12, SHEET_WIDE, NULL },
	};

	sheet_show(columns, sizeof(columns) / sizeof(columns[0]), waiters, limit);
}

/* What the name is if it is more than a lock, as `limit` of struct sheet. */
static long long limit_of(struct lb *lb, const char *name)
{
	long long limit = (long long)lb_reply_integer(cli_reply(lb, "LIMIT", name));
	const struct lb_reply *reply;

	return limit ? limit : lb_leader(lb, name, &reply) == LB_OK ? SHEET_ELECTION : SHEET_LOCK;
}

/* What HOLDERS or QUEUE has; once it has a row, also what the name is, which takes the place of the answer. */
static int ask(struct lb *lb, const char *command, const char *name, bool *known, long long *limit,
	       const struct lb_reply **ret)
{
	int status = cli_ask(lb, command, name, ret);

	if (status != CLI_OK || *known || lb_reply_count(*ret) == 0)
		return status;
	*known = true;
	*limit = limit_of(lb, name);
	return cli_ask(lb, command, name, ret);
}

/* The answer is shown before the next one is asked for. */
static int show(struct lb *lb, const char *name, struct slice here)
{
	const struct lb_reply *reply;
	long long limit = SHEET_LOCK;
	bool known = false;
	int status = ask(lb, "HOLDERS", name, &known, &limit, &reply);

	if (status != CLI_OK)
		return status;
	printf(lb_reply_count(reply) > 0 ? "holders:\n" : "holders: none\n");
	show_holders(reply, limit);
	say_unknown(reply, name, here);
	status = ask(lb, "QUEUE", name, &known, &limit, &reply);
	if (status != CLI_OK)
		return status;
	printf(lb_reply_count(reply) > 0 ? "\nwaiting:\n" : "\nwaiting: none\n");
	show_waiters(reply, limit);
	return CLI_OK;
}

static int print_json(struct lb *lb, const char *name)
{
	const struct lb_reply *reply;
	int status = cli_ask(lb, "HOLDERS", name, &reply);

	if (status != CLI_OK)
		return status;
	printf("{\"holders\":");
	cli_json(reply);
	status = cli_ask(lb, "QUEUE", name, &reply);
	printf(",\"waiting\":");
	cli_json(status == CLI_OK ? reply : NULL);
	puts("}");
	return status;
}

int cli_who(struct lb *lb, const struct cli_words *w)
{
	const struct lb_reply *info;
	struct bytes here = { 0 };
	int status;

	if (cli_json_asked)
		return print_json(lb, w->arguments[0]);
	/* The name of this host among the hosts. */
	if (cli_ask(lb, "INFO", "server", &info) == CLI_OK)
		bytes_slice(&here, reply_line(reply_text(info), "\nhost:"));
	status = show(lb, w->arguments[0], bytes_view(&here));
	bytes_free(&here);
	return status;
}
