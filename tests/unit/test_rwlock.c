/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of a lock (lock.h), over a directory whose claims and facts each test sets; nothing above kinds is linked. */
#include "lock_fixture.h"

#include "core/kind/kinds.h"

enum { HANDOFFS = 2 };

struct row {
	struct fixture *f;
	struct lock *lock;
	struct directory *d;
};

static struct row r;

static int set_up(void **state)
{
	r.f = fixture_new(kind_rules);
	r.f->conf.handoff_max = HANDOFFS;
	r.f->conf.handoff_ns = INT64_MAX;
	r.lock = lock_named(r.f, "a");
	r.d = &r.lock->directory;
	return 0;
}

static int tear_down(void **state)
{
	fixture_free(r.f);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

/* What the clients are told once the lock is settled. */
static const char *settled(void)
{
	directory_touch(r.d);
	while (r.d->touched)
		settle_directory(r.d);
	return told(r.f);
}

static void asks_for(int client, enum mode mode, int64_t wait_ns)
{
	request_new(r.lock, &r.f->clients[client], &(struct request_terms){ .mode = mode, .wait_ns = wait_ns });
}

static void wants(int client, enum mode mode)
{
	asks_for(client, mode, -1);
}

static void releases(int client)
{
	grant_end(grant_find(r.lock, &r.f->clients[client]));
}

/* A list has shown that our znode is the first. */
static void is_first(struct claim *c, int64_t czxid)
{
	c->named = true;
	c->czxid = czxid;
	claim_held(c);
}

/* The first of these clients has the lock, the others wait, one behind the other. */
static void one_holds_others_wait(int count, enum mode mode)
{
	for (int i = 0; i < count; i++)
		wants(i, mode);
	assert_string_equal(settled(), "");
	is_first(r.d->claim, 7);
}

/* The children watch stands, and its list has shown that. */
static void somebody_waits_elsewhere(bool waits)
{
	r.d->watch = waits ? WATCH_CONTENDED : WATCH_UNCONTENDED;
}

/* The place of the first such effect; -1: there is none. */
static int sent(enum effect_type type)
{
	for (size_t i = 0; i < r.f->out.count; i++)
		if (r.f->out.list[i].type == type)
			return (int)i;
	return -1;
}

TEST(who_asks_first_is_served_first)
{
	one_holds_others_wait(3, MODE_EXCLUSIVE);
	assert_string_equal(settled(), "granted 0");
	assert_string_equal(settled(), "");
	releases(0);
	assert_string_equal(settled(), "granted 1");
	releases(1);
	assert_string_equal(settled(), "granted 2");
}

TEST(each_writer_has_a_token_of_its_own)
{
	one_holds_others_wait(2, MODE_EXCLUSIVE);
	settled();
	assert_int_equal(TAILQ_FIRST(&r.lock->grants)->token, 7 << 10);
	releases(0);
	settled();
	assert_int_equal(TAILQ_FIRST(&r.lock->grants)->token, (7 << 10) + 1);
}

TEST(readers_at_the_front_get_it_together)
{
	one_holds_others_wait(3, MODE_SHARED);
	assert_string_equal(settled(), "granted 0, granted 1, granted 2");
	assert_int_equal(r.d->claim->mode, MODE_SHARED);
	assert_int_equal(r.d->claim->contended, 0);
	assert_int_equal(TAILQ_LAST(&r.lock->grants, grant_list)->token, 7 << 10);
}

TEST(no_reader_passes_a_writer)
{
	wants(0, MODE_EXCLUSIVE);
	settled();
	is_first(r.d->claim, 7);
	somebody_waits_elsewhere(false);
	wants(1, MODE_SHARED);
	wants(2, MODE_EXCLUSIVE);
	wants(3, MODE_SHARED);
	assert_string_equal(settled(), "granted 0");
	releases(0);
	assert_string_equal(settled(), "granted 1");
	releases(1);
	assert_string_equal(settled(), "granted 2");
	releases(2);
	assert_string_equal(settled(), "granted 3");
}

TEST(a_writer_behind_readers_needs_a_claim_of_its_own)
{
	wants(0, MODE_SHARED);
	wants(1, MODE_EXCLUSIVE);
	settled();
	is_first(r.d->claim, 7);
	assert_string_equal(settled(), "granted 0");
	assert_int_equal(r.d->next->mode, MODE_EXCLUSIVE);
	releases(0);
	assert_string_equal(settled(), "");
	assert_int_equal(r.d->claim->state, CLAIM_JOINING);
	is_first(r.d->claim, 9);
	assert_string_equal(settled(), "granted 1");
	assert_int_equal(TAILQ_FIRST(&r.lock->grants)->token, 9 << 10);
}

TEST(a_late_reader_joins_if_nobody_waits_elsewhere)
{
	one_holds_others_wait(1, MODE_SHARED);
	somebody_waits_elsewhere(false);
	assert_string_equal(settled(), "granted 0");
	wants(1, MODE_SHARED);
	assert_string_equal(settled(), "granted 1");
	somebody_waits_elsewhere(true);
	wants(2, MODE_SHARED);
	assert_string_equal(settled(), "");
	assert_non_null(r.d->next);
}

TEST(hand_offs_end_when_somebody_waits_elsewhere)
{
	one_holds_others_wait(HANDOFFS + 2, MODE_EXCLUSIVE);
	somebody_waits_elsewhere(true);
	settled();
	for (int i = 0; i < HANDOFFS; i++) {
		releases(i);
		settled();
		assert_non_null(grant_find(r.lock, &r.f->clients[i + 1]));
	}
	effects_clear(&r.f->out);
	releases(HANDOFFS);
	assert_string_equal(settled(), "");
	/* Another one was queued before it went back: nobody who comes now stands between. */
	assert_true(sent(EFFECT_ZK_CREATE) >= 0 && sent(EFFECT_ZK_CREATE) < sent(EFFECT_ZK_DELETE));
	assert_int_equal(TAILQ_FIRST(&r.d->leaving)->czxid, 7);
	assert_int_equal(r.d->claim->state, CLAIM_JOINING);
}

TEST(hand_offs_go_on_while_nobody_does)
{
	one_holds_others_wait(HANDOFFS + 2, MODE_EXCLUSIVE);
	somebody_waits_elsewhere(false);
	settled();
	for (int i = 0; i < HANDOFFS + 1; i++) {
		releases(i);
		settled();
		assert_non_null(grant_find(r.lock, &r.f->clients[i + 1]));
	}
	assert_int_equal(r.d->claim->czxid, 7);
}

TEST(a_loss_is_taken_before_next_is_served)
{
	one_holds_others_wait(2, MODE_EXCLUSIVE);
	settled();
	r.d->next = claim_join(r.d, MODE_EXCLUSIVE, false, false);
	is_first(r.d->next, 9);
	claim_free(r.d->claim);
	r.d->facts = FACT_LOST;
	assert_string_equal(settled(), "lost 0, granted 1");
	assert_int_equal(TAILQ_FIRST(&r.lock->grants)->token, 9 << 10);
}

TEST(a_claim_that_nobody_wants_any_longer_goes_back)
{
	wants(0, MODE_EXCLUSIVE);
	settled();
	assert_int_equal(r.d->claim->state, CLAIM_JOINING);
	request_end(r.f->clients[0].request);
	assert_string_equal(settled(), "");
	assert_null(r.d->claim);
	assert_false(TAILQ_EMPTY(&r.d->leaving));
}

TEST(a_held_claim_lingers_until_somebody_else_wants_it)
{
	r.f->conf.linger_ns = 5000;
	one_holds_others_wait(1, MODE_EXCLUSIVE);
	somebody_waits_elsewhere(false);
	settled();
	releases(0);
	settled();
	assert_int_equal(r.d->claim->state, CLAIM_HELD);
	assert_int_equal(sent(EFFECT_ZK_DELETE), -1);
	somebody_waits_elsewhere(true);
	settled();
	assert_null(r.d->claim);
	assert_true(sent(EFFECT_ZK_DELETE) >= 0);
}

TEST(a_held_claim_lingers_for_so_long)
{
	r.f->conf.linger_ns = 5000;
	one_holds_others_wait(1, MODE_EXCLUSIVE);
	somebody_waits_elsewhere(false);
	settled();
	releases(0);
	settled();
	r.f->env.now_ns += 4999;
	settled();
	assert_non_null(r.d->claim);
	r.f->env.now_ns++;
	settled();
	assert_null(r.d->claim);
}

TEST(nothing_is_granted_without_a_proof)
{
	one_holds_others_wait(1, MODE_EXCLUSIVE);
	r.f->ensemble.session.proof.safe_until_ns = r.f->env.now_ns;
	assert_string_equal(settled(), "");
	assert_int_equal(r.d->claim->state, CLAIM_HELD);
	r.f->ensemble.session.proof.safe_until_ns = INT64_MAX;
	assert_string_equal(settled(), "granted 0");
}

TEST(a_try_ends_when_the_lock_is_taken_here)
{
	one_holds_others_wait(1, MODE_SHARED);
	settled();
	asks_for(1, MODE_EXCLUSIVE, 0);
	assert_string_equal(settled(), "timed out 1");
}

TEST(a_try_waits_until_it_is_known_who_holds)
{
	asks_for(0, MODE_EXCLUSIVE, 0);
	assert_string_equal(settled(), "");
	assert_true(r.d->claim->tries);
	r.d->claim->state = CLAIM_WAITING;
	r.d->claim->named = r.d->claim->listed = true;
	assert_string_equal(settled(), "");
	r.d->claim->in_use = true;
	assert_string_equal(settled(), "timed out 0");
	assert_null(r.d->claim);
}

TEST(a_refusal_ends_all_that_wait)
{
	wants(0, MODE_EXCLUSIVE);
	wants(1, MODE_EXCLUSIVE);
	settled();
	directory_fail(r.d, FAILED_REQUESTS, ERROR_UNAVAILABLE, "no");
	assert_string_equal(settled(), "failed 0, failed 1");
	assert_null(r.d->claim);
}
