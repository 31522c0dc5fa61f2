/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbers of METRICS, and their history of the last 15 minutes: a step for every PLOTS_STEP_S. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/slice.h"

enum { PLOTS_STEPS = 180, PLOTS_STEP_S = 5, PLOTS_CLASSES = 16 };

/* A histogram of METRICS: the number in each class and all classes before it. */
struct plots_times {
	double up_to[PLOTS_CLASSES], bound_ms[PLOTS_CLASSES]; /* the last bound is infinite */
	double sum_ms;
};

/* An answer to METRICS. */
struct plots_reading {
	bool made;
	double since_s; /* when the counters began: others count anew */
	double grants, refusals, waiters, locks, holders, clients;
	struct plots_times wait, round_trip;
};

/* The numbers of a step, or of the time between two readings. NAN: not known. */
struct plots_step {
	double grants_per_s, wait_p50_ms, wait_p99_ms, waiters, round_trip_ms, refusals;
};

struct plots {
	struct plots_step steps[PLOTS_STEPS]; /* a ring */
	unsigned int next;
	int64_t end_ms; /* since 1970: of the last one */
	struct plots_reading last;
	int64_t last_ms;
};

void plots_init(struct plots *p);
void plots_read(struct slice metrics, struct plots_reading *ret);
/* The numbers of the time between two readings, which took `seconds`. */
struct plots_step plots_between(const struct plots_reading *from, const struct plots_reading *to, double seconds);
/* The next step. NULL: the daemon has not answered. `now_ms` is of the monotonic clock. */
void plots_add(struct plots *p, const struct plots_reading *r, int64_t now_ms, int64_t clock_ms);
/* `i` from 0, the oldest, to PLOTS_STEPS - 1. */
const struct plots_step *plots_at(const struct plots *p, unsigned int i);
