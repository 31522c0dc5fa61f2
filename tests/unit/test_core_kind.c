/* SPDX-License-Identifier: Apache-2.0 */
/* What a name is for, lock or election: as the data of its directory say, or else the contenders in it (directory.h). */
#include "claim_fixture.h"
#include "semaphore_fixture.h"
#include "core_test.h"

#include "core/client/ask.h"
#include "core/client/deadlock.h"
#include "core/state.h"

static const char second[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004";
static const char campaigner[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__WRIT__0000000006";

#define ELECTION_DATA "1\nkind=election\nflavour=rw\n"

#define DIRECTORY_IS(kind, flavour, wanted) \
	"-MISMATCH that name's directory in ZooKeeper is of kind \"" kind "\" and flavour \"" flavour "\", " \
	"not \"" wanted "\" and \"rw\", until some minutes after its last use: a"

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 4, state);
}

/* The directory of a turns out to be a lock's, which conn gets. */
static void granted(struct fixture *f, uint32_t conn)
{
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_alone(f, "-__WRIT__", 0, 77, f->znode);
	fixture_expect(f, conn, ":78848");
}

TEST(a_new_directory_is_made_with_its_kind)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer(f, ZK_NONODE); /* get */
	fixture_answer(f, ZK_NONODE); /* create */
	fixture_answer(f, ZK_NONODE); /* list: of the create that failed */
	assert_string_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/a")->data, LOCK_DATA);
	assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/a")->effect.create, ZK_CONTAINER);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
	granted(f, 0);
}

TEST(a_directory_of_another_kind_is_refused)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nflavour=rw\n");
	fixture_expect(f, 0, DIRECTORY_IS("semaphore", "rw", "lock"));
	fixture_serve_made(f, "-__WRIT__", 0, 77, f->znode);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	/* The next one looks before it puts anything there. */
	fixture_ask(f, 0, "LOCK a");
	fixture_serve_get(f, "/lb/a", 1, 0, "1\nkind=semaphore\nflavour=rw\n");
	fixture_expect(f, 0, DIRECTORY_IS("semaphore", "rw", "lock"));
	fixture_no_op(f);
}

/* This host has parked what it knows of the directory as a lock's. */
TEST(a_name_that_was_a_lock_here_is_read_again)
{
	fixture_lock_held(f, 0, "a", 5, 70, f->znode, sizeof(f->znode));
	fixture_expect(f, 0, ":71680");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
	fixture_ask(f, 0, "CAMPAIGN a DATA x");
	fixture_serve_get(f, "/lb/a", 1, 0, LOCK_DATA);
	fixture_expect(f, 0, DIRECTORY_IS("lock", "rw", "election"));
	fixture_no_op(f);
	fixture_ask(f, 0, "CAMPAIGN a DATA x");
	fixture_serve(f, EFFECT_ZK_GET, "/lb/a", ZK_NONODE);
	fixture_op(f, EFFECT_ZK_GET, "/lb/a"); /* in the same breath as the create */
	fixture_answer(f, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* Up to the list, in a directory with these data. */
static void join(struct fixture *f, uint32_t conn, const char *words, const char *data)
{
	fixture_ask(f, conn, words);
	fixture_answer_get(f, 1, 0, data);
	fixture_serve_made(f, "", 5, 77, f->znode);
}

/* Up to the read of the contender before ours, in a directory whose data say nothing. */
static void ask_behind(struct fixture *f, uint32_t conn, const char *words)
{
	join(f, conn, words, "");
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_low, f->znode });
	fixture_refuse_own(f);
	fixture_op(f, EFFECT_ZK_GET, foreign_low);
}

TEST_WITH(in_a_directory_of_other_software_the_contenders_tell_the_kind, NULL, NULL)
{
	static const struct {
		const char *words, *before;
		bool fits;
	} cases[] = {
		{ "LOCK a", "1\nhost=beta\n", true },
		{ "LOCK a", "1\nhost=beta\nkind=lock\n", true },
		{ "LOCK a", "1\nhost=beta\nkind=election\n", false },
		{ "LOCK a SHARED", "1\nhost=beta\nkind=election\n", false },
		{ "LOCK a", "kind=election\n", true },
		{ "CAMPAIGN a DATA x", "1\nhost=beta\nkind=election\n", true },
		{ "CAMPAIGN a DATA x", "1\nhost=beta\n", false },
		{ "CAMPAIGN a DATA x", "10.0.0.1", true },
		{ "CAMPAIGN a DATA x", "", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f;

		setup(state);
		f = *state;
		ask_behind(f, 0, cases[i].words);
		fixture_answer_get(f, 70, 9, cases[i].before);
		if (cases[i].fits) {
			fixture_expect(f, 0, "");
		} else {
			fixture_expect(f, 0, cases[i].words[0] == 'L' ? "-MISMATCH that name is in use as an election: a" :
								"-MISMATCH that name is in use as a lock: a");
			fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
		}
		fixture_no_op(f);
		fixture_teardown(state);
	}
}

/* A host that took it for a lock has joined before it read that, and goes again. */
TEST(a_contender_of_another_kind_says_nothing_where_the_directory_tells_the_kind)
{
	join(f, 0, "CAMPAIGN a DATA x", ELECTION_DATA);
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_low, f->znode });
	fixture_refuse_own(f);
	fixture_serve_get(f, foreign_low, 70, 9, "1\nhost=beta\n");
	fixture_expect(f, 0, "");
	fixture_no_op(f);
}

/* Its own znode, and the one before its predecessor (claim.h). */
static void read_before_second(struct fixture *f)
{
	fixture_refuse_own(f);
	fixture_serve_get(f, foreign_low, 70, 9, "1\nhost=beta\n");
}

/* What it waits for next may be of the right kind, and is read before anything is said of it. */
TEST(another_kind_before_a_claim_counts_while_it_stands_there)
{
	join(f, 0, "LOCK a", "");
	fixture_answer_list(f, 1, 3, (const char *[]){ foreign_low, second, f->znode });
	read_before_second(f);
	fixture_op(f, EFFECT_ZK_GET, second);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_op(f, EFFECT_ZK_GET, second);
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\nkind=election\n"); /* nobody waits any more */
	fixture_answer(f, ZK_OK); /* the deletion */
	fixture_no_op(f);
	fixture_ask(f, 1, "CAMPAIGN a DATA x"); /* this host knew it as a lock: the data are read first */
	fixture_answer_get(f, 1, 0, "");
	fixture_answer_made(f, 6, 78, f->znode, sizeof(f->znode));
	fixture_answer_list(f, 1, 3, (const char *[]){ foreign_low, second, f->znode });
	read_before_second(f);
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\nkind=election\n");
	fixture_watch_contender(f, ZK_WATCH_DELETED, second);
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_low, f->znode });
	fixture_expect(f, 1, "");
	fixture_serve_get(f, foreign_low, 70, 9, "1\nhost=beta\n");
	fixture_expect(f, 1, "-MISMATCH that name is in use as a lock: a");
}

/* conn 0 reads, and conn 1 wants to write: its *next* stands behind a campaigner of another host. */
static void queue_behind_campaigner(struct fixture *f, char first[128], char next[128])
{
	fixture_ask(f, 0, "LOCK a SHARED");
	fixture_answer_get(f, 1, 0, "");
	fixture_serve_alone(f, "-__READ__", 5, 70, first);
	fixture_expect(f, 0, ":71680");
	fixture_ask(f, 1, "LOCK a");
	fixture_serve_made(f, "-__WRIT__", 7, 72, next);
	fixture_answer_list(f, 1, 3, (const char *[]){ first, campaigner, next });
	fixture_refuse_own(f);
	fixture_serve_get(f, campaigner, 71, 9, "1\nhost=gamma\nkind=election\n");
	fixture_expect(f, 1, "");
	fixture_no_op(f);
}

/* It would have to wait for the host that was told, or will be: who holds the name says what it is for. */
TEST(another_kind_behind_a_held_claim_is_no_concern_of_its_queue)
{
	char first[128], next[128];

	queue_behind_campaigner(f, first, next);
	fixture_watch_contender(f, ZK_WATCH_DELETED, campaigner);
	fixture_answer_list(f, 1, 2, (const char *[]){ first, next });
	fixture_no_op(f); /* what stands before it now is ours */
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "");
	fixture_serve(f, EFFECT_ZK_DELETE, first, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":73728");
}

TEST(another_kind_is_told_when_nothing_is_held_any_more)
{
	char first[128], next[128];

	queue_behind_campaigner(f, first, next);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "-MISMATCH that name is in use as an election: a");
	fixture_serve(f, EFFECT_ZK_DELETE, first, ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, next, ZK_OK);
	fixture_no_op(f);
}

static int setup_standalone(void **state)
{
	return fixture_setup(fixture_new(true), 4, state);
}

/* Up to the read of the directory's data, for a lock. */
static void ask_by_mistake(struct fixture *f)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_ask(f, 1, "ACQUIRE a LIMIT 2");
	fixture_expect(f, 1, "");
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
}

/* The request that came first took a semaphore for a lock. */
static void mistaken(struct fixture *f)
{
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(2));
	fixture_expect(f, 0, DIRECTORY_IS("semaphore", "", "lock"));
	fixture_expect(f, 1, "");
	fixture_answer_made(f, 0, 77, f->znode, sizeof(f->znode));
	fixture_answer_list(f, 1, 3, (const char *[]){ "locks", "leases", f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
}

/* Whoever asked for permits has its turn: the name is known as what it is. */
static void a_semaphore_is_found(struct fixture *f)
{
	fixture_serve_get(f, "/lb/a", 1, 0, SEMAPHORE_DATA(2));
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
	fixture_expect(f, 1, "");
}

/* Its znode has gone, and the name is looked at as a semaphore's. */
TEST(a_mistake_here_refuses_nobody)
{
	ask_by_mistake(f);
	mistaken(f);
	a_semaphore_is_found(f);
}

/* Another mistake waits behind those who came before it. */
TEST(a_mistake_waits_behind_who_is_set_aside)
{
	ask_by_mistake(f);
	fixture_ask(f, 2, "LOCK a");
	mistaken(f);
	fixture_expect(f, 2, "");
	fixture_serve_get(f, "/lb/a", 1, 0, SEMAPHORE_DATA(2));
	fixture_expect(f, 2, "");
}

TEST(who_is_set_aside_is_refused_once_the_kind_is_confirmed)
{
	ask_by_mistake(f);
	fixture_ask(f, 2, "LOCK a WAIT 0");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_expect(f, 1, "");
	fixture_serve_alone(f, "-__WRIT__", 0, 77, f->znode);
	fixture_expect(f, 0, ":78848");
	fixture_expect(f, 1, "-MISMATCH this name is in use as a lock, not as a semaphore: a");
	fixture_expect(f, 2, "$-1");
	fixture_say(f, 1, "ACQUIRE a LIMIT 2", "-MISMATCH this name is in use as a lock, not as a semaphore: a");
}

static int setup_many(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.limits.requests_per_lock = f->conf.limits.requests = 100;
	return fixture_setup(f, 4, state);
}

/* Connections from that one on, which all wait. */
static void more_ask(struct fixture *f, uint32_t from, uint32_t count, const char *words)
{
	for (uint32_t conn = from; conn < from + count; conn++) {
		fixture_connect(f, conn);
		fixture_say(f, conn, words, "");
	}
}

static uint32_t refused(const struct fixture *f, uint32_t from, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t conn = from; conn < from + count; conn++)
		n += f->replies[conn].len > 0 && memcmp(f->replies[conn].data, "-MISMATCH", 9) == 0;
	return n;
}

TEST_IN(one_event_decides_about_few_that_are_set_aside_and_later_ones_about_the_rest, setup_many)
{
	enum { FIRST = 10, MANY = 2 * ASIDE_AT_ONCE + 3 };

	fixture_ask(f, 0, "LOCK a");
	more_ask(f, FIRST, MANY, "ACQUIRE a LIMIT 2");
	granted(f, 0);
	for (uint32_t done = ASIDE_AT_ONCE; done < MANY; done += ASIDE_AT_ONCE) {
		assert_int_equal(refused(f, FIRST, MANY), done);
		assert_true(broker_has_work(f->broker));
		fixture_simple(f, EVENT_TIME, 0);
	}
	assert_int_equal(refused(f, FIRST, MANY), MANY);
	assert_false(broker_has_work(f->broker));
}

/*
 * c0 has asked for `a`, and c1 by mistake as another kind; behind that one c2 and more are set aside. Then `a` is confirmed
 * to be what c0 asked for, in the event that answers the list of its claims.
 */
static void confirm(struct fixture *f)
{
	granted(f, 0);
	fixture_expect_begin(f, 1, "-MISMATCH");
}

/* c2 holds `b`, for which c3 waits, who is one owner with c0. */
TEST_IN(who_was_set_aside_closes_a_deadlock_once_it_is_queued, setup_many)
{
	fixture_say(f, 0, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 3, "CLIENT SETINFO OWNER x", "+OK");
	fixture_ask(f, 2, "LOCK b");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_alone(f, "-__WRIT__", 0, 70, f->znode);
	fixture_expect(f, 2, ":71680");
	fixture_say(f, 3, "LOCK b", "");
	ask_by_mistake(f);
	fixture_say(f, 2, "LOCK a", "");
	confirm(f);
	fixture_expect_begin(f, 2, "-DEADLOCK ");
}

/* A crowd waits for `a` before them, so that each of their searches looks at twice as many. */
TEST_IN(after_a_long_search_the_next_that_is_set_aside_is_queued_in_a_later_event, setup_many)
{
	enum { FIRST = 10, CROWD = DEADLOCK_EDGES_AT_ONCE / 2 + 1, ASIDE = 5 };
	const struct lock *lock;

	fixture_ask(f, 0, "LOCK a");
	more_ask(f, FIRST, CROWD, "LOCK a");
	fixture_say(f, 1, "ACQUIRE a LIMIT 2", "");
	more_ask(f, FIRST + CROWD, ASIDE, "LOCK a");
	confirm(f);
	lock = lock_find(&f->broker->locks, slice_of("a"));
	for (size_t left = ASIDE - 1; left; left--) {
		assert_int_equal(lock->aside_count, left);
		assert_in_range(f->broker->locks.searched, DEADLOCK_EDGES_AT_ONCE, 4 * DEADLOCK_EDGES_AT_ONCE);
		assert_true(broker_has_work(f->broker));
		fixture_simple(f, EVENT_TIME, 0);
	}
	assert_int_equal(lock->aside_count, 0);
	assert_false(broker_has_work(f->broker));
}

TEST(an_election_is_set_aside_likewise)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_ask(f, 1, "CAMPAIGN a DATA x ENQUEUE");
	fixture_expect(f, 1, "+QUEUED");
	fixture_say(f, 1, "CAMPAIGN a DATA x", "-ERR this client already campaigns for it, and RESIGN withdraws that: a");
	fixture_answer_get(f, 1, 0, ELECTION_DATA);
	fixture_expect(f, 0, DIRECTORY_IS("election", "rw", "lock"));
	fixture_serve_alone(f, "-__WRIT__", 0, 77, f->znode);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
}

/* Nothing is known within the time that a try may take. */
TEST(who_is_set_aside_waits_no_longer_than_asked)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_ask(f, 1, "ACQUIRE a LIMIT 2 WAIT 100");
	fixture_pass(f, 3000);
	fixture_expect(f, 1, "-UNAVAILABLE there is no connection to ZooKeeper, "
		    "so it is not known whether the lock is taken: a");
	fixture_ask(f, 2, "ACQUIRE a LIMIT 2");
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
	fixture_expect(f, 0, "");
}

TEST(however_the_wait_of_who_is_set_aside_ends_nothing_is_left)
{
	ask_by_mistake(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_say(f, 2, "CAMPAIGN a DATA x ENQUEUE", "+QUEUED");
	fixture_say(f, 2, "CANCEL a", ":1");
	fixture_say(f, 2, "CAMPAIGN a DATA x ENQUEUE", "+QUEUED");
	fixture_say(f, 2, "RESIGN a", ":0");
	fixture_say(f, 2, "CAMPAIGN a DATA x ENQUEUE", "+QUEUED");
	fixture_say(f, 2, "RESET", "+RESET");
	fixture_ask(f, 2, "ACQUIRE a LIMIT 2");
	fixture_say(f, 3, "CLIENT UNBLOCK 3", ":1");
	fixture_expect(f, 2, "$-1");
	granted(f, 0);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

TEST(who_is_set_aside_is_refused_by_a_stop)
{
	ask_by_mistake(f);
	fixture_simple(f, EVENT_STOP, 0);
	fixture_expect(f, 0, "-DRAINING the daemon is stopping");
	fixture_expect(f, 1, "-DRAINING the daemon is stopping");
}

TEST(who_is_set_aside_is_so_in_the_next_process)
{
	ask_by_mistake(f);
	fixture_next_process(f);
	fixture_next_process(f);
	fixture_expect(f, 1, "");
	fixture_reconnected(f);
	fixture_answer_list(f, 1, 0, NULL); /* where is the znode whose create was not answered */
	mistaken(f);
	a_semaphore_is_found(f);
}

/* The name is not known to be anything any longer. */
TEST(who_is_set_aside_outlives_the_session)
{
	ask_by_mistake(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_expect(f, 1, "");
	fixture_zk_connected(f, 9);
	fixture_answer_session(f);
	fixture_pass(f, 200);
	a_semaphore_is_found(f);
}

TEST(who_came_behind_is_queued_when_nobody_of_another_kind_is_before_it)
{
	ask_by_mistake(f);
	fixture_ask(f, 2, "LOCK a");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	granted(f, 2);
}

TEST(those_that_are_set_aside_count_as_waiting_for_the_lock)
{
	fixture_ask(f, 0, "LOCK a");
	more_ask(f, 10, 9, "ACQUIRE a LIMIT 2");
	fixture_connect(f, 19);
	fixture_say(f, 19, "ACQUIRE a LIMIT 2",
		    "-LIMIT as many clients as one lock may have already wait for it (limits.requests_per_lock): a");
	fixture_say(f, 19, "LOCK a",
		    "-LIMIT as many clients as one lock may have already wait for it (limits.requests_per_lock): a");
}

/* The data of its directory do not tell the kind, and the contender that it waits for turns out to lead an election. */
TEST(a_wait_confirms_a_kind_when_it_is_known_for_whom_it_waits)
{
	ask_behind(f, 0, "LOCK a");
	fixture_ask(f, 1, "CAMPAIGN a DATA x");
	fixture_expect(f, 1, "");
	fixture_answer_get(f, 70, 9, "1\nhost=beta\nkind=election\n");
	fixture_expect(f, 0, "-MISMATCH that name is in use as an election: a");
	fixture_expect(f, 1, "");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
	fixture_expect(f, 1, "");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	while (fixture_is_open(f))
		fixture_answer(f, ZK_NONODE);
	ask_behind(f, 2, "LOCK b");
	fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
	fixture_say(f, 3, "CAMPAIGN b DATA x", "-MISMATCH this name is in use as a lock, not as an election: b");
}

ALONE(alone_a_name_is_of_the_kind_that_it_is_used_as)
{
	fixture_say(f, 0, "ACQUIRE a LIMIT 2", ":1");
	fixture_say(f, 1, "LOCK a", "-MISMATCH this name is in use as a semaphore, not as a lock: a");
	fixture_say(f, 0, "RELEASE a", ":0");
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "ACQUIRE a LIMIT 2", "-MISMATCH this name is in use as a lock, not as a semaphore: a");
	fixture_expect(f, 1, ":2048");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_say(f, 0, "CAMPAIGN a DATA x", ":3072");
	fixture_say(f, 1, "LOCK a", "-MISMATCH this name is in use as an election, not as a lock: a");
	fixture_say(f, 0, "RESIGN a", ":1");
	fixture_say(f, 0, "ACQUIRE a LIMIT 2", ":1");
}

/* This host was only asked for permits of it; the host that made the directory knows better. */
TEST(what_a_name_is_asked_about_goes_by_the_data_of_its_directory)
{
	bool listed = false;

	fixture_ask(f, 0, "ACQUIRE a LIMIT 2");
	fixture_ask(f, 1, "HOLDERS a");
	while (fixture_is_open(f) && !listed) {
		const struct fixture_op *op = fixture_oldest(f);

		assert_null(strstr(op->path, "/leases"));
		listed = op->effect.type == EFFECT_ZK_LIST && strcmp(op->path, "/lb/a") == 0;
		if (op->effect.type == EFFECT_ZK_GET)
			fixture_answer_get(f, 1, 0, LOCK_DATA);
		else if (!listed)
			fixture_answer(f, ZK_NONODE);
	}
	assert_true(listed);
}
