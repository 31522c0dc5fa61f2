/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/top/top.h"
#include "client-lib/wire.h"

enum { METRICS_EVERY_MS = 5000, HOSTS_EVERY_MS = 10000 };

enum question { ASK_INFO, ASK_LOCKS, ASK_KNOWN, ASK_METRICS, ASK_HOSTS, ASK_WHY, ASK_QUEUE, ASK_REVOKE };

static bool ask(struct asker *a, enum question question, uint64_t about, size_t argc, const char *const *words)
{
	struct slice argv[8];

	for (size_t i = 0; i < argc; i++)
		argv[i] = slice_of(words[i]);
	return asker_ask(a, (int)question, about, argc, argv);
}

void top_set_name(char name[TOP_NAME_MAX], struct slice text)
{
	size_t len = text.len < TOP_NAME_MAX ? text.len : TOP_NAME_MAX - 1;

	memcpy(name, text.data, len);
	name[len] = '\0';
}

/* ---- the locks ---- */

const struct lb_reply *top_holder(const struct top *t, const struct top_row *row)
{
	const struct lb_reply *first = lb_reply_field(row->lock, "first");
	struct slice name = reply_field(row->lock, "name");

	if (lb_reply_count(first))
		return first;
	for (size_t i = 0; i < t->known_count; i++)
		if (slice_eq(slice_of(t->known[i].name), name))
			return lb_reply_item(kept_reply(&t->known[i].holders), 0);
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct lb_reply *const *x = a, *const *y = b;

	return slice_order(reply_field(*x, "name"), reply_field(*y, "name"));
}

/* A lock that stood elsewhere in the list, or was not there, has no rate yet; nor has one whose count began anew. */
static void find_rates(struct top *t)
{
	const struct lb_reply *all = kept_reply(&t->before), *lock = lb_reply_item(all, 0), **sorted;
	size_t count = lb_reply_count(all);
	double seconds = (double)(t->locks_ms - t->before_ms) / 1000;

	if (!count || seconds <= 0)
		return;
	sorted = malloc(count * sizeof(*sorted));
	if (!sorted)
		abort();
	for (size_t i = 0; i < count; i++, lock = i < count ? lb_reply_next(lock) : lock)
		sorted[i] = lock;
	qsort(sorted, count, sizeof(*sorted), by_name);
	for (size_t i = 0; i < t->row_count; i++) {
		const struct lb_reply *const *found =
			bsearch(&t->rows[i].lock, sorted, count, sizeof(*sorted), by_name);
		long long more = found ? reply_number(t->rows[i].lock, "grants") - reply_number(*found, "grants") : -1;

		if (more >= 0)
			t->rows[i].rate = (double)more / seconds;
	}
	free(sorted);
}

static int by_rate(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate > y->rate ? -1 : 1;
	return by_name(&x->lock, &y->lock);
}

static void take_rows(struct top *t)
{
	const struct lb_reply *all = kept_reply(&t->locks), *lock = lb_reply_item(all, 0);

	t->row_count = lb_reply_count(all);
	free(t->rows);
	t->rows = calloc(t->row_count + 1, sizeof(*t->rows));
	if (!t->rows)
		abort();
	for (size_t i = 0; i < t->row_count; i++, lock = i < t->row_count ? lb_reply_next(lock) : lock)
		t->rows[i] = (struct top_row){ .lock = lock, .rate = -1 };
	find_rates(t);
	if (t->order == TOP_RATE)
		qsort(t->rows, t->row_count, sizeof(*t->rows), by_rate);
	if (t->row_count > TOP_ROWS)
		t->row_count = TOP_ROWS;
}

/* Of a lock that is waited for, and that nobody on this host holds. */
static void ask_known(struct top *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->row_count && count < TOP_KNOWN_MAX; i++) {
		const struct lb_reply *lock = t->rows[i].lock;
		struct top_known *k = &t->known[count];
		char name[TOP_NAME_MAX];

		if (!reply_number(lock, "waiters") || reply_number(lock, "holders"))
			continue;
		top_set_name(name, reply_field(lock, "name"));
		if (count >= t->known_count || strcmp(k->name, name) != 0) {
			kept_free(&k->holders);
			memcpy(k->name, name, sizeof(name));
		}
		count++;
		ask(&t->local, ASK_KNOWN, count - 1, 3, (const char *const[]){ "HOLDERS", name, "KNOWN" });
	}
	for (size_t i = count; i < t->known_count; i++)
		kept_free(&t->known[i].holders);
	t->known_count = count;
}

static void take_locks(struct top *t, const struct answer *a)
{
	int64_t now_ms = wire_now_ms();

	if (now_ms - t->locks_ms >= TOP_RATE_MS) {
		kept_free(&t->before);
		t->before = t->locks;
		t->before_ms = t->locks_ms;
		t->locks = (struct kept){ 0 };
	}
	answer_keep(a, &t->locks);
	t->locks_ms = now_ms;
	take_rows(t);
	ask_known(t);
}

/* ---- the session ---- */

static void take_info(struct top *t, const struct answer *a)
{
	struct slice info = reply_text(a->reply);
	long long total = reply_line_number(info, "\ngrants_total:"),
		  started = reply_line_number(info, "\ncounted_since:");
	int64_t now_ms = wire_now_ms(), passed_ms = now_ms - t->info_ms;

	if (kept_reply(&t->info) && passed_ms < TOP_RATE_MS)
		return;
	t->grants_rate = kept_reply(&t->info) && started == t->started
				 ? (double)(total - t->grants_total) * 1000 / (double)passed_ms
				 : -1;
	t->grants_total = total;
	t->started = started;
	t->info_ms = now_ms;
	answer_keep(a, &t->info);
}

static double metric(struct slice text, const char *key)
{
	char number[REPLY_NUMBER_MAX];

	reply_line_copy(text, key, number);
	return strtod(number, NULL);
}

/* The mean of what was answered since it was asked last. */
static void take_metrics(struct top *t, struct slice text)
{
	double count = metric(text, "\nlockbroker_round_trip_seconds_count"),
	       sum = metric(text, "\nlockbroker_round_trip_seconds_sum"),
	       since = metric(text, "\nlockbroker_counters_start_time_seconds");

	if (since != t->round_trips_since) /* another daemon counts, from 0 on */
		t->round_trips = t->round_trip_s = 0;
	if (count > t->round_trips)
		t->round_trip_ms = (sum - t->round_trip_s) * 1000 / (count - t->round_trips);
	else if (count == 0)
		t->round_trip_ms = -1;
	t->round_trips_since = since;
	t->round_trips = count;
	t->round_trip_s = sum;
}

/* ---- answers ---- */

static void say_error(struct top *t, const struct answer *a)
{
	snprintf(t->message, sizeof(t->message), "%.*s", (int)a->error.len, a->error.data);
}

static void answered_locally(void *of, const struct answer *a)
{
	struct top *t = of;

	if (!a->reply) {
		say_error(t, a);
		return;
	}
	switch ((enum question)a->question) {
	case ASK_INFO:
		take_info(t, a);
		break;
	case ASK_LOCKS:
		take_locks(t, a);
		break;
	case ASK_KNOWN:
		if (a->about < t->known_count)
			answer_keep(a, &t->known[a->about].holders);
		break;
	case ASK_METRICS:
		take_metrics(t, reply_text(a->reply));
		break;
	case ASK_HOSTS:
	case ASK_WHY:
	case ASK_QUEUE:
	case ASK_REVOKE:
		break;
	}
}

static void answered_from_afar(void *of, const struct answer *a)
{
	struct top *t = of;
	struct kept *k = a->question == ASK_HOSTS ? &t->hosts : a->question == ASK_WHY ? &t->why : &t->queue;

	if (a->question != ASK_HOSTS && a->about != t->opening)
		return;
	if (a->reply)
		answer_keep(a, k);
	else
		kept_free(k);
	if (!a->reply && a->question != ASK_HOSTS)
		say_error(t, a);
}

static void answered_as_operator(void *of, const struct answer *a)
{
	struct top *t = of;
	long long count = (long long)lb_reply_integer(a->reply);

	t->asks_operators = false;
	if (!a->reply)
		say_error(t, a);
	else if (count)
		snprintf(t->message, sizeof(t->message), "%lld holder%s asked to release it.", count,
			 count == 1 ? " was" : "s were");
	else
		snprintf(t->message, sizeof(t->message), "Nobody was asked to release it: nobody holds it.");
}

/* ---- questions ---- */

static const char *const order_words[TOP_ORDERS] = { "wait", "waiters", "grants", "name" };

/* A pattern of names that have the filter in them: what has a meaning in a pattern stands for itself. */
static void pattern_of(const char *filter, char ret[2 * TOP_FILTER_MAX + 3])
{
	char *to = ret;

	*to++ = '*';
	for (; *filter; filter++) {
		if (strchr("*?[]\\^", *filter))
			*to++ = '\\';
		*to++ = *filter;
	}
	if (to > ret + 1)
		*to++ = '*';
	*to = '\0';
}

static void poll_locks(struct top *t)
{
	char pattern[2 * TOP_FILTER_MAX + 3], count[16];

	pattern_of(t->filter, pattern);
	snprintf(count, sizeof(count), "%d", t->order == TOP_RATE ? TOP_ROWS_RATE : TOP_ROWS);
	ask(&t->local, ASK_INFO, 0, 1, (const char *const[]){ "INFO" });
	ask(&t->local, ASK_LOCKS, 0, 6,
	    (const char *const[]){ "LOCKS", pattern, "ORDER", order_words[t->order], "COUNT", count });
}

/* What cannot be asked now is not due: the answer, or the next connection, comes first. */
static bool may_ask(const struct asker *a)
{
	return a->fd >= 0 && !a->count;
}

static int64_t due_next(const struct top *t)
{
	int64_t due = INT64_MAX;

	if (t->stopped)
		return due;
	if (may_ask(&t->local))
		due = t->poll_ms;
	if (may_ask(&t->far) && t->hosts_ms < due)
		due = t->hosts_ms;
	if (may_ask(&t->far) && t->open && t->detail_ms < due)
		due = t->detail_ms;
	return due;
}

int64_t top_ask(struct top *t, int64_t now_ms)
{
	if (t->asks_operators && t->operators.fd < 0) {
		t->asks_operators = false;
		snprintf(t->message, sizeof(t->message), "Nobody was asked: %.900s", t->operators.why);
	}
	if (t->stopped && kept_reply(&t->locks))
		return INT64_MAX;
	if (now_ms >= t->poll_ms && may_ask(&t->local)) {
		t->poll_ms = now_ms + TOP_EVERY_MS;
		poll_locks(t);
		if (now_ms >= t->metrics_ms && ask(&t->local, ASK_METRICS, 0, 1, (const char *const[]){ "METRICS" }))
			t->metrics_ms = now_ms + METRICS_EVERY_MS;
	}
	if (t->open && now_ms >= t->detail_ms && may_ask(&t->far)) {
		t->detail_ms = now_ms + TOP_EVERY_MS;
		ask(&t->far, ASK_WHY, t->opening, 2, (const char *const[]){ "WHY", t->opened });
		ask(&t->far, ASK_QUEUE, t->opening, 2, (const char *const[]){ "QUEUE", t->opened });
	}
	if (now_ms >= t->hosts_ms && may_ask(&t->far)) {
		t->hosts_ms = now_ms + HOSTS_EVERY_MS;
		ask(&t->far, ASK_HOSTS, 0, 1, (const char *const[]){ "HOSTS" });
	}
	return due_next(t);
}

void top_hurry(struct top *t)
{
	t->poll_ms = t->detail_ms = 0;
}

size_t top_selected(const struct top *t)
{
	for (size_t i = 0; *t->selected && i < t->row_count; i++)
		if (slice_eq(reply_field(t->rows[i].lock, "name"), slice_of(t->selected)))
			return i;
	return 0;
}

const char *top_name(const struct top *t, char ret[TOP_NAME_MAX])
{
	struct slice name = t->open ? slice_of(t->opened) : SLICE("");

	if (!t->open && t->row_count)
		name = reply_field(t->rows[top_selected(t)].lock, "name");
	top_set_name(ret, name);
	return ret;
}

void top_revoke(struct top *t)
{
	asker_connect(&t->operators);
	t->asks_operators = ask(&t->operators, ASK_REVOKE, 0, 2, (const char *const[]){ "REVOKE", t->releasing });
	if (t->asks_operators)
		snprintf(t->message, sizeof(t->message), "The holder is being asked ...");
	else
		snprintf(t->message, sizeof(t->message), "Nobody was asked: %.900s", t->operators.why);
}

void top_init(struct top *t, const char *socket, const char *operators)
{
	*t = (struct top){ .grants_rate = -1, .round_trip_ms = -1 };
	asker_init(&t->local, socket, answered_locally, t);
	asker_init(&t->far, socket, answered_from_afar, t);
	asker_init(&t->operators, operators, answered_as_operator, t);
	t->local.lasting = t->far.lasting = true;
}

void top_deinit(struct top *t)
{
	asker_deinit(&t->local);
	asker_deinit(&t->far);
	asker_deinit(&t->operators);
	kept_free(&t->info);
	kept_free(&t->locks);
	kept_free(&t->before);
	kept_free(&t->hosts);
	kept_free(&t->why);
	kept_free(&t->queue);
	for (size_t i = 0; i < t->known_count; i++)
		kept_free(&t->known[i].holders);
	free(t->rows);
}
