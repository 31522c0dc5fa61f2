/* SPDX-License-Identifier: Apache-2.0 */
/* Letters to other hosts, over the floors below: what becomes of one is told once, and its path is charged until it goes. */
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "core/hosts/hosts.h"

static const struct broker_conf conf = { .root = "/locks", .host = "here", .limits = { .session_path_bytes = 100000 } };

static struct desk {
	struct effects out;
	struct env env;
	struct ensemble ensemble;
	struct directories directories;
	struct locks locks;
	struct hosts hosts;
	struct target target; /* of the latest letter */
} d;

static int begin(void **state)
{
	d = (struct desk){ 0 };
	d.env.conf = &conf;
	d.env.out = &d.out;
	d.ensemble.env = d.directories.env = d.locks.env = d.hosts.env = &d.env;
	d.directories.ensemble = d.locks.ensemble = d.hosts.ensemble = &d.ensemble;
	accounts_init(&d.env.accounts, POOLS, 1, 2);
	budget_limits(&d.env, &d.ensemble.budget);
	d.locks.directories = &d.directories;
	d.hosts.locks = &d.locks;
	d.ensemble.session.connected = true;
	d.ensemble.session.timeout_ns = 6000000000;
	window_begin(&d.ensemble.operations.window, d.ensemble.env->now_ns);
	hosts_init(&d.hosts);
	return 0;
}

static int end(void **state)
{
	outbox_forget_all(&d.hosts);
	accounts_deinit(&d.env.accounts);
	hosts_deinit(&d.hosts);
	operation_deinit(&d.ensemble.operations);
	heap_deinit(&d.env.timers);
	effects_free(&d.out);
	d = (struct desk){ 0 }; /* so that what it has not freed is seen to leak */
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static struct letter *post(void)
{
	struct letter *l = outbox_post(&d.hosts, SLICE("there"), NULL);

	l->target = &d.target;
	d.target.letter = l;
	return l;
}

static struct letter_news answer(enum operation_kind kind, uint64_t letter, enum zk_code code)
{
	struct operation op = { .kind = kind, .query = letter };
	struct event event = { .type = EVENT_ZK_ANSWERED };

	event.zk_answered.code = code;
	return outbox_answered(&d.hosts, &op, &event);
}

TEST(a_letter_is_created_in_its_host_s_mailbox)
{
	const struct letter *l = post();
	const struct effect *e = &d.out.list[0];
	struct slice path = effects_slice(&d.out, e->text);

	assert_int_equal(d.out.count, 1);
	assert_int_equal(e->type, EFFECT_ZK_CREATE);
	assert_memory_equal(path.data, "/locks/.mail/there/", strlen("/locks/.mail/there/"));
	assert_true(slice_eq(letter_id(l), (struct slice){ path.data + 19, path.len - 19 }));
	assert_int_equal(d.env.accounts.pools[POOL_PATHS].used, path.len);
}

TEST(what_becomes_of_it_is_told_once)
{
	struct letter *l = post();
	uint64_t number = l->number;
	struct letter_news news = answer(OPERATION_LETTER_POST, number, ZK_OK);

	assert_ptr_equal(news.target, &d.target);
	assert_int_equal(news.fate, LETTER_STANDS);
	letter_withdraw(l);
	assert_int_equal(answer(OPERATION_LETTER_WITHDRAW, number, ZK_NONODE).fate, LETTER_TAKEN);
	assert_null(d.target.letter);
	assert_null(answer(OPERATION_LETTER_WITHDRAW, number, ZK_NONODE).target);
	assert_int_equal(d.hosts.outbox_count, 0);
	assert_int_equal(d.env.accounts.pools[POOL_PATHS].used, 0);
}

TEST(a_host_without_a_mailbox_is_told_apart_from_a_refusal)
{
	assert_int_equal(answer(OPERATION_LETTER_POST, post()->number, ZK_NONODE).fate, LETTER_NO_BOX);
	assert_int_equal(answer(OPERATION_LETTER_POST, post()->number, ZK_REFUSED).fate, LETTER_FAILED);
	assert_int_equal(d.hosts.outbox_count, 0);
}

TEST(a_letter_on_its_way_out_tells_with_its_delete)
{
	struct letter *l = post();
	uint64_t number = l->number;

	letter_withdraw(l);
	assert_null(answer(OPERATION_LETTER_POST, number, ZK_OK).target);
	assert_int_equal(answer(OPERATION_LETTER_WITHDRAW, number, ZK_OK).fate, LETTER_WITHDRAWN);
}

TEST(who_wants_to_be_told_nothing_is_told_nothing)
{
	struct letter *l = post();

	letter_abandon(l);
	assert_null(d.target.letter);
	assert_null(answer(OPERATION_LETTER_POST, l->number, ZK_OK).target);
	assert_int_equal(d.hosts.outbox_count, 1);
}

/* As many as there are besides those that are reserved for operators. */
enum { REVOKES = LETTER_REVOKES_MAX - LETTER_REVOKES_MAX / ACCOUNT_RESERVE_PART };

TEST(there_is_room_for_so_many_of_a_kind)
{
	const struct client user = { .account = &d.env.accounts.nobody }, operator = { .account = user.account,
											.privileged = true };

	for (size_t i = 0; i < REVOKES; i++) {
		assert_true(outbox_room(&d.hosts, LETTER_REVOKE, &user, 1));
		letter_abandon(post());
	}
	assert_false(outbox_room(&d.hosts, LETTER_REVOKE, &user, 1));
	assert_true(outbox_room(&d.hosts, LETTER_REVOKE, &operator, LETTER_REVOKES_MAX - REVOKES));
	assert_false(outbox_room(&d.hosts, LETTER_REVOKE, &operator, LETTER_REVOKES_MAX - REVOKES + 1));
	assert_true(outbox_room(&d.hosts, LETTER_FORCE, NULL, LETTER_FORCES_MAX - REVOKES));
	assert_false(outbox_room(&d.hosts, LETTER_FORCE, NULL, LETTER_FORCES_MAX - REVOKES + 1));
	d.ensemble.budget.packet_bytes = 1024; /* takes no more paths */
	budget_limits(&d.env, &d.ensemble.budget);
	assert_false(outbox_room(&d.hosts, LETTER_ANSWER, NULL, 1));
}
