/* SPDX-License-Identifier: Apache-2.0 */
/* AUDIT, and what is remembered of directories across a connection. Pitfalls 13 and 23: orphans of a long session. */
#include <stdio.h>
#include <string.h>

#include "core/session/operation.h"
#include "core_test.h"

static const char foreign[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
/* A uuid of the session with a nonce that no claim of it ever had. */
static const char stray[] = "_c_1000abcd-ef01-8234-85ff-ffffffffffff-__WRIT__0000000001";

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 4, state);
}

/* The end of a reply to AUDIT, from the elapsed time on. */
#define NO_EXAMPLES ":0 $8 examples *0"
#define STRAY_IN(lock) \
	":0 $8 examples *1 *4 $4 what $6 strays $4 path $64 " \
	"/lb/" lock "/_c_1000abcd-ef01-8234-85ff-ffffffffffff-__WRIT__0000000001"

struct counts {
	int directories, contenders, ours, strays, undeleted, odd_children, odd_names, mismatched, refused;
};

static void expect_counts(struct fixture *f, uint32_t conn, struct counts n, const char *rest)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "*22 $11 directories :%d $10 contenders :%d $4 ours :%d $6 strays :%d $9 undeleted :%d "
		 "$12 odd_children :%d $9 odd_names :%d $10 mismatched :%d $7 refused :%d $10 elapsed_ms %s",
		 n.directories, n.contenders, n.ours, n.strays, n.undeleted, n.odd_children, n.odd_names, n.mismatched,
		 n.refused, rest);
	fixture_expect(f, conn, text);
}

/* Asks on conn 0 and answers the root's list. */
static void audit(struct fixture *f, size_t count, const char *const *directories)
{
	fixture_ask(f, 0, "AUDIT");
	fixture_serve_list(f, "/lb", count, directories);
}

static void answer_directory(struct fixture *f, const char *path, const char *data, size_t count,
			     const char *const *children)
{
	fixture_serve_get(f, path, 1, 0, data);
	fixture_serve_list(f, path, count, children);
}

TEST(everything_is_counted)
{
	fixture_lock_held(f, 1, "a", 5, 77, f->znode, sizeof(f->znode));
	fixture_expect(f, 1, ":78848");
	audit(f, 7, (const char *[]){ ".hosts", "a", "b", "not%2a", "c", "gone", "secret" });
	answer_directory(f, "/lb/a", LOCK_DATA, 2, (const char *[]){ foreign, f->znode });
	answer_directory(f, "/lb/b", "", 3, (const char *[]){ "odd", "lock-0000000001", foreign });
	answer_directory(f, "/lb/c", "1\nkind=semaphore\n", 1, (const char *[]){ "leases" });
	fixture_serve(f, EFFECT_ZK_GET, "/lb/gone", ZK_NONODE);
	fixture_answer(f, ZK_NONODE);
	fixture_serve(f, EFFECT_ZK_GET, "/lb/secret", ZK_REFUSED);
	f->now_ns += 30 * MS;
	fixture_answer(f, ZK_REFUSED);
	fixture_no_op(f);
	expect_counts(f, 0,
		      (struct counts){ .directories = 3, .contenders = 4, .ours = 1, .odd_children = 2, .odd_names = 1,
				       .mismatched = 1, .refused = 1 },
		      ":30 $8 examples *5 "
		      "*4 $4 what $9 odd_names $4 path $10 /lb/not%2a "
		      "*4 $4 what $12 odd_children $4 path $9 /lb/b/odd "
		      "*4 $4 what $12 odd_children $4 path $21 /lb/b/lock-0000000001 "
		      "*4 $4 what $10 mismatched $4 path $5 /lb/c "
		      "*4 $4 what $7 refused $4 path $10 /lb/secret");
	fixture_say(f, 1, "UNLOCK a", ":0");
}

static int setup_prefixes(void **state)
{
	static const struct broker_prefix prefixes[] = {
		{ "py/", FLAVOUR_KAZOO, "", 0 },
		{ "app/", FLAVOUR_MUTEX, "/app/locks", 0 },
		{ "k", FLAVOUR_KAZOO, "/kazoo", 0 },
	};

	setup(state);
	((struct fixture *)*state)->conf.prefixes = prefixes;
	((struct fixture *)*state)->conf.prefix_count = 3;
	return 0;
}

TEST_IN(directories_of_prefixes_are_looked_at_as_what_they_are, setup_prefixes)
{
	static const char mutex_orphan[] = "_c_1000abcd-ef01-8234-85ff-ffffffffffff-lock-0000000001";
	static const char kazoo_stray[] = "1000abcdef01234500ffffffffffffff__lock__0000000001";

	/* A bare prefix with a path, and what belongs below it, are no locks here, whoever made them. */
	audit(f, 4, (const char *[]){ "app%2F", "app%2Fx", "py%2Fx", "rw" });
	answer_directory(f, "/lb/py%2Fx", "1\nkind=lock\nflavour=kazoo\n", 1, (const char *[]){ foreign });
	answer_directory(f, "/lb/rw", LOCK_DATA, 1, (const char *[]){ foreign });
	fixture_serve_list(f, "/app/locks", 1, (const char *[]){ "orders" });
	answer_directory(f, "/app/locks/orders", "theirs", 2, (const char *[]){ mutex_orphan, "x-lock-0000000002" });
	fixture_serve(f, EFFECT_ZK_DELETE, mutex_orphan, ZK_OK);
	fixture_serve_list(f, "/kazoo", 1, (const char *[]){ "%2E" });
	answer_directory(f, "/kazoo/%2E", LOCK_DATA, 1, (const char *[]){ kazoo_stray });
	fixture_serve(f, EFFECT_ZK_DELETE, kazoo_stray, ZK_OK);
	expect_counts(f, 0,
		      (struct counts){ .directories = 4, .contenders = 5, .strays = 2, .odd_children = 1, .odd_names = 2,
				       .mismatched = 1 },
		      ":0 $8 examples *6 "
		      "*4 $4 what $9 odd_names $4 path $10 /lb/app%2F *4 $4 what $9 odd_names $4 path $11 /lb/app%2Fx "
		      "*4 $4 what $12 odd_children $4 path $69 "
		      "/lb/py%2Fx/_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003 "
		      "*4 $4 what $6 strays $4 path $73 "
		      "/app/locks/orders/_c_1000abcd-ef01-8234-85ff-ffffffffffff-lock-0000000001 "
		      "*4 $4 what $10 mismatched $4 path $10 /kazoo/%2E "
		      "*4 $4 what $6 strays $4 path $61 "
		      "/kazoo/%2E/1000abcdef01234500ffffffffffffff__lock__0000000001");
}

TEST(the_parts_of_a_semaphore_are_looked_at)
{
	static const char lease[] = "_c_1000abcd-ef01-8234-85ff-ffffffffffff-lease-0000000001";

	audit(f, 2, (const char *[]){ "s", "b" });
	answer_directory(f, "/lb/s", "1\nkind=semaphore\nlimit=3\n", 2, (const char *[]){ "leases", "locks" });
	answer_directory(f, "/lb/b", LOCK_DATA, 0, NULL);
	answer_directory(f, "/lb/s/locks", "1\nkind=lock\nflavour=mutex\n", 0, NULL);
	answer_directory(f, "/lb/s/leases", "1\nkind=lock\nflavour=leases\n", 1, (const char *[]){ lease });
	fixture_serve(f, EFFECT_ZK_DELETE, lease, ZK_OK);
	expect_counts(f, 0, (struct counts){ .directories = 4, .contenders = 1, .strays = 1 },
		      ":0 $8 examples *1 *4 $4 what $6 strays $4 path $69 "
		      "/lb/s/leases/_c_1000abcd-ef01-8234-85ff-ffffffffffff-lease-0000000001");
}

TEST(a_stray_is_deleted_before_the_answer)
{
	audit(f, 2, (const char *[]){ "a", "b" });
	answer_directory(f, "/lb/a", LOCK_DATA, 1, (const char *[]){ stray });
	answer_directory(f, "/lb/b", LOCK_DATA, 0, NULL);
	fixture_expect(f, 0, "");
	fixture_say_part(f, 1, "INFO audit", "audit_undeleted:1\r\n");
	fixture_serve(f, EFFECT_ZK_DELETE, stray, ZK_OK);
	expect_counts(f, 0, (struct counts){ .directories = 2, .contenders = 1, .strays = 1 }, STRAY_IN("a"));
	fixture_say_part(f, 1, "INFO audit", "audit_undeleted:0\r\n");
	fixture_say_part(f, 1, "INFO audit", "audit_strays:1\r\n");
	fixture_say_part(f, 1, "INFO audit", "audit_sweeps:1\r\n");
	fixture_say_part(f, 1, "INFO stats", "audit_directories_total:2\r\n");
}

TEST(a_stray_that_cannot_be_deleted_is_told_and_tried_again)
{
	audit(f, 1, (const char *[]){ "a" });
	answer_directory(f, "/lb/a", LOCK_DATA, 1, (const char *[]){ stray });
	fixture_serve(f, EFFECT_ZK_DELETE, stray, ZK_REFUSED);
	expect_counts(f, 0, (struct counts){ .directories = 1, .contenders = 1, .strays = 1, .undeleted = 1 },
		      STRAY_IN("a"));
	fixture_pass(f, 1000);
	fixture_serve(f, EFFECT_ZK_DELETE, stray, ZK_OK);
	fixture_say_part(f, 1, "INFO audit", "audit_undeleted:0\r\n");
}

/* The one directory is a, with one child. */
static void answer_as_it_stands(struct fixture *f, const char *child)
{
	const struct fixture_op *op = fixture_oldest(f);

	if (op->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, strcmp(op->path, "/lb/a") == 0 ? 1 : 77, SESSION, LOCK_DATA);
	else if (strcmp(op->path, "/lb") == 0)
		fixture_answer_list(f, 1, 1, (const char *[]){ "a" });
	else
		fixture_answer_list(f, 1, 1, &child);
}

/* A create under way has no number yet: its znode is known by the uuid. */
TEST(a_claim_under_way_is_no_stray)
{
	const char *path;
	char name[300];

	fixture_ask(f, 0, "AUDIT");
	fixture_op(f, EFFECT_ZK_LIST, "/lb");
	fixture_ask(f, 1, "LOCK a");
	fixture_answer_list(f, 1, 1, (const char *[]){ "a" });
	fixture_serve_get(f, "/lb/a", 1, 0, LOCK_DATA);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	path = fixture_oldest(f)->path;
	snprintf(name, sizeof(name), "%s0000000005", strrchr(path, '/') + 1);
	/* The create's answer is lost with the connection, and the audit with it. */
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	f->first_op = f->end_op;
	fixture_expect(f, 0, "-UNAVAILABLE the connection to ZooKeeper was lost during the audit, after 0 directories; "
			     "strays found and deleted: 0");
	fixture_zk_connected(f, SESSION);
	fixture_ask(f, 0, "AUDIT");
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a"); /* recovery goes first */
	while (!f->replies[0].len)
		answer_as_it_stands(f, name);
	expect_counts(f, 0, (struct counts){ .directories = 1, .contenders = 1, .ours = 1 }, NO_EXAMPLES);
}

/* A lock that the host may not know: its strays are deleted all the same. */
static void without_room(struct fixture *f, enum zk_code code, int undeleted)
{
	f->conf.limits.locks = 1;
	fixture_lock_held(f, 1, "a", 5, 77, f->znode, sizeof(f->znode));
	fixture_expect(f, 1, ":78848");
	audit(f, 1, (const char *[]){ "b" });
	answer_directory(f, "/lb/b", LOCK_DATA, 1, (const char *[]){ stray });
	fixture_serve(f, EFFECT_ZK_DELETE, stray, code);
	fixture_no_op(f);
	expect_counts(f, 0, (struct counts){ .directories = 1, .contenders = 1, .strays = 1, .undeleted = undeleted },
		      STRAY_IN("b"));
	fixture_say_part(f, 1, "INFO audit", "audit_strays:1\r\n");
}

TEST(without_room_for_a_lock_a_stray_is_deleted)
{
	without_room(f, ZK_OK, 0);
}

TEST(without_room_for_a_lock_a_refusal_is_told)
{
	without_room(f, ZK_REFUSED, 1);
}

/* More than the window takes at first: heartbeats do not wait for all their deletes. */
TEST(very_many_strays_are_deleted_in_parts)
{
	static char names[FIXTURE_CHILDREN][64];
	const char *children[FIXTURE_CHILDREN];

	for (int i = 0; i < FIXTURE_CHILDREN; i++) {
		snprintf(names[i], sizeof(names[i]), "%.49s%010d", stray, i);
		children[i] = names[i];
	}
	audit(f, 1, (const char *[]){ "a" });
	answer_directory(f, "/lb/a", LOCK_DATA, FIXTURE_CHILDREN, children);
	assert_int_equal(f->end_op - f->first_op, WINDOW_FIRST_COUNT);
	for (int i = 0; i < FIXTURE_CHILDREN; i++) {
		assert_int_equal(f->replies[0].len, 0);
		fixture_answer(f, ZK_OK);
	}
	fixture_expect_part(f, 0, "undeleted\r\n:0\r\n");
}

TEST(few_operations_are_open_at_once)
{
	static char names[20][4];
	const char *directories[20];

	for (int i = 0; i < 20; i++) {
		snprintf(names[i], sizeof(names[i]), "d%02d", i);
		directories[i] = names[i];
	}
	audit(f, 20, directories);
	for (int left = 20; left > 0; left--) {
		assert_int_equal(f->end_op - f->first_op, left < 8 ? 2 * left : 16);
		answer_directory(f, names[20 - left], LOCK_DATA, 0, NULL);
	}
	fixture_no_op(f);
	expect_counts(f, 0, (struct counts){ .directories = 20 }, NO_EXAMPLES);
}

static bool is_sent(const struct fixture *f, const char *path)
{
	for (size_t i = f->first_op; i < f->end_op; i++)
		if (strcmp(f->ops[i % FIXTURE_OPS].path, path) == 0)
			return true;
	return false;
}

/* The window is full of joins, and more of them wait for room: the sweep waits for its turn. */
TEST(a_full_window_goes_first)
{
	f->conf.limits.requests = f->conf.limits.grants = 110;
	for (uint32_t conn = 4; conn < 99; conn++)
		fixture_connect(f, conn);
	for (uint32_t conn = 1; conn < 99; conn++) {
		fixture_ask(f, conn, fixture_words(f, "LOCK x%u", conn));
	}
	fixture_ask(f, 0, "AUDIT");
	assert_false(is_sent(f, "/lb"));
	while (!is_sent(f, "/lb")) {
		assert_in_range(f->end_op - f->first_op, WINDOW_FIRST_COUNT / 2, 3 * WINDOW_FIRST_COUNT / 2);
		fixture_answer(f, ZK_REFUSED);
	}
}

TEST(who_asks_meanwhile_shares_the_next_sweep)
{
	audit(f, 1, (const char *[]){ "a" });
	fixture_ask(f, 1, "AUDIT");
	fixture_ask(f, 2, "AUDIT");
	answer_directory(f, "/lb/a", LOCK_DATA, 0, NULL);
	expect_counts(f, 0, (struct counts){ .directories = 1 }, NO_EXAMPLES);
	fixture_serve_list(f, "/lb", 0, NULL);
	fixture_no_op(f);
	expect_counts(f, 1, (struct counts){ 0 }, NO_EXAMPLES);
	expect_counts(f, 2, (struct counts){ 0 }, NO_EXAMPLES);
}

TEST(a_client_that_leaves_ends_its_sweep)
{
	audit(f, 2, (const char *[]){ "a", "b" });
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_say_part(f, 1, "INFO audit", "audit_running:0\r\n");
	/* What the ended one asked for says nothing in the next. */
	fixture_ask(f, 1, "AUDIT");
	answer_directory(f, "/lb/a", LOCK_DATA, 1, (const char *[]){ stray });
	answer_directory(f, "/lb/b", LOCK_DATA, 1, (const char *[]){ stray });
	fixture_serve_list(f, "/lb", 0, NULL);
	fixture_no_op(f);
	expect_counts(f, 1, (struct counts){ 0 }, NO_EXAMPLES);
}

TEST(a_half_closed_client_gets_its_answer)
{
	audit(f, 1, (const char *[]){ "a" });
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 0);
	answer_directory(f, "/lb/a", LOCK_DATA, 0, NULL);
	expect_counts(f, 0, (struct counts){ .directories = 1 }, NO_EXAMPLES);
}

TEST(unblocked_it_ends_with_nil)
{
	audit(f, 1, (const char *[]){ "a" });
	fixture_say(f, 1, "CLIENT UNBLOCK 1", ":1");
	fixture_expect(f, 0, "$-1");
	fixture_say(f, 1, "CLIENT UNBLOCK 1", ":0");
}

TEST(it_ends_with_the_connection)
{
	audit(f, 2, (const char *[]){ "a", "b" });
	answer_directory(f, "/lb/a", LOCK_DATA, 1, (const char *[]){ stray });
	fixture_ask(f, 1, "AUDIT");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "-UNAVAILABLE the connection to ZooKeeper was lost during the audit, after 1 directories; "
			     "strays found and deleted: 1");
	fixture_expect(f, 1, "-UNAVAILABLE the connection to ZooKeeper was lost before the audit began");
	fixture_say(f, 2, "AUDIT", "-UNAVAILABLE there is no connection to ZooKeeper");
	fixture_say_part(f, 2, "INFO audit", "audit_remembered:1\r\n");
	/* The delete's fate is unknown: it is sent again, and the directory listed. */
	fixture_reconnected(f);
	fixture_serve(f, EFFECT_ZK_DELETE, stray, ZK_NONODE);
	fixture_say_part(f, 2, "INFO audit", "audit_remembered:0\r\n");
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_no_op(f);
}

TEST(remembered_directories_are_counted_until_they_are_listed)
{
	char name[128], other[128];

	fixture_lock_held(f, 0, "a", 5, 77, name, sizeof(name));
	fixture_lock_held(f, 1, "b", 6, 78, other, sizeof(other));
	fixture_say_part(f, 2, "INFO audit", "audit_remembered:0\r\n");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say_part(f, 2, "INFO audit", "audit_remembered:2\r\n");
	fixture_reconnected(f);
	fixture_say_part(f, 2, "INFO audit", "audit_remembered:2\r\n");
	fixture_serve_get(f, name, 77, SESSION, "");
	fixture_say_part(f, 2, "INFO audit", "audit_remembered:1\r\n");
	fixture_say_part(f, 2, "INFO audit", "audit_relisted:1\r\n");
	/* With the session everything of it goes. */
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_say_part(f, 2, "INFO audit", "audit_remembered:0\r\n");
}

TEST(a_daemon_that_stops_audits_nothing)
{
	fixture_lock_held(f, 1, "a", 5, 77, f->znode, sizeof(f->znode));
	audit(f, 1, (const char *[]){ "a" });
	fixture_simple(f, EVENT_STOP, 0);
	fixture_expect(f, 0, "-DRAINING the daemon is stopping");
	fixture_say(f, 2, "AUDIT", "-DRAINING the daemon is stopping");
}

static int setup_pieces(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.all_in_pieces = true;
	return fixture_setup(f, 4, state);
}

/* A name a piece; those who have asked share the sweep, and the first of them goes. */
TEST_IN(names_are_looked_at_in_pieces, setup_pieces)
{
	static const char *const names[] = { "a", "%zz", "b" };

	audit(f, 3, names);
	fixture_ask(f, 1, "AUDIT");
	fixture_ask(f, 2, "AUDIT");
	assert_true(broker_has_work(f->broker));
	fixture_say(f, 3, "CLIENT UNBLOCK 1", ":1");
	fixture_expect(f, 0, "$-1");
	fixture_serve_list(f, "/lb", 3, names);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_simple(f, EVENT_TIME, 0);
	assert_true(broker_has_work(f->broker));
	fixture_no_op(f);
	fixture_simple(f, EVENT_TIME, 0);
	assert_false(broker_has_work(f->broker));
	answer_directory(f, "/lb/a", LOCK_DATA, 0, NULL);
	answer_directory(f, "/lb/b", LOCK_DATA, 0, NULL);
	expect_counts(f, 2, (struct counts){ .directories = 2, .odd_names = 1 },
		      ":0 $8 examples *1 *4 $4 what $9 odd_names $4 path $7 /lb/%zz");
}

/* What is left of it ends with the connection. */
TEST_IN(names_that_are_left_end_with_the_connection, setup_pieces)
{
	audit(f, 2, (const char *[]){ "a", "b" });
	assert_true(broker_has_work(f->broker));
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	assert_false(broker_has_work(f->broker));
	fixture_connect(f, 0);
	audit(f, 2, (const char *[]){ "a", "b" });
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_false(broker_has_work(f->broker));
}

static int setup_standalone(void **state)
{
	return fixture_setup(fixture_new(true), 1, state);
}

ALONE(standalone_there_is_nothing_to_audit)
{
	fixture_ask(f, 0, "AUDIT");
	expect_counts(f, 0, (struct counts){ 0 }, NO_EXAMPLES);
	fixture_say(f, 0, "AUDIT now",
		    "-ERR wrong number of arguments for 'audit' command; Look into every lock directory, delete this "
		    "host's strays: AUDIT");
}
