/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/lookout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/clock.h"
#include "client-lib/http/lookout_far.h"
#include "client-lib/http/lookout_shown.h"

enum { NEAR_SECONDS = 5, FAR_SECONDS = 10, IDLE_S = PLOTS_STEP_S };

int64_t lookout_now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

bool lookout_is_watched(const struct lookout *l)
{
	return l->looked_ms != INT64_MIN && lookout_now_ms() - l->looked_ms < LOOKOUT_LOOKS_MS;
}

const char *lookout_away(const struct lookout *l)
{
	if (broker_open(l->near) > 0 && lookout_now_ms() - l->polled_ms > LOOKOUT_AWAY_MS)
		return "lockbrokerd does not answer.";
	return l->failed ? broker_trouble(l->near) : NULL;
}

/* ---- answers of the poll ---- */

static void plot(struct lookout *l, const struct plots_reading *r)
{
	if (l->plot_due)
		plots_add(&l->plots, r, lookout_now_ms(), clock_ms(CLOCK_REALTIME));
	l->plot_due = false;
}

/* Without an answer all questions of the poll end so. The daemon stays away until there is one, of whichever poll. */
static bool has_failed(struct lookout *l, const struct lb_reply *reply)
{
	l->failed = !reply;
	return !reply || broker_error(reply).len > 0;
}

static void poll_begin(struct lookout *l);

/* The last question of the poll has ended. */
static void poll_end(struct lookout *l)
{
	bool again = l->again && !l->failed;

	if (broker_open(l->near) > 0 || !l->polling)
		return;
	l->polling = l->again = false;
	if (l->failed)
		plot(l, NULL);
	sightings_sweep(&l->sightings, lookout_now_ms());
	if (again) {
		poll_begin(l);
		return;
	}
	l->late = false;
	l->conf->seen(l->conf->of);
}

static void take_metrics(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	struct plots_reading r;
	int64_t now = lookout_now_ms();

	if (!has_failed(l, reply)) {
		plots_read(reply_text(reply), &r);
		l->latest = plots_between(&l->reading, &r, (double)(now - l->reading_ms) / 1000);
		l->reading = r;
		l->reading_ms = now;
		plot(l, &r);
	}
	poll_end(l);
}

static void copy_line(char *ret, size_t size, struct slice info, const char *key)
{
	struct slice line = reply_line(info, key);

	snprintf(ret, size, "%.*s", (int)line.len, line.data);
}

static void take_info(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	struct lookout_session *s = &l->session;
	struct slice info;

	if (!has_failed(l, reply)) {
		info = reply_text(reply);
		s->at_ms = lookout_now_ms();
		copy_line(s->version, sizeof(s->version), info, "\nlockbroker_version:");
		copy_line(s->host, sizeof(s->host), info, "\nhost:");
		copy_line(s->state, sizeof(s->state), info, "\nsession_state:");
		copy_line(s->why, sizeof(s->why), info, "\nsession_why:");
		copy_line(s->server, sizeof(s->server), info, "\nserver:");
		copy_line(s->trouble, sizeof(s->trouble), info, "\ntrouble:");
		if (!*s->trouble)
			copy_line(s->trouble, sizeof(s->trouble), info, "\nrefusal:");
		s->safe_for_ms = reply_line_number(info, "\nsafe_for_ms:");
		s->timeout_ms = reply_line_number(info, "\nsession_timeout_ms:");
		s->connected = reply_line_number(info, "\nconnected:") != 0;
		s->standalone = strcmp(s->state, "standalone") == 0;
		l->near_count = (size_t)reply_line_number(info, "\nlocks:");
	}
	poll_end(l);
}

/* Rows of this host, each of which is named by the present list. `first`: there are none before them by some order. */
static size_t take_rows(struct lookout *l, const struct lb_reply *rows, bool first)
{
	int64_t now = lookout_now_ms();

	l->sightings.list++;
	for (const struct lb_reply *row = lb_reply_item(rows, 0); row; row = reply_row_after(rows, row)) {
		struct sighting *s = sightings_take_here(&l->sightings, row, now);

		if (s && first)
			s->first_ms = now;
	}
	return lb_reply_count(rows);
}

/* All locks of this host are in it. */
static void end_whole_list(struct lookout *l)
{
	sightings_end_here(&l->sightings, l->sightings.list, SLICE(""), SLICE(""));
	l->near_ms = lookout_now_ms();
}

static void take_waits(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	size_t count;

	if (!has_failed(l, reply)) {
		count = take_rows(l, reply, true);
		/* Of more, those that were released meanwhile are missing in it. */
		if (count < LOOKOUT_FIRST && l->near_count < LOOKOUT_FIRST)
			end_whole_list(l);
		else if (count > 0 && reply_number(lb_reply_item(reply, count - 1), "waiters") == 0)
			sightings_end_waits(&l->sightings, l->sightings.list);
	}
	poll_end(l);
}

static void take_order(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;

	if (!has_failed(l, reply))
		take_rows(l, reply, true);
	poll_end(l);
}

/* All that begin so are in it; of very many, those up to its last one. */
static void take_shown(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	struct slice prefix = lookout_shown_next(l), until = SLICE("");
	size_t count;

	if (!has_failed(l, reply)) {
		count = take_rows(l, reply, false);
		if (count >= LOOKOUT_SHOWN_COUNT / 2)
			until = reply_field(lb_reply_item(reply, count - 1), "name");
		sightings_end_here(&l->sightings, l->sightings.list, prefix, until);
	}
	poll_end(l);
}

static void take_whole(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;

	if (reply && broker_error(reply).len > 0)
		l->whole_ms = lookout_now_ms() + LOOKOUT_TOO_LONG_MS;
	if (!has_failed(l, reply)) {
		take_rows(l, reply, false);
		end_whole_list(l);
	}
	poll_end(l);
}

/* ---- the poll ---- */

static const char *const order_words[LOOKOUT_ORDERS] = { "wait", "waiters", "grants", "name" };

static bool ask_order(struct lookout *l, enum lookout_order order, broker_answered answered)
{
	struct slice words[] = { SLICE("LOCKS"), SLICE("*"),  SLICE("ORDER"), slice_of(order_words[order]),
				 SLICE("COUNT"), SLICE("300") };

	return broker_ask(l->near, answered, l, sizeof(words) / sizeof(words[0]), words);
}

/* Where the first ones are not all. */
static bool ask_whole(struct lookout *l, int64_t now)
{
	const struct slice words[] = { SLICE("LOCKS"), SLICE("*") };

	if (l->near_count < LOOKOUT_FIRST || !lookout_is_watched(l) || now < l->whole_ms)
		return true;
	l->whole_ms = now + (int64_t)l->near_count * LOOKOUT_WHOLE_MS_A_LOCK;
	return broker_ask(l->near, take_whole, l, 2, words);
}

static void poll_begin(struct lookout *l)
{
	const struct slice metrics = SLICE("METRICS"), info = SLICE("INFO");
	int64_t now = lookout_now_ms();
	bool asked;

	l->polled_ms = l->sightings.asked_ms = now;
	l->polling = true;
	asked = broker_ask(l->near, take_metrics, l, 1, &metrics) && broker_ask(l->near, take_info, l, 1, &info) &&
		ask_order(l, LOOKOUT_WAIT, take_waits);
	for (enum lookout_order order = LOOKOUT_WAITERS; order < LOOKOUT_ORDERS && asked; order++)
		if (l->near_count >= LOOKOUT_FIRST && now - l->wanted_ms[order] < LOOKOUT_LOOKS_MS)
			asked = ask_order(l, order, take_order);
	if (asked && l->near_count >= LOOKOUT_FIRST)
		asked = lookout_shown_ask(l, take_shown);
	if (asked && ask_whole(l, now))
		return;
	l->failed = true;
	poll_end(l);
}

static void each_second(evutil_socket_t none, short what, void *arg)
{
	struct lookout *l = arg;

	if (l->conf->looks(l->conf->of))
		l->looked_ms = lookout_now_ms();
	if (l->seconds % IDLE_S == 0) {
		plot(l, NULL); /* the last one has had no answer in all that time */
		l->plot_due = true;
	}
	if (broker_open(l->near) > 0)
		l->conf->seen(l->conf->of);
	else if (lookout_is_watched(l) || l->seconds % IDLE_S == 0)
		poll_begin(l);
	lookout_far_second(l);
	l->seconds++;
}

/* ---- what it is asked ---- */

bool lookout_look(struct lookout *l)
{
	bool before = lookout_is_watched(l);

	l->looked_ms = lookout_now_ms();
	if (before)
		return l->late;
	l->late = true;
	if (l->polling)
		l->again = true; /* it may have begun before what somebody has just done */
	else
		poll_begin(l);
	return l->late;
}

void lookout_want(struct lookout *l, enum lookout_order order)
{
	l->wanted_ms[order] = lookout_now_ms();
}

struct lookout *lookout_new(struct event_base *base, const struct lookout_conf *conf)
{
	static const struct timeval second = { .tv_sec = 1 };
	struct lookout *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	l->base = base;
	l->conf = conf;
	l->looked_ms = INT64_MIN;
	l->near = broker_new(base, conf->socket, NEAR_SECONDS, true);
	l->far = broker_new(base, conf->socket, FAR_SECONDS, true);
	for (int i = 0; i < LOOKOUT_ORDERS; i++)
		l->wanted_ms[i] = INT64_MIN / 2;
	plots_init(&l->plots);
	sightings_init(&l->sightings);
	l->latest = *plots_at(&l->plots, 0);
	l->hosts_ms = INT64_MIN / 2;
	l->second = event_new(base, -1, EV_PERSIST, each_second, l);
	if (!l->second)
		abort();
	event_add(l->second, &second);
	each_second(-1, 0, l);
	return l;
}
