/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/acquire.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/hold.h"
#include "client-lib/cli/nested.h"
#include "client-lib/cli/progress.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/handle.h"
#include "client-lib/wire.h"

/* How long and how often a broker is tried that is not there at first. */
enum { CONNECT_MS = 5000, RETRY_MS = 100 };
/* How long a broker may take for its first answer, however short the wait. */
enum { PATIENCE_MIN_MS = 2000 };
/* A request that is answered later than that had been queued. */
enum { QUEUED_MS = 100 };

struct acquiring {
	struct cli_order *order;
	struct lb *lb;
	int64_t *tokens;
	struct cli_progress progress;
};

/* What `who` shows: the command, or else ourselves. */
static const char *label_of(const struct cli_order *o)
{
	const char *slash;

	if (!o->command)
		return o->verb->word;
	slash = strrchr(o->command[0], '/');
	return slash ? slash + 1 : o->command[0];
}

/* From then on the order is about the one that it got. */
static enum lb_result take_any(struct acquiring *a)
{
	struct cli_order *o = a->order;
	size_t got;
	enum lb_result r = lb_lock_any(a->lb, o->count, (const char *const *)o->names, &o->options, &got, a->tokens);

	if (r != LB_OK)
		return r;
	o->names[0] = o->names[got];
	o->count = 1;
	return r;
}

static enum lb_result take(struct acquiring *a)
{
	const struct cli_order *o = a->order;
	const char *const *names = (const char *const *)o->names;

	switch (o->held) {
	case HELD_LEADERSHIP:
		return lb_campaign(a->lb, names[0], o->data, o->options.timeout_ms, a->tokens);
	case HELD_PERMITS:
		return lb_acquire_with(a->lb, names[0], o->limit, o->permits, &o->options, NULL);
	case HELD_LOCKS:
		break;
	}
	if (o->any)
		return take_any(a);
	if (o->count > 1)
		return lb_lock_all(a->lb, o->count, names, &o->options, a->tokens);
	return lb_lock_with(a->lb, names[0], &o->options, a->tokens);
}

/* Only where it would wait: a try reports by itself that the lock is taken. One of several may be another one. */
static bool would_wait_for_itself(const struct acquiring *a)
{
	const struct cli_order *o = a->order;
	size_t nested = 0, last = 0;

	for (size_t i = 0; o->held == HELD_LOCKS && o->options.timeout_ms != 0 && i < o->count; i++) {
		if (!cli_nested(a->lb, o->names[i], o->options.shared))
			continue;
		nested++;
		last = i;
	}
	if (nested < (o->any ? o->count : 1))
		return false;
	cli_say("This already runs under the lock %s: a command around it holds the lock, so waiting for it would never "
		"end.", o->names[last]);
	return true;
}

/* Until when a broker is tried that is not there at first. */
static int64_t connect_end(const struct cli_order *o)
{
	int64_t wait_ms = o->options.timeout_ms;

	if (o->connect_ms >= 0)
		return wire_deadline(o->connect_ms);
	return wire_deadline(wait_ms < 0 || wait_ms > CONNECT_MS ? CONNECT_MS : wait_ms);
}

/*
 * How long a broker may take for its first answer: if it hangs, the caller should not wait much longer than it asked to.
 */
static int64_t patience(const struct cli_order *o)
{
	int64_t wait_ms = o->options.timeout_ms;

	if (wait_ms < 0 || wait_ms > HANDLE_PATIENCE_MS)
		return HANDLE_PATIENCE_MS;
	return wait_ms > PATIENCE_MIN_MS ? wait_ms : PATIENCE_MIN_MS;
}

/* The broker may be back in a moment: it is being restarted, for example. */
static bool is_away(enum lb_result r)
{
	return r == LB_CONNECTION || r == LB_DRAINING;
}

static void pause_a_moment(void)
{
	struct timespec pause = { .tv_nsec = (RETRY_MS + getpid() % RETRY_MS) * 1000000L };

	nanosleep(&pause, NULL);
}

/* A broker that is drained, or is stopping, is there: what it does not do is grant. */
static void say_queued_again(const struct acquiring *a, enum lb_result r)
{
	const char *why = lb_error(a->lb);

	cli_say("%s%s Waiting %s.", why, cli_stop(why),
		r == LB_DRAINING ? "until it grants again" : "for the broker to come back");
}

/* True if the request had been queued: a broker that is already stopping says so at once. */
static bool was_queued(enum lb_result r, int64_t asked_ms)
{
	return r == LB_CONNECTION || wire_now_ms() >= asked_ms + QUEUED_MS;
}

static enum lb_result take_by(struct acquiring *a, int64_t end)
{
	int64_t now = wire_now_ms();
	enum lb_result r;

	if (end < INT64_MAX && a->order->options.timeout_ms > 0)
		a->order->options.timeout_ms = end > now ? end - now : 0;
	cli_progress_begin(&a->progress, a->lb);
	r = take(a);
	cli_progress_end(&a->progress);
	return r;
}

/* Who holds the lock, if the broker knows that without asking ZooKeeper, however many processes try. */
static void say_taken(const struct acquiring *a)
{
	const struct cli_order *o = a->order;
	const char *words[] = { "HOLDERS", o->names[0], "KNOWN" };
	const struct lb_reply *reply, *holder;
	struct slice host, program;
	char error[1024];
	long long pid;

	snprintf(error, sizeof(error), "%s", lb_error(a->lb));
	if (o->held != HELD_LOCKS || o->count > 1 || lb_command(a->lb, 3, words, &reply) != LB_OK ||
	    lb_reply_count(reply) == 0) {
		cli_say("%s", error);
		return;
	}
	holder = lb_reply_item(reply, 0);
	host = reply_field(holder, "host");
	program = cli_progress_program(holder);
	pid = reply_number(holder, "pid");
	if (pid > 0)
		cli_say("The lock %s is held on host %.*s by pid %lld (%.*s).", o->names[0], (int)host.len, host.data,
			pid, (int)program.len, program.data);
	else
		cli_say("The lock %s is held on host %.*s.", o->names[0], (int)host.len, host.data);
}

/* That it is taken is no error to a script, which sees the exit status: as flock(1), we are silent then. */
static int taken(const struct acquiring *a)
{
	if (a->order->verbose || isatty(STDERR_FILENO))
		say_taken(a);
	return (int)a->order->conflict;
}

/*
 * A request that has been queued goes on waiting for as long as was asked, although the broker goes away: the next broker
 * has a new queue, where we ask again. -1: it is acquired. Otherwise the exit status.
 */
static int acquire(struct acquiring *a, const char *socket)
{
	struct cli_order *o = a->order;
	int64_t end = wire_deadline(o->options.timeout_ms), limit = connect_end(o);
	const char *owner = o->owner && *o->owner ? o->owner : NULL;
	bool queued = false;

	for (;;) {
		enum lb_result r = handle_open(socket, patience(o), label_of(o), owner, &a->lb);

		if (r == LB_OK && would_wait_for_itself(a))
			return CLI_DEADLOCK;
		if (r == LB_OK) {
			int64_t asked_ms = wire_now_ms();

			r = take_by(a, end);
			if (is_away(r) && !queued && wire_now_ms() < end && was_queued(r, asked_ms)) {
				queued = true;
				limit = end;
				say_queued_again(a, r);
			}
		}
		if (r == LB_OK)
			return -1;
		if (r == LB_TAKEN)
			return taken(a);
		if (!is_away(r) || wire_now_ms() >= limit)
			return cli_failed(a->lb, r);
		if (cli_hold_is_unread(o))
			return CLI_OK;
		cli_progress_away(&a->progress, lb_error(a->lb));
		lb_close(a->lb);
		a->lb = NULL;
		pause_a_moment();
	}
}

/* Somewhere within that time, so that not all hosts of a fleet ask at the same moment. */
static void splay(const struct cli_order *o)
{
	struct timespec pause;
	uint64_t number = 0;
	int64_t ms;

	if (o->splay_ms == 0)
		return;
	if (getrandom(&number, sizeof(number), 0) < 0)
		number = (uint64_t)getpid() * 2654435761u ^ (uint64_t)wire_now_ms();
	ms = (int64_t)(number % (uint64_t)(o->splay_ms + 1));
	if (o->verbose)
		cli_say("Asking in %.1f s (--splay).", (double)ms / 1e3);
	pause = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	while (nanosleep(&pause, &pause) < 0) {
	}
}

int cli_acquire(struct cli_order *o, const char *socket, struct lb **ret_lb, int64_t tokens[LIMIT_NAMES_MAX])
{
	struct acquiring a = { .order = o, .tokens = tokens };
	int64_t began_ms;
	int status;

	splay(o);
	began_ms = wire_now_ms();
	cli_progress_init(&a.progress, o, socket);
	status = acquire(&a, socket);
	cli_progress_deinit(&a.progress);
	*ret_lb = a.lb;
	if (status < 0 && o->verbose)
		cli_say("Getting it took %.3f s.", (double)(wire_now_ms() - began_ms) / 1e3);
	return status;
}
