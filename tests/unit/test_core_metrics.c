/* SPDX-License-Identifier: Apache-2.0 */
/* METRICS: what it says, that nothing of a user is in it, and that it is bounded; how long things took. */
#include "core_test.h"

#include <stdio.h>
#include <string.h>

#include "core/command/metrics.h"
#include "core/port/stats.h"
#include "core/state.h"

SETUP(setup, false, 5)
SETUP(setup_standalone, true, 5)

/* The text, which is valid until the next call. */
static const char *text_of(struct fixture *f)
{
	bytes_clear(&f->replies[4]);
	fixture_ask(f, 4, "METRICS");
	bytes_char(&f->replies[4], '\0');
	f->replies[4].len = 0;
	return f->replies[4].data;
}

static void expect(struct fixture *f, const char *line)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "\nlockbroker_%s\n", line);
	if (!strstr(text_of(f), whole))
		fail_msg("no line %s in %s", line, f->replies[4].data);
}

ALONE(what_is_counted_is_shown)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_ask(f, 1, "LOCK a");
	expect(f, "up 1");
	expect(f, "build_info{version=\"test\",mode=\"standalone\"} 1");
	expect(f, "grants_total 1");
	expect(f, "waiting_requests 1");
	expect(f, "pool_used{pool=\"clients\"} 5");
	assert_null(strstr(text_of(f), "session_state"));
}

ALONE(how_long_things_took_is_counted_in_classes)
{
	fixture_ask(f, 0, "LOCK a");
	expect(f, "wait_seconds_bucket{le=\"0.000016383\"} 1");
	fixture_ask(f, 1, "LOCK a");
	fixture_pass(f, 1500);
	fixture_ask(f, 0, "UNLOCK a");
	expect(f, "wait_seconds_bucket{le=\"1.073741823\"} 1");
	expect(f, "wait_seconds_bucket{le=\"4.294967295\"} 2");
	expect(f, "wait_seconds_bucket{le=\"+Inf\"} 2");
	expect(f, "wait_seconds_sum 1.5");
	expect(f, "wait_seconds_count 2");
	expect(f, "hold_seconds_count 1");
	expect(f, "hold_seconds_sum 1.5");
	expect(f, "handoff_seconds_count 1");
	expect(f, "handoff_seconds_sum 0");
}

ALONE(a_grant_that_nobody_waited_for_is_no_hand_off)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_ask(f, 0, "UNLOCK a");
	fixture_pass(f, 100);
	fixture_ask(f, 0, "LOCK a");
	expect(f, "handoff_seconds_count 0");
	expect(f, "hold_seconds_count 1");
}

ALONE(a_loss_ends_a_hold)
{
	fixture_ask(f, 0, "LOCK a LEASE 200");
	fixture_pass(f, 300);
	expect(f, "losses_total 1");
	expect(f, "hold_seconds_count 1");
	fixture_ask(f, 0, "UNLOCK a");
	expect(f, "hold_seconds_count 1");
}

ALONE(classes_have_their_bounds)
{
	struct histogram h = { 0 };

	histogram_add(&h, 0);
	histogram_add(&h, (int64_t)histogram_bound_ns(0));
	assert_int_equal(h.counts[0], 2);
	for (unsigned int i = 1; i < HISTOGRAM_CLASSES - 1; i++) {
		histogram_add(&h, (int64_t)histogram_bound_ns(i - 1) + 1);
		histogram_add(&h, (int64_t)histogram_bound_ns(i));
		assert_int_equal(h.counts[i], 2);
	}
	histogram_add(&h, (int64_t)histogram_bound_ns(HISTOGRAM_CLASSES - 2) + 1);
	histogram_add(&h, INT64_MAX);
	assert_int_equal(h.counts[HISTOGRAM_CLASSES - 1], 2);
}

ALONE(the_longest_wait_is_looked_up_once_a_second)
{
	fixture_ask(f, 0, "LOCK a");
	expect(f, "longest_wait_seconds 0");
	fixture_ask(f, 1, "LOCK a");
	fixture_pass(f, 900);
	expect(f, "longest_wait_seconds 0");
	fixture_ask(f, 2, "LOCK a");
	fixture_pass(f, 1350);
	expect(f, "longest_wait_seconds 2.25");
	fixture_ask(f, 0, "UNLOCK a");
	fixture_pass(f, 1000);
	expect(f, "longest_wait_seconds 2.35");
}

TEST(the_session_is_shown_by_its_state)
{
	fixture_pass(f, 300);
	expect(f, "session_state{state=\"safe\"} 1");
	expect(f, "session_state{state=\"lost\"} 0");
	expect(f, "session_proof_age_seconds 0.3");
	expect(f, "session_timeout_seconds 12");
	expect(f, "zookeeper_connected 1");
	assert_non_null(strstr(text_of(f), "lockbroker_round_trip_seconds_count"));
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 5000);
	expect(f, "session_state{state=\"jeopardy\"} 1");
	expect(f, "zookeeper_disconnected_seconds 5");
}

TEST(a_claim_takes_until_it_is_held)
{
	expect(f, "claim_seconds_count 0");
	fixture_lock_held(f, 0, "a", 1, 100, f->znode, sizeof(f->znode));
	expect(f, "claim_seconds_count 1");
	expect(f, "claims_total 1");
}

TEST(an_answer_counts_the_time_since_its_operation_was_sent)
{
	f->broker->env.stats.round_trip = (struct histogram){ 0 };
	fixture_ask(f, 0, "LOCK a");
	fixture_pass(f, 5);
	expect(f, "round_trip_seconds_count 0");
	fixture_serve_get(f, "a", 1, 0, LOCK_DATA);
	expect(f, "round_trip_seconds_count 1");
	expect(f, "round_trip_seconds_sum 0.005");
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_pass(f, 20);
	fixture_answer_made(f, 1, 100, f->znode, sizeof(f->znode));
	expect(f, "round_trip_seconds_count 2");
	expect(f, "round_trip_seconds_sum 0.03");
	expect(f, "claim_seconds_count 0");
	fixture_pass(f, 3);
	fixture_serve_list(f, "a", 1, (const char *[]){ f->znode });
	expect(f, "round_trip_seconds_count 3");
	expect(f, "round_trip_seconds_sum 0.058");
	expect(f, "claim_seconds_count 1");
	expect(f, "claim_seconds_sum 0.028");
	expect(f, "claim_seconds_bucket{le=\"0.016777215\"} 0");
	expect(f, "claim_seconds_bucket{le=\"0.067108863\"} 1");
}

ALONE(nothing_of_a_user_is_shown)
{
	fixture_ask(f, 0, "CLIENT SETNAME my-own-name");
	fixture_ask(f, 0, "LOCK my-own-lock DATA my-own-data");
	fixture_ask(f, 1, "LOCK my-own-lock");
	assert_null(strstr(text_of(f), "my-own"));
	fixture_say(
		f, 4, "METRICS x",
		"-ERR wrong number of arguments for 'metrics' command; State and counters, as Prometheus reads them: METRICS");
}

/* As long as no value can be longer than its type, the text cannot be. */
TEST(the_text_is_bounded)
{
	struct stats *stats = &f->broker->env.stats;

	memset(stats, 0xff, sizeof(*stats));
	assert_true(strlen(text_of(f)) < METRICS_BYTES_MAX / 2);
	memset(stats, 0, sizeof(*stats));
}

ALONE(what_was_counted_goes_on_in_another_process)
{
	struct stats counted;

	fixture_ask(f, 0, "LOCK a");
	fixture_pass(f, 70);
	fixture_ask(f, 0, "UNLOCK a");
	f->broker->env.stats.since_s = 77;
	f->broker->env.stats.round_trip.counts[15] = 9;
	counted = f->broker->env.stats;
	fixture_hand_over(f);
	assert_memory_equal(&f->broker->env.stats, &counted, sizeof(counted));
}
