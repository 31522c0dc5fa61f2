/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/semaphore.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "core/claim/charge.h"
#include "core/claim/claim_ledger.h"
#include "core/kind/rwlock.h"
#include "core/lock/claims.h"
#include "core/lock/lock_ledger.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "protocol/limits.h"

/* Permits held for longer are watched: somebody might delete one. */
static const int64_t WATCH_AFTER_NS = 1000000000;

/* Another host that waits is told who has permits. */
static const int64_t LOOK_AFTER_NS = 1000000000;
static const int64_t EVERY_NS = 1000000000;
static const int64_t YOUNG_NS = 100000000; /* most grants end before anybody asks */

/* ---- life ---- */

static void place(struct semaphore *s, struct directory *d, const char *child, enum flavour flavour)
{
	d->part = true;
	d->flavour = flavour;
	d->state = DIRECTORY_FITS; /* the semaphore's own data say what is below */
	bytes_format(&d->path, "%s%s", bytes_view(&s->path), child);
	directory_add(d);
}

static struct lock *make_lock(struct locks *locks, struct slice name, const struct client *client)
{
	struct lock *lock = lock_find(locks, name);
	struct semaphore *s;

	if (lock && lock->slots)
		return lock;
	lock = lock_new(locks, name, KIND_SEMAPHORE, client);
	if (!lock)
		return NULL;
	s = lock->own = mem_new(sizeof(*s));
	s->locks = locks;
	s->lock = lock;
	flavour_place(locks->env->conf, name, &s->path);
	place(s, &lock->directory, "/locks", FLAVOUR_MUTEX);
	directory_init(&s->slots, locks->directories, lock);
	s->slots.payer = lock->charge.account;
	s->slots.record = lock->directory.record;
	lock->slots = &s->slots;
	place(s, &s->slots, "/leases", FLAVOUR_SLOTS);
	directory_touch(&lock->directory); /* it goes again if nothing comes of it */
	return lock;
}

static void free_semaphore(struct lock *lock)
{
	struct semaphore *s = semaphore_of(lock);

	directory_deinit(&s->slots);
	lock->slots = NULL;
	lock->own = NULL;
	bytes_free(&s->path);
	mem_free(s);
}

static void rest(struct lock *lock)
{
	struct directory *d;

	if (lock->slots->touched)
		return;
	lock->directory.extra_watch_bytes = 0;
	LOCK_DIRECTORIES(d, lock) {
		directory_forget_watch(d);
		charge_recount(d);
	}
	lock_free(lock);
}

static void suspended(struct lock *lock)
{
	semaphore_of(lock)->state = SEMAPHORE_UNKNOWN;
	semaphore_of(lock)->made = false;
}

/* ---- how many ---- */

/* The permits that its clients have. */
static int64_t granted(const struct semaphore *s)
{
	const struct grant *g;
	int64_t count = 0;

	TAILQ_FOREACH(g, &s->lock->grants, link)
		count += g->depth;
	return count;
}

static int64_t permits(const struct semaphore *s, bool held)
{
	const struct claim *c;
	int64_t count = 0;

	TAILQ_FOREACH(c, &s->slots.slots, link)
		count += !held || c->state == CLAIM_HELD;
	return count;
}

static int64_t wanted(const struct semaphore *s)
{
	return granted(s) + (s->gathering ? s->gathering->count : 0);
}

/* No more permits can be acquired now, as far as is known. */
static bool is_full(const struct semaphore *s)
{
	const struct claim *c;

	if (!s->gathering)
		return false;
	if (s->locks->env->conf->standalone)
		return wanted(s) > s->limit;
	TAILQ_FOREACH(c, &s->slots.slots, link)
		if (c->state == CLAIM_WAITING && c->listed)
			return true;
	return false;
}

/* ---- who is next ---- */

static bool holds_mutex(const struct semaphore *s)
{
	const struct claim *c = s->lock->directory.claim;

	return c && c->state == CLAIM_HELD;
}

static void ask_limit(struct semaphore *s)
{
	if (s->locks->env->conf->standalone) {
		if (s->gathering || granted(s))
			permit_limit_reject(s);
		return;
	}
	if (s->lock->request_count)
		permit_limit_settle(s);
}

/* The first request of the mutex may gather, if the limit is its own. True when it does. */
static bool begin_gathering(struct semaphore *s)
{
	struct request *r = TAILQ_FIRST(&s->lock->requests);

	if (s->locks->env->conf->standalone) {
		if (!granted(s))
			s->limit = r->limit;
	} else if (s->state != SEMAPHORE_KNOWN) {
		return false;
	} else if (!s->limit) {
		permit_limit_say(s, r);
		return false;
	}
	s->gathering = r;
	directory_touch(&s->slots);
	return true;
}

/* A semaphore's mutex is held, as long as it takes, for the request that gathers permits. */
static void gather(struct lock *lock)
{
	struct semaphore *s = semaphore_of(lock);
	struct claim *c = lock->directory.claim;

	ask_limit(s);
	if (s->gathering) {
		directory_touch(&s->slots);
		return;
	}
	if (!request_first(lock) || !c || c->state != CLAIM_HELD || !session_grants(s->locks->ensemble))
		return;
	if (!claims_may_hand_off(lock, c, MODE_EXCLUSIVE) || !begin_gathering(s))
		return;
	claims_take_token(lock, c, MODE_EXCLUSIVE, false);
	c->idle_ns = 0;
	c->granted_ns = s->locks->env->now_ns;
}

static void ended(struct lock *lock, const struct request *r)
{
	struct semaphore *s = semaphore_of(lock);

	if (s->gathering != r)
		return;
	s->gathering = NULL;
	directory_touch(&s->slots);
}

/* ---- who has them, if another host waits ---- */

/* A list showed that there are so many leases. */
static void look_at_leases(struct semaphore *s, size_t children)
{
	const struct claim *c;
	int64_t others = (int64_t)children;

	TAILQ_FOREACH(c, &s->slots.slots, link)
		others -= c->state == CLAIM_WAITING;
	s->holders.seen = s->limit && others > s->limit;
	if (s->holders.seen)
		directory_touch(&s->slots);
}

static bool waits_elsewhere(const struct semaphore *s)
{
	const struct lock *mutex = s->lock;

	if (!s->gathering)
		return s->holders.seen;
	return mutex->directory.claim && (mutex->directory.claim->rivals || mutex->directory.watch == WATCH_CONTENDED);
}

static void wake(struct semaphore *s, int64_t due_ns)
{
	heap_set_by(&s->locks->env->timers, &s->slots.timer, due_ns);
}

static void look(struct semaphore *s)
{
	const struct grant *oldest = TAILQ_FIRST(&s->lock->grants);
	int64_t due_ns;

	if (!oldest || directory_watches(&s->slots))
		return;
	due_ns = max64(oldest->granted_ns + LOOK_AFTER_NS, s->holders.looked_ns + EVERY_NS);
	if (due_ns > s->locks->env->now_ns) {
		wake(s, due_ns);
		return;
	}
	s->holders.looked_ns = s->locks->env->now_ns;
	directory_arm(&s->slots);
}

/* The grant that the lease's data describe, or NULL. Both lists are mostly in one order: the search begins at `from`. */
static struct grant *told_of(const struct semaphore *s, const struct claim *c, struct grant *from)
{
	struct grant *g = from ? from : TAILQ_FIRST(&s->lock->grants), *end = g;

	if (!c->holder_client || !g)
		return NULL;
	do {
		if (g->client->id == c->holder_client && g->granted_ns == c->holder_token)
			return g;
		g = TAILQ_NEXT(g, link);
		if (!g)
			g = TAILQ_FIRST(&s->lock->grants);
	} while (g != end);
	return NULL;
}

/* A lease whose data describe a grant that is gone, or that has fewer permits now, is free to describe another. */
static void count_told(struct semaphore *s)
{
	struct grant *g, *last = NULL;
	struct claim *c;

	TAILQ_FOREACH(g, &s->lock->grants, link)
		g->told = 0;
	TAILQ_FOREACH(c, &s->slots.slots, link) {
		g = told_of(s, c, last);
		if (g && g->told < g->depth) {
			g->told++;
			last = g;
		} else {
			c->holder_client = 0;
		}
	}
}

static struct claim *next_free(struct claim *c)
{
	while (c && (c->state != CLAIM_HELD || c->holder_client))
		c = TAILQ_NEXT(c, link);
	return c;
}

static void write_one(struct semaphore *s, struct claim *c, struct grant *g)
{
	claims_tell_permits(g);
	c->holder_client = g->client->id;
	c->holder_token = g->granted_ns;
	c->holder_ns = s->holders.told_ns = s->locks->env->now_ns;
	claim_write(c, OPERATION_HOLDER);
	g->told++;
}

static void tell(struct semaphore *s)
{
	struct locks *locks = s->locks;
	struct claim *free = TAILQ_FIRST(&s->slots.slots);
	struct grant *g;

	s->holders.checked_ns = locks->env->now_ns;
	count_told(s);
	TAILQ_FOREACH(g, &s->lock->grants, link) {
		if (g->told < g->depth && g->granted_ns + YOUNG_NS > locks->env->now_ns) {
			wake(s, g->granted_ns + YOUNG_NS);
			continue;
		}
		while (g->told < g->depth && turn_of_questions(locks->directories) && (free = next_free(free)))
			write_one(s, free, g);
	}
	if (!turn_of_questions(locks->directories))
		wake(s, locks->env->now_ns + EVERY_NS);
}

/* Looks, and writes the data that are due. It is called only while operations may be sent. */
static void tell_holders(struct semaphore *s)
{
	int64_t due_ns = max64(s->holders.checked_ns + YOUNG_NS, s->holders.told_ns + EVERY_NS);

	look(s);
	if (!waits_elsewhere(s) || TAILQ_EMPTY(&s->lock->grants))
		return;
	if (due_ns <= s->locks->env->now_ns)
		tell(s);
	else
		wake(s, due_ns);
}

/* ---- permits ---- */

/* A list showed the claim's znode among so many children. */
static void count(struct semaphore *s, struct claim *c, size_t children)
{
	c->listed = children > (size_t)s->limit;
	if (c->listed)
		return;
	c->state = CLAIM_HELD;
	claim_ledger_add(c);
	c->granted_ns = s->locks->env->now_ns;
	s->tries = 0;
}

static void counted(struct semaphore *s)
{
	bool known = s->state == SEMAPHORE_KNOWN && s->limit; /* otherwise they are listed again once it is known */
	struct claim *c;

	TAILQ_FOREACH(c, &s->slots.slots, link) {
		if (known && c->counted && c->state == CLAIM_WAITING)
			count(s, c, s->slots.children);
		c->counted = false;
	}
}

/* Before who waits is answered: that they have lost what they had tells the answer. */
static void lose_deleted(struct semaphore *s)
{
	int64_t held = permits(s, true);

	while (granted(s) > held)
		grant_lose(TAILQ_LAST(&s->lock->grants, grant_list), LOSS_DELETED);
}

static void learn(struct lock *lock, unsigned int facts)
{
	if (facts & FACT_MISSING)
		permit_limit_vanished(semaphore_of(lock));
	claims_learn(lock, facts & ~(unsigned int)FACT_LOST); /* no permit rests on the mutex */
}

static void learn_slots(struct lock *lock, unsigned int facts)
{
	const struct failure *f = &lock->slots->failure;
	struct semaphore *s = semaphore_of(lock);

	if (facts & FACT_MISSING)
		permit_limit_vanished(s);
	if (facts & FACT_COUNTED) {
		counted(s);
		lose_deleted(s);
		if (is_full(s))
			directory_touch(&lock->directory); /* a try ends with that */
		look_at_leases(s, s->slots.children);
	}
	if (facts & FACT_LOST)
		lose_deleted(s);
	if (!(facts & FACT_FAILED))
		return;
	if (f->failed != FAILED_JOINER)
		request_fail_all(lock, f->code, f->sentence.data);
	else if (s->gathering)
		request_fail(s->gathering, f->code, f->sentence.data);
}

static bool enough(const struct semaphore *s)
{
	if (s->locks->env->conf->standalone)
		return wanted(s) <= s->limit;
	return permits(s, true) >= wanted(s) && session_grants(s->locks->ensemble);
}

static void grant(struct semaphore *s)
{
	struct request *r = s->gathering;
	struct client *client = r->client;
	struct grant *g = grant_find(s->lock, client);

	if (g) {
		grant_set_depth(g, g->depth + r->count);
		grant_extend(g, r->lease_ns);
	} else {
		grant_new(r, MODE_SHARED, 0);
		g = grant_find(s->lock, client);
		grant_set_depth(g, r->count);
	}
	request_granted(r, g->depth);
}

static void join(struct semaphore *s, int64_t missing)
{
	struct directory *slots = &s->slots;
	struct account *payer = slots->payer;
	const char *why;

	if (env_halts(s->locks->env) || s->state != SEMAPHORE_KNOWN || slots->waits[TURN_RECOVER] ||
	    !directory_may_send(slots))
		return;
	slots->payer = s->gathering->client->account;
	slots->privileged = client_is_operator(s->gathering->client);
	why = charge_refuses(slots, (size_t)missing); /* it is checked for all before the first is made */
	for (; missing > 0 && !why && turn_may(slots, TURN_JOIN); missing--) {
		struct claim *c = claim_join(slots, MODE_EXCLUSIVE, false, false);

		TAILQ_INSERT_TAIL(&slots->slots, c, link);
		s->made = true;
	}
	slots->payer = payer;
	/* If permits that leave will free enough room, the request waits for that. */
	if (missing > 0 && why && TAILQ_EMPTY(&slots->leaving))
		request_fail(s->gathering, ERROR_LIMIT, why);
}

/* Lists once, when all are made; the list also covers permits that are left from another request. */
static void list_made(struct semaphore *s)
{
	if (!s->made || permits(s, false) < wanted(s) || !directory_may_send(&s->slots))
		return;
	s->made = false;
	directory_list(&s->slots, false);
}

/* Those that are not HELD yet leave first. */
static void leave(struct semaphore *s, int64_t surplus)
{
	struct claim *c, *after;

	for (int held = 0; held <= 1; held++)
		TAILQ_FOREACH_SAFE(c, &s->slots.slots, link, after)
			if (surplus > 0 && (c->state == CLAIM_HELD) == held) {
				claim_leave(c);
				surplus--;
			}
}

/* A loss that no reply has told is told by the answer to the client's waiting request. */
static void tell_losses(struct semaphore *s)
{
	struct grant *g, *after;

	TAILQ_FOREACH_SAFE(g, &s->lock->lost, link, after) {
		struct request *r = request_find(s->lock, g->client);
		enum loss loss = g->loss;

		if (!r)
			continue;
		grant_end(g);
		request_fail(r, ERROR_LOST, loss == LOSS_LEASE ? s->lock->rule->lease_over : s->lock->rule->lost);
	}
}

/* Watches the directory while permits are short, and each permit that is held for long. */
static void watch(struct semaphore *s)
{
	struct directory *slots = &s->slots;
	struct claim *c;

	if (!claims_may_ask(slots))
		return;
	if (is_full(s))
		directory_arm(slots);
	TAILQ_FOREACH(c, &slots->slots, link) {
		int64_t due = c->granted_ns + WATCH_AFTER_NS;

		if (c->state != CLAIM_HELD || c->own_watch != CLAIM_UNSET)
			continue;
		if (due <= s->locks->env->now_ns)
			claim_watch_own(c);
		else
			heap_set_by(&s->locks->env->timers, &slots->timer, due);
	}
	tell_holders(s);
}

static void settle_permits(struct semaphore *s)
{
	int64_t missing;

	request_first(s->lock);
	if (s->gathering && !holds_mutex(s))
		s->gathering = NULL; /* somebody deleted its znode, or the session is lost: it is not next any longer */
	tell_losses(s);
	lock_ledger_keep(s->lock);
	if (s->gathering && enough(s))
		grant(s);
	if (s->locks->env->conf->standalone)
		return;
	missing = wanted(s) - permits(s, false);
	if (missing > 0 && s->gathering)
		join(s, missing);
	else
		leave(s, -missing);
	list_made(s);
	watch(s);
}

static void settle_slots(struct lock *lock)
{
	const struct env *env = lock->locks->env;
	struct directory *slots = lock->slots;

	directory_untouch(slots); /* one pass: a touch meanwhile asks for another */
	settle_permits(semaphore_of(lock));
	if (claims_may_ask(slots))
		claims_ask_again(slots);
	if (env->conf->standalone || slots->pause_until_ns <= env->now_ns)
		return;
	if (slots->claim_count || slots->wanted || semaphore_of(lock)->gathering)
		heap_set_by(&lock->locks->env->timers, &slots->timer, slots->pause_until_ns);
}

static bool is_taken(const struct lock *lock, enum mode mode, bool behind)
{
	return is_full(semaphore_of(lock));
}

/* A request gathers, or may as soon as the limit is read. */
static bool serves_soon(const struct lock *lock, const struct claim *c)
{
	return semaphore_of(lock)->gathering || claims_may_hand_off(lock, c, MODE_EXCLUSIVE);
}

static bool is_known(const struct lock *lock)
{
	return semaphore_of(lock)->state == SEMAPHORE_KNOWN;
}

static void settle(struct lock *lock)
{
	struct semaphore *s = semaphore_of(lock);

	rwlock_decide(lock);
	lock->directory.extra_watch_bytes = s->state == SEMAPHORE_KNOWN ? s->path.len + BUDGET_WATCH_OVERHEAD : 0;
	if (!claims_may_ask(&lock->directory))
		return;
	claims_ask_again(&lock->directory);
	/* An orphan of ours among the permits would hold back the contender before us. */
	if (claims_watch(lock))
		directory_list(lock->slots, false);
}

/* A request with another limit than the agreed one is refused anyway. */
static bool may_add(const struct grant *g, const struct request_terms *terms)
{
	const struct semaphore *s = semaphore_of(g->lock);
	bool agreed = s->limit && (s->state == SEMAPHORE_KNOWN || s->locks->env->conf->standalone);

	return g->depth + terms->count <= terms->limit || (agreed && s->limit != terms->limit);
}

static bool is_sound(const struct lock *lock)
{
	const struct semaphore *s = semaphore_of(lock);

	return (!s->gathering || s->gathering == TAILQ_FIRST(&lock->requests)) &&
	       (s->locks->env->conf->standalone || permits(s, true) >= granted(s)) && !s->slots.claim &&
	       !s->slots.next;
}

/* ---- snapshots ---- */

static const struct field semaphore_fields[] = {
	FIELD_FLAG(struct semaphore, "incomplete", incomplete),
	FIELD_NUMBER(struct semaphore, "tries", tries, 0, SEMAPHORE_TRIES),
	FIELD_NUMBER(struct semaphore, "limit", limit, 0, LIMIT_PERMITS_MAX),
	FIELD_FLAG(struct semaphore, "seen", holders.seen),
	FIELD_INSTANT(struct semaphore, "looked", holders.looked_ns),
	FIELD_INSTANT(struct semaphore, "checked", holders.checked_ns),
	FIELD_INSTANT(struct semaphore, "told", holders.told_ns),
};

static void snapshot(const struct lock *lock, struct bytes *out)
{
	const struct semaphore *s = semaphore_of(lock);
	struct entry_writer w = entry_begin(out, "semaphore");

	assert(s->state == SEMAPHORE_UNKNOWN && !s->made);
	entry_fields(&w, FIELDS(semaphore_fields), s);
	entry_number(&w, "gathering", s->gathering != NULL);
	entry_end(&w);
}

static bool restore(struct lock *lock, const struct entry *e)
{
	struct semaphore *s = semaphore_of(lock);
	bool gathering;

	if (!slice_is(e->word, "semaphore"))
		return true;
	if (!entry_get_fields(e, FIELDS(semaphore_fields), s) || !entry_get_flag(e, "gathering", &gathering))
		return false;
	if (!gathering)
		return true;
	s->gathering = TAILQ_FIRST(&lock->requests);
	return s->gathering || entry_refuse(e, "nobody waits for permits");
}

static int64_t limit(const struct lock *lock)
{
	return semaphore_of(lock)->limit;
}

static uint64_t keeps(const struct lock *lock)
{
	return (uint64_t)limit(lock);
}

static void salvage(uint64_t kept, struct bytes *out)
{
	struct semaphore s = { .limit = (int64_t)kept };

	snapshot(&(struct lock){ .rule = &semaphore_rule, .own = &s }, out);
}

/* A gathering host has the mutex for a moment only: a try for permits waits its turn like any other request. */
const struct kind_rule semaphore_rule = {
	.kind = KIND_SEMAPHORE,
	.verb = RULE_acquire,
	.counts = true,
	.lost = "earlier permits of this semaphore were lost; ask again",
	.lease_over = "the lease of the permits ran out",
	.make = make_lock,
	.lingers = true,
	.learn = learn,
	.learn_slots = learn_slots,
	.settle = settle,
	.settle_slots = settle_slots,
	.serve = gather,
	.limit = limit,
	.is_taken = is_taken,
	.serves_soon = serves_soon,
	.may_join = is_known,
	.may_add = may_add,
	.ended = ended,
	.suspended = suspended,
	.answered = permit_limit_answered,
	.free = free_semaphore,
	.snapshot = snapshot,
	.restore = restore,
	.keeps = keeps,
	.salvage = salvage,
	.is_sound = is_sound,
	.rest = rest,
};
