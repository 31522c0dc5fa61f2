/* SPDX-License-Identifier: Apache-2.0 */
/* New names (names.h). */
#include "base/minmax.h"
#include "core/state.h"
#include "names_fixture.h"
#include "core_test.h"

/* One user may have 3 of these. */
static int setup(void **state)
{
	return names_setup(state, 4, 1, 75);
}

static int setup_eight(void **state)
{
	return names_setup(state, 8, 1, 75);
}

static int setup_unlimited(void **state)
{
	return names_setup(state, 1, 0, 75);
}

/* They come back sooner than those who wait are looked at. */
static int setup_fast(void **state)
{
	return names_setup(state, 4, 100, 75);
}

/* One of these is the operators'. */
static int setup_with_reserve(void **state)
{
	return names_setup(state, 50, 1, 100);
}

static const struct names *names_of(const struct fixture *f)
{
	return &f->broker->directories.names;
}

static void ask_and_get(struct fixture *f, uint32_t conn, const char *words, const char *begin)
{
	ask(f, conn, words);
	assert_true(got(f, conn, begin));
}

/* For n0, n1, and so on. */
static void ask_many(struct fixture *f, uint32_t conn, const char *command, int count)
{
	for (int i = 0; i < count; i++)
		ask(f, conn, fixture_words(f, "%s n%d", command, i));
}

static void reload(struct fixture *f, size_t new_names, size_t new_names_per_s)
{
	static struct broker_conf next;

	next = f->conf;
	next.limits.new_names = new_names;
	next.limits.new_names_per_s = new_names_per_s;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &next } });
}

TEST(up_to_the_share_they_are_made_at_once_and_one_more_waits)
{
	ask_many(f, 0, "LOCK", 3);
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

TEST(a_try_is_refused_at_once)
{
	ask_many(f, 0, "LOCK", 3);
	ask(f, 0, "LOCK d WAIT 0");
	fixture_expect(f, 0,
		       "-LIMIT user 1000 uses 3 of 3 allowed names that are new to ZooKeeper (limits.new_names, limits.user_share): "
		       "wait, or use names that exist: limits.new_names_per_s go back each second: d");
	/* Also one that comes while others wait for it. */
	ask(f, 0, "ENQUEUE d");
	ask_and_get(f, 1, "LOCK d WAIT 0", "-LIMIT ");
	assert_int_equal(made, 3);
	pass(f, 1200);
	assert_int_equal(made, 4);
	ask_and_get(f, 0, "UNLOCK d", ":");
}

TEST(what_exists_is_not_counted)
{
	for (int i = 0; i < 20; i++) {
		dir_of(fixture_words(f, "/lb/there%d", i), true);
		ask_and_get(f, 0, fixture_words(f, "LOCK there%d", i), ":");
	}
	assert_int_equal(made, 0);
	assert_int_equal(names_of(f)->count, 0);
}

TEST(turns_come_in_order)
{
	ask_many(f, 0, "ENQUEUE", 8);
	for (size_t i = 3; i < 8; i++) {
		assert_int_equal(dir_count, i);
		pass(f, 1100);
		assert_int_equal(dir_count, i + 1);
		assert_int_equal(dirs[i].path[5], '0' + i);
	}
}

TEST_IN(who_has_used_up_a_share_does_not_hold_up_others, setup_eight)
{
	ask_many(f, 0, "ENQUEUE", 9);
	assert_int_equal(made, 6);
	ask_and_get(f, 1, "LOCK z WAIT 0", ":");
	assert_int_equal(names_of(f)->waiting, 3);
}

TEST_IN(the_reserve_is_for_operators, setup_with_reserve)
{
	for (int i = 0; i < 49; i++)
		ask_and_get(f, 0, fixture_words(f, "LOCK n%d", i), ":");
	assert_int_equal(f->broker->locks.grant_count, 49);
	ask_and_get(f, 0, "LOCK more WAIT 0", "-LIMIT ");
	ask_and_get(f, OPERATOR, "LOCK more", ":");
	ask_and_get(f, OPERATOR, "LOCK evenmore WAIT 0", "-LIMIT ");
}

TEST(who_gives_up_or_waits_in_vain_leaves_nothing)
{
	ask_many(f, 0, "ENQUEUE", 5);
	assert_int_equal(names_of(f)->waiting, 2);
	ask(f, 0, "CANCEL n3");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	answer_all(f);
	assert_int_equal(names_of(f)->waiting, 0);
	ask(f, 1, "LOCK y WAIT 500");
	pass(f, 700);
	assert_true(got(f, 1, "-LIMIT "));
	assert_int_equal(names_of(f)->waiting, 0);
	pass(f, 10000);
	assert_int_equal(names_count(&f->broker->directories), 0);
}

TEST_IN(without_a_limit_all_are_made_at_once, setup_unlimited)
{
	ask_many(f, 0, "LOCK", 40);
	assert_int_equal(made, 40);
	assert_int_equal(f->broker->env.stats.names_total, 40);
}

TEST(a_reload_that_ends_the_limit_lets_all_go_on)
{
	ask_many(f, 0, "ENQUEUE", 6);
	assert_int_equal(made, 3);
	reload(f, 4, 0);
	pass(f, 1100);
	assert_int_equal(made, 6);
}

/* Who waits, first to last; the timer of the first one wakes all. */
static void fill_and_wait(struct fixture *f)
{
	ask_many(f, 0, "ENQUEUE", 6);
	assert_int_equal(made, 3);
	assert_int_equal(names_of(f)->waiting, 3);
}

TEST(whoever_is_first_wakes_all)
{
	fill_and_wait(f);
	ask(f, 0, "CANCEL n3");
	assert_int_equal(names_of(f)->waiting, 2);
	pass(f, 1100);
	assert_int_equal(made, 4);
	assert_true(dir_of("/lb/n4", false) < DIRS);
	ask(f, 0, "CANCEL n5");
	pass(f, 10000);
	assert_int_equal(made, 4);
	assert_int_equal(names_of(f)->waiting, 0);
}

/* Nobody is served in the event of that question: who looks next finds an empty bucket, and no room just made. */
TEST_IN(who_waits_goes_on_when_a_question_has_emptied_the_bucket, setup_fast)
{
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
TEST(a_reload_that_ends_the_limit_without_a_connection_waits_for_one)
{
	fill_and_wait(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	reload(f, 4, 0);
	for (int events = 0; events < 100; events++) {
		int64_t due_ns = broker_deadline(f->broker);

		if (due_ns > f->now_ns + 1000 * MS)
			break;
		f->now_ns = due_ns > f->now_ns ? due_ns : f->now_ns;
		fixture_simple(f, EVENT_TIME, 0);
		assert_true(broker_deadline(f->broker) > f->now_ns);
	}
	assert_int_equal(made, 3);
	fixture_reconnected(f);
	answer_all(f);
	pass(f, 1000);
	assert_int_equal(made, 6);
}

/* After a reload that ends the limit, thousands may go on: they do so in pieces, each in an event of its own. */
TEST(those_who_go_on_together_go_on_in_pieces)
{
	size_t waiting;

	for (int i = 0; i < NAMES_MOST + 20; i++)
		ask(f, i % 3, fixture_words(f, "ENQUEUE n%d", i));
	waiting = names_of(f)->waiting;
	assert_true(waiting > NAMES_MOST);
	reload(f, 4, 0);
	f->now_ns = max64(f->now_ns, broker_deadline(f->broker));
	fixture_simple(f, EVENT_TIME, 0);
	assert_int_equal(waiting - names_of(f)->waiting, NAMES_MOST);
	assert_true(broker_deadline(f->broker) <= f->now_ns);
	answer_all(f);
	pass(f, 1000);
	assert_int_equal(made, NAMES_MOST + 20);
}

/* A reload raises the limit: there is room, but the earlier names were not looked at yet. */
TEST(a_late_name_goes_on_after_the_earlier_ones)
{
	ask_many(f, 0, "ENQUEUE", 2 * NAMES_MOST + 20);
	assert_true(names_of(f)->waiting > 2 * NAMES_MOST);
	reload(f, 1000, 1);
	ask(f, 1, "ENQUEUE late");
	pass(f, 200);
	assert_int_equal(names_of(f)->waiting, 0);
	assert_int_equal(made, 2 * NAMES_MOST + 21);
	assert_int_equal(dir_of("/lb/late", false), dir_count - 1);
}

/* The user who waited for the name first has used up a share; the next user has not. */
TEST_IN(whoever_pays_from_now_on_counts, setup_eight)
{
	ask_many(f, 0, "ENQUEUE", 9);
	ask(f, 1, "ENQUEUE n8");
	assert_int_equal(names_of(f)->waiting, 3);
	ask(f, 0, "CANCEL n8");
	pass(f, 1200);
	assert_int_equal(names_of(f)->waiting, 1);
	assert_true(dir_of("/lb/n8", false) < DIRS);
}

/* The payer's account is freed in the same event in which the next client begins to pay: for a lock, and an election. */
TEST_IN(the_payer_may_go_with_its_account_while_names_wait, setup_eight)
{
	ask_many(f, 0, "ENQUEUE", 9);
	ask(f, 0, "OBSERVE e");
	ask(f, 1, "ENQUEUE n7");
	ask(f, 1, "ENQUEUE n8");
	ask(f, 1, "OBSERVE e");
	assert_int_equal(names_of(f)->waiting, 4);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	assert_int_equal(names_of(f)->waiting, 3);
	for (const struct names_line *line = TAILQ_FIRST(&names_of(f)->lines); line; line = TAILQ_NEXT(line, link))
		assert_int_equal(line->account->uid, 1001);
	answer_all(f);
	pass(f, 8000);
	assert_int_equal(names_of(f)->waiting, 0);
	assert_true(dir_of("/lb/n7", false) < DIRS && dir_of("/lb/n8", false) < DIRS && dir_of("/lb/e", false) < DIRS);
}

/* Both are of one user, but only operators may use the reserve. */
TEST_IN(an_operator_does_not_wait_behind_others_of_its_user, setup_with_reserve)
{
	fixture_connect_as(f, OPERATOR + 1, 0, SLICE(""), false);
	ask_many(f, OPERATOR + 1, "ENQUEUE", 50);
	assert_int_equal(names_of(f)->waiting, 1);
	ask(f, OPERATOR, "ENQUEUE n49");
	assert_int_equal(names_of(f)->waiting, 1);
	ask(f, OPERATOR + 1, "CANCEL n49");
	pass(f, 1200);
	assert_int_equal(names_of(f)->waiting, 0);
}

/* However many wait for it, and however often it is touched: the sentence is for those that are refused. */
TEST(no_sentence_is_made_for_those_who_wait)
{
	fill_and_wait(f);
	bytes_clear(&f->broker->env.refusal);
	ask(f, 1, "ENQUEUE n3");
	pass(f, 300);
	assert_int_equal(f->broker->env.refusal.len, 0);
	ask_and_get(f, 2, "LOCK n3 WAIT 0", "-LIMIT ");
	assert_int_not_equal(f->broker->env.refusal.len, 0);
}

TEST(a_hand_over_goes_on_with_an_empty_bucket)
{
	ask_many(f, 0, "ENQUEUE", 5);
	hand_over(f);
	pass(f, 3000);
	assert_int_equal(dir_count, 5);
}

TEST(semaphores_and_observed_elections_are_new_names_too)
{
	ask(f, 0, "ACQUIRE s LIMIT 2 WAIT 60000");
	assert_int_equal(dirs[dir_of("/lb/s", false)].made, 1);
	assert_int_equal(names_of(f)->count, 1);
	ask(f, 0, "OBSERVE e");
	assert_true(dir_of("/lb/e", false) < DIRS);
	assert_int_equal(names_of(f)->count, 2);
	ask(f, 1, "ENQUEUE a");
	ask(f, 1, "ENQUEUE b");
	ask_and_get(f, 2, "ACQUIRE t LIMIT 2 WAIT 0", "-LIMIT ");
	ask(f, 2, "OBSERVE g");
	assert_int_equal(dir_of("/lb/g", false), DIRS);
	pass(f, 5000);
	assert_true(dir_of("/lb/g", false) < DIRS);
}
