/* SPDX-License-Identifier: Apache-2.0 */
/* How much may be open at ZooKeeper (operation.h): T = 12 s, so T/24 = 500 ms. The session's floor alone is linked. */

#include "tests/unit/unit.h"

#include "core/session/operation.h"

#define MS INT64_C(1000000)

static struct window w;
static int64_t now_ns;

static int begin(void **state)
{
	now_ns = 0;
	window_begin(&w, 0);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, NULL)

static struct flight send_one(bool write, int64_t bytes)
{
	struct flight flight = { .bytes = bytes, .write = write, .sent_ns = now_ns };

	window_sent(&w, &flight);
	return flight;
}

/* Sends as much as it may, of that size, and answers all of it after so long. How many that were. */
static int round_trip(int64_t bytes, int64_t took_ns)
{
	static struct flight flights[100000];
	int count = 0;

	while (window_has_room(&w))
		flights[count++] = send_one(false, bytes);
	now_ns += took_ns;
	for (int i = 0; i < count; i++)
		window_answered(&w, &flights[i], now_ns, 12000 * MS);
	return count;
}

TEST(a_quick_connection_may_have_twice_as_much_open_each_time)
{
	for (int most = WINDOW_FIRST_COUNT; most <= WINDOW_FIRST_COUNT * 64; most *= 2)
		assert_int_equal(round_trip(10, 5 * MS), most);
}

TEST(a_slow_one_what_it_answers_in_time)
{
	w.trip_ns = 0;
	/* 1,600 bytes take 100 ms each: 8,000 in 500 ms, 5 of them. */
	assert_int_equal(round_trip(1600, 1100 * MS), 11);
	for (int i = 0; i < 5; i++)
		assert_in_range(round_trip(1600, 500 * MS), 5, 6);
	assert_in_range(w.size[WINDOW_BYTES], 8000 - 800, 8000 + 800);
}

/* Where the way is long, what is on it does not count as waiting. */
TEST(a_long_way_is_no_slow_link)
{
	int before = 0, count = 0;

	send_one(true, 10);
	window_answered(&w, &(struct flight){ .bytes = 10, .write = true }, 400 * MS, 12000 * MS); /* a heartbeat alone */
	for (int i = 0; i < 8; i++) {
		before = count;
		count = round_trip(10, 400 * MS);
		assert_true(count > before);
	}
}

/* T may be an hour, and then a disk that took some minutes for much is no mistake of ours. */
TEST(a_long_timeout_is_reckoned_with)
{
	const int64_t timeout_ns = 3600000 * MS;
	struct flight flight;

	w.trip_ns = 0;
	flight = send_one(false, 100 << 20);
	window_answered(&w, &flight, 100000 * MS, timeout_ns);
	assert_in_range(w.size[WINDOW_BYTES], 150 << 20, 151 << 20); /* in 150 s */
}

TEST(one_operation_however_large_may_be_open)
{
	struct flight flight;

	assert_true(window_has_room(&w));
	flight = send_one(false, 100 << 20);
	assert_false(window_has_room(&w));
	window_answered(&w, &flight, 60000 * MS, 12000 * MS);
	assert_true(window_has_room(&w));
	send_one(false, 100 << 20);
	assert_false(window_has_room(&w));
}

/* That reads are quick says nothing of a disk that each write waits for. */
TEST(writes_are_counted_apart)
{
	for (int i = 0; i < 5; i++)
		round_trip(10, 5 * MS);
	assert_int_equal(w.size[WINDOW_WRITES], WINDOW_FIRST_COUNT);
	for (int i = 0; i < WINDOW_FIRST_COUNT; i++) {
		assert_true(window_has_room(&w));
		send_one(true, 10);
	}
	assert_false(window_has_room(&w));
}

TEST(what_was_not_tried_for_long_is_not_believed)
{
	for (int i = 0; i < 5; i++)
		round_trip(10, 5 * MS);
	assert_true(w.size[WINDOW_READS] > 16 * WINDOW_FIRST_COUNT);
	for (int i = 0; i < 100; i++) {
		struct flight flight = send_one(true, 10);

		window_answered(&w, &flight, now_ns + 5 * MS, 12000 * MS);
		now_ns += 1500 * MS;
	}
	assert_int_equal(w.size[WINDOW_READS], WINDOW_FIRST_COUNT);
}
