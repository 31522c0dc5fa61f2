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

#undef TEST
#define TEST(name) TEST_WITH(name, fake_begin, fake_end)

enum { PAUSE_US = 1100000 }; /* a handle that sends nothing looks at its connection once a second */

static void fall_silent(void)
{
	usleep(PAUSE_US); /* only time lets it look */
}

static struct lb *opened(void)
{
	struct lb *lb;

	assert_int_equal(lb_open(fake.socket, &lb), LB_OK);
	return lb;
}

static int64_t locked(struct lb *lb, const char *name)
{
	int64_t token = -1;

	assert_int_equal(lb_lock(lb, name, &token), LB_OK);
	return token;
}

/* The requests that the daemon has got so far. An unlock does not wait for its answer, but the command here does. */
static int requests(struct lb *lb)
{
	assert_int_equal(lb_downgrade(lb, "nothing"), LB_REFUSED);
	return fake.requests;
}

static int pair(struct lb *lb, const char *name)
{
	int before = requests(lb);

	locked(lb, name);
	assert_int_equal(lb_unlock(lb, name), LB_OK);
	return requests(lb) - before;
}

static void delegate(struct lb *lb, const char *name)
{
	for (int i = 0; i < 3; i++)
		pair(lb, name);
	assert_int_equal(fake.asked, 1);
}

TEST(what_was_taken_often_is_taken_without_a_message)
{
	struct lb *lb = opened();
	int64_t token, ms;
	int before;

	(void)state;
	delegate(lb, "a");
	before = requests(lb);
	token = locked(lb, "a");
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	assert_true(ms > 1000);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(locked(lb, "a"), token);
		assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	}
	assert_int_equal(requests(lb), before);
	assert_int_equal(fake.page->slots[fake_lock_of("a")->slot - 1].uses, 1001);
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
	lb_close(lb);
}

static int read_pair(struct lb *lb, const char *name)
{
	int before = requests(lb);

	assert_int_equal(lb_lock_shared(lb, name, -1, NULL), LB_OK);
	assert_int_equal(lb_unlock(lb, name), LB_OK);
	return requests(lb) - before;
}

TEST(what_was_read_often_is_read_without_a_message)
{
	struct lb *lb = opened();

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(read_pair(lb, "a") > 0);
	assert_int_equal(read_pair(lb, "a"), 0);
	/* A lock that is delegated to read cannot be taken to write without a message, nor the other way round. */
	assert_int_equal(pair(lb, "a"), 1);
	assert_int_equal(pair(lb, "a"), 0);
	assert_int_equal(read_pair(lb, "a"), 1);
	assert_int_equal(read_pair(lb, "a"), 0);
	fake_with(fake_recall, "a");
	assert_int_equal(read_pair(lb, "a"), 1);
	assert_int_equal(lb_lock_shared(lb, "a", -1, NULL), LB_OK);
	fake_with(fake_lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	lb_close(lb);
}

TEST(what_was_taken_back_is_asked_for)
{
	struct lb *lb = opened();
	int64_t token;

	(void)state;
	delegate(lb, "a");
	token = locked(lb, "a");
	lb_unlock(lb, "a");
	fake_with(fake_recall, "a");
	assert_true(locked(lb, "a") > token);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

TEST(what_is_wanted_is_released_by_message)
{
	struct lb *lb = opened();
	int before;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	fake_with(fake_recall, "a");
	before = requests(lb);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(requests(lb), before + 1);
	assert_int_equal(fake_lock_of("a")->depth, 0);
	assert_int_equal(pair(lb, "a"), 1);
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

TEST(a_loss_is_told_by_the_unlock)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	fake_with(fake_lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	assert_int_equal(pair(lb, "a"), 1);
	/* While it is free, nobody has lost anything. */
	fake_with(fake_lose, "a");
	assert_int_equal(pair(lb, "a"), 1);
	lb_close(lb);
}

/* Of another lock, too, whose unlock did not wait for its answer. */
TEST(a_loss_is_told_by_the_next_lock)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	lb_set_delegation(lb, 0);
	locked(lb, "b");
	lb_set_delegation(lb, 1);
	fake_with(fake_lose, "b");
	assert_int_equal(lb_unlock(lb, "b"), LB_OK);
	assert_int_equal(lb_lock(lb, "a", NULL), LB_LOST);
	assert_non_null(strstr(lb_error(lb), "Unlocking b: "));
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
	lb_close(lb);
}

TEST(a_lost_session_is_told_by_the_unlock)
{
	struct lb *lb = opened();
	int before;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	fake_prove(2, 1000LL * FAR_NS);
	fake_with(fake_lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	assert_int_equal(pair(lb, "a"), 1);
	/* The page is written first, and the word later. */
	fake_prove(3, 1000LL * FAR_NS);
	assert_int_equal(pair(lb, "a"), 1);
	locked(lb, "a");
	fake_prove(4, 1000LL * FAR_NS);
	before = requests(lb);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(requests(lb), before + 1);
	lb_close(lb);
}

/* Nobody but the daemon can tell whether it is a loss. */
TEST(after_the_end_of_the_proof_the_unlock_asks)
{
	struct lb *lb = opened();
	int64_t ms = 1;
	int before;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	fake_prove(1, 0);
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	assert_int_equal(ms, 0);
	before = requests(lb);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(requests(lb), before + 1);
	lb_close(lb);
}

TEST(a_proof_that_is_too_short_is_not_enough_to_enter)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	fake_prove(1, FAR_NS / 4);
	assert_int_not_equal(pair(lb, "a"), 0);
	fake_prove(1, 1000LL * FAR_NS);
	pair(lb, "a");
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

TEST(a_second_level_is_asked_for)
{
	struct lb *lb = opened();
	int64_t token;

	(void)state;
	delegate(lb, "a");
	token = locked(lb, "a");
	assert_int_equal(locked(lb, "a"), token);
	assert_int_equal(fake_lock_of("a")->depth, 2);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
	lb_close(lb);
}

TEST(who_is_refused_does_not_ask_again)
{
	struct lb *lb = opened();

	(void)state;
	fake.refuses = true;
	for (int i = 0; i < 10; i++)
		pair(lb, "a");
	assert_int_equal(fake.asked, 1);
	lb_close(lb);
}

TEST(where_nothing_is_offered_nothing_is_asked)
{
	struct lb *lb;

	(void)state;
	fake.offers = false;
	lb = opened();
	for (int i = 0; i < 10; i++)
		pair(lb, "a");
	assert_int_equal(fake.asked, 0);
	lb_close(lb);
}

TEST(a_program_can_do_without)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	lb_set_delegation(lb, 0);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_not_equal(pair(lb, "a"), 0);
	assert_int_not_equal(pair(lb, "a"), 0);
	lb_set_delegation(lb, 1);
	pair(lb, "a");
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

TEST(there_may_be_more_names_than_slots)
{
	struct lb *lb = opened();
	char name[16];

	(void)state;
	delegate(lb, "n0");
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 70; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			pair(lb, name);
		}
	assert_int_equal(pair(lb, "n62"), 0);
	assert_int_not_equal(pair(lb, "n69"), 0);
	fake_with(fake_recall, "n5");
	assert_int_not_equal(pair(lb, "n69"), 0);
	assert_int_equal(pair(lb, "n69"), 0);
	assert_int_not_equal(pair(lb, "n5"), 0);
	lb_close(lb);
}

TEST(a_child_has_no_delegations)
{
	struct lb *lb = opened();
	int status, before;
	pid_t child;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	before = requests(lb);
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
	lb_close(lb);
}

TEST(the_end_of_the_connection_is_a_loss)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	fake_with(fake_recall, "a");
	shutdown(fake.connection, SHUT_RDWR);
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	fake.asked = 0;
	delegation_init(fake.page);
	pair(lb, "a");
	delegate(lb, "a");
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

/* Without ZooKeeper its proof has no end: who goes on with the page's clients may not go on with this one. */
TEST(a_page_that_has_moved_does_not_hide_the_end_of_the_connection)
{
	struct lb *lb = opened();
	int64_t ms = 1;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	session_page_move(fake.session);
	shutdown(fake.connection, SHUT_RDWR);
	assert_int_equal(lb_valid(lb, "a", &ms), LB_CONNECTION);
	lb_close(lb);
}

/*
 * Without ZooKeeper the session page proves without an end, and where the daemon's directory was lost, no later daemon
 * writes into that page: only the connection shows that another daemon grants the lock.
 */
TEST(after_a_pause_it_looks_at_the_connection)
{
	struct lb *lb = opened();
	int64_t ms = 1;
	int before;

	(void)state;
	delegate(lb, "a");
	assert_int_equal(pair(lb, "a"), 0);
	before = requests(lb);
	shutdown(fake.connection, SHUT_RDWR);
	fall_silent();
	locked(lb, "a");
	assert_true(fake.requests > before);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	fake.asked = 0;
	delegation_init(fake.page);
	delegate(lb, "a");
	locked(lb, "a");
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	shutdown(fake.connection, SHUT_RDWR);
	fall_silent();
	assert_int_equal(lb_valid(lb, "a", &ms), LB_CONNECTION);
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	lb_close(lb);
}

TEST(after_a_pause_the_unlock_looks_at_the_connection)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	shutdown(fake.connection, SHUT_RDWR);
	fall_silent();
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	lb_close(lb);
}
