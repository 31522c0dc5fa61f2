/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's state as a text and back (core/snapshot.h). The simulator takes snapshots at random moments; here are what
 * was written by each version, what somebody cut or changed, and what a client sees.
 */
#include "core_test.h"

#include <stdio.h>

#include "core/port/entry.h"
#include "core/snapshot.h"
#include "core/state.h"

enum { RECORD_MAX = 1 << 16 };

/* What the record has. */
enum { CLIENTS = 6, GRANTS = 3, LOST = 1, REQUESTS = 4, CLAIMS = 8, LETTERS = 1 };

static const int64_t LATER_NS = 1000000000000;

/* `build/sim --mix 'snapshots, permits' --seeds 150 --record FILE`, when there was but version 1. */
static struct slice record(void)
{
	static char text[RECORD_MAX];
	FILE *f = fopen("tests/unit/snapshot_1.txt", "rb");
	size_t len;

	assert_non_null(f);
	len = fread(text, 1, sizeof(text), f);
	fclose(f);
	return (struct slice){ text, len };
}

static const struct broker_prefix prefixes[] = {
	{ "m/", FLAVOUR_MUTEX, "/app/locks", 0 },
	{ "k/", FLAVOUR_KAZOO, "", 0 },
};

static struct broker_conf record_conf(void)
{
	return (struct broker_conf){ .root = "/locks",
				     .limits.user_share = 75,
				     .host = "h1",
				     .version = "",
				     .boot_id = "",
				     .session_page = "",
				     .session_page_id = "",
				     .session_timeout_ns = 4000 * MS,
				     .tick_ns = 400 * MS,
				     .prefixes = prefixes,
				     .prefix_count = 2 };
}

static struct broker *restored(struct slice text, struct bytes *why)
{
	static struct broker_conf conf;

	conf = record_conf();
	return broker_restore(&conf, text, LATER_NS, why);
}

static void expect_refused(struct slice text, const char *sentence)
{
	struct bytes why = { 0 };

	assert_null(restored(text, &why));
	assert_true(why.len > 0);
	bytes_char(&why, '\0');
	if (sentence)
		assert_string_equal(why.data, sentence);
	bytes_free(&why);
}

static struct broker *taken(struct slice text)
{
	struct bytes why = { 0 };
	struct broker *b = restored(text, &why);

	assert_int_equal(why.len, 0);
	assert_non_null(b);
	broker_check(b);
	bytes_free(&why);
	return b;
}

static struct bytes sealed(struct slice body)
{
	struct bytes text = { 0 };
	size_t begin = seal_begin(&text);

	bytes_slice(&text, body);
	seal_end(&text, begin);
	return text;
}

static struct slice body_of(struct slice text)
{
	struct bytes why = { 0 };

	return seal_open(text, &why);
}

/* ---- what versions have written ---- */

TEST_WITH(what_version_1_wrote_is_read, NULL, NULL)
{
	struct broker *b = taken(record());

	assert_int_equal(b->locks.client_count, CLIENTS);
	assert_int_equal(b->locks.grant_count, GRANTS);
	assert_int_equal(b->locks.lost_count, LOST);
	assert_int_equal(b->locks.request_count, REQUESTS);
	assert_int_equal(b->directories.claim_count, CLAIMS);
	assert_int_equal(b->hosts.outbox_count, LETTERS);
	assert_true(b->ensemble.session.id != 0);
	broker_free(b);
}

TEST_WITH(the_snapshot_of_what_was_read_is_the_same, NULL, NULL)
{
	struct bytes again = { 0 };
	struct broker *b = taken(record());

	broker_snapshot(b, &again);
	assert_true(slice_eq(bytes_view(&again), record()));
	broker_free(b);
	bytes_free(&again);
}

static void with_version(struct bytes *text, char digit)
{
	bytes_clear(text);
	bytes_slice(text, record());
	text->data[sizeof("lockbroker state ") - 1] = digit;
}

TEST_WITH(the_next_version_is_read_and_the_one_after_it_is_refused, NULL, NULL)
{
	struct bytes text = { 0 };

	with_version(&text, '2');
	broker_free(taken(bytes_view(&text)));
	with_version(&text, '3');
	expect_refused(bytes_view(&text), "it is of version 3, and this lockbrokerd reads 0 to 2");
	bytes_free(&text);
}

/* The record with that behind its first entry. */
static struct bytes with_entry(struct slice more)
{
	struct slice body = body_of(record());
	const char *end = memmem(body.data, body.len, "\r\n*", 3);
	size_t first = (size_t)(end + 2 - body.data);
	struct bytes text = { 0 };
	size_t begin = seal_begin(&text);

	bytes_append(&text, body.data, first);
	bytes_slice(&text, more);
	bytes_append(&text, body.data + first, body.len - first);
	seal_end(&text, begin);
	return text;
}

/* An entry, and a key, with values of any shape. */
TEST_WITH(what_a_later_version_adds_is_skipped, NULL, NULL)
{
	struct bytes text = with_entry(SLICE("*3\r\n+future\r\n+key\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n"));

	broker_free(taken(bytes_view(&text)));
	bytes_free(&text);
	text = with_entry(SLICE("*5\r\n+stats\r\n+future\r\n*2\r\n:1\r\n*0\r\n+losses_total\r\n:7\r\n"));
	broker_free(taken(bytes_view(&text)));
	bytes_free(&text);
}

TEST_WITH(what_is_not_an_entry_is_refused, NULL, NULL)
{
	static const char *const texts[] = { "*2\r\n+stats\r\n+key\r\n",
					     "*0\r\n",
					     ":1\r\n",
					     "x",
					     "*1\r\n:1\r\n",
					     "*3\r\n+stats\r\n:1\r\n:1\r\n",
					     "*3\r\n+stats\r\n+losses_total\r\n+x\r\n",
					     "*1000000000\r\n",
					     "*1\r\n+claim\r\n" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bytes text = with_entry(slice_of(texts[i]));

		expect_refused(bytes_view(&text), NULL);
		bytes_free(&text);
	}
}

/* ---- what cannot be gone by ---- */

TEST_WITH(it_is_refused_wherever_it_is_cut, NULL, NULL)
{
	struct slice whole = record();

	for (size_t len = 0; len < whole.len; len++)
		expect_refused((struct slice){ whole.data, len }, NULL);
}

TEST_WITH(it_is_refused_whichever_byte_is_another, NULL, NULL)
{
	struct bytes text = { 0 };

	bytes_slice(&text, record());
	for (size_t i = 0; i < text.len; i++) {
		text.data[i] ^= 4;
		/* The version of the first line is that of a reader of today or tomorrow, or none. */
		if (i != sizeof("lockbroker state ") - 1)
			expect_refused(bytes_view(&text), NULL);
		text.data[i] ^= 4;
	}
	bytes_free(&text);
}

/* Each entry but the last, with a seal of its own. */
TEST_WITH(it_is_refused_without_its_end, NULL, NULL)
{
	struct slice body = body_of(record());
	struct entry_reader r;
	struct bytes why = { 0 };
	struct entry e;

	entry_reader_init(&r, body, &why);
	while (entry_next(&r, &e)) {
		struct bytes text = sealed((struct slice){ body.data, body.len - r.rest.len });

		if (r.rest.len)
			expect_refused(bytes_view(&text), NULL);
		bytes_free(&text);
	}
	entry_reader_deinit(&r);
	bytes_free(&why);
}

TEST_WITH(it_is_refused_without_its_session, NULL, NULL)
{
	struct slice body = body_of(record()), rest = body;
	struct entry_reader r;
	struct bytes why = { 0 }, without = { 0 }, text;
	struct entry e;

	entry_reader_init(&r, body, &why);
	while (entry_next(&r, &e)) {
		if (!slice_eq(e.word, SLICE("session")))
			bytes_slice(&without, (struct slice){ rest.data, rest.len - r.rest.len });
		rest = r.rest;
	}
	assert_true(without.len < body.len);
	text = sealed(bytes_view(&without));
	expect_refused(bytes_view(&text), "it contradicts itself: !claims || b->ensemble.session.id || b->env.conf->standalone");
	entry_reader_deinit(&r);
	bytes_free(&text);
	bytes_free(&without);
	bytes_free(&why);
}

TEST_WITH(another_configuration_or_an_earlier_clock_is_refused, NULL, NULL)
{
	struct broker_conf conf = record_conf();
	struct bytes why = { 0 };

	conf.host = "h2";
	assert_null(broker_restore(&conf, record(), LATER_NS, &why));
	conf = record_conf();
	conf.prefix_count = 1;
	assert_null(broker_restore(&conf, record(), LATER_NS, &why));
	conf = record_conf();
	conf.standalone = true;
	assert_null(broker_restore(&conf, record(), LATER_NS, &why));
	conf = record_conf();
	assert_null(broker_restore(&conf, record(), 1, &why));
	bytes_char(&why, '\0');
	assert_string_equal(why.data, "this clock has not come to the instant of its entry \"broker\"");
	bytes_free(&why);
}

/* ---- what clients see ---- */

SETUP(setup, true, 5)

static void replace(struct fixture *f)
{
	struct bytes text = { 0 };

	broker_snapshot(f->broker, &text);
	fixture_restore(f, bytes_view(&text));
	fixture_simple(f, EVENT_TIME, 0);
	bytes_free(&text);
}

/* Others see the nonces, of which one gives away the seed, and with that all that follows from it. */
TEST(keys_of_tables_do_not_follow_from_the_seed)
{
	const struct broker *b = f->broker;
	const struct map *maps[] = { &b->locks.names, &b->locks.groups, &b->locks.attempted, &b->directories.paths };
	struct random seen = { .state = 42 };

	assert_int_equal(b->directories.last_nonce, random_next(&seen) >> 9);
	for (int i = 0; i < 1000; i++) {
		uint64_t number = random_next(&seen);

		for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++)
			assert_true(maps[m]->key[0] != number && maps[m]->key[1] != number);
	}
}

TEST(the_next_process_has_keys_of_its_own)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	f->conf.hash_key[0] = 7;
	f->conf.hash_key[1] = 8;
	replace(f);
	assert_int_equal(f->broker->locks.names.key[0], 7);
	assert_int_equal(f->broker->locks.names.key[1], 8);
	assert_int_equal(f->broker->directories.paths.key[0], 7);
	fixture_say(f, 0, "UNLOCK a", ":0");
}

/* The next process counts by the limits that it has. */
TEST(a_unit_is_counted_as_the_next_process_has_it)
{
	static const uint32_t uids[] = { 1000 };

	fixture_connect_as(f, 5, 1000, SLICE("web.service"), false);
	fixture_say(f, 5, "LOCK a", ":1024");
	assert_string_equal(f->broker->locks.conns[5]->account->unit, "");
	f->conf.limits.by_unit = uids;
	f->conf.limits.by_unit_count = 1;
	replace(f);
	assert_string_equal(f->broker->locks.conns[5]->account->unit, "web.service");
	assert_int_equal(f->broker->locks.conns[5]->account->used[POOL_LOCKS], 1);
	replace(f);
	assert_string_equal(f->broker->locks.conns[5]->account->unit, "web.service");
}

TEST(a_queue_goes_on_in_its_order_with_its_tokens)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_ask(f, 3, "LOCK a");
	fixture_ask(f, 1, "LOCK a");
	fixture_ask(f, 2, "LOCK a");
	replace(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 3, ":1025");
	replace(f);
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1026");
	fixture_expect(f, 2, "");
}

TEST(waits_and_leases_end_at_their_deadlines)
{
	fixture_say(f, 0, "LOCK a LEASE 5000", ":1024");
	fixture_ask(f, 1, "LOCK a WAIT 3000");
	fixture_pass(f, 1000);
	replace(f);
	fixture_pass(f, 1999);
	fixture_expect(f, 1, "");
	fixture_pass(f, 1);
	fixture_expect(f, 1, "$-1");
	fixture_pass(f, 1999);
	fixture_say(f, 0, "VALID a", ":1");
	fixture_pass(f, 1);
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 a :1024 $5 lease");
	replace(f);
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold a");
}

TEST(what_was_not_read_is_told_once)
{
	fixture_say(f, 0, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 0, "ENQUEUE b", "+QUEUED");
	replace(f);
	fixture_say(f, 0, "EVENTS", "*3 $7 granted $1 a :1024");
	replace(f);
	fixture_say(f, 0, "EVENTS", "*3 $7 granted $1 b :2048");
	replace(f);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

TEST(an_mlock_goes_on_where_it_was)
{
	fixture_say(f, 0, "LOCK b", ":1024");
	fixture_ask(f, 1, "MLOCK 3 c b a");
	replace(f);
	fixture_expect(f, 1, "");
	fixture_say(f, 2, "LOCK a WAIT 0", "$-1");
	fixture_say(f, 0, "UNLOCK b", ":0");
	replace(f);
	fixture_expect(f, 1, "*3 :3072 :1025 :2048");
}

TEST(where_a_client_came_from_goes_on)
{
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_connect_as(f, 0, 0, SLICE("web.service"), true);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_connect_as(f, 1, 1000, (struct slice){ 0 }, false);
	replace(f);
	fixture_is_from(f, 0, "web.service", true);
	fixture_is_from(f, 1, "", false);
	assert_int_equal(broker_origin(f->broker, 1).uid, 1000);
}

/* The connection tells them to any process that has it. */
TEST(what_was_seen_of_the_ensemble_goes_on)
{
	f->broker->ensemble.past.seen = 4711;
	f->broker->ensemble.past.floor = 815;
	replace(f);
	assert_int_equal(f->broker->ensemble.past.seen, 4711);
	assert_int_equal(f->broker->ensemble.past.floor, 815);
}

TEST(groups_are_told_again)
{
	const uint32_t groups[] = { 7, 8 };
	struct event e = { .type = EVENT_CLIENT_GROUPS, .conn = 0, .groups = { groups, 2, true } };

	fixture_event(f, &e);
	assert_int_equal(f->broker->locks.conns[0]->group_count, 2);
	replace(f);
	assert_false(f->broker->locks.conns[0]->groups_known);
	fixture_event(f, &e);
	assert_true(f->broker->locks.conns[0]->groups_known);
	assert_int_equal(f->broker->locks.conns[0]->groups[1], 8);
}

TEST(who_waits_for_a_hand_over_is_told_by_the_next_process)
{
	fixture_ask(f, 0, "RESTART");
	replace(f);
	fixture_event(f, &(struct event){ .type = EVENT_RESTART_OVER, .restart.sentence = SLICE("no") });
	fixture_expect(f, 0, "-ERR not restarted: no");
}
