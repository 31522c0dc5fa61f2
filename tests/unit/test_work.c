/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is left for later: whose turn it is, and in what order. */
#include "core/port/work.h"

#include "tests/unit/unit.h"

enum { ITEMS = 3 };

static struct work_ring ring;
static struct work_user one, other;
static struct work_item of_one[ITEMS], of_other;

static int begin(void **state)
{
	TAILQ_INIT(&ring);
	work_user_init(&one);
	work_user_init(&other);
	for (int i = 0; i < ITEMS; i++)
		of_one[i] = (struct work_item){ .kind = WORK_LIST };
	of_other = (struct work_item){ .kind = WORK_LIST };
	return 0;
}

static int end(void **state)
{
	for (int i = 0; i < ITEMS; i++)
		work_drop(&ring, &of_one[i]);
	work_drop(&ring, &of_other);
	assert_null(work_next(&ring));
	assert_true(TAILQ_EMPTY(&ring));
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static void add_all(void)
{
	for (int i = 0; i < ITEMS; i++)
		work_add(&ring, &one, &of_one[i]);
	work_add(&ring, &other, &of_other);
}

TEST(items_of_a_user_are_done_one_after_the_other)
{
	assert_null(work_next(&ring));
	for (int i = 0; i < ITEMS; i++)
		work_add(&ring, &one, &of_one[i]);
	work_add(&ring, &one, &of_one[0]); /* it is there already */
	for (int i = 0; i < ITEMS; i++) {
		assert_ptr_equal(work_next(&ring), &of_one[i]);
		work_turn_over(&ring, &one, WORK_TURN_STEPS);
		assert_ptr_equal(work_next(&ring), &of_one[i]); /* not done yet */
		work_drop(&ring, &of_one[i]);
		work_drop(&ring, &of_one[i]);
		work_turn_over(&ring, &one, 1);
	}
	assert_null(work_next(&ring));
}

TEST(users_take_turns_however_many_items_each_has)
{
	add_all();
	for (int round = 0; round < 5; round++) {
		assert_ptr_equal(work_next(&ring), &of_one[0]);
		work_turn_over(&ring, &one, WORK_TURN_STEPS);
		assert_ptr_equal(work_next(&ring), &of_other);
		work_turn_over(&ring, &other, WORK_TURN_STEPS);
	}
}

TEST(who_took_longer_than_a_turn_passes_for_as_long)
{
	add_all();
	assert_ptr_equal(work_next(&ring), &of_one[0]);
	work_turn_over(&ring, &one, 3 * WORK_TURN_STEPS);
	for (int round = 0; round < 3; round++) {
		assert_ptr_equal(work_next(&ring), &of_other);
		work_turn_over(&ring, &other, WORK_TURN_STEPS);
	}
	assert_ptr_equal(work_next(&ring), &of_one[0]);
}

TEST(who_is_alone_owes_nothing)
{
	work_add(&ring, &one, &of_one[0]);
	assert_ptr_equal(work_next(&ring), &of_one[0]);
	work_turn_over(&ring, &one, 1000 * WORK_TURN_STEPS);
	assert_ptr_equal(work_next(&ring), &of_one[0]);
	work_turn_over(&ring, &one, WORK_TURN_STEPS);
	work_add(&ring, &other, &of_other);
	assert_ptr_equal(work_next(&ring), &of_one[0]);
	work_turn_over(&ring, &one, WORK_TURN_STEPS);
	assert_ptr_equal(work_next(&ring), &of_other);
}

TEST(who_has_nothing_left_stands_in_no_ring)
{
	add_all();
	work_drop(&ring, &of_other);
	assert_ptr_equal(work_next(&ring), &of_one[0]);
	for (int i = 0; i < ITEMS; i++)
		work_drop(&ring, &of_one[i]);
	work_turn_over(&ring, &one, WORK_TURN_STEPS);
	assert_null(work_next(&ring));
	work_add(&ring, &one, &of_one[1]);
	assert_ptr_equal(work_next(&ring), &of_one[1]);
}
