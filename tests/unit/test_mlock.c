/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an MLOCK (mlock.h), driven by how its requests end; nothing above the floor of clients is linked. */
#include "lock_fixture.h"

#include "core/client/mlock.h"
#include "core/client/tell.h"
#include "core/kind/kinds.h"

static struct fixture *f;
static struct client *c;

static int set_up(void **state)
{
	f = fixture_new(kind_rules);
	c = &f->clients[0];
	return 0;
}

static int tear_down(void **state)
{
	if (c->mlock)
		mlock_free(c->mlock);
	fixture_free(f);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

/* What its client was answered since the last time; "": nothing. */
static const char *answered(void)
{
	bytes_clear(&f->said);
	for (size_t i = 0; i < f->out.count; i++)
		if (f->out.list[i].type == EFFECT_REPLY)
			bytes_slice(&f->said, effects_slice(&f->out, f->out.list[i].text));
	bytes_char(&f->said, '\0');
	effects_clear(&f->out);
	return f->said.data;
}

/* Words of an MLOCK, separated by spaces. */
static void asks(const char *line)
{
	struct slice argv[16];
	size_t argc = 0;

	for (; *line; line += strspn(line, " ")) {
		argv[argc] = (struct slice){ line, strcspn(line, " ") };
		line += argv[argc++].len;
	}
	c->asking = true;
	mlock_lock(c, &(struct call){ .client = c, .command = COMMAND_MLOCK, .argc = argc, .argv = argv });
}

static struct lock *waits_for(const char *name)
{
	assert_non_null(c->request);
	assert_true(slice_eq(bytes_view(&c->request->lock->name), slice_of(name)));
	return c->request->lock;
}

static void goes_on(void)
{
	tell_all(&f->locks);
	while (!TAILQ_EMPTY(&f->locks.mlocks))
		mlock_continue(&f->locks);
}

static void gets(const char *name, int64_t token)
{
	waits_for(name);
	request_grant(c->request, token);
	goes_on();
}

static struct grant *grant(const char *name)
{
	struct lock *lock = lock_find(&f->locks, slice_of(name));

	return lock ? grant_find(lock, c) : NULL;
}

static void holds(const char *name, int64_t token)
{
	fixture_grant(lock_named(f, name), c, token, 0);
}

TEST(locks_are_taken_in_the_order_of_their_names)
{
	asks("MLOCK 3 b c a");
	gets("a", 1);
	gets("b", 2);
	assert_string_equal(answered(), "");
	gets("c", 3);
	/* As they were named. */
	assert_string_equal(answered(), "*3\r\n:2\r\n:3\r\n:1\r\n");
	assert_null(c->mlock);
	assert_int_equal(c->grant_count, 3);
}

TEST(what_was_taken_is_let_go_when_the_time_runs_out)
{
	asks("MLOCK 2 a b WAIT 100");
	gets("a", 1);
	waits_for("b");
	request_time_out(c->request);
	goes_on();
	assert_string_equal(answered(), "*-1\r\n");
	assert_true(!c->mlock && !c->grant_count);
}

TEST(the_deadline_is_one_for_all)
{
	asks("MLOCK 2 a b WAIT 100");
	f->env.now_ns += 60000000;
	gets("a", 1);
	waits_for("b");
	assert_int_equal(c->request->timer.due_ns, f->env.now_ns + 40000000);
	/* CLIENT UNBLOCK: what it asks for next is a try. */
	mlock_hurry(c->mlock);
	assert_int_equal(c->mlock->until_ns, f->env.now_ns);
}

TEST(an_error_names_the_lock_and_takes_nothing)
{
	asks("MLOCK 2 a b");
	gets("a", 1);
	request_fail(c->request, ERROR_UNAVAILABLE, "no");
	goes_on();
	assert_string_equal(answered(), "-UNAVAILABLE no: b\r\n");
	assert_true(!c->mlock && !c->grant_count);
}

TEST(a_loss_on_the_way_begins_again_and_is_not_told)
{
	asks("MLOCK 2 a b");
	gets("a", 1);
	waits_for("b");
	grant_lose(grant("a"), LOSS_DELETED);
	tell_all(&f->locks);
	assert_true(TAILQ_EMPTY(&c->notifications));
	goes_on();
	waits_for("a");
	assert_int_equal(c->grant_count, 0);
	assert_int_equal(f->env.stats.multi_again_total, 1);
	gets("a", 5);
	gets("b", 6);
	assert_string_equal(answered(), "*2\r\n:5\r\n:6\r\n");
}

TEST(a_loss_before_the_last_one_is_gone_on_with_begins_again)
{
	asks("MLOCK 2 a b");
	gets("a", 1);
	request_grant(c->request, 2);
	tell_all(&f->locks);
	assert_int_equal(c->mlock->state, MLOCK_NEXT);
	grant_lose(grant("a"), LOSS_DELETED);
	goes_on();
	assert_string_equal(answered(), "");
	waits_for("a");
	assert_null(grant("b"));
}

TEST(what_was_held_before_forbids_the_whole)
{
	holds("b", 9);
	asks("MLOCK 2 a b");
	assert_string_equal(answered(), "-HELD this connection holds it already; say REENTER to enter it again, or use "
					"one connection for each thread: b\r\n");
	assert_true(!c->request && grant("b")->depth == 1);
}

TEST(or_it_counts_as_taken)
{
	holds("b", 9);
	asks("MLOCK 2 a b REENTER");
	assert_int_equal(grant("b")->depth, 1);
	gets("a", 1);
	assert_string_equal(answered(), "*2\r\n:1\r\n:9\r\n");
	assert_int_equal(grant("b")->depth, 2);
}

TEST(what_was_held_before_stays_when_it_fails)
{
	holds("a", 9);
	asks("MLOCK 2 a b REENTER");
	waits_for("b");
	request_time_out(c->request);
	goes_on();
	assert_string_equal(answered(), "*-1\r\n");
	assert_int_equal(grant("a")->depth, 1);
}

TEST(a_loss_of_what_was_held_before_ends_it)
{
	holds("a", 9);
	asks("MLOCK 2 a b REENTER");
	waits_for("b");
	grant_lose(grant("a"), LOSS_DELETED);
	goes_on();
	assert_string_equal(answered(), "-LOST an earlier grant of this lock was lost; ask again: a\r\n");
	assert_true(!c->mlock && !c->request && !c->grant_count);
}

TEST(a_loss_of_another_lock_is_its_client_s)
{
	holds("z", 9);
	asks("MLOCK 2 a b");
	grant_lose(grant("z"), LOSS_DELETED);
	goes_on();
	waits_for("a");
	assert_false(TAILQ_EMPTY(&c->notifications));
}

TEST(leases_begin_when_all_is_there)
{
	asks("MLOCK 2 a b LEASE 1000");
	gets("a", 1);
	assert_int_equal(grant_lease_rest_ns(grant("a")), INT64_MAX);
	f->env.now_ns += 500000000;
	gets("b", 2);
	assert_int_equal(grant_lease_rest_ns(grant("a")), 1000000000);
	assert_int_equal(grant_lease_rest_ns(grant("b")), 1000000000);
}
