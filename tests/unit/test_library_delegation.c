/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of a delegation, with a daemon of a page: what is a message, what is none, and what a loss comes to. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "client-lib/lockbroker.h"
#include "fake_daemon.h"
#include "protocol/session_page.h"

enum { PAUSE_US = 1100000 }; /* a handle that sends nothing looks at its connection once a second */

static void fall_silent(void)
{
	usleep(PAUSE_US); /* only time lets it look */
}

static struct lb *lb;

static int begin(void **state)
{
	int rc = fake_begin(state);

	assert_int_equal(lb_open(fake.socket, &lb), LB_OK);
	return rc;
}

static int end(void **state)
{
	lb_close(lb);
	return fake_end(state);
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static int64_t locked(const char *name)
{
	int64_t token = -1;

	assert_int_equal(lb_lock(lb, name, &token), LB_OK);
	return token;
}

/* The requests that the daemon has got so far. An unlock does not wait for its answer, but the command here does. */
static int requests(void)
{
	assert_int_equal(lb_downgrade(lb, "nothing"), LB_REFUSED);
	return fake.requests;
}

static int pair(const char *name)
{
	int before = requests();

	locked(name);
	assert_int_equal(lb_unlock(lb, name), LB_OK);
	return requests() - before;
}

static void delegate(const char *name)
{
	for (int i = 0; i < 3; i++)
		pair(name);
	assert_int_equal(fake.asked, 1);
}

/* The lock "a", by its word. */
static void hold_delegated(void)
{
	delegate("a");
	locked("a");
}

TEST(what_was_taken_often_is_taken_without_a_message)
{
	int64_t token, ms;
	int before;

	delegate("a");
	before = requests();
	token = locked("a");
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	assert_true(ms > 1000);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(locked("a"), token);
		assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	}
	assert_int_equal(requests(), before);
	assert_int_equal(fake.page->slots[fake_lock_of("a")->slot - 1].uses, 1001);
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
}

static int read_pair(const char *name)
{
	int before = requests();

	assert_int_equal(lb_lock_shared(lb, name, -1, NULL), LB_OK);
	assert_int_equal(lb_unlock(lb, name), LB_OK);
	return requests() - before;
}

TEST(what_was_read_often_is_read_without_a_message)
{
	for (int i = 0; i < 3; i++)
		assert_true(read_pair("a") > 0);
	assert_int_equal(read_pair("a"), 0);
	/* A lock that is delegated to read cannot be taken to write without a message, nor the other way round. */
	assert_int_equal(pair("a"), 1);
	assert_int_equal(pair("a"), 0);
	assert_int_equal(read_pair("a"), 1);
	assert_int_equal(read_pair("a"), 0);
	fake_with(fake_recall, "a");
	assert_int_equal(read_pair("a"), 1);
	assert_int_equal(lb_lock_shared(lb, "a", -1, NULL), LB_OK);
	fake_with(fake_lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
}

TEST(what_was_taken_back_is_asked_for)
{
	int64_t token;

	delegate("a");
	token = locked("a");
	lb_unlock(lb, "a");
	fake_with(fake_recall, "a");
	assert_true(locked("a") > token);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(pair("a"), 0);
}

TEST(what_is_wanted_is_released_by_message)
{
	int before;

	hold_delegated();
	fake_with(fake_recall, "a");
	before = requests();
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(requests(), before + 1);
	assert_int_equal(fake_lock_of("a")->depth, 0);
	assert_int_equal(pair("a"), 1);
	assert_int_equal(pair("a"), 0);
}

TEST(a_loss_is_told_by_the_unlock)
{
	hold_delegated();
	fake_with(fake_lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	assert_int_equal(pair("a"), 1);
	/* While it is free, nobody has lost anything. */
	fake_with(fake_lose, "a");
	assert_int_equal(pair("a"), 1);
}

/* Of another lock, too, whose unlock did not wait for its answer. */
TEST(a_loss_is_told_by_the_next_lock)
{
	delegate("a");
	lb_set_delegation(lb, 0);
	locked("b");
	lb_set_delegation(lb, 1);
	fake_with(fake_lose, "b");
	assert_int_equal(lb_unlock(lb, "b"), LB_OK);
	assert_int_equal(lb_lock(lb, "a", NULL), LB_LOST);
	assert_non_null(strstr(lb_error(lb), "Unlocking b: "));
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
}

TEST(a_lost_session_is_told_by_the_unlock)
{
	int before;

	hold_delegated();
	fake_prove(2, 1000LL * FAR_NS);
	fake_with(fake_lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	assert_int_equal(pair("a"), 1);
	/* The page is written first, and the word later. */
	fake_prove(3, 1000LL * FAR_NS);
	assert_int_equal(pair("a"), 1);
	locked("a");
	fake_prove(4, 1000LL * FAR_NS);
	before = requests();
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(requests(), before + 1);
}

/* Nobody but the daemon can tell whether it is a loss. */
TEST(after_the_end_of_the_proof_the_unlock_asks)
{
	int64_t ms = 1;
	int before;

	hold_delegated();
	fake_prove(1, 0);
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	assert_int_equal(ms, 0);
	before = requests();
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(requests(), before + 1);
}

TEST(a_proof_that_is_too_short_is_not_enough_to_enter)
{
	delegate("a");
	fake_prove(1, FAR_NS / 4);
	assert_int_not_equal(pair("a"), 0);
	fake_prove(1, 1000LL * FAR_NS);
	pair("a");
	assert_int_equal(pair("a"), 0);
}

TEST(a_second_level_is_asked_for)
{
	int64_t token;

	delegate("a");
	token = locked("a");
	assert_int_equal(locked("a"), token);
	assert_int_equal(fake_lock_of("a")->depth, 2);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
}

TEST(who_is_refused_does_not_ask_again)
{
	fake.refuses = true;
	for (int i = 0; i < 10; i++)
		pair("a");
	assert_int_equal(fake.asked, 1);
}

TEST(where_nothing_is_offered_nothing_is_asked)
{
	lb_close(lb);
	fake.offers = false;
	assert_int_equal(lb_open(fake.socket, &lb), LB_OK);
	for (int i = 0; i < 10; i++)
		pair("a");
	assert_int_equal(fake.asked, 0);
}

TEST(a_program_can_do_without)
{
	hold_delegated();
	lb_set_delegation(lb, 0);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_not_equal(pair("a"), 0);
	assert_int_not_equal(pair("a"), 0);
	lb_set_delegation(lb, 1);
	pair("a");
	assert_int_equal(pair("a"), 0);
}

TEST(there_may_be_more_names_than_slots)
{
	char name[16];

	delegate("n0");
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 70; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			pair(name);
		}
	assert_int_equal(pair("n62"), 0);
	assert_int_not_equal(pair("n69"), 0);
	fake_with(fake_recall, "n5");
	assert_int_not_equal(pair("n69"), 0);
	assert_int_equal(pair("n69"), 0);
	assert_int_not_equal(pair("n5"), 0);
}

TEST(a_child_has_no_delegations)
{
	int status, before;
	pid_t child;

	hold_delegated();
	before = requests();
	child = fork();
	if (child == 0) {
		/* It goes on in place of its parent, which does nothing meanwhile. */
		bool well = lb_unlock(lb, "a") == LB_OK && lb_lock(lb, "a", NULL) == LB_OK && lb_unlock(lb, "a") == LB_OK;

		lb_close(lb);
		_exit(well ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(fake.requests > before);
}

TEST(the_end_of_the_connection_is_a_loss)
{
	hold_delegated();
	fake_with(fake_recall, "a");
	shutdown(fake.connection, SHUT_RDWR);
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	fake.asked = 0;
	delegation_init(fake.page);
	pair("a");
	delegate("a");
	assert_int_equal(pair("a"), 0);
}

/* Without ZooKeeper its proof has no end: who goes on with the page's clients may not go on with this one. */
TEST(a_page_that_has_moved_does_not_hide_the_end_of_the_connection)
{
	int64_t ms = 1;

	hold_delegated();
	session_page_move(fake.session);
	shutdown(fake.connection, SHUT_RDWR);
	assert_int_equal(lb_valid(lb, "a", &ms), LB_CONNECTION);
}

/*
 * Without ZooKeeper the session page proves without an end, and where the daemon's directory was lost, no later daemon
 * writes into that page: only the connection shows that another daemon grants the lock.
 */
TEST(after_a_pause_it_looks_at_the_connection)
{
	int64_t ms = 1;
	int before;

	delegate("a");
	assert_int_equal(pair("a"), 0);
	before = requests();
	shutdown(fake.connection, SHUT_RDWR);
	fall_silent();
	locked("a");
	assert_true(fake.requests > before);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	fake.asked = 0;
	delegation_init(fake.page);
	hold_delegated();
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	shutdown(fake.connection, SHUT_RDWR);
	fall_silent();
	assert_int_equal(lb_valid(lb, "a", &ms), LB_CONNECTION);
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
}

TEST(after_a_pause_the_unlock_looks_at_the_connection)
{
	hold_delegated();
	shutdown(fake.connection, SHUT_RDWR);
	fall_silent();
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
}
