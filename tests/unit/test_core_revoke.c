/* REVOKE and FORCEUNLOCK (demand.h, revoke.h), and the mail they travel by (mail.h, letter.h). */
#include <stdio.h>
#include <string.h>

#include "core/letter.h"
#include "core/mail.h"
#include "core_fixture.h"

static const char elsewhere[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
static const char reader[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__READ__0000000001";
static const char other_reader[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b14-__READ__0000000002";
static const char letter[] = "0000001000000-2000abcdef012345-00000000000000aa";
static const char younger[] = "0000001000001-2000abcdef012345-00000000000000ab";

/* Operators are those of the user that the fixture's clients are of. */
static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 1000;
	f->conf.uid = 1000;
	f->mail = true;
	return fixture_setup(f, 4, state);
}

static int setup_standalone(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.uid = 1000;
	return fixture_setup(f, 2, state);
}

/* HOLDERS' way to who holds it. */
static void held_by(struct fixture *f, const char *child, const char *data)
{
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, &child);
	fixture_op(f, EFFECT_ZK_GET, child);
	fixture_answer_get(f, 70, BETA, data);
}

static void held_by_beta(struct fixture *f)
{
	held_by(f, elsewhere, "1\nhost=beta\n");
}

/* The box's watch fires: one letter is in it, which is read and deleted. */
static void receive(struct fixture *f, const char *name, const char *data, enum zk_code deleted)
{
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 1, &name);
	fixture_op(f, EFFECT_ZK_GET, name);
	fixture_answer_get(f, 80, BETA, data);
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, deleted);
}

static void receive_answer(struct fixture *f, const char *id, int holders)
{
	char data[256];

	snprintf(data, sizeof(data), "1\nkind=answer\nfrom=beta\nre=%s\nholders=%d\n", id, holders);
	receive(f, letter, data, ZK_OK);
}

static const char *last_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* ---- asking ---- */

static void a_holder_here_is_asked(void **state)
{
	struct fixture *f = *state;
	char name[128];

	fixture_held(f, name);
	fixture_say(f, 1, "REVOKE a maintenance", ":1");
	fixture_no_op(f);
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 a :78848 $11 maintenance");
	/* Whoever asks again and again fills nobody's buffers. */
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	fixture_pass(f, 1000);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_pass(f, 1000);
	fixture_say(f, 1, "REVOKE a again", ":1");
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 a :78848 $5 again");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

static void a_revocation_nobody_has_read_ends_with_its_grant(void **state)
{
	struct fixture *f = *state;
	char name[128];

	fixture_held(f, name);
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

static void a_client_may_be_asked_for_all_it_holds(void **state)
{
	struct fixture *f = *state;
	char words[32], name[128];

	f->conf.limits.events_per_client = 1;
	for (int i = 0; i < 3; i++) {
		snprintf(words, sizeof(words), "l%d", i);
		fixture_lock_held(f, 0, words, 5, 77, name, sizeof(name));
	}
	for (int i = 0; i < 3; i++) {
		snprintf(words, sizeof(words), "REVOKE l%d", i);
		fixture_say(f, 1, words, ":1");
	}
	assert_int_equal(f->closed[0], 0);
}

static void reasons_are_short_and_printable(void **state)
{
	struct fixture *f = *state;
	char words[160] = "REVOKE a ";

	memset(words + 9, 'x', 128);
	fixture_ask(f, 0, words);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect(f, 0, ":0");
	words[9 + 128] = 'x';
	fixture_say(f, 0, words, "-ERR a reason is 1..128 bytes of UTF-8 without control characters");
	fixture_say(f, 0, "REVOKE a x\ty", "-ERR a reason is 1..128 bytes of UTF-8 without control characters");
	fixture_say(f, 0, "REVOKE a \xff", "-ERR a reason is 1..128 bytes of UTF-8 without control characters");
	fixture_say(f, 0, "REVOKE ..",
		    "-BADNAME a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..");
}

static void a_holder_elsewhere_is_asked_by_letter(void **state)
{
	struct fixture *f = *state;
	const struct fixture_op *op;
	char id[128];

	fixture_ask(f, 0, "REVOKE a maintenance");
	held_by_beta(f);
	op = fixture_op(f, EFFECT_ZK_CREATE, "");
	assert_int_equal(op->effect.create, ZK_EPHEMERAL);
	assert_true(strncmp(op->path, "/lb/.mail/beta/0000001000000-1000abcdef012345-", 46) == 0);
	assert_string_equal(op->data, "1\nkind=revoke\nfrom=alpha\nto=2000abcdef012345\nname=a\nznode="
				      "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003\nreason=maintenance\n"
				      "uid=1000\npid=100\ncommand=test\nclient=\n");
	snprintf(id, sizeof(id), "%s", last_of(op->path));
	fixture_expect(f, 0, "");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
	/* A host that has not read it by now has lost its session. */
	for (int i = 0; i < 11; i++) {
		fixture_pass(f, 1000);
		fixture_answer_beats(f);
		fixture_no_op(f);
	}
	fixture_pass(f, 1000);
	fixture_op(f, EFFECT_ZK_DELETE, id);
	fixture_answer(f, ZK_NONODE);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
}

static void all_readers_are_asked(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "REVOKE a");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 3, (const char *[]){ elsewhere, reader, other_reader });
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	fixture_answer_get(f, 71, BETA + 1, "1\nhost=gamma\n");
	fixture_op(f, EFFECT_ZK_CREATE, ""); /* the writer that waits is not read at all */
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, "");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":2");
}

static void nobody_holds_it(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "REVOKE a");
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, ":0");
	fixture_ask(f, 0, "FORCEUNLOCK a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect(f, 0, ":0");
	fixture_ask(f, 0, "FORCEUNLOCK a");
	fixture_answer_list(f, 1, 1, (const char *[]){ elsewhere });
	fixture_answer(f, ZK_NONODE); /* it left meanwhile */
	fixture_expect(f, 0, ":0");
	fixture_no_op(f);
}

static void other_software_cannot_be_asked(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "REVOKE a");
	held_by(f, elsewhere, "10.0.0.1");
	fixture_expect(f, 0, "-ERR it is held by other software, which cannot be asked");
	fixture_ask(f, 0, "REVOKE a");
	held_by(f, elsewhere, "1\nhost=../x\n");
	fixture_expect(f, 0, "-ERR it is held by other software, which cannot be asked");
	fixture_no_op(f);
}

/* Pushes that nobody reads fill the connection's buffer, and a full one closes it: whoever revokes must not do that. */
static void a_holder_that_asks_nothing_is_pushed_a_bounded_number(void **state)
{
	struct fixture *f = *state;
	char revoke[] = "REVOKE a 0";

	f->conf.limits.events_per_client = 3;
	fixture_resp3(f, 0);
	fixture_say(f, 0, "LOCK a", ":1024");
	for (int i = 0; i < 5; i++) {
		revoke[sizeof(revoke) - 2] = (char)('1' + i);
		fixture_say(f, 1, revoke, ":1");
		fixture_pass(f, 1000);
	}
	fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $1 1 >4 $6 revoke $1 a :1024 $1 2 >4 $6 revoke $1 a :1024 $1 3");
	fixture_say(f, 0, "PING", "+PONG");
	fixture_say(f, 1, "REVOKE a 6", ":1");
	fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $1 6");
}

static void what_cannot_be_asked_now_is_unavailable(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "REVOKE a");
	held_by_beta(f);
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, "-UNAVAILABLE the holder's host takes no mail");
	fixture_ask(f, 0, "REVOKE a");
	fixture_ask(f, 1, "FORCEUNLOCK a");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper cannot be asked who holds it");
	fixture_expect(f, 1, "-UNAVAILABLE ZooKeeper cannot be asked who holds it");
	fixture_say(f, 0, "REVOKE a", "-UNAVAILABLE ZooKeeper cannot be asked who holds it");
}

static void letters_under_way_are_bounded(void **state)
{
	struct fixture *f = *state;

	f->conf.limits.session_path_bytes = 1000000;
	for (int i = 0; i < LETTER_REVOKES_MAX; i++) {
		fixture_ask(f, 0, "REVOKE a");
		held_by_beta(f);
		fixture_answer(f, ZK_OK);
		fixture_expect(f, 0, ":1");
	}
	fixture_ask(f, 0, "REVOKE a");
	held_by_beta(f);
	fixture_expect(f, 0, "-LIMIT as many letters to other hosts as may are under way; try again in a few seconds");
	/* An operator's goes out all the same. */
	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by_beta(f);
	fixture_op(f, EFFECT_ZK_CREATE, "");
	f->conf.limits.session_path_bytes = 10;
	fixture_ask(f, 1, "FORCEUNLOCK a");
	fixture_answer(f, ZK_OK);
	held_by_beta(f);
	fixture_expect(f, 1, "-LIMIT as many letters to other hosts as may are under way; try again in a few seconds");
}

/* ---- taking ---- */

static void only_operators_take_by_force(void **state)
{
	struct fixture *f = *state;

	f->conf.uid = 1001;
	fixture_say(f, 0, "FORCEUNLOCK a", "-DENIED locks are taken by force by root and the daemon's own user only");
	fixture_no_op(f);
}

static void a_holder_here_is_told_before_the_next_is_granted(void **state)
{
	struct fixture *f = *state;
	char name[128];

	fixture_resp3(f, 1);
	fixture_held(f, name);
	fixture_ask(f, 1, "LOCK a");
	fixture_ask(f, 2, "LOCK a");
	fixture_say(f, 3, "FORCEUNLOCK a", ":1");
	fixture_expect(f, 1, ":78849");
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 a :78848 $6 forced");
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold that lock");
	fixture_say(f, 3, "FORCEUNLOCK a", ":1");
	fixture_expect_push(f, 1, ">4 $4 lost $1 a :78849 $6 forced");
	fixture_expect(f, 2, ":78850");
	fixture_say(f, 1, "UNLOCK a", "-LOST the grant was lost before it was released");
	fixture_say(f, 2, "UNLOCK a", ":0");
}

static void a_standalone_daemon_has_holders_here_only(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "REVOKE a", ":0");
	fixture_say(f, 0, "FORCEUNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_say(f, 1, "FORCEUNLOCK a", ":1");
	fixture_say(f, 1, "LOCK a", ":2048");
	fixture_say(f, 0, "LOCK a", "-LOST an earlier grant of this lock was lost; ask again");
}

/* Asks beta to let go of a; leaves the letter's id. */
static void force_beta(struct fixture *f, char id[128])
{
	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by_beta(f);
	snprintf(id, 128, "%s", last_of(fixture_op(f, EFFECT_ZK_CREATE, "")->path));
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, id)->data, "kind=force\n"));
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, "");
}

static void the_host_that_holds_it_answers(void **state)
{
	struct fixture *f = *state;
	char id[128];

	force_beta(f, id);
	receive_answer(f, "0000001000000-1000abcdef012345-0000000000000000", 4);
	fixture_expect(f, 0, "");
	receive_answer(f, id, 2);
	fixture_expect(f, 0, ":2");
	/* Nothing is left to be withdrawn, and the znode is nobody's business. */
	fixture_pass(f, 1400);
	fixture_no_op(f);
	receive_answer(f, id, 2);
	fixture_expect(f, 0, "");
}

static void two_seconds(struct fixture *f)
{
	fixture_pass(f, 1400);
	fixture_no_op(f);
	fixture_pass(f, 600);
	fixture_answer_beats(f);
}

static void the_znode_of_a_host_that_is_silent_is_deleted(void **state)
{
	struct fixture *f = *state;
	char id[128];

	force_beta(f, id);
	two_seconds(f);
	fixture_op(f, EFFECT_ZK_DELETE, id);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, elsewhere);
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
}

static void a_host_that_has_read_the_letter_gets_more_time(void **state)
{
	struct fixture *f = *state;
	char id[128];

	force_beta(f, id);
	two_seconds(f);
	fixture_op(f, EFFECT_ZK_DELETE, id);
	fixture_answer(f, ZK_NONODE);
	fixture_no_op(f);
	receive_answer(f, id, 1);
	fixture_expect(f, 0, ":1");
	force_beta(f, id);
	two_seconds(f);
	fixture_answer(f, ZK_NONODE);
	two_seconds(f);
	fixture_op(f, EFFECT_ZK_DELETE, elsewhere);
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, ":0");
}

static void a_host_with_a_new_session_has_nothing_to_say(void **state)
{
	struct fixture *f = *state;
	char id[128];

	force_beta(f, id);
	receive_answer(f, id, -1);
	fixture_op(f, EFFECT_ZK_DELETE, elsewhere);
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
}

static void the_znode_of_other_software_is_deleted_at_once(void **state)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by(f, elsewhere, "10.0.0.1");
	fixture_op(f, EFFECT_ZK_DELETE, elsewhere);
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to delete the holder's znode");
}

static void who_hangs_up_takes_nothing_by_force(void **state)
{
	struct fixture *f = *state;
	char id[128];

	force_beta(f, id);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_op(f, EFFECT_ZK_DELETE, id);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

static void a_letter_of_unknown_outcome_is_deleted(void **state)
{
	struct fixture *f = *state;
	char id[128];

	fixture_ask(f, 0, "REVOKE a");
	held_by_beta(f);
	snprintf(id, 128, "%s", last_of(fixture_op(f, EFFECT_ZK_CREATE, "")->path));
	fixture_ask(f, 1, "FORCEUNLOCK b");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/b");
	fixture_answer_list(f, 1, 1, (const char *[]){ elsewhere });
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	snprintf(id, 128, "%s", last_of(fixture_op(f, EFFECT_ZK_CREATE, "")->path));
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 1, "-UNAVAILABLE the holder's host could not be asked");
	fixture_reconnected(f);
	fixture_op(f, EFFECT_ZK_LIST, "/.mail/alpha");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_op(f, EFFECT_ZK_DELETE, id);
	fixture_answer(f, ZK_REFUSED);
	fixture_no_op(f);
	fixture_pass(f, 1000);
	fixture_op(f, EFFECT_ZK_DELETE, id);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_zk_connected(f, SESSION + 1);
	fixture_answer_session(f);
	fixture_no_op(f); /* it went with its session */
}

static void a_connection_lost_ends_a_demand(void **state)
{
	struct fixture *f = *state;
	char id[128];

	force_beta(f, id);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0,
		       "-UNAVAILABLE the connection to ZooKeeper was lost; what was asked for may be done or not");
	fixture_zk_connected(f, SESSION);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_LIST, "/.mail/alpha");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_op(f, EFFECT_ZK_DELETE, id);
}

/* ---- being asked ---- */

static void hold(struct fixture *f, char name[128])
{
	fixture_held(f, name);
}

static const char *revoke_letter(const char *znode, const char *to)
{
	static char data[512];

	snprintf(data, sizeof(data),
		 "1\nkind=revoke\nfrom=beta\nfuture=x\nto=%s\nname=a\nznode=%s\nreason=please go\nuid=0\n"
		 "pid=7\ncommand=sh\nclient=\n",
		 to, znode);
	return data;
}

static const char *force_letter(const char *znode, const char *to)
{
	static char data[512];

	snprintf(data, sizeof(data),
		 "1\nkind=force\nfrom=beta\nto=%s\nname=a\nznode=%s\nuid=0\npid=7\ncommand=sh\nclient=\n", to, znode);
	return data;
}

static void a_letter_is_acted_upon_by_who_deleted_it(void **state)
{
	struct fixture *f = *state;
	char name[128];

	hold(f, name);
	receive(f, letter, revoke_letter(name, "1000abcdef012345"), ZK_NONODE);
	receive(f, letter, revoke_letter(name, "1000abcdef012345"), ZK_REFUSED);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	receive(f, letter, revoke_letter(name, "1000abcdef012345"), ZK_OK);
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $6 revoke $1 a :78848 $9 please go");
	fixture_no_op(f); /* nobody is told */
}

static void letters_that_mean_nothing_here_are_dropped(void **state)
{
	struct fixture *f = *state;
	char name[128], big[MAIL_BYTES_MAX + 64];
	const char *const garbage[] = {
		"",
		"x",
		"1\n",
		"1\nkind=\n",
		"1\nkind=dance\n",
		"1\nkind=revoke\n",
		"2\nkind=force\n",
		"1\nkind=answer\n",
		"1\nkind=answer\nholders=1\n",
		"1\nkind=answer\nre=\nholders=9223372036854775808\n",
		"1\nkind=force\nfrom=../../x\nto=1000abcdef012345\n",
		"1\nkind=force\nfrom=\n",
		"1\nkind=revoke\nfrom=beta\nto=1000abcdef012345\nname=..\nreason=x\n",
		"1\nkind=revoke\nfrom=beta\nto=1000abcdef012345\nname=a\nreason=\n",
		big,
	};

	hold(f, name);
	memset(big, 'x', sizeof(big) - 1);
	memcpy(big, "1\nkind=revoke\nto=1000abcdef012345\nname=a\nreason=x\nznode=", 56);
	big[sizeof(big) - 1] = '\0';
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		receive(f, letter, garbage[i], ZK_OK);
		fixture_no_op(f);
	}
	receive(f, letter, revoke_letter(name, "1000abcdef012346"), ZK_OK);
	receive(f, letter, revoke_letter(elsewhere, "1000abcdef012345"), ZK_OK);
	fixture_no_op(f);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

static void a_lock_is_taken_for_another_host(void **state)
{
	struct fixture *f = *state;
	const struct fixture_op *op;
	char name[128];

	hold(f, name);
	fixture_ask(f, 1, "LOCK a");
	receive(f, letter, force_letter(name, "1000abcdef012345"), ZK_OK);
	fixture_expect(f, 1, ":78849");
	op = fixture_op(f, EFFECT_ZK_CREATE, "");
	assert_true(strncmp(op->path, "/lb/.mail/beta/", 15) == 0);
	assert_string_equal(op->data, "1\nkind=answer\nfrom=alpha\nre=0000001000000-2000abcdef012345-00000000000000aa\n"
				      "holders=1\n");
	fixture_answer(f, ZK_NONODE); /* who asked has gone */
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $4 lost $1 a :78848 $6 forced");
}

/* What others see of it is the znode that it took over from: the same lock. */
static void a_lock_is_taken_by_the_znode_that_keeps_others_out(void **state)
{
	struct fixture *f = *state;
	char name[128], next[128];

	hold(f, name);
	for (int i = 0; i < 1024; i++) {
		fixture_ask(f, !(i & 1), "LOCK a");
		fixture_ask(f, i & 1, "UNLOCK a");
		if (i == 0)
			fixture_answer_list(f, 1, 1, (const char *[]){ name });
		if (i != 767)
			continue;
		fixture_answer_made(f, 9, 99, next, sizeof(next));
		fixture_answer_list(f, 1, 2, (const char *[]){ name, next });
	}
	fixture_no_op(f);
	bytes_clear(&f->replies[0]);
	receive(f, letter, force_letter(name, "1000abcdef012345"), ZK_OK);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=1\n"));
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "VALID a", ":0");
}

static void what_is_not_held_here_is_not_taken(void **state)
{
	struct fixture *f = *state;
	char name[128];

	hold(f, name);
	receive(f, letter, force_letter(elsewhere, "1000abcdef012345"), ZK_OK);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=0\n"));
	fixture_answer(f, ZK_OK);
	receive(f, letter, force_letter(name, "1000abcdef012346"), ZK_OK);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=-1\n"));
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

static void many_letters_are_read_a_few_at_a_time_the_oldest_first(void **state)
{
	struct fixture *f = *state;
	static char names[1000][64];
	static const char *children[1000];
	int seen = 0;

	for (int i = 0; i < 1000; i++) {
		snprintf(names[i], sizeof(names[i]), "%013d-x", 999 - i);
		children[i] = names[i];
	}
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 1000, children);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	for (; seen < 1000; seen++) {
		assert_true(f->end_op - f->first_op <= 2 * MAIL_READS_MAX);
		fixture_op(f, EFFECT_ZK_GET, names[999 - seen]);
		fixture_answer_get(f, 80, BETA, "x");
		fixture_op(f, EFFECT_ZK_DELETE, names[999 - seen]);
		fixture_answer(f, seen % 2 ? ZK_OK : ZK_NOTEMPTY);
	}
	/* The watch fired meanwhile. What cannot be deleted is not looked at again before it fires again. */
	fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 1, (const char *[]){ younger });
	fixture_answer_get(f, 80, BETA, "x");
	fixture_answer(f, ZK_NOTEMPTY);
	fixture_no_op(f);
}

static void the_box_is_made_when_it_is_missing(void **state)
{
	struct fixture *f = *state;

	fixture_watch(f, ZK_WATCH_DELETED, "/lb/.mail/alpha");
	for (int i = 0; i < 3; i++) {
		fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha");
		fixture_answer(f, ZK_NONODE);
		fixture_op(f, EFFECT_ZK_CREATE, "/lb");
		fixture_answer(f, ZK_NODEEXISTS);
		fixture_op(f, EFFECT_ZK_CREATE, "/lb/.mail");
		fixture_answer(f, ZK_OK);
		assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/.mail/alpha")->effect.create, ZK_PERSISTENT);
		fixture_answer(f, ZK_OK);
	}
	/* Something deletes it as fast as it is made. */
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha")->effect.watch);
	fixture_answer(f, ZK_NONODE);
	fixture_pass(f, 1000);
	fixture_no_op(f);
	for (int i = 0; i < 29; i++) {
		fixture_pass(f, 1000);
		fixture_answer_beats(f);
	}
	fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 0, NULL);
}

static void a_lost_connection_starts_the_box_anew(void **state)
{
	struct fixture *f = *state;
	char name[128];

	hold(f, name);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 2, (const char *[]){ younger, letter });
	fixture_answer_get(f, 80, BETA, revoke_letter(name, "1000abcdef012345"));
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_say(f, 0, "EVENTS WAIT 0", "*2 $8 jeopardy :8000");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	fixture_zk_connected(f, SESSION);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_LIST, "/.mail/alpha");
	fixture_answer_list(f, 1, 1, (const char *[]){ letter });
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_answer_get(f, 80, BETA, revoke_letter(name, "1000abcdef012345"));
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "EVENTS WAIT 0", "*1 $4 safe");
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $6 revoke $1 a :78848 $9 please go");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_holder_here_is_asked),
		TEST(a_revocation_nobody_has_read_ends_with_its_grant),
		TEST(a_client_may_be_asked_for_all_it_holds),
		TEST(reasons_are_short_and_printable),
		TEST(a_holder_elsewhere_is_asked_by_letter),
		TEST(all_readers_are_asked),
		TEST(nobody_holds_it),
		TEST(other_software_cannot_be_asked),
		TEST(what_cannot_be_asked_now_is_unavailable),
		TEST(letters_under_way_are_bounded),
		TEST(only_operators_take_by_force),
		TEST(a_holder_here_is_told_before_the_next_is_granted),
		ALONE(a_standalone_daemon_has_holders_here_only),
		ALONE(a_holder_that_asks_nothing_is_pushed_a_bounded_number),
		TEST(the_host_that_holds_it_answers),
		TEST(the_znode_of_a_host_that_is_silent_is_deleted),
		TEST(a_host_that_has_read_the_letter_gets_more_time),
		TEST(a_host_with_a_new_session_has_nothing_to_say),
		TEST(the_znode_of_other_software_is_deleted_at_once),
		TEST(who_hangs_up_takes_nothing_by_force),
		TEST(a_letter_of_unknown_outcome_is_deleted),
		TEST(a_connection_lost_ends_a_demand),
		TEST(a_letter_is_acted_upon_by_who_deleted_it),
		TEST(letters_that_mean_nothing_here_are_dropped),
		TEST(a_lock_is_taken_for_another_host),
		TEST(a_lock_is_taken_by_the_znode_that_keeps_others_out),
		TEST(what_is_not_held_here_is_not_taken),
		TEST(many_letters_are_read_a_few_at_a_time_the_oldest_first),
		TEST(the_box_is_made_when_it_is_missing),
		TEST(a_lost_connection_starts_the_box_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
