/* Who has permits, asked across hosts (query_permits.h, crowd.h), and asking for them back (demand.h). */
#include <stdio.h>
#include <string.h>

#include "core/contender.h"
#include "core/query.h"
#include "core_fixture.h"

#define GAMMA INT64_C(0x3000abcdef012345)

static const char data[] = "1\nkind=semaphore\nlimit=3\n";
static const char one[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000001";
static const char two[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-lease-0000000002";
static const char other[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-lease-0000000003";
static const char last[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b14-lease-0000000004";
static const char later[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b16-lease-0000000006";
static const char turn[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b15-lock-0000000001";
static const char of_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\nmode=shared\ntoken=0\nholders=1\n"
			      "since=99000\nwritten=99500\nclient=4\n";
static const char of_gamma[] = "1\nhost=gamma\n";
static const char letter[] = "0000000100000-2000abcdef012345-00000000000000aa";

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	f->conf.uid = 1000;
	f->mail = true;
	return fixture_setup(f, 4, state);
}

static int setup_standalone(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.uid = 1000;
	return fixture_setup(f, 4, state);
}

/* ZooKeeper as it would answer when these leases stand, and our own turn in the mutex. */
struct there {
	char mutex[128], own[4][128];
	size_t own_count, other_count;
	const char *others[4];
	char told[1024]; /* data set last */
};

static void answer_leases(struct fixture *f, const struct there *t)
{
	const char *children[8];
	size_t n = 0;

	for (size_t i = 0; i < t->own_count; i++)
		children[n++] = t->own[i];
	for (size_t i = 0; i < t->other_count; i++)
		children[n++] = t->others[i];
	fixture_answer_list(f, 2, n, children);
}

static void answer_one(struct fixture *f, struct there *t)
{
	const struct fixture_op *op = fixture_oldest(f);
	bool leases = strstr(op->path, "/leases");

	if (op->effect.type == EFFECT_ZK_CREATE && op->effect.create == ZK_EPHEMERAL_SEQUENTIAL && leases)
		fixture_answer_made(f, 5, 80, t->own[t->own_count++], 128);
	else if (op->effect.type == EFFECT_ZK_CREATE && op->effect.create == ZK_EPHEMERAL_SEQUENTIAL)
		fixture_answer_made(f, 5, 70, t->mutex, 128);
	else if (op->effect.type == EFFECT_ZK_LIST && leases)
		answer_leases(f, t);
	else if (op->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, *t->mutex != '\0', (const char *[]){ t->mutex });
	else if (op->effect.type == EFFECT_ZK_GET && strcmp(op->path, "/lb/s") == 0)
		fixture_answer_get(f, 1, 0, data);
	else
		fixture_answer(f, ZK_OK);
}

static void answer_all(struct fixture *f, struct there *t)
{
	while (fixture_is_open(f)) {
		if (fixture_oldest(f)->effect.type == EFFECT_ZK_SET && strstr(fixture_oldest(f)->path, "/leases"))
			snprintf(t->told, sizeof(t->told), "%s", fixture_oldest(f)->data);
		answer_one(f, t);
	}
}

static void pass(struct fixture *f, struct there *t, int ms)
{
	for (int i = 0; i < ms; i += 50) {
		fixture_pass(f, 50);
		answer_all(f, t);
	}
}

/* The reply has that in it. */
static void expect_part(const struct fixture *f, uint32_t conn, const char *part)
{
	const struct bytes *reply = &f->replies[conn];

	if (!reply->len || !memmem(reply->data, reply->len, part, strlen(part)))
		fail_msg("%.*s", (int)reply->len, reply->data);
}

/* ---- who has them ---- */

static void permits_of_other_hosts_are_told_by_client(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "HOLDERS s");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s");
	fixture_answer_list(f, 1, 2, (const char *[]){ "leases", "locks" }); /* so it is a semaphore */
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer_get(f, 1, 0, data);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 4, (const char *[]){ other, last, two, one });
	fixture_answer_get(f, 80, BETA, of_beta);
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_answer_get(f, 82, GAMMA, of_gamma);
	fixture_answer_get(f, 83, GAMMA, of_gamma); /* one more than the limit: it waits for room */
	fixture_expect(f, 0, "*2 *28 $4 host $4 beta $6 client :0 $4 name $2 w1 $3 pid :42 $3 uid :7 $7 command $6 settle "
		    "$4 mode $6 shared $5 depth :2 $5 token :0 $7 held_ms :500 $6 age_ms :500 $5 znode $56 "
		    "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000001 $8 lease_ms $-1 $4 data $0  "
		    "*28 $4 host $5 gamma $6 client :0 $4 name $0  $3 pid :0 $3 uid :0 $7 command $0  "
		    "$4 mode $6 shared $5 depth :1 $5 token :0 $7 held_ms :-1 $6 age_ms :0 $5 znode $56 "
		    "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-lease-0000000003 $8 lease_ms $-1 $4 data $0");
	fixture_no_op(f);
}

static void who_waits_is_told_why_and_where(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 2 COUNT 2", ":2");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", "");
	fixture_pass(f, 7);
	fixture_say(f, 2, "QUEUE s", "*1 *22 $4 host $5 alpha $6 client :2 $4 name $0  $3 pid :101 $3 uid :1000 "
		    "$7 command $4 test $4 mode $9 exclusive $9 waited_ms :7 $8 position :1 $5 znode $0  $5 count :1");
	fixture_ask(f, 2, "WHY s");
	expect_part(f, 2, "of 2 permits 2 held: 2 on this host, pid 100 (test), for 7 ms\r\n");
	expect_part(f, 2, "$8\r\nposition\r\n:0\r\n$7\r\nwaiters\r\n:1\r\n");
}

/* WHY of one that waits behind another host, on the host that it waits on. */
static void why_goes_on_to_the_queue(void **state)
{
	struct fixture *f = *state;
	char mutex[128];

	fixture_ask(f, 0, "LIMIT s");
	fixture_answer_get(f, 1, 0, data);
	fixture_expect(f, 0, ":3");
	fixture_ask(f, 1, "ACQUIRE s LIMIT 3 COUNT 2");
	fixture_answer_get(f, 1, 0, data);
	fixture_answer_made(f, 5, 70, mutex, sizeof(mutex));
	fixture_answer_list(f, 1, 2, (const char *[]){ turn, mutex });
	fixture_answer(f, ZK_OK); /* the one before is watched */
	fixture_ask(f, 2, "WHY s");
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer_get(f, 1, 0, data);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 4, (const char *[]){ one, two, other, last });
	fixture_answer_get(f, 80, BETA, of_beta);
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_answer_get(f, 82, GAMMA, of_gamma);
	fixture_answer_get(f, 83, BETA, of_gamma);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/locks");
	fixture_answer_list(f, 1, 2, (const char *[]){ turn, mutex });
	expect_part(f, 2, "of 3 permits 3 held: 2 by host beta, pid 42 (settle), for 500 ms, as of 500 ms ago; "
			  "1 by host gamma\r\n");
	expect_part(f, 2, "$12\r\nhosts_before\r\n:1\r\n$13\r\nhosts_waiting\r\n:1\r\n");
	fixture_no_op(f);
}

/* The limit was larger: who is told of still has them. */
static void permits_beyond_a_limit_that_was_lowered_are_held(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "REVOKE s");
	fixture_answer_list(f, 1, 2, (const char *[]){ "locks", "leases" });
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=1\n");
	fixture_answer_list(f, 2, 2, (const char *[]){ one, two });
	fixture_answer_get(f, 80, GAMMA, of_gamma);
	fixture_answer_get(f, 81, BETA, of_beta);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->path, "/lb/.mail/gamma/"));
	fixture_answer(f, ZK_OK);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->path, "/lb/.mail/beta/"));
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":2");
}

/* ---- telling it ---- */

static void nothing_is_written_before_somebody_elsewhere_waits(void **state)
{
	struct fixture *f = *state;
	struct there t = { .others = { one, two }, .other_count = 1 };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 2");
	answer_all(f, &t);
	fixture_expect(f, 0, ":2");
	pass(f, &t, 3000);
	assert_string_equal(t.told, "");
	/* One more comes in: more than the limit, and not ours. */
	t.other_count = 2;
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	pass(f, &t, 2000);
	assert_non_null(strstr(t.told, "1\nhost=alpha\npid=100\nuid=1000\ncommand=test\nname=\nmode=shared\ntoken=0\nholders=1\n"
				       "since=100000\nwritten="));
	assert_non_null(strstr(t.told, "\nclient=1\n"));
	t.told[0] = '\0';
	pass(f, &t, 3000);
	assert_string_equal(t.told, ""); /* once is enough */
	fixture_say(f, 0, "RELEASE s", ":1");
	pass(f, &t, 3000);
	assert_string_equal(t.told, "");
}

static void another_holder_is_told_of_in_what_the_first_one_left(void **state)
{
	struct fixture *f = *state;
	struct there t = { .others = { one, two, other }, .other_count = 3 };

	t.other_count = 2;
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	answer_all(f, &t);
	fixture_expect(f, 0, ":1");
	t.other_count = 3;
	pass(f, &t, 2500);
	assert_non_null(strstr(t.told, "\nclient=1\n"));
	t.other_count = 1;
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	pass(f, &t, 2000);
	fixture_ask(f, 1, "ACQUIRE s LIMIT 3");
	answer_all(f, &t);
	fixture_expect(f, 1, ":1");
	fixture_say(f, 0, "RELEASE s", ":0");
	t.told[0] = '\0';
	t.own_count = 1;
	snprintf(t.own[0], sizeof(t.own[0]), "%s", t.own[1]);
	t.other_count = 3;
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	pass(f, &t, 4000);
	assert_non_null(strstr(t.told, "\nclient=2\n"));
}

/* ---- asking for them back ---- */

static void each_host_gets_one_letter(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "REVOKE s maintenance");
	fixture_answer_list(f, 1, 2, (const char *[]){ "locks", "leases" });
	fixture_answer_get(f, 1, 0, data);
	fixture_answer_list(f, 2, 3, (const char *[]){ one, two, other });
	fixture_answer_get(f, 80, BETA, "1\nhost=beta\n");
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_answer_get(f, 82, GAMMA, "10.0.0.7"); /* of other software */
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->path, "/lb/.mail/beta/"));
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "to=2000abcdef012345\nname=s\nznode="));
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, two)); /* the last of its leases */
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
	fixture_no_op(f);
}

/* More than are told of (query.h): none of them may be left out. */
static void hosts_behind_the_permits_of_another_get_theirs(void **state)
{
	enum { LEASES = QUERY_CHILDREN_MAX + 1 };
	static char names[LEASES][80];
	static const char *children[LEASES];
	struct fixture *f = *state;
	int answered = 0;

	for (int i = 0; i < LEASES; i++) {
		snprintf(names[i], sizeof(names[i]), "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-%010d", i);
		children[i] = names[i];
	}
	fixture_ask(f, 0, "REVOKE s maintenance");
	fixture_answer_list(f, 1, 2, (const char *[]){ "locks", "leases" });
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=2000\n");
	fixture_answer_list(f, 2, LEASES, children);
	while (fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_GET) {
		bool is_last = ++answered == LEASES;

		fixture_answer_get(f, 80, is_last ? GAMMA : BETA, is_last ? of_gamma : of_beta);
	}
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->path, "/lb/.mail/beta/"));
	fixture_answer(f, ZK_OK);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->path, "/lb/.mail/gamma/"));
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":2");
}

static void holders_here_are_asked_and_bereft(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3 COUNT 3", "");
	fixture_say(f, 3, "REVOKE s please", ":2");
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 s :0 $6 please");
	fixture_say(f, 3, "FORCEUNLOCK s", ":2");
	assert_true(fixture_logged(f, "lock s taken by force from 2 holders"));
	fixture_expect(f, 2, ":3");
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 s :0 $6 forced");
	fixture_say(f, 1, "RELEASE s", "-LOST the permits were lost before they were released");
	f->conf.uid = 1;
	fixture_say(f, 3, "FORCEUNLOCK s", "-DENIED locks are taken by force by root and the daemon's own user only");
}

static void all_permits_of_a_silent_host_are_deleted(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "FORCEUNLOCK s");
	fixture_answer_list(f, 1, 2, (const char *[]){ "locks", "leases" });
	fixture_answer_get(f, 1, 0, data);
	fixture_answer_list(f, 2, 2, (const char *[]){ one, two });
	fixture_answer_get(f, 80, BETA, of_beta);
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_op(f, EFFECT_ZK_CREATE, "");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, "");
	for (int i = 0; i < 21 && !(fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_DELETE); i++) {
		while (fixture_is_open(f))
			fixture_answer(f, ZK_OK);
		fixture_pass(f, 100);
	}
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_DELETE, "")->path, "/lb/.mail/beta/"));
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, one);
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, "");
	fixture_op(f, EFFECT_ZK_DELETE, two);
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, ":1");
}

static void receive(struct fixture *f, const char *text)
{
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 1, (const char *[]){ letter });
	fixture_op(f, EFFECT_ZK_GET, letter);
	fixture_answer_get(f, 80, BETA, text);
	fixture_op(f, EFFECT_ZK_DELETE, letter);
	fixture_answer(f, ZK_OK);
}

static void receive_about(struct fixture *f, const char *kind, const char *session, const char *lease)
{
	char text[512];

	snprintf(text, sizeof(text), "1\nkind=%s\nfrom=beta\nto=%s\nname=s\nznode=%s\nreason=please\nuid=0\npid=1\n"
		 "command=a\nclient=\n", kind, session, lease);
	receive(f, text);
}

/* It names the last lease that was seen: permits are alike. */
static void another_host_asks_for_permits_and_takes_them(void **state)
{
	struct fixture *f = *state;
	struct there t = { 0 };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 2");
	answer_all(f, &t);
	fixture_expect(f, 0, ":2");
	receive_about(f, "revoke", "1000abcdef012345", later);
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 s :0 $6 please");
	receive_about(f, "force", "2000abcdef012345", later);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=-1\n")); /* of an earlier session */
	fixture_answer(f, ZK_OK);
	receive_about(f, "force", "1000abcdef012345", later);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=1\n"));
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, t.own[0]);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, t.own[1]);
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 s :0 $6 forced");
}

/* Those that were seen have gone back by now; who has some since is not meant. */
static void a_late_letter_takes_no_permits_of_others(void **state)
{
	struct fixture *f = *state;
	struct there t = { 0 };

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 2");
	answer_all(f, &t);
	fixture_expect(f, 0, ":2");
	receive_about(f, "revoke", "1000abcdef012345", last);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	receive_about(f, "force", "1000abcdef012345", last);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=0\n"));
	fixture_answer(f, ZK_OK);
	receive_about(f, "force", "1000abcdef012345", "nonsense");
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=0\n"));
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "RELEASE s", ":1");
}

/* ---- what else ---- */

/* Its owner's other connection is only before the holder in line for permits: it need not let go of anything. */
static void who_is_before_it_in_line_for_permits_closes_no_circle(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 1, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 3, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 2, "LOCK l", ":2048");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", "");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3", "");
	fixture_say(f, 0, "LOCK l", "");
	fixture_say(f, 3, "RELEASE s COUNT 2", ":0");
	fixture_expect(f, 1, ":2");
	fixture_expect(f, 2, ":1");
	fixture_say(f, 2, "UNLOCK l", ":0");
	fixture_expect(f, 0, ":2049");
}

/* Of whoever has permits enough to let it go on, all wait for it. */
static void a_circle_through_permits_is_refused(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "LOCK l", ":1024");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "LOCK l", "");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ""); /* client 2 can give one back */
	fixture_say(f, 2, "LOCK l", "-DEADLOCK this client waits for l behind test (pid 101), which waits for l held by "
		    "test (pid 100), which waits for s held by this client: let go first");
	fixture_say(f, 2, "LOCK l WAIT 0", "$-1");
	fixture_say(f, 2, "RELEASE s", ":0");
	fixture_expect(f, 0, ":1");
	fixture_say(f, 0, "UNLOCK l", ":0");
	fixture_expect(f, 1, ":1025");
}

static void an_acquire_may_be_what_closes_it(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "LOCK l", ":1024");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 1, "LOCK l", "");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", ":1"); /* there is room */
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 WAIT 0", "$-1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-DEADLOCK this client waits for s held by test (pid 101), which waits for l "
		    "held by this client: let go first");
	fixture_say(f, 0, "UNLOCK l", ":0");
	fixture_expect(f, 1, ":1025");
}

static void who_waits_for_many_keeps_those_behind_it(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "LOCK l", ":1024");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3 COUNT 3", ""); /* for those of client 1, which is first to wait for l */
	fixture_say(f, 1, "LOCK l", "");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-DEADLOCK this client waits for s held by test (pid 101), which waits for l "
		    "held by this client: let go first");
	f->conf.deadlock_detection = false;
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "");
}

static void two_who_want_more_of_the_same_are_told(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 2", "");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", "-DEADLOCK this client waits for s behind test (pid 100), which waits "
		    "for s held by this client: let go first");
	fixture_say(f, 1, "RELEASE s", ":0");
	fixture_expect(f, 0, ":3");
}

/* What the first gets it keeps until the other has what it wants. */
static void two_of_one_owner_want_too_many_together(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 1, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 2, "ACQUIRE s LIMIT 5 COUNT 5", ":5");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 COUNT 3", "");
	fixture_say(f, 1, "ACQUIRE s LIMIT 5 COUNT 3", "-DEADLOCK this client waits for s behind test (pid 100), which is one "
		    "owner with this client: let go first");
	fixture_say(f, 1, "ACQUIRE s LIMIT 5 COUNT 2", "");
	fixture_say(f, 2, "RELEASE s COUNT 5", ":0");
	fixture_expect(f, 0, ":3");
	fixture_expect(f, 1, ":2");
}

/* Permits that are being given back make room for those that are asked for next. */
static void znodes_that_leave_make_room_for_permits(void **state)
{
	struct fixture *f = *state;
	struct there t = { 0 };

	f->conf.linger_ns = 1000 * MS;
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 3");
	answer_all(f, &t);
	fixture_expect(f, 0, ":3");
	f->conf.limits.session_path_bytes = 5 * (sizeof("/lb/s/leases") + CONTENDER_NAME_MAX);
	fixture_say(f, 0, "RELEASE s COUNT 3", ":0");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 3", "");
	t.own_count = 0;
	answer_all(f, &t);
	fixture_expect(f, 0, ":3");
	f->conf.limits.session_path_bytes = 3 * (sizeof("/lb/s/leases") + CONTENDER_NAME_MAX);
	fixture_ask(f, 1, "ACQUIRE s LIMIT 3");
	answer_all(f, &t);
	fixture_expect(f, 1, "-LIMIT this host's session has as many znodes as ZooKeeper can take");
}

/* More than may be under way at a time (operation.c): each place that comes free is for one of them, not for a list. */
static void many_permits_are_made_and_listed_once(void **state)
{
	enum { MANY = 400 };
	static char mutex[128], names[MANY][128];
	static const char *children[MANY];
	struct fixture *f = *state;
	int made = 0, lists = 0;

	f->conf.limits.session_path_bytes = 100000;
	fixture_ask(f, 0, "ACQUIRE s LIMIT 500 COUNT 400");
	for (int i = 0; i < 4 * MANY && fixture_is_open(f); i++) {
		const struct fixture_op *op = fixture_oldest(f);
		bool leases = strstr(op->path, "/leases");

		if (leases && op->effect.type == EFFECT_ZK_CREATE) {
			children[made] = names[made];
			fixture_answer_made(f, (uint32_t)made, 80 + made, names[made], sizeof(names[made]));
			made++;
		} else if (leases && op->effect.type == EFFECT_ZK_LIST) {
			lists++;
			fixture_answer_list(f, 2, (size_t)made, children);
		} else if (op->effect.type == EFFECT_ZK_CREATE) {
			fixture_answer_made(f, 5, 70, mutex, sizeof(mutex));
		} else if (op->effect.type == EFFECT_ZK_LIST) {
			fixture_answer_list(f, 1, 1, (const char *[]){ mutex });
		} else if (op->effect.type == EFFECT_ZK_GET) {
			fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=500\n");
		} else {
			fixture_answer(f, ZK_OK);
		}
	}
	fixture_expect(f, 0, ":400");
	assert_int_equal(made, MANY);
	assert_int_equal(lists, 1);
}

static void permits_that_are_too_many_for_the_session_are_not_begun_with(void **state)
{
	struct fixture *f = *state;
	struct there t = { 0 };

	f->conf.limits.session_path_bytes = 3 * (sizeof("/lb/s/leases") + CONTENDER_NAME_MAX);
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3 COUNT 3");
	while (fixture_is_open(f)) {
		if (strstr(fixture_oldest(f)->path, "/leases"))
			assert_int_not_equal(fixture_oldest(f)->effect.type, EFFECT_ZK_CREATE);
		answer_one(f, &t);
	}
	fixture_expect(f, 0, "-LIMIT this host's session has as many znodes as ZooKeeper can take");
}

/* Its queue's numbers run out: the directory is made anew once it is empty, and not joined again and again. */
static void a_queue_near_the_end_of_its_numbers_is_made_anew(void **state)
{
	struct fixture *f = *state;
	char mutex[128];

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, data);
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
	fixture_answer_made(f, INT32_MAX - 5, 70, mutex, sizeof(mutex));
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/locks");
	fixture_answer_list(f, 9, 1, (const char *[]){ mutex });
	fixture_op(f, EFFECT_ZK_DELETE, mutex);
	fixture_answer(f, ZK_OK);
	for (int i = 0; i < 3 && fixture_oldest(f)->effect.type == EFFECT_ZK_LIST; i++)
		fixture_answer_list(f, 9, 0, NULL);
	fixture_op(f, EFFECT_ZK_DELETE, "/lb/s/locks");
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
	fixture_answer_made(f, 0, 71, mutex, sizeof(mutex));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(permits_of_other_hosts_are_told_by_client),
		ALONE(who_waits_is_told_why_and_where),
		TEST(why_goes_on_to_the_queue),
		TEST(permits_beyond_a_limit_that_was_lowered_are_held),
		TEST(nothing_is_written_before_somebody_elsewhere_waits),
		TEST(another_holder_is_told_of_in_what_the_first_one_left),
		TEST(each_host_gets_one_letter),
		TEST(hosts_behind_the_permits_of_another_get_theirs),
		ALONE(holders_here_are_asked_and_bereft),
		TEST(all_permits_of_a_silent_host_are_deleted),
		TEST(another_host_asks_for_permits_and_takes_them),
		TEST(a_late_letter_takes_no_permits_of_others),
		ALONE(who_is_before_it_in_line_for_permits_closes_no_circle),
		ALONE(a_circle_through_permits_is_refused),
		ALONE(an_acquire_may_be_what_closes_it),
		ALONE(who_waits_for_many_keeps_those_behind_it),
		ALONE(two_who_want_more_of_the_same_are_told),
		ALONE(two_of_one_owner_want_too_many_together),
		TEST(znodes_that_leave_make_room_for_permits),
		TEST(many_permits_are_made_and_listed_once),
		TEST(permits_that_are_too_many_for_the_session_are_not_begun_with),
		TEST(a_queue_near_the_end_of_its_numbers_is_made_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
