/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a client. */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHARED_PERCENT = 45, DOWNGRADE_PERCENT = 15, OWNERS = 2 };

static struct ask ask_of(enum command command, int lock)
{
	return (struct ask){ .command = command, .lock = lock, .wait_ms = -1, .target = -1, .owner = -1 };
}

static bool is_request(enum command command)
{
	return command == COMMAND_LOCK || command == COMMAND_ENQUEUE || command == COMMAND_MLOCK;
}

static bool takes_token(enum command command)
{
	return command == COMMAND_UNLOCK || command == COMMAND_VALID || command == COMMAND_RENEW;
}

/*
 * Under RESP2 the end of a queued wait is known late, and how a LOCK or UNLOCK of that name would be answered is not
 * known at all. Such a client asks for its events first.
 */
bool ask_may_touch(const struct caller *c, int lock)
{
	return !c->enqueues_sent[lock] && !(c->wait[lock].on && (c->wait[lock].blind || c->hellos_sent));
}

static int held_lock(struct caller *c)
{
	int count = 0, found = -1, i;

	for (i = 0; i < c->host->w->lock_count; i++)
		if (c->holding[i].held && ask_may_touch(c, i) && rng_below(&c->host->w->rng, (uint32_t)++count) == 0)
			found = i;
	return found;
}

/* Of those that are held, or may be granted at any time. */
static int highest_held(const struct caller *c)
{
	int i, found = -1;

	for (i = 0; i < LOCKS_MAX; i++)
		if (c->holding[i].held || c->wait[i].on)
			found = i;
	return found;
}

static int waited_lock(struct caller *c)
{
	int count = 0, found = -1, i;

	for (i = 0; i < c->host->w->lock_count; i++)
		if (c->wait[i].on && rng_below(&c->host->w->rng, (uint32_t)++count) == 0)
			found = i;
	return found;
}

static int64_t lease_choose(struct world *w)
{
	return rng_percent(&w->rng, 70) ? rng_between(&w->rng, 1, 80) : rng_between(&w->rng, 80, w->timeout / MS);
}

/*
 * Between hosts nobody sees a deadlock, and a foreign contender is another host: a reader waits for the readers of its
 * own host when a writer elsewhere is between them.
 */
bool ask_is_watched(const struct host *h)
{
	return h->conf.deadlock_detection &&
	       (h->conf.standalone ||
		(h->w->host_count == 1 && !h->w->foreign_count && !h->w->mix->foreign_every_ms));
}

static bool may_deadlock(const struct caller *c, int lock)
{
	return !ask_is_watched(c->host) && (c->sent || c->permits.count || lock <= highest_held(c));
}

/* Where a deadlock could stay, locks are waited for without a limit in one order only. */
static struct ask lock_ask(struct caller *c)
{
	struct world *w = c->host->w;
	struct ask a = ask_of(COMMAND_LOCK, (int)rng_below(&w->rng, (uint32_t)w->lock_count));
	uint32_t roll = rng_below(&w->rng, 10);

	a.reenter = rng_percent(&w->rng, 50);
	a.shared = rng_percent(&w->rng, w->mix->shared_percent ? w->mix->shared_percent : SHARED_PERCENT);
	if (roll < 2 || (w->mix->tries_percent && rng_percent(&w->rng, w->mix->tries_percent)))
		a.wait_ms = 0;
	else if (roll < 5)
		a.wait_ms = rng_between(&w->rng, 1, 300);
	else if (roll < 6)
		a.wait_ms = rng_between(&w->rng, 300, w->timeout / MS);
	if (a.wait_ms < 0 && may_deadlock(c, a.lock))
		a.wait_ms = rng_between(&w->rng, 1, 2000);
	if (w->plain)
		return a;
	if (rng_percent(&w->rng, 20))
		a.lease_ms = lease_choose(w);
	if (rng_percent(&w->rng, 12) && several_choose(c, &a))
		return a;
	if (!ask_may_touch(c, a.lock))
		a.command = COMMAND_CANCEL;
	else if (rng_percent(&w->rng, 30))
		a.command = COMMAND_ENQUEUE;
	return a;
}

/* Something about a queued wait, or what came of it. */
static struct ask wait_ask(struct caller *c, int lock)
{
	struct rng *r = &c->host->w->rng;
	struct ask a = ask_of(COMMAND_CANCEL, lock);

	if (c->protocol == 2 && rng_percent(r, 70)) {
		a.command = COMMAND_EVENTS;
		a.wait_ms = rng_between(r, 0, 50);
	}
	return a;
}

static struct ask unlock_ask(struct caller *c, int lock)
{
	struct world *w = c->host->w;
	struct ask a = ask_of(COMMAND_UNLOCK, lock);

	if (w->quiet)
		return a;
	if (rng_percent(&w->rng, 40))
		a.token = c->holding[lock].token;
	else if (rng_percent(&w->rng, 5))
		a.token = c->holding[lock].token + 1 + (int64_t)rng_below(&w->rng, 3) * 1024;
	return a;
}

static struct ask downgrade_or_unlock_ask(struct caller *c, int lock)
{
	struct ask a = ask_of(COMMAND_UNLOCK, lock);

	if (!c->host->w->plain && rng_percent(&c->host->w->rng, 15) && several_choose_unlock(c, &a))
		return a;
	if (!c->host->w->quiet && rng_percent(&c->host->w->rng, c->holding[lock].shared ? 2 : DOWNGRADE_PERCENT))
		return ask_of(COMMAND_DOWNGRADE, lock);
	return unlock_ask(c, lock);
}

static struct ask revocation_ask(struct caller *c, int lock)
{
	struct world *w = c->host->w;

	if (rng_percent(&w->rng, 60))
		return ask_of(COMMAND_REVOKE, lock);
	w->forces[lock]++;
	return ask_of(COMMAND_FORCEUNLOCK, lock);
}

static struct ask other_ask(struct caller *c)
{
	static const enum command others[] = {
		COMMAND_VALID, COMMAND_VALID, COMMAND_HOLDERS, COMMAND_QUEUE, COMMAND_LOCKS, COMMAND_EVENTS,
		COMMAND_EVENTS, COMMAND_HELLO, COMMAND_HELLO, COMMAND_PING, COMMAND_INFO, COMMAND_CLIENT, COMMAND_CLIENT,
		COMMAND_CLIENT, COMMAND_RESET, COMMAND_UNLOCK, COMMAND_RENEW, COMMAND_CANCEL, COMMAND_DOWNGRADE, COMMAND_QUIT,
		COMMAND_WHY, COMMAND_HOSTS, COMMAND_REVOKE, COMMAND_FORCEUNLOCK,
	};
	struct rng *r = &c->host->w->rng;
	struct ask a = ask_of(others[rng_below(r, sizeof(others) / sizeof(others[0]))],
			      (int)rng_below(r, (uint32_t)c->host->w->lock_count));

	/* Now and then, and never in the worlds of one lock: what they show needs their time for it. */
	if (a.command == COMMAND_PING && a.lock % 2 == 1 && caller_is_operator(c))
		a.command = COMMAND_AUDIT;
	if ((takes_token(a.command) || a.command == COMMAND_DOWNGRADE) && !ask_may_touch(c, a.lock))
		a.command = COMMAND_CANCEL;
	a.all = a.command == COMMAND_LOCKS && rng_percent(r, 80);
	if (a.command == COMMAND_RENEW)
		a.lease_ms = lease_choose(c->host->w);
	if (a.command == COMMAND_EVENTS)
		a.wait_ms = rng_between(r, 0, 200);
	if (a.command == COMMAND_HELLO)
		a.token = 2 + rng_below(r, 2);
	if (a.command == COMMAND_FORCEUNLOCK)
		a = revocation_ask(c, a.lock);
	if (a.command == COMMAND_CLIENT)
		a.target = (int)rng_below(r, (uint32_t)c->host->client_count);
	if (a.command == COMMAND_CLIENT && rng_percent(r, 30))
		a.owner = (int)rng_below(r, OWNERS + 1);
	return a;
}

static struct ask quiet_ask(struct caller *c)
{
	int lock = held_lock(c), waited = waited_lock(c);
	struct ask a;

	if (waited >= 0 && (lock < 0 || rng_percent(&c->host->w->rng, 50)))
		return wait_ask(c, waited);
	if (lock >= 0)
		return unlock_ask(c, lock);
	a = ask_of(c->done ? COMMAND_COUNT : COMMAND_LOCK, (int)(c->conn % (uint32_t)c->host->w->lock_count));
	a.shared = rng_percent(&c->host->w->rng, SHARED_PERCENT);
	return a;
}

/* Not all the time: orphans are also to be met by other lists. */
static struct ask auditor_ask(struct caller *c)
{
	struct world *w = c->host->w;

	if (w->quiet ? c->done : !rng_percent(&w->rng, 2))
		return ask_of(COMMAND_COUNT, 0);
	return ask_of(COMMAND_AUDIT, 0);
}

struct ask ask_choose(struct caller *c)
{
	struct rng *r = &c->host->w->rng;
	int lock, waited;

	if (c->auditor)
		return auditor_ask(c);
	if (permits_turn(c))
		return permits_ask(c);
	if (c->host->w->quiet)
		return quiet_ask(c);
	lock = held_lock(c);
	waited = waited_lock(c);
	if (c->id == 0 && c->wants_pushes) {
		struct ask a = ask_of(COMMAND_HELLO, 0);

		a.token = 3;
		return a;
	}
	if (c->host->w->owners && !c->owner && lock < 0 && waited < 0 && rng_percent(r, 20)) {
		struct ask a = ask_of(COMMAND_CLIENT, 0);

		a.owner = 1 + (int)rng_below(r, OWNERS);
		return a;
	}
	if (c->host->w->mix->demands_percent && rng_percent(r, c->host->w->mix->demands_percent))
		return revocation_ask(c, (int)rng_below(r, (uint32_t)c->host->w->lock_count));
	if (waited >= 0 && rng_percent(r, c->protocol == 2 ? 60 : 10))
		return wait_ask(c, waited);
	if (lock >= 0 && !c->host->w->plain && rng_percent(r, 10)) {
		struct ask a = unlock_ask(c, lock);

		a.command = COMMAND_RENEW;
		a.lease_ms = lease_choose(c->host->w);
		return a;
	}
	if (lock >= 0 && rng_percent(r, 70))
		return downgrade_or_unlock_ask(c, lock);
	if (rng_percent(r, lock >= 0 ? 50 : 85))
		return lock_ask(c);
	return other_ask(c);
}

struct slice ask_put_number(char **at, int64_t value)
{
	char *begin = *at;

	*at += sprintf(begin, "%" PRId64, value) + 1;
	return slice_of(begin);
}

static bool names_lock(enum command command)
{
	return is_request(command) || takes_token(command) || command == COMMAND_CANCEL || command == COMMAND_DOWNGRADE ||
	       command == COMMAND_HOLDERS || command == COMMAND_QUEUE || command == COMMAND_WHY ||
	       command == COMMAND_REVOKE || command == COMMAND_FORCEUNLOCK ||
	       command == COMMAND_LEADER || command == COMMAND_OBSERVE || command == COMMAND_UNOBSERVE;
}

size_t ask_words(const struct caller *c, const struct ask *a, struct slice *words, char *buffer)
{
	static const char *const owners[OWNERS] = { "x", "y" };
	const struct world *w = c->host->w;
	size_t n = 0;

	if (a->permits)
		return permits_words(c, a, words, buffer);
	if (w->election[a->lock] && !a->several && (is_request(a->command) || a->command == COMMAND_UNLOCK))
		return elections_words(c, a, words, buffer);
	words[n++] = slice_of(command_table[a->command].word);
	if (a->several)
		n += several_words(w, a, words + n, &buffer);
	if (names_lock(a->command) && !a->several)
		words[n++] = slice_of(w->lock_name[a->lock]);
	if (a->all) {
		words[n++] = SLICE("*");
		words[n++] = SLICE("ALL");
	}
	if (a->command == COMMAND_RENEW)
		words[n++] = ask_put_number(&buffer, a->lease_ms);
	if (is_request(a->command) && a->shared && a->wait_ms % 2)
		words[n++] = SLICE("SHARED");
	if (a->command == COMMAND_CLIENT && a->owner >= 0) {
		words[n++] = SLICE("SETINFO");
		words[n++] = SLICE("OWNER");
		words[n++] = a->owner ? slice_of(owners[a->owner - 1]) : (struct slice){ 0 };
	} else if (a->command == COMMAND_CLIENT) {
		words[n++] = SLICE("UNBLOCK");
		words[n++] = ask_put_number(&buffer, (int64_t)c->host->clients[a->target].id);
	}
	if (a->command == COMMAND_HELLO)
		words[n++] = ask_put_number(&buffer, a->token);
	if (is_request(a->command) && a->lease_ms) {
		words[n++] = SLICE("LEASE");
		words[n++] = ask_put_number(&buffer, a->lease_ms);
	}
	if ((is_request(a->command) || a->command == COMMAND_EVENTS) && a->wait_ms >= 0) {
		words[n++] = SLICE("WAIT");
		words[n++] = ask_put_number(&buffer, a->wait_ms);
	}
	if (is_request(a->command) && !a->several && a->lease_ms % 2) {
		words[n++] = SLICE("DATA");
		words[n++] = SLICE("d");
	}
	if (is_request(a->command) && a->shared && a->wait_ms % 2 == 0)
		words[n++] = SLICE("shared");
	if (is_request(a->command) && a->reenter)
		words[n++] = SLICE("REENTER");
	if (a->slot) {
		words[n++] = SLICE("SLOT");
		words[n++] = ask_put_number(&buffer, a->slot);
	}
	if (takes_token(a->command) && a->token) {
		words[n++] = SLICE("TOKEN");
		words[n++] = ask_put_number(&buffer, a->token);
	}
	return n;
}
