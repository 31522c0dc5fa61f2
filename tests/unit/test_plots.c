/* SPDX-License-Identifier: Apache-2.0 */
/* What the page shows of the last 15 minutes: steps in a ring, gaps, and quantiles of histograms. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "client-lib/http/plots.h"

enum { MINUTES = 15 };

static const struct plots_reading first = { .made = true, .since_s = 1, .grants = 100 };

/* Of a daemon that runs since then. */
static struct plots_reading reading(double since_s, double grants, double waiters)
{
	return (struct plots_reading){ .made = true, .since_s = since_s, .grants = grants, .waiters = waiters };
}

static void expect(double value, double expected)
{
	if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) < 1e-9))
		fail_msg("%g, where %g is expected", value, expected);
}

static void expect_nothing(const struct plots_step *step)
{
	expect(step->grants_per_s, NAN);
	expect(step->wait_p50_ms, NAN);
	expect(step->wait_p99_ms, NAN);
	expect(step->waiters, NAN);
	expect(step->round_trip_ms, NAN);
	expect(step->refusals, NAN);
}

/* ---- the ring ---- */

TEST(the_ring_is_of_fifteen_minutes_and_the_oldest_step_goes)
{
	struct plots p;
	struct plots_reading r;

	assert_int_equal(PLOTS_STEPS * PLOTS_STEP_S, MINUTES * 60);
	plots_init(&p);
	for (unsigned int i = 0; i < PLOTS_STEPS; i++)
		expect_nothing(plots_at(&p, i));
	for (int i = 0; i < PLOTS_STEPS + 7; i++) {
		r = reading(1, 10.0 * i, i);
		plots_add(&p, &r, INT64_C(5000) * i, 1000000 + INT64_C(5000) * i);
		expect(plots_at(&p, PLOTS_STEPS - 1)->waiters, i);
		expect(plots_at(&p, 0)->waiters, i < PLOTS_STEPS - 1 ? NAN : i - (PLOTS_STEPS - 1));
		assert_int_equal(p.end_ms, 1000000 + 5000 * i);
	}
	for (unsigned int i = 0; i < PLOTS_STEPS; i++) {
		expect(plots_at(&p, i)->waiters, i + 7);
		expect(plots_at(&p, i)->grants_per_s, 2);
	}
}

TEST(a_step_without_an_answer_is_a_gap_and_so_is_the_rate_behind_it)
{
	struct plots p;
	struct plots_reading r;

	plots_init(&p);
	r = reading(1, 100, 3);
	plots_add(&p, &r, 0, 0);
	expect(plots_at(&p, PLOTS_STEPS - 1)->waiters, 3);
	expect(plots_at(&p, PLOTS_STEPS - 1)->grants_per_s, NAN); /* since when is not known */
	plots_add(&p, NULL, 5000, 5000);
	expect_nothing(plots_at(&p, PLOTS_STEPS - 1));
	r = reading(1, 500, 4);
	plots_add(&p, &r, 10000, 10000);
	expect(plots_at(&p, PLOTS_STEPS - 1)->waiters, 4);
	expect(plots_at(&p, PLOTS_STEPS - 1)->grants_per_s, NAN);
	r = reading(1, 550, 4);
	plots_add(&p, &r, 20000, 20000);
	expect(plots_at(&p, PLOTS_STEPS - 1)->grants_per_s, 5); /* the step took 10 s */
	expect(plots_at(&p, PLOTS_STEPS - 4)->waiters, 3);
}

TEST(counters_that_began_anew_have_no_rate)
{
	const struct plots_reading later = reading(2, 500, 1), none = { 0 };
	struct plots_step step;

	step = plots_between(&first, &later, 5);
	expect(step.grants_per_s, NAN);
	expect(step.refusals, NAN);
	expect(step.waiters, 1);
	step = plots_between(&first, &none, 5);
	expect_nothing(&step);
	step = plots_between(&first, &first, 0);
	expect(step.grants_per_s, NAN);
}

/* ---- quantiles ---- */

/* So many more were in each class; the bounds are 1, 2, 4 ... ms, and the last one is infinite. */
static struct plots_reading waits(const double *counts)
{
	struct plots_reading r = first;
	double up_to = 0;

	for (int i = 0; i < PLOTS_CLASSES; i++) {
		r.wait.bound_ms[i] = i < PLOTS_CLASSES - 1 ? ldexp(1, i) : INFINITY;
		r.wait.up_to[i] = up_to += counts[i];
	}
	return r;
}

static void expect_waits(const double counts[PLOTS_CLASSES], double p50, double p99)
{
	const double others[PLOTS_CLASSES] = { 7, 0, 3, [PLOTS_CLASSES - 1] = 1 };
	double all[PLOTS_CLASSES];
	struct plots_reading from = waits(others), to;
	struct plots_step step;

	for (int i = 0; i < PLOTS_CLASSES; i++)
		all[i] = others[i] + counts[i];
	to = waits(all);
	step = plots_between(&from, &to, 5);
	expect(step.wait_p50_ms, p50);
	expect(step.wait_p99_ms, p99);
}

TEST(quantiles_are_of_what_came_between_and_lie_evenly_in_their_class)
{
	expect_waits((double[PLOTS_CLASSES]){ 0 }, NAN, NAN);
	expect_waits((double[PLOTS_CLASSES]){ 100 }, 0.5, 0.99);
	expect_waits((double[PLOTS_CLASSES]){ 0, 0, 1 }, 3, 3.98);
	expect_waits((double[PLOTS_CLASSES]){ 50, 0, 0, 50 }, 1, 4 + 4 * 49.0 / 50);
	expect_waits((double[PLOTS_CLASSES]){ 20, 60, 0, 0, 20 }, 1.5, 8 + 8 * 19.0 / 20);
}

TEST(of_a_wait_longer_than_all_bounds_the_last_bound_is_known)
{
	expect_waits((double[PLOTS_CLASSES]){ 98, [PLOTS_CLASSES - 1] = 2 }, 50.0 / 98, ldexp(1, PLOTS_CLASSES - 2));
}

/* ---- METRICS ---- */

static const char metrics[] = "lockbroker_up 1\n"
			      "lockbroker_counters_start_time_seconds 1700000000\n"
			      "lockbroker_grants_total 42\n"
			      "lockbroker_grants 7\n"
			      "lockbroker_locks 9\n"
			      "lockbroker_waiting_requests 3\n"
			      "lockbroker_connected_clients 11\n"
			      "lockbroker_refused_acl_total 2\n"
			      "lockbroker_refused_other_total 5\n"
			      "lockbroker_wait_seconds_bucket{le=\"0.001\"} 4\n"
			      "lockbroker_wait_seconds_bucket{le=\"0.01\"} 6\n"
			      "lockbroker_wait_seconds_bucket{le=\"+Inf\"} 8\n"
			      "lockbroker_round_trip_seconds_bucket{le=\"+Inf\"} 4\n"
			      "lockbroker_round_trip_seconds_sum 0.5\n";

TEST(numbers_of_metrics_are_read)
{
	struct plots_reading r;

	plots_read(slice_of(metrics), &r);
	assert_true(r.made);
	expect(r.since_s, 1700000000);
	expect(r.grants, 42);
	expect(r.holders, 7);
	expect(r.locks, 9);
	expect(r.waiters, 3);
	expect(r.clients, 11);
	expect(r.refusals, 7);
	expect(r.wait.bound_ms[0], 1);
	expect(r.wait.bound_ms[1], 10);
	assert_true(isinf(r.wait.bound_ms[2]));
	expect(r.wait.up_to[2], 8);
	expect(r.round_trip.sum_ms, 500);
	expect(r.round_trip.up_to[0], 4);
	plots_read(SLICE(""), &r);
	assert_false(r.made);
	plots_read(SLICE("lockbroker_up 0\n"), &r);
	assert_false(r.made);
}

TEST(a_round_trip_is_the_mean_of_those_between)
{
	struct plots_reading from = first, to = first;

	from.round_trip.up_to[PLOTS_CLASSES - 1] = 10;
	from.round_trip.sum_ms = 100;
	to.round_trip.up_to[PLOTS_CLASSES - 1] = 14;
	to.round_trip.sum_ms = 110;
	expect(plots_between(&from, &to, 5).round_trip_ms, 2.5);
	expect(plots_between(&to, &to, 5).round_trip_ms, NAN);
}
