/* SPDX-License-Identifier: Apache-2.0 */
/* What answered writes prove of the session (proof.h); nothing but that file is linked. */
#include <limits.h>

#include "tests/unit/unit.h"

#include "core/session/proof.h"

/* In ms, and so is every instant here: the rule knows no unit. */
enum { T = 10000, TICK = 2000 };

static struct proof connected(int64_t asked_ns)
{
	struct proof p = { 0 };

	proof_init(&p);
	proof_connected(&p, asked_ns, T);
	return p;
}

/* A write that is sent then, and answered then. */
static enum proof_result write(struct proof *p, int64_t sent_ns, int64_t answered_ns)
{
	struct proof_write w = proof_sent(p, sent_ns, TICK);

	return proof_answered(p, &w, answered_ns, T, TICK);
}

TEST(nothing_is_proven_at_first)
{
	struct proof p = connected(0);

	assert_int_equal(p.safe_until_ns, INT64_MIN);
	assert_int_equal(p.told_ns, INT64_MIN);
}

TEST(an_answer_proves_two_thirds_from_its_sending)
{
	struct proof p = connected(1000);

	assert_int_equal(write(&p, 1500, 1600), PROOF_MADE);
	assert_int_equal(p.safe_until_ns, 1500 + T / 3 * 2);
	assert_int_equal(p.told_ns, p.safe_until_ns);
	/* A write that was sent before takes nothing back. */
	assert_int_equal(write(&p, 1200, 1700), PROOF_MADE);
	assert_int_equal(p.safe_until_ns, 1500 + T / 3 * 2);
}

TEST(a_late_answer_proves_nothing)
{
	struct proof p = connected(0);

	assert_int_equal(write(&p, 0, T / PROOF_ANSWER_PART + 1), PROOF_LATE);
	assert_int_equal(p.safe_until_ns, INT64_MIN);
	assert_int_equal(write(&p, 0, T / PROOF_ANSWER_PART), PROOF_MADE);
}

/* Writes in a row, each sent as soon as the one before is answered: the leader may have seen none but the handshake. */
TEST(writes_in_a_row_rest_on_the_handshake)
{
	struct proof p = connected(0);

	for (int64_t at = 3500; at < 3500 + TICK / 2; at += 100)
		write(&p, at, at + 100);
	assert_int_equal(p.seen_ns, 0);
	assert_int_equal(p.safe_until_ns, T / 50 * 49);
}

/* Answered at a; sent half a tick later; answered; a third one, sent after that, says that the leader saw us at a. */
TEST(the_third_write_says_what_the_leader_saw)
{
	struct proof p = connected(0);

	write(&p, 2900, 3000);
	write(&p, 3000 + TICK / 2 - 1, 4050);
	assert_int_equal(p.seen_ns, 0);
	write(&p, 3000 + TICK / 2, 4100);
	assert_int_equal(p.seen_ns, 3000);
	write(&p, 9000, 9100);
	assert_int_equal(p.safe_until_ns, 3000 + T / 50 * 49);
}

TEST(what_was_seen_counts_for_what_is_sent_later_only)
{
	struct proof p = connected(0);
	struct proof_write early;

	write(&p, 2900, 3000);
	early = proof_sent(&p, 4100, TICK);
	write(&p, 4050, 4150);
	assert_int_equal(p.seen_ns, 3000);
	assert_int_equal(early.seen_ns, 0);
}

/* However many come: of those within half a tick enough are remembered to find the youngest that is old enough. */
TEST(many_answers_hide_no_older_one)
{
	struct proof p = connected(0);

	for (int64_t at = 5000; at <= 8000; at++)
		write(&p, at, at);
	assert_in_range(proof_sent(&p, 8000, TICK).older_ns, 7000 - TICK / PROOF_ANSWERS, 7000);
}

TEST(a_standstill_voids_what_was_sent_within_a_tick)
{
	struct proof p = connected(0);

	write(&p, 100, 200);
	proof_stalled(&p, 5000, TICK);
	assert_int_equal(write(&p, 5000 + TICK - 1, 5000 + TICK), PROOF_VOID);
	assert_true(p.stalled);
	assert_int_equal(p.safe_until_ns, 100 + T / 3 * 2);
	assert_int_equal(write(&p, 5000 + TICK, 5000 + TICK + 10), PROOF_MADE);
	assert_false(p.stalled);
}

TEST(another_connection_rests_on_its_own_handshake)
{
	struct proof p = connected(0);

	write(&p, 2900, 3000);
	write(&p, 5000, 5000);
	proof_connected(&p, 5500, T);
	assert_int_equal(p.seen_ns, 5500);
	assert_int_equal(proof_sent(&p, 8000, TICK).older_ns, INT64_MIN);
	assert_int_equal(p.safe_until_ns, T / 50 * 49);
	/* Of a session with a shorter timeout no more is proven than what is left of that; holders were told of more. */
	proof_connected(&p, 6000, T / 4);
	assert_int_equal(p.safe_until_ns, 6000 + T / 4 / 50 * 49);
	assert_int_equal(p.told_ns, T / 50 * 49);
}

TEST(of_a_session_that_is_over_nothing_is_proven)
{
	struct proof p = connected(0);

	write(&p, 2900, 3000);
	proof_forget(&p);
	assert_int_equal(p.safe_until_ns, INT64_MIN);
	assert_int_equal(p.told_ns, INT64_MIN);
}
