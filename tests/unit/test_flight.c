/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of the flight recorder, and its records as lines. */
#include "base/flight.h"

#include "tests/unit/unit.h"

#include "base/log_event.h"

#define S INT64_C(1000000000)

static struct flight_ring *ring(size_t records)
{
	return flight_new(sizeof(struct flight_ring) + records * sizeof(struct flight_record), 100 * S);
}

#define assert_line(f, number, expected) \
	do { \
		char line[FLIGHT_LINE_MAX]; \
		size_t len = flight_line(f, number, line); \
		assert_int_equal(len, strlen(expected)); \
		assert_memory_equal(line, expected, len); \
	} while (0)

TEST(a_record_is_a_line_of_the_form_of_the_log)
{
	struct flight_ring *f = ring(8);

	flight_note(f, FLIGHT_client_connected, S + 2000, 12, 1000, SLICE("py \"3\"\n"));
	flight_note(f, FLIGHT_claim_held, 2 * S, 7, 99, SLICE("/a"));
	flight_note(f, FLIGHT_log, 3 * S, LOG_EVENT_stopped, 0, SLICE("it  has   stopped\x1b"));
	flight_note(f, FLIGHT_hand_off, 4 * S, -1, INT64_MIN, SLICE(""));
	assert_line(f, 0,
		    "a client connected  event=client_connected at=101.000002 client=12 uid=1000 "
		    "command=\"py \\\"3\\\"\\x0a\"");
	assert_line(f, 1, "this host holds a lock  event=claim_held at=102.000000 claim=7 path=\"/a\"");
	assert_line(f, 2, "it has stopped?  event=stopped at=103.000000");
	assert_line(f, 3,
		    "a lock was handed on within this host  event=hand_off at=104.000000 claim=-1 "
		    "handoffs=-9223372036854775808 name=\"\"");
	assert_line(f, 4, "");
	flight_free(f);
}

TEST(the_ring_keeps_the_latest)
{
	struct flight_ring *f = ring(3);

	assert_int_equal(flight_oldest(f), 0);
	for (int i = 0; i < 3; i++)
		flight_note(f, FLIGHT_claim_held, S, i, 0, SLICE("x"));
	assert_int_equal(flight_oldest(f), 0);
	assert_line(f, 0, "this host holds a lock  event=claim_held at=101.000000 claim=0 path=\"x\"");
	flight_note(f, FLIGHT_claim_held, S, 3, 0, SLICE("x"));
	assert_int_equal(flight_oldest(f), 1);
	assert_line(f, 0, "");
	assert_line(f, 1, "this host holds a lock  event=claim_held at=101.000000 claim=1 path=\"x\"");
	assert_line(f, 3, "this host holds a lock  event=claim_held at=101.000000 claim=3 path=\"x\"");
	flight_free(f);
}

/* At the limit it is whole, one past it cut; and the longest line fits. */
TEST(a_long_text_is_cut)
{
	struct flight_ring *f = ring(3);
	char text[FLIGHT_TEXT_MAX + 1], line[FLIGHT_LINE_MAX];

	memset(text, 0xff, sizeof(text));
	flight_note(f, FLIGHT_client_connected, INT64_MAX - 200 * S, INT64_MIN, INT64_MIN,
		    (struct slice){ text, FLIGHT_TEXT_MAX });
	flight_note(f, FLIGHT_client_connected, INT64_MAX - 200 * S, INT64_MIN, INT64_MIN,
		    (struct slice){ text, FLIGHT_TEXT_MAX + 1 });
	assert_int_equal(f->records[0].len, FLIGHT_TEXT_MAX);
	assert_int_equal(f->records[1].len, FLIGHT_TEXT_MAX);
	assert_int_equal(flight_line(f, 0, line), flight_line(f, 1, line));
	assert_in_range(flight_line(f, 0, line), 4 * FLIGHT_TEXT_MAX, FLIGHT_LINE_MAX - 1);
	flight_free(f);
}

/* Two blanks end the sentence: a third one would be a part of the first field. */
TEST(a_sentence_that_is_cut_behind_a_blank_ends_with_its_last_word)
{
	struct flight_ring *f = ring(2);

	flight_note(f, FLIGHT_log, S, LOG_EVENT_stopped, 0, SLICE("the answer "));
	assert_line(f, 0, "the answer  event=stopped at=101.000000");
	flight_free(f);
}

TEST(who_is_refused_again_and_again_is_one_record)
{
	struct flight_ring *f = ring(3);

	for (int i = 0; i < 50; i++)
		flight_note_again(f, FLIGHT_refused, S, 5, SLICE("no"));
	flight_note_again(f, FLIGHT_refused, S, 6, SLICE("no"));
	assert_int_equal(f->next, 2);
	assert_line(f, 0, "a request was refused  event=refused at=101.000000 client=5 times=50 why=\"no\"");
	assert_line(f, 1, "a request was refused  event=refused at=101.000000 client=6 times=1 why=\"no\"");
	flight_free(f);
}

TEST(too_little_memory_is_no_recorder)
{
	assert_null(flight_new(0, 0));
	assert_null(flight_new(sizeof(struct flight_ring) + sizeof(struct flight_record) - 1, 0));
	flight_note(NULL, FLIGHT_claim_held, S, 0, 0, SLICE("x"));
	flight_note_again(NULL, FLIGHT_claim_held, S, 0, SLICE("x"));
}
