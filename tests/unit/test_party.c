/* SPDX-License-Identifier: Apache-2.0 */
/* Parties: whose turn it is, whatever the others have to be done. */
#include "io/socket/party.h"

#include "tests/unit/unit.h"

enum { MANY = 50 };

static const char one_user, another;

static struct parties parties;
static struct party_member many[MANY], other;

static int begin(void **state)
{
	parties_init(&parties);
	for (int i = 0; i < MANY; i++) {
		many[i] = (struct party_member){ 0 };
		party_enter(&parties, &many[i], &one_user);
	}
	other = (struct party_member){ 0 };
	party_enter(&parties, &other, &another);
	return 0;
}

static int end(void **state)
{
	for (int i = 0; i < MANY; i++)
		party_leave(&parties, &many[i]);
	party_leave(&parties, &other);
	assert_null(parties_next(&parties));
	parties_deinit(&parties);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

/* All of them have something to be done, again and again. */
static void add_many(void)
{
	for (int i = 0; i < MANY; i++)
		party_add(&parties, &many[i]);
}

/* The next one is served, for so long, and has something to be done again. */
static struct party_member *serve(int64_t of_many_ns, int64_t of_other_ns, int64_t *ret_other_ns)
{
	struct party_member *place = parties_next(&parties);
	int64_t ns = place == &other ? of_other_ns : of_many_ns;

	parties_charge(&parties, ns);
	*ret_other_ns += place == &other ? ns : 0;
	party_add(&parties, place);
	return place;
}

TEST(one_that_is_alone_is_served_whatever_it_uses)
{
	assert_false(parties_have_work(&parties));
	for (int i = 0; i < 3; i++) {
		party_add(&parties, &other);
		party_add(&parties, &other);
		assert_true(parties_have_work(&parties));
		assert_ptr_equal(parties_next(&parties), &other);
		parties_charge(&parties, 1000 * PARTY_TURN_NS);
		assert_false(parties_contended(&parties));
		assert_null(parties_next(&parties));
	}
}

TEST(connections_of_a_user_are_served_in_the_order_in_which_they_came)
{
	int64_t none = 0;

	add_many();
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < MANY; i++)
			assert_ptr_equal(serve(PARTY_TURN_NS / 7, 0, &none), &many[i]);
}

TEST(fifty_connections_of_one_user_get_as_much_time_as_one_of_another)
{
	static const int64_t times[] = { PARTY_TURN_NS / 50, PARTY_TURN_NS / 2, PARTY_TURN_NS, 7 * PARTY_TURN_NS };

	for (size_t i = 0; i < 16; i++) {
		int64_t of_many_ns = times[i / 4], of_other_ns = times[i % 4], others_ns = 0, all_ns = 0;

		add_many();
		party_add(&parties, &other);
		while (all_ns < 1000 * PARTY_TURN_NS)
			all_ns += serve(of_many_ns, of_other_ns, &others_ns) == &other ? of_other_ns : of_many_ns;
		assert_in_range(others_ns, all_ns / 2 - 16 * PARTY_TURN_NS, all_ns / 2 + 16 * PARTY_TURN_NS);
	}
}

/* Many have been served for long while they were alone: who comes then is next, and so is who comes a second time. */
TEST(who_comes_waits_for_one_turn_of_another_user_at_most)
{
	int64_t none = 0;

	for (int round = 0; round < 3; round++) {
		add_many();
		for (int i = 0; i < MANY; i++)
			serve(10 * PARTY_TURN_NS, 0, &none);
		party_add(&parties, &other);
		assert_true(parties_contended(&parties));
		for (int i = 0; serve(PARTY_TURN_NS, 0, &none) != &other; i++)
			assert_in_range(i, 0, 1);
		party_leave(&parties, &other);
		party_enter(&parties, &other, &another);
	}
}

/* Again and again, with pauses in which the many use up turns. */
TEST(who_asks_for_little_waits_for_one_request_of_many)
{
	int64_t none = 0;

	add_many();
	party_add(&parties, &other);
	for (int i = 0; i < MANY; i++)
		serve(PARTY_TURN_NS, 0, &none);
	while (parties_next(&parties) != &other)
		;
	add_many();
	for (int round = 0; round < 100; round++) {
		party_add(&parties, &other);
		assert_true(parties_contended(&parties));
		assert_ptr_equal(parties_next(&parties), &other);
		parties_charge(&parties, PARTY_TURN_NS / 5);
		for (int i = 0; i < 6; i++) {
			struct party_member *place = parties_next(&parties);

			assert_ptr_not_equal(place, &other);
			parties_charge(&parties, PARTY_TURN_NS / 4);
			party_add(&parties, place);
		}
	}
}

/* A process may be stopped for an hour while it serves somebody: that is no reason to serve its user an hour later. */
TEST(a_debt_has_a_bound)
{
	int64_t none = 0;
	int turns = 0;

	party_add(&parties, &many[0]);
	party_add(&parties, &other);
	while (serve(INT64_C(3600) * 1000000000, PARTY_TURN_NS, &none) != &many[0])
		assert_in_range(++turns, 0, 10);
	for (turns = 0; serve(PARTY_TURN_NS, PARTY_TURN_NS, &none) != &many[0]; turns++)
		assert_in_range(turns, 0, 1100);
	assert_in_range(turns, 100, 1100);
}

TEST(who_leaves_is_not_served)
{
	int64_t none = 0;

	party_add(&parties, &other);
	party_leave(&parties, &other);
	assert_null(parties_next(&parties));
	party_enter(&parties, &other, &another);
	party_add(&parties, &other);
	add_many();
	party_leave(&parties, &many[0]);
	party_leave(&parties, &other);
	assert_ptr_equal(serve(0, 0, &none), &many[1]);
	party_enter(&parties, &many[0], &one_user);
	party_enter(&parties, &other, &another);
	party_leave(&parties, &other); /* the last one of its user, in no queue */
	party_enter(&parties, &other, &another);
}

TEST(what_is_held_back_is_served_when_it_is_released)
{
	party_hold(&parties, &many[0]);
	party_hold(&parties, &many[1]);
	party_add(&parties, &many[0]); /* counts as queued */
	assert_int_equal(parties.held, 2);
	assert_false(parties_have_work(&parties));
	party_release(&parties, &many[0]);
	assert_ptr_equal(parties_next(&parties), &many[0]);
	assert_ptr_equal(TAILQ_FIRST(&many[0].party->held), &many[1]);
	party_leave(&parties, &many[1]);
	assert_int_equal(parties.held, 0);
	party_enter(&parties, &many[1], &one_user);
	assert_null(parties_next(&parties));
}

TEST(a_door_is_no_user_and_what_a_visitor_takes_counts_for_its_owner)
{
	struct party_member door = { .is_door = true };

	party_leave(&parties, &other);
	assert_true(parties_is_one(&parties));
	party_enter(&parties, &door, &door);
	assert_true(parties_is_one(&parties));
	party_enter(&parties, &other, &another);
	assert_false(parties_is_one(&parties));
	parties_charge_owner(&parties, &one_user, 3 * PARTY_TURN_NS);
	parties_charge_owner(&parties, &door.queued, PARTY_TURN_NS); /* who has no party owes nothing */
	party_add(&parties, &many[0]);
	party_add(&parties, &other);
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(parties_next(&parties), &other);
		parties_charge(&parties, PARTY_TURN_NS);
		party_add(&parties, &other);
	}
	party_leave(&parties, &door);
	assert_int_equal(parties.doors, 0);
}
