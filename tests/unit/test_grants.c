/* SPDX-License-Identifier: Apache-2.0 */
/* Grants, requests and their outcomes: who counts what, and what is told; no kind of lock is linked. */
#include "lock_fixture.h"

/* These locks decide nothing: each test does. */
static const struct kind_rule no_rule;
static const struct kind_rule *const rules[KINDS_MAX] = { &no_rule, &no_rule, &no_rule };

static struct fixture *f;
static struct lock *lock;
static struct client *c;

static int set_up(void **state)
{
	f = fixture_new(rules);
	lock = lock_named(f, "a");
	c = &f->clients[0];
	return 0;
}

static int tear_down(void **state)
{
	fixture_free(f);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

static struct request *wants(int client, bool queued, int64_t wait_ns)
{
	struct client *who = &f->clients[client];

	request_new(lock, who, &(struct request_terms){ .queued = queued, .wait_ns = wait_ns });
	return request_find(lock, who);
}

static struct grant *holds_for(int client, int64_t lease_ns)
{
	fixture_grant(lock, &f->clients[client], 7, lease_ns);
	return grant_find(lock, &f->clients[client]);
}

static struct grant *holds(int client)
{
	return holds_for(client, 0);
}

/* The latest word to the adapter of whether the client holds something. */
static bool adapter_knows_holder(void)
{
	const struct effect *e = &f->out.list[f->out.count - 1];

	assert_true(f->out.count && e->type == EFFECT_HOLDER && e->conn == c->conn);
	return e->holds;
}

TEST(a_request_counts_until_it_has_ended)
{
	struct request *r = wants(0, false, -1);

	assert_ptr_equal(c->request, r);
	assert_true(lock->request_count == 1 && c->request_count == 1 && c->account->used[POOL_REQUESTS] == 1);
	assert_true(f->locks.request_count == 1 && f->locks.blocked_count == 1);
	request_end(r);
	assert_true(!lock->request_count && !c->request_count && !c->account->used[POOL_REQUESTS] && !c->request);
	assert_true(!f->locks.request_count && !f->locks.blocked_count);
	assert_string_equal(told(f), "");
}

TEST(a_queued_one_blocks_nobody)
{
	wants(0, true, -1);
	assert_null(c->request);
	assert_true(f->locks.request_count == 1 && f->locks.blocked_count == 0);
	assert_int_equal(f->env.stats.enqueued_total, 1);
}

TEST(who_is_granted_something_no_longer_waits)
{
	request_grant(wants(0, false, -1), 42);
	assert_true(!c->request && !lock->request_count && lock->grant_count == 1);
	assert_int_equal(TAILQ_FIRST(&f->locks.outcomes)->number, 42);
	assert_int_equal(grant_find(lock, c)->token, 42);
	assert_true(c->account->used[POOL_GRANTS] == 1 && c->counted == 1);
	assert_string_equal(told(f), "granted 0");
}

TEST(outcomes_are_told_once_in_order)
{
	request_time_out(wants(2, true, -1));
	request_fail(wants(0, false, -1), ERROR_LIMIT, "no");
	request_grant(wants(1, false, -1), 1);
	assert_string_equal(told(f), "timed out 2, failed 0, granted 1");
	assert_string_equal(told(f), "");
	assert_int_equal(f->env.stats.limits_total, 1);
}

TEST(what_ended_is_forgotten_with_its_client)
{
	request_grant(wants(0, false, -1), 1);
	request_fail(wants(1, true, -1), ERROR_UNAVAILABLE, "no");
	request_forget_ended(c);
	assert_string_equal(told(f), "failed 1");
}

TEST(a_failure_ends_all_who_wait_for_the_lock)
{
	wants(0, false, -1);
	wants(1, true, -1);
	request_fail_all(lock, ERROR_UNAVAILABLE, "no");
	assert_string_equal(told(f), "failed 0, failed 1");
}

TEST(a_wait_that_runs_out_is_a_try_then_and_ends_at_last)
{
	struct request *r = wants(0, false, 5000);

	assert_int_equal(r->timer.due_ns, f->env.now_ns + 5000);
	request_expire(r);
	assert_true(r->expired && lock->expired_count == 1 && r->timer.due_ns > f->env.now_ns + 5000);
	request_expire(r);
	assert_int_equal(lock->expired_count, 0);
	assert_null(heap_first(&f->env.timers));
	assert_string_equal(told(f), "failed 0");
}

TEST(a_try_has_run_out_at_once)
{
	assert_true(wants(0, false, 0)->expired);
	assert_int_equal(lock->expired_count, 1);
}

TEST(the_adapter_is_told_of_the_first_grant_and_the_last)
{
	struct grant *g = holds(0);

	assert_true(adapter_knows_holder());
	lock = lock_named(f, "b");
	holds(0);
	grant_end(g);
	assert_int_equal(f->out.count, 1);
	grant_end(grant_find(lock, c));
	assert_false(adapter_knows_holder());
	assert_int_equal(f->out.count, 2);
}

TEST(a_lost_grant_stays_until_it_is_told)
{
	struct grant *g = holds(0);

	grant_lose(g, LOSS_DELETED);
	assert_false(adapter_knows_holder());
	assert_true(!lock->grant_count && c->lost_count == 1 && f->locks.lost_count == 1);
	assert_ptr_equal(grant_find(lock, c), g);
	assert_true(lock_in_use(lock));
	assert_string_equal(told(f), "lost 0");
	assert_null(grant_find(lock, c));
	assert_false(lock_in_use(lock));
}

TEST(a_loss_that_is_not_told_is_dropped_with_its_grant)
{
	struct grant *g = holds(0);

	grant_lose(g, LOSS_SESSION);
	grant_end(g);
	assert_string_equal(told(f), "");
}

/* A client that lets leases run out, and reads nothing, cannot have more than its share. */
TEST(only_a_lease_that_ran_out_counts_until_it_is_told)
{
	grant_lose(holds_for(0, 5000), LOSS_LEASE);
	grant_lose(holds(1), LOSS_FORCED);
	assert_true(c->counted == 1 && f->clients[1].counted == 0 && c->account->used[POOL_GRANTS] == 1);
	assert_string_equal(told(f), "lost 0, lost 1");
	assert_true(c->counted == 0 && c->account->used[POOL_GRANTS] == 0);
	assert_int_equal(f->env.stats.leases_ended_total, 1);
}

TEST(all_grants_are_lost_with_the_lock)
{
	holds(0);
	holds(2);
	grant_lose_all(lock, LOSS_SESSION);
	assert_string_equal(told(f), "lost 0, lost 2");
}

TEST(a_further_level_never_shortens_a_lease)
{
	struct grant *g = holds_for(0, 5000);

	grant_reenter(g, 3000, (struct slice){ 0 });
	assert_int_equal(grant_lease_rest_ns(g), 5000);
	grant_reenter(g, 8000, (struct slice){ 0 });
	assert_int_equal(grant_lease_rest_ns(g), 8000);
	grant_reenter(g, 0, (struct slice){ 0 });
	assert_int_equal(grant_lease_rest_ns(g), INT64_MAX);
	assert_int_equal(g->depth, 4);
}

TEST(renewing_sets_a_lease_anew)
{
	struct grant *g = holds_for(0, 5000);

	f->env.now_ns += 1000;
	grant_renew(g, 2000);
	assert_int_equal(grant_lease_rest_ns(g), 2000);
	assert_ptr_equal(heap_first(&f->env.timers), &g->lease);
	grant_end(g);
	assert_null(heap_first(&f->env.timers));
}

TEST(what_a_holder_says_is_kept_unless_it_says_something_else)
{
	struct grant *g = holds(0);

	grant_reenter(g, 0, SLICE("one"));
	grant_reenter(g, 0, (struct slice){ 0 });
	assert_true(slice_eq(bytes_view(&g->data), SLICE("one")));
	grant_reenter(g, 0, SLICE("two"));
	assert_true(slice_eq(bytes_view(&g->data), SLICE("two")));
}

/* True: the limit that stops client 0 is that one. */
static bool stopped_by(const char *limit)
{
	const char *why = "";

	return !client_may_ask(c, false, &why) && strstr(why, limit);
}

TEST(limits_of_a_client_and_of_its_user)
{
	const char *why;

	wants(0, false, -1);
	lock = lock_named(f, "b");
	holds(0);
	holds(1);
	assert_true(client_may_ask(c, false, &why));
	f->conf.limits.requests = 1;
	pools_configure(&f->env);
	assert_true(stopped_by("user 1000 uses 1 of 1 allowed waiting requests (limits.requests, limits.user_share)"));
	f->conf.limits.grants = 3;
	pools_configure(&f->env);
	assert_true(stopped_by(
		"user 1000 uses 3 of 3 allowed locks held or waited for (limits.grants, limits.user_share)"));
	f->conf.limits.grants_per_client = 2;
	assert_true(stopped_by("limits.grants_per_client"));
	f->conf.limits.requests_per_client = 1;
	assert_true(stopped_by("limits.requests_per_client"));
	/* Another user has a share of its own. */
	f->conf.limits.grants = 4;
	f->conf.limits.requests = 2;
	f->conf.limits.user_share = 75;
	pools_configure(&f->env);
	account_leave(f->clients[3].account);
	f->clients[3].account = account_enter(&f->env.accounts, 1001, "", 0);
	assert_false(client_may_ask(&f->clients[3], false, &why));
	f->conf.limits.grants = f->conf.limits.requests = 9;
	pools_configure(&f->env);
	assert_true(client_may_ask(&f->clients[3], false, &why));
}

TEST(clients_of_one_user_share_what_is_counted)
{
	const struct account *a = c->account;

	assert_int_equal(a->references, CLIENTS + 1); /* and the lock */
	assert_ptr_equal(f->clients[1].account, a);
	holds(0);
	lock = lock_named(f, "b");
	holds(1);
	assert_int_equal(a->used[POOL_GRANTS], 2);
}

TEST(a_group_is_joined_by_who_neither_holds_nor_waits)
{
	struct grant *g = holds(0);

	assert_false(group_join(c, SLICE("x")));
	grant_lose(g, LOSS_SESSION);
	assert_true(group_join(c, SLICE("x")));
	wants(1, true, -1);
	assert_false(group_join(&f->clients[1], SLICE("x")));
	assert_true(group_join(&f->clients[2], SLICE("x")));
	assert_true(group_same(c, &f->clients[2]));
	assert_false(group_same(c, &f->clients[1]));
	assert_int_equal(f->locks.groups.count, 1);
	assert_true(group_join(c, SLICE("")) && group_join(&f->clients[2], SLICE("")));
	assert_false(group_same(c, &f->clients[2]));
	assert_int_equal(f->locks.groups.count, 0);
}

TEST(groups_of_two_accounts_are_two)
{
	struct client *other = &f->clients[1];
	struct account *one = other->account;

	other->account = account_enter(&f->env.accounts, 1001, "", 0);
	group_join(c, SLICE("x"));
	group_join(other, SLICE("x"));
	assert_false(group_same(c, other));
	assert_int_equal(f->locks.groups.count, 2);
	group_leave(other);
	account_leave(other->account);
	other->account = one;
}
