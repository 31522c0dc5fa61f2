/* SPDX-License-Identifier: Apache-2.0 */
/* Getting permits between hosts, and losing them: the turn in the mutex, the leases, and room for them (semaphore.h). */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "core/znode/contender.h"
#include "semaphore_fixture.h"
#include "core_test.h"

static const char foreign_turn[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000001";

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 4, state);
}

TEST(a_new_semaphore_is_made_with_its_limit_before_its_parts)
{
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_serve(f, EFFECT_ZK_GET, "/lb/s", ZK_NONODE);
	assert_string_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/s")->data, SEMAPHORE_DATA(3));
	assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/s")->effect.create, ZK_CONTAINER);
	fixture_answer(f, ZK_OK);
	fixture_serve_get(f, "/lb/s", 1, 0, SEMAPHORE_DATA(3));
	fixture_serve(f, EFFECT_ZK_CREATE, "/lb/s/locks", ZK_OK);
	fixture_serve(f, EFFECT_ZK_CREATE, "/lb/s/leases", ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
}

TEST(nothing_is_put_into_a_locks_directory)
{
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_expect(f, 0, "-MISMATCH this name is in use as a lock, not as a semaphore, "
		    "until some minutes after its last use: s");
	fixture_no_op(f);
}

TEST(permits_that_are_too_many_wait_for_room)
{
	char mutex[128], a[128], b[128];
	const char *crowded[] = { foreign_lease, a, b }, *room[] = { a, b };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 2 COUNT 2");
	turn_comes(f, SEMAPHORE_DATA(2), mutex);
	turn_listed(f, mutex);
	fixture_serve_made(f, "-lease-", 2, 80, a);
	fixture_serve_made(f, "-lease-", 3, 81, b);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 3, crowded);
	fixture_expect(f, 0, "");
	turn_listed(f, mutex);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases")->effect.watch);
	fixture_answer_list(f, 2, 3, crowded);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 2, room);
	fixture_expect(f, 0, ":2");
}

TEST(a_try_that_finds_no_room_is_nil)
{
	char mutex[128], lease[128];
	const char *crowded[] = { foreign_lease, "_c_x-lease-0000000002", lease };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 2 WAIT 0");
	turn_comes(f, SEMAPHORE_DATA(2), mutex);
	turn_listed(f, mutex);
	fixture_answer_made(f, 3, 80, lease, sizeof(lease));
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 3, crowded);
	fixture_expect(f, 0, "$-1");
}

TEST(a_try_behind_another_hosts_turn_is_nil)
{
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 WAIT 0");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_answer_made(f, 5, 70, f->znode, sizeof(f->znode));
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_turn, f->znode });
	fixture_expect(f, 0, "$-1");
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
}

/* It is listed now and then by who waits elsewhere, too: what is left of its host there keeps the one before it waiting. */
TEST(who_waits_long_looks_at_the_leases)
{
	char mutex[128], stray[128];
	bool deleted = false;

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_answer_made(f, 5, 70, mutex, sizeof(mutex));
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_turn, mutex });
	snprintf(stray, sizeof(stray), "%.*slease-0000000009", (int)(strlen(mutex) - strlen("lock-0000000005")), mutex);
	for (int i = 0; i < 400; i++) {
		while (fixture_is_open(f)) {
			const struct fixture_op *op = fixture_oldest(f);
			bool list = op->effect.type == EFFECT_ZK_LIST;

			deleted = deleted || (op->effect.type == EFFECT_ZK_DELETE && strstr(op->path, stray));
			if (list && strstr(op->path, "/leases"))
				fixture_answer_list(f, 2, 1, (const char *[]){ stray });
			else if (list)
				fixture_answer_list(f, 1, 2, (const char *[]){ foreign_turn, mutex });
			else
				fixture_answer(f, ZK_OK);
		}
		fixture_pass(f, 100);
	}
	assert_true(deleted);
}

TEST(a_client_that_goes_gives_its_permits_back)
{
	permit_held(f, f->znode);
	fixture_answer_session(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
}

/* What is put into the mutex is paid for by the user of the first in line, whose account ends with its last client. */
TEST(who_waits_no_longer_pays_for_nothing)
{
	struct client *second;
	char lease[128], mutex[128];
	const struct lock *lock;

	permit_held(f, lease);
	fixture_answer_session(f);
	fixture_connect_as(f, 5, 1001, SLICE(""), false);
	fixture_ask(f, 5, "ACQUIRE s LIMIT 3");
	fixture_answer_made(f, 9, 90, mutex, sizeof(mutex));
	second = f->broker->locks.conns[5];
	lock = second->request->lock;
	assert_ptr_equal(lock->directory.payer, second->account);
	/* As at its end, when its account goes in the same event. */
	request_end(second->request);
	assert_ptr_equal(lock->directory.payer, f->broker->locks.conns[0]->account);
	fixture_simple(f, EVENT_CLIENT_GONE, 5);
	fixture_answer_session(f);
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", "");
}

TEST(a_lease_that_ends_gives_the_znode_back)
{
	permit_held(f, f->znode);
	fixture_say(f, 0, "RENEW s 100", ":1");
	fixture_answer_session(f);
	fixture_pass(f, 100);
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-LOST the lease of the permits ran out: s");
}

TEST(a_deleted_permit_is_lost)
{
	permit_held(f, f->znode);
	fixture_pass(f, 1100);
	while (!strstr(fixture_oldest(f)->path, "lease-"))
		fixture_answer(f, ZK_OK);
	fixture_serve(f, EFFECT_ZK_GET, f->znode, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 0, NULL);
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-LOST earlier permits of this semaphore were lost; ask again: s");
}

/* The list that shows that there is no room shows the loss, too: nil would say that only room is missing. */
TEST(a_try_is_told_the_loss_and_not_that_there_is_no_room)
{
	char lease[128], mutex[128], a[128], b[128];
	const char *crowded[] = { foreign_lease, "_c_x-lease-0000000002", a, b };

	permit_held(f, lease);
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 2 WAIT 0");
	fixture_serve_made(f, "-lock-", 6, 71, mutex);
	turn_listed(f, mutex);
	fixture_answer_made(f, 7, 81, a, sizeof(a));
	fixture_answer_made(f, 8, 82, b, sizeof(b));
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 4, crowded);
	fixture_expect(f, 0, "-LOST earlier permits of this semaphore were lost; ask again: s");
}

TEST(a_lost_session_loses_all_permits)
{
	permit_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_say(f, 0, "RELEASE s", "-LOST the permits were lost before they were released: s");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client has 0 permits and cannot release 1");
}

/* Under a new session each of the two directories waits for a while, by chance: that of the leases may be later. */
TEST(who_waits_when_a_session_begins_is_served)
{
	struct there t;

	permit_held(f, f->znode); /* it is lost, and is not told: the semaphore stays known */
	for (int round = 1; round <= 10; round++) {
		t = (struct there){ .zxid = round * 100 };
		fixture_simple(f, EVENT_ZK_EXPIRED, 0);
		fixture_zk_connected(f, SESSION + round);
		there_answer(f, &t);
		if (round > 1)
			fixture_say(f, 1, "RELEASE s", "-LOST the permits were lost before they were released: s");
		fixture_ask(f, 1, "ACQUIRE s LIMIT 3");
		for (int step = 0; step < 30; step++) {
			there_answer(f, &t);
			fixture_pass(f, 10);
		}
		there_answer(f, &t);
		fixture_expect(f, 1, ":1");
	}
}

/* Directories that are only remembered make room. */
TEST(idle_locks_are_forgotten_for_a_semaphore)
{
	f->conf.limits.locks = 1;
	fixture_lock_held(f, 0, "l", 5, 77, f->znode, sizeof(f->znode));
	bytes_clear(&f->replies[0]);
	fixture_say(
		f, 0, "ACQUIRE s LIMIT 2",
		"-LIMIT user 1000 uses 1 of 1 allowed names of locks in use (limits.locks, limits.user_share): "
		"release some before you ask for more: s");
	fixture_say(f, 0, "UNLOCK l", ":0");
	fixture_answer_session(f);
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", "");
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
}

/* Permits that are being given back make room for those that are asked for next. */
TEST(znodes_that_leave_make_room_for_permits)
{
	struct there t = { 0 };

	fixture_operators(f, false);
	f->conf.linger_ns = 1000 * MS;
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 3");
	there_answer(f, &t);
	fixture_expect(f, 0, ":3");
	f->conf.limits.session_path_bytes = fixture_total(5 * (sizeof("/lb/s/leases") + CONTENDER_NAME_MAX));
	fixture_say(f, 0, "RELEASE s COUNT 3", ":0");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 3", "");
	t.own_count = 0;
	there_answer(f, &t);
	fixture_expect(f, 0, ":3");
	f->conf.limits.session_path_bytes = fixture_total(3 * (sizeof("/lb/s/leases") + CONTENDER_NAME_MAX));
	fixture_ask(f, 1, "ACQUIRE s LIMIT 3");
	there_answer(f, &t);
	fixture_expect(
		f, 1,
		"-LIMIT user 1000 uses 303 of 231 allowed bytes of znode paths in this host's session (limits.session_path_bytes, "
		"limits.user_share): release some locks before you ask for more: s");
}

/* More than may be under way at a time (operation.c): each place that comes free is for one of them, not for a list. */
TEST(many_permits_are_made_and_listed_once)
{
	enum { MANY = 400 };
	static char mutex[128], names[MANY][128];
	static const char *children[MANY];
	int made = 0, lists = 0;

	f->conf.limits.session_path_bytes = 100000;
	fixture_ask(f, 0, "ACQUIRE s LIMIT 500 COUNT 400");
	for (int i = 0; i < 4 * MANY && fixture_is_open(f); i++) {
		const struct fixture_op *op = fixture_oldest(f);
		bool leases = strstr(op->path, "/leases");

		if (leases && op->effect.type == EFFECT_ZK_CREATE) {
			children[made] = names[made];
			fixture_answer_made(f, (uint32_t)made, 80 + made, names[made], sizeof(names[made]));
			made++;
		} else if (leases && op->effect.type == EFFECT_ZK_LIST) {
			lists++;
			fixture_answer_list(f, 2, (size_t)made, children);
		} else if (op->effect.type == EFFECT_ZK_CREATE) {
			fixture_answer_made(f, 5, 70, mutex, sizeof(mutex));
		} else if (op->effect.type == EFFECT_ZK_LIST) {
			fixture_answer_list(f, 1, 1, (const char *[]){ mutex });
		} else if (op->effect.type == EFFECT_ZK_GET) {
			fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(500));
		} else {
			fixture_answer(f, ZK_OK);
		}
	}
	fixture_expect(f, 0, ":400");
	assert_int_equal(made, MANY);
	assert_int_equal(lists, 1);
}

TEST(permits_that_are_too_many_for_the_session_are_not_begun_with)
{
	struct there t = { 0 };

	fixture_operators(f, false);
	f->conf.limits.session_path_bytes = fixture_total(3 * (sizeof("/lb/s/leases") + CONTENDER_NAME_MAX));
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 3");
	while (fixture_is_open(f)) {
		if (strstr(fixture_oldest(f)->path, "/leases"))
			assert_int_not_equal(fixture_oldest(f)->effect.type, EFFECT_ZK_CREATE);
		there_answer_one(f, &t);
	}
	fixture_expect(
		f, 0,
		"-LIMIT user 1000 uses 75 of 231 allowed bytes of znode paths in this host's session (limits.session_path_bytes, "
		"limits.user_share): release some locks before you ask for more: s");
}

/* Its queue's numbers run out: the directory is made anew once it is empty, and not joined again and again. */
TEST(a_queue_near_the_end_of_its_numbers_is_made_anew)
{
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_serve_made(f, "-lock-", INT32_MAX - 5, 70, f->znode);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/locks");
	fixture_answer_list(f, 9, 1, (const char *[]){ f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	for (int i = 0; i < 3 && fixture_oldest(f)->effect.type == EFFECT_ZK_LIST; i++)
		fixture_answer_list(f, 9, 0, NULL);
	fixture_serve(f, EFFECT_ZK_DELETE, "/lb/s/locks", ZK_OK);
	fixture_serve_made(f, "-lock-", 0, 71, f->znode);
}
