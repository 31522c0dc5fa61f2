/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/latch.h"

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/kind/election.h"
#include "core/kind/kinds.h"
#include "core/kind/rwlock.h"
#include "core/kind/semaphore.h"
#include "core/lock/claims.h"
#include "core/lock/lock_ledger.h"
#include "core/port/entry.h"
#include "protocol/limits.h"

enum { LIMIT_BITS = 20 };

static const struct kind_rule latch_rule;

/* The product's kinds, and this one. */
#define ALL(X) KINDS(X) X(LATCH, latch, "a latch")

#define X(name, word, noun) [KIND_##name] = { #word, noun },
const struct kind_words kind_words[KINDS_MAX] = { ALL(X) };
#undef X

#define X(name, word, noun) [KIND_##name] = &word##_rule,
const struct kind_rule *const kind_rules[KINDS_MAX] = { ALL(X) };
#undef X

struct latch *latch_of(const struct lock *lock)
{
	return lock->rule == &latch_rule ? lock->own : NULL;
}

static bool is_open(const struct lock *lock)
{
	const struct latch *l = latch_of(lock);

	return l && l->arrived >= l->limit;
}

/* ---- what it keeps ---- */

static void close_latch(struct lock *lock)
{
	mem_free(lock->own);
	lock->own = NULL;
}

/* The ledger has the arrival before it has the grant that it allows. */
static void begun(struct lock *lock, const struct request *r)
{
	struct latch *l = latch_of(lock);

	if (!l) {
		l = lock->own = mem_new(sizeof(*l));
		l->limit = r->limit;
	}
	if (r->limit == l->limit)
		l->arrived++;
	lock_ledger_keep(lock);
}

static const struct field latch_fields[] = {
	FIELD_NUMBER(struct latch, "arrived", arrived, 1, INT64_MAX >> LIMIT_BITS),
	FIELD_NUMBER(struct latch, "limit", limit, 1, LIMIT_PERMITS_MAX),
};

static void write_latch(const struct latch *l, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "latch");

	entry_fields(&w, FIELDS(latch_fields), l);
	entry_end(&w);
}

static void snapshot(const struct lock *lock, struct bytes *out)
{
	write_latch(latch_of(lock), out);
}

/* Whoever waited at a process that was killed is gone: a latch that nobody has passed is closed. */
static bool restore(struct lock *lock, const struct entry *e)
{
	if (!slice_is(e->word, "latch") || (!lock->request_count && !lock->grant_count))
		return true;
	if (lock->own)
		return entry_refuse(e, "it has been counted already");
	lock->own = mem_new(sizeof(struct latch));
	return entry_get_fields(e, FIELDS(latch_fields), lock->own);
}

static uint64_t keeps(const struct lock *lock)
{
	const struct latch *l = latch_of(lock);

	return l ? (uint64_t)l->arrived << LIMIT_BITS | (uint64_t)l->limit : 0;
}

static void salvage(uint64_t kept, struct bytes *out)
{
	if (kept)
		write_latch(&(struct latch){ .arrived = (int64_t)(kept >> LIMIT_BITS),
					     .limit = (int64_t)(kept & ((1 << LIMIT_BITS) - 1)) }, out);
}

static bool is_sound(const struct lock *lock)
{
	return (!lock->grant_count || is_open(lock)) && (!lock->own || lock->request_count || lock->grant_count);
}

/* ---- what it decides ---- */

static void serve(struct lock *lock)
{
	if (is_open(lock))
		rwlock_serve(lock);
}

static bool is_taken(const struct lock *lock, enum mode mode, bool behind)
{
	return !is_open(lock) || rwlock_is_taken(lock, mode, behind);
}

static bool serves_soon(const struct lock *lock, const struct claim *c)
{
	(void)c;
	return !is_open(lock);
}

static void refuse_others(struct lock *lock)
{
	const struct latch *l = latch_of(lock);
	struct request *r, *after;

	TAILQ_FOREACH_SAFE(r, &lock->requests, link, after)
		if (r->limit != l->limit)
			request_fail(r, ERROR_MISMATCH, "this latch opens for another number of clients");
}

static void settle(struct lock *lock)
{
	refuse_others(lock);
	rwlock_decide(lock);
	if (lock->own && !lock->request_count && !lock->grant_count) {
		close_latch(lock);
		lock_ledger_keep(lock);
	}
	if (!claims_may_ask(&lock->directory))
		return;
	claims_ask_again(&lock->directory);
	claims_watch(lock);
}

/* ---- what it says ---- */

static int64_t limit(const struct lock *lock)
{
	return latch_of(lock) ? latch_of(lock)->limit : 0;
}

static const char *obstacle(const struct lock *lock)
{
	return lock->request_count && !is_open(lock) ? "fewer clients have arrived than open it" : NULL;
}

/* ---- its words ---- */

static void arrive(struct call *call)
{
	if (!args_parse_limit(call->client, call->argv[2], &call->options.limit) ||
	    !args_parse_options(call, 3, OPTION_WAIT | OPTION_LEASE))
		return;
	call->options.given |= OPTION_SHARED;
	call_ask(call, (enum kind)KIND_LATCH);
}

static void leave(struct call *call)
{
	struct grant *g = call_grant(call, (enum kind)KIND_LATCH, "the latch was lost before it was left", "");

	if (!g)
		return;
	grant_end(g);
	reply_integer_settled(call->client, 1);
}

static bool command(struct client *c, size_t argc, const struct slice *argv)
{
	bool arrives = argc >= 3 && slice_is(argv[0], "ARRIVE"), leaves = argc == 2 && slice_is(argv[0], "LEAVE");
	struct call call = {
		.client = c, .command = COMMAND_ACQUIRE, .argc = argc, .argv = argv, .name = argc > 1 ? argv[1] : SLICE(""),
		.options = { .wait_ns = -1, .token = -1, .count = 1 },
	};

	if (!arrives && !leaves)
		return false;
	call.lock = lock_find(c->locks, call.name);
	if (!call.lock && !args_valid_name(c, call.name))
		return true;
	call.grant = call.lock ? grant_find(call.lock, c) : NULL;
	if (arrives)
		arrive(&call);
	else
		leave(&call);
	return true;
}

static const struct kind_rule latch_rule = {
	.kind = (enum kind)KIND_LATCH,
	.verb = RULE_lock,
	.counts = true,
	.lost = "an earlier passage of this latch was lost; arrive again",
	.held = "this client has passed it already",
	.waits = "this client has arrived already",
	.lease_over = "the lease of the passage ran out",
	.lingers = true,
	.make = lock_make,
	.learn = claims_learn,
	.settle = settle,
	.serve = serve,
	.limit = limit,
	.obstacle = obstacle,
	.is_taken = is_taken,
	.serves_soon = serves_soon,
	.begun = begun,
	.command = command,
	.free = close_latch,
	.snapshot = snapshot,
	.restore = restore,
	.keeps = keeps,
	.salvage = salvage,
	.is_sound = is_sound,
};
