/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client process of the torture: locks and unlocks names at random through one connection, and appends what it saw
 * to its history, one write() for each record, so that a SIGKILL leaves whole records only. Times are CLOCK_BOOTTIME in
 * nanoseconds, taken before a request is sent or after its answer was read.
 *
 *     start T HOST                    hangup T             closes its connection on purpose
 *     connected T                     gone T               the connection was lost
 *     ask T NAME WAIT_MS              die T                kills itself
 *     answer T NAME RESULT TOKEN      end T                ends in order
 *     valid T0 T1 NAME MS             event T TYPE NAME TOKEN MS
 *     unlock T0 T1 NAME TOKEN RESULT
 *
 * usage: worker SOCKET HISTORY HOST SEED KIND NAMES HOLD_MS
 * takes the locks KIND/0 .. KIND/(NAMES-1) for up to HOLD_MS each. SIGTERM: it ends when it holds nothing; a wait goes
 * on for as long as it takes.
 */
#include "client-lib/lockbroker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int LOOK_MS = 100; /* how often a holder asks how long it is safe */
static const int PATIENCE_MS = 60000;

struct worker {
	struct lb *lb;
	const char *socket, *kind;
	int history, names, hold_max_ms;
	unsigned seed;
	char name[64];
	int64_t token;
	bool lost; /* so it was told, of what it holds */
};

static volatile sig_atomic_t stopping;

static void stop(int signal_number)
{
	stopping = 1;
}

static const char *const result_words[] = {
	[LB_OK] = "ok",
	[LB_TAKEN] = "taken",
	[LB_LOST] = "lost",
	[LB_NOTHELD] = "notheld",
	[LB_DEADLOCK] = "deadlock",
	[LB_BADNAME] = "badname",
	[LB_LIMIT] = "limit",
	[LB_DENIED] = "denied",
	[LB_MISMATCH] = "mismatch",
	[LB_UNAVAILABLE] = "unavailable",
	[LB_DRAINING] = "draining",
	[LB_REFUSED] = "refused",
	[LB_NONE] = "none",
	[LB_CONNECTION] = "connection",
};

static const char *const event_words[] = {
	[LB_EVENT_LOST] = "lost",     [LB_EVENT_JEOPARDY] = "jeopardy", [LB_EVENT_SAFE] = "safe",
	[LB_EVENT_REVOKE] = "revoke", [LB_EVENT_GRANTED] = "granted",   [LB_EVENT_TIMEOUT] = "timeout",
	[LB_EVENT_FAILED] = "failed", [LB_EVENT_LEADER] = "leader",     [LB_EVENT_UNOBSERVED] = "unobserved",
	[LB_EVENT_OTHER] = "other",
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

__attribute__((format(printf, 2, 3))) static void note(struct worker *w, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	int len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (len < 0 || len >= (int)sizeof(line) || write(w->history, line, (size_t)len) != len)
		abort();
}

/* 0 .. below - 1 */
static int pick(struct worker *w, int below)
{
	return below > 0 ? rand_r(&w->seed) % below : 0;
}

static bool once_in(struct worker *w, int times)
{
	return pick(w, times) == 0;
}

static void rest_ms(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL); /* a pace, or so that others could come while it is inside */
}

static void part(struct worker *w)
{
	lb_close(w->lb);
	w->lb = NULL;
}

/* Every call ends here when the connection is gone: all that was held with it is void. */
static bool gone(struct worker *w, enum lb_result r)
{
	if (r != LB_CONNECTION)
		return false;
	note(w, "gone %" PRId64 "\n", now_ns());
	part(w);
	return true;
}

/* Notes what the broker told; true when the holder lets go: when it has to, and sometimes when it is asked to. */
static bool told(struct worker *w, const struct lb_event *e)
{
	note(w, "event %" PRId64 " %s %s %" PRId64 " %" PRId64 "\n", now_ns(), event_words[e->type],
	     *e->name ? e->name : "-", e->token, e->ms);
	bool lost = e->type == LB_EVENT_LOST && e->token == w->token;

	w->lost |= lost;
	return lost || (e->type == LB_EVENT_REVOKE && once_in(w, 2));
}

static bool look(struct worker *w)
{
	int64_t before = now_ns(), ms = 0;
	enum lb_result r = lb_valid(w->lb, w->name, &ms);

	if (gone(w, r))
		return false;
	note(w, "valid %" PRId64 " %" PRId64 " %s %" PRId64 "\n", before, now_ns(), w->name, ms);
	return true;
}

/* Waits for `ms`, reading what is told and asking for the proof now and then; false when the connection is gone. */
static bool hold(struct worker *w, int ms)
{
	int64_t end = now_ns() + (int64_t)ms * 1000000;
	struct lb_event e;

	while (look(w)) {
		int left = (int)((end - now_ns()) / 1000000);
		enum lb_result r = lb_event(w->lb, left <= 0 ? 0 : left < LOOK_MS ? left : LOOK_MS, &e);

		if (gone(w, r))
			return false;
		if (r == LB_OK && told(w, &e))
			return true;
		if (left <= 0)
			return true;
	}
	return false;
}

static bool drain(struct worker *w)
{
	struct lb_event e;
	enum lb_result r;

	while ((r = lb_event(w->lb, 0, &e)) == LB_OK)
		told(w, &e);
	return !gone(w, r);
}

static bool let_go(struct worker *w)
{
	int64_t before = now_ns();
	enum lb_result r = lb_unlock(w->lb, w->name);

	note(w, "unlock %" PRId64 " %" PRId64 " %s %" PRId64 " %s\n", before, now_ns(), w->name, w->token,
	     result_words[r]);
	return !gone(w, r) && drain(w);
}

static enum lb_result ask(struct worker *w, int wait_ms)
{
	int64_t token = 0;

	note(w, "ask %" PRId64 " %s %d\n", now_ns(), w->name, wait_ms);
	enum lb_result r = lb_lock_timeout(w->lb, w->name, wait_ms, &token);

	note(w, "answer %" PRId64 " %s %s %" PRId64 "\n", now_ns(), w->name, result_words[r], token);
	w->token = token;
	w->lost = false;
	gone(w, r);
	return r;
}

static int choose_wait(struct worker *w)
{
	if (once_in(w, 8))
		return 0;
	return once_in(w, 3) ? 1 + pick(w, 20 * w->hold_max_ms) : -1;
}

/* One lock, from the asking to the end of it. */
static void turn(struct worker *w)
{
	snprintf(w->name, sizeof(w->name), "%s/%d", w->kind, pick(w, w->names));
	if (ask(w, choose_wait(w)) != LB_OK || !hold(w, pick(w, w->hold_max_ms)))
		return;
	if (once_in(w, 200)) {
		note(w, "die %" PRId64 "\n", now_ns());
		kill(getpid(), SIGKILL);
	}
	if (once_in(w, 50)) {
		note(w, "hangup %" PRId64 "\n", now_ns());
		part(w);
		return;
	}
	if (!look(w))
		return;
	/* Who does not unlock what it lost is told by its next LOCK. */
	if (!w->lost || once_in(w, 2) || ask(w, 0) == LB_OK)
		let_go(w);
}

static void meet(struct worker *w)
{
	if (lb_open(w->socket, &w->lb) == LB_OK) {
		lb_set_patience(w->lb, PATIENCE_MS);
		/* The checker judges a call by its own answer. */
		lb_set_deferred(w->lb, 0);
		note(w, "connected %" PRId64 "\n", now_ns());
		return;
	}
	part(w);
	rest_ms(20 + pick(w, 100));
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop };

	if (argc != 8) {
		fprintf(stderr, "usage: worker SOCKET HISTORY HOST SEED KIND NAMES HOLD_MS\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL); /* first: torture.py knows by the history that a client does not die by SIGTERM */
	struct worker w = {
		.socket = argv[1],
		.history = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
		.seed = (unsigned)strtoul(argv[4], NULL, 10),
		.kind = argv[5],
		.names = atoi(argv[6]),
		.hold_max_ms = atoi(argv[7]),
	};

	if (w.history < 0 || w.names < 1) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		return 2;
	}
	note(&w, "start %" PRId64 " %s\n", now_ns(), argv[3]);
	while (!stopping) {
		if (!w.lb)
			meet(&w);
		else
			turn(&w);
		rest_ms(pick(&w, w.lb ? 2 * w.hold_max_ms : 2));
	}
	note(&w, "end %" PRId64 "\n", now_ns());
	lb_close(w.lb);
	return 0;
}
