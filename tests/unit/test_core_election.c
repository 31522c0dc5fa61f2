/* Elections: proclaimed before told (election.h), and who watches them (observe.h). */
#include <stdio.h>
#include <string.h>

#include "core_fixture.h"

static const char fits[] = "1\nkind=election\nflavour=rw\n";
static const char other[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
static const char second[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004";
static const char of_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\nmode=exclusive\ntoken=71680\n"
			      "holders=1\nsince=1000100000\nwritten=1000100000\nleader=1\ndata=10.0.0.2:80\n";

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	return fixture_setup(f, 5, state);
}

static int setup_standalone(void **state)
{
	return fixture_setup(fixture_new(true), 4, state);
}

/* CAMPAIGN up to the proclamation, which is the oldest open operation then; a list with watch stands behind it. */
static void campaign(struct fixture *f, uint32_t conn, const char *data, uint32_t seq, int64_t czxid, char *name,
		     size_t size)
{
	char words[128];
	const char *children[1] = { name };

	snprintf(words, sizeof(words), "CAMPAIGN a DATA %s", data);
	fixture_ask(f, conn, words);
	if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, fits);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_answer_made(f, seq, czxid, name, size);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, children);
}

/* The data of the oldest operation, a write to that znode. */
static void expect_data(struct fixture *f, const char *name, const char *line)
{
	const struct fixture_op *op = fixture_op(f, EFFECT_ZK_SET, name);

	assert_non_null(strstr(op->data, line));
}

static void answer_watch_list(struct fixture *f, const char *name)
{
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
}

static void a_leader_is_told_when_its_data_are_acknowledged(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_expect(f, 0, "");
	expect_data(f, name, "\nleader=1\ndata=x\n");
	expect_data(f, name, "1\nhost=alpha\nkind=election\npid=100\n");
	expect_data(f, name, "\ntoken=71680\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":71680");
	answer_watch_list(f, name);
	fixture_no_op(f);
	fixture_say(f, 0, "CAMPAIGN a DATA y", "-ERR this client leads already: RESIGN first");
	fixture_say(f, 0, "VALID a", ":8000");
}

static void the_next_of_the_host_leads_on_the_same_claim(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_answer(f, ZK_OK);
	answer_watch_list(f, name);
	bytes_clear(&f->replies[0]);
	fixture_ask(f, 1, "CAMPAIGN a DATA y");
	fixture_say(f, 0, "RESIGN a", ":1");
	fixture_expect(f, 1, "");
	expect_data(f, name, "\ntoken=71681\n");
	expect_data(f, name, "\ndata=y\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 1, ":71681");
	/* Nobody else wants it, and it does not linger. */
	fixture_say(f, 1, "RESIGN a", ":1");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* It may have been seen as the leader: who comes after it has a larger token. */
static void who_gives_up_when_proclaimed_has_used_its_token(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_ask(f, 1, "CAMPAIGN a DATA y");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_answer(f, ZK_OK); /* of the first: it is no more */
	fixture_expect(f, 1, "");
	answer_watch_list(f, name);
	expect_data(f, name, "\ntoken=71681\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 1, ":71681");
}

static void a_proclamation_of_unknown_outcome_is_written_again(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_op(f, EFFECT_ZK_SET, name);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "");
	fixture_zk_connected(f, SESSION);
	fixture_op(f, EFFECT_ZK_SET, "/.hosts/alpha");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, "");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	expect_data(f, name, "\ntoken=71680\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":71680");
}

static void a_proclamation_on_a_deleted_znode_begins_anew(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_op(f, EFFECT_ZK_SET, name);
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, "");
	fixture_answer_list(f, 1, 0, NULL); /* the watch: it is gone */
	fixture_answer_list(f, 1, 0, NULL);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_answer_made(f, 6, 80, name, sizeof(name));
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	expect_data(f, name, "\ntoken=81920\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":81920");
}

static void a_refused_proclamation_fails(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to write the leader's data");
}

static void a_campaign_can_be_queued_and_taken_back(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_answer(f, ZK_OK);
	answer_watch_list(f, name);
	bytes_clear(&f->replies[0]);
	fixture_say(f, 1, "CAMPAIGN a ENQUEUE DATA y", "+QUEUED");
	fixture_say(f, 1, "CAMPAIGN a DATA y", "-ERR this client campaigns for that already: RESIGN takes it back");
	fixture_say(f, 1, "RESIGN a", ":0");
	fixture_say(f, 1, "RESIGN a", "-NOTHELD this client does not hold that lock");
	fixture_say(f, 2, "CAMPAIGN a ENQUEUE DATA z", "+QUEUED");
	fixture_say(f, 3, "CAMPAIGN a WAIT 0 DATA z", "$-1");
	fixture_say(f, 0, "RESIGN a", ":1");
	fixture_answer(f, ZK_OK);
	fixture_say(f, 2, "EVENTS", "*3 $7 granted $1 a :71681");
}

static void a_lock_is_no_election_and_the_other_way_round(void **state)
{
	struct fixture *f = *state;
	char name[128];

	campaign(f, 0, "x", 5, 70, name, sizeof(name));
	fixture_answer(f, ZK_OK);
	answer_watch_list(f, name);
	bytes_clear(&f->replies[0]);
	fixture_say(f, 1, "LOCK a", "-MISMATCH that name is an election");
	fixture_say(f, 0, "UNLOCK a", "-MISMATCH that name is an election");
	fixture_say(f, 0, "DOWNGRADE a", "-MISMATCH that name is an election");
	fixture_say(f, 0, "RENEW a 10", "-MISMATCH that name is an election");
	fixture_say(f, 0, "MLOCK 1 a", "-MISMATCH that name is of another kind: a");
	fixture_say(f, 0, "MUNLOCK 1 a", "-MISMATCH that name is an election, and nothing is released: a");
	fixture_lock_held(f, 2, "b", 5, 80, name, sizeof(name));
	fixture_expect(f, 2, ":81920");
	fixture_say(f, 1, "CAMPAIGN b DATA x", "-MISMATCH that name is a lock");
	fixture_say(f, 2, "RESIGN b", "-MISMATCH that name is a lock");
	fixture_say(f, 1, "LEADER b", "-MISMATCH that name is a lock");
	fixture_say(f, 1, "OBSERVE b", "-MISMATCH that name is a lock");
	fixture_say(f, 1, "CAMPAIGN c", "-ERR wrong number of arguments for 'campaign' command; Become the leader: CAMPAIGN "
					"name DATA text [WAIT ms] [ENQUEUE]");
	fixture_say(f, 1, "CAMPAIGN c WAIT 5", "-ERR syntax error in 'campaign' command; Become the leader: CAMPAIGN "
					       "name DATA text [WAIT ms] [ENQUEUE]");
}

/* This host has parked what it knows of the directory as a lock's. */
static void a_name_that_was_a_lock_here_is_read_again(void **state)
{
	struct fixture *f = *state;
	char name[128];

	fixture_lock_held(f, 0, "a", 5, 70, name, sizeof(name));
	fixture_expect(f, 0, ":71680");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
	fixture_ask(f, 0, "CAMPAIGN a DATA x");
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_expect(f, 0, "-MISMATCH that name is a lock of another kind or flavour");
	fixture_no_op(f);
	fixture_ask(f, 0, "CAMPAIGN a DATA x");
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
	fixture_answer(f, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_GET, "/lb/a"); /* in the same breath as the create */
	fixture_answer(f, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* Up to the read of the contender before ours, in a directory whose data say nothing. */
static void ask_behind(struct fixture *f, uint32_t conn, const char *words, char name[128])
{
	fixture_ask(f, conn, words);
	fixture_answer_get(f, 1, 0, "");
	fixture_answer_made(f, 5, 77, name, 128);
	fixture_answer_list(f, 1, 2, (const char *[]){ other, name });
	fixture_op(f, EFFECT_ZK_GET, other);
}

static void in_a_directory_of_other_software_the_contenders_tell_the_kind(void **state)
{
	static const struct {
		const char *words, *before;
		bool fits;
	} cases[] = {
		{ "LOCK a", "1\nhost=beta\n", true },
		{ "LOCK a", "1\nhost=beta\nkind=lock\n", true },
		{ "LOCK a", "1\nhost=beta\nkind=election\n", false },
		{ "LOCK a SHARED", "1\nhost=beta\nkind=election\n", false },
		{ "LOCK a", "kind=election\n", true },
		{ "CAMPAIGN a DATA x", "1\nhost=beta\nkind=election\n", true },
		{ "CAMPAIGN a DATA x", "1\nhost=beta\n", false },
		{ "CAMPAIGN a DATA x", "10.0.0.1", true },
		{ "CAMPAIGN a DATA x", "", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f;
		char name[128];

		fixture_teardown(state);
		setup(state);
		f = *state;
		ask_behind(f, 0, cases[i].words, name);
		fixture_answer_get(f, 70, 9, cases[i].before);
		if (cases[i].fits) {
			fixture_expect(f, 0, "");
		} else {
			fixture_expect(f, 0, "-MISMATCH that name is in use as a lock of another kind");
			fixture_op(f, EFFECT_ZK_DELETE, name);
			fixture_answer(f, ZK_OK);
		}
		fixture_no_op(f);
	}
}

/* What it waits for next may be of the right kind, and is read before anything is said of it. */
static void another_kind_before_a_claim_counts_while_it_stands_there(void **state)
{
	struct fixture *f = *state;
	char name[128], path[128];

	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, "");
	fixture_answer_made(f, 5, 77, name, sizeof(name));
	fixture_answer_list(f, 1, 3, (const char *[]){ other, second, name });
	fixture_op(f, EFFECT_ZK_GET, second);
	snprintf(path, sizeof(path), "/lb/a/%s", second);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_op(f, EFFECT_ZK_GET, second);
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\nkind=election\n"); /* nobody waits any more */
	fixture_answer(f, ZK_OK); /* the deletion */
	fixture_no_op(f);
	fixture_ask(f, 1, "CAMPAIGN a DATA x"); /* this host knew it as a lock: the data are read first */
	fixture_answer_get(f, 1, 0, "");
	fixture_answer_made(f, 6, 78, name, sizeof(name));
	fixture_answer_list(f, 1, 3, (const char *[]){ other, second, name });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\nkind=election\n");
	fixture_watch(f, ZK_WATCH_DELETED, path);
	fixture_answer_list(f, 1, 2, (const char *[]){ other, name });
	fixture_expect(f, 1, "");
	fixture_op(f, EFFECT_ZK_GET, other);
	fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
	fixture_expect(f, 1, "-MISMATCH that name is in use as a lock of another kind");
}

/* conn 0 reads, and conn 1 wants to write: its *next* stands behind a campaigner of another host. */
static void queue_behind_campaigner(struct fixture *f, const char *campaigner, char first[128], char next[128])
{
	fixture_ask(f, 0, "LOCK a SHARED");
	fixture_answer_get(f, 1, 0, "");
	fixture_answer_made(f, 5, 70, first, 128);
	fixture_answer_list(f, 1, 1, (const char *[]){ first });
	fixture_expect(f, 0, ":71680");
	fixture_ask(f, 1, "LOCK a");
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_answer_made(f, 7, 72, next, 128);
	fixture_answer_list(f, 1, 3, (const char *[]){ first, campaigner, next });
	fixture_op(f, EFFECT_ZK_GET, campaigner);
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\nkind=election\n");
	fixture_expect(f, 1, "");
	fixture_no_op(f);
}

/* It would have to wait for the host that was told, or will be: who holds the name says what it is for. */
static void another_kind_behind_a_held_claim_is_no_concern_of_its_queue(void **state)
{
	static const char campaigner[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__WRIT__0000000006";
	struct fixture *f = *state;
	char first[128], next[128], path[192];

	queue_behind_campaigner(f, campaigner, first, next);
	snprintf(path, sizeof(path), "/lb/a/%s", campaigner);
	fixture_watch(f, ZK_WATCH_DELETED, path);
	fixture_answer_list(f, 1, 2, (const char *[]){ first, next });
	fixture_no_op(f); /* what stands before it now is ours */
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "");
	fixture_op(f, EFFECT_ZK_DELETE, first);
	fixture_answer(f, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":73728");
}

static void another_kind_is_told_when_nothing_is_held_any_more(void **state)
{
	static const char campaigner[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__WRIT__0000000006";
	struct fixture *f = *state;
	char first[128], next[128];

	queue_behind_campaigner(f, campaigner, first, next);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "-MISMATCH that name is in use as a lock of another kind");
	fixture_op(f, EFFECT_ZK_DELETE, first);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, next);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

static void leader_is_read_from_the_first_contender(void **state)
{
	struct fixture *f = *state;
	char name[128];

	fixture_ask(f, 0, "LEADER a");
	fixture_answer_list(f, 1, 2, (const char *[]){ second, other });
	fixture_op(f, EFFECT_ZK_GET, other);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect(f, 0, "*20 $4 host $4 beta $4 data $11 10.0.0.2:80 $5 token :71680 $6 client :0 $4 name $2 w1 $3 pid :42 "
			     "$3 uid :7 $7 command $6 settle $7 held_ms :0 $5 znode $58 "
			     "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003");
	fixture_no_op(f);
	/* The first goes meanwhile, the second is not proclaimed yet. */
	fixture_ask(f, 0, "LEADER a");
	fixture_answer_list(f, 1, 2, (const char *[]){ second, other });
	fixture_answer(f, ZK_NONODE);
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\n");
	fixture_expect(f, 0, "$-1");
	fixture_ask(f, 0, "LEADER a");
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, "$-1");
	campaign(f, 1, "x", 5, 70, name, sizeof(name));
	fixture_answer(f, ZK_OK);
	answer_watch_list(f, name);
	fixture_ask(f, 0, "LEADER a");
	fixture_no_op(f);
	assert_non_null(memmem(f->replies[0].data, f->replies[0].len, "data\r\n$1\r\nx\r\n$5\r\ntoken\r\n:71680\r\n", 28));
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 3, "LEADER b", "-UNAVAILABLE ZooKeeper cannot be asked who leads");
}

/* ---- observers ---- */

/* OBSERVE by conn 0, which speaks RESP3, up to the read of the first. */
static void observe(struct fixture *f, const char *first)
{
	fixture_resp3(f, 0);
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
	fixture_answer_get(f, 1, 0, fits);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, first ? 1 : 0, (const char *[]){ first });
}

static void an_observer_is_told_the_present_leader_and_each_change(void **state)
{
	struct fixture *f = *state;

	observe(f, other);
	assert_true(fixture_op(f, EFFECT_ZK_GET, other)->effect.watch);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_no_op(f);
	/* Somebody joins behind it: looked at, and nothing to tell. */
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 2, (const char *[]){ other, second });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, "");
	fixture_no_op(f);
	/* It goes. The next stands, and is proclaimed a moment later. */
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_watch(f, ZK_WATCH_DELETED, "/lb/a/_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003");
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\n");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_watch(f, ZK_WATCH_CHANGED, "/lb/a/_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004");
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\ntoken=72704\nleader=1\ndata=g\n");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :72704 $5 gamma $1 g");
	fixture_say(f, 0, "UNOBSERVE a", ":1");
	fixture_say(f, 0, "UNOBSERVE a", ":0");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_no_op(f);
}

static void what_changes_while_the_first_is_read_is_looked_at(void **state)
{
	struct fixture *f = *state;

	observe(f, other);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer(f, ZK_NONODE);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_no_op(f);
}

static void an_observer_makes_the_directory_it_watches(void **state)
{
	struct fixture *f = *state;

	fixture_resp3(f, 0);
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_answer(f, ZK_NONODE);
	fixture_answer(f, ZK_NONODE);
	assert_string_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/a")->data, fits);
	assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/a")->effect.create, ZK_CONTAINER);
	fixture_answer(f, ZK_OK);
	fixture_answer_get(f, 1, 0, fits);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_no_op(f);
}

static void a_directory_of_another_kind_ends_observing(void **state)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_say(f, 0, "EVENTS",
		    "*4 $10 unobserved $1 a $8 MISMATCH $46 that name is a lock of another kind or flavour");
	fixture_say(f, 0, "UNOBSERVE a", ":0");
}

static void a_reconnection_is_followed_by_a_look(void **state)
{
	struct fixture *f = *state;

	observe(f, other);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_zk_connected(f, SESSION);
	/* Not before a write was answered: an isolated server would show what is no more. */
	fixture_op(f, EFFECT_ZK_SET, "/.hosts/alpha");
	assert_int_equal(f->end_op - f->first_op, 1);
	fixture_answer(f, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ other });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, "");
	fixture_no_op(f);
}

static void a_slow_reader_is_told_the_latest(void **state)
{
	struct fixture *f = *state;

	observe(f, other);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_say(f, 1, "OBSERVE a", "+OK");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_say(f, 1, "EVENTS", "*5 $6 leader $1 a :0 $0  $0");
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
	/* One that came and went while nobody read is not told at all. */
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\ntoken=72704\nleader=1\ndata=g\n");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
	/* What is kept goes with the change to pushes. */
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\ntoken=72704\nleader=1\ndata=g\n");
	fixture_resp3(f, 1);
	fixture_expect_push(f, 1, ">5 $6 leader $1 a :72704 $5 gamma $1 g");
	/* RESET observes no more. */
	fixture_say(f, 1, "RESET", "+RESET");
	fixture_say(f, 1, "UNOBSERVE a", ":0");
}

static void observers_are_limited(void **state)
{
	struct fixture *f = *state;

	f->conf.limits.requests_per_client = 2;
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_say(f, 0, "OBSERVE b", "+OK");
	fixture_say(f, 0, "OBSERVE c", "-LIMIT this client observes as many elections as it may wait for locks "
				       "(limits.requests_per_client)");
	f->conf.limits.session_path_bytes = 200;
	fixture_say(f, 1, "OBSERVE a", "+OK"); /* the same watches */
	fixture_say(f, 1, "OBSERVE c", "-LIMIT this host's session has as many watches as ZooKeeper can take");
}

static void standalone_elections_tell_their_observers(void **state)
{
	struct fixture *f = *state;

	fixture_resp3(f, 0);
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_say(f, 1, "CAMPAIGN a DATA x", ":1024");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :1024 $5 alpha $1 x");
	fixture_ask(f, 2, "CAMPAIGN a DATA y");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_expect(f, 2, ":1025");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :1025 $5 alpha $1 y");
	fixture_say(f, 3, "LEADER a",
		    "*20 $4 host $5 alpha $4 data $1 y $5 token :1025 $6 client :3 $4 name $0  $3 pid :102 $3 uid :1000 "
		    "$7 command $4 test $7 held_ms :0 $5 znode $0");
	fixture_say(f, 2, "RESIGN a", ":1");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_say(f, 3, "LEADER a", "$-1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_leader_is_told_when_its_data_are_acknowledged),
		TEST(the_next_of_the_host_leads_on_the_same_claim),
		TEST(who_gives_up_when_proclaimed_has_used_its_token),
		TEST(a_proclamation_of_unknown_outcome_is_written_again),
		TEST(a_proclamation_on_a_deleted_znode_begins_anew),
		TEST(a_refused_proclamation_fails),
		TEST(a_campaign_can_be_queued_and_taken_back),
		TEST(a_lock_is_no_election_and_the_other_way_round),
		TEST(a_name_that_was_a_lock_here_is_read_again),
		TEST(in_a_directory_of_other_software_the_contenders_tell_the_kind),
		TEST(another_kind_before_a_claim_counts_while_it_stands_there),
		TEST(another_kind_behind_a_held_claim_is_no_concern_of_its_queue),
		TEST(another_kind_is_told_when_nothing_is_held_any_more),
		TEST(leader_is_read_from_the_first_contender),
		TEST(an_observer_is_told_the_present_leader_and_each_change),
		TEST(what_changes_while_the_first_is_read_is_looked_at),
		TEST(an_observer_makes_the_directory_it_watches),
		TEST(a_directory_of_another_kind_ends_observing),
		TEST(a_reconnection_is_followed_by_a_look),
		TEST(a_slow_reader_is_told_the_latest),
		TEST(observers_are_limited),
		ALONE(standalone_elections_tell_their_observers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
