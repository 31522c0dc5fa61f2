/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/window.h"

#include "base/minmax.h"

enum { SPAN_PART = 24 }; /* of T */

static const int64_t FIRST[WINDOW_GAUGES] = { WINDOW_FIRST_BYTES, WINDOW_FIRST_COUNT, WINDOW_FIRST_COUNT };
static const int64_t LEAST[WINDOW_GAUGES] = { WINDOW_LEAST_BYTES, WINDOW_LEAST_COUNT, WINDOW_LEAST_COUNT };

void window_begin(struct window *w, int64_t now_ns)
{
	*w = (struct window){ .trip_ns = INT64_MAX };
	for (int i = 0; i < WINDOW_GAUGES; i++) {
		w->size[i] = FIRST[i];
		w->used_ns[i] = now_ns;
	}
}

static int64_t amount(const struct flight *flight, int gauge)
{
	const int64_t amounts[WINDOW_GAUGES] = {
		[WINDOW_BYTES] = flight->bytes, [WINDOW_READS] = !flight->write, [WINDOW_WRITES] = flight->write
	};

	return amounts[gauge];
}

void window_sent(struct window *w, struct flight *flight)
{
	for (int i = 0; i < WINDOW_GAUGES; i++) {
		flight->answered[i] = w->answered[i];
		w->open[i] += amount(flight, i);
	}
}

bool window_has_room(const struct window *w)
{
	if (!w->open[WINDOW_READS] && !w->open[WINDOW_WRITES])
		return true;
	for (int i = 0; i < WINDOW_GAUGES; i++)
		if (w->open[i] >= w->size[i])
			return false;
	return true;
}

/* A round trip of more than that is no distance, but a server that is slow. */
int64_t window_span_ns(const struct window *w, int64_t timeout_ns)
{
	return timeout_ns / SPAN_PART + (w->trip_ns == INT64_MAX ? 0 : min64(w->trip_ns, timeout_ns / SPAN_PART));
}

/* So much was answered in so long: what would be in `span_ns`, if so much more is to be believed. */
static int64_t in_time(int64_t answered, int64_t took_ns, int64_t span_ns)
{
	/* By a quotient: T may be an hour, and the product of that and some megabytes would overflow. */
	if (took_ns <= span_ns / 2)
		return 2 * answered;
	return (int64_t)((double)answered * ((double)span_ns / (double)took_ns));
}

static void measure(struct window *w, int gauge, int64_t answered, int64_t took_ns, int64_t span_ns)
{
	int64_t fits = in_time(answered, took_ns, span_ns);

	if (took_ns > span_ns || fits > w->size[gauge])
		w->size[gauge] = max64(LEAST[gauge], fits);
}

void window_answered(struct window *w, const struct flight *flight, int64_t now_ns, int64_t timeout_ns)
{
	int64_t took_ns = now_ns - flight->sent_ns, span_ns;

	if (flight->write)
		w->trip_ns = min64(w->trip_ns, took_ns);
	span_ns = window_span_ns(w, timeout_ns);
	for (int i = 0; i < WINDOW_GAUGES; i++) {
		int64_t mine = amount(flight, i), answered;

		w->open[i] -= mine;
		w->answered[i] += mine;
		answered = w->answered[i] - flight->answered[i];
		measure(w, i, answered, took_ns, span_ns);
		if (answered * 2 >= w->size[i]) {
			w->used_ns[i] = now_ns;
		} else if (now_ns - w->used_ns[i] >= timeout_ns && w->size[i] > FIRST[i]) {
			w->size[i] = max64(FIRST[i], w->size[i] / 2);
			w->used_ns[i] = now_ns;
		}
	}
}
