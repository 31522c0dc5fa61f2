/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/progress.h"
#include "client-lib/cli/reply_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/hold.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"
#include "client-lib/cli/status.h"
#include "client-lib/handle.h"
#include "client-lib/wire.h"
#include "protocol/bytes_format.h"

/* Whoever gets the lock at once sees nothing. */
enum { EVERY_MS = 1000 };
/* Without a terminal: when a line is due for the first time, and the longest time to the next one. */
enum { FIRST_MS = 5000, PAUSE_MS_MAX = 600000 };
/* A broker that hangs must not keep us from hearing of the grant for long. */
enum { ASK_MS = 500 };
enum { LINE_BYTES_MAX = 512, WHY_BYTES_MAX = 256, COLUMNS_USUAL = 80 };

void cli_progress_init(struct cli_progress *p, const struct cli_order *order, const char *socket)
{
	*p = (struct cli_progress){ .order = order, .socket = socket, .on_terminal = isatty(STDERR_FILENO),
				    .since_ms = wire_now_ms(), .pause_ms = FIRST_MS };
	p->due_ms = p->since_ms + p->pause_ms;
	cli_instant(time(NULL), p->since);
}

static void close_one(struct lb **lb)
{
	lb_close(*lb);
	*lb = NULL;
}

void cli_progress_deinit(struct cli_progress *p)
{
	close_one(&p->lb);
	close_one(&p->observer);
}

int cli_progress_place(const struct lb_reply *queue, int64_t pid)
{
	for (size_t i = 0; i < lb_reply_count(queue); i++) {
		const struct lb_reply *row = lb_reply_item(queue, i);

		/* The number of a process says something on this host only, where its connection is known. */
		if (reply_number(row, "client") > 0 && reply_number(row, "pid") == pid)
			return (int)reply_number(row, "position");
	}
	return 0;
}

static const char *ordinal(int n)
{
	if (n % 100 >= 11 && n % 100 <= 13)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

struct slice cli_progress_program(const struct lb_reply *holder)
{
	struct slice name = reply_field(holder, "name");

	return name.len > 0 ? name : reply_field(holder, "command");
}

bool cli_progress_halted(struct slice info, char *ret, size_t size)
{
	struct slice state = reply_line(info, "\nsession_state:"), why = reply_line(info, "\nsession_why:");

	if (!slice_eq(state, SLICE("none")) && !slice_eq(state, SLICE("lost")))
		return false;
	snprintf(ret, size, "there is no connection to ZooKeeper (%.*s)", (int)why.len, why.data);
	return true;
}

const char *cli_progress_line(const char *name, int64_t waited_ms, const struct lb_reply *holders, int place, char *ret,
			      size_t size)
{
	const struct lb_reply *first = lb_reply_item(holders, 0);
	struct bytes line = { 0 };

	bytes_format(&line, "waiting %d s for %s", waited_ms / 1000, name);
	if (first) {
		struct slice host = reply_field(first, "host");

		bytes_format(&line, ", held by %s", host.len ? host : SLICE("somebody elsewhere"));
		if (reply_number(first, "pid") > 0)
			bytes_format(&line, " pid %d %s", reply_number(first, "pid"), cli_progress_program(first));
		if (lb_reply_count(holders) > 1)
			bytes_format(&line, " and %d more", lb_reply_count(holders) - 1);
	}
	if (place > 0)
		bytes_format(&line, ", %d%s in line", place, ordinal(place));
	snprintf(ret, size, "%.*s", (int)line.len, line.data);
	bytes_free(&line);
	return ret;
}

/* Of several names, the one in whose queue we stand: they are taken one after the other. */
static int find_place(struct cli_progress *p)
{
	int place = 0;

	for (size_t i = 0; place == 0 && i < p->order->count; i++) {
		place = cli_progress_place(cli_reply(p->lb, "QUEUE", p->order->names[p->at]), getpid());
		if (place == 0)
			p->at = (p->at + 1) % p->order->count;
	}
	return place;
}

static size_t columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : COLUMNS_USUAL;
}

static bool is_halted(struct cli_progress *p, char *ret, size_t size)
{
	const struct lb_reply *info = p->lb ? cli_reply(p->lb, "INFO", "session") : NULL;

	return info && cli_progress_halted(reply_text(info), ret, size);
}

static bool can_ask(struct cli_progress *p)
{
	if (!p->lb && handle_open(p->socket, ASK_MS, NULL, NULL, &p->lb) != LB_OK)
		close_one(&p->lb);
	if (p->lb)
		lb_set_patience(p->lb, ASK_MS);
	return p->lb;
}

/* Who holds it, and our place. */
static void describe(struct cli_progress *p, int64_t waited_ms, char *line, size_t size)
{
	int place = p->lb ? find_place(p) : 0;
	const char *name = p->order->names[p->at];

	cli_progress_line(name, waited_ms, p->lb ? cli_reply(p->lb, "HOLDERS", name) : NULL, place, line, size);
}

/* Without a reason of its own, the line says who holds it. */
static void show_line(struct cli_progress *p)
{
	int64_t waited_ms = wire_now_ms() - p->since_ms;
	size_t width = columns();
	char line[LINE_BYTES_MAX], why[WHY_BYTES_MAX];

	can_ask(p);
	if (width > sizeof(line))
		width = sizeof(line);
	if (is_halted(p, why, sizeof(why)))
		snprintf(line, width, "waiting %lld s for %s, %s", (long long)(waited_ms / 1000), p->order->names[p->at], why);
	else
		describe(p, waited_ms, line, width);
	cli_show_line(line);
	if (p->lb && lb_fd(p->lb) < 0)
		close_one(&p->lb);
}

bool cli_progress_hindered(const struct lb_reply *why, char *ret, size_t size)
{
	struct slice text = reply_field(why, "why");

	if (text.len == 0 || lb_reply_count(lb_reply_field(why, "holders")) > 0 || reply_number(why, "hosts_before") > 0 ||
	    reply_number(why, "delegated") > 0)
		return false;
	snprintf(ret, size, "%.*s", (int)text.len, text.data);
	return true;
}

/* Why nothing is granted, though nobody has it. False: somebody has it, which is what one waits for. */
static bool find_why(struct cli_progress *p, char *ret, size_t size)
{
	if (!p->lb) {
		snprintf(ret, size, "the broker does not answer");
		return true;
	}
	return is_halted(p, ret, size) ||
	       cli_progress_hindered(cli_reply(p->lb, "WHY", p->order->names[p->at]), ret, size);
}

/* True now and then, at growing distances. */
static bool is_due(struct cli_progress *p, int64_t now)
{
	if (now < p->due_ms)
		return false;
	p->due_ms = now + p->pause_ms;
	p->pause_ms = p->pause_ms * 2 < PAUSE_MS_MAX ? p->pause_ms * 2 : PAUSE_MS_MAX;
	return true;
}

void cli_progress_away(struct cli_progress *p, const char *why)
{
	int64_t now = wire_now_ms();

	cli_status("Waiting for the broker, to ask it for %s, since %s.", p->order->names[0], p->since);
	if (is_due(p, now))
		cli_say("Waiting %lld s for %s: %s%s", (long long)((now - p->since_ms) / 1000), p->order->names[p->at], why,
			cli_stop(why));
}

/* The connection is closed again: one more of each that waits would be many. */
static void say_line(struct cli_progress *p)
{
	int64_t now = wire_now_ms(), waited_ms = now - p->since_ms;
	char text[LINE_BYTES_MAX];

	if (!is_due(p, now))
		return;
	if (can_ask(p) && p->order->count > 1)
		find_place(p);
	if (p->order->held != HELD_LEADERSHIP && cli_status_is_shown() && p->lb) {
		describe(p, waited_ms, text, sizeof(text));
		cli_status("Since %s: %s.", p->since, text);
	}
	if (find_why(p, text, sizeof(text))) {
		cli_say("Waiting %lld s for %s: %s%s", (long long)(waited_ms / 1000), p->order->names[p->at], text, cli_stop(text));
	} else if (p->order->verbose) {
		describe(p, waited_ms, text, sizeof(text));
		*text = 'W';
		cli_say("%s.", text);
	}
	close_one(&p->lb);
}

/* Shows the leader in the status. The command observes the election, so the broker reports each change without a request. */
static void show_leader(struct cli_progress *p)
{
	const char *name = p->order->names[0];
	struct lb_event event;
	enum lb_result r = LB_OK;

	if (!p->observer) {
		r = handle_open(p->socket, ASK_MS, NULL, NULL, &p->observer);
		if (r == LB_OK)
			r = lb_observe(p->observer, name);
	}
	while (r == LB_OK && (r = lb_event(p->observer, 0, &event)) == LB_OK && event.type != LB_EVENT_UNOBSERVED) {
		if (event.type != LB_EVENT_LEADER)
			continue;
		if (event.token)
			cli_status("Candidate for %s since %s; %s leads on host %s.", name, p->since, event.data, event.reason);
		else
			cli_status("Candidate for %s since %s; nobody leads.", name, p->since);
	}
	if (r != LB_NONE)
		close_one(&p->observer);
}

static void look(void *context)
{
	struct cli_progress *p = context;

	/* The end of the connection withdraws the request. */
	if (cli_hold_is_unread(p->order))
		exit(CLI_OK);
	if (p->order->held == HELD_LEADERSHIP && cli_status_is_shown())
		show_leader(p);
	if (p->on_terminal)
		show_line(p);
	else
		say_line(p);
}

void cli_progress_begin(struct cli_progress *p, struct lb *waits)
{
	bool often = p->on_terminal || !p->order->runs || cli_status_is_shown();

	p->waits = waits;
	cli_status("%s %s since %s.", p->order->held == HELD_LEADERSHIP ? "Candidate for" : "Waiting for", p->order->names[0],
		   p->since);
	if (p->order->options.timeout_ms != 0)
		handle_while_waiting(waits, often ? EVERY_MS : FIRST_MS, look, p);
}

void cli_progress_end(struct cli_progress *p)
{
	handle_while_waiting(p->waits, 0, NULL, NULL);
	cli_show_line("");
}
