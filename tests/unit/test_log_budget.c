/* SPDX-License-Identifier: Apache-2.0 */
/* How many lines of holds pass, and whose, and what is known of the others. */
#include "base/log_budget.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "base/busiest.h"
#include "base/hold_record.h"

static const int64_t SECOND = 1000000000, DAY = 86400 * INT64_C(1000000000), NOW = 77 * INT64_C(1000000000);

static struct log_account user(uint32_t uid)
{
	return (struct log_account){ .uid = uid };
}

/* ---- the budget ---- */

static struct log_budget b;

static int begin_budget(void **state)
{
	b = (struct log_budget){ 0 };
	log_budget_set(&b, 50 * 1000000);
	return 0;
}

#define BUDGET(name) TEST_WITH(name, begin_budget, NULL)

/* How many of so many lines pass. */
static int pass(struct log_account account, bool important, int count, int64_t now_ns)
{
	int passed = 0;

	for (int i = 0; i < count; i++)
		passed += log_budget_pass(&b, &account, important, now_ns);
	return passed;
}

BUDGET(one_account_has_four_fifths_and_finds_them_again)
{
	assert_int_equal(pass(user(1), false, 400, NOW), 400);
	assert_int_equal(pass(user(1), false, 1, NOW), 0);
	assert_int_equal(pass(user(1), false, 1, NOW + b.every_ns - 1), 0);
	assert_int_equal(pass(user(1), false, 2, NOW + b.every_ns), 1);
	assert_int_equal(pass(user(1), false, 1000, NOW + 10 * b.every_ns), 9);
	assert_int_equal(pass(user(1), false, 1000, NOW + DAY), 400);
}

BUDGET(all_accounts_together_have_so_many_places)
{
	int passed = 0;

	for (uint32_t uid = 0; uid < 1000; uid++)
		passed += pass(user(uid), false, 1000, NOW);
	assert_int_equal(passed, LOG_BUDGET_LINES);
	assert_true(b.count <= LOG_BUDGET_ACCOUNTS);
}

BUDGET(important_lines_pass_when_others_do_not)
{
	pass(user(1), false, 1000, NOW);
	assert_int_equal(pass(user(1), true, 1000, NOW), 100);
	assert_int_equal(pass(user(1), false, 1, NOW + 50 * b.every_ns), 0);
	assert_int_equal(pass(user(1), true, 1000, NOW + 50 * b.every_ns), 50);
}

/* Of 24 hours of as many lines as there may be, what passes takes 50 MB, beside the first burst. */
BUDGET(a_day_takes_what_it_may)
{
	int64_t passed = 0, begin_ns = NOW;

	for (int64_t now_ns = begin_ns; now_ns < begin_ns + DAY; now_ns += SECOND / 4)
		passed += pass(user(1), false, 2, now_ns) + pass(user(2), true, 2, now_ns);
	assert_in_range(passed * LOG_ENTRY_BYTES, 50 * 1000000, 50 * 1000000 + LOG_BUDGET_IMPORTANT * LOG_ENTRY_BYTES);
}

/* One that says little passes always; of two that say much, each has half. */
BUDGET(accounts_have_equal_parts)
{
	int passed[4] = { 0 };

	for (int turn = 0; turn < 40000; turn++) {
		int64_t now_ns = NOW + turn * (b.every_ns / 4);

		for (uint32_t uid = 1; uid <= 2; uid++)
			passed[uid] += pass(user(uid), false, uid == 1 ? 100 : 3, now_ns);
		if (turn % 40 == 0)
			passed[3] += pass(user(3), false, 1, now_ns);
	}
	assert_int_equal(passed[3], 1000);
	assert_in_range(passed[1], passed[2] - 400, passed[2] + 400);
	assert_in_range(passed[1] + passed[2] + passed[3], 10000, 10000 + LOG_BUDGET_LINES);
}

/* ---- all lines of the log ---- */

/* Whatever is said: less than 10,000 lines in 30 s, and a line about the daemon is never among those that are held back. */
TEST(no_more_lines_pass_than_the_journal_takes)
{
	struct log_buckets buckets = { 0 };
	int64_t passed = 0, errors = 0, losses = 0;

	for (int64_t ms = 0; ms < 30000; ms++) {
		int64_t now_ns = NOW + ms * (SECOND / 1000);

		for (uint32_t uid = 0; uid < 100; uid++) {
			struct log_account account = user(uid);
			bool lost = log_buckets_pass(&buckets, LOG_EVENT_lost, &account, now_ns);

			losses += lost;
			passed += lost + log_buckets_pass(&buckets, LOG_EVENT_released, &account, now_ns);
		}
		if (ms % 1000 == 0) {
			errors += log_buckets_pass(&buckets, LOG_EVENT_zookeeper_lost, NULL, now_ns);
			passed++;
		}
	}
	assert_int_equal(errors, 30);
	assert_true(losses >= 1500 / 2);
	assert_in_range(passed, 1500, LOG_ALL_LINES + 30 * 150);
}

/* ---- the busiest ---- */

static const uint64_t key[2] = { 1, 2 };

static struct busiest busy;

static int begin_busiest(void **state)
{
	busiest_init(&busy, key);
	return 0;
}

static int end_busiest(void **state)
{
	busiest_deinit(&busy);
	return 0;
}

#define BUSIEST(name) TEST_WITH(name, begin_busiest, end_busiest)

static struct slice name_of(char text[32], const char *what, int i)
{
	snprintf(text, 32, "%s%d", what, i);
	return slice_of(text);
}

BUSIEST(the_busiest_are_found_among_thousands)
{
	const struct busy *shown[BUSIEST_SHOWN];
	char text[32];

	for (int turn = 0; turn < 200; turn++)
		for (int i = 0; i < 40; i++) {
			busiest_count(&busy, name_of(text, "rare", turn * 40 + i), SLICE("x"), 1);
			if (turn % (i + 1) == 0)
				busiest_count(&busy, name_of(text, "busy", i), SLICE("x"), i);
		}
	assert_int_equal(busy.ranks.count, BUSIEST_MAX);
	assert_int_equal(busiest_look(&busy, shown), BUSIEST_SHOWN);
	assert_true(slice_is(bytes_view(&shown[0]->name), "busy0"));
	assert_int_equal(shown[0]->own, 200);
	assert_int_equal(shown[1]->own, 100);
	for (size_t i = 1; i < BUSIEST_SHOWN; i++)
		assert_true(shown[i - 1]->own >= shown[i]->own);
	assert_int_equal(busiest_longest_of_others(&busy, NULL, 0), 39);
	assert_int_equal(busiest_longest_of_others(&busy, shown, BUSIEST_SHOWN), 39);
	assert_int_equal(shown[0]->longest_ms, 0);
	busiest_clear(&busy);
	assert_int_equal(busiest_look(&busy, shown), 0);
	assert_int_equal(busy.names.count, 0);
}

BUSIEST(at_the_number_of_names_and_one_past_it)
{
	char text[32];

	for (int i = 0; i < BUSIEST_MAX; i++)
		busiest_count(&busy, name_of(text, "a", i), SLICE("x"), 1);
	assert_int_equal(busy.names.count, BUSIEST_MAX);
	busiest_count(&busy, SLICE("one more"), SLICE("x"), 1);
	assert_int_equal(busy.names.count, BUSIEST_MAX);
	assert_int_equal(busy.own, BUSIEST_MAX + 1);
}

BUSIEST(three_commands_are_shown_the_most_frequent_first)
{
	static const char *const commands[] = { "b", "a", "b", "c,c", "b", "a", "c,c", "d", "an endless name of a command" };
	const struct busy *shown[BUSIEST_SHOWN];
	struct bytes text = { 0 };

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		busiest_count(&busy, SLICE("a"), slice_of(commands[i]), i == 3 ? -1 : (int64_t)i);
	assert_int_equal(busiest_look(&busy, shown), 1);
	assert_int_equal(shown[0]->own, 8);
	assert_int_equal(shown[0]->others, 1);
	assert_int_equal(shown[0]->longest_ms, 8);
	busiest_commands(shown[0], &text);
	assert_true(slice_is(bytes_view(&text), "b,a,c?c"));
	bytes_free(&text);
}

/* ---- the record ---- */

TEST(a_record_is_read_as_it_was_written)
{
	struct hold_record h = { .kind = "lock", .name = SLICE("a\0b"), .data = SLICE("text"), .token = 7,
				 .holder = SLICE("x") };
	struct bytes all = { 0 };

	bytes_text(&all, "?"); /* nothing is aligned */
	hold_record_write(&h, &all);
	bytes_text(&all, "unit");
	h = hold_record_read((struct slice){ all.data + 1, all.len - 1 });
	assert_int_equal(h.token, 7);
	assert_int_equal(h.name.len, 3);
	assert_memory_equal(h.name.data, "a\0b", 3);
	assert_true(slice_is(h.data, "text") && slice_is(h.holder, "x") && !h.command.len && !h.before.len);
	assert_string_equal(h.kind, "lock");
	bytes_free(&all);
}
