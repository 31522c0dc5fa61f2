/* SPDX-License-Identifier: Apache-2.0 */
/* Shared and exclusive: inside a host (standalone) and between hosts (scripted answers). */
#include <string.h>

#include "core_test.h"

static const char held[] = "-HELD this connection holds it already; say REENTER to enter it again, or use one "
			   "connection for each thread: a";
static const char upgrade[] = "-DEADLOCK this client holds a shared and would wait for itself: release it first";
static const char reader_low[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__READ__0000000001";
static const char writer_low[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000002";
static const char writer_low2[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__WRIT__0000000003";
static const char reader_low2[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b14-__READ__0000000004";
static const char writer_high[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b15-__WRIT__0000000009";
static const char reader_high[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b16-__READ__0000000010";

SETUP(setup_standalone, true, 6)
SETUP(setup, false, 6)

/* ---- inside the host ---- */

ALONE(readers_hold_together_and_share_a_token)
{
	fixture_say(f, 0, "LOCK a SHARED", ":1024");
	fixture_say(f, 1, "LOCK a WAIT 0 shared", ":1024");
	fixture_say(f, 2, "LOCK a WAIT 0", "$-1");
	fixture_say(f, 2, "LOCK a", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 2, "");
	fixture_say(f, 1, "UNLOCK a TOKEN 1024", ":0");
	fixture_expect(f, 2, ":2048");
}

ALONE(a_reader_never_passes_a_waiting_writer)
{
	fixture_say(f, 0, "LOCK a SHARED", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 2, "LOCK a SHARED", "");
	fixture_say(f, 3, "LOCK a SHARED WAIT 0", "$-1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":2048");
	fixture_expect(f, 2, "");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":2049");
}

ALONE(a_writer_that_gives_up_lets_the_readers_behind_it_in)
{
	fixture_say(f, 0, "LOCK a SHARED", ":1024");
	fixture_say(f, 1, "LOCK a WAIT 50", "");
	fixture_say(f, 2, "LOCK a SHARED", "");
	fixture_pass(f, 50);
	fixture_expect(f, 1, "$-1");
	fixture_expect(f, 2, ":1024");
}

ALONE(readers_at_the_front_get_it_together)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a SHARED", "");
	fixture_say(f, 2, "LOCK a SHARED", "");
	fixture_say(f, 3, "LOCK a", "");
	fixture_say(f, 4, "LOCK a SHARED", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	fixture_expect(f, 2, ":1025");
	fixture_expect(f, 3, "");
	fixture_say(f, 2, "UNLOCK a", ":0");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 3, ":1026");
	fixture_expect(f, 4, "");
}

ALONE(shared_by_the_exclusive_holder_stays_exclusive)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK a SHARED REENTER", ":1024");
	fixture_say(f, 1, "LOCK a SHARED WAIT 0", "$-1");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 1, "LOCK a SHARED WAIT 0", "$-1");
}

ALONE(an_upgrade_is_refused_at_once)
{
	fixture_say(f, 0, "LOCK a SHARED", ":1024");
	fixture_say(f, 0, "LOCK a REENTER", upgrade);
	fixture_say(f, 1, "LOCK a SHARED", ":1024");
	fixture_say(f, 0, "LOCK a WAIT 0 REENTER", upgrade);
	fixture_say(f, 1, "LOCK a WAIT 100 REENTER", upgrade);
	fixture_say(f, 0, "LOCK a", held);
	fixture_say(f, 0, "LOCK a SHARED REENTER", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 2, "QUEUE a", "*0");
}

/* Who joins has a token of its own: what the downgraded grant wrote before is an earlier, conflicting act. */
ALONE(a_downgrade_keeps_the_token_and_lets_readers_in)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say(f, 1, "LOCK a SHARED", "");
	fixture_say(f, 2, "LOCK a", "");
	fixture_say(f, 0, "DOWNGRADE a", ":1024");
	fixture_expect(f, 1, ":1025");
	fixture_expect(f, 2, "");
	fixture_say(f, 0, "DOWNGRADE a", ":1024");
	fixture_say(f, 0, "LOCK a REENTER", upgrade);
	fixture_say(f, 3, "HOLDERS a",
		    "*2 *28 $4 host $5 alpha $6 client :1 $4 name $0  $3 pid :100 $3 uid :1000 $7 command $4 test "
		    "$4 mode $6 shared $5 depth :2 $5 token :1024 $7 held_ms :0 $6 age_ms :0 "
		    "$5 znode $0  $8 lease_ms $-1 $4 data $0  "
		    "*28 $4 host $5 alpha $6 client :2 $4 name $0  $3 pid :101 $3 uid :1000 $7 command $4 test "
		    "$4 mode $6 shared $5 depth :1 $5 token :1025 $7 held_ms :0 $6 age_ms :0 "
		    "$5 znode $0  $8 lease_ms $-1 $4 data $0");
	fixture_say(f, 0, "UNLOCK a TOKEN 1024", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 2, "");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":1026");
	fixture_say(f, 1, "DOWNGRADE a", "-NOTHELD this client does not hold a");
}

ALONE(words_of_lock_come_in_any_order)
{
	static const char syntax[] = "-ERR syntax error in 'lock' command; Take a lock: "
				     "LOCK name [SHARED] [WAIT ms] [LEASE ms] [DATA text] [REENTER] [SLOT n] [FRESH]";

	fixture_say(f, 0, "lock a wait 5 shared", ":1024");
	fixture_say(f, 1, "LOCK a SHARED WAIT", syntax);
	fixture_say(f, 1, "LOCK a NOPE", syntax);
	fixture_say(f, 1, "LOCK a SHARED WAIT x", "-ERR WAIT takes milliseconds, 0..31536000000");
	fixture_say(f, 1, "DOWNGRADE",
		    "-ERR wrong number of arguments for 'downgrade' command; Turn an exclusive grant into a shared one: "
		    "DOWNGRADE name");
}

/* ---- between hosts ---- */

/* LOCK up to the list; the directory is known or not. */
static void ask_and_join(struct fixture *f, uint32_t conn, const char *words, uint32_t seq, char name[128])
{
	fixture_ask(f, conn, words);
	if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_made(f, strstr(words, "SHARED") ? "-__READ__" : "-__WRIT__", seq, 70 + seq, name);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/* By 0, on number 5: token 75 << 10. */
static void read_held(struct fixture *f)
{
	ask_and_join(f, 0, "LOCK a SHARED", 5, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ reader_low, f->znode });
	fixture_expect(f, 0, ":76800");
	fixture_no_op(f);
}

TEST(a_reader_watches_the_nearest_earlier_writer_only)
{
	ask_and_join(f, 0, "LOCK a SHARED", 5, f->znode);
	fixture_answer_list(f, 1, 6,
			    (const char *[]){ writer_high, f->znode, reader_low2, writer_low, reader_low, writer_low2 });
	fixture_expect(f, 0, "");
	fixture_refuse_own(f);
	assert_true(fixture_op(f, EFFECT_ZK_GET, writer_low)->effect.watch); /* claim.h */
	fixture_answer_get(f, 69, 9, "1\nhost=gamma\n");
	assert_true(fixture_op(f, EFFECT_ZK_GET, writer_low2)->effect.watch);
	fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
	fixture_no_op(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, writer_low2);
	fixture_serve_list(f, "/lb/a", 4, (const char *[]){ f->znode, reader_low2, reader_low, writer_high });
	fixture_expect(f, 0, ":76800");
	fixture_no_op(f);
}

/* The writer that this host waits behind may itself wait for readers: they are the holders. */
TEST(a_writer_behind_the_hosts_shared_claim_queues_next_at_once)
{
	char next[128];

	read_held(f);
	ask_and_join(f, 1, "LOCK a", 8, next);
	fixture_answer_list(f, 1, 3, (const char *[]){ reader_low, f->znode, next });
	fixture_say(f, 2, "LOCK a SHARED WAIT 0", "$-1");
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_answer_list(f, 1, 2, (const char *[]){ reader_low, next });
	fixture_expect(f, 1, "");
	fixture_refuse_own(f);
	fixture_serve_get(f, reader_low, 70, 9, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, reader_low);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":79872");
}

/* Even with handoff_max = 0: they are one hand-off, or none when they are the first. */
TEST(queued_readers_get_a_claim_together)
{
	f->conf.handoff_max = 0;
	ask_and_join(f, 0, "LOCK a SHARED", 5, f->znode);
	fixture_ask(f, 1, "LOCK a SHARED");
	fixture_ask(f, 2, "LOCK a SHARED");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, writer_high });
	fixture_expect(f, 0, ":76800");
	fixture_expect(f, 1, ":76800");
	fixture_expect(f, 2, ":76800");
	fixture_no_op(f);
}

TEST(a_lingering_shared_claim_goes_back_for_a_writer_only)
{
	f->conf.linger_ns = 1000 * MS;
	read_held(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, reader_high });
	fixture_no_op(f);
	fixture_say(f, 1, "LOCK a SHARED WAIT 0", ":76800");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, writer_high });
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
}

/* The claim lingers, for nothing is proven that would give the writer its turn; the writer gives up. */
TEST(a_next_that_nobody_wants_does_not_stay_behind_a_lingering_claim)
{
	char next[128];

	f->conf.linger_ns = 60000 * MS;
	read_held(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	f->now_ns += 4100 * MS; /* it stood still */
	fixture_ask(f, 1, "ENQUEUE a");
	fixture_answer_beats(f);
	fixture_serve_made(f, "-__WRIT__", 6, 76, next);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, next });
	fixture_expect(f, 1, "+QUEUED");
	fixture_say(f, 1, "CANCEL a", ":1");
	fixture_serve(f, EFFECT_ZK_DELETE, next, ZK_OK);
	fixture_no_op(f);
}

/* Its claim is of no use to the writer that is first now, and would stand before that one's. */
TEST(a_shared_claim_whose_reader_gave_up_makes_way_for_a_writer)
{
	char next[128];

	fixture_ask(f, 0, "LOCK a SHARED");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_ask(f, 1, "LOCK a");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_serve_made(f, "-__READ__", 5, 75, f->znode);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_serve_made(f, "-__WRIT__", 6, 76, next);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, next });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":77824");
}

/* The readers of another host would let a reader in, and they are all that keeps the exclusive claim waiting. */
TEST(an_exclusive_claim_behind_readers_makes_way_for_a_reader)
{
	char shared[128];

	ask_and_join(f, 0, "LOCK a", 5, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ reader_low, f->znode });
	fixture_refuse_own(f);
	fixture_serve_get(f, reader_low, 70, 9, "");
	fixture_say(f, 1, "LOCK a SHARED", "");
	fixture_no_op(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_serve_made(f, "-__READ__", 6, 76, shared);
	fixture_answer_list(f, 1, 2, (const char *[]){ reader_low, shared });
	fixture_expect(f, 1, ":77824");
}

TEST(a_next_that_cannot_serve_the_head_is_replaced)
{
	char next[128];

	f->conf.handoff_max = 0;
	read_held(f);
	fixture_ask(f, 1, "LOCK a SHARED");
	fixture_ask(f, 2, "LOCK a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, writer_high });
	fixture_serve_made(f, "-__READ__", 11, 81, next);
	fixture_answer_list(f, 1, 3, (const char *[]){ f->znode, writer_high, next });
	fixture_refuse_own(f);
	fixture_answer_get(f, 80, 9, "");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_serve(f, EFFECT_ZK_DELETE, next, ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

TEST(a_downgrade_of_a_lost_grant_tells_the_loss)
{
	fixture_lock_held(f, 0, "a", 5, 75, f->znode, sizeof(f->znode));
	fixture_expect(f, 0, ":76800");
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_say(f, 0, "DOWNGRADE a", "-LOST the grant was lost before it was downgraded: a");
	fixture_say(f, 0, "DOWNGRADE a", "-NOTHELD this client does not hold a");
}
