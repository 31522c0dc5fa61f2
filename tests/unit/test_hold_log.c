/* SPDX-License-Identifier: Apache-2.0 */
/* The lines for holds and waits (io/hold_log.h); log_text() is the test's. */
#include "io/hold_log.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/hold_record.h"
#include "base/log.h"
#include "base/log_budget.h"
#include "base/log_catalog.h"

#define MS INT64_C(1000000)
#define NOW (1000000 * MS)

static const uint64_t key[2] = { 1, 2 };
static struct bytes lines; /* "level event uid: sentence  fields\n" */
static int64_t set_ms;      /* so much later than in hold_of() it is by the clock that people see */
static size_t line_count;

void log_text(enum log_level level, enum log_event event, const struct log_account *account, struct slice sentence,
	      struct slice fields)
{
	static const char *const levels[] = { "error", "warning", "info", "debug" };

	bytes_format(&lines, "%s %d: %s  %s\n", levels[level], account ? (int64_t)account->uid : -1, sentence, fields);
	line_count++;
}

int64_t clock_wall_ms(int64_t at_ns)
{
	return 1700000000000 + set_ms + (at_ns - NOW) / MS;
}

static struct hold_log *h;

static void forget_lines(void)
{
	bytes_clear(&lines);
	line_count = 0;
}

static int begin(void **state)
{
	forget_lines();
	h = hold_log_new(key, "alpha", true, 50);
	return 0;
}

static int begin_unwanted(void **state)
{
	forget_lines();
	h = hold_log_new(key, "alpha", false, 50);
	return 0;
}

static int end(void **state)
{
	hold_log_free(h);
	bytes_free(&lines);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static void expect(const char *text)
{
	bytes_char(&lines, '\0');
	assert_string_equal(lines.data, text);
	forget_lines();
}

static bool is_said(const char *part)
{
	return memmem(lines.data, lines.len, part, strlen(part)) != NULL;
}

static void expect_part(const char *part)
{
	assert_true(is_said(part));
	forget_lines();
}

static void expect_level(const char *level)
{
	assert_memory_equal(lines.data, level, strlen(level));
	forget_lines();
}

/* A hold of that lock, which lasted so long; the rest may be changed. */
static struct hold_record hold_of(const char *name, int64_t held_ms)
{
	return (struct hold_record){ .kind = "lock", .mode = "exclusive", .why = "released", .pid = 42, .client = 7,
				     .token = 2048, .asked_ns = NOW - (held_ms + 5) * MS, .granted_ns = NOW - held_ms * MS,
				     .now_ns = NOW, .name = slice_of(name),
				     .command = SLICE("worker") };
}

static void note(enum log_event event, uint32_t uid, const struct hold_record *r)
{
	struct effects effects = { 0 };
	struct effect *e = effects_add(&effects, EFFECT_HOLD);

	e->log.event = (uint8_t)event;
	hold_record_write(r, &effects.arena);
	e->data = effects_take(&effects);
	effects_caused(&effects, e, uid, SLICE(""));
	hold_log_note(h, &effects, e);
	effects_free(&effects);
}

/* ---- lines ---- */

TEST(a_hold_has_all_fields_that_are_known)
{
	struct hold_record r = hold_of("orders/42", 1250);

	note(LOG_EVENT_released, 1000, &r);
	expect("info 1000: released: lock \"orders/42\", after 1250 ms, by \"worker\" (pid 42, uid 1000)  kind=lock "
	       "name=orders/42 "
	       "mode=exclusive token=2048 client=7 pid=42 command=worker since_ms=1699999998750 waited_ms=5 held_ms=1250 "
	       "why=released\n");
	r.data = SLICE("deploy #7 \"x\"");
	r.before = SLICE("beta");
	r.why = "lease";
	r.asked_ns = 0;
	note(LOG_EVENT_lost, 1000, &r);
	expect("info 1000: lost (lease): lock \"orders/42\", after 1250 ms, by \"worker\" (pid 42, uid 1000): "
	       "\"deploy #7 \\\"x\\\"\"  kind=lock name=orders/42 mode=exclusive token=2048 client=7 pid=42 command=worker "
	       "data=\"deploy #7 \\\"x\\\"\" since_ms=1699999998750 held_ms=1250 why=lease before=beta\n");
	r = hold_of("s", 10000);
	r.why = NULL;
	r.permits = 3;
	note(LOG_EVENT_granted, 0, &r);
	expect("info 0: granted: 3 permits of semaphore \"s\", held for 10000 ms until now by \"worker\" (pid 42, "
	       "uid 0)  kind=lock "
	       "name=s mode=exclusive token=2048 permits=3 client=7 pid=42 command=worker since_ms=1699999990000 waited_ms=5 "
	       "held_ms=10000\n");
}

/* The times of the lines of a daemon go by that clock, too. */
TEST(a_hold_has_begun_by_the_clock_as_it_is_set_when_it_ends)
{
	struct hold_record r = hold_of("a", 1250);

	set_ms = 3600000;
	note(LOG_EVENT_released, 1, &r);
	set_ms = 0;
	expect_part(" since_ms=1700003598750 ");
}

TEST(a_delegation_has_its_takings)
{
	struct hold_record r = hold_of("a", 500);

	r.takings = 812;
	note(LOG_EVENT_delegated, 1, &r);
	expect("info 1: delegated: lock \"a\", for 500 ms to \"worker\" (pid 42, uid 1), which took it 812 times  "
	       "name=a token=2048 "
	       "client=7 pid=42 command=worker since_ms=1699999999500 held_ms=500 takings=812\n");
}

TEST_WITH(a_wait_names_the_holder, begin_unwanted, end)
{
	struct hold_record r = hold_of("a", 0);

	r.why = NULL;
	r.granted_ns = 0;
	r.asked_ns = NOW - 60000 * MS;
	r.holder = SLICE("1\nhost=beta\npid=12\ncommand=settle\n");
	note(LOG_EVENT_waits, 1, &r);
	expect("info 1: waits: \"worker\" (pid 42, uid 1) for 60000 ms, for lock \"a\", which is held by \"settle\" "
	       "(pid 12) on host "
	       "\"beta\"  kind=lock name=a mode=exclusive client=7 pid=42 command=worker waited_ms=60000 "
	       "holder=beta holder_pid=12 "
	       "holder_command=settle\n");
	/* The command of `lockbroker lock` is the name of its connection; what others name theirs may be arguments. */
	r.holder = SLICE("1\nhost=beta\npid=12\nname=backup\ncommand=lockbroker\n");
	note(LOG_EVENT_waits, 1, &r);
	expect_part(" holder_command=backup\n");
	r.holder = SLICE("1\nhost=beta\npid=12\nname=settle --key 7\ncommand=settle\n");
	note(LOG_EVENT_waits, 1, &r);
	expect_part(" holder_command=settle\n");
	r.here = true;
	r.holder_pid = 99;
	r.holder_command = SLICE("backup");
	r.why = "granted";
	note(LOG_EVENT_waited, 1, &r);
	expect("info 1: waited: \"worker\" (pid 42, uid 1) for 60000 ms, for lock \"a\"; the wait has ended: granted  kind=lock "
	       "name=a mode=exclusive client=7 pid=42 command=worker waited_ms=60000 why=granted\n");
	r.why = NULL;
	note(LOG_EVENT_waits, 1, &r);
	expect_part(" holder=alpha holder_pid=99 holder_command=backup\n");
	/* Of another namespace, its pid is not seen here. */
	r.holder_pid = 0;
	note(LOG_EVENT_waits, 1, &r);
	expect_part(" holder=alpha holder_command=backup\n");
}

TEST(a_long_name_and_a_text_are_whole_and_are_no_fields)
{
	struct hold_record r = hold_of("", 1);
	char name[512];
	struct bytes whole = { 0 };

	memset(name, 'n', sizeof(name));
	memcpy(name, "a b", 3);
	r.name = (struct slice){ name, sizeof(name) };
	r.command = SLICE("x event=lost");
	r.data = SLICE("\n\" why=forced");
	note(LOG_EVENT_released, 1, &r);
	bytes_format(&whole, " name=%q ", r.name);
	assert_non_null(memmem(lines.data, lines.len, whole.data, whole.len));
	assert_true(is_said(" command=\"x event=lost\" "));
	assert_true(is_said(" data=\"\\x0a\\\" why=forced\" "));
	bytes_free(&whole);
}

TEST_WITH(what_is_not_wanted_is_for_debugging_but_long_waits, begin_unwanted, end)
{
	struct hold_record r = hold_of("a", 1);

	note(LOG_EVENT_released, 1, &r);
	expect_level("debug ");
	note(LOG_EVENT_waits, 1, &r);
	expect_level("info ");
	hold_log_set(h, true, 50);
	note(LOG_EVENT_released, 1, &r);
	expect_level("info ");
}

/* ---- beyond the budget ---- */

TEST(beyond_the_budget_there_is_a_summary_after_a_minute)
{
	struct hold_record r = hold_of("a", 20);

	for (int i = 0; i < 1000; i++)
		note(LOG_EVENT_released, 1, &r);
	assert_int_equal(line_count, 400);
	assert_int_equal(hold_log_due_ns(h, NOW), HOLD_LOG_SUMMARY_NS);
	r = hold_of("b", 9999);
	r.command = SLICE("two words");
	note(LOG_EVENT_released, 1, &r);
	bytes_clear(&lines);
	hold_log_tell(h, NOW + HOLD_LOG_SUMMARY_NS - 1, false);
	expect("");
	hold_log_tell(h, NOW + HOLD_LOG_SUMMARY_NS, false);
	expect("info -1: summary: \"a\", 600 holds and 0 long waits without a line of their own, the longest hold 20 ms  name=a "
	       "count=600 waits=0 commands=worker longest_ms=20 since_ms=1700000000000 until_ms=1700000060000\n"
	       "info -1: summary: \"b\", 1 holds and 0 long waits without a line of their own, the longest hold 9999 ms  name=b "
	       "count=1 waits=0 commands=two?words longest_ms=9999 since_ms=1700000000000 until_ms=1700000060000\n");
	assert_int_equal(hold_log_due_ns(h, NOW), 0);
	hold_log_tell(h, NOW + 10 * HOLD_LOG_SUMMARY_NS, true);
	expect("");
}

/* What it stands for may be all that is known of the lock. */
TEST(a_delegation_beyond_the_budget_is_counted)
{
	struct hold_record r = hold_of("a", 7000);

	r.takings = 812;
	for (int i = 0; i < 1000; i++)
		note(LOG_EVENT_delegated, 1, &r);
	assert_int_equal(line_count, 400);
	bytes_clear(&lines);
	hold_log_tell(h, NOW + MS, true);
	expect_part(" name=a count=600 waits=0 commands=worker longest_ms=0 ");
}

/* A hold of ten seconds passes before short ones, and a loss does not count. */
TEST(what_matters_passes_beyond_the_budget)
{
	struct hold_record r = hold_of("a", 20);

	for (int i = 0; i < 1000; i++)
		note(LOG_EVENT_released, 1, &r);
	line_count = 0;
	r = hold_of("long", 10000);
	note(LOG_EVENT_released, 1, &r);
	assert_int_equal(line_count, 1);
	r.why = "session";
	for (int i = 0; i < 1000; i++)
		note(LOG_EVENT_lost, 1, &r);
	assert_int_equal(line_count, 1001);
}

TEST(a_summary_names_twenty_locks_and_counts_the_others)
{
	struct hold_record r = hold_of("a", 20);
	char name[32];

	for (int i = 0; i < 400; i++)
		note(LOG_EVENT_released, 1, &r);
	/* The busiest lock has the longest hold: that is not said of the others. */
	r = hold_of("a0", 9000);
	note(LOG_EVENT_released, 1, &r);
	for (int i = 0; i < 25; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		r = hold_of(name, 20);
		note(LOG_EVENT_released, 1, &r);
	}
	forget_lines();
	hold_log_tell(h, NOW + MS, true);
	assert_int_equal(line_count, 21);
	assert_true(is_said("all other locks, 5 holds"));
	expect_part("  count=5 waits=0 longest_ms=20 ");
}
