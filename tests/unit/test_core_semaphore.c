/* Counting semaphores: permits in standalone mode, and what they ask of ZooKeeper. */
#include "core_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static const char three[] = "1\nkind=semaphore\nlimit=3\n";
static const char two[] = "1\nkind=semaphore\nlimit=2\n";
static const char foreign[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000001";
static const char foreign_mutex[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000001";
static const char other_limit[] = "-MISMATCH another limit was agreed on: LIMIT name tells it";

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 4, state);
}

static int setup_standalone(void **state)
{
	return fixture_setup(fixture_new(true), 4, state);
}

/* ---- standalone ---- */

static void permits_are_counted_and_waited_for_in_order(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", "");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3", ""); /* one is free, and it is not the first */
	fixture_say(f, 0, "RELEASE s", ":1");
	fixture_expect(f, 1, ":2");
	fixture_expect(f, 2, "");
	fixture_say(f, 0, "RELEASE s", ":0");
	fixture_expect(f, 2, ":1");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client does not have that many permits");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_say(f, 2, "ACQUIRE s LIMIT 3 COUNT 2", ":3");
	fixture_say(f, 2, "RELEASE s COUNT 4", "-NOTHELD this client does not have that many permits");
	fixture_say(f, 2, "RELEASE s COUNT 3", ":0");
}

static void a_try_is_answered_at_once(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2 COUNT 2 WAIT 0", "$-1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2 WAIT 0", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2 WAIT 50", "");
	fixture_pass(f, 50);
	fixture_expect(f, 2, "$-1");
}

static void all_agree_on_the_limit_while_anybody_uses_it(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "LIMIT s", "$-1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", other_limit);
	fixture_say(f, 0, "ACQUIRE s LIMIT 1", other_limit); /* and not that it would wait for itself */
	fixture_say(f, 1, "LIMIT s", ":2");
	fixture_say(f, 0, "RELEASE s", ":0");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 0, "LOCK l", ":3072");
	fixture_say(f, 1, "LIMIT l", "-MISMATCH that name is a lock's, not a semaphore's");
}

static void operators_change_the_limit(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 1", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 1", "");
	fixture_say(f, 0, "LIMIT s 2", ":2");
	fixture_expect(f, 1, other_limit);
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", ":1");
	f->conf.uid = 1001;
	fixture_say(f, 0, "LIMIT s 3", "-DENIED limits are changed by root and the daemon's own user only");
}

static void nonsense_is_refused(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 2 COUNT 3",
		    "-ERR ACQUIRE takes LIMIT n, on which all agree, and COUNT of no more than that");
	fixture_say(f, 0, "ACQUIRE s COUNT 1",
		    "-ERR ACQUIRE takes LIMIT n, on which all agree, and COUNT of no more than that");
	fixture_say(f, 0, "ACQUIRE s LIMIT 0", "-ERR LIMIT takes a number of permits, 1..1000000");
	fixture_say(f, 0, "ACQUIRE s LIMIT 1000001", "-ERR LIMIT takes a number of permits, 1..1000000");
	fixture_say(f, 0, "ACQUIRE s LIMIT 1000000", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 1000000 COUNT 1000000",
		    "-DEADLOCK with the permits it has this client would wait for itself");
}

static void locks_and_semaphores_are_told_apart(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "LOCK s", "-MISMATCH that name is a semaphore's, not a lock's");
	fixture_say(f, 1, "LOCK l", ":2048");
	fixture_say(f, 0, "ACQUIRE l LIMIT 2", "-MISMATCH that name is a lock's, not a semaphore's");
	fixture_say(f, 0, "RESET", "+RESET");
	fixture_say(f, 1, "LOCK s", ":3072");
}

static void a_lease_ends_and_the_next_is_served(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 2 COUNT 2 LEASE 100", ":2");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2 LEASE 0", "-ERR LEASE takes milliseconds, 1..31536000000");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", "");
	fixture_pass(f, 99);
	fixture_expect(f, 1, "");
	fixture_pass(f, 1);
	fixture_expect(f, 1, ":1");
	fixture_say(f, 0, "VALID s", ":0");
	fixture_say(f, 0, "RELEASE s", "-LOST the lease of the permits ran out");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client does not have that many permits");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 10", ":1");
	fixture_pass(f, 10);
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 s :0 $5 lease");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 10", ":1");
	fixture_pass(f, 10);
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", "-LOST the lease of the permits ran out");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
}

static void more_permits_never_shorten_a_lease(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 100", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 10", ":2");
	fixture_say(f, 0, "VALID s", ":100");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 200", ":3");
	fixture_say(f, 0, "VALID s", ":200");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5", ":4");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 10", ":5");
	fixture_pass(f, 1000);
	fixture_say(f, 0, "RELEASE s COUNT 5", ":0");
}

static void permits_are_renewed(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 100", ":1");
	fixture_say(f, 0, "RENEW s 300", ":1");
	fixture_say(f, 0, "VALID s", ":300");
	fixture_say(f, 0, "RENEW s 30", ":1");
	fixture_say(f, 1, "RENEW s 30", "-NOTHELD this client does not hold that lock");
	fixture_pass(f, 30);
	fixture_say(f, 0, "RENEW s 30", "-LOST the lease of the grant ran out");
	fixture_say(f, 0, "RENEW s 30", "-NOTHELD this client does not hold that lock");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 0, "RENEW s 20", ":1");
	fixture_pass(f, 20);
	fixture_say(f, 0, "VALID s", ":0");
}

static void who_waits_for_more_and_loses_what_it_has_is_told(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 50", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", "");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2 COUNT 2", "");
	fixture_pass(f, 50);
	fixture_expect(f, 0, "-LOST the lease of the permits ran out");
	fixture_say(f, 1, "RELEASE s", ":0");
	fixture_expect(f, 2, ":2");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client does not have that many permits");
}

/* ---- ZooKeeper ---- */

/* The mutex, from its create on. */
static void take_mutex(struct fixture *f, char *mutex, size_t size)
{
	const char *children[] = { mutex };

	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
	fixture_answer_made(f, 5, 70, mutex, size);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/locks");
	fixture_answer_list(f, 1, 1, children);
}

static void known_and_mutex(struct fixture *f, const char *data, char *mutex, size_t size)
{
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	assert_true(fixture_op(f, EFFECT_ZK_GET, "/lb/s")->effect.watch);
	fixture_answer_get(f, 1, 0, data);
	take_mutex(f, mutex, size);
}

/* Its directory is watched, for a waiter elsewhere. */
static void list_mutex(struct fixture *f, const char *mutex)
{
	const char *children[] = { mutex };

	while (fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_LIST &&
	       strstr(fixture_oldest(f)->path, "/locks"))
		fixture_answer_list(f, 1, 1, children);
}

/* A semaphore of three with one permit held by connection 0; nothing is left open. */
static void hold_one(struct fixture *f, char *lease, size_t size)
{
	char mutex[128];
	const char *leases[] = { lease };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	known_and_mutex(f, three, mutex, sizeof(mutex));
	list_mutex(f, mutex);
	fixture_op(f, EFFECT_ZK_CREATE, "-lease-");
	fixture_answer_made(f, 7, 80, lease, size);
	while (fixture_is_open(f)) {
		const struct fixture_op *op = fixture_oldest(f);
		const char *mutexes[] = { mutex };
		bool list = op->effect.type == EFFECT_ZK_LIST;

		if (list && strstr(op->path, "/leases"))
			fixture_answer_list(f, 2, 1, leases);
		else if (list)
			fixture_answer_list(f, 1, 1, mutexes);
		else
			fixture_answer(f, ZK_OK);
	}
	fixture_expect(f, 0, ":1");
}

static void a_new_semaphore_is_made_with_its_limit_before_its_parts(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer(f, ZK_NONODE);
	assert_string_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/s")->data, three);
	assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/s")->effect.create, ZK_CONTAINER);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer_get(f, 1, 0, three);
	fixture_op(f, EFFECT_ZK_CREATE, "/lb/s/locks");
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "/lb/s/leases");
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
}

static void nothing_is_put_into_a_locks_directory(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_expect(f, 0, "-MISMATCH that name is a lock's, not a semaphore's");
	fixture_no_op(f);
}

static void another_limit_is_refused_and_nothing_created(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, two);
	fixture_expect(f, 0, other_limit);
	fixture_no_op(f);
}

static void who_does_not_say_a_limit_is_told_one_under_the_mutex(void **state)
{
	struct fixture *f = *state;
	char mutex[128];

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	known_and_mutex(f, "10.0.0.7", mutex, sizeof(mutex));
	assert_string_equal(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->data, three);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer_get(f, 1, 0, three);
	list_mutex(f, mutex);
	fixture_op(f, EFFECT_ZK_CREATE, "-lease-");
}

static void permits_that_are_too_many_wait_for_room(void **state)
{
	struct fixture *f = *state;
	char mutex[128], a[128], b[128];
	const char *crowded[] = { foreign, a, b }, *room[] = { a, b };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 2 COUNT 2");
	known_and_mutex(f, two, mutex, sizeof(mutex));
	list_mutex(f, mutex);
	fixture_op(f, EFFECT_ZK_CREATE, "-lease-");
	fixture_answer_made(f, 2, 80, a, sizeof(a));
	fixture_op(f, EFFECT_ZK_CREATE, "-lease-");
	fixture_answer_made(f, 3, 81, b, sizeof(b));
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 3, crowded);
	fixture_expect(f, 0, "");
	list_mutex(f, mutex);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases")->effect.watch);
	fixture_answer_list(f, 2, 3, crowded);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 2, room);
	fixture_expect(f, 0, ":2");
}

static void a_try_that_finds_no_room_is_nil(void **state)
{
	struct fixture *f = *state;
	char mutex[128], lease[128];
	const char *crowded[] = { foreign, "_c_x-lease-0000000002", lease };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 2 WAIT 0");
	known_and_mutex(f, two, mutex, sizeof(mutex));
	list_mutex(f, mutex);
	fixture_answer_made(f, 3, 80, lease, sizeof(lease));
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 3, crowded);
	fixture_expect(f, 0, "$-1");
}

/* Directories that are only remembered make room. */
static void idle_locks_are_forgotten_for_a_semaphore(void **state)
{
	struct fixture *f = *state;
	char name[128];

	f->conf.limits.locks = 1;
	fixture_lock_held(f, 0, "l", 5, 77, name, sizeof(name));
	bytes_clear(&f->replies[0]);
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", "-LIMIT this daemon knows as many locks as it may (limits.locks)");
	fixture_ask(f, 0, "UNLOCK l");
	fixture_answer_session(f);
	bytes_clear(&f->replies[0]);
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", "");
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
}

static void a_client_that_goes_gives_its_permits_back(void **state)
{
	struct fixture *f = *state;
	char lease[128];

	hold_one(f, lease, sizeof(lease));
	fixture_answer_session(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_op(f, EFFECT_ZK_DELETE, lease);
}

static void a_lease_that_ends_gives_the_znode_back(void **state)
{
	struct fixture *f = *state;
	char lease[128];

	hold_one(f, lease, sizeof(lease));
	fixture_say(f, 0, "RENEW s 100", ":1");
	fixture_answer_session(f);
	fixture_pass(f, 100);
	fixture_op(f, EFFECT_ZK_DELETE, lease);
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-LOST the lease of the permits ran out");
}

static void a_deleted_permit_is_lost(void **state)
{
	struct fixture *f = *state;
	char lease[128];

	hold_one(f, lease, sizeof(lease));
	fixture_pass(f, 1100);
	while (!strstr(fixture_oldest(f)->path, "lease-"))
		fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, lease);
	fixture_answer(f, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 0, NULL);
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-LOST earlier permits of this semaphore were lost; ask again");
}

static void a_lost_session_loses_all_permits(void **state)
{
	struct fixture *f = *state;
	char lease[128];

	hold_one(f, lease, sizeof(lease));
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_say(f, 0, "RELEASE s", "-LOST the permits were lost before they were released");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client does not have that many permits");
}

static void whose_limit_is_another_one_is_told_so_first(void **state)
{
	struct fixture *f = *state;
	char lease[128];

	hold_one(f, lease, sizeof(lease));
	fixture_say(f, 0, "ACQUIRE s LIMIT 1", other_limit);
	fixture_watch(f, ZK_WATCH_CHANGED, "/lb/s"); /* it may be agreed on by now */
	fixture_say(f, 0, "ACQUIRE s LIMIT 1", "-DEADLOCK with the permits it has this client would wait for itself");
}

/* One host alone: whatever it asks is answered as ZooKeeper would. */
static void answer_all(struct fixture *f, char *mutex, char *lease, size_t size)
{
	while (fixture_is_open(f)) {
		const struct fixture_op *op = fixture_oldest(f);
		bool leases = strstr(op->path, "/leases");
		char *name = leases ? lease : mutex;

		if (op->effect.type == EFFECT_ZK_CREATE && op->effect.create == ZK_EPHEMERAL_SEQUENTIAL)
			fixture_answer_made(f, 7, 80, name, size);
		else if (op->effect.type == EFFECT_ZK_LIST)
			fixture_answer_list(f, 2, *name != '\0', (const char *const[]){ name });
		else if (op->effect.type == EFFECT_ZK_GET && strcmp(op->path, "/lb/s") == 0)
			fixture_answer_get(f, 1, 0, three);
		else
			fixture_answer(f, ZK_OK);
	}
}

/* Under a new session each of the two directories waits for a while, by chance: that of the leases may be later. */
static void who_waits_when_a_session_begins_is_served(void **state)
{
	struct fixture *f = *state;
	char mutex[128], lease[128];

	hold_one(f, lease, sizeof(lease)); /* it is lost, and is not told: the semaphore stays known */
	for (int round = 1; round <= 10; round++) {
		*mutex = *lease = '\0';
		fixture_simple(f, EVENT_ZK_EXPIRED, 0);
		fixture_zk_connected(f, SESSION + round);
		answer_all(f, mutex, lease, sizeof(lease));
		if (round > 1)
			fixture_say(f, 1, "RELEASE s", "-LOST the permits were lost before they were released");
		fixture_ask(f, 1, "ACQUIRE s LIMIT 3");
		for (int step = 0; step < 30; step++) {
			answer_all(f, mutex, lease, sizeof(lease));
			fixture_pass(f, 10);
		}
		answer_all(f, mutex, lease, sizeof(lease));
		fixture_expect(f, 1, ":1");
	}
}

static void a_try_behind_another_hosts_turn_is_nil(void **state)
{
	struct fixture *f = *state;
	char mutex[128];
	const char *queue[] = { foreign_mutex, mutex };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 WAIT 0");
	fixture_answer_get(f, 1, 0, three);
	fixture_answer_made(f, 5, 70, mutex, sizeof(mutex));
	fixture_answer_list(f, 1, 2, queue);
	fixture_expect(f, 0, "$-1");
	fixture_op(f, EFFECT_ZK_DELETE, mutex);
}

/* It is listed now and then by who waits elsewhere, too: what is left of its host there keeps the one before it waiting. */
static void who_waits_long_looks_at_the_leases(void **state)
{
	struct fixture *f = *state;
	char mutex[128], stray[128];
	bool deleted = false;

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, three);
	fixture_answer_made(f, 5, 70, mutex, sizeof(mutex));
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_mutex, mutex });
	snprintf(stray, sizeof(stray), "%.*slease-0000000009", (int)(strlen(mutex) - strlen("lock-0000000005")), mutex);
	for (int i = 0; i < 400; i++) {
		while (fixture_is_open(f)) {
			const struct fixture_op *op = fixture_oldest(f);
			bool list = op->effect.type == EFFECT_ZK_LIST;

			deleted = deleted || (op->effect.type == EFFECT_ZK_DELETE && strstr(op->path, stray));
			if (list && strstr(op->path, "/leases"))
				fixture_answer_list(f, 2, 1, (const char *[]){ stray });
			else if (list)
				fixture_answer_list(f, 1, 2, (const char *[]){ foreign_mutex, mutex });
			else
				fixture_answer(f, ZK_OK);
		}
		fixture_pass(f, 100);
	}
	assert_true(deleted);
}

static void limit_reads_and_sets_what_zookeeper_has(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "LIMIT s");
	fixture_answer_get(f, 1, 0, three);
	fixture_expect(f, 0, ":3");
	fixture_ask(f, 0, "LIMIT s 2");
	fixture_answer_get(f, 1, 0, three);
	assert_string_equal(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->data, two);
	assert_true(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->effect.exact);
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":2");
	fixture_ask(f, 0, "LIMIT s 2");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_expect(f, 0, "-MISMATCH that name is a lock's, not a semaphore's");
	fixture_no_op(f);
	fixture_ask(f, 0, "LIMIT s");
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, "$-1");
}

/* Read, and before it is set the semaphore is gone and somebody makes a lock of that name. */
static void limit_writes_over_nothing_that_it_has_not_read(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "LIMIT s 2");
	fixture_answer_get(f, 1, 0, three);
	fixture_op(f, EFFECT_ZK_SET, "/lb/s");
	fixture_answer(f, ZK_BADVERSION);
	fixture_expect(f, 0, "");
	fixture_answer_get(f, 1, 0, three);
	fixture_op(f, EFFECT_ZK_SET, "/lb/s");
	fixture_answer(f, ZK_BADVERSION);
	fixture_answer_get(f, 2, 0, LOCK_DATA);
	fixture_expect(f, 0, "-MISMATCH that name is a lock's, not a semaphore's");
	fixture_no_op(f);
	fixture_ask(f, 0, "LIMIT s 2");
	for (int tries = 0; tries < 8; tries++) {
		fixture_answer_get(f, 1, 0, three);
		fixture_answer(f, ZK_BADVERSION);
	}
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper did not say");
	fixture_no_op(f);
}

/* Somebody overwrote the data, and so the limit, while permits are waited for: who is next says it again. */
static void a_limit_that_was_overwritten_is_said_again(void **state)
{
	struct fixture *f = *state;
	char mutex[128], lease[128];

	fixture_ask(f, 0, "ACQUIRE s LIMIT 2 COUNT 1");
	known_and_mutex(f, two, mutex, sizeof(mutex));
	list_mutex(f, mutex);
	fixture_answer_made(f, 3, 80, lease, sizeof(lease));
	fixture_answer_list(f, 2, 3, (const char *[]){ foreign, "_c_x-lease-0000000002", lease });
	list_mutex(f, mutex);
	fixture_answer_list(f, 2, 3, (const char *[]){ foreign, "_c_x-lease-0000000002", lease });
	fixture_no_op(f);
	fixture_watch(f, ZK_WATCH_CHANGED, "/lb/s");
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer_get(f, 1, 0, "");
	while (fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 2, 1, (const char *[]){ lease });
	fixture_expect(f, 0, "");
	assert_string_equal(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->data, two);
	fixture_answer(f, ZK_OK);
	fixture_answer_get(f, 1, 0, two);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 1, (const char *[]){ lease });
	fixture_expect(f, 0, ":1");
}

static void a_limit_that_nobody_could_agree_to_is_none(void **state)
{
	static const char *const impossible[] = { "0", "-5", "1000001", "9223372036854775807" };
	struct fixture *f = *state;
	char data[64];

	for (size_t i = 0; i < 4; i++) {
		snprintf(data, sizeof(data), "1\nkind=semaphore\nlimit=%s\n", impossible[i]);
		fixture_ask(f, 0, "LIMIT s");
		fixture_answer_get(f, 1, 0, data);
		fixture_expect(f, 0, "$-1");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(permits_are_counted_and_waited_for_in_order),
		ALONE(a_try_is_answered_at_once),
		ALONE(all_agree_on_the_limit_while_anybody_uses_it),
		ALONE(operators_change_the_limit),
		ALONE(nonsense_is_refused),
		ALONE(locks_and_semaphores_are_told_apart),
		ALONE(a_lease_ends_and_the_next_is_served),
		ALONE(more_permits_never_shorten_a_lease),
		ALONE(permits_are_renewed),
		ALONE(who_waits_for_more_and_loses_what_it_has_is_told),
		TEST(a_new_semaphore_is_made_with_its_limit_before_its_parts),
		TEST(nothing_is_put_into_a_locks_directory),
		TEST(another_limit_is_refused_and_nothing_created),
		TEST(who_does_not_say_a_limit_is_told_one_under_the_mutex),
		TEST(permits_that_are_too_many_wait_for_room),
		TEST(a_try_that_finds_no_room_is_nil),
		TEST(idle_locks_are_forgotten_for_a_semaphore),
		TEST(a_client_that_goes_gives_its_permits_back),
		TEST(a_lease_that_ends_gives_the_znode_back),
		TEST(a_deleted_permit_is_lost),
		TEST(a_lost_session_loses_all_permits),
		TEST(who_waits_when_a_session_begins_is_served),
		TEST(a_try_behind_another_hosts_turn_is_nil),
		TEST(limit_reads_and_sets_what_zookeeper_has),
		TEST(limit_writes_over_nothing_that_it_has_not_read),
		TEST(who_waits_long_looks_at_the_leases),
		TEST(whose_limit_is_another_one_is_told_so_first),
		TEST(a_limit_that_was_overwritten_is_said_again),
		TEST(a_limit_that_nobody_could_agree_to_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
