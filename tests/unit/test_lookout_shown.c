/* SPDX-License-Identifier: Apache-2.0 */
/* Which patterns the page's server asks for, so that the locks that viewers look at are shown as they are now. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "client-lib/http/lookout_shown.h"
#include "protocol/resp.h"

enum { NOW_MS = 100000 };

/* ---- what it asks, and when ---- */

static char asked[LOOKOUT_SHOWN_QUESTIONS + 1][64];
static int asked_count;

bool broker_ask(struct broker *b, broker_answered answered, void *of, size_t count, const struct slice *words)
{
	assert_int_equal(count, 6);
	snprintf(asked[asked_count++], sizeof(asked[0]), "%.*s", (int)words[1].len, words[1].data);
	return true;
}

int64_t lookout_now_ms(void)
{
	return NOW_MS;
}

/* ---- what is known ---- */

static void know(struct lookout *l, const char *name)
{
	struct resp_replies replies;
	struct bytes text = { 0 };
	size_t used = 0;

	resp_map(&text, 1, 3);
	resp_bulk(&text, SLICE("name"));
	resp_bulk(&text, slice_of(name));
	resp_replies_init(&replies, 16, 65536);
	assert_int_equal(resp_read_reply(&replies, bytes_view(&text), &used), RESP_DONE);
	assert_non_null(sightings_take_here(&l->sightings, (const struct lb_reply *)replies.values, NOW_MS));
	resp_replies_deinit(&replies);
	bytes_free(&text);
}

static const char *lock(int i)
{
	static char name[24];

	snprintf(name, sizeof(name), "lock %05d", i);
	return name;
}

static void know_many(struct lookout *l, int count)
{
	sightings_init(&l->sightings);
	for (int i = 0; i < count; i++)
		know(l, lock(i));
}

static void show(struct lookout *l, const char *name, int64_t ago_ms)
{
	sightings_find(&l->sightings, slice_of(name))->shown_ms = NOW_MS - ago_ms;
}

static void expect(struct lookout *l, int count, const char *const *patterns)
{
	asked_count = 0;
	assert_true(lookout_shown_ask(l, NULL));
	for (int i = 0; i < count && i < asked_count; i++)
		assert_string_equal(asked[i], patterns[i]);
	assert_int_equal(asked_count, count);
}

#define EXPECT(l, ...) \
	expect(l, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[]){ __VA_ARGS__ })

TEST(names_that_stand_together_are_asked_for_by_prefixes_that_few_others_have)
{
	static struct lookout l;

	know_many(&l, 10000);
	expect(&l, 0, NULL);
	for (int i = 3980; i < 4060; i++)
		show(&l, lock(i), 0);
	EXPECT(&l, "lock 039*", "lock 040*");
	assert_true(slice_is(lookout_shown_next(&l), "lock 039"));
	assert_true(slice_is(lookout_shown_next(&l), "lock 040"));
}

TEST(what_was_shown_long_ago_or_comes_first_in_an_order_is_not_asked_for)
{
	static struct lookout l;

	know_many(&l, 1000);
	show(&l, lock(1), LOOKOUT_SHOWN_MS);
	show(&l, lock(2), LOOKOUT_SHOWN_MS - 1);
	show(&l, lock(3), 0);
	sightings_find(&l.sightings, slice_of(lock(3)))->first_ms = NOW_MS - LOOKOUT_SHOWN_MS + 1;
	EXPECT(&l, "lock 00002*");
}

TEST(bytes_that_mean_something_in_a_pattern_mean_themselves)
{
	static struct lookout l;

	know_many(&l, 1000);
	know(&l, "a*?[b]\\c^-");
	show(&l, "a*?[b]\\c^-", 0);
	EXPECT(&l, "a\\*\\?\\[b]\\\\c^-*");
}

TEST(more_than_some_questions_show_is_asked_for_in_turn)
{
	static struct lookout l;

	know_many(&l, 10000);
	for (int i = 0; i < 10; i++)
		show(&l, lock(1000 * i), 0);
	EXPECT(&l, "lock 00000*", "lock 01000*", "lock 02000*", "lock 03000*", "lock 04000*", "lock 05000*", "lock 06000*",
	       "lock 07000*");
	EXPECT(&l, "lock 08000*", "lock 09000*", "lock 00000*", "lock 01000*", "lock 02000*", "lock 03000*", "lock 04000*",
	       "lock 05000*");
}

TEST(a_daemon_with_very_many_locks_is_asked_fewer_questions_a_second)
{
	static struct lookout l;

	know_many(&l, 10000);
	for (int i = 0; i < 3; i++)
		show(&l, lock(1000 * i), 0);
	l.near_count = LOOKOUT_SHOWN_WALKED / 2 - 1;
	EXPECT(&l, "lock 00000*", "lock 01000*");
	l.near_count = 10 * LOOKOUT_SHOWN_WALKED;
	EXPECT(&l, "lock 02000*");
	EXPECT(&l, "lock 00000*");
}
