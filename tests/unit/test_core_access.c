/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of access over a whole core: who is refused, who is shown what, and when other rules begin to count. */
#include <stdio.h>
#include <string.h>

#include "base/unit_name.h"
#include "core/state.h"
#include "core_test.h"

enum { RULES = 4, OPERATOR = 3 };

static struct rule list[RULES];
static struct broker_conf next;
static const uint32_t groups[] = { 50 };

/* Users 1000, 1001, 1002 by their numbers. */
static void begin(struct fixture *f, uint32_t conn, struct slice unit, size_t group_count)
{
	fixture_event(f, &(struct event){
				 .type = EVENT_CLIENT_CONNECTED,
				 .conn = conn,
				 .connected = { .uid = 1000 + conn, .pid = 100 + conn, .comm = SLICE("test"), .unit = unit,
						.groups = { groups, group_count, true } },
			 });
}

static int begin_all(struct fixture *f, void **state)
{
	f->plain = true;
	fixture_setup(f, 0, state);
	next = f->conf;
	begin(f, 0, SLICE(""), 0);
	begin(f, 1, SLICE("web.service"), 0);
	begin(f, 2, SLICE(""), 1);
	fixture_connect_as(f, OPERATOR, 0, SLICE(""), true);
	return 0;
}

static int setup(void **state)
{
	return begin_all(fixture_new(true), state);
}

static int setup_pieces(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.all_in_pieces = true;
	f->conf.limits.memory_bytes = 8 << 20;
	f->conf.limits.locks = f->conf.limits.grants = f->conf.limits.grants_per_client = 4096;
	return begin_all(f, state);
}

static struct access_rules parse(const char *const *texts)
{
	struct access_rules rules = { .list = list };
	char error[RULE_ERROR_MAX];

	for (size_t i = 0; i < RULES; i++)
		rule_free(&list[i]);
	for (; *texts; texts++) {
		if (rule_parse(&list[rules.count], *texts, "conf:7", error) < 0)
			fail_msg("%s: %s", *texts, error);
		rules.verbs |= list[rules.count++].verbs;
	}
	return rules;
}

/* A reload brings other rules; the two configurations of the fixture take turns. */
#define RELOADED(...) reloaded(f, (const char *const[]){ __VA_ARGS__, NULL })
static void reloaded(struct fixture *f, const char *const *texts)
{
	struct broker_conf *now = f->broker->env.conf == &next ? &f->conf : &next;

	now->access = parse(texts);
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = now } });
}

static void denied(struct fixture *f, uint32_t conn, const char *words, const char *verb, const char *name, const char *rule)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "-DENIED this user may not %s %s: the rule \"%s\" (conf:7) denies that", verb, name,
		 rule);
	fixture_say(f, conn, words, sentence);
}

TEST(a_denial_names_the_rule_and_the_file)
{
	RELOADED("deny * * campaign,observe,revoke,limit");
	denied(f, 0, "CAMPAIGN e DATA x", "campaign for", "e", "deny * * campaign,observe,revoke,limit");
	denied(f, 0, "OBSERVE e", "observe", "e", "deny * * campaign,observe,revoke,limit");
	denied(f, 0, "REVOKE x", "ask for", "x", "deny * * campaign,observe,revoke,limit");
	denied(f, 0, "LIMIT s 2", "change the limit of", "s", "deny * * campaign,observe,revoke,limit");
	RELOADED("allow unit:web.service app/* lock", "deny * * lock,shared", "deny @50 s acquire");
	denied(f, 0, "LOCK app/1", "lock", "app/1", "deny * * lock,shared");
	denied(f, 0, "LOCK x SHARED WAIT 5", "share", "x", "deny * * lock,shared");
	denied(f, 1, "ENQUEUE x", "lock", "x", "deny * * lock,shared");
	fixture_say(f, 1, "LOCK app/1", ":1024");
	denied(f, 2, "ACQUIRE s LIMIT 1", "acquire", "s", "deny @50 s acquire");
	fixture_say(f, 1, "ACQUIRE s LIMIT 1", ":1");
	fixture_say(f, OPERATOR, "LOCK x", ":3072");
}

TEST(a_reload_is_for_those_who_are_connected)
{
	RELOADED("deny 1000 a* lock");
	denied(f, 0, "LOCK a", "lock", "a", "deny 1000 a* lock");
	RELOADED("deny 1001 a* lock");
	fixture_say(f, 0, "LOCK a", ":1024");
	denied(f, 1, "LOCK a", "lock", "a", "deny 1001 a* lock");
}

/* What is held is used as before, and who waits is served. */
TEST(what_is_held_or_waited_for_stays)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_ask(f, 1, "LOCK a WAIT 1000");
	fixture_say(f, 2, "ENQUEUE a", "+QUEUED");
	RELOADED("deny * * lock,shared");
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 0, "RENEW a 1000", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	fixture_say(f, 1, "UNLOCK a", ":0");
	denied(f, 0, "LOCK a", "lock", "a", "deny * * lock,shared");
	fixture_say(f, 2, "UNLOCK a", ":0");
	denied(f, 2, "LOCK a", "lock", "a", "deny * * lock,shared");
}

/* Nobody waits for one name to be told then that it may not have the other. */
TEST(of_several_names_each_is_looked_at_first)
{
	fixture_say(f, 1, "LOCK a", ":1024");
	RELOADED("deny 1000 b lock");
	denied(f, 0, "MLOCK 2 a b WAIT 1000", "lock", "b", "deny 1000 b lock");
	fixture_say(f, 1, "MLOCK 2 a b REENTER", "*2 :1024 :2048");
}

TEST(groups_count_once_they_are_known)
{
	RELOADED("allow @50 * revoke", "deny @60 * lock");
	fixture_say(f, 2, "REVOKE a", ":0");
	fixture_say(f, 2, "LOCK a", ":1024");
	fixture_hand_over(f);
	/* It could be in any group. */
	fixture_say(f, 2, "REVOKE b", "-DENIED only operators may ask for what others hold" DENIED_HOW);
	denied(f, 2, "LOCK b", "lock", "b", "deny @60 * lock");
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_GROUPS, .conn = 2, .groups = { groups, 1, true } });
	fixture_say(f, 2, "REVOKE b", ":0");
	fixture_say(f, 2, "LOCK b", ":2048");
	denied(f, 0, "LOCK b", "lock", "b", "deny @60 * lock"); /* not known yet */
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_GROUPS, .conn = 0, .groups = { groups, 0, true } });
	fixture_say(f, 0, "LOCK c", ":3072");
}

TEST(who_is_of_an_unknown_unit_stays_so)
{
	RELOADED("deny unit:web.service a lock", "allow unit:web.service * revoke");
	begin(f, 4, SLICE(UNIT_UNKNOWN), 0);
	for (int i = 0; i < 2; i++) {
		denied(f, 4, "LOCK a", "lock", "a", "deny unit:web.service a lock");
		fixture_say(f, 4, "REVOKE b", "-DENIED only operators may ask for what others hold" DENIED_HOW);
		fixture_hand_over(f);
	}
}

/* What of root is not known is not charged to anybody else. */
TEST(processes_of_unknown_units_have_one_account)
{
	static const char *const units[] = { UNIT_UNKNOWN, UNIT_UNKNOWN, "", "web.service" };
	struct account *accounts[4];

	for (uint32_t i = 0; i < 4; i++) {
		fixture_connect_as(f, 4 + i, 0, slice_of(units[i]), false);
		accounts[i] = f->broker->locks.conns[4 + i]->account;
	}
	assert_ptr_equal(accounts[0], accounts[1]);
	assert_string_equal(accounts[0]->unit, UNIT_UNKNOWN);
	assert_ptr_not_equal(accounts[1], accounts[2]);
	assert_ptr_not_equal(accounts[1], accounts[3]);
}

/* What one unit of root has is no other unit's: to see, to end, to ask for, or to be in one group with. */
TEST(units_that_are_told_apart_are_others)
{
	struct client **conns = f->broker->locks.conns;
	struct slice text;

	fixture_connect_as(f, 4, 0, SLICE("web.service"), false);
	fixture_connect_as(f, 5, 0, SLICE("web.service"), false);
	fixture_connect_as(f, 6, 0, SLICE("db.service"), false);
	fixture_connect_as(f, 7, 0, SLICE(UNIT_UNKNOWN), false);
	fixture_ask(f, 5, "CLIENT LIST");
	text = bytes_view(&f->replies[5]);
	assert_non_null(memmem(text.data, text.len, " pid=104 ", 9));
	assert_null(memmem(text.data, text.len, " pid=106 ", 9));
	assert_null(memmem(text.data, text.len, " pid=107 ", 9));
	bytes_clear(&f->replies[5]);
	for (uint32_t conn = 4; conn < 8; conn++)
		fixture_say(f, conn, "CLIENT SETINFO OWNER job", "+OK");
	assert_true(group_same(conns[4], conns[5]));
	assert_false(group_same(conns[4], conns[6]) || group_same(conns[4], conns[7]) || group_same(conns[6], conns[7]));
	fixture_say(f, 4, "LOCK a", ":1024");
	fixture_say(f, 4, "REVOKE a", ":1");
	fixture_say(f, 6, "REVOKE a", "-DENIED only operators may ask for what others hold" DENIED_HOW);
	fixture_say(f, 6, "LOCK b", ":2048");
	fixture_say(f, 4, "LOCK b WAIT 1000", "");
	RELOADED("deny * * look");
	fixture_say(f, 6, "CLIENT UNBLOCK 5", "-DENIED only operators may end a wait of another unit" DENIED_HOW);
	fixture_say(f, 6, "LOCK a",
		    "-DEADLOCK this client waits for \"a\" held by a client of another unit, which waits for \"b\" "
		    "held by this client: "
		    "release one of them first");
	fixture_say(f, 5, "CLIENT UNBLOCK 5", ":1");
	fixture_expect(f, 4, "$-1");
	fixture_hand_over(f);
	conns = f->broker->locks.conns;
	assert_true(group_same(conns[4], conns[5]) && !group_same(conns[4], conns[6]));
}

/* Also when it takes the next lock, or begins again, before the groups of its process are known. */
TEST(an_mlock_goes_on_after_a_hand_over)
{
	RELOADED("deny @60 * lock");
	fixture_say(f, 1, "LOCK b", ":1024");
	fixture_say(f, 2, "MLOCK 3 a b c WAIT 10000", "");
	fixture_hand_over(f);
	fixture_say(f, OPERATOR, "FORCEUNLOCK a", ":1");
	fixture_expect(f, 2, "");
	fixture_say(f, 1, "UNLOCK b", ":0");
	fixture_expect(f, 2, "*3 :3072 :1025 :4096");
	denied(f, 2, "LOCK d", "lock", "d", "deny @60 * lock");
}

static void expect_told(struct fixture *f, uint32_t conn, const char *words, bool all)
{
	struct slice text;

	fixture_ask(f, conn, words);
	text = bytes_view(&f->replies[conn]);
	if ((memmem(text.data, text.len, "pid\r\n:101", 9) != NULL) != all ||
	    (memmem(text.data, text.len, "test", 4) != NULL) != all ||
	    (memmem(text.data, text.len, "job", 3) != NULL) != all ||
	    (strncmp(words, "QUEUE", 5) != 0 && (memmem(text.data, text.len, "private", 7) != NULL) != all))
		fail_msg("%s: %.*s", words, (int)text.len, text.data);
	bytes_clear(&f->replies[conn]);
}

/* Nor the name of the connection, in which the lockbroker command says what it runs. */
TEST(who_may_not_look_is_shown_no_process_and_no_data)
{
	static const char *const questions[] = {
		"HOLDERS a",   "WHY a",       "LEADER e",           "HOLDERS e",
		"LOCKS * ALL", "LOCKS a ALL", "LOCKS * ORDER name", "LOCKS a ORDER name",
	};

	RELOADED("deny 1000 * look");
	fixture_say(f, 1, "CLIENT SETNAME job", "+OK");
	fixture_say(f, 1, "LOCK a DATA private", ":1024");
	fixture_say(f, 1, "CAMPAIGN e DATA private", ":2048");
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		for (uint32_t conn = 0; conn <= OPERATOR; conn++)
			expect_told(f, conn, questions[i], conn != 0);
	fixture_say(f, 2, "LOCK q", ":3072");
	fixture_say(f, 1, "ENQUEUE q", "+QUEUED");
	expect_told(f, 0, "QUEUE q", false);
	expect_told(f, 2, "QUEUE q", true);
}

TEST(its_own_is_shown_to_it)
{
	RELOADED("deny * * look");
	fixture_say(f, 1, "CLIENT SETNAME job", "+OK");
	fixture_say(f, 1, "LOCK a DATA private", ":1024");
	expect_told(f, 1, "HOLDERS a", true);
	expect_told(f, 2, "HOLDERS a", false);
}

TEST(an_observer_is_told_the_leader_without_data)
{
	RELOADED("deny 1000 e look", "deny 1002 e observe");
	fixture_resp3(f, 0);
	fixture_say(f, 0, "OBSERVE e", "+OK");
	fixture_expect_push(f, 0, ">5 $6 leader $1 e :0 $0  $0");
	fixture_say(f, 1, "CAMPAIGN e DATA private", ":1024");
	fixture_expect_push(f, 0, ">5 $6 leader $1 e :1024 $5 alpha $0");
	denied(f, 2, "OBSERVE e", "observe", "e", "deny 1002 e observe");
	denied(f, 2, "LEADER e", "observe", "e", "deny 1002 e observe");
}

TEST(a_cycle_does_not_tell_the_process_that_may_not_be_seen)
{
	RELOADED("deny 1000 b look");
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK b", ":2048");
	fixture_ask(f, 1, "LOCK a WAIT 1000");
	fixture_say(f, 0, "LOCK b WAIT 1000",
		    "-DEADLOCK this client waits for \"b\" held by a client of another user, which waits for \"a\" held by this "
		    "client: release one of them first");
}

TEST(asking_holders_is_for_their_user_and_whom_a_rule_allows)
{
	fixture_say(f, 1, "LOCK a", ":1024");
	fixture_say(f, 0, "REVOKE a", "-DENIED only operators may ask for what others hold" DENIED_HOW);
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_say(f, OPERATOR, "REVOKE a", ":1");
	RELOADED("allow 1000 a revoke", "deny 1001 a revoke");
	fixture_say(f, 0, "REVOKE a", ":1");
	fixture_say(f, 1, "REVOKE a", ":1"); /* its own */
	fixture_say(f, 0, "REVOKE b", "-DENIED only operators may ask for what others hold" DENIED_HOW);
}

TEST(audits_are_for_operators)
{
	fixture_say(f, 0, "AUDIT", "-DENIED only operators may have all directories examined" DENIED_HOW);
	RELOADED("allow * * lock,shared,acquire,campaign,observe,look,revoke,limit");
	fixture_say(f, 0, "AUDIT", "-DENIED only operators may have all directories examined" DENIED_HOW);
}

TEST(an_operator_asks_what_applies)
{
	RELOADED("deny unit:web.service a lock", "allow @50 a revoke");
	fixture_say(f, OPERATOR, "ACCESS 5 a GROUPS 49,50 UNIT web.service",
		    "*8 "
		    "*8 $4 verb $4 lock $7 allowed :0 $4 rule $28 deny unit:web.service a lock $5 where $6 conf:7 "
		    "*8 $4 verb $6 shared $7 allowed :1 $4 rule $0  $5 where $0  "
		    "*8 $4 verb $7 acquire $7 allowed :1 $4 rule $0  $5 where $0  "
		    "*8 $4 verb $8 campaign $7 allowed :1 $4 rule $0  $5 where $0  "
		    "*8 $4 verb $7 observe $7 allowed :1 $4 rule $0  $5 where $0  "
		    "*8 $4 verb $4 look $7 allowed :1 $4 rule $0  $5 where $0  "
		    "*8 $4 verb $6 revoke $7 allowed :1 $4 rule $18 allow @50 a revoke $5 where $6 conf:7 "
		    "*8 $4 verb $5 limit $7 allowed :0 $4 rule $0  $5 where $0");
	fixture_say(f, 0, "ACCESS 5 a", "-DENIED only operators may ask what other users may do" DENIED_HOW);
}

/* Whatever was put together before: what the answer shows is what may be looked at when it is given. */
static void expect_rules_of_end(struct fixture *f, const char *words, const char *begin)
{
	int reloads = 0;
	bool shown = false;

	for (int before = 0; !shown; before++) {
		RELOADED("allow * * look");
		fixture_ask(f, 0, words);
		for (int i = 0; i < before && broker_has_work(f->broker); i++)
			fixture_simple(f, EVENT_TIME, 0);
		shown = f->replies[0].len > 0;
		if (!shown) {
			RELOADED("deny * * look");
			reloads++;
		}
		while (broker_has_work(f->broker))
			fixture_simple(f, EVENT_TIME, 0);
		assert_true(memmem(f->replies[0].data, f->replies[0].len, begin, strlen(begin)));
		assert_int_equal(memmem(f->replies[0].data, f->replies[0].len, "secret", 6) != NULL, shown);
		bytes_clear(&f->replies[0]);
	}
	assert_true(reloads > 4);
}

TEST_IN(a_list_in_pieces_goes_by_the_rules_of_its_end, setup_pieces)
{
	fixture_ask(f, 1, "LOCK a DATA secret");
	fixture_ask(f, 1, "LOCK b DATA secret");
	expect_rules_of_end(f, "LOCKS * ALL", "locks\r\n*2\r\n");
	for (int i = 0; i < 200; i++) {
		fixture_ask(f, 1, fixture_words(f, "LOCK c%d DATA secret", i));
	}
	expect_rules_of_end(f, "LOCKS * ORDER name COUNT 150", "*150\r\n");
}
