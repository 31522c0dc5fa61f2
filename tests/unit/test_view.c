/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds and who waits, made of what a query has found out on other hosts, over the floors below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "core/hosts/hosts.h"
#include "core/hosts/view.h"

static const struct broker_conf conf = { .root = "/locks", .host = "here" };

struct desk {
	struct env env;
	struct ensemble ensemble;
	struct directories directories;
	struct locks locks;
	struct hosts hosts;
	struct client client;
	struct query *query;
};

static int begin(void **state)
{
	struct desk *d = calloc(1, sizeof(*d));

	d->env.conf = &conf;
	accounts_init(&d->env.accounts, POOLS, 1, 2);
	d->ensemble.env = d->directories.env = d->locks.env = d->hosts.env = &d->env;
	d->directories.ensemble = d->locks.ensemble = d->hosts.ensemble = &d->ensemble;
	d->locks.directories = &d->directories;
	d->hosts.locks = d->client.locks = &d->locks;
	map_init(&d->locks.names, 1, 2);
	hosts_init(&d->hosts);
	d->query = query_new(&d->hosts, &d->client, COMMAND_QUEUE, SLICE("name"));
	*state = d;
	return 0;
}

static int end(void **state)
{
	struct desk *d = *state;

	query_free(d->query);
	hosts_deinit(&d->hosts);
	map_deinit(&d->locks.names);
	heap_deinit(&d->env.timers);
	free(d);
	return 0;
}

static struct query_child *add(struct desk *d, const char *name, enum mode mode, const char *data)
{
	struct query *q = d->query;
	struct query_child *child;

	q->children = mem_resize(q->children, (q->count + 1) * sizeof(*q->children));
	child = &q->children[q->count++];
	*child = (struct query_child){ .mode = mode };
	bytes_text(&child->name, name);
	bytes_text(&child->data, data);
	q->sent = q->answered = q->count;
	return child;
}

static void readers_hold_and_who_is_behind_them_waits(void **state)
{
	struct desk *d = *state;
	struct view v;

	add(d, "a", MODE_SHARED, "1\nhost=one\ntoken=7\n");
	add(d, "b", MODE_SHARED, "1\nhost=two\n");
	add(d, "c", MODE_EXCLUSIVE, "");
	add(d, "d", MODE_SHARED, "1\nhost=four\n");
	v = view_gather(d->query);
	assert_false(v.permits);
	assert_int_equal(v.holder_count, 2);
	assert_true(slice_eq(v.holders[0].host, SLICE("one")));
	assert_int_equal(v.holders[0].token, 7);
	assert_int_equal(v.waiter_count, 2);
	assert_true(slice_eq(v.waiters[0].znode, SLICE("c")));
	assert_int_equal(v.hosts_waiting, 2);
	assert_null(v.own);
	view_free(&v);
}

static void who_is_gone_or_of_this_host_is_no_row(void **state)
{
	struct desk *d = *state;
	struct view v;

	add(d, "a", MODE_EXCLUSIVE, "")->gone = true;
	add(d, "b", MODE_EXCLUSIVE, "");
	add(d, "c", MODE_EXCLUSIVE, "")->ours = true;
	add(d, "d", MODE_EXCLUSIVE, "");
	v = view_gather(d->query);
	assert_int_equal(v.holder_count, 0);
	assert_int_equal(v.waiter_count, 2);
	assert_int_equal(v.hosts_before, 1);
	view_free(&v);
}

static void the_permits_of_one_client_elsewhere_are_one_row(void **state)
{
	struct desk *d = *state;
	struct view v;

	d->query->part = QUERY_SLOTS;
	d->query->permits = 4;
	add(d, "a", MODE_EXCLUSIVE, "1\nhost=one\nclient=3\nsince=5\nwritten=6\n")->owner = 1;
	add(d, "b", MODE_EXCLUSIVE, "")->owner = 2;
	add(d, "c", MODE_EXCLUSIVE, "1\nhost=one\nclient=3\nsince=5\nwritten=6\n")->owner = 1;
	add(d, "d", MODE_EXCLUSIVE, "")->owner = 2;
	add(d, "e", MODE_EXCLUSIVE, "")->owner = 4; /* past the limit: it waits for room */
	v = view_gather(d->query);
	assert_true(v.permits);
	assert_int_equal(v.holder_count, 3);
	assert_int_equal(v.holders[0].depth, 2);
	assert_int_equal(v.holders[0].for_ms, 1);
	assert_int_equal(v.holders[1].depth, 1);
	assert_int_equal(v.permits_held, 4);
	assert_int_equal(v.waiter_count, 0);
	view_free(&v);
}

static void a_row_is_said_in_a_sentence(void **state)
{
	struct desk *d = *state;
	struct bytes text = { 0 };
	struct view v;

	add(d, "a", MODE_EXCLUSIVE, "1\nhost=one\npid=12\ncommand=cp\nsince=5\nwritten=9\n");
	v = view_gather(d->query);
	v.holders[0].age_ms = 3;
	participant_say(&text, &v.holders[0]);
	assert_true(slice_eq(bytes_view(&text), SLICE("by host one, pid 12 (cp), for 4 ms, as of 3 ms ago")));
	bytes_free(&text);
	view_free(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(readers_hold_and_who_is_behind_them_waits, begin, end),
		cmocka_unit_test_setup_teardown(who_is_gone_or_of_this_host_is_no_row, begin, end),
		cmocka_unit_test_setup_teardown(the_permits_of_one_client_elsewhere_are_one_row, begin, end),
		cmocka_unit_test_setup_teardown(a_row_is_said_in_a_sentence, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
