/* SPDX-License-Identifier: Apache-2.0 */
/* EVAL, EVALSHA and SCRIPT: the scripts of lock libraries (script.h), carried out as the commands that they stand for. */
#include <assert.h>

#include "core/client/bid.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/command/script.h"
#include "core/command/value.h"
#include "core/lock/bearer.h"
#include "protocol/limits.h"
#include "protocol/number.h"

/* A script with its words: EVAL script numkeys key ... arg ... */
struct run {
	struct call *call;
	struct client *client;
	struct script script;
	const struct slice *keys, *argv;
	struct slice value; /* empty: it takes none */
	size_t key_count;
	int64_t lease_ns; /* 0: it takes none */
	size_t token_bytes; /* of the token that its value begins with; 0: it has none */
};

/* ---- what it answers ---- */

static struct bid_answer answer_of(const struct run *r, enum script_case which, int64_t count)
{
	switch (r->script.cases[which].answer) {
	case SCRIPT_OK:
	case SCRIPT_OK_OR_TOKEN:
		return (struct bid_answer){ .kind = BID_OK };
	case SCRIPT_OK_TEXT:
		return (struct bid_answer){ .kind = BID_OK_TEXT };
	case SCRIPT_NUMBER:
		return (struct bid_answer){ BID_NUMBER, r->script.cases[which].number };
	case SCRIPT_COUNT:
	case SCRIPT_LEFT:
	case SCRIPT_LEAST:
		return (struct bid_answer){ BID_NUMBER, count };
	case SCRIPT_TOKEN:
		return (struct bid_answer){ BID_TOKEN, count };
	case SCRIPT_PAIR:
	case SCRIPT_NIL:
	case SCRIPT_UNSAID:
		break;
	}
	return (struct bid_answer){ .kind = BID_NIL };
}

static struct grant *ours(const struct run *r, struct slice name)
{
	return bearer_grant_of(lock_find(r->client->locks, name), r->client, r->value);
}

static void answer(const struct run *r, enum script_case which)
{
	bool is_token = r->script.cases[which].answer == SCRIPT_TOKEN;
	struct bid_answer is = answer_of(r, which, is_token ? ours(r, r->keys[0])->token : (int64_t)r->key_count);

	bid_reply(r->client, &is);
}

/* ---- what it does ---- */

static struct slice head(struct slice text, size_t bytes)
{
	return text.len <= bytes ? text : (struct slice){ text.data, bytes };
}

/* The user holds it under the same token with other metadata. redislock would change these; here a lock keeps its value. */
static bool has_other_metadata(const struct run *r, struct slice name)
{
	const struct grant *g = bearer_grant(lock_find(r->client->locks, name), r->client);
	struct slice value;

	if (!g || !r->token_bytes)
		return false;
	value = bytes_view(&g->client->bearer->value);
	if (slice_eq(value, r->value))
		return false;
	return slice_eq(head(value, r->token_bytes), head(r->value, r->token_bytes));
}

static void acquire(const struct run *r)
{
	const struct bid_terms terms = {
		.names = r->keys,
		.count = r->script.keys == SCRIPT_FIRST_KEY ? 1 : r->key_count,
		.value = r->value,
		.lease_ns = r->lease_ns,
		.granted = answer_of(r, SCRIPT_FREE, (int64_t)r->key_count),
		.taken = answer_of(r, SCRIPT_THEIRS, 0),
	};

	for (size_t i = 0; i < terms.count; i++)
		if (has_other_metadata(r, r->keys[i])) {
			reply_error(r->client, ERROR_ERR,
				    "%s is held under that token with other metadata, and a lock keeps the value that it "
				    "was taken with: release it first",
				    r->keys[i]);
			return;
		}
	value_set(r->call, &terms);
}

/* What is done to the lock if it is the script's own, and another host has granted it. */
static struct forward_terms there(const struct run *r, enum script_act act)
{
	struct forward_terms terms = { .act = FORWARD_LOOK, .value = r->value, .lease_ns = r->lease_ns };

	switch (act) {
	case SCRIPT_RELEASE:
		terms.act = FORWARD_RELEASE;
		break;
	case SCRIPT_EXTEND_BY:
		terms.leased = true;
		terms.add = slice_is(r->argv[2], "0");
		terms.act = FORWARD_EXTEND;
		break;
	case SCRIPT_EXTEND:
		terms.act = FORWARD_EXTEND;
		break;
	case SCRIPT_KEEP:
	case SCRIPT_ACQUIRE:
	case SCRIPT_ACQUIRE_IF_YES:
		break;
	}
	return terms;
}

/*
 * Who holds the lock, as the script finds it. False: nothing is known yet, or it was answered. One that another host has
 * granted has no grant here, and `act` is done there.
 */
static bool look(const struct run *r, struct slice name, enum script_act act, enum script_case *ret,
		 struct grant **ret_grant)
{
	const struct forward_terms terms = there(r, act);
	enum value_holder is = value_holder(r->call, name, r->value, ret_grant, NULL);

	if (is == VALUE_ELSEWHERE)
		is = value_forward(r->call, name, &terms);
	switch (is) {
	case VALUE_WAIT:
	case VALUE_ELSEWHERE:
		return false;
	case VALUE_NOBODY:
		*ret = SCRIPT_FREE;
		break;
	case VALUE_MINE:
		*ret = SCRIPT_OURS;
		break;
	case VALUE_OTHER:
		*ret = SCRIPT_THEIRS;
		break;
	}
	return true;
}

/* redis-py adds to a lease only if there is one. */
static enum script_case extend_by(const struct run *r, struct grant *g)
{
	if (!g->lease.place)
		return SCRIPT_THEIRS;
	bid_extend(g, r->lease_ns, slice_is(r->argv[2], "0"));
	return SCRIPT_OURS;
}

/* NULL: another host holds it, and does not tell how long. */
static void answer_left(const struct run *r, const struct grant *g)
{
	struct bid_answer left = answer_of(r, SCRIPT_OURS, value_left_ms(g));

	bid_reply(r->client, &left);
}

static void act(const struct run *r, struct grant *g)
{
	enum script_case is = SCRIPT_OURS;

	switch (r->script.cases[SCRIPT_OURS].act) {
	case SCRIPT_RELEASE: {
		struct bid_answer released = answer_of(r, SCRIPT_OURS, 1);

		bid_release(g);
		bid_reply_settled(r->client, &released);
		return;
	}
	case SCRIPT_EXTEND:
		bid_extend(g, r->lease_ns, false);
		break;
	case SCRIPT_EXTEND_BY:
		is = extend_by(r, g);
		break;
	case SCRIPT_KEEP:
		if (r->script.cases[SCRIPT_OURS].answer == SCRIPT_LEFT) {
			answer_left(r, g);
			return;
		}
		break;
	case SCRIPT_ACQUIRE:
	case SCRIPT_ACQUIRE_IF_YES:
		break;
	}
	answer(r, is);
}

/* Answers as GET and PTTL do, in one array. */
static void answer_pair(const struct run *r)
{
	const struct lookup_fact *fact = NULL;
	struct grant *g = NULL;
	enum value_holder is = value_holder(r->call, r->keys[0], r->value, &g, &fact);

	if (is == VALUE_WAIT)
		return;
	resp_array(reply_out(r->client), 2);
	value_write(r->client, is, g, fact);
	resp_integer(reply_out(r->client), is == VALUE_NOBODY ? -2 : value_left_ms(g));
	reply_end(r->client);
}

static void run_first_key(const struct run *r)
{
	struct grant *g = NULL;
	enum script_case is = SCRIPT_FREE;

	if (r->script.cases[SCRIPT_FREE].answer == SCRIPT_PAIR) {
		answer_pair(r);
	} else if (r->script.cases[SCRIPT_FREE].act == SCRIPT_ACQUIRE) {
		/* Others need not be asked: what they hold is taken. */
		g = ours(r, r->keys[0]);
		if (g)
			act(r, g);
		else
			acquire(r);
	} else if (look(r, r->keys[0], r->script.cases[SCRIPT_OURS].act, &is, &g)) {
		if (is == SCRIPT_OURS && g)
			act(r, g);
		else if (is == SCRIPT_OURS && r->script.cases[is].answer == SCRIPT_LEFT)
			answer_left(r, NULL);
		else
			answer(r, is);
	}
}

/* False: not all are its own, or that is not known yet; it was answered, or will be. */
static bool look_at_all(const struct run *r, enum script_act act)
{
	enum script_case is = SCRIPT_FREE;
	struct grant *g;

	for (size_t i = 0; i < r->key_count; i++) {
		if (!look(r, r->keys[i], act, &is, &g))
			return false;
		if (is != SCRIPT_OURS) {
			answer(r, is);
			return false;
		}
	}
	return true;
}

/* First those of other hosts: what fails there has changed nothing here. */
static void extend_all(const struct run *r)
{
	struct grant *g;

	if (!look_at_all(r, SCRIPT_KEEP) || !look_at_all(r, SCRIPT_EXTEND))
		return;
	for (size_t i = 0; i < r->key_count; i++) {
		g = ours(r, r->keys[i]);
		assert(g || lookup_done(r->client->lookup, r->keys[i]));
		if (g)
			bid_extend(g, r->lease_ns, false);
	}
	answer(r, SCRIPT_OURS);
}

/* The leases of locks that other hosts hold are not known here, and not counted. */
static void answer_least(const struct run *r)
{
	struct bid_answer is;
	int64_t least_ms = 0;

	if (!look_at_all(r, SCRIPT_KEEP))
		return;
	for (size_t i = 0; i < r->key_count; i++) {
		int64_t left_ms = value_left_ms(ours(r, r->keys[i]));

		if (left_ms > 0 && (least_ms == 0 || left_ms < least_ms))
			least_ms = left_ms;
	}
	is = answer_of(r, SCRIPT_OURS, least_ms);
	bid_reply(r->client, &is);
}

static bool is_again(const struct run *r, size_t key)
{
	for (size_t i = 0; i < key; i++)
		if (slice_eq(r->keys[i], r->keys[key]))
			return true;
	return false;
}

static bool are_ours(const struct run *r)
{
	for (size_t i = 0; i < r->key_count; i++)
		if (!ours(r, r->keys[i]))
			return false;
	return true;
}

/* Releases the locks of this host; those of other hosts were released there. */
static void release_here(const struct run *r, int64_t count)
{
	struct bid_answer released = answer_of(r, SCRIPT_OURS, count);

	for (size_t i = 0; i < r->key_count; i++) {
		struct grant *g = ours(r, r->keys[i]);

		if (g && !lookup_done(r->client->lookup, r->keys[i]))
			bid_release(g);
	}
	bid_reply_settled(r->client, &released);
}

/* All are looked at before any is released, and those of other hosts go first. One that is named twice is there once. */
static void release_each(const struct run *r)
{
	enum script_case is = SCRIPT_FREE;
	int64_t count = 0;
	struct grant *g;

	for (size_t i = 0; i < r->key_count; i++)
		if (value_holder(r->call, r->keys[i], r->value, NULL, NULL) == VALUE_WAIT)
			return;
	for (size_t i = 0; i < r->key_count; i++) {
		if (!look(r, r->keys[i], SCRIPT_RELEASE, &is, &g))
			return;
		count += is == SCRIPT_OURS && !is_again(r, i);
	}
	release_here(r, count);
}

/* Likewise, but no lock is released unless all are the client's own. */
static void release_all(const struct run *r)
{
	if (look_at_all(r, SCRIPT_KEEP) && look_at_all(r, SCRIPT_RELEASE))
		release_here(r, 0);
}

static void run_all_keys(const struct run *r)
{
	switch (r->script.cases[SCRIPT_OURS].act) {
	case SCRIPT_RELEASE:
		release_all(r);
		break;
	case SCRIPT_EXTEND:
	case SCRIPT_EXTEND_BY:
		/* A script that takes free locks need not ask other hosts: a lock that they hold is taken. */
		if (r->script.cases[SCRIPT_FREE].act == SCRIPT_ACQUIRE && !are_ours(r))
			acquire(r);
		else
			extend_all(r);
		break;
	case SCRIPT_KEEP:
	case SCRIPT_ACQUIRE:
	case SCRIPT_ACQUIRE_IF_YES:
		if (r->script.cases[SCRIPT_FREE].act == SCRIPT_ACQUIRE)
			acquire(r);
		else
			answer_least(r);
		break;
	}
}

static void run(const struct run *r)
{
	switch (r->script.keys) {
	case SCRIPT_FIRST_KEY:
		run_first_key(r);
		break;
	case SCRIPT_ALL_KEYS:
		run_all_keys(r);
		break;
	case SCRIPT_EACH_KEY:
		release_each(r);
		break;
	}
}

/* ---- its words ---- */

static bool parse_keys(struct run *r)
{
	const struct call *call = r->call;
	int64_t count;

	if (!number_parse(call->argv[2], &count) || count < 1 || count > LIMIT_NAMES_MAX ||
	    (size_t)count > call->argc - 3) {
		reply_error(r->client, ERROR_ERR,
			    "a script needs its number of keys, 1..64, and as many keys: %d words follow",
			    call->argc - 3);
		_Static_assert(LIMIT_NAMES_MAX == 64, "the sentence names it");
		return false;
	}
	r->keys = call->argv + 3;
	if (r->script.argv_of_keys && (size_t)count != 1 + r->script.argv_of_keys) {
		reply_error(r->client, ERROR_ERR, "this script needs %d keys, and there are %d",
			    1 + r->script.argv_of_keys, count);
		return false;
	}
	r->key_count = (size_t)count - r->script.argv_of_keys;
	r->argv = r->keys + r->key_count;
	for (size_t i = 0; i < r->key_count; i++)
		if (!args_valid_name(r->client, r->keys[i]))
			return false;
	return true;
}

/* For a script whose value begins with a token, ARGV[2] is its length. */
static bool parse_token(struct run *r)
{
	int64_t bytes;

	if (r->script.lease_at != 3 || r->script.value_at != 1)
		return true;
	if (!number_parse(r->argv[1], &bytes) || bytes < 1) {
		reply_error(r->client, ERROR_ERR, "the token that the value begins with has at least 1 byte");
		return false;
	}
	r->token_bytes = (size_t)bytes;
	return true;
}

/* redislock with a FenceKey, which is the last key. The token of the lock is larger than those before without a counter. */
static bool parse_fence(struct run *r)
{
	bool fenced = slice_eq(r->argv[3], SLICE("1"));

	if (fenced && r->key_count != 2) {
		reply_error(
			r->client, ERROR_ERR,
			"with a FenceKey this script takes one lock, whose token it answers: MLOCK takes several, and "
			"answers the token of each");
		return false;
	}
	r->key_count -= fenced;
	for (enum script_case i = 0; i < SCRIPT_CASES; i++)
		if (r->script.cases[i].answer == SCRIPT_OK_OR_TOKEN)
			r->script.cases[i].answer = fenced ? SCRIPT_TOKEN : SCRIPT_OK;
	return true;
}

static bool parse_args(struct run *r)
{
	size_t argc = r->call->argc - (size_t)(r->argv - r->call->argv);

	if (argc < r->script.argc) {
		reply_error(r->client, ERROR_ERR, "this script needs %d words behind its keys, and there are %d",
			    r->script.argc, argc);
		return false;
	}
	if (r->script.argc == 0)
		return true;
	r->value = r->argv[r->script.value_at - 1];
	if (!value_valid(r->client, r->value) || !parse_token(r))
		return false;
	if (r->script.cases[SCRIPT_FREE].answer == SCRIPT_OK_OR_TOKEN && !parse_fence(r))
		return false;
	/* So that there is one way less from here on. */
	if (r->script.cases[SCRIPT_FREE].act == SCRIPT_ACQUIRE_IF_YES) {
		if (slice_eq(r->argv[2], SLICE("yes")))
			r->script.cases[SCRIPT_FREE].act = SCRIPT_ACQUIRE;
		else
			r->script.cases[SCRIPT_FREE] = r->script.cases[SCRIPT_THEIRS];
	}
	return !r->script.unit_ms ||
	       value_lease(r->call, r->argv[r->script.lease_at - 1], r->script.unit_ms == 1000, &r->lease_ns);
}

static void parse_and_run(struct run *r)
{
	if (parse_keys(r) && parse_args(r))
		run(r);
}

/* False: it is none that is known, and that was answered. */
static bool learn(struct client *c, struct slice text, char ret_hash[SHA1_HEX_CHARS + 1], struct script *ret)
{
	const struct script *known;
	const char *why;

	sha1_hex(text, ret_hash);
	known = scripts_find(c->user->scripts, slice_of(ret_hash));
	if (known) {
		*ret = *known;
		return true;
	}
	if (!script_recognize(text, ret, &why)) {
		reply_error(c, ERROR_ERR, "%s", why);
		return false;
	}
	scripts_add(&c->user->scripts, ret_hash, ret);
	return true;
}

void cmd_eval(struct client *c, struct call *call)
{
	struct run r = { .call = call, .client = c };
	char hash[SHA1_HEX_CHARS + 1];

	if (learn(c, call->argv[1], hash, &r.script))
		parse_and_run(&r);
}

void cmd_evalsha(struct client *c, struct call *call)
{
	const struct script *known = scripts_find(c->user->scripts, call->argv[1]);
	struct run r = { .call = call, .client = c };

	if (known) {
		r.script = *known;
		parse_and_run(&r);
	} else {
		reply_error(c, ERROR_NOSCRIPT, "no script of that hash is known: send it with EVAL or SCRIPT LOAD");
	}
}

/* ---- SCRIPT ---- */

static void script_load(struct client *c, const struct call *call)
{
	char hash[SHA1_HEX_CHARS + 1];
	struct script script;

	if (call->argc != 3) {
		reply_error(c, ERROR_ERR, "SCRIPT LOAD takes a script");
	} else if (learn(c, call->argv[2], hash, &script)) {
		resp_bulk(reply_out(c), slice_of(hash));
		reply_end(c);
	}
}

static void script_exists(struct client *c, const struct call *call)
{
	resp_array(reply_out(c), call->argc - 2);
	for (size_t i = 2; i < call->argc; i++)
		resp_integer(reply_out(c), scripts_find(c->user->scripts, call->argv[i]) != NULL);
	reply_end(c);
}

void cmd_script(struct client *c, struct call *call)
{
	if (slice_is(call->argv[1], "LOAD"))
		script_load(c, call);
	else if (slice_is(call->argv[1], "EXISTS"))
		script_exists(c, call);
	else
		args_unknown_word(c, "subcommand", call->argv[1], " of 'script' command; there are LOAD and EXISTS");
}
