/* SPDX-License-Identifier: Apache-2.0 */
/* What one session may put into one packet (budget.h). The session's floor alone is linked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/session/ensemble.h"

struct fixture {
	struct broker_conf conf;
	struct effects out;
	struct env env;
	struct ensemble zk;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .conf.limits.session_path_bytes = 1000 };
	f.env = (struct env){ .conf = &f.conf, .out = &f.out };
	f.zk.env = &f.env;
	f.zk.budget.limits = &f.conf.limits;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	effects_free(&f->out);
	return 0;
}

static void packet(struct fixture *f, int64_t bytes)
{
	struct event e = { .type = EVENT_ZK_PACKET, .zk_packet = { bytes, SLICE("a:1") } };

	effects_clear(&f->out);
	budget_packet(&f->zk, &e);
}

static void as_much_as_was_configured_and_no_byte_more(void **state)
{
	struct fixture *f = *state;
	struct budget *b = &f->zk.budget;

	assert_int_equal(budget_max(b), 1000);
	budget_charge(&b->path_bytes, 900);
	assert_true(budget_takes_paths(b, 100));
	assert_false(budget_takes_paths(b, 101));
	/* Watches have as much again. */
	assert_true(budget_takes_watches(b, 1000));
	assert_false(budget_takes_watches(b, 1001));
	budget_give_back(&b->path_bytes, 900);
	assert_true(budget_takes_paths(b, 1000));
	assert_int_equal(b->path_bytes, 0);
}

static void a_server_that_takes_less_bounds_it(void **state)
{
	struct fixture *f = *state;
	struct budget *b = &f->zk.budget;

	assert_true(budget_takes_request(b, 1 << 30));
	packet(f, 500);
	assert_int_equal(budget_max(b), 450);
	assert_true(budget_takes_request(b, 500));
	assert_false(budget_takes_request(b, 501));
	assert_int_equal(f->out.count, 1);
	assert_int_equal(f->out.list[0].level, EFFECT_LEVEL_WARNING);
	/* The same again is no news. */
	packet(f, 500);
	assert_int_equal(f->out.count, 0);
	packet(f, 0);
	assert_int_equal(budget_max(b), 1000);
	assert_int_equal(f->out.list[0].level, EFFECT_LEVEL_INFO);
}

static void what_is_over_a_limit_that_shrank_stays(void **state)
{
	struct fixture *f = *state;
	struct budget *b = &f->zk.budget;

	budget_charge(&b->path_bytes, 900);
	packet(f, 500);
	assert_false(budget_takes_paths(b, 0));
	budget_give_back(&b->path_bytes, 500);
	assert_true(budget_takes_paths(b, 50));
	assert_false(budget_takes_paths(b, 51));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_much_as_was_configured_and_no_byte_more, setup, teardown),
		cmocka_unit_test_setup_teardown(a_server_that_takes_less_bounds_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_over_a_limit_that_shrank_stays, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
