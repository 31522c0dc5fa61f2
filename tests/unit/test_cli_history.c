/* SPDX-License-Identifier: Apache-2.0 */
/* What `lockbroker history` reads: instants as people write them, and entries as journalctl exports them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/unit.h"

#include "client-lib/cli/history_rows.h"
#include "client-lib/cli/instant.h"
#include "client-lib/cli/journal.h"

/* 2026-11-30 20:31:05.250 in a zone without summer time. */
static const int64_t NOW = INT64_C(1796070665250);

static void use_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

static void expect_instant(const char *text, int64_t ms, int64_t span)
{
	int64_t read, lasts;

	if (!cli_instant_read(text, NOW, &read, &lasts))
		fail_msg("%s is no instant", text);
	if (read != ms || lasts != span)
		fail_msg("%s is %lld, and lasts %lld", text, (long long)read, (long long)lasts);
}

TEST(instants_are_read_as_people_write_them)
{
	use_zone("UTC");
	expect_instant("2026-11-30 20:31:05.250", NOW, 1);
	expect_instant("2026-11-30T20:31:05.25", NOW, 1);
	expect_instant("2026-11-30 20:31:05.2509", NOW, 1);
	expect_instant("2026-11-30 20:31:05", NOW - 250, 1000);
	expect_instant("2026-11-30 20:31", NOW - 5250, 60000);
	expect_instant("20:31:05", NOW - 250, 1000);
	expect_instant("8:05", INT64_C(1796025900000), 60000);
	expect_instant("2026-11-30", INT64_C(1795996800000), 86400000);
	expect_instant("today", INT64_C(1795996800000), 86400000);
	expect_instant("yesterday", INT64_C(1795910400000), 86400000);
	expect_instant("now", NOW, 1);
	expect_instant("-90s", NOW - 90000, 1);
	expect_instant("-1d2h3m4s", NOW - 93784000, 1);
	expect_instant("@1796070665", NOW - 250, 1000);
	expect_instant("@1796070665.25", NOW, 1);
	expect_instant("@0", 0, 1000);
	expect_instant("1970-01-01", 0, 86400000);
	use_zone("UTC-2");
	expect_instant("2026-11-30 22:31:05", NOW - 250, 1000);
}

TEST(an_instant_after_the_change_to_summer_time_is_one_of_it)
{
	use_zone("CET-1CEST,M3.5.0,M10.5.0/3");
	expect_instant("2026-07-01 12:00", INT64_C(1782900000000), 60000);
	expect_instant("2026-12-01 12:00", INT64_C(1796122800000), 60000);
}

TEST(a_day_lasts_until_the_next_one)
{
	use_zone("CET-1CEST,M3.5.0,M10.5.0/3");
	expect_instant("2026-10-25", INT64_C(1792879200000), 25 * 3600000);
	expect_instant("2026-03-29", INT64_C(1774738800000), 23 * 3600000);
	expect_instant("2026-03-30", INT64_C(1774821600000), 24 * 3600000);
	/* Its day begins at one. */
	use_zone("EET-2EEST,M4.5.5/0,M10.5.4/24");
	expect_instant("2026-04-24", INT64_C(1776981600000), 23 * 3600000);
}

TEST(what_is_no_instant_is_refused)
{
	static const char *const wrong[] = {
		"",
		" ",
		"x",
		"-",
		"-1",
		"-h",
		"-1x",
		"-1h-2m",
		"-1m1h",
		"-1h1h",
		"-1h ",
		"--1h",
		"1h",
		"+1h",
		"@",
		"@x",
		"@1x",
		"@1.",
		"@-1",
		"@9999999999999",
		"24:00",
		"12:60",
		"12:00:60",
		"12",
		"12:",
		"12:0",
		"12:00:",
		"12:00:0",
		"12:00:00.",
		"12:00:00.x",
		"1200",
		"012:00",
		"2026",
		"2026-11",
		"2026-11-",
		"2026-13-01",
		"2026-00-01",
		"2026-11-00",
		"2026-11-32",
		"2026-02-29",
		"2026-11-30x",
		"2026-11-30 x",
		"2026-11-30 12",
		"2026-11-30 12:00 ",
		"2026-11-30  12:00",
		"26-11-30",
		"12026-11-30",
		"1900-01-01",
		"tomorrow",
		"-99999999d",
		"-9999999999s",
		"@1796070665250000",
	};
	int64_t ms, span;

	use_zone("UTC");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (cli_instant_read(wrong[i], NOW, &ms, &span))
			fail_msg("\"%s\" is taken for an instant", wrong[i]);
}

TEST(an_instant_of_the_same_day_is_shown_without_the_day)
{
	char text[CLI_DURATION_MAX];

	use_zone("UTC");
	assert_string_equal(cli_instant_ms(NOW, -1, text), "2026-11-30 20:31:05.250");
	assert_string_equal(cli_instant_ms(NOW, NOW - 1000, text), "20:31:05.250");
	assert_string_equal(cli_instant_ms(NOW, NOW - 86400000, text), "2026-11-30 20:31:05.250");
	assert_string_equal(cli_instant_ms(0, -1, text), "1970-01-01 00:00:00.000");
}

/* ---- entries ---- */

static const char two[] =
	"__REALTIME_TIMESTAMP=1796070665250000\nLOCKBROKER_EVENT=released\nLOCKBROKER_DATA=a=b=\n"
	"LOCKBROKER_NAME\n\x05\0\0\0\0\0\0\0a\nb=c\nLOCKBROKER_TOKEN=7\nLOCKBROKER_TOKEN=8\nEMPTY=\n\n"
	"LOCKBROKER_EVENT=lost\n\n";

TEST(an_entry_is_read_field_by_field)
{
	const struct slice text = { two, sizeof(two) - 1 };
	struct journal_entry entry = { 0 };
	size_t used, more;

	assert_int_equal(journal_parse(&entry, text, &used), JOURNAL_ENTRY);
	assert_true(slice_eq(journal_field(&entry, "LOCKBROKER_NAME"), SLICE("a\nb=c")));
	assert_true(slice_eq(journal_field(&entry, "LOCKBROKER_DATA"), SLICE("a=b=")));
	assert_int_equal(journal_number(&entry, "LOCKBROKER_TOKEN"), 7);
	assert_int_equal(journal_number(&entry, "__REALTIME_TIMESTAMP"), INT64_C(1796070665250000));
	assert_int_equal(journal_number(&entry, "LOCKBROKER_EVENT"), -1);
	assert_int_equal(journal_number(&entry, "EMPTY"), -1);
	assert_int_equal(journal_field(&entry, "LOCKBROKER").len, 0);
	assert_int_equal(journal_parse(&entry, (struct slice){ two + used, text.len - used }, &more), JOURNAL_ENTRY);
	assert_int_equal(used + more, text.len);
	assert_true(slice_eq(journal_field(&entry, "LOCKBROKER_EVENT"), SLICE("lost")));
	assert_int_equal(journal_field(&entry, "LOCKBROKER_NAME").len, 0);
	journal_entry_free(&entry);
}

/* In memory of exactly that size, so that a sanitizer sees what is read beyond it. */
static enum journal_result parse_exactly(const char *text, size_t len, size_t *used)
{
	struct journal_entry entry = { 0 };
	char *part = malloc(len + !len);
	enum journal_result r;

	memcpy(part, text, len);
	r = journal_parse(&entry, (struct slice){ part, len }, used);
	journal_entry_free(&entry);
	free(part);
	return r;
}

TEST(a_part_of_an_entry_waits_for_the_rest)
{
	size_t first, used;

	assert_int_equal(parse_exactly(two, sizeof(two) - 1, &first), JOURNAL_ENTRY);
	for (size_t len = 0; len < first; len++)
		assert_int_equal(parse_exactly(two, len, &used), JOURNAL_MORE);
	for (size_t len = first; len < sizeof(two) - 1; len++)
		assert_int_equal(parse_exactly(two, len, &used), JOURNAL_ENTRY);
}

TEST(a_value_has_at_most_a_mebibyte)
{
	static const char longest[] = "A\n\0\0\x10\0\0\0\0\0", longer[] = "A\n\1\0\x10\0\0\0\0\0";
	char *line = malloc(JOURNAL_VALUE_MAX + 1);
	size_t used;

	assert_int_equal(parse_exactly(longest, sizeof(longest) - 1, &used), JOURNAL_MORE);
	assert_int_equal(parse_exactly(longer, sizeof(longer) - 1, &used), JOURNAL_BROKEN);
	memset(line, 'A', JOURNAL_VALUE_MAX + 1);
	assert_int_equal(parse_exactly(line, JOURNAL_VALUE_MAX, &used), JOURNAL_MORE);
	assert_int_equal(parse_exactly(line, JOURNAL_VALUE_MAX + 1, &used), JOURNAL_BROKEN);
	free(line);
}

TEST(a_byte_that_is_wrong_leads_nowhere_else)
{
	static const char bytes[] = { 0, 1, '\n', '=', 'A', 0x7f, (char)0x80, (char)0xff };
	char text[sizeof(two)];
	size_t used;

	for (size_t at = 0; at < sizeof(two) - 1; at++)
		for (size_t i = 0; i < sizeof(bytes); i++) {
			memcpy(text, two, sizeof(two));
			text[at] = bytes[i];
			if (parse_exactly(text, sizeof(two) - 1, &used) == JOURNAL_ENTRY)
				assert_true(used > 0 && used <= sizeof(two) - 1);
		}
}

/* ---- rows ---- */

static struct history h;

static int begin(void **state)
{
	h = (struct history){ .name = "a", .to_ms = INT64_MAX };
	return 0;
}

static int end(void **state)
{
	history_free(&h);
	return 0;
}

#define HISTORY(name) TEST_WITH(name, begin, end)

static void take(const char *text)
{
	struct journal_entry entry = { 0 };
	struct bytes all = { 0 };
	size_t used;

	bytes_text(&all, "__REALTIME_TIMESTAMP=1796070665250000\nLOCKBROKER_KIND=lock\nLOCKBROKER_MODE=exclusive\n");
	bytes_text(&all, text);
	bytes_text(&all, "\n");
	assert_int_equal(journal_parse(&entry, bytes_view(&all), &used), JOURNAL_ENTRY);
	assert_true(history_take(&h, &entry));
	journal_entry_free(&entry);
	bytes_free(&all);
}

/* A host whose clock is late says when a hold ended after another host has said that the next one did. */
HISTORY(an_end_that_comes_late_takes_the_place_of_one_that_was_not_known)
{
	take("LOCKBROKER_EVENT=granted\n_MACHINE_ID=1\nLOCKBROKER_TOKEN=1\nLOCKBROKER_SINCE_MS=1000\n");
	take("LOCKBROKER_EVENT=released\n_MACHINE_ID=2\nLOCKBROKER_TOKEN=2\nLOCKBROKER_SINCE_MS=20000\nLOCKBROKER_HELD_MS=5\n");
	take("LOCKBROKER_EVENT=released\n_MACHINE_ID=1\nLOCKBROKER_TOKEN=1\nLOCKBROKER_SINCE_MS=1000\n"
	     "LOCKBROKER_HELD_MS=18000\n");
	history_end(&h);
	assert_int_equal(h.holds.count, 2);
	assert_int_equal(h.holds.rows[0].state, HISTORY_ENDED);
	assert_int_equal(h.holds.rows[0].until_ms, 19000);
	assert_int_equal(h.holds.rows[1].since_ms, 20000);
}

HISTORY(rows_of_one_instant_stay_in_the_order_of_their_entries)
{
	take("LOCKBROKER_EVENT=released\nLOCKBROKER_TOKEN=9\nLOCKBROKER_SINCE_MS=20\n");
	for (int i = 1; i <= 3; i++) {
		char text[128];

		snprintf(text, sizeof(text), "LOCKBROKER_EVENT=released\nLOCKBROKER_TOKEN=%d\nLOCKBROKER_SINCE_MS=10\n",
			 i);
		take(text);
	}
	history_end(&h);
	assert_int_equal(h.holds.count, 4);
	for (int i = 0; i < 3; i++)
		assert_int_equal(journal_number(&h.holds.rows[i].entry, "LOCKBROKER_TOKEN"), i + 1);
}

/* Of three permits, one is released after the other. */
HISTORY(permits_that_are_all_given_back_one_by_one_are_not_held)
{
	take("LOCKBROKER_EVENT=granted\nLOCKBROKER_PERMITS=3\nLOCKBROKER_SINCE_MS=1000\n");
	for (int i = 0; i < 3; i++)
		take("LOCKBROKER_EVENT=released\nLOCKBROKER_PERMITS=1\nLOCKBROKER_SINCE_MS=1000\nLOCKBROKER_WHY=released\n"
		     "LOCKBROKER_HELD_MS=20000\n");
	history_end(&h);
	assert_int_equal(h.holds.count, 3);
	for (size_t i = 0; i < h.holds.count; i++)
		assert_int_equal(h.holds.rows[i].state, HISTORY_ENDED);
}

/* What a client loses, or leaves behind at its end, is all that it has: the entry of an earlier release was left out. */
HISTORY(permits_that_end_with_their_client_are_not_held)
{
	take("LOCKBROKER_EVENT=granted\nLOCKBROKER_PERMITS=3\nLOCKBROKER_SINCE_MS=1000\n");
	take("LOCKBROKER_EVENT=released\nLOCKBROKER_PERMITS=2\nLOCKBROKER_SINCE_MS=1000\nLOCKBROKER_WHY=closed\n"
	     "LOCKBROKER_HELD_MS=20000\n");
	history_end(&h);
	assert_int_equal(h.holds.count, 1);
	assert_int_equal(h.holds.rows[0].state, HISTORY_ENDED);
}

HISTORY(a_wait_whose_client_got_the_lock_has_ended)
{
	take("LOCKBROKER_EVENT=waits\nLOCKBROKER_CLIENT=1\nLOCKBROKER_WAITED_MS=60000\n");
	take("LOCKBROKER_EVENT=waits\nLOCKBROKER_CLIENT=2\nLOCKBROKER_WAITED_MS=60000\n");
	take("LOCKBROKER_EVENT=released\nLOCKBROKER_CLIENT=1\nLOCKBROKER_TOKEN=1\nLOCKBROKER_SINCE_MS=1796070670000\n");
	history_end(&h);
	assert_int_equal(h.waits.count, 2);
	assert_int_equal(h.waits.rows[0].state, HISTORY_UNKNOWN);
	assert_int_equal(h.waits.rows[1].state, HISTORY_OPEN);
}

/* A connection that waits does not outlive the process. */
HISTORY(a_wait_ends_with_its_daemon)
{
	take("LOCKBROKER_EVENT=waits\n_MACHINE_ID=1\nLOCKBROKER_WAITED_MS=60000\n");
	take("LOCKBROKER_EVENT=waits\n_MACHINE_ID=2\nLOCKBROKER_WAITED_MS=60000\n");
	take("LOCKBROKER_EVENT=serves\n_MACHINE_ID=1\n");
	history_end(&h);
	assert_int_equal(h.waits.count, 2);
	assert_int_equal(h.waits.rows[0].state, HISTORY_UNKNOWN);
	assert_int_equal(h.waits.rows[1].state, HISTORY_OPEN);
}

/* The one that it has later is another wait. */
HISTORY(a_wait_that_has_ended_is_not_that_of_a_later_end)
{
	take("LOCKBROKER_EVENT=waits\nLOCKBROKER_WAITED_MS=60000\n");
	take("LOCKBROKER_EVENT=released\nLOCKBROKER_TOKEN=1\nLOCKBROKER_SINCE_MS=1796070670000\n");
	take("LOCKBROKER_EVENT=waited\nLOCKBROKER_WAITED_MS=1000\n");
	history_end(&h);
	assert_int_equal(h.waits.count, 2);
	assert_int_equal(h.waits.rows[0].state, HISTORY_UNKNOWN);
	assert_int_equal(h.waits.rows[1].state, HISTORY_ENDED);
}

HISTORY(a_delegation_to_another_client_ends_a_hold)
{
	take("LOCKBROKER_EVENT=granted\nLOCKBROKER_CLIENT=1\nLOCKBROKER_TOKEN=1\nLOCKBROKER_SINCE_MS=1000\n");
	take("LOCKBROKER_EVENT=delegated\nLOCKBROKER_CLIENT=2\nLOCKBROKER_TOKEN=2\nLOCKBROKER_SINCE_MS=20000\n");
	history_end(&h);
	assert_int_equal(h.holds.count, 2);
	assert_int_equal(h.holds.rows[0].state, HISTORY_UNKNOWN);
}

/* Its holds have ended in its minute, and may have begun before. */
HISTORY(a_summary_is_of_the_time_of_its_longest_hold)
{
	h.from_ms = 95000;
	h.to_ms = 96000;
	take("LOCKBROKER_EVENT=summary\nLOCKBROKER_NAME=a\nLOCKBROKER_COUNT=9\nLOCKBROKER_LONGEST_MS=5000\n"
	     "LOCKBROKER_SINCE_MS=100000\nLOCKBROKER_UNTIL_MS=160000\n");
	take("LOCKBROKER_EVENT=summary\nLOCKBROKER_NAME=a\nLOCKBROKER_COUNT=9\nLOCKBROKER_LONGEST_MS=3000\n"
	     "LOCKBROKER_SINCE_MS=100000\nLOCKBROKER_UNTIL_MS=160000\n");
	history_end(&h);
	assert_int_equal(h.holds.count, 1);
	assert_int_equal(h.summed, 9);
}
