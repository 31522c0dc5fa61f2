/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses that double, have a bound, and differ. */
#include "base/backoff.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define MS INT64_C(1000000)

static void each_pause_is_between_the_half_and_the_whole_of_twice_the_last(void **state)
{
	struct backoff b = { 0 };

	(void)state;
	for (int64_t whole = 100 * MS; whole < 5000 * MS; whole *= 2)
		assert_in_range(backoff_next_ns(&b, 5000 * MS), whole / 2, whole);
	for (int i = 0; i < 100; i++)
		assert_in_range(backoff_next_ns(&b, 5000 * MS), 2500 * MS, 5000 * MS);
	backoff_reset(&b);
	assert_in_range(backoff_next_ns(&b, 5000 * MS), 50 * MS, 100 * MS);
}

static void a_smaller_bound_counts_at_once(void **state)
{
	struct backoff b = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++)
		backoff_next_ns(&b, 5000 * MS);
	assert_in_range(backoff_next_ns(&b, 80 * MS), 40 * MS, 80 * MS);
	assert_in_range(backoff_next_ns(&b, 5000 * MS), 40 * MS, 80 * MS);
	assert_in_range(backoff_next_ns(&b, 5000 * MS), 80 * MS, 160 * MS);
}

static void no_two_pauses_are_the_same(void **state)
{
	struct backoff a = { 0 }, b = { 0 };
	int same = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		same += backoff_next_ns(&a, 5000 * MS) == backoff_next_ns(&b, 5000 * MS);
	assert_in_range(same, 0, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pause_is_between_the_half_and_the_whole_of_twice_the_last),
		cmocka_unit_test(a_smaller_bound_counts_at_once),
		cmocka_unit_test(no_two_pauses_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
