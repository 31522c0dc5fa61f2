/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks as programs of Redis take them: SET with NX, SETNX, GET, EXISTS, TTL, PTTL, DEL, UNLINK, EXPIRE, PEXPIRE; and
 * TOKEN. What names no value acts for the process that has set the lock, whichever of its connections asks.
 */
#include "core/client/bid.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/command/value.h"
#include "core/hosts/participant.h"
#include "core/lock/bearer.h"
#include "protocol/limits.h"
#include "protocol/number.h"

static const int64_t MS_PER_S = 1000;

static const struct slice NO_VALUE = { 0 };

/* ---- SET ---- */

struct set {
	bool nx, xx;
	int64_t lease_ns; /* 0: none given */
};

/* An instant as the clock of the wall shows it. */
static bool parse_until(const struct call *call, struct slice word, bool in_s, int64_t *ret_ns)
{
	const struct env *env = call->client->locks->env;
	int64_t number, unit = in_s ? MS_PER_S : 1, left_ms;

	if (number_parse(word, &number) && number >= 1 && number <= INT64_MAX / MS_PER_S) {
		left_ms = number * unit - env_wall_ms(env, env->now_ns);
		/* The instant was in the future when the client asked; other hosts' answers have taken until now. */
		if (left_ms < 1 && call->client->lookup)
			left_ms = 1;
		if (left_ms >= 1 && left_ms <= LIMIT_MS_MAX) {
			*ret_ns = left_ms * NS_PER_MS;
			return true;
		}
	}
	value_lease_error(call);
	return false;
}

static bool parse_time(const struct call *call, struct slice word, size_t at, struct set *s)
{
	bool in_s = slice_is(word, "EX") || slice_is(word, "EXAT"), until = word.len == 4;

	if (s->lease_ns || at == call->argc) {
		args_syntax_error(call);
		return false;
	}
	return until ? parse_until(call, call->argv[at], in_s, &s->lease_ns)
		     : value_lease(call, call->argv[at], in_s, &s->lease_ns);
}

static bool is_time(struct slice word)
{
	return slice_is(word, "PX") || slice_is(word, "EX") || slice_is(word, "PXAT") || slice_is(word, "EXAT");
}

static bool is_for_data(struct slice word)
{
	return slice_is(word, "GET") || slice_is(word, "KEEPTTL") || slice_is(word, "IFEQ") || slice_is(word, "IFNE") ||
	       slice_is(word, "IFDEQ") || slice_is(word, "IFDNE");
}

/* IFEQ with the value that is set. */
static bool is_own(const struct call *call, size_t at)
{
	return slice_is(call->argv[at], "IFEQ") && at + 1 < call->argc && slice_eq(call->argv[at + 1], call->argv[2]);
}

/* Values are secrets: no sentence shows a word that may be one. */
static bool parse_set(const struct call *call, struct set *s)
{
	for (size_t at = 3; at < call->argc; at++) {
		struct slice word = call->argv[at];

		if (is_time(word)) {
			if (!parse_time(call, word, ++at, s))
				return false;
		} else if (slice_is(word, "NX") && !s->xx) {
			s->nx = true;
		} else if (slice_is(word, "XX") && !s->nx) {
			s->xx = true;
		} else if (is_own(call, at) && !s->nx) {
			s->xx = true; /* which extends no lock of another value */
			at++;
		} else if (is_for_data(word)) {
			reply_error(
				call->client, ERROR_ERR,
				"a lock keeps the value that it was taken with: SET takes neither GET nor KEEPTTL, IFNE, "
				"IFDEQ and IFDNE here, and IFEQ, which extends a lock, only with that value and without NX");
			return false;
		} else {
			args_syntax_error(call);
			return false;
		}
	}
	return true;
}

static const char *why_not(const struct set *s)
{
	if (!s->nx && !s->xx)
		return "lockbroker keeps locks and no other data: say NX to take the lock, XX or IFEQ to extend it";
	if (s->xx && !s->lease_ns)
		return "XX and IFEQ extend a lock: say how long it is to be held from now on, with PX, EX, PXAT or EXAT";
	return NULL;
}

/* Without a lease it is held until the process ends that asks. */
static void take(struct call *call, int64_t lease_ns, struct bid_answer granted, struct bid_answer taken)
{
	const struct bid_terms terms = {
		.names = &call->name,
		.count = 1,
		.value = call->argv[2],
		.lease_ns = lease_ns,
		.granted = granted,
		.taken = taken,
	};

	value_set(call, &terms);
}

static void extend(struct client *c, struct call *call, int64_t lease_ns)
{
	const struct forward_terms there = { .act = FORWARD_EXTEND, .value = call->argv[2], .lease_ns = lease_ns };
	enum value_holder is;
	struct grant *g;

	is = value_holder(call, call->name, call->argv[2], &g, NULL);
	if (is == VALUE_ELSEWHERE)
		is = value_forward(call, call->name, &there);
	else if (is == VALUE_MINE)
		bid_extend(g, lease_ns, false);
	if (is == VALUE_MINE)
		reply_status(c, "OK");
	else if (is != VALUE_WAIT)
		reply_nil(c);
}

void cmd_set(struct client *c, struct call *call)
{
	static const struct bid_answer ok = { .kind = BID_OK }, nil = { .kind = BID_NIL };
	struct set s = { 0 };
	const char *why;

	if (!parse_set(call, &s))
		return;
	why = why_not(&s);
	if (why)
		reply_error(c, ERROR_ERR, "%s: %s", why, call->name);
	else if (!value_valid(c, call->argv[2]))
		return;
	else if (s.nx)
		take(call, s.lease_ns, ok, nil);
	else
		extend(c, call, s.lease_ns);
}

void cmd_setnx(struct client *c, struct call *call)
{
	static const struct bid_answer yes = { BID_NUMBER, 1 }, no = { BID_NUMBER, 0 };

	if (value_valid(c, call->argv[2]))
		take(call, 0, yes, no);
}

/* ---- DELIFEQ and DELEX ---- */

static void release(struct client *c, struct call *call, struct slice value)
{
	const struct forward_terms there = { .act = FORWARD_RELEASE, .value = value };
	enum value_holder is;
	struct grant *g;

	if (!value_valid(c, value))
		return;
	is = value_holder(call, call->name, value, &g, NULL);
	if (is == VALUE_ELSEWHERE)
		is = value_forward(call, call->name, &there);
	else if (is == VALUE_MINE)
		bid_release(g);
	if (is != VALUE_WAIT)
		reply_integer_settled(c, is == VALUE_MINE);
}

void cmd_delifeq(struct client *c, struct call *call)
{
	release(c, call, call->argv[2]);
}

void cmd_delex(struct client *c, struct call *call)
{
	if (call->argc == 4 && slice_is(call->argv[2], "IFEQ"))
		release(c, call, call->argv[3]);
	else
		reply_error(
			c, ERROR_ERR,
			"DELEX releases a lock with IFEQ and its value; a lock that this process has set is released by "
			"DEL: %s",
			call->name);
}

/* ---- what there is ---- */

void cmd_get(struct client *c, struct call *call)
{
	const struct lookup_fact *fact = NULL;
	struct grant *g = NULL;
	enum value_holder is = value_holder(call, call->name, NO_VALUE, &g, &fact);

	if (is == VALUE_WAIT)
		return;
	value_write(c, is, g, fact);
	reply_end(c);
}

void cmd_exists(struct client *c, struct call *call)
{
	int64_t count = 0;

	for (size_t i = 1; i < call->argc; i++) {
		enum value_holder is = value_holder(call, call->argv[i], NO_VALUE, NULL, NULL);

		if (is == VALUE_WAIT)
			return;
		count += is != VALUE_NOBODY;
	}
	reply_integer(c, count);
}

/* The rest of a lease. As Redis answers it: -1: it has none, or none is known; -2: nobody holds it. */
void cmd_ttl(struct client *c, struct call *call)
{
	struct grant *g = NULL;
	enum value_holder is = value_holder(call, call->name, NO_VALUE, &g, NULL);
	int64_t left_ms = is == VALUE_NOBODY ? -2 : value_left_ms(g);

	if (is != VALUE_WAIT)
		reply_integer(c, left_ms < 0 || call->command == COMMAND_PTTL ? left_ms
									      : (left_ms + MS_PER_S / 2) / MS_PER_S);
}

void cmd_token(struct client *c, struct call *call)
{
	const struct lookup_fact *fact;
	struct grant *g;

	if (!value_valid(c, call->argv[2]))
		return;
	switch (value_holder(call, call->name, call->argv[2], &g, &fact)) {
	case VALUE_WAIT:
		break;
	case VALUE_NOBODY:
	case VALUE_OTHER:
		reply_error(c, ERROR_NOTHELD, "it is not held under that value: %s", call->name);
		break;
	case VALUE_ELSEWHERE:
		reply_error(c, ERROR_UNAVAILABLE, "%s is held %s: ask for its token there, with the value",
			    call->name, bytes_view(&fact->said));
		break;
	case VALUE_MINE:
		reply_integer(c, g->token);
		break;
	}
}

/* ---- for the process that has set it ---- */

/* If one of the processes is not known, they may be the same. `bearer` NULL: it is on another host, or there is none. */
static const char *doubt(const struct client *c, const struct client *bearer)
{
	if (!c->pid || !c->started)
		return "; which process asks could not be seen when it connected: show the value, or connect again";
	if (bearer && !(bearer->pid && bearer->started))
		return "; which process that is could not be seen when it connected: show the value";
	return "";
}

static void deny(struct client *c, struct slice name, struct slice holder, const struct client *bearer)
{
	reply_error(c, ERROR_DENIED,
		    "%s is held %s: without its value only the process that has set it may release or extend it%s", name,
		    holder, doubt(c, bearer));
}

static void deny_here(const struct call *call, const struct grant *g)
{
	struct participant p = participant_holder(g);
	struct bytes said = { 0 };

	participant_veil(&p, call->client, bytes_view(&g->lock->name));
	participant_say(&said, &p);
	if (!g->client->bearer)
		bytes_text(&said, ", not by SET");
	deny(call->client, bytes_view(&g->lock->name), bytes_view(&said), g->client->bearer ? g->client : NULL);
	bytes_free(&said);
}

/* The grant of the process' own. *ret: NULL: nobody holds it. False: the command returns. */
static bool own(struct call *call, struct slice name, struct grant **ret)
{
	const struct lookup_fact *fact;
	struct grant *g;

	*ret = NULL;
	switch (value_holder(call, name, NO_VALUE, &g, &fact)) {
	case VALUE_WAIT:
		return false;
	case VALUE_NOBODY:
		return true;
	case VALUE_ELSEWHERE:
		deny(call->client, name, bytes_view(&fact->said), NULL);
		return false;
	case VALUE_MINE:
	case VALUE_OTHER:
		break;
	}
	if (!g->client->bearer || !bearer_is_of(g->client, call->client)) {
		deny_here(call, g);
		return false;
	}
	*ret = bearer_is_told(g->client) ? g : NULL;
	return true;
}

/* All are looked at before any is released. */
void cmd_del(struct client *c, struct call *call)
{
	struct grant *g;
	int64_t count = 0;

	for (size_t i = 1; i < call->argc; i++)
		if (!own(call, call->argv[i], &g))
			return;
	for (size_t i = 1; i < call->argc; i++) {
		struct lock *lock = lock_find(c->locks, call->argv[i]);

		g = lock ? bearer_grant(lock, c) : NULL;
		if (!g)
			continue;
		bid_release(g);
		count++;
	}
	reply_integer_settled(c, count);
}

void cmd_expire(struct client *c, struct call *call)
{
	int64_t lease_ns;
	struct grant *g;

	if (!value_lease(call, call->argv[2], call->command == COMMAND_EXPIRE, &lease_ns) || !own(call, call->name, &g))
		return;
	if (g)
		bid_extend(g, lease_ns, false);
	reply_integer(c, g != NULL);
}
