/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `lockbroker who`: prints the holders of a lock and the clients that wait for it. */
#include <stdio.h>
#include <string.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/table.h"
#include "protocol/bytes.h"

/* So that the user reads one line for each host. */
static bool is_first_of_its_host(const struct lb_reply *holders, const struct lb_reply *row)
{
	const struct lb_reply *other = lb_reply_item(holders, 0);

	while (other != row && !slice_eq(reply_field(other, "host"), reply_field(row, "host")))
		other = lb_reply_next(other);
	return other == row;
}

/* The name of this host among the hosts. */
static void read_host(struct lb *lb, struct bytes *ret)
{
	static const char key[] = "\nhost:";
	const struct lb_reply *reply;
	const char *at;

	bytes_char(ret, '\n');
	if (cli_ask(lb, "INFO", "server", &reply) == CLI_OK)
		bytes_slice(ret, reply_text(reply));
	bytes_char(ret, '\0');
	at = strstr(ret->data, key);
	ret->len = at ? strcspn(at + strlen(key), "\r\n") : 0;
	if (at)
		memmove(ret->data, at + strlen(key), ret->len);
}

/* A host writes about its holders only once somebody elsewhere waits for them. */
static void say_unknown(const struct lb_reply *holders, const char *name, struct slice here)
{
	const struct lb_reply *row = NULL;

	for (size_t i = 0; i < lb_reply_count(holders); i++) {
		struct slice host;

		row = i ? lb_reply_next(row) : lb_reply_item(holders, 0);
		if (lb_reply_integer(lb_reply_field(row, "held_ms")) >= 0 || !is_first_of_its_host(holders, row))
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
		cli_text(host.data, host.len);
		fputs(" only, until somebody elsewhere waits: run there: lockbroker who ", stdout);
		cli_text(name, strlen(name));
		putchar('\n');
	}
}

static int show(struct lb *lb, const struct lb_reply *reply, const char *name, struct slice here)
{
	int status;

	if (cli_json_asked) {
		printf("{\"holders\":");
		cli_json(reply);
		status = cli_ask(lb, "QUEUE", name, &reply);
		printf(",\"waiting\":");
		cli_json(status == CLI_OK ? reply : NULL);
		puts("}");
		return status;
	}
	printf(lb_reply_count(reply) > 0 ? "holders:\n" : "holders: none\n");
	cli_table(reply);
	say_unknown(reply, name, here);
	status = cli_ask(lb, "QUEUE", name, &reply);
	if (status != CLI_OK)
		return status;
	printf(lb_reply_count(reply) > 0 ? "\nwaiting:\n" : "\nwaiting: none\n");
	cli_table(reply);
	return CLI_OK;
}

int cli_who(struct lb *lb, char **arguments)
{
	const struct lb_reply *reply;
	struct bytes here = { 0 };
	int status;

	read_host(lb, &here);
	status = cli_ask(lb, "HOLDERS", arguments[0], &reply);
	if (status == CLI_OK)
		status = show(lb, reply, arguments[0], bytes_view(&here));
	bytes_free(&here);
	return status;
}
