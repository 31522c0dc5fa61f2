/* SPDX-License-Identifier: Apache-2.0 */
/* What the page keeps of locks: rows of this host and of others, what happened to them, and its bounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "client-lib/http/sightings.h"
#include "protocol/bytes.h"
#include "protocol/resp.h"

/* Each test has one of its own, and what it keeps stays until the end of the program. */
#define NEW_SIGHTINGS(all) \
	static struct sightings all; \
	sightings_init(&all)

static struct resp_replies replies;
static struct bytes text;

static void word(const char *key, const char *value)
{
	resp_bulk(&text, slice_of(key));
	resp_bulk(&text, slice_of(value));
}

static void count(const char *key, int64_t value)
{
	resp_bulk(&text, slice_of(key));
	resp_integer(&text, value);
}

/* The value that was written; it is valid until the next one is read. */
static const struct lb_reply *written(void)
{
	size_t used = 0;

	resp_replies_deinit(&replies);
	resp_replies_init(&replies, 1024, 65536);
	assert_int_equal(resp_read_reply(&replies, bytes_view(&text), &used), RESP_DONE);
	bytes_clear(&text);
	return (const struct lb_reply *)replies.values;
}

static void client(int64_t pid, int64_t number, const char *host)
{
	resp_map(&text, 5, 3);
	word("host", host);
	count("client", number);
	count("pid", pid);
	word("command", "job");
	count("held_ms", 1000);
}

/* A row of a list by an order; pid 0: nobody holds it. */
static const struct lb_reply *row(const char *name, int64_t waiters, int64_t waited_ms, int64_t grants, int64_t pid)
{
	resp_map(&text, 8, 3);
	word("name", name);
	word("state", "held");
	count("holders", pid != 0);
	count("waiters", waiters);
	count("delegated", 0);
	count("waited_ms", waited_ms);
	count("grants", grants);
	resp_bulk(&text, SLICE("first"));
	if (pid)
		client(pid, 1, "here");
	else
		resp_nil(&text, 3);
	return written();
}

/* A row of the whole list, which has less. */
static const struct lb_reply *short_row(const char *name, int64_t holders, int64_t waiters)
{
	resp_map(&text, 5, 3);
	word("name", name);
	word("state", "held");
	count("holders", holders);
	count("waiters", waiters);
	count("delegated", 0);
	return written();
}

/* A row of all locks: a holder on another host, unless pid is 0; waiters of this one. */
static const struct lb_reply *far_row_of(const char *name, int64_t waiters, int64_t pid, int64_t hosts_waiting)
{
	resp_map(&text, 5, 3);
	word("name", name);
	word("kind", "lock");
	count("waiters", waiters);
	count("hosts_waiting", hosts_waiting);
	resp_bulk(&text, SLICE("holders"));
	resp_array(&text, pid != 0);
	if (pid)
		client(pid, 0, "other");
	return written();
}

static const struct lb_reply *far_row(const char *name, int64_t pid, int64_t hosts_waiting)
{
	return far_row_of(name, 0, pid, hosts_waiting);
}

static struct sighting *find(const struct sightings *all, const char *name)
{
	return sightings_find(all, slice_of(name));
}

static const char *latest(const struct sighting *s)
{
	return TAILQ_LAST(&s->changes, sighting_changes)->text;
}

static const char *number(int i)
{
	static char name[24];

	snprintf(name, sizeof(name), "lock %07d", i);
	return name;
}

/* ---- rows ---- */

TEST(a_row_of_this_host_is_what_is_seen)
{
	NEW_SIGHTINGS(all);
	struct sighting *s;

	sightings_take_here(&all, row("a", 2, 300, 10, 7), 10000);
	s = find(&all, "a");
	assert_true(s->here && sighting_is_used(s));
	assert_int_equal(s->waits_since_ms, 9700);
	assert_int_equal(s->first->pid, 7);
	assert_int_equal(s->first->since_ms, 9000);
	assert_true(s->grants_per_s < 0);
	sightings_take_here(&all, row("a", 0, 0, 16, 8), 12000);
	assert_true(s->grants_per_s == 3);
	assert_int_equal(s->waits_since_ms, INT64_MIN);
	assert_string_equal(latest(s), "held on this host by job, pid 8");
	sightings_take_here(&all, row("a", 0, 0, 4, 8), 14000);
	assert_true(s->grants_per_s < 0); /* the counter began anew */
}

TEST(a_list_ends_what_it_does_not_name)
{
	NEW_SIGHTINGS(all);

	all.list = 1;
	sightings_take_here(&all, row("a", 0, 0, 1, 7), 1000);
	sightings_take_here(&all, row("b", 1, 5, 1, 7), 1000);
	sightings_take_here(&all, short_row("c", 1, 1), 1000);
	all.list = 2;
	sightings_take_here(&all, row("a", 0, 0, 1, 7), 2000);
	sightings_end_waits(&all, 2);
	assert_true(find(&all, "b")->here && find(&all, "b")->waiters == 0 && find(&all, "c")->waiters == 0);
	assert_string_equal(latest(find(&all, "b")), "nobody of this host waits for it any longer");
	sightings_end_here(&all, 2, SLICE(""), SLICE(""));
	assert_true(find(&all, "a")->here && !find(&all, "b")->here && !find(&all, "c")->here);
	assert_null(find(&all, "b")->first);
	assert_string_equal(latest(find(&all, "b")), "released: no client of this host holds it");
}

TEST(a_list_that_was_asked_for_earlier_ends_nothing_that_was_shown_later)
{
	NEW_SIGHTINGS(all);

	all.asked_ms = 1000;
	all.list = 1;
	sightings_take_far(&all, far_row_of("a", 1, 5, 0), 1000); /* before the list was answered */
	sightings_end_waits(&all, 1);
	sightings_end_here(&all, 1, SLICE(""), SLICE(""));
	assert_true(find(&all, "a")->here && find(&all, "a")->waiters == 1);
	all.asked_ms = 1001;
	sightings_end_here(&all, 1, SLICE(""), SLICE(""));
	assert_false(find(&all, "a")->here);
}

TEST(a_list_ends_a_lock_though_other_hosts_were_asked_about_it_meanwhile)
{
	NEW_SIGHTINGS(all);
	struct sighting *s;

	all.list = 1;
	sightings_take_here(&all, row("a", 1, 5, 1, 7), 1000);
	all.asked_ms = 2000;
	s = find(&all, "a");
	sightings_take_why(&all, s, far_row("a", 5, 0), 2001); /* before the list was answered */
	all.list = 2;
	sightings_end_waits(&all, 2);
	assert_true(s->here && s->waiters == 0);
	sightings_end_here(&all, 2, SLICE(""), SLICE(""));
	assert_false(s->here);
	assert_int_equal(s->far_first->pid, 5);
}

TEST(what_zookeeper_has_shown_ends_by_a_later_page_or_after_a_time)
{
	NEW_SIGHTINGS(all);

	sightings_take_far(&all, far_row("a", 5, 0), 1000);
	sightings_take_far(&all, far_row("b", 5, 2), 1000);
	sightings_take_far(&all, far_row("c", 5, 0), 1000);
	assert_string_equal(latest(find(&all, "a")), "held on host other by job, pid 5");
	assert_true(!find(&all, "b")->here && find(&all, "b")->hosts_waiting == 2);
	sightings_take_far(&all, far_row("c", 6, 0), 2000);
	sightings_end_far(&all, 2000, slice_of("a"), slice_of("c"));
	assert_non_null(find(&all, "a")->far_first); /* the page began behind it */
	assert_null(find(&all, "b")->far_first);
	assert_false(sighting_is_used(find(&all, "b")));
	assert_int_equal(find(&all, "c")->far_first->pid, 6);
	sightings_sweep(&all, 1000 + SIGHTINGS_FAR_MS);
	assert_non_null(find(&all, "a")->far_first);
	sightings_sweep(&all, 1001 + SIGHTINGS_FAR_MS);
	assert_null(find(&all, "a")->far_first);
	assert_non_null(find(&all, "c")->far_first);
}

/* ---- bounds ---- */

TEST(as_many_locks_as_fit_are_kept_and_one_more_is_said_to_be_missing)
{
	NEW_SIGHTINGS(all);

	all.list = 1;
	for (int i = 0; i < SIGHTINGS_MAX; i++)
		sightings_take_here(&all, short_row(number(i), 1, 0), 1000);
	assert_int_equal(all.count, SIGHTINGS_MAX);
	assert_false(all.truncated);
	sightings_take_here(&all, short_row(number(SIGHTINGS_MAX), 1, 0), 1000);
	assert_int_equal(all.count, SIGHTINGS_MAX);
	assert_true(all.truncated);
	assert_null(find(&all, number(SIGHTINGS_MAX)));
	sightings_take_here(&all, short_row(number(3), 1, 0), 1000); /* what is known already has its place */
	sightings_sweep(&all, 1000);
	assert_true(all.truncated);
	/* All but one go. */
	all.list = 2;
	sightings_take_here(&all, short_row(number(3), 1, 0), 2000);
	sightings_end_here(&all, 2, SLICE(""), SLICE(""));
	for (int i = 0; i < SIGHTINGS_MAX; i++)
		assert_int_equal(sighting_is_used(find(&all, number(i))), i == 3);
	sightings_take_here(&all, short_row(number(SIGHTINGS_MAX), 1, 0), 2000);
	assert_non_null(find(&all, number(SIGHTINGS_MAX))); /* they give way, the one seen longest ago first */
	assert_null(find(&all, number(0)));
	assert_int_equal(all.count, SIGHTINGS_MAX);
	sightings_sweep(&all, 2000);
	assert_false(all.truncated);
}

TEST(locks_that_nobody_uses_and_of_which_nothing_is_kept_go)
{
	NEW_SIGHTINGS(all);

	sightings_take_far(&all, far_row("a", 0, 1), 1000);
	assert_int_equal(all.count, 1);
	sightings_take_far(&all, far_row("a", 0, 0), 2000);
	sightings_sweep(&all, 2000);
	assert_int_equal(all.count, 0);
}

TEST(of_one_lock_the_latest_changes_are_kept)
{
	NEW_SIGHTINGS(all);
	struct sighting *s;
	char text_of[64];

	for (int i = 1; i <= SIGHTINGS_CHANGES_MAX + 5; i++)
		sightings_take_here(&all, row("a", 0, 0, i, i), 1000 + i);
	s = find(&all, "a");
	assert_int_equal(s->change_count, SIGHTINGS_CHANGES_MAX);
	assert_int_equal(all.change_count, SIGHTINGS_CHANGES_MAX);
	assert_string_equal(TAILQ_FIRST(&s->changes)->text, "held on this host by job, pid 6");
	snprintf(text_of, sizeof(text_of), "held on this host by job, pid %d", SIGHTINGS_CHANGES_MAX + 5);
	assert_string_equal(latest(s), text_of);
}

TEST(of_all_locks_the_latest_changes_are_kept)
{
	enum { LOCKS = SIGHTINGS_CHANGES_ALL_MAX / 10 };
	NEW_SIGHTINGS(all);

	for (int round = 1; round <= 11; round++)
		for (int i = 0; i < LOCKS; i++)
			sightings_take_here(&all, row(number(i), 0, 0, round, round), 1000 * round);
	assert_int_equal(all.change_count, SIGHTINGS_CHANGES_ALL_MAX);
	for (int i = 0; i < LOCKS; i++) {
		assert_int_equal(find(&all, number(i))->change_count, 10);
		assert_string_equal(TAILQ_FIRST(&find(&all, number(i))->changes)->text,
				    "held on this host by job, pid 2");
	}
}
