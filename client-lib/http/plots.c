/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/plots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct plots_step nothing = { NAN, NAN, NAN, NAN, NAN, NAN };

/* ---- numbers ---- */

/* What stands behind the line's beginning; NULL: there is no such line. The text ends with a line end. */
static const char *find(struct slice text, const char *begin)
{
	size_t len = strlen(begin);
	const char *at = text.data, *end = text.data + text.len, *line;

	for (; at && at < end; at = line + 1) {
		line = memchr(at, '\n', (size_t)(end - at));
		if (!line)
			return NULL;
		if ((size_t)(line - at) > len && memcmp(at, begin, len) == 0)
			return at + len;
	}
	return NULL;
}

static double number(struct slice text, const char *name)
{
	char begin[128];
	const char *at;

	snprintf(begin, sizeof(begin), "lockbroker_%s ", name);
	at = find(text, begin);
	return at ? strtod(at, NULL) : 0;
}

/* Its lines stand together, in the order of the classes. */
static void read_times(struct slice text, const char *name, struct plots_times *ret)
{
	char begin[96];
	const char *end = text.data + text.len, *at;

	snprintf(begin, sizeof(begin), "lockbroker_%s_seconds_bucket{le=\"", name);
	at = find(text, begin);
	for (int i = 0; i < PLOTS_CLASSES; i++) {
		const char *count = at ? memchr(at, ' ', (size_t)(end - at)) : NULL;

		ret->bound_ms[i] = at ? strtod(at, NULL) * 1000 : INFINITY; /* also of "+Inf" */
		ret->up_to[i] = count ? strtod(count, NULL) : 0;
		at = count ? find((struct slice){ count + 1, (size_t)(end - count) - 1 }, begin) : NULL;
	}
	snprintf(begin, sizeof(begin), "%s_seconds_sum", name);
	ret->sum_ms = number(text, begin) * 1000;
}

void plots_read(struct slice metrics, struct plots_reading *ret)
{
	static const char *const refusals[] = { "acl", "quota", "local_session", "throttled", "read_only", "other" };
	char name[64];

	*ret = (struct plots_reading){
		.made = number(metrics, "up") == 1,
		.since_s = number(metrics, "counters_start_time_seconds"),
		.grants = number(metrics, "grants_total"),
		.waiters = number(metrics, "waiting_requests"),
		.locks = number(metrics, "locks"),
		.holders = number(metrics, "grants"),
		.clients = number(metrics, "connected_clients"),
	};
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		snprintf(name, sizeof(name), "refused_%s_total", refusals[i]);
		ret->refusals += number(metrics, name);
	}
	read_times(metrics, "wait", &ret->wait);
	read_times(metrics, "round_trip", &ret->round_trip);
}

/* ---- steps ---- */

static double count_between(const struct plots_times *from, const struct plots_times *to)
{
	return to->up_to[PLOTS_CLASSES - 1] - from->up_to[PLOTS_CLASSES - 1];
}

/* The time below which that part of them was: inside a class they are taken to lie evenly. */
static double quantile(const struct plots_times *from, const struct plots_times *to, double part)
{
	double wanted = count_between(from, to) * part, below = 0;

	if (count_between(from, to) <= 0)
		return NAN;
	for (int i = 0; i < PLOTS_CLASSES; i++) {
		double up_to = to->up_to[i] - from->up_to[i], least = i > 0 ? to->bound_ms[i - 1] : 0;

		if (up_to >= wanted)
			return isinf(to->bound_ms[i])
				       ? least
				       : least + (to->bound_ms[i] - least) * (wanted - below) / (up_to - below);
		below = up_to;
	}
	return NAN;
}

struct plots_step plots_between(const struct plots_reading *from, const struct plots_reading *to, double seconds)
{
	struct plots_step step = nothing;
	double answers;

	if (!to->made)
		return step;
	step.waiters = to->waiters;
	if (!from->made || from->since_s != to->since_s || seconds <= 0)
		return step;
	answers = count_between(&from->round_trip, &to->round_trip);
	step.grants_per_s = (to->grants - from->grants) / seconds;
	step.wait_p50_ms = quantile(&from->wait, &to->wait, 0.5);
	step.wait_p99_ms = quantile(&from->wait, &to->wait, 0.99);
	step.round_trip_ms = answers > 0 ? (to->round_trip.sum_ms - from->round_trip.sum_ms) / answers : NAN;
	step.refusals = to->refusals - from->refusals;
	return step;
}

void plots_init(struct plots *p)
{
	*p = (struct plots){ 0 };
	for (int i = 0; i < PLOTS_STEPS; i++)
		p->steps[i] = nothing;
}

void plots_add(struct plots *p, const struct plots_reading *r, int64_t now_ms, int64_t clock_ms)
{
	p->steps[p->next] = r ? plots_between(&p->last, r, (double)(now_ms - p->last_ms) / 1000) : nothing;
	p->next = (p->next + 1) % PLOTS_STEPS;
	p->end_ms = clock_ms;
	p->last = r ? *r : (struct plots_reading){ 0 };
	p->last_ms = now_ms;
}

const struct plots_step *plots_at(const struct plots *p, unsigned int i)
{
	return &p->steps[(p->next + i) % PLOTS_STEPS];
}
