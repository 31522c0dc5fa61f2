/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One of several locks, whichever is free first.
 *
 *     the call      tries each name once, without waiting -> granted; or none is free:
 *                   queues for each name                  -> the first grant; or each request has ended, or the time has
 *                   settles                               -> requests that still wait are withdrawn, and further grants
 *                                                            are released
 *     a request     waits -> granted; timed out; refused, which ends the call; ended with its connection, and made again
 *                            on the next one; withdrawn
 *
 * Outcomes of these requests are taken out of the events that the handle keeps; all others stay there, in order.
 */
#include "lockbroker.h"

#include <string.h>
#include <unistd.h>

#include "event.h"
#include "lock.h"
#include "protocol/limits.h"
#include "request.h"

struct any {
	struct lb *lb;
	size_t n, first; /* names, and the index of the one that is asked for first */
	const char *const *names;
	struct lb_options options;
	int64_t end;     /* when the time is up, by the clock of the deadlines */
	size_t events;   /* where in lb->events the events of this call begin */
	bool waits[LIMIT_NAMES_MAX];
	uint64_t ends[LIMIT_NAMES_MAX]; /* lb->ends when the request was made */
	size_t waiting;  /* how many of them wait */
	bool over;       /* one was granted, or the call fails: nothing else is wanted */
	size_t got;      /* the index of the name that was granted */
	int64_t token;
	size_t unknown;  /* requests that timed out without its being known whether the lock was taken */
};

/* Why none was granted: it would have to be known that each is held by somebody else. */
static enum lb_result none_of(const struct any *a)
{
	if (a->unknown > 0)
		return wire_fail(a->lb, LB_UNAVAILABLE, "Of the %zu locks it cannot be known now whether %zu are taken.", a->n,
				 a->unknown);
	return wire_fail(a->lb, LB_TAKEN, "Each of the %zu locks is held by somebody else.", a->n);
}

/* LB_TAKEN or LB_UNAVAILABLE: none was free. */
static enum lb_result try_each(struct any *a)
{
	struct lb_options now = a->options;

	now.timeout_ms = 0;
	a->unknown = 0;
	for (size_t i = 0; i < a->n; i++) {
		size_t at = (a->first + i) % a->n;
		enum lb_result r = lb_lock_with(a->lb, a->names[at], &now, &a->token);

		a->got = at;
		if (r != LB_TAKEN && r != LB_UNAVAILABLE)
			return r;
		a->unknown += r == LB_UNAVAILABLE;
	}
	return none_of(a);
}

/* Queues a request for one name; it may wait for the rest of the call's time. */
static enum lb_result queue_for(struct any *a, size_t at)
{
	int64_t left = a->end - wire_now_ms();
	enum lb_result r;

	if (a->end < WIRE_FOREVER)
		a->options.timeout_ms = left > 0 ? left : 0;
	r = lb_enqueue(a->lb, a->names[at], &a->options);
	if (r != LB_OK)
		return r;
	a->waits[at] = true;
	a->ends[at] = a->lb->ends;
	a->waiting++;
	return LB_OK;
}

/* The index of the name whose request the event ends; n: it is about something else. */
static size_t request_of(const struct any *a, const struct lb_event *e)
{
	bool ends = e->type == LB_EVENT_GRANTED || e->type == LB_EVENT_TIMEOUT || e->type == LB_EVENT_FAILED;
	size_t at = 0;

	while (at < a->n && !(ends && a->waits[at] && strcmp(a->names[at], e->name) == 0))
		at++;
	return at;
}

static void ended(struct any *a, size_t at)
{
	a->waits[at] = false;
	a->waiting--;
}

static void granted(struct any *a, size_t at, int64_t token)
{
	if (a->over) {
		lock_give_back(a->lb, a->names[at]);
		return;
	}
	a->over = true;
	a->got = at;
	a->token = token;
}

/* A request that was refused, or had to end. LB_OK: the call goes on. */
static enum lb_result failed(struct any *a, size_t at, const struct lb_event *e)
{
	if (a->over)
		return LB_OK;
	if (e->result != LB_UNAVAILABLE)
		return wire_fail(a->lb, e->result, "%s: %s", e->name, e->reason);
	if (a->ends[at] != a->lb->ends)
		return queue_for(a, at);
	if (wire_now_ms() < a->end)
		return wire_fail(a->lb, e->result, "%s: %s", e->name, e->reason);
	a->unknown++;
	return LB_OK;
}

static enum lb_result outcome(struct any *a, size_t at, const struct lb_event *e)
{
	ended(a, at);
	if (e->type == LB_EVENT_FAILED)
		return failed(a, at, e);
	if (e->type == LB_EVENT_GRANTED)
		granted(a, at, e->token);
	return LB_OK;
}

/* Takes the outcomes that have arrived out of the events. */
static enum lb_result take_outcomes(struct any *a)
{
	enum lb_result r = LB_OK;
	struct lb_event e;
	size_t place = a->events, bytes;

	while (r == LB_OK && (bytes = event_read(a->lb, place, &e)) > 0) {
		size_t at = request_of(a, &e);

		if (at == a->n) {
			place += bytes;
			continue;
		}
		event_remove(a->lb, place, bytes);
		r = outcome(a, at, &e);
	}
	return r;
}

static enum lb_result queue_for_each(struct any *a)
{
	enum lb_result r = LB_OK;

	a->unknown = 0;
	for (size_t i = 0; r == LB_OK && i < a->n; i++)
		r = queue_for(a, (a->first + i) % a->n);
	while (r == LB_OK && !a->over) {
		r = take_outcomes(a);
		if (r != LB_OK || a->over)
			break;
		if (a->waiting == 0)
			return none_of(a);
		r = wire_read_push(a->lb, request_answer_by(a->lb, a->end));
		if (r == LB_NONE)
			r = wire_hang_up(a->lb, "the daemon did not answer in time", 0);
		/* The requests were ended by that, which their outcomes tell. */
		if (r == LB_CONNECTION && a->lb->reconnects)
			r = LB_OK;
	}
	return r;
}

/* Nothing is left of the other requests. `r` and its sentence are those of the call. */
static enum lb_result settle(struct any *a, enum lb_result r)
{
	char sentence[sizeof(a->lb->error)];

	memcpy(sentence, a->lb->error, sizeof(sentence));
	a->over = true;
	for (size_t at = 0; at < a->n; at++)
		if (a->waits[at] && lb_cancel(a->lb, a->names[at]) == LB_OK)
			ended(a, at);
	take_outcomes(a);
	return r == LB_OK ? r : wire_fail(a->lb, r, "%s", sentence);
}

/* Of a lock that had to be waited for: the lease begins now. */
static enum lb_result hold(struct any *a)
{
	const char *name = a->names[a->got];

	if (a->lb->late_error.len > 0)
		return lock_give_back(a->lb, name) == LB_CONNECTION ? LB_CONNECTION : request_late_failure(a->lb);
	return a->options.lease_ms ? lb_renew(a->lb, name, a->options.lease_ms) : LB_OK;
}

static enum lb_result check_names(struct lb *lb, size_t n, const char *const *names)
{
	if (n < 1 || n > LIMIT_NAMES_MAX)
		return wire_fail(lb, LB_REFUSED, "One of 1 to %d locks can be taken, not of %zu.", LIMIT_NAMES_MAX, n);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(names[i], names[j]) == 0)
				return wire_fail(lb, LB_REFUSED, "The name is given twice: %s", names[i]);
	return LB_OK;
}

enum lb_result lb_lock_any(struct lb *lb, size_t n, const char *const *names, const struct lb_options *options,
			   size_t *ret_index, int64_t *ret_token)
{
	struct any a = { .lb = lb, .n = n, .names = names, .options = LB_OPTIONS, .events = lb->events.len };
	struct request checked;
	enum lb_result r = check_names(lb, n, names);

	request_begin(&checked, "LOCK");
	if (r == LB_OK)
		r = request_options(lb, &checked, options);
	if (r != LB_OK)
		return r;
	if (options)
		a.options = *options;
	a.options.size = sizeof(a.options);
	a.end = wire_deadline(a.options.timeout_ms);
	/* Those who ask for the same names at the same time begin with different ones. */
	a.first = (size_t)((uint64_t)request_clock_ns() ^ (uint64_t)getpid() * 2654435761u) % n;
	r = try_each(&a);
	if ((r == LB_TAKEN || r == LB_UNAVAILABLE) && a.options.timeout_ms != 0) {
		r = settle(&a, queue_for_each(&a));
		if (r == LB_OK)
			r = hold(&a);
	}
	if (r != LB_OK)
		return r;
	if (ret_index)
		*ret_index = a.got;
	if (ret_token)
		*ret_token = a.token;
	return LB_OK;
}
