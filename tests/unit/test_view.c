/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds and who waits, made of what a query has found out on other hosts, over the floors below. */
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "base/mem.h"
#include "core/hosts/hosts.h"
#include "core/hosts/view.h"

static const struct broker_conf conf = { .root = "/locks", .host = "here" };

static struct desk {
	struct env env;
	struct ensemble ensemble;
	struct directories directories;
	struct locks locks;
	struct hosts hosts;
	struct user user;
	struct client client;
	struct query *query;
} d;

static int begin(void **state)
{
	d = (struct desk){ 0 };
	d.env.conf = &conf;
	accounts_init(&d.env.accounts, POOLS, 1, 2);
	d.ensemble.env = d.directories.env = d.locks.env = d.hosts.env = &d.env;
	d.directories.ensemble = d.locks.ensemble = d.hosts.ensemble = &d.ensemble;
	d.locks.directories = &d.directories;
	d.hosts.locks = d.client.locks = &d.locks;
	d.client.user = &d.user;
	map_init(&d.locks.names, 1, 2);
	hosts_init(&d.hosts);
	d.query = query_new(&d.hosts, &d.client, COMMAND_QUEUE, SLICE("name"));
	return 0;
}

static int end(void **state)
{
	query_free(d.query);
	hosts_deinit(&d.hosts);
	map_deinit(&d.locks.names);
	heap_deinit(&d.env.timers);
	accounts_deinit(&d.env.accounts);
	d = (struct desk){ 0 }; /* so that what it has not freed is seen to leak */
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static struct query_child *add(const char *name, enum mode mode, const char *data)
{
	struct query *q = d.query;
	struct query_child *child;

	q->children = mem_resize(q->children, (q->count + 1) * sizeof(*q->children));
	child = &q->children[q->count++];
	*child = (struct query_child){ .mode = mode };
	bytes_text(&child->name, name);
	bytes_text(&child->data, data);
	q->sent = q->answered = q->count;
	return child;
}

struct rows {
	struct participant row[8];
	size_t count;
};

static struct rows rows_of(struct view *v)
{
	struct rows r = { 0 };
	struct participant p;
	enum view_step is;
	int64_t steps = 0;

	while ((is = view_step(v, &p, &steps)) != VIEW_LAST)
		if (is == VIEW_ROW)
			r.row[r.count++] = p;
	assert_true(steps > (int64_t)r.count);
	return r;
}

/* They borrow from the query. */
static struct rows holders(void)
{
	struct rows r;
	struct view v;

	view_begin_holders(&v, d.query);
	r = rows_of(&v);
	view_end(&v);
	return r;
}

static struct rows waiters(void)
{
	struct rows r;
	struct view v;

	view_begin_waiters(&v, d.query);
	r = rows_of(&v);
	view_end(&v);
	return r;
}

TEST(readers_hold_and_who_is_behind_them_waits)
{
	size_t before, waiting;
	struct rows r;

	add("a", MODE_SHARED, "1\nhost=one\ntoken=7\n");
	add("b", MODE_SHARED, "1\nhost=two\n");
	add("c", MODE_EXCLUSIVE, "");
	add("d", MODE_SHARED, "1\nhost=four\n");
	r = holders();
	assert_int_equal(r.count, 2);
	assert_true(slice_eq(r.row[0].host, SLICE("one")));
	assert_int_equal(r.row[0].token, 7);
	r = waiters();
	assert_int_equal(r.count, 2);
	assert_true(slice_eq(r.row[0].znode, SLICE("c")));
	view_hosts(d.query, &before, &waiting);
	assert_int_equal(before, 4);
	assert_int_equal(waiting, 2);
}

TEST(who_is_gone_or_of_this_host_is_no_row)
{
	size_t before, waiting;
	struct rows r;

	add("a", MODE_EXCLUSIVE, "")->gone = true;
	add("b", MODE_EXCLUSIVE, "");
	add("c", MODE_EXCLUSIVE, "")->ours = true;
	add("d", MODE_EXCLUSIVE, "");
	assert_int_equal(holders().count, 0);
	r = waiters();
	assert_int_equal(r.count, 2);
	assert_true(slice_eq(r.row[0].znode, SLICE("b")));
	assert_true(slice_eq(r.row[1].znode, SLICE("d")));
	view_hosts(d.query, &before, &waiting);
	assert_int_equal(before, 1);
	assert_int_equal(waiting, 2);
}

TEST(the_permits_of_one_client_elsewhere_are_one_row)
{
	struct rows r;

	d.query->part = QUERY_SLOTS;
	d.query->permits = 4;
	add("a", MODE_EXCLUSIVE, "1\nhost=one\nclient=3\nsince=5\nwritten=6\n")->owner = 1;
	add("b", MODE_EXCLUSIVE, "")->owner = 2;
	add("c", MODE_EXCLUSIVE, "1\nhost=one\nclient=3\nsince=5\nwritten=6\n")->owner = 1;
	add("d", MODE_EXCLUSIVE, "")->owner = 2;
	add("e", MODE_EXCLUSIVE, "")->owner = 4; /* past the limit: it waits for room */
	r = holders();
	assert_int_equal(r.count, 3);
	assert_int_equal(r.row[0].depth, 2);
	assert_int_equal(r.row[0].for_ms, 1);
	assert_int_equal(r.row[1].depth, 1);
	assert_int_equal(r.row[2].depth, 1);
	assert_int_equal(waiters().count, 0);
}

/* Each znode of others is read, which takes longer than a row of this host. */
TEST(a_znode_that_is_read_counts_for_more)
{
	struct participant p;
	int64_t steps = 0;
	struct view v;

	add("a", MODE_EXCLUSIVE, "1\nhost=one\n");
	add("b", MODE_EXCLUSIVE, "1\nhost=two\n");
	view_begin_waiters(&v, d.query);
	while (view_step(&v, &p, &steps) != VIEW_ROW)
		assert_true(steps < VIEW_READ_STEPS);
	assert_true(steps > VIEW_READ_STEPS);
	assert_true(slice_eq(p.host, SLICE("two")));
	view_end(&v);
}

TEST(a_row_is_said_in_a_sentence)
{
	struct bytes text = { 0 };
	struct rows r;

	add("a", MODE_EXCLUSIVE, "1\nhost=one\npid=12\ncommand=cp\nsince=5\nwritten=9\n");
	r = holders();
	r.row[0].age_ms = 3;
	participant_say(&text, &r.row[0]);
	assert_true(slice_eq(bytes_view(&text), SLICE("by host one, pid 12 (cp), for 4 ms, as of 3 ms ago")));
	bytes_free(&text);
}
