/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: the share rule at the limit and one past it, the reserve, and that everything comes back to zero. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "base/charge.h"

enum { THINGS, BYTES, POOLS };
enum { APP = 1000, WEB = 1001, ROOT = 0 };

static struct accounts all;
static struct account *app, *web;

static struct account *user(uint32_t uid)
{
	return account_enter(&all, uid, "", 0);
}

/* With accounts of two users, or of nobody. */
static void begin_empty(unsigned int share, uint64_t total)
{
	accounts_init(&all, POOLS, 1, 2);
	accounts_set_share(&all, share);
	accounts_set_total(&all, THINGS, total);
	accounts_set_total(&all, BYTES, total * 100);
}

static void begin(unsigned int share, uint64_t total)
{
	begin_empty(share, total);
	app = user(APP);
	web = user(WEB);
}

static void end(void)
{
	account_leave(app);
	account_leave(web);
	accounts_deinit(&all);
}

/* Charges one at a time until one is refused; returns how many were admitted. */
static size_t take(struct charge *charges, size_t most, struct account *a, bool privileged)
{
	size_t i;

	for (i = 0; i < most; i++)
		if (!charge_try(&charges[i], a, THINGS, 1, privileged))
			break;
	if (i < most)
		assert_true(!charges[i].account && !charges[i].amount);
	return i;
}

static void give_back(struct charge *charges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		charge_give_back(&charges[i], THINGS);
}

/* 1000 things, 20 of them reserved: one user has 75 % of 980. */
TEST(one_user_alone_has_its_share)
{
	struct charge charges[1000] = { 0 };

	begin(75, 1000);
	assert_int_equal(account_allowed(app, THINGS, false), 980);
	assert_int_equal(take(charges, 1000, app, false), 735);
	assert_int_equal(account_allowed(app, THINGS, false), 735);
	assert_int_equal(app->used[THINGS], 735);
	assert_int_equal(app->used[BYTES], 0);
	charge_give_back(&charges[0], THINGS);
	assert_true(charge_try(&charges[0], app, THINGS, 1, false));
	assert_false(charge_try(&charges[735], app, THINGS, 1, false));
	give_back(charges, 735);
	end();
}

/* ... a second one 75 % of the rest, and each further one, too: the next one always gets something. */
TEST(each_further_user_has_its_share_of_the_rest)
{
	static const size_t shares[] = { 735, 183, 46, 12, 3 };
	struct charge charges[5][1000] = { 0 };

	begin_empty(75, 1000);
	for (uint32_t i = 0; i < 5; i++) {
		struct account *a = user(APP + i);

		assert_int_equal(take(charges[i], 1000, a, false), shares[i]);
		account_leave(a);
	}
	assert_int_equal(all.pools[THINGS].used, 979);
	/* What the first one gives back is shared by the same rule. */
	give_back(charges[0], 500);
	assert_int_equal(take(charges[0], 500, charges[0][600].account, false), 317);
	assert_int_equal(take(charges[1] + 183, 500, charges[1][0].account, false), 92);
	for (uint32_t i = 0; i < 5; i++)
		give_back(charges[i], 1000);
	accounts_deinit(&all);
}

TEST(at_100_percent_one_user_may_take_all_but_the_reserve)
{
	struct charge charges[1000] = { 0 }, other = { 0 };

	begin(100, 1000);
	assert_int_equal(take(charges, 1000, app, false), 980);
	assert_false(charge_try(&other, web, THINGS, 1, false));
	give_back(charges, 1);
	assert_true(charge_try(&other, web, THINGS, 1, false));
	charge_give_back(&other, THINGS);
	give_back(charges + 1, 979);
	end();
}

/* Nobody but the privileged has the reserve, and they have it up to the total. */
TEST(the_privileged_have_the_reserve)
{
	struct charge charges[1000] = { 0 }, operators[21] = { 0 };
	struct account *root;

	begin(100, 1000);
	root = user(ROOT);
	assert_int_equal(take(charges, 1000, app, false), 980);
	assert_false(charge_try(&operators[0], root, THINGS, 1, false));
	assert_int_equal(account_allowed(root, THINGS, true), 20);
	assert_int_equal(take(operators, 21, root, true), 20);
	/* A privileged client of any user has it. */
	assert_false(charge_try(&operators[20], app, THINGS, 1, true));
	give_back(operators, 20);
	assert_true(charge_try(&operators[0], app, THINGS, 1, true));
	charge_give_back(&operators[0], THINGS);
	give_back(charges, 980);
	account_leave(root);
	end();
}

/* A share of less than one is none, but a pool that nobody uses is there for one. */
TEST(a_tiny_pool_can_be_used)
{
	struct charge charges[3] = { 0 };

	for (uint64_t total = 1; total <= 3; total++) {
		begin(75, total);
		assert_int_equal(take(charges, 3, app, false), total == 3 ? 2 : 1);
		assert_false(charge_try(&charges[2], web, THINGS, 1, false));
		assert_false(charge_try(&charges[2], web, BYTES, total * 98 + 1, false));
		assert_true(charge_try(&charges[2], web, BYTES, total * 98, false));
		charge_give_back(&charges[2], BYTES);
		give_back(charges, 3);
		end();
	}
}

/* What is there stays, whatever total and share become; what comes is measured by the new ones. */
TEST(other_totals_and_shares_are_for_what_comes)
{
	struct charge charges[1000] = { 0 };

	begin(75, 1000);
	assert_int_equal(take(charges, 1000, app, false), 735);
	accounts_set_total(&all, THINGS, 100);
	assert_int_equal(account_allowed(app, THINGS, false), 73);
	assert_false(charge_try(&charges[735], app, THINGS, 1, false));
	give_back(charges, 662);
	assert_int_equal(take(charges, 1, app, false), 0);
	give_back(charges + 662, 1);
	assert_int_equal(take(charges, 2, app, false), 1);
	accounts_set_share(&all, 50);
	assert_int_equal(account_allowed(app, THINGS, false), 49);
	assert_false(charge_try(&charges[1], app, THINGS, 1, false));
	accounts_set_total(&all, THINGS, 1000);
	assert_int_equal(take(charges + 1, 600, app, false), 490 - 73);
	/* Even below what is used. */
	accounts_set_total(&all, THINGS, 10);
	assert_false(charge_try(&charges[490], app, THINGS, 1, true));
	assert_int_equal(account_allowed(app, THINGS, false), 5);
	for (size_t i = 0; i < 1000; i++)
		charge_give_back(&charges[i], THINGS);
	end();
}

TEST(what_is_charged_by_force_counts)
{
	struct charge forced = { 0 }, other = { 0 };

	begin(75, 1000);
	charge_force(&forced, app, THINGS, 1200);
	assert_false(charge_try(&other, app, THINGS, 1, false));
	assert_false(charge_try(&other, web, THINGS, 1, false));
	assert_false(charge_try(&other, web, THINGS, 1, true));
	assert_int_equal(account_allowed(web, THINGS, false), 0);
	assert_int_equal(account_allowed(web, THINGS, true), 0);
	charge_give_back(&forced, THINGS);
	charge_give_back(&forced, THINGS); /* it is empty */
	charge_force(&forced, &all.nobody, THINGS, 900);
	assert_true(charge_try(&other, web, THINGS, 60, false));
	assert_false(charge_try(&forced, web, THINGS, 1, false));
	/* It turns out whose it is. */
	charge_set(&forced, app, THINGS, 900);
	assert_int_equal(all.nobody.used[THINGS], 0);
	charge_set(&forced, app, THINGS, 0);
	assert_null(forced.account);
	charge_give_back(&other, THINGS);
	end();
}

TEST(a_charge_grows_only_if_that_is_admitted)
{
	struct charge c = { 0 };

	begin(75, 1000);
	assert_true(charge_change(&c, app, THINGS, 700, false));
	assert_true(charge_change(&c, app, THINGS, 735, false));
	assert_false(charge_change(&c, app, THINGS, 736, false));
	assert_int_equal(c.amount, 735);
	assert_true(charge_change(&c, app, THINGS, 736, true));
	accounts_set_total(&all, THINGS, 10);
	assert_true(charge_change(&c, app, THINGS, 700, false));
	assert_false(charge_change(&c, app, THINGS, 701, false));
	assert_true(charge_change(&c, app, THINGS, 0, false));
	assert_null(c.account);
	assert_int_equal(app->references, 1);
	end();
}

/* Only root and the users that are named have an account for each unit. */
TEST(units_have_accounts_where_it_says_so)
{
	static const uint32_t by_unit[] = { WEB, 1002 };
	struct account *a, *b, *c, *d, *e, *f;

	begin_empty(75, 1000);
	accounts_set_by_unit(&all, by_unit, 2);
	a = account_enter(&all, APP, "one.service", 11);
	b = account_enter(&all, APP, "two.service", 11);
	assert_ptr_equal(a, b);
	assert_string_equal(a->unit, "");
	c = account_enter(&all, WEB, "one.service!", 11);
	d = account_enter(&all, WEB, "two.service", 11);
	assert_ptr_not_equal(c, d);
	assert_string_equal(c->unit, "one.service");
	e = account_enter(&all, ROOT, "one.service", 11);
	f = account_enter(&all, ROOT, "one.service", 11);
	assert_ptr_equal(e, f);
	assert_ptr_not_equal(c, e);
	account_leave(f);
	assert_int_equal(e->references, 1);
	/* An account that exists keeps its unit. */
	accounts_set_by_unit(&all, NULL, 0);
	f = account_enter(&all, WEB, "one.service", 11);
	assert_ptr_not_equal(c, f);
	assert_string_equal(c->unit, "one.service");
	account_leave(a);
	account_leave(b);
	account_leave(c);
	account_leave(d);
	account_leave(e);
	account_leave(f);
	assert_true(TAILQ_EMPTY(&all.list));
	accounts_deinit(&all);
}

/* A charge keeps the account when all who entered it have left. */
TEST(an_account_lives_as_long_as_something_is_charged)
{
	struct charge c = { 0 };

	begin_empty(75, 1000);
	app = user(APP);
	assert_true(charge_try(&c, app, BYTES, 7, false));
	account_leave(app);
	assert_ptr_equal(user(APP), app);
	account_leave(app);
	assert_int_equal(app->used[BYTES], 7);
	charge_set(&c, app, BYTES, 8); /* its only reference is that charge */
	assert_int_equal(app->used[BYTES], 8);
	charge_give_back(&c, BYTES);
	assert_true(TAILQ_EMPTY(&all.list));
	assert_null(c.account);
	accounts_deinit(&all);
}

TEST(an_account_is_found_as_it_is_entered)
{
	struct account *unit;
	size_t seen = 0;

	begin_empty(75, 1000);
	app = user(APP);
	unit = account_enter(&all, ROOT, "web.service", 11);
	assert_ptr_equal(account_find(&all, APP, "", 0), app);
	assert_ptr_equal(account_find(&all, APP, "web.service", 11), app); /* it has one for all its units */
	assert_ptr_equal(account_find(&all, ROOT, "web.service", 11), unit);
	assert_null(account_find(&all, ROOT, "Web.service", 11));
	assert_null(account_find(&all, WEB, "", 0));
	assert_int_equal(app->references + unit->references, 2);
	for (size_t i = 0; i < map_buckets(&all.map); i++)
		for (const struct map_node *node = map_bucket(&all.map, i); node; node = node->next)
			seen++;
	assert_int_equal(seen, 2);
	account_leave(app);
	account_leave(unit);
	accounts_deinit(&all);
}

static void forget_a_charge(void)
{
	struct charge c = { 0 };

	begin(75, 1000);
	charge_force(&c, app, THINGS, 1);
	end();
}

static void forget_what_nobody_uses(void)
{
	struct charge c = { 0 };

	begin(75, 1000);
	charge_force(&c, &all.nobody, THINGS, 1);
	end();
}

static void give_back_from_the_wrong_pool(void)
{
	struct charge c = { 0 };

	begin(75, 1000);
	charge_force(&c, app, THINGS, 1);
	charge_give_back(&c, BYTES);
	end();
}

static void leave_twice(void)
{
	begin(75, 1000);
	app->references = 0;
	account_leave(app);
}

TEST(it_asserts_that_all_is_zero_at_the_end)
{
	assert_true(unit_aborts(forget_a_charge));
	assert_true(unit_aborts(forget_what_nobody_uses));
	assert_true(unit_aborts(give_back_from_the_wrong_pool));
	assert_true(unit_aborts(leave_twice));
}
