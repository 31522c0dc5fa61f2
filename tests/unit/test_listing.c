/* SPDX-License-Identifier: Apache-2.0 */
/* What a list says of our claims (listing.h); nothing above the floor of claims is linked. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "core/claim/directories.h"
#include "core/claim/listing.h"
#include "protocol/bytes_format.h"

enum { SESSION = 0x1234, DIRECTORY_CZXID = 5 };

static const struct broker_conf conf = {
	.root = "/locks",
	.host = "h1",
	.session_timeout_ns = 12000000000,
	.tick_ns = 2000000000,
	.limits.session_path_bytes = 100000,
};

static struct fixture {
	struct env env;
	struct ensemble zk;
	struct directories all;
	struct directory d;
	struct effects out;
} f;

static int set_up(void **state)
{
	f = (struct fixture){ 0 };
	f.env.conf = &conf;
	f.env.out = &f.out;
	f.env.now_ns = 1000000000;
	f.zk.env = f.all.env = &f.env;
	f.all.ensemble = &f.zk;
	accounts_init(&f.env.accounts, POOLS, 3, 4);
	session_init(&f.zk);
	window_begin(&f.zk.operations.window, f.zk.env->now_ns);
	f.zk.session.id = SESSION;
	f.zk.session.connected = f.zk.session.proving = true;
	TAILQ_INIT(&f.all.touched);
	turn_init(&f.all);
	map_init(&f.all.paths, 1, 2);
	directory_init(&f.d, &f.all, NULL);
	bytes_text(&f.d.path, "/locks/a");
	directory_add(&f.d);
	f.d.state = DIRECTORY_FITS;
	f.d.czxid = DIRECTORY_CZXID;
	return 0;
}

static int tear_down(void **state)
{
	claim_free_all(&f.d);
	/* Nothing is charged for what is gone. */
	assert_true(f.d.claim_count == 0 && f.all.claim_count == 0 && f.all.stray_count == 0);
	f.d.operations = 0; /* some are never answered, */
	f.d.facts = 0;      /* and nobody takes what they have shown */
	directory_deinit(&f.d);
	map_deinit(&f.all.paths);
	accounts_deinit(&f.env.accounts);
	session_deinit(&f.zk);
	heap_deinit(&f.env.timers);
	effects_free(&f.out);
	f = (struct fixture){ 0 }; /* so that what it has not freed is seen to leak */
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

/* The operation that is answered. */
static struct operation taken(const struct event *event)
{
	operation_measure(&f.zk, operation_find(&f.zk, event->zk_answered.op), event);
	return operation_take(&f.zk, event->zk_answered.op);
}

/* A claim whose znode got that number. */
static struct claim *joined(enum mode mode, const char *digits)
{
	struct claim *c = claim_join(&f.d, mode, false, false);
	struct bytes path = { 0 };
	struct event event = { .type = EVENT_ZK_ANSWERED };
	struct operation op;

	assert_non_null(c);
	bytes_format(&path, "%s/%s%s", bytes_view(&f.d.path), c->name, digits);
	event.zk_answered.op = c->join_op;
	event.zk_answered.path = bytes_view(&path);
	event.zk_answered.stat.czxid = 100;
	op = taken(&event);
	claim_answered(c, &op, &event);
	bytes_free(&path);
	return c;
}

static void answer_list(enum zk_code code, size_t count, const struct slice *children)
{
	struct event event = { .type = EVENT_ZK_ANSWERED };
	struct operation op;

	event.zk_answered.op = f.d.list_op;
	event.zk_answered.code = code;
	event.zk_answered.stat.czxid = DIRECTORY_CZXID;
	event.zk_answered.count = count;
	event.zk_answered.children = children;
	op = taken(&event);
	listing_answered(&op, &event);
}

#define LISTED(...) \
	answer_list(ZK_OK, sizeof((struct slice[]){ __VA_ARGS__ }) / sizeof(struct slice), \
		    (struct slice[]){ __VA_ARGS__ })

TEST(whoever_is_first_holds)
{
	struct claim *c = f.d.claim = joined(MODE_EXCLUSIVE, "0000000007");

	LISTED(SLICE("_c_x-__WRIT__0000000008"), slice_of(c->name));
	assert_int_equal(c->state, CLAIM_HELD);
	assert_true(c->rivals && !f.d.facts);
}

TEST(others_wait_for_the_nearest_that_conflicts)
{
	struct claim *c = f.d.claim = joined(MODE_SHARED, "0000000007");

	LISTED(SLICE("_c_x-__READ__0000000006"), SLICE("_c_y-__WRIT__0000000005"), SLICE("_c_z-__WRIT__0000000003"),
	       slice_of(c->name));
	assert_true(c->state == CLAIM_WAITING && c->listed && !c->readers_ahead);
	assert_true(slice_eq(bytes_view(&c->pred), SLICE("_c_y-__WRIT__0000000005")));
	directory_list(&f.d, false);
	LISTED(SLICE("_c_x-__READ__0000000006"), slice_of(c->name));
	assert_int_equal(c->state, CLAIM_HELD); /* readers hold together */
}

TEST(a_list_that_precedes_the_create_says_nothing)
{
	struct claim *c;

	directory_list(&f.d, false);
	c = f.d.claim = claim_join(&f.d, MODE_EXCLUSIVE, false, false);
	f.d.list_op = c->join_op - 1;
	answer_list(ZK_OK, 0, NULL);
	assert_true(f.d.claim == c && c->state == CLAIM_JOINING && !f.d.facts);
}

TEST(a_held_znode_that_is_gone_is_lost_and_next_follows)
{
	struct claim *next;

	f.d.claim = joined(MODE_EXCLUSIVE, "0000000007");
	LISTED(slice_of(f.d.claim->name));
	next = f.d.next = joined(MODE_EXCLUSIVE, "0000000009");
	LISTED(slice_of(next->name));
	assert_true(f.d.claim == next && !f.d.next && next->state == CLAIM_HELD);
	assert_int_equal(f.d.facts, FACT_LOST);
	f.d.facts = 0;
}

TEST(a_waiting_znode_that_is_gone_loses_nothing)
{
	f.d.claim = joined(MODE_EXCLUSIVE, "0000000007");
	LISTED(SLICE("_c_x-__WRIT__0000000001"), slice_of(f.d.claim->name));
	directory_list(&f.d, false);
	LISTED(SLICE("_c_x-__WRIT__0000000001"));
	assert_null(f.d.claim);
	assert_int_equal(f.env.stats.vanished_total, 1);
}

TEST(an_orphan_of_ours_is_deleted)
{
	struct bytes orphan = { 0 };
	const struct effect *sent;

	contender_name(&orphan, SESSION, 77, FLAVOUR_RW, MODE_EXCLUSIVE);
	bytes_text(&orphan, "0000000002");
	f.d.claim = joined(MODE_EXCLUSIVE, "0000000007");
	LISTED(bytes_view(&orphan), slice_of(f.d.claim->name));
	assert_int_equal(f.all.stray_count, 1);
	sent = &f.out.list[f.out.count - 2];
	assert_int_equal(sent[0].type, EFFECT_ZK_DELETE);
	/* Ours waits behind it, until a list that is sent behind the delete shows that it is gone. */
	assert_int_equal(sent[1].type, EFFECT_ZK_LIST);
	assert_int_equal(f.d.claim->state, CLAIM_WAITING);
	bytes_free(&orphan);
}

/* Another host's contender, in a directory that other software made: this host has it configured otherwise. */
TEST(a_child_of_no_known_kind_is_told_without_its_session)
{
	static const enum flavour theirs[] = { FLAVOUR_RW, FLAVOUR_KAZOO };

	for (size_t i = 0; i < 2; i++) {
		struct bytes child = { 0 }, said = { 0 };
		const struct effect *e;

		contender_name(&child, 0x1020304050607, 77, theirs[i], MODE_EXCLUSIVE);
		bytes_text(&child, "0000000002");
		f.d.flavour = FLAVOUR_MUTEX;
		f.d.unrecognized_reported = false;
		directory_list(&f.d, false);
		LISTED(bytes_view(&child));
		for (e = f.out.list; e->type != EFFECT_LOG; e++)
			assert_true(e < f.out.list + f.out.count);
		bytes_format(&said, "%s %s", effects_slice(&f.out, e->text), effects_slice(&f.out, e->data));
		bytes_char(&said, '\0');
		assert_non_null(strstr(said.data, "a child of no known kind in /locks/a: "));
		assert_non_null(strstr(said.data, "0000000002"));
		assert_null(strstr(said.data, "00010203"));
		bytes_free(&child);
		bytes_free(&said);
		effects_clear(&f.out);
	}
}

TEST(a_refusal_concerns_all_requests)
{
	f.d.claim = joined(MODE_EXCLUSIVE, "0000000007");
	answer_list(ZK_REFUSED, 0, NULL);
	assert_int_equal(f.d.facts, FACT_FAILED);
	assert_int_equal(f.d.failure.failed, FAILED_REQUESTS);
	assert_int_equal(f.d.failure.code, ERROR_UNAVAILABLE);
	assert_true(f.d.relist && !directory_may_send(&f.d));
	f.d.facts = 0;
}

/* That one says what the older one would have. */
TEST(a_refused_list_forgets_no_watch_that_a_later_list_sets)
{
	struct event event = { .type = EVENT_ZK_ANSWERED, .zk_answered.code = ZK_BUSY };
	struct operation op;
	uint64_t later;

	f.d.claim = joined(MODE_EXCLUSIVE, "0000000007");
	f.d.claim->state = CLAIM_HELD;
	directory_list(&f.d, true);
	event.zk_answered.op = f.d.watch_op;
	directory_list(&f.d, true);
	later = f.d.watch_op;
	op = taken(&event);
	listing_answered(&op, &event);
	assert_true(later > event.zk_answered.op && f.d.watch_op == later && directory_watches(&f.d));
	LISTED(slice_of(f.d.claim->name));
	assert_int_equal(f.d.watch, WATCH_UNCONTENDED);
}

TEST(slots_are_counted)
{
	struct claim *c;

	f.d.flavour = FLAVOUR_SLOTS;
	f.d.part = true;
	c = joined(MODE_EXCLUSIVE, "0000000007");
	TAILQ_INSERT_TAIL(&f.d.slots, c, link);
	directory_list(&f.d, false);
	LISTED(SLICE("_c_x-lease-0000000001"), slice_of(c->name));
	/* Whether that is few enough is for the semaphore to say. */
	assert_true(f.d.facts == FACT_COUNTED && f.d.children == 2 && c->counted && c->state == CLAIM_WAITING);
	f.d.facts = 0;
}

/* A claim on a semaphore's permit, whose create was answered with that number; NULL: its answer was lost. */
static struct claim *slot(const char *digits)
{
	struct event lost = { .type = EVENT_ZK_ANSWERED, .zk_answered.code = ZK_UNKNOWN };
	struct operation op;
	struct claim *c;

	f.d.flavour = FLAVOUR_SLOTS;
	f.d.part = true;
	c = digits ? joined(MODE_EXCLUSIVE, digits) : claim_join(&f.d, MODE_EXCLUSIVE, false, false);
	TAILQ_INSERT_TAIL(&f.d.slots, c, link);
	if (!digits) {
		lost.zk_answered.op = c->join_op;
		op = taken(&lost);
		claim_answered(c, &op, &lost);
		assert_int_equal(c->state, CLAIM_UNSURE);
	}
	return c;
}

TEST(each_of_many_permits_is_found_in_one_list)
{
	struct claim *late = slot("0000000009"), *unsure = slot(NULL), *early = slot("0000000003");
	struct bytes found = { 0 }, stray = { 0 };

	slot("0000000005"); /* somebody has deleted it */
	bytes_format(&found, "%s0000000007", unsure->name);
	contender_name(&stray, SESSION, 1 << 20, FLAVOUR_SLOTS, MODE_EXCLUSIVE);
	bytes_text(&stray, "0000000004");
	directory_list(&f.d, false);
	LISTED(slice_of(late->name), SLICE("_c_x-lease-0000000001"), bytes_view(&stray), bytes_view(&found),
	       slice_of(early->name));
	assert_true(late->counted && early->counted);
	assert_true(unsure->adopting && slice_eq(slice_of(unsure->name), bytes_view(&found)));
	assert_true(f.all.stray_count == 1 && f.d.facts & FACT_LOST);
	assert_int_equal(f.d.children, 5);
	bytes_free(&found);
	bytes_free(&stray);
}
