/* SPDX-License-Identifier: Apache-2.0 */
/* Where locks live and how contenders are named, by the prefixes of the configuration (flavour.h, contender.h). */
#include "core/znode/contender.h"
#include "core_test.h"

static const struct broker_prefix prefixes[] = {
	{ "app/", FLAVOUR_MUTEX, "/app/locks", 0 },
	{ "app/py/", FLAVOUR_KAZOO, "", 0 },
	{ "k", FLAVOUR_KAZOO, "/kazoo", 0 },
};

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.prefixes = prefixes;
	f->conf.prefix_count = 3;
	return fixture_setup(f, 2, state);
}

static void expect_place(const struct broker_conf *conf, const char *name, enum flavour flavour, const char *path)
{
	struct bytes got = { 0 };

	assert_true(flavour_has_place(conf, slice_of(name)));
	assert_int_equal(flavour_place(conf, slice_of(name), &got), flavour);
	bytes_char(&got, '\0');
	assert_string_equal(got.data, path);
	bytes_free(&got);
}

TEST(the_longest_prefix_says_where_a_lock_lives)
{
	expect_place(&f->conf, "orders/42", FLAVOUR_RW, "/lb/orders%2F42");
	expect_place(&f->conf, "app", FLAVOUR_RW, "/lb/app");
	expect_place(&f->conf, "app/orders", FLAVOUR_MUTEX, "/app/locks/orders");
	expect_place(&f->conf, "app/orders/42", FLAVOUR_MUTEX, "/app/locks/orders%2F42");
	expect_place(&f->conf, "app/..", FLAVOUR_MUTEX, "/app/locks/%2E.");
	expect_place(&f->conf, "app/py/x", FLAVOUR_KAZOO, "/lb/app%2Fpy%2Fx");
	expect_place(&f->conf, "app/py/", FLAVOUR_KAZOO, "/lb/app%2Fpy%2F");
	expect_place(&f->conf, "k.", FLAVOUR_KAZOO, "/kazoo/%2E");
	assert_false(flavour_has_place(&f->conf, SLICE("app/")));
	assert_false(flavour_has_place(&f->conf, SLICE("k")));
}

#define PREFIX_ALONE "-BADNAME that is a prefix with a path of its own, a lock's name goes on behind it: "

TEST(a_prefix_alone_is_no_name)
{
	fixture_say(f, 0, "LOCK app/", PREFIX_ALONE "\"app/\"");
	fixture_say(f, 0, "UNLOCK k", PREFIX_ALONE "\"k\"");
	fixture_say(f, 0, "HOLDERS k", PREFIX_ALONE "\"k\"");
	fixture_no_op(f);
}

TEST(contenders_are_named_by_flavour)
{
	static const struct {
		enum flavour flavour;
		enum mode mode;
		const char *name;
	} names[] = {
		{ FLAVOUR_RW, MODE_EXCLUSIVE, "_c_1000abcd-ef01-8234-8507-000000000042-__WRIT__" },
		{ FLAVOUR_RW, MODE_SHARED, "_c_1000abcd-ef01-8234-8507-000000000042-__READ__" },
		{ FLAVOUR_MUTEX, MODE_EXCLUSIVE, "_c_1000abcd-ef01-8234-8507-000000000042-lock-" },
		{ FLAVOUR_KAZOO, MODE_EXCLUSIVE, "1000abcdef0123450007000000000042__lock__" },
		{ FLAVOUR_KAZOO, MODE_SHARED, "1000abcdef0123450007000000000042__rlock__" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct bytes name = { 0 };
		struct contender c;

		contender_name(&name, SESSION, UINT64_C(0x0007000000000042), names[i].flavour, names[i].mode);
		assert_true(slice_is(bytes_view(&name), names[i].name));
		bytes_text(&name, "0000000017");
		assert_true(name.len < CONTENDER_NAME_MAX);
		assert_true(contender_parse(bytes_view(&name), names[i].flavour, &c));
		assert_true(c.known);
		assert_int_equal(c.mode, names[i].mode);
		assert_int_equal(c.seq, 17);
		assert_true(contender_of_session(bytes_view(&name), names[i].flavour, SESSION));
		assert_false(contender_of_session(bytes_view(&name), names[i].flavour, SESSION + 1));
		bytes_free(&name);
	}
	assert_int_equal(flavour_claim_mode(FLAVOUR_MUTEX, MODE_SHARED), MODE_EXCLUSIVE);
	assert_int_equal(flavour_claim_mode(FLAVOUR_RW, MODE_SHARED), MODE_SHARED);
	assert_int_equal(flavour_claim_mode(FLAVOUR_KAZOO, MODE_SHARED), MODE_SHARED);
}

/* Pitfall 7: past 2^31 the server writes a negative number. */
TEST(numbers_past_the_wrap_are_read_in_every_flavour)
{
	static const struct {
		enum flavour flavour;
		const char *name;
		bool known, shared;
		uint32_t seq;
	} names[] = {
		{ FLAVOUR_RW, "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__READ__-2147483648", true, true, 1u << 31 },
		{ FLAVOUR_MUTEX, "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock--2147483647", true, false, (1u << 31) + 1 },
		{ FLAVOUR_KAZOO, "4c61f3c27f3c4c119d3e1c6f0f3a9b11__lock__-2147483646", true, false, (1u << 31) + 2 },
		{ FLAVOUR_RW, "4c61f3c27f3c4c119d3e1c6f0f3a9b11__rlock__0000000003", false, false, 3 },
		{ FLAVOUR_KAZOO, "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__READ__0000000003", false, false, 3 },
		{ FLAVOUR_MUTEX, "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__READ__0000000003", false, false, 3 },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct contender c;

		assert_true(contender_parse(slice_of(names[i].name), names[i].flavour, &c));
		assert_int_equal(c.known, names[i].known);
		assert_int_equal(c.mode == MODE_SHARED, names[i].shared);
		assert_int_equal(c.seq, names[i].seq);
	}
}

TEST(a_lock_of_a_prefix_is_made_where_it_belongs)
{
	fixture_ask(f, 0, "LOCK app/a");
	fixture_op(f, EFFECT_ZK_GET, "/app/locks/a");
	fixture_answer(f, ZK_NONODE); /* get */
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
	fixture_answer(f, ZK_NONODE); /* create */
	fixture_answer(f, ZK_NONODE); /* list */
	assert_string_equal(fixture_op(f, EFFECT_ZK_CREATE, "/app/locks/a")->data, "1\nkind=lock\nflavour=mutex\n");
	fixture_answer(f, ZK_NONODE); /* its parents are missing: they are made behind what is under way */
	fixture_answer(f, ZK_NONODE); /* get */
	fixture_answer(f, ZK_NONODE); /* create */
	fixture_answer(f, ZK_NONODE); /* list */
	fixture_serve(f, EFFECT_ZK_CREATE, "/app", ZK_OK);
	fixture_serve(f, EFFECT_ZK_CREATE, "/app/locks", ZK_OK);
	fixture_serve(f, EFFECT_ZK_CREATE, "/app/locks/a", ZK_OK);
	fixture_answer_get(f, 1, 0, "1\nkind=lock\nflavour=mutex\n");
	fixture_serve_alone(f, "-lock-", 0, 77, f->znode);
	fixture_expect(f, 0, ":78848");
}

/* Among the hosts each of their claims is exclusive: whoever waits there could not have it with them. */
TEST(readers_of_a_host_share_a_mutex_until_anybody_else_waits)
{
	static const char behind[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000009";

	fixture_ask(f, 0, "LOCK app/a SHARED");
	fixture_answer_get(f, 1, 0, "");
	fixture_serve_alone(f, "-lock-", 0, 77, f->znode);
	fixture_expect(f, 0, ":78848");
	fixture_say(f, 1, "LOCK app/a SHARED", "");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 1, ":78848");
	fixture_say(f, 1, "UNLOCK app/a", ":0");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/app/locks/a");
	fixture_say(f, 1, "LOCK app/a SHARED", "");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, behind });
	fixture_expect(f, 1, "");
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
}

TEST(kazoos_directories_are_not_taken_away)
{
	fixture_ask(f, 0, "LOCK k1");
	fixture_answer(f, ZK_NONODE); /* get */
	fixture_op(f, EFFECT_ZK_CREATE, "__lock__");
	fixture_answer(f, ZK_NONODE); /* create */
	fixture_answer(f, ZK_NONODE); /* list */
	assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/kazoo/1")->effect.create, ZK_PERSISTENT);
}

TEST(a_host_of_another_flavour_is_told)
{
	fixture_ask(f, 0, "LOCK app/a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_expect(f, 0, "-MISMATCH that name's directory in ZooKeeper is of kind \"lock\" "
		    "and flavour \"rw\", not \"lock\" and \"mutex\", until some minutes after its last use: app/a");
}

/* Its directory, made by Curator, says nothing of what it is. */
TEST(curators_semaphore_is_no_lock)
{
	f->conf.linger_ns = 1000 * MS;
	for (int i = 0; i < 2; i++) {
		fixture_ask(f, 0, "LOCK app/a");
		fixture_answer_get(f, 1, 0, ""); /* from the second on before anything is put there */
		fixture_answer_made(f, (uint32_t)i, 77 + i, f->znode, sizeof(f->znode));
		fixture_answer_list(f, 1, 3, (const char *[]){ "leases", f->znode, "locks" });
		fixture_expect(f, 0, "-MISMATCH this name is in use as a semaphore, not as a lock: app/a");
		fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
		fixture_no_op(f);
	}
	/* Its directory went. */
	fixture_ask(f, 0, "LOCK app/a");
	fixture_answer(f, ZK_NONODE); /* get */
	fixture_op(f, EFFECT_ZK_GET, "/app/locks/a");
}
