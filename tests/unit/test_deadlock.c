/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a cycle, in a graph of waits that is built by hand. */
#include "core/client/deadlock.h"

#include <string.h>

#include "tests/unit/unit.h"

#include "core/lock/locks.h"

enum { CLIENTS = 4, LOCKS = 3 };

static const struct request_terms exclusive = { .mode = MODE_EXCLUSIVE, .wait_ns = -1 };
static const struct request_terms shared = { .mode = MODE_SHARED, .wait_ns = -1 };
static struct broker_conf conf;
static struct env env;
static struct locks locks;
static struct client clients[CLIENTS];
static struct request waiting[CLIENTS];
static struct lock named[LOCKS];
static struct grant grants[8];
static size_t grant_count;
static struct bytes why;

static int setup(void **state)
{
	conf = (struct broker_conf){ .deadlock_detection = true };
	env = (struct env){ .conf = &conf };
	locks = (struct locks){ .env = &env };
	grant_count = 0;
	for (size_t i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ .locks = &locks, .pid = (uint32_t)i };
		bytes_text(&clients[i].comm, "program");
	}
	for (size_t i = 0; i < LOCKS; i++) {
		named[i] = (struct lock){ .locks = &locks };
		TAILQ_INIT(&named[i].requests);
		TAILQ_INIT(&named[i].grants);
		bytes_char(&named[i].name, (char)('a' + i));
	}
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < CLIENTS; i++)
		bytes_free(&clients[i].comm);
	for (size_t i = 0; i < LOCKS; i++)
		bytes_free(&named[i].name);
	bytes_free(&why);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

static void holds(int client, int lock, enum mode mode)
{
	struct grant *g = &grants[grant_count++];

	*g = (struct grant){ .client = &clients[client], .lock = &named[lock], .mode = mode };
	TAILQ_INSERT_TAIL(&named[lock].grants, g, link);
	clients[client].grant_count++;
}

static struct request *waits(int client, int lock, enum mode mode)
{
	struct client *c = &clients[client];

	c->request = &waiting[client];
	*c->request = (struct request){ .client = c, .lock = &named[lock], .mode = mode };
	c->request_count++;
	TAILQ_INSERT_TAIL(&named[lock].requests, c->request, link);
	return c->request;
}

static bool closes(int client, int lock, const struct request_terms *terms)
{
	bytes_clear(&why);
	return deadlock_look(&clients[client], &named[lock], terms, &why);
}

TEST(two_that_hold_what_the_other_wants)
{
	holds(0, 0, MODE_EXCLUSIVE);
	holds(1, 1, MODE_EXCLUSIVE);
	waits(1, 0, MODE_EXCLUSIVE);
	assert_true(closes(0, 1, &exclusive));
	assert_true(why.len > 0);
	assert_int_equal(env.stats.deadlocks_total, 1);
}

TEST(three_in_a_row_and_the_fourth_that_is_free)
{
	holds(0, 0, MODE_EXCLUSIVE);
	holds(1, 1, MODE_EXCLUSIVE);
	holds(2, 2, MODE_EXCLUSIVE);
	waits(1, 0, MODE_EXCLUSIVE);
	waits(2, 1, MODE_EXCLUSIVE);
	assert_true(closes(0, 2, &exclusive));
	assert_false(closes(3, 2, &exclusive));
}

TEST(readers_do_not_wait_for_each_other)
{
	holds(0, 0, MODE_EXCLUSIVE);
	holds(1, 1, MODE_SHARED);
	waits(1, 0, MODE_EXCLUSIVE);
	assert_false(closes(0, 1, &shared));
	assert_true(closes(0, 1, &exclusive));
}

TEST(a_reader_waits_for_a_writer_that_stands_before_it)
{
	holds(0, 0, MODE_EXCLUSIVE);
	holds(1, 1, MODE_SHARED);
	waits(2, 1, MODE_EXCLUSIVE);
	waits(1, 0, MODE_EXCLUSIVE);
	assert_true(closes(0, 1, &shared));
}

TEST(a_wait_that_ran_out_or_is_queued_is_not_followed)
{
	struct request *r;

	holds(0, 0, MODE_EXCLUSIVE);
	holds(1, 1, MODE_EXCLUSIVE);
	r = waits(1, 0, MODE_EXCLUSIVE);
	r->expired = true;
	assert_false(closes(0, 1, &exclusive));
	r->expired = false;
	r->queued = true;
	assert_false(closes(0, 1, &exclusive));
}

TEST(clients_of_one_group_are_one)
{
	struct group group = { 0 };

	TAILQ_INIT(&group.clients);
	for (int i = 0; i <= 1; i++) {
		clients[i].group = &group;
		TAILQ_INSERT_TAIL(&group.clients, &clients[i], group_link);
	}
	holds(0, 0, MODE_EXCLUSIVE);
	holds(2, 1, MODE_EXCLUSIVE);
	waits(2, 0, MODE_EXCLUSIVE);
	assert_true(closes(1, 1, &exclusive));
	clients[1].group = NULL;
	TAILQ_REMOVE(&group.clients, &clients[1], group_link);
	assert_false(closes(1, 1, &exclusive));
}

TEST(it_can_be_switched_off)
{
	conf.deadlock_detection = false;
	holds(0, 0, MODE_EXCLUSIVE);
	holds(1, 1, MODE_EXCLUSIVE);
	waits(1, 0, MODE_EXCLUSIVE);
	assert_false(closes(0, 1, &exclusive));
}
