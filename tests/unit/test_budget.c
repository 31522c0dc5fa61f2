/* SPDX-License-Identifier: Apache-2.0 */
/* What one session may put into one packet (budget.h). The session's floor alone is linked. */
#include <stdbool.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "base/charge.h"
#include "core/session/ensemble.h"

static struct fixture {
	struct broker_conf conf;
	struct effects out;
	struct env env;
	struct ensemble zk;
} f;

static int setup(void **state)
{
	f = (struct fixture){ .conf.limits.session_path_bytes = 1000 };
	f.env = (struct env){ .conf = &f.conf, .out = &f.out };
	f.zk.env = &f.env;
	accounts_init(&f.env.accounts, POOLS, 1, 2);
	budget_limits(&f.env, &f.zk.budget);
	return 0;
}

/* What a client may take, without the reserve of operators. */
static bool takes(enum pool_number pool, size_t more)
{
	return account_may(&f.env.accounts.nobody, pool, more, true);
}

static int teardown(void **state)
{
	effects_free(&f.out);
	accounts_deinit(&f.env.accounts);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

static void packet(int64_t bytes)
{
	struct event e = { .type = EVENT_ZK_PACKET, .zk_packet = { bytes, SLICE("a:1") } };

	effects_clear(&f.out);
	budget_packet(&f.zk, &e);
}

TEST(as_much_as_was_configured_and_no_byte_more)
{
	struct budget *b = &f.zk.budget;
	struct charge paths = { 0 };

	assert_int_equal(budget_max(b), 1000);
	charge_force(&paths, &f.env.accounts.nobody, POOL_PATHS, 900);
	assert_true(takes(POOL_PATHS, 100));
	assert_false(takes(POOL_PATHS, 101));
	/* Watches have as much again. */
	assert_true(takes(POOL_WATCHES, 1000));
	assert_false(takes(POOL_WATCHES, 1001));
	charge_give_back(&paths, POOL_PATHS);
	assert_true(takes(POOL_PATHS, 1000));
}

TEST(a_server_that_takes_less_bounds_it)
{
	struct budget *b = &f.zk.budget;

	assert_true(budget_takes_request(b, 1 << 30));
	packet(500);
	assert_int_equal(budget_max(b), 450);
	assert_true(budget_takes_request(b, 500));
	assert_false(budget_takes_request(b, 501));
	assert_int_equal(f.out.count, 1);
	assert_int_equal(f.out.list[0].level, EFFECT_LEVEL_WARNING);
	/* The same again is no news. */
	packet(500);
	assert_int_equal(f.out.count, 0);
	packet(0);
	assert_int_equal(budget_max(b), 1000);
	assert_int_equal(f.out.list[0].level, EFFECT_LEVEL_INFO);
}

TEST(what_is_over_a_limit_that_shrank_stays)
{
	struct charge paths = { 0 };

	charge_force(&paths, &f.env.accounts.nobody, POOL_PATHS, 900);
	packet(500);
	assert_false(takes(POOL_PATHS, 0));
	charge_set(&paths, &f.env.accounts.nobody, POOL_PATHS, 400);
	assert_true(takes(POOL_PATHS, 50));
	assert_false(takes(POOL_PATHS, 51));
	charge_give_back(&paths, POOL_PATHS);
}
