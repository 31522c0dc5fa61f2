/* SPDX-License-Identifier: Apache-2.0 */
/* The fake ZooKeeper keeps ZooKeeper's promises, and breaks what ZooKeeper does not promise. */
#include "fakezk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

enum { SEEN_MAX = 64 };

struct seen {
	enum event_type type;
	uint64_t op;
	enum zk_code code;
	enum zk_watch watch;
	char text[200]; /* path, data or children, the first of them */
	struct zk_stat stat;
	int64_t at;
};

struct user {
	struct fakezk *z;
	struct zhandle *h;
	uint64_t op;
	struct seen seen[SEEN_MAX];
	size_t count;
};

struct bench {
	struct sched sched;
	struct fakezk z;
	struct user user[2];
	int expired;
	int64_t expired_at;
};

static void put(char *text, struct slice s)
{
	size_t len = strlen(text);

	snprintf(text + len, 200 - len, "%.*s", (int)s.len, s.data);
}

static void notified(void *user, const struct event *e)
{
	struct user *u = user;
	struct seen *s = &u->seen[u->count++];
	size_t i;

	assert_true(u->count < SEEN_MAX);
	*s = (struct seen){ .type = e->type, .at = u->z->sched->now };
	if (e->type == EVENT_ZK_WATCH) {
		s->watch = e->zk_watch.type;
		put(s->text, e->zk_watch.path);
	} else if (e->type == EVENT_ZK_ANSWERED) {
		s->op = e->zk_answered.op;
		s->code = e->zk_answered.code;
		s->stat = e->zk_answered.stat;
		for (i = 0; i < e->zk_answered.count; i++) {
			put(s->text, e->zk_answered.children[i]);
			put(s->text, SLICE(" "));
		}
		if (e->zk_answered.data.len)
			put(s->text, e->zk_answered.data);
		else if (!e->zk_answered.count)
			put(s->text, e->zk_answered.path);
	}
}

static void expired(void *ctx, struct zsession *s)
{
	struct bench *b = ctx;

	(void)s;
	b->expired++;
	b->expired_at = b->sched.now;
}

static void run_for(struct bench *b, int64_t ns)
{
	int64_t until = b->sched.now + ns;

	while (sched_step(&b->sched, until))
		;
	b->sched.now = until;
}

static void connect_to(struct bench *b, int user, int server)
{
	struct user *u = &b->user[user];

	u->h->server = server;
	zhandle_open(u->h);
	run_for(b, SECOND);
	assert_int_equal(u->seen[u->count - 1].type, EVENT_ZK_CONNECTED);
	u->count = 0;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	int i;

	sched_init(&b->sched);
	fakezk_init(&b->z, &b->sched, 7, SECOND);
	b->z.hooks = (struct fakezk_hooks){ .ctx = b, .expired = expired };
	b->z.leader = 0;
	for (i = 0; i < 2; i++) {
		b->user[i].z = &b->z;
		b->user[i].h = zhandle_new(&b->z, 6 * SECOND, notified, &b->user[i], NULL);
	}
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	zhandle_free(b->user[0].h);
	zhandle_free(b->user[1].h);
	fakezk_deinit(&b->z);
	sched_deinit(&b->sched);
	free(b);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

static uint64_t ask(struct user *u, enum effect_type type, const char *path, enum zk_create create, bool watch)
{
	struct effect e = { .type = type, .op = ++u->op, .create = create, .watch = watch };

	zhandle_send(u->h, &e, slice_of(path), SLICE("data"));
	return e.op;
}

TEST(answers_keep_the_order_of_requests_and_lists_see_the_creates_before_them)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];
	size_t i;

	connect_to(b, 0, 1);
	ask(u, EFFECT_ZK_CREATE, "/d", ZK_CONTAINER, false);
	ask(u, EFFECT_ZK_GET, "/nothing", 0, false);
	ask(u, EFFECT_ZK_CREATE, "/d/a-", ZK_EPHEMERAL_SEQUENTIAL, false);
	ask(u, EFFECT_ZK_LIST, "/d", 0, false);
	run_for(b, SECOND);
	assert_int_equal(u->count, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(u->seen[i].op, i + 1);
	assert_int_equal(u->seen[1].code, ZK_NONODE);
	assert_string_equal(u->seen[2].text, "/d/a-0000000000");
	assert_true(u->seen[2].stat.owner == u->h->session->id);
	assert_string_equal(u->seen[3].text, "a-0000000000 ");
}

TEST(sequences_count_creates_and_survive_deletes)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];

	connect_to(b, 0, 1);
	ask(u, EFFECT_ZK_CREATE, "/d", ZK_CONTAINER, false);
	ask(u, EFFECT_ZK_CREATE, "/d/a-", ZK_EPHEMERAL_SEQUENTIAL, false);
	ask(u, EFFECT_ZK_DELETE, "/d/a-0000000000", 0, false);
	ask(u, EFFECT_ZK_CREATE, "/d/b-", ZK_EPHEMERAL_SEQUENTIAL, false);
	ask(u, EFFECT_ZK_LIST, "/d", 0, false);
	ask(u, EFFECT_ZK_CREATE, "/no/b-", ZK_EPHEMERAL_SEQUENTIAL, false);
	ask(u, EFFECT_ZK_CREATE, "/d", ZK_CONTAINER, false);
	ask(u, EFFECT_ZK_DELETE, "/d", 0, false);
	run_for(b, SECOND);
	assert_string_equal(u->seen[3].text, "/d/b-0000000001");
	assert_int_equal(u->seen[4].stat.cversion, 3);
	assert_int_equal(u->seen[5].code, ZK_NONODE);
	assert_int_equal(u->seen[6].code, ZK_NODEEXISTS);
	assert_int_equal(u->seen[7].code, ZK_NOTEMPTY);
	assert_true(u->seen[3].stat.czxid > u->seen[1].stat.czxid);
}

TEST(watches_fire_once_and_on_changes_too)
{
	struct bench *b = *state;
	struct user *u = &b->user[0], *other = &b->user[1];

	connect_to(b, 0, 1);
	connect_to(b, 1, 2);
	ask(other, EFFECT_ZK_CREATE, "/d", ZK_CONTAINER, false);
	ask(other, EFFECT_ZK_CREATE, "/d/x", ZK_PERSISTENT, false);
	run_for(b, SECOND);
	ask(u, EFFECT_ZK_GET, "/d/x", 0, true);
	ask(u, EFFECT_ZK_LIST, "/d", 0, true);
	run_for(b, SECOND);
	u->count = 0;
	ask(other, EFFECT_ZK_SET, "/d/x", 0, false);
	ask(other, EFFECT_ZK_SET, "/d/x", 0, false);
	ask(other, EFFECT_ZK_DELETE, "/d/x", 0, false);
	ask(other, EFFECT_ZK_CREATE, "/d/y", ZK_PERSISTENT, false);
	run_for(b, SECOND);
	assert_int_equal(u->count, 2);
	assert_int_equal(u->seen[0].watch, ZK_WATCH_CHANGED);
	assert_int_equal(u->seen[1].watch, ZK_WATCH_CHILDREN);
	assert_string_equal(u->seen[1].text, "/d");
	/* Of a connection: gone with it. */
	ask(u, EFFECT_ZK_GET, "/d/y", 0, true);
	run_for(b, SECOND);
	zhandle_drop(u->h, false);
	run_for(b, SECOND);
	u->count = 0;
	ask(other, EFFECT_ZK_DELETE, "/d/y", 0, false);
	run_for(b, SECOND);
	assert_int_equal(u->count, 0);
}

TEST(a_watch_event_comes_before_the_new_data)
{
	struct bench *b = *state;
	struct user *u = &b->user[0], *other = &b->user[1];

	connect_to(b, 0, 1);
	connect_to(b, 1, 0);
	ask(other, EFFECT_ZK_CREATE, "/x", ZK_PERSISTENT, false);
	run_for(b, SECOND);
	ask(u, EFFECT_ZK_GET, "/x", 0, true);
	run_for(b, SECOND);
	u->count = 0;
	ask(other, EFFECT_ZK_DELETE, "/x", 0, false);
	while (u->count == 0 || u->seen[u->count - 1].code != ZK_NONODE) {
		ask(u, EFFECT_ZK_GET, "/x", 0, false);
		run_for(b, MS);
	}
	assert_int_equal(u->seen[u->count - 2].type, EVENT_ZK_WATCH);
	assert_int_equal(u->seen[u->count - 2].watch, ZK_WATCH_DELETED);
}

TEST(sessions_expire_in_buckets_of_a_tick_after_the_last_touch)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];
	int64_t last;

	connect_to(b, 0, 0);
	ask(u, EFFECT_ZK_CREATE, "/e", ZK_EPHEMERAL, false);
	run_for(b, 2 * MS);
	u->h->reachable_at = INT64_MAX;
	zhandle_drop(u->h, false);
	last = b->sched.now;
	run_for(b, 6 * SECOND - 100 * MS);
	assert_int_equal(b->expired, 0);
	run_for(b, 2 * SECOND);
	assert_int_equal(b->expired, 1);
	assert_int_equal(b->expired_at % SECOND, 0);
	assert_true(b->expired_at >= last - 10 * MS + 6 * SECOND && b->expired_at <= last + 7 * SECOND);
	assert_null(fakezk_find(&b->z, SLICE("/e"), FAKEZK_TRUTH));
	/* Told only at the next connection. */
	assert_int_not_equal(u->seen[u->count - 1].type, EVENT_ZK_EXPIRED);
	u->count = 0;
	u->h->reachable_at = 0;
	run_for(b, SECOND);
	assert_int_equal(u->seen[u->count - 1].type, EVENT_ZK_EXPIRED);
}

/* A link that carries every request, and no answer to a ping. */
static void all_but_touches(void *server, struct message *m)
{
	struct zserver *s = server;

	if (m->kind == LINK_TOUCHES)
		message_free(s->z->sched, m);
	else
		fakezk_leader_delivered(s, m);
}

TEST(a_followers_writes_do_not_touch_only_its_pings_do)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];
	int i;

	connect_to(b, 0, 1);
	b->z.server[1].to_leader.deliver = all_but_touches;
	for (i = 0; i < 80 && !b->expired; i++) {
		ask(u, EFFECT_ZK_SET, "/", 0, false);
		run_for(b, 100 * MS);
		u->count = 0;
	}
	assert_int_equal(b->expired, 1);
}

TEST(a_new_leader_gives_every_session_its_whole_time)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];

	connect_to(b, 0, 0);
	u->h->reachable_at = INT64_MAX;
	zhandle_drop(u->h, false);
	run_for(b, 5 * SECOND);
	fakezk_elect(&b->z, SECOND, 0);
	run_for(b, 6 * SECOND);
	assert_int_equal(b->expired, 0);
	run_for(b, 3 * SECOND);
	assert_int_equal(b->expired, 1);
}

TEST(a_follower_reads_a_stale_prefix_but_its_own_writes)
{
	struct bench *b = *state;
	struct user *u = &b->user[0], *other = &b->user[1];

	connect_to(b, 0, 1);
	connect_to(b, 1, 2);
	pipe_hold(&b->z.server[1].from_leader);
	ask(other, EFFECT_ZK_CREATE, "/x", ZK_PERSISTENT, false);
	run_for(b, SECOND);
	assert_int_equal(other->seen[0].code, ZK_OK);
	ask(u, EFFECT_ZK_GET, "/x", 0, false);
	run_for(b, SECOND);
	assert_int_equal(u->count, 1);
	assert_int_equal(u->seen[0].code, ZK_NONODE);
	/* A read behind a write waits for it. */
	ask(u, EFFECT_ZK_SET, "/x", 0, false);
	ask(u, EFFECT_ZK_GET, "/x", 0, false);
	run_for(b, SECOND);
	assert_int_equal(u->count, 1);
	pipe_release(&b->z.server[1].from_leader);
	run_for(b, SECOND);
	assert_int_equal(u->count, 3);
	assert_int_equal(u->seen[2].code, ZK_OK);
	/* And nobody reads behind what it has seen: such a server refuses it. */
	pipe_hold(&b->z.server[1].from_leader);
	ask(other, EFFECT_ZK_SET, "/x", 0, false);
	run_for(b, SECOND);
	other->h->server = 1;
	zhandle_drop(other->h, false);
	run_for(b, SECOND);
	assert_int_equal(other->h->state, ZHANDLE_CONNECTED);
	assert_int_not_equal(other->h->conn->server->index, 1);
}

TEST(a_former_leader_answers_reads_and_no_writes)
{
	struct bench *b = *state;
	struct user *u = &b->user[0], *other = &b->user[1];

	connect_to(b, 0, 0);
	connect_to(b, 1, 1);
	fakezk_elect(&b->z, 100 * MS, 3 * SECOND);
	run_for(b, SECOND);
	ask(other, EFFECT_ZK_CREATE, "/x", ZK_PERSISTENT, false);
	run_for(b, SECOND);
	assert_int_equal(other->seen[other->count - 1].code, ZK_OK);
	u->count = 0;
	ask(u, EFFECT_ZK_GET, "/x", 0, false);
	ask(u, EFFECT_ZK_SET, "/", 0, false);
	run_for(b, 500 * MS);
	assert_int_equal(u->count, 1);
	assert_int_equal(u->seen[0].code, ZK_NONODE);
	run_for(b, 2 * SECOND);
	/* It gives up: the connection goes, and what was open is unknown. */
	assert_int_equal(u->seen[1].type, EVENT_ZK_SUSPENDED);
	assert_int_equal(u->seen[2].code, ZK_UNKNOWN);
}

TEST(a_request_of_a_session_that_has_moved_is_rejected)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];

	connect_to(b, 0, 1);
	pipe_hold(&b->z.server[1].to_leader);
	ask(u, EFFECT_ZK_CREATE, "/late", ZK_EPHEMERAL, false);
	run_for(b, 100 * MS);
	u->h->server = 2;
	zhandle_drop(u->h, false);
	run_for(b, SECOND);
	assert_int_equal(u->h->conn->server->index, 2);
	pipe_release(&b->z.server[1].to_leader);
	run_for(b, SECOND);
	assert_null(fakezk_find(&b->z, SLICE("/late"), FAKEZK_TRUTH));
	assert_int_equal(u->seen[1].code, ZK_UNKNOWN);
}

TEST(a_lost_connection_may_still_apply_what_was_asked)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];

	connect_to(b, 0, 1);
	ask(u, EFFECT_ZK_CREATE, "/done", ZK_EPHEMERAL, false);
	zhandle_drop(u->h, false);
	run_for(b, SECOND);
	assert_int_equal(u->seen[1].code, ZK_UNKNOWN);
	assert_non_null(fakezk_find(&b->z, SLICE("/done"), FAKEZK_TRUTH));
}

TEST(only_containers_that_had_a_child_are_reaped)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];

	connect_to(b, 0, 1);
	ask(u, EFFECT_ZK_CREATE, "/c", ZK_CONTAINER, false);
	ask(u, EFFECT_ZK_CREATE, "/p", ZK_PERSISTENT, false);
	run_for(b, SECOND);
	fakezk_reap(&b->z);
	assert_non_null(fakezk_find(&b->z, SLICE("/c"), FAKEZK_TRUTH));
	ask(u, EFFECT_ZK_CREATE, "/c/x", ZK_EPHEMERAL, false);
	ask(u, EFFECT_ZK_DELETE, "/c/x", 0, false);
	run_for(b, SECOND);
	fakezk_reap(&b->z);
	assert_null(fakezk_find(&b->z, SLICE("/c"), FAKEZK_TRUTH));
	assert_non_null(fakezk_find(&b->z, SLICE("/p"), FAKEZK_TRUTH));
}

/* In some runs the next leader knows it, in others not; nobody is told before, and what comes later is numbered later. */
TEST(a_proposal_in_flight_at_an_election_is_committed_or_never_was)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];
	int known = 0, i;

	b->z.quorum_max = SECOND;
	for (i = 0; i < 20; i++) {
		const struct znode *n, *later;
		char path[20], other[20];

		snprintf(path, sizeof(path), "/c%d", i);
		snprintf(other, sizeof(other), "/d%d", i);
		u->h->server = 1;
		zhandle_open(u->h);
		run_for(b, 3 * SECOND);
		u->count = 0;
		ask(u, EFFECT_ZK_CREATE, path, ZK_PERSISTENT, false);
		run_for(b, 12 * MS);
		assert_null(fakezk_find(&b->z, slice_of(path), FAKEZK_TRUTH));
		fakezk_elect(&b->z, SECOND, i % 2 ? SECOND : 0);
		run_for(b, 500 * MS);
		assert_null(fakezk_find(&b->z, slice_of(path), FAKEZK_TRUTH));
		run_for(b, 8 * SECOND);
		assert_int_equal(u->seen[1].code, ZK_UNKNOWN);
		n = fakezk_find(&b->z, slice_of(path), FAKEZK_TRUTH);
		known += n != NULL;
		ask(u, EFFECT_ZK_CREATE, other, ZK_PERSISTENT, false);
		run_for(b, 2 * SECOND);
		later = fakezk_find(&b->z, slice_of(other), FAKEZK_TRUTH);
		assert_non_null(later);
		assert_true(!n || n->czxid < later->czxid);
	}
	assert_in_range(known, 1, 19);
}

/* Its client was told that it is over, and it is not. */
TEST(an_expiry_in_flight_at_an_election_may_never_have_been)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];
	struct zsession *s;
	int i, lived = 0;

	for (i = 0; i < 20; i++) {
		b->z.quorum_max = 0;
		b->expired = 0;
		connect_to(b, 0, 1);
		s = u->h->session;
		b->z.quorum_max = 3 * SECOND;
		zhandle_close(u->h, false);
		while (!s->closing)
			run_for(b, 10 * MS);
		assert_true(s->alive);
		fakezk_elect(&b->z, SECOND, 0);
		run_for(b, 1500 * MS);
		lived += s->alive;
		assert_int_equal(b->expired, !s->alive);
		run_for(b, 15 * SECOND);
		assert_false(s->alive);
		assert_int_equal(b->expired, 1);
		u->count = 0;
	}
	assert_in_range(lived, 1, 19);
}

/* Requests and answers alike, one after the other: what is asked for behind a long list comes as late as that. */
TEST(a_link_takes_its_time_for_each_byte)
{
	struct bench *b = *state;
	struct user *u = &b->user[0];
	struct zsession *other = fakezk_session(&b->z, 100 * SECOND);
	char path[100];
	int64_t began;
	int i;

	fakezk_operate(&b->z, EFFECT_ZK_CREATE, SLICE("/d"), (struct slice){ 0 });
	for (i = 0; i < 400; i++) {
		struct txn create = { .origin = -1, .request = EFFECT_ZK_CREATE, .session = other };

		snprintf(path, sizeof(path), "/d/%047d", i);
		fakezk_write(&b->z, create, slice_of(path), (struct slice){ 0 }, ZK_EPHEMERAL, ZK_BY_OPERATOR);
	}
	b->z.link_bytes_s = 10000;
	connect_to(b, 0, 1);
	began = b->sched.now;
	ask(u, EFFECT_ZK_LIST, "/d", 0, false);
	ask(u, EFFECT_ZK_GET, "/d", 0, false);
	run_for(b, 4 * SECOND);
	assert_int_equal(u->count, 2);
	assert_in_range(u->seen[0].at - began, 2000 * MS, 2200 * MS); /* 400 names and their lengths are 20 kB */
	assert_in_range(u->seen[1].at - u->seen[0].at, 8 * MS, 30 * MS);
}
