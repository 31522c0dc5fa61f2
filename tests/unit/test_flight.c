/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of the flight recorder, and its records as lines. */
#include "base/flight.h"

#include <stdio.h>

#include "tests/unit/unit.h"

#include "base/log_event.h"

#define S INT64_C(1000000000)

/* Of so many bytes for records; it has room for the longest one at least. */
static struct flight_ring *ring(size_t bytes)
{
	return flight_new(sizeof(struct flight_ring) + sizeof(struct flight_record) + FLIGHT_TEXT_MAX + bytes, 100 * S);
}

/* The record of that number as a line; returns its length. */
static size_t line_of(const struct flight_ring *f, uint64_t number, char line[FLIGHT_LINE_MAX])
{
	struct flight_reader reader = flight_read(f, UINT64_MAX);
	size_t len = 0;

	if (number < f->oldest)
		return 0;
	for (uint64_t at = f->oldest; at <= number; at++)
		len = flight_line(&reader, line);
	return len;
}

#define assert_line(f, number, expected) \
	do { \
		char line[FLIGHT_LINE_MAX]; \
		size_t len = line_of(f, number, line); \
		assert_int_equal(len, strlen(expected)); \
		assert_memory_equal(line, expected, len); \
	} while (0)

TEST(a_record_is_a_line_of_the_form_of_the_log)
{
	struct flight_ring *f = ring(0);

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

/* However they fall on its end: every length of a text comes to every place. */
TEST(the_ring_keeps_the_latest_whatever_they_are_long)
{
	char text[FLIGHT_TEXT_MAX], line[FLIGHT_LINE_MAX], name[64];
	struct flight_ring *f = ring(100);
	size_t lens[5000], kept;

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct flight_reader reader;

		lens[i] = i % 7 == 0 ? i * 31 % (FLIGHT_TEXT_MAX + 1) : i * 13 % 97;
		flight_note(f, FLIGHT_claim_held, S, (int64_t)i, 0, (struct slice){ text, lens[i] });
		assert_int_equal(f->next, i + 1);
		/* As many of the latest as there is room for, and no more. */
		kept = 0;
		for (size_t k = i + 1; k-- > f->oldest;)
			kept += sizeof(struct flight_record) + lens[k];
		assert_true(kept <= f->size && f->end - f->first == kept);
		if (f->oldest > 0)
			assert_true(kept + sizeof(struct flight_record) + lens[f->oldest - 1] > f->size);
		reader = flight_read(f, UINT64_MAX);
		assert_int_equal(reader.left, i + 1 - f->oldest);
		for (size_t k = f->oldest; k <= i; k++) {
			size_t len = flight_line(&reader, line);

			snprintf(name, sizeof(name), " claim=%zu path=\"", k);
			assert_true(len > lens[k] + strlen(name));
			assert_memory_equal(line + len - lens[k] - 1 - strlen(name), name, strlen(name));
			assert_memory_equal(line + len - lens[k] - 1, text, lens[k]);
		}
		assert_int_equal(flight_line(&reader, line), 0);
	}
	flight_free(f);
}

TEST(the_latest_so_many_are_read)
{
	struct flight_ring *f = ring(0);
	char line[FLIGHT_LINE_MAX];

	for (int i = 0; i < 5; i++)
		flight_note(f, FLIGHT_claim_held, S, i, 0, SLICE("x"));
	for (uint64_t most = 0; most < 9; most++) {
		struct flight_reader reader = flight_read(f, most);

		assert_int_equal(reader.left, most < 5 ? most : 5);
		if (most == 0)
			continue;
		line[flight_line(&reader, line)] = '\0';
		assert_true(strstr(line, " claim=")[7] == (char)('5' - (most < 5 ? most : 5)));
	}
	assert_int_equal(flight_read(NULL, 9).left, 0);
	flight_free(f);
}

/* At the limit it is whole, one past it is cut and says so; and the longest line fits. */
TEST(a_text_is_whole_up_to_the_longest_sentence_of_the_log)
{
	struct flight_ring *f = ring(3 * FLIGHT_TEXT_MAX);
	char text[FLIGHT_TEXT_MAX + 1], line[FLIGHT_LINE_MAX];
	size_t len;

	memset(text, 0xff, sizeof(text));
	flight_note(f, FLIGHT_client_connected, INT64_MAX - 200 * S, INT64_MIN, INT64_MIN,
		    (struct slice){ text, FLIGHT_TEXT_MAX });
	assert_in_range(len = line_of(f, 0, line), 4 * FLIGHT_TEXT_MAX, FLIGHT_LINE_MAX - 1);
	assert_memory_equal(line + len - 5, "\\xff\"", 5);
	flight_note(f, FLIGHT_claim_held, S, 1, 0, (struct slice){ text, FLIGHT_TEXT_MAX + 1 });
	len = line_of(f, 1, line);
	assert_memory_equal(line + len - 8, "\\xff...\"", 8);
	/* A character that is cut goes as a whole. */
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "\xe2\x82\xac"[i % 3];
	flight_note(f, FLIGHT_claim_held, S, 2, 0, (struct slice){ text, FLIGHT_TEXT_MAX + 1 });
	len = line_of(f, 2, line);
	assert_memory_equal(line + len - 8, "\\xac...\"", 8);
	flight_free(f);
}

/* Two blanks end the sentence: a third one would be a part of the first field. */
TEST(a_sentence_that_is_cut_behind_a_blank_ends_with_its_last_word)
{
	struct flight_ring *f = ring(0);

	flight_note(f, FLIGHT_log, S, LOG_EVENT_stopped, 0, SLICE("the answer "));
	assert_line(f, 0, "the answer  event=stopped at=101.000000");
	flight_free(f);
}

TEST(who_is_refused_again_and_again_is_one_record)
{
	struct flight_ring *f = ring(0);

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
	assert_null(flight_new(sizeof(struct flight_ring) + sizeof(struct flight_record) + FLIGHT_TEXT_MAX - 1, 0));
	flight_note(NULL, FLIGHT_claim_held, S, 0, 0, SLICE("x"));
	flight_note_again(NULL, FLIGHT_claim_held, S, 0, SLICE("x"));
}
