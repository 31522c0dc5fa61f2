/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process goes on from the ledger of one that was killed (core/salvage.h). The simulator kills at any moment; here are
 * the rules one by one, and what somebody changed.
 */
#include "core_test.h"

#include "core/port/ledger.h"
#include "core/port/pools.h"
#include "core/record.h"
#include "core/salvage.h"
#include "core/snapshot.h"
#include "core/state.h"

enum { CONNS = 5, SEED = 7 };

static const int64_t T_NS = 12000 * MS;

SETUP(setup, false, CONNS)
SETUP(setup_standalone, true, CONNS)

static struct ledger_view *view_of(struct fixture *f)
{
	struct bytes why = { 0 };
	struct ledger_view *v = ledger_view_new(f->memory, FIXTURE_MEMORY_BYTES, &why);

	assert_non_null(v);
	bytes_free(&why);
	return v;
}

static struct salvage salvage_of(struct fixture *f, const struct ledger_view *v, const bool *back)
{
	return (struct salvage){
		.conf = &f->conf,
		.ledger = v,
		.session = f->conf.standalone ? 0 : SESSION,
		.timeout_ns = T_NS,
		.safe_until_ns = broker_safe_until(f->broker),
		.back = back,
		.back_count = CONNS,
		.seed = SEED,
		.now_ns = f->now_ns,
	};
}

/* Of the connections those are taken back whose bits are set, and which may be. */
static void go_on(struct fixture *f, unsigned int kept, int64_t safe_until_ns)
{
	struct bytes text = { 0 }, why = { 0 };
	struct ledger_view *v = view_of(f);
	bool back[CONNS];
	struct salvage s;

	salvage_may_continue(v, back, CONNS);
	for (uint32_t i = 0; i < CONNS; i++)
		back[i] = back[i] && kept >> i & 1;
	s = salvage_of(f, v, back);
	s.safe_until_ns = safe_until_ns;
	assert_true(salvage(&s, &text, &why));
	ledger_view_free(v);
	fixture_restore(f, bytes_view(&text));
	f->first_op = f->end_op;
	fixture_record(f);
	fixture_simple(f, EVENT_TIME, 0);
	bytes_free(&text);
	bytes_free(&why);
}

static void kill_and_go_on(struct fixture *f, unsigned int kept)
{
	go_on(f, kept, broker_safe_until(f->broker));
}

static bool may_continue(struct fixture *f, uint32_t conn)
{
	struct ledger_view *v = view_of(f);
	bool may[CONNS];

	salvage_may_continue(v, may, CONNS);
	ledger_view_free(v);
	return may[conn];
}

static void refuse_until(struct fixture *f, enum effect_type type, const char *part)
{
	while (fixture_oldest(f)->effect.type != type || !strstr(fixture_oldest(f)->path, part))
		fixture_answer(f, ZK_REFUSED);
}

/* The first thing that is answered is a write; then the recovery asks. */
static void connect_again(struct fixture *f)
{
	fixture_zk_connected(f, SESSION);
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_CREATE)
		fixture_answer(f, ZK_OK);
	fixture_answer(f, ZK_NODEEXISTS);
}

/* ---- what was seen of ZooKeeper ---- */

TEST(a_demand_for_higher_numbers_goes_over)
{
	fixture_pass(f, 1500);
	fixture_answer_beat(f, 5000);
	fixture_pass(f, 1500);
	fixture_answer_beat(f, 4000);
	kill_and_go_on(f, 0);
	assert_int_equal(f->broker->ensemble.past.seen, 5000);
	assert_int_equal(f->broker->ensemble.past.floor, 5000 + (1 << 17));
	assert_int_equal(f->broker->ensemble.past.own, 4000);
}

/* ---- connections ---- */

ALONE(who_is_taken_back_has_its_grants_with_their_tokens)
{
	fixture_say(f, 0, "LOCK a LEASE 5000", ":1024");
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say(f, 1, "LOCK b SHARED", ":2048");
	kill_and_go_on(f, 3);
	fixture_say(f, 0, "VALID a", ":9223372036854");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 1, "VALID b", ":9223372036854");
}

TEST(the_age_of_the_last_proof_goes_on)
{
	fixture_held(f, f->znode);
	kill_and_go_on(f, 1);
	assert_in_range(f->now_ns - f->broker->ensemble.session.proved_ns, 0, T_NS / 3);
}

/* A kind that only tests have (tests/sim/latch.h). */
ALONE(what_a_kind_keeps_goes_on)
{
	fixture_say(f, 0, "ARRIVE l 2", "");
	fixture_say(f, 1, "ARRIVE l 2", ":1024");
	fixture_expect(f, 0, ":1024");
	kill_and_go_on(f, 3);
	fixture_say(f, 0, "LEAVE l", ":1");
	fixture_connect(f, 2);
	fixture_say(f, 2, "ARRIVE l 2", ":1024");
	fixture_say(f, 2, "LEAVE l", ":1");
	fixture_say(f, 1, "LEAVE l", ":1");
	fixture_say(f, 2, "ARRIVE l 2 WAIT 0", "$-1");
}

ALONE(a_lease_ends_when_it_would_have)
{
	fixture_say(f, 0, "LOCK a LEASE 5000", ":1024");
	fixture_pass(f, 1000);
	kill_and_go_on(f, 1);
	fixture_pass(f, 3999);
	fixture_say(f, 0, "VALID a", ":1");
	fixture_pass(f, 1);
	fixture_say(f, 0, "VALID a", ":0");
}

ALONE(against_a_ghost_nobody_is_granted_anything)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK b", ":2048");
	kill_and_go_on(f, 2);
	assert_true(broker_has_client(f->broker, 0));
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
	fixture_ask(f, 1, "LOCK a");
	fixture_expect(f, 1, "");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_event(f, &(struct event){ .type = EVENT_TOKENS, .tokens.limit = 3000000 });
	fixture_expect(f, 1, ":1025");
}

/* It reads nothing any longer, and its process relies on what it holds. */
TEST(a_ghost_keeps_what_it_holds_though_it_reads_nothing)
{
	fixture_held(f, f->znode);
	kill_and_go_on(f, 0);
	connect_again(f);
	fixture_connect(f, 1);
	fixture_say(f, 1, "REVOKE a", ":1");
	f->conf.limits.events_per_client = 1; /* as after a reload */
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_false(f->broker->locks.conns[0]->closing);
	assert_int_equal(f->broker->locks.conns[0]->grant_count, 1);
}

ALONE(where_a_client_came_from_goes_on)
{
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_connect_as(f, 0, 0, SLICE("web.service"), true);
	fixture_say(f, 0, "LOCK a", ":1024");
	kill_and_go_on(f, 1);
	fixture_is_from(f, 0, "web.service", true);
}

/* Most clients of RESP2 never ask for events. */
TEST(what_is_unread_of_the_session_goes_on)
{
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 0, "EVENTS", "*2 $8 jeopardy :8000");
	fixture_zk_connected(f, SESSION);
	assert_true(may_continue(f, 0));
	kill_and_go_on(f, 1);
	fixture_say(f, 0, "EVENTS", "*1 $4 safe");
}

ALONE(who_held_nothing_is_left_out)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	kill_and_go_on(f, 0);
	assert_int_equal(broker_clients(f->broker), 1);
}

ALONE(who_waits_for_something_may_not_go_on)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK b", ":2048");
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	assert_true(may_continue(f, 0));
	assert_false(may_continue(f, 1)); /* it waits */
	assert_false(may_continue(f, 2)); /* nothing is written of it */
}

ALONE(what_was_told_is_carried_out_without_another_event)
{
	fixture_resp3(f, 0);
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b LEASE 1000", ":2048");
	assert_true(may_continue(f, 0));
	f->now_ns += 1000 * MS;
	fixture_simple(f, EVENT_TIME, 0);
	fixture_expect_push(f, 0, ">4 $4 lost $1 b :2048 $5 lease");
	assert_false(may_continue(f, 0)); /* it may not have been sent */
	broker_carried_out(f->broker);
	assert_true(may_continue(f, 0));
}

ALONE(a_loss_is_told_again)
{
	fixture_resp3(f, 0);
	fixture_say(f, 0, "LOCK a LEASE 1000", ":1024");
	fixture_pass(f, 1000);
	fixture_expect_push(f, 0, ">4 $4 lost $1 a :1024 $5 lease");
	fixture_pass(f, 10);
	kill_and_go_on(f, 1);
	fixture_expect_push(f, 0, ">4 $4 lost $1 a :1024 $5 lease");
}

/* ---- claims ---- */

static const struct claim *claim_of(struct fixture *f)
{
	return lock_find(&f->broker->locks, SLICE("a"))->directory.claim;
}

/* The highest number of hand-offs is not that of the grant that is left. */
ALONE(a_number_that_was_given_is_not_given_again)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "DOWNGRADE a", ":1024");
	fixture_say(f, 1, "LOCK a SHARED", ":1025");
	fixture_say(f, 1, "UNLOCK a", ":0");
	kill_and_go_on(f, 3);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_event(f, &(struct event){ .type = EVENT_TOKENS, .tokens.limit = 3000000 });
	fixture_expect(f, 1, ":1026");
}

/* 0 holds a before and after the kill; only a list of the lock's znodes is left to be asked. */
static void go_on_up_to_the_list(struct fixture *f)
{
	fixture_held(f, f->znode);
	kill_and_go_on(f, 1);
	connect_again(f);
	refuse_until(f, EFFECT_ZK_LIST, "/lb/a");
}

/* The first that is sent for its znode is the read. */
static void refuse_up_to_its_read(struct fixture *f)
{
	while (!strstr(fixture_oldest(f)->path, f->znode))
		fixture_answer(f, ZK_REFUSED);
	fixture_op(f, EFFECT_ZK_GET, f->znode);
}

TEST(a_claim_is_kept_after_a_list_and_a_read_showed_it)
{
	go_on_up_to_the_list(f);
	assert_true(claim_of(f)->salvaged);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	assert_true(claim_of(f)->salvaged);
	refuse_up_to_its_read(f);
	fixture_answer_get(f, 77, SESSION, "");
	assert_false(claim_of(f)->salvaged);
	fixture_say(f, 0, "VALID a", ":8000");
}

TEST(a_znode_that_another_one_made_under_its_name_costs_the_grant)
{
	fixture_resp3(f, 0);
	go_on_up_to_the_list(f);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	refuse_up_to_its_read(f);
	fixture_expect_push(f, 0, "");
	fixture_answer_get(f, 99, BETA, "");
	fixture_expect_push(f, 0, ">4 $4 lost $1 a :78848 $7 deleted");
}

/* ... by whom is not told: whoever waits elsewhere may have seen as many hand-offs as are allowed. */
TEST(what_was_seen_of_the_ensemble_goes_on)
{
	fixture_held(f, f->znode);
	assert_int_equal(f->broker->ensemble.past.seen, 77);
	kill_and_go_on(f, 1);
	assert_int_equal(f->broker->ensemble.past.seen, 77);
	assert_int_equal(f->broker->ensemble.past.floor, 0);
}

/* The count goes on; the makers are not known. */
TEST(a_kill_keeps_the_count_of_lasting_directories)
{
	static const struct broker_prefix kazoo = { "k/", FLAVOUR_KAZOO, "", 0 };

	f->conf.prefixes = &kazoo;
	f->conf.prefix_count = 1;
	fixture_record(f);
	fixture_ask(f, 0, "LOCK k/a");
	while (f->broker->directories.paths.count && !lasting_count(&f->broker->directories))
		fixture_answer(f, ZK_NONODE);
	kill_and_go_on(f, 0);
	assert_int_equal(lasting_count(&f->broker->directories), 1);
	assert_int_equal(f->broker->env.accounts.nobody.used[POOL_LASTING], 1);
}

TEST(a_claim_for_which_somebody_waits_is_not_handed_on)
{
	const char *children[2] = { f->znode, "_c_2000abcd-ef01-8234-8500-000000000001-__WRIT__0000000009" };

	go_on_up_to_the_list(f);
	fixture_answer_list(f, 1, 2, children);
	refuse_up_to_its_read(f);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_connect(f, 1);
	fixture_say(f, 1, "LOCK a WAIT 5000", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "");
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_DELETE || !strstr(fixture_oldest(f)->path, f->znode)) {
		if (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST && strstr(fixture_oldest(f)->path, "/lb/a"))
			fixture_answer_list(f, 1, 2, children);
		else if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
			fixture_answer_get(f, 1, 0, LOCK_DATA);
		else
			fixture_answer(f, ZK_REFUSED);
	}
	fixture_expect(f, 1, "");
}

/* Nobody knows for how long the killed process had stood still, nor what became of the session since. */
TEST(after_a_kill_nothing_is_granted_until_a_write_of_this_life_is_answered)
{
	fixture_held(f, f->znode);
	kill_and_go_on(f, 1);
	assert_true(f->broker->ensemble.session.proof.stalled);
	fixture_zk_connected(f, SESSION);
	assert_true(f->broker->ensemble.session.proof.stalled);
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_CREATE)
		fixture_answer(f, ZK_OK);
	fixture_answer(f, ZK_NODEEXISTS);
	assert_false(f->broker->ensemble.session.proof.stalled);
}

/* The kill came between the grant and the page with the proof that made it possible. */
TEST(a_grant_without_a_proof_in_the_file_was_told_nobody_and_ends)
{
	fixture_held(f, f->znode);
	go_on(f, 1, INT64_MIN);
	assert_int_equal(f->broker->locks.grant_count, 1);
	assert_int_equal(f->broker->locks.lost_count, 1);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
}

TEST(after_a_kill_with_an_old_proof_a_write_counts_from_a_tick_later)
{
	fixture_held(f, f->znode);
	kill_and_go_on(f, 1);
	assert_int_equal(f->broker->ensemble.session.proof.stalled_until_ns, f->now_ns);
	f->now_ns += T_NS / 2;
	kill_and_go_on(f, 1);
	assert_int_equal(f->broker->ensemble.session.proof.stalled_until_ns, f->now_ns + f->conf.tick_ns);
}

/* Both the read and the list behind it: it is asked about again, or nothing would be granted on it any longer. */
TEST(a_read_and_a_list_that_are_refused_are_repeated)
{
	go_on_up_to_the_list(f);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	for (int i = 0; i < 3; i++) {
		bool listed = false;

		while (fixture_is_open(f)) {
			const struct fixture_op *op = fixture_oldest(f);

			listed = listed || (op->effect.type == EFFECT_ZK_LIST && strcmp(op->path, "/lb/a") == 0);
			fixture_answer(f, ZK_REFUSED);
		}
		assert_true(listed || i == 0);
		fixture_pass(f, 1001);
	}
}

TEST(a_session_that_is_not_the_ledgers_is_none)
{
	struct ledger_view *v = view_of(f);

	assert_true(salvage_session(v, SESSION) == SESSION);
	assert_true(salvage_session(v, BETA) == 0);
	ledger_view_free(v);
}

/* ---- what cannot be gone by ---- */

static void expect_no_ledger(const void *memory, size_t bytes, const char *sentence)
{
	struct bytes why = { 0 };

	assert_null(ledger_view_new(memory, bytes, &why));
	bytes_char(&why, '\0');
	assert_string_equal(why.data, sentence);
	bytes_free(&why);
}

ALONE(what_is_no_ledger_is_refused_with_a_sentence)
{
	struct ledger_head *head = f->memory;
	uint64_t magic = head->magic;

	expect_no_ledger(f->memory, LEDGER_CHUNK_BYTES - 1, "it is no ledger");
	head->missing = 1;
	expect_no_ledger(f->memory, FIXTURE_MEMORY_BYTES, "there was no room for all of it");
	head->magic = magic + 1;
	expect_no_ledger(f->memory, FIXTURE_MEMORY_BYTES, "it is of another version");
	head->magic = 1;
	expect_no_ledger(f->memory, FIXTURE_MEMORY_BYTES, "it is no ledger");
	head->magic = 0;
	expect_no_ledger(f->memory, FIXTURE_MEMORY_BYTES, "the process that wrote it ended before it was complete");
	head->magic = magic;
	head->missing = 0;
}

static void expect_refused(const struct salvage *of, const char *sentence)
{
	struct bytes text = { 0 }, why = { 0 };

	assert_false(salvage(of, &text, &why));
	bytes_char(&why, '\0');
	assert_string_equal(why.data, sentence);
	bytes_free(&text);
	bytes_free(&why);
}

ALONE(a_client_without_a_place_among_the_connections_is_refused)
{
	bool back[CONNS] = { 0 };
	struct ledger_view *v;
	struct salvage s;

	fixture_say(f, 4, "LOCK a", ":1024");
	v = view_of(f);
	s = salvage_of(f, v, back);
	s.back_count = 4;
	expect_refused(&s, "a client in it is of a connection that there is not");
	ledger_view_free(v);
}

ALONE(another_configuration_is_refused)
{
	struct ledger_view *v = view_of(f);
	struct broker_conf other = f->conf;
	struct salvage s = salvage_of(f, v, NULL);

	s.back_count = 0;
	s.conf = &other;
	other.host = "beta";
	expect_refused(&s, "the configuration has another host, root, prefix or mode than it");
	ledger_view_free(v);
}
