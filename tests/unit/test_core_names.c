/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New names (names.h), and idle directories that are removed (leftover.h): over a whole core and a ZooKeeper that knows
 * which directories there are.
 */
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "core/snapshot.h"
#include "core/state.h"
#include "core/port/pools.h"
#include "core_fixture.h"

enum { DIRS = 2048, OPERATOR = 3 };

#define KAZOO_DATA "1\nkind=lock\nflavour=kazoo\n"

static struct {
	char path[64], child[128];
	size_t made; /* how often it was made */
} dirs[DIRS];

static size_t dir_count, made, removed;
static int64_t last_czxid;

static int setup_with(void **state, size_t names, size_t per_s, unsigned int share)
{
	struct fixture *f = fixture_new(false);

	memset(dirs, 0, sizeof(dirs));
	dir_count = made = removed = 0;
	last_czxid = 1000;
	f->conf.limits.new_names = names;
	f->conf.limits.new_names_per_s = per_s;
	f->conf.limits.user_share = share;
	f->conf.limits.grants_per_client = f->conf.limits.grants = f->conf.limits.requests = 1000;
	f->conf.limits.requests_per_client = f->conf.limits.events_per_client = 1000;
	f->conf.limits.locks = 5000;
	f->conf.limits.session_path_bytes = 100000;
	f->plain = true;
	fixture_setup(f, 0, state);
	for (uint32_t conn = 0; conn < OPERATOR; conn++)
		fixture_connect_as(f, conn, 1000 + conn, SLICE(""), false);
	fixture_connect_as(f, OPERATOR, 0, SLICE(""), true);
	return 0;
}

/* One user may have 3 of these. */
static int setup(void **state)
{
	return setup_with(state, 4, 1, 75);
}

static int setup_eight(void **state)
{
	return setup_with(state, 8, 1, 75);
}

static int setup_unlimited(void **state)
{
	return setup_with(state, 1, 0, 75);
}

/* They come back sooner than those who wait are looked at. */
static int setup_fast(void **state)
{
	return setup_with(state, 4, 100, 75);
}

static const struct broker_prefix prefixes[] = {
	{ "k/", FLAVOUR_KAZOO, NULL, 60000 * MS },
	{ "old/", FLAVOUR_KAZOO, NULL, 0 },
};

static int setup_kazoo(void **state)
{
	int rc = setup_with(state, 4, 0, 75);
	struct fixture *f = *state;

	f->conf.prefixes = prefixes;
	f->conf.prefix_count = 2;
	return rc;
}

/* One user may make 6 of these. */
static int setup_lasting(void **state)
{
	int rc = setup_kazoo(state);
	struct fixture *f = *state;

	f->conf.limits.lasting_directories = 8;
	pools_configure(&f->broker->env);
	return rc;
}

/* One of these is the operators'. */
static int setup_with_reserve(void **state)
{
	return setup_with(state, 50, 1, 100);
}

static size_t dir_of(const char *path, bool make)
{
	for (size_t i = 0; i < dir_count; i++)
		if (strcmp(dirs[i].path, path) == 0)
			return i;
	if (!make)
		return DIRS;
	snprintf(dirs[dir_count].path, sizeof(dirs[0].path), "%s", path);
	return dir_count++;
}

static size_t parent_of(const char *path)
{
	char parent[64];

	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	return dir_of(parent, false);
}

static void create(struct fixture *f, const struct fixture_op *op)
{
	size_t parent = parent_of(op->path);

	if (op->effect.create != ZK_EPHEMERAL_SEQUENTIAL) {
		dirs[dir_of(op->path, true)].made++;
		made++;
		fixture_answer(f, ZK_OK);
	} else if (parent == DIRS) {
		fixture_answer(f, ZK_NONODE);
	} else {
		fixture_answer_made(f, 1, ++last_czxid, dirs[parent].child, sizeof(dirs[parent].child));
	}
}

/* Of a directory or of the child in it. */
static void delete(struct fixture *f, const struct fixture_op *op)
{
	size_t dir = dir_of(op->path, false), parent = parent_of(op->path);

	if (parent < DIRS)
		dirs[parent].child[0] = '\0';
	if (dir == DIRS) {
		fixture_answer(f, ZK_OK);
	} else if (dirs[dir].child[0]) {
		fixture_answer(f, ZK_NOTEMPTY);
	} else {
		snprintf(dirs[dir].path, sizeof(dirs[0].path), "gone");
		removed++;
		fixture_answer(f, ZK_OK);
	}
}

static void answer_all(struct fixture *f)
{
	while (fixture_is_open(f)) {
		const struct fixture_op *op = fixture_oldest(f);
		size_t dir = dir_of(op->path, false);

		if (op->effect.type == EFFECT_ZK_CREATE)
			create(f, op);
		else if (op->effect.type == EFFECT_ZK_DELETE)
			delete(f, op);
		else if (strstr(op->path, "/."))
			fixture_answer(f, ZK_OK);
		else if (dir == DIRS)
			fixture_answer(f, ZK_NONODE);
		else if (op->effect.type == EFFECT_ZK_GET)
			fixture_answer_get(f, 1, 0, strstr(op->path, "%2F") ? KAZOO_DATA : LOCK_DATA);
		else
			fixture_answer_list(f, 1, dirs[dir].child[0] != '\0', (const char *[]){ dirs[dir].child });
	}
}

static void ask(struct fixture *f, uint32_t conn, const char *words)
{
	bytes_clear(&f->replies[conn]);
	fixture_ask(f, conn, words);
	answer_all(f);
}

static void pass(struct fixture *f, int64_t ms)
{
	for (; ms > 0; ms -= 100) {
		fixture_pass(f, 100);
		answer_all(f);
	}
}

static bool got(const struct fixture *f, uint32_t conn, const char *begin)
{
	struct slice reply = bytes_view(&f->replies[conn]);

	return reply.len > strlen(begin) && memcmp(reply.data, begin, strlen(begin)) == 0;
}

static const struct names *names_of(const struct fixture *f)
{
	return &f->broker->directories.names;
}

static void up_to_the_share_they_are_made_at_once_and_one_more_waits(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++)
		ask(f, 0, (const char *[]){ "LOCK a", "LOCK b", "LOCK c" }[i]);
	assert_true(got(f, 0, ":"));
	assert_int_equal(made, 3);
	ask(f, 0, "LOCK d WAIT 60000");
	assert_int_equal(made, 3);
	assert_int_equal(names_of(f)->waiting, 1);
	pass(f, 900);
	assert_int_equal(made, 3);
	fixture_expect(f, 0, "");
	pass(f, 300);
	assert_int_equal(made, 4);
	assert_true(got(f, 0, ":"));
	assert_int_equal(names_of(f)->waiting, 0);
	assert_int_equal(f->broker->env.stats.names_total, 4);
	assert_int_equal(f->broker->env.stats.names_delayed_total, 1);
}

static void a_try_is_refused_at_once(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++)
		ask(f, 0, (const char *[]){ "LOCK a", "LOCK b", "LOCK c" }[i]);
	ask(f, 0, "LOCK d WAIT 0");
	fixture_expect(f, 0,
		       "-LIMIT user 1000 uses 3 of 3 allowed names that are new to ZooKeeper (limits.new_names, limits.user_share): "
		       "wait, or use names that exist: limits.new_names_per_s go back each second: d");
	/* Also one that comes while others wait for it. */
	ask(f, 0, "ENQUEUE d");
	ask(f, 1, "LOCK d WAIT 0");
	assert_true(got(f, 1, "-LIMIT "));
	assert_int_equal(made, 3);
	pass(f, 1200);
	assert_int_equal(made, 4);
	ask(f, 0, "UNLOCK d");
	assert_true(got(f, 0, ":"));
}

static void what_exists_is_not_counted(void **state)
{
	struct fixture *f = *state;
	char words[32];

	for (int i = 0; i < 20; i++) {
		snprintf(words, sizeof(words), "/lb/there%d", i);
		dir_of(words, true);
		snprintf(words, sizeof(words), "LOCK there%d", i);
		ask(f, 0, words);
		assert_true(got(f, 0, ":"));
	}
	assert_int_equal(made, 0);
	assert_int_equal(names_of(f)->count, 0);
}

static void turns_come_in_order(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 8; i++)
		ask(f, 0, (const char *[]){ "ENQUEUE a", "ENQUEUE b", "ENQUEUE c", "ENQUEUE d", "ENQUEUE e", "ENQUEUE f",
					    "ENQUEUE g", "ENQUEUE h" }[i]);
	for (size_t i = 3; i < 8; i++) {
		assert_int_equal(dir_count, i);
		pass(f, 1100);
		assert_int_equal(dir_count, i + 1);
		assert_int_equal(dirs[i].path[4], "abcdefgh"[i]);
	}
}

static void who_has_used_up_a_share_does_not_hold_up_others(void **state)
{
	struct fixture *f = *state;
	char words[32];

	for (int i = 0; i < 9; i++) {
		snprintf(words, sizeof(words), "ENQUEUE n%d", i);
		ask(f, 0, words);
	}
	assert_int_equal(made, 6);
	ask(f, 1, "LOCK z WAIT 0");
	assert_true(got(f, 1, ":"));
	assert_int_equal(names_of(f)->waiting, 3);
}

static void the_reserve_is_for_operators(void **state)
{
	struct fixture *f = *state;
	char words[32];

	for (int i = 0; i < 49; i++) {
		snprintf(words, sizeof(words), "LOCK n%d", i);
		ask(f, 0, words);
		if (!got(f, 0, ":"))
			fail_msg("%d: %.*s", i, (int)f->replies[0].len, f->replies[0].data);
	}
	ask(f, 0, "LOCK more WAIT 0");
	assert_true(got(f, 0, "-LIMIT "));
	ask(f, OPERATOR, "LOCK more");
	assert_true(got(f, OPERATOR, ":"));
	ask(f, OPERATOR, "LOCK evenmore WAIT 0");
	assert_true(got(f, OPERATOR, "-LIMIT "));
}

static void who_gives_up_or_waits_in_vain_leaves_nothing(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++)
		ask(f, 0, (const char *[]){ "ENQUEUE a", "ENQUEUE b", "ENQUEUE c", "ENQUEUE d", "ENQUEUE e" }[i]);
	assert_int_equal(names_of(f)->waiting, 2);
	ask(f, 0, "CANCEL d");
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_GONE, .conn = 0 });
	answer_all(f);
	assert_int_equal(names_of(f)->waiting, 0);
	ask(f, 1, "LOCK y WAIT 500");
	pass(f, 700);
	assert_true(got(f, 1, "-LIMIT "));
	assert_int_equal(names_of(f)->waiting, 0);
	pass(f, 10000);
	assert_int_equal(names_count(&f->broker->directories), 0);
}

static void without_a_limit_all_are_made_at_once(void **state)
{
	struct fixture *f = *state;
	char words[32];

	for (int i = 0; i < 40; i++) {
		snprintf(words, sizeof(words), "LOCK n%d", i);
		ask(f, 0, words);
	}
	assert_int_equal(made, 40);
	assert_int_equal(f->broker->env.stats.names_total, 40);
}

static void a_reload_that_ends_the_limit_lets_all_go_on(void **state)
{
	struct fixture *f = *state;
	struct broker_conf next = f->conf;

	for (int i = 0; i < 6; i++)
		ask(f, 0, (const char *[]){ "ENQUEUE a", "ENQUEUE b", "ENQUEUE c", "ENQUEUE d", "ENQUEUE e", "ENQUEUE f" }[i]);
	assert_int_equal(made, 3);
	next.limits.new_names_per_s = 0;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &next } });
	pass(f, 1100);
	assert_int_equal(made, 6);
	f->conf.limits.new_names_per_s = 0;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &f->conf } });
}

/* Who waits, first to last; the timer of the first one wakes all. */
static void fill_and_wait(struct fixture *f)
{
	for (int i = 0; i < 6; i++)
		ask(f, 0, (const char *[]){ "ENQUEUE a", "ENQUEUE b", "ENQUEUE c", "ENQUEUE d", "ENQUEUE e", "ENQUEUE f" }[i]);
	assert_int_equal(made, 3);
	assert_int_equal(names_of(f)->waiting, 3);
}

static void whoever_is_first_wakes_all(void **state)
{
	struct fixture *f = *state;

	fill_and_wait(f);
	ask(f, 0, "CANCEL d");
	assert_int_equal(names_of(f)->waiting, 2);
	pass(f, 1100);
	assert_int_equal(made, 4);
	assert_true(dir_of("/lb/e", false) < DIRS);
	ask(f, 0, "CANCEL f");
	pass(f, 10000);
	assert_int_equal(made, 4);
	assert_int_equal(names_of(f)->waiting, 0);
}

/* Nobody is served in the event of that question: who looks next finds an empty bucket, and no room just made. */
static void who_waits_goes_on_when_a_question_has_emptied_the_bucket(void **state)
{
	struct fixture *f = *state;

	fill_and_wait(f);
	f->now_ns += 50 * MS;
	ask(f, OPERATOR, "METRICS");
	assert_int_equal(names_of(f)->count, 0);
	assert_int_equal(made, 3);
	pass(f, 200);
	assert_int_equal(made, 6);
	assert_int_equal(names_of(f)->waiting, 0);
}

/* Nobody can be served, and the deadline must not be now for ever. */
static void a_reload_that_ends_the_limit_without_a_connection_waits_for_one(void **state)
{
	struct fixture *f = *state;
	struct broker_conf next = f->conf;

	fill_and_wait(f);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED });
	next.limits.new_names_per_s = 0;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &next } });
	for (int events = 0; events < 100; events++) {
		int64_t due_ns = broker_deadline(f->broker);

		if (due_ns > f->now_ns + 1000 * MS)
			break;
		f->now_ns = due_ns > f->now_ns ? due_ns : f->now_ns;
		fixture_event(f, &(struct event){ .type = EVENT_TIME });
		assert_true(broker_deadline(f->broker) > f->now_ns);
	}
	assert_int_equal(made, 3);
	fixture_reconnected(f);
	answer_all(f);
	pass(f, 1000);
	assert_int_equal(made, 6);
	f->conf.limits.new_names_per_s = 0;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &f->conf } });
}

/* After a reload that ends the limit, thousands may go on: they do so in pieces, each in an event of its own. */
static void those_who_go_on_together_go_on_in_pieces(void **state)
{
	struct fixture *f = *state;
	struct broker_conf next = f->conf;
	size_t waiting;
	char words[32];

	for (int i = 0; i < NAMES_MOST + 20; i++) {
		snprintf(words, sizeof(words), "ENQUEUE n%d", i);
		ask(f, i % 3, words);
	}
	waiting = names_of(f)->waiting;
	assert_true(waiting > NAMES_MOST);
	next.limits.new_names_per_s = 0;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &next } });
	f->now_ns = max64(f->now_ns, broker_deadline(f->broker));
	fixture_event(f, &(struct event){ .type = EVENT_TIME });
	assert_int_equal(waiting - names_of(f)->waiting, NAMES_MOST);
	assert_true(broker_deadline(f->broker) <= f->now_ns);
	answer_all(f);
	pass(f, 1000);
	assert_int_equal(made, NAMES_MOST + 20);
	f->conf.limits.new_names_per_s = 0;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &f->conf } });
}

/* After a reload that raises the limit, there is room, but those who came before have not been looked at yet. */
static void who_comes_while_others_may_go_on_goes_on_after_them(void **state)
{
	struct fixture *f = *state;
	struct broker_conf next = f->conf;
	char words[32];

	for (int i = 0; i < 2 * NAMES_MOST + 20; i++) {
		snprintf(words, sizeof(words), "ENQUEUE n%d", i);
		ask(f, 0, words);
	}
	assert_true(names_of(f)->waiting > 2 * NAMES_MOST);
	next.limits.new_names = 1000;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &next } });
	ask(f, 1, "ENQUEUE late");
	pass(f, 200);
	assert_int_equal(names_of(f)->waiting, 0);
	assert_int_equal(made, 2 * NAMES_MOST + 21);
	assert_int_equal(dir_of("/lb/late", false), dir_count - 1);
	f->conf.limits.new_names = 4;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &f->conf } });
}

/* The user who waited for the name first has used up a share; the next user has not. */
static void whoever_pays_from_now_on_counts(void **state)
{
	struct fixture *f = *state;
	char words[32];

	for (int i = 0; i < 9; i++) {
		snprintf(words, sizeof(words), "ENQUEUE n%d", i);
		ask(f, 0, words);
	}
	ask(f, 1, "ENQUEUE n8");
	assert_int_equal(names_of(f)->waiting, 3);
	ask(f, 0, "CANCEL n8");
	pass(f, 1200);
	assert_int_equal(names_of(f)->waiting, 1);
	assert_true(dir_of("/lb/n8", false) < DIRS);
}

/* The payer's account is freed in the same event in which the next client begins to pay: for a lock, and an election. */
static void the_payer_may_go_with_its_account_while_names_wait(void **state)
{
	struct fixture *f = *state;
	char words[32];

	for (int i = 0; i < 9; i++) {
		snprintf(words, sizeof(words), "ENQUEUE n%d", i);
		ask(f, 0, words);
	}
	ask(f, 0, "OBSERVE e");
	ask(f, 1, "ENQUEUE n7");
	ask(f, 1, "ENQUEUE n8");
	ask(f, 1, "OBSERVE e");
	assert_int_equal(names_of(f)->waiting, 4);
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_GONE, .conn = 0 });
	assert_int_equal(names_of(f)->waiting, 3);
	for (const struct names_line *line = TAILQ_FIRST(&names_of(f)->lines); line; line = TAILQ_NEXT(line, link))
		assert_int_equal(line->account->uid, 1001);
	answer_all(f);
	pass(f, 8000);
	assert_int_equal(names_of(f)->waiting, 0);
	assert_true(dir_of("/lb/n7", false) < DIRS && dir_of("/lb/n8", false) < DIRS && dir_of("/lb/e", false) < DIRS);
}

/* Both are of one user, but only operators may use the reserve. */
static void an_operator_does_not_wait_behind_others_of_its_user(void **state)
{
	struct fixture *f = *state;
	char words[32];

	fixture_connect_as(f, OPERATOR + 1, 0, SLICE(""), false);
	for (int i = 0; i < 50; i++) {
		snprintf(words, sizeof(words), "ENQUEUE n%d", i);
		ask(f, OPERATOR + 1, words);
	}
	assert_int_equal(names_of(f)->waiting, 1);
	ask(f, OPERATOR, "ENQUEUE n49");
	assert_int_equal(names_of(f)->waiting, 1);
	ask(f, OPERATOR + 1, "CANCEL n49");
	pass(f, 1200);
	assert_int_equal(names_of(f)->waiting, 0);
}

/* However many wait for it, and however often it is touched: the sentence is for those that are refused. */
static void no_sentence_is_made_for_those_who_wait(void **state)
{
	struct fixture *f = *state;

	fill_and_wait(f);
	bytes_clear(&f->broker->env.refusal);
	ask(f, 1, "ENQUEUE d");
	pass(f, 300);
	assert_int_equal(f->broker->env.refusal.len, 0);
	ask(f, 2, "LOCK d WAIT 0");
	assert_true(got(f, 2, "-LIMIT "));
	assert_int_not_equal(f->broker->env.refusal.len, 0);
}

static void a_hand_over_goes_on_with_an_empty_bucket(void **state)
{
	struct fixture *f = *state;
	struct bytes text = { 0 }, why = { 0 };
	struct broker *b;

	for (int i = 0; i < 5; i++)
		ask(f, 0, (const char *[]){ "ENQUEUE a", "ENQUEUE b", "ENQUEUE c", "ENQUEUE d", "ENQUEUE e" }[i]);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
	broker_snapshot(f->broker, &text);
	b = broker_restore(&f->conf, bytes_view(&text), f->now_ns, &why);
	assert_non_null(b);
	assert_int_equal(broker_deadline(b), broker_deadline(f->broker));
	broker_free(f->broker);
	f->broker = b;
	bytes_free(&text);
	bytes_free(&why);
	fixture_reconnected(f);
	answer_all(f);
	pass(f, 3000);
	assert_int_equal(dir_count, 5);
}

static void semaphores_and_observed_elections_are_new_names_too(void **state)
{
	struct fixture *f = *state;

	ask(f, 0, "ACQUIRE s LIMIT 2 WAIT 60000");
	assert_int_equal(dirs[dir_of("/lb/s", false)].made, 1);
	assert_int_equal(names_of(f)->count, 1);
	ask(f, 0, "OBSERVE e");
	assert_true(dir_of("/lb/e", false) < DIRS);
	assert_int_equal(names_of(f)->count, 2);
	ask(f, 1, "ENQUEUE a");
	ask(f, 1, "ENQUEUE b");
	ask(f, 2, "ACQUIRE t LIMIT 2 WAIT 0");
	assert_true(got(f, 2, "-LIMIT "));
	ask(f, 2, "OBSERVE g");
	assert_int_equal(dir_of("/lb/g", false), DIRS);
	pass(f, 5000);
	assert_true(dir_of("/lb/g", false) < DIRS);
}

static void use(struct fixture *f, const char *name)
{
	char words[64];

	snprintf(words, sizeof(words), "LOCK %s", name);
	ask(f, 0, words);
	assert_true(got(f, 0, ":"));
	snprintf(words, sizeof(words), "UNLOCK %s", name);
	ask(f, 0, words);
}

/* The heartbeats are answered. */
static void pass_s(struct fixture *f, int64_t s)
{
	for (int64_t i = 0; i < s; i++)
		pass(f, 1000);
}

static void an_idle_directory_is_removed_and_made_again(void **state)
{
	struct fixture *f = *state;

	use(f, "k/a");
	pass_s(f, 50);
	use(f, "k/a");
	pass_s(f, 59);
	assert_int_equal(made, 1);
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1);
	pass_s(f, 2);
	assert_int_equal(removed, 1);
	assert_int_equal(f->broker->env.stats.directories_removed_total, 1);
	assert_int_equal(f->broker->directories.left_count, 0);
	pass_s(f, 200);
	assert_int_equal(removed, 1);
	use(f, "k/a");
	assert_int_equal(made, 2);
	pass_s(f, 61);
	assert_int_equal(removed, 2);
	assert_int_equal(f->broker->env.stats.directories_left_total, 0);
}

static void other_directories_stay(void **state)
{
	struct fixture *f = *state;

	use(f, "old/a");
	use(f, "container");
	pass_s(f, 300);
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1);
}

static void one_that_is_in_use_elsewhere_is_tried_again(void **state)
{
	struct fixture *f = *state;
	size_t dir;

	use(f, "k/a");
	dir = dir_of("/lb/k%2Fa", false);
	assert_true(dir < DIRS);
	snprintf(dirs[dir].child, sizeof(dirs[dir].child), "somebody");
	pass_s(f, 70);
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1);
	dirs[dir].child[0] = '\0';
	pass_s(f, 60);
	assert_int_equal(removed, 1);
}

static bool deletes(const struct fixture *f)
{
	for (size_t i = f->first_op; i < f->end_op; i++)
		if (f->ops[i % FIXTURE_OPS].effect.type == EFFECT_ZK_DELETE)
			return true;
	return false;
}

static void who_asks_while_it_is_removed_makes_it_again(void **state)
{
	struct fixture *f = *state;

	use(f, "k/a");
	for (int i = 0; !deletes(f); i++) {
		assert_true(i < 700);
		answer_all(f);
		fixture_pass(f, 100);
	}
	bytes_clear(&f->replies[1]);
	fixture_ask(f, 1, "LOCK k/a");
	answer_all(f);
	assert_true(got(f, 1, ":"));
	assert_int_equal(removed, 1);
	assert_int_equal(made, 2);
}

static void a_hand_over_removes_it_at_the_same_time(void **state)
{
	struct fixture *f = *state;
	struct bytes text = { 0 }, why = { 0 };
	struct broker *b;

	use(f, "k/a");
	pass_s(f, 30);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
	broker_snapshot(f->broker, &text);
	b = broker_restore(&f->conf, bytes_view(&text), f->now_ns, &why);
	assert_non_null(b);
	assert_int_equal(b->directories.left_count, 1);
	broker_free(f->broker);
	f->broker = b;
	bytes_free(&text);
	bytes_free(&why);
	fixture_reconnected(f);
	answer_all(f);
	pass_s(f, 25);
	assert_int_equal(removed, 0);
	pass_s(f, 10);
	assert_int_equal(removed, 1);
}

/* However many names there are: those that are used longest ago go earlier. */
static void no_more_stay_than_are_remembered(void **state)
{
	struct fixture *f = *state;
	char name[32];

	for (int i = 0; i < 1024 + 10; i++) {
		snprintf(name, sizeof(name), "k/%d", i);
		use(f, name);
		assert_int_equal(removed, i < 1024 ? 0 : i - 1023);
	}
	assert_int_equal(f->broker->directories.left_count, 1024);
	assert_int_equal(f->broker->env.stats.directories_left_total, 0);
}

/* Not one after the other, for ever. */
static void those_that_cannot_be_removed_are_forgotten_when_there_are_more(void **state)
{
	struct fixture *f = *state;
	char name[32];

	for (int i = 0; i < 1024 + 10; i++) {
		snprintf(name, sizeof(name), "k/%d", i);
		use(f, name);
		snprintf(dirs[i].child, sizeof(dirs[i].child), "somebody");
	}
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1024);
	assert_int_equal(f->broker->env.stats.directories_left_total, 10);
}

/* ---- what stays for good ---- */

#define LASTING_REFUSED \
	"-LIMIT user 1000 uses 6 of 6 allowed directories that stay in ZooKeeper for good (limits.lasting_directories, " \
	"limits.user_share): use names that exist there, or a prefix of another flavour than kazoo: "

static uint64_t lasting(const struct fixture *f)
{
	return lasting_count(&f->broker->directories);
}

/* One of them may be removed. */
static void make_six(struct fixture *f)
{
	for (int i = 0; i < 6; i++)
		use(f, (const char *[]){ "old/1", "old/2", "k/3", "old/4", "old/5", "old/6" }[i]);
	assert_int_equal(lasting(f), 6);
}

static void one_directory_more_than_may_stay_is_refused(void **state)
{
	struct fixture *f = *state;

	make_six(f);
	ask(f, 0, "LOCK old/d WAIT 60000");
	fixture_expect(f, 0, LASTING_REFUSED "old/d");
	assert_int_equal(made, 6);
	/* It exists, and others have their share; other flavours leave nothing. */
	ask(f, 0, "LOCK old/1");
	assert_true(got(f, 0, ":"));
	ask(f, 0, "LOCK b");
	assert_true(got(f, 0, ":"));
	ask(f, 1, "LOCK old/d");
	assert_true(got(f, 1, ":"));
	assert_int_equal(lasting(f), 7);
	ask(f, 2, "LOCK old/e");
	assert_true(got(f, 2, "-LIMIT user 1002 uses 0 of 0 "));
	assert_int_equal(lasting(f), 7);
}

static void an_observer_of_a_directory_that_may_not_be_made_is_told(void **state)
{
	struct fixture *f = *state;

	make_six(f);
	ask(f, 0, "OBSERVE old/d");
	ask(f, 0, "EVENTS");
	assert_true(memmem(f->replies[0].data, f->replies[0].len, "directories that stay", 21) != NULL);
	pass(f, 5000);
	assert_int_equal(made, 6);
}

static void what_is_removed_does_not_count_any_longer(void **state)
{
	struct fixture *f = *state;

	make_six(f);
	pass_s(f, 65);
	assert_int_equal(removed, 1);
	assert_int_equal(lasting(f), 5);
	use(f, "old/d");
	assert_int_equal(lasting(f), 6);
}

/* Somebody else was first: it is theirs. */
static void what_somebody_else_has_made_does_not_count(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "LOCK old/a");
	fixture_answer(f, ZK_NONODE);
	while (fixture_is_open(f) && !strstr(fixture_oldest(f)->path, "old"))
		fixture_answer(f, ZK_OK);
	while (fixture_is_open(f)) {
		const struct fixture_op *op = fixture_oldest(f);

		if (op->effect.type == EFFECT_ZK_CREATE && op->effect.create == ZK_PERSISTENT)
			break;
		fixture_answer(f, ZK_NONODE);
	}
	assert_int_equal(lasting(f), 1);
	dir_of(fixture_oldest(f)->path, true);
	fixture_answer(f, ZK_NODEEXISTS);
	assert_int_equal(lasting(f), 0);
	answer_all(f);
	assert_true(got(f, 0, ":"));
	assert_int_equal(lasting(f), 0);
}

static void hand_over(struct fixture *f)
{
	struct bytes text = { 0 }, why = { 0 };
	struct broker *b;

	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
	broker_snapshot(f->broker, &text);
	b = broker_restore(&f->conf, bytes_view(&text), f->now_ns, &why);
	assert_non_null(b);
	broker_free(f->broker);
	f->broker = b;
	bytes_free(&text);
	bytes_free(&why);
	fixture_reconnected(f);
	answer_all(f);
}

static void the_next_process_knows_what_stays(void **state)
{
	struct fixture *f = *state;

	make_six(f);
	hand_over(f);
	assert_int_equal(lasting(f), 6);
	ask(f, 0, "LOCK old/d");
	fixture_expect(f, 0, LASTING_REFUSED "old/d");
	pass_s(f, 65);
	assert_int_equal(lasting(f), 5);
	ask(f, 0, "LOCK old/d");
	assert_true(got(f, 0, ":"));
}

/* What user 1000 has made is not given back to user 1001, who comes first. */
static void the_next_process_knows_whose_it_removes(void **state)
{
	struct fixture *f = *state;

	ask(f, 1, "LOCK old/a");
	use(f, "k/b");
	hand_over(f);
	assert_int_equal(lasting(f), 2);
	pass_s(f, 65);
	assert_int_equal(removed, 1);
	assert_int_equal(f->broker->locks.conns[0]->account->used[POOL_LASTING], 0);
	assert_int_equal(f->broker->locks.conns[1]->account->used[POOL_LASTING], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(up_to_the_share_they_are_made_at_once_and_one_more_waits),
		TEST(a_try_is_refused_at_once),
		TEST(what_exists_is_not_counted),
		TEST(turns_come_in_order),
		TEST_IN(who_has_used_up_a_share_does_not_hold_up_others, setup_eight),
		TEST_IN(the_reserve_is_for_operators, setup_with_reserve),
		TEST(who_gives_up_or_waits_in_vain_leaves_nothing),
		TEST_IN(without_a_limit_all_are_made_at_once, setup_unlimited),
		TEST(a_reload_that_ends_the_limit_lets_all_go_on),
		TEST(whoever_is_first_wakes_all),
		TEST_IN(who_waits_goes_on_when_a_question_has_emptied_the_bucket, setup_fast),
		TEST(a_reload_that_ends_the_limit_without_a_connection_waits_for_one),
		TEST(those_who_go_on_together_go_on_in_pieces),
		TEST(who_comes_while_others_may_go_on_goes_on_after_them),
		TEST_IN(whoever_pays_from_now_on_counts, setup_eight),
		TEST_IN(the_payer_may_go_with_its_account_while_names_wait, setup_eight),
		TEST_IN(an_operator_does_not_wait_behind_others_of_its_user, setup_with_reserve),
		TEST(no_sentence_is_made_for_those_who_wait),
		TEST(a_hand_over_goes_on_with_an_empty_bucket),
		TEST(semaphores_and_observed_elections_are_new_names_too),
		TEST_IN(an_idle_directory_is_removed_and_made_again, setup_kazoo),
		TEST_IN(other_directories_stay, setup_kazoo),
		TEST_IN(one_that_is_in_use_elsewhere_is_tried_again, setup_kazoo),
		TEST_IN(who_asks_while_it_is_removed_makes_it_again, setup_kazoo),
		TEST_IN(a_hand_over_removes_it_at_the_same_time, setup_kazoo),
		TEST_IN(no_more_stay_than_are_remembered, setup_kazoo),
		TEST_IN(those_that_cannot_be_removed_are_forgotten_when_there_are_more, setup_kazoo),
		TEST_IN(one_directory_more_than_may_stay_is_refused, setup_lasting),
		TEST_IN(an_observer_of_a_directory_that_may_not_be_made_is_told, setup_lasting),
		TEST_IN(what_is_removed_does_not_count_any_longer, setup_lasting),
		TEST_IN(what_somebody_else_has_made_does_not_count, setup_lasting),
		TEST_IN(the_next_process_knows_what_stays, setup_lasting),
		TEST_IN(the_next_process_knows_whose_it_removes, setup_lasting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
