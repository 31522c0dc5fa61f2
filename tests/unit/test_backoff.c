/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses that double, have a bound, and differ. */
#include "base/backoff.h"

#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

TEST(each_pause_is_between_the_half_and_the_whole_of_twice_the_last)
{
	struct backoff b = { 0 };

	for (int64_t whole = 100 * MS; whole < 5000 * MS; whole *= 2)
		assert_in_range(backoff_next_ns(&b, 5000 * MS), whole / 2, whole);
	for (int i = 0; i < 100; i++)
		assert_in_range(backoff_next_ns(&b, 5000 * MS), 2500 * MS, 5000 * MS);
	backoff_reset(&b);
	assert_in_range(backoff_next_ns(&b, 5000 * MS), 50 * MS, 100 * MS);
}

TEST(a_smaller_bound_counts_at_once)
{
	struct backoff b = { 0 };

	for (int i = 0; i < 10; i++)
		backoff_next_ns(&b, 5000 * MS);
	assert_in_range(backoff_next_ns(&b, 80 * MS), 40 * MS, 80 * MS);
	assert_in_range(backoff_next_ns(&b, 5000 * MS), 40 * MS, 80 * MS);
	assert_in_range(backoff_next_ns(&b, 5000 * MS), 80 * MS, 160 * MS);
}

TEST(no_two_pauses_are_the_same)
{
	struct backoff a = { 0 }, b = { 0 };
	int same = 0;

	for (int i = 0; i < 100; i++)
		same += backoff_next_ns(&a, 5000 * MS) == backoff_next_ns(&b, 5000 * MS);
	assert_in_range(same, 0, 2);
}
