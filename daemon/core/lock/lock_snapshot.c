/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lock_snapshot.h"

#include <assert.h>

#include "base/mem.h"
#include "core/claim/directory_snapshot.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "protocol/limits.h"
#include "protocol/name.h"

static const int64_t LEASE_MAX_NS = LIMIT_MS_MAX * 1000000;

static const struct field request_fields[] = {
	FIELD_NUMBER(struct request, "mark", mark, 1, UINT32_MAX),
	FIELD_NUMBER(struct request, "aside", aside, 0, KINDS_MAX),
	FIELD_NUMBER(struct request, "mode", mode, MODE_EXCLUSIVE, MODE_SHARED),
	FIELD_FLAG(struct request, "queued", queued),
	FIELD_FLAG(struct request, "expired", expired),
	FIELD_FLAG(struct request, "said", said),
	FIELD_INSTANT(struct request, "asked", asked_ns),
	FIELD_NUMBER(struct request, "lease", lease_ns, 0, LEASE_MAX_NS),
	FIELD_TEXT(struct request, "data", data, LIMIT_DATA_BYTES_MAX),
	FIELD_NUMBER(struct request, "proclamation", proclamation.state, PROCLAMATION_AGAIN, PROCLAMATION_DONE),
	FIELD_NUMBER(struct request, "token", proclamation.token, 0, INT64_MAX),
	FIELD_NUMBER(struct request, "limit", limit, 0, LIMIT_PERMITS_MAX),
	FIELD_NUMBER(struct request, "count", count, 0, LIMIT_PERMITS_MAX),
};

static const struct field grant_fields[] = {
	FIELD_NUMBER(struct grant, "mark", mark, 1, UINT32_MAX),
	FIELD_NUMBER(struct grant, "mode", mode, MODE_EXCLUSIVE, MODE_SHARED),
	FIELD_FLAG(struct grant, "counted", counted),
	FIELD_FLAG(struct grant, "lost", lost),
	FIELD_NUMBER(struct grant, "loss", loss, LOSS_SESSION, LOSS_FORCED),
	FIELD_NUMBER(struct grant, "depth", depth, 1, INT64_MAX - 1),
	FIELD_NUMBER(struct grant, "token", token, 0, INT64_MAX),
	FIELD_INSTANT(struct grant, "granted", granted_ns),
	FIELD_INSTANT(struct grant, "asked", asked_ns),
	FIELD_TEXT(struct grant, "before", before, LIMIT_DATA_BYTES_MAX),
	FIELD_INSTANT(struct grant, "asked back", asked_back_ns),
	FIELD_NUMBER(struct grant, "slot", slot, 0, DELEGATION_SLOTS),
	FIELD_FLAG(struct grant, "recalled", recalled),
	FIELD_TEXT(struct grant, "data", data, LIMIT_DATA_BYTES_MAX),
};

static void request_snapshot(const struct request *r, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "request");

	assert(r->outcome.kind == OUTCOME_NONE);
	entry_number(&w, "client", bearer_number(r->client));
	entry_fields(&w, FIELDS(request_fields), r);
	entry_due(&w, "due", &r->timer);
	entry_due(&w, "age", &r->age);
	entry_end(&w);
}

void grant_snapshot(const struct grant *g, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "grant");

	entry_number(&w, "client", bearer_number(g->client));
	entry_fields(&w, FIELDS(grant_fields), g);
	entry_number(&w, "untold", g->outcome.kind == OUTCOME_LOST);
	entry_due(&w, "lease", &g->lease);
	entry_due(&w, "age", &g->age);
	entry_end(&w);
}

void slots_snapshot(const struct directory *slots, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "slots");

	directory_snapshot(slots, &w);
	entry_end(&w);
	claims_snapshot(slots, out);
}

void lock_snapshot(const struct lock *lock, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "lock");
	const struct request *r;
	const struct grant *g;

	entry_text(&w, "name", bytes_view(&lock->name));
	entry_number(&w, "kind", lock->rule->kind);
	entry_number(&w, "idle", lock->idle);
	entry_number(&w, "ended", lock->ended_ns);
	entry_number(&w, "batch", lock->batch.until_ns);
	directory_snapshot(&lock->directory, &w);
	entry_end(&w);
	claims_snapshot(&lock->directory, out);
	if (lock->slots)
		slots_snapshot(lock->slots, out);
	TAILQ_FOREACH(r, &lock->requests, link)
		request_snapshot(r, out);
	TAILQ_FOREACH(r, &lock->aside, link)
		request_snapshot(r, out);
	TAILQ_FOREACH(g, &lock->grants, link)
		grant_snapshot(g, out);
	TAILQ_FOREACH(g, &lock->lost, link)
		grant_snapshot(g, out);
	if (lock->own)
		lock->rule->snapshot(lock, out);
}

/* ---- reading ---- */

struct lock *lock_restore(struct locks *locks, const struct entry *e)
{
	struct slice name;
	struct lock *lock;
	int64_t kind;
	bool idle;

	if (!entry_get_text(e, "name", NAME_BYTES_MAX, &name) ||
	    !entry_get_number(e, "kind", KIND_LOCK, KINDS_MAX - 1, &kind) || !entry_get_flag(e, "idle", &idle))
		return NULL;
	if (!kind_is_known((uint64_t)kind) || !name_valid(name) || !flavour_has_place(locks->env->conf, name) ||
	    lock_find(locks, name)) {
		entry_refuse(e, "no lock can have the name or the kind");
		return NULL;
	}
	lock = locks->rules[kind]->make(locks, name, NULL);
	lock_become(lock, (enum kind)kind);
	if (idle && lock->rule->rest) {
		entry_refuse(e, "a semaphore is not remembered");
		return NULL;
	}
	if (idle)
		lock_park(lock);
	if (!entry_get_number(e, "ended", 0, ENTRY_INSTANT_MAX, &lock->ended_ns) ||
	    !entry_get_number(e, "batch", 0, ENTRY_INSTANT_MAX, &lock->batch.until_ns) ||
	    !directory_restore(&lock->directory, e))
		return NULL;
	if (idle)
		lock_restore_idle_directory(lock);
	if (idle && ((lock->directory.timer.place && !lock->directory.left) || lock->directory.relist ||
		     lock->directory.remembered || lock->batch.until_ns)) {
		entry_refuse(e, "something is expected of the idle lock");
		return NULL;
	}
	return lock;
}

struct client *lock_restore_client(const struct locks *locks, const struct entry *e)
{
	struct client *c;
	int64_t conn;

	if (!entry_get_number(e, "client", 0, INT64_MAX, &conn))
		return NULL;
	c = bearer_numbered(locks, conn);
	if (c)
		return c;
	entry_refuse(e, "there is no client");
	return NULL;
}

/* A request that is waited for is the client's answer, and waits in the client itself. */
static struct request *place_of(struct client *c, const struct request *read)
{
	if (read->queued)
		return mem_new(sizeof(struct request));
	return c->request || !(c->asking || c->bearer) ? NULL : client_blocking(c);
}

struct request *request_restore(struct lock *lock, const struct entry *e)
{
	struct client *c = lock_restore_client(lock->locks, e);
	struct request read = { .timer.kind = TIMER_REQUEST, .age.kind = TIMER_WAIT }, *r = NULL;

	if (!c || !entry_get_fields(e, FIELDS(request_fields), &read))
		goto refused;
	read.lock = lock;
	if (!kind_is_known(request_kind(&read)) || lock->idle ||
	    (lock->locks->rules[request_kind(&read)]->counts && (!read.limit || !read.count)))
		goto contradiction;
	r = place_of(c, &read);
	if (!r)
		goto contradiction;
	read.client = c;
	*r = read;
	request_add(r);
	if (c->bearer)
		place_enter(c, lock);
	if (r->expired)
		request_mark_expired(r);
	if (!entry_get_due(e, "due", &lock->locks->env->timers, &r->timer) ||
	    !entry_get_due(e, "age", &lock->locks->env->timers, &r->age))
		return NULL;
	return r;

contradiction:
	entry_refuse(e, "the fields do not fit the client or the lock");
refused:
	bytes_free(&read.data);
	return NULL;
}

struct grant *grant_restore(struct lock *lock, const struct entry *e)
{
	struct client *c = lock_restore_client(lock->locks, e);
	struct grant read = { .lease.kind = TIMER_LEASE, .age.kind = TIMER_HOLD }, *g;
	bool untold;

	if (!c || lock->idle || !entry_get_fields(e, FIELDS(grant_fields), &read)) {
		bytes_free(&read.data);
		bytes_free(&read.before);
		if (c && lock->idle)
			entry_refuse(e, "the lock is not in use");
		return NULL;
	}
	g = mem_new(sizeof(*g));
	read.client = c;
	read.lock = lock;
	*g = read;
	grant_add(g);
	c->is_holder = c->grant_count > c->lost_count;
	if (c->bearer)
		place_enter(c, lock);
	if (c->bearer)
		bearer_holds(c, true);
	if (g->depth < 1 || (lock->slots && g->depth > LIMIT_PERMITS_MAX)) {
		entry_refuse(e, "it has no level");
		return NULL;
	}
	if (!entry_get_flag(e, "untold", &untold))
		return NULL;
	if (g->lost && untold)
		outcome_add(&lock->locks->outcomes, &g->outcome, OUTCOME_LOST, c);
	if (!g->lost && !entry_get_due(e, "lease", &lock->locks->env->timers, &g->lease))
		return NULL;
	if (!entry_get_due(e, "age", &lock->locks->env->timers, &g->age))
		return NULL;
	/* The daemon was killed between the two steps of bid_extend(). */
	if (c->bearer && g->lease.place)
		lifeline_untie(c);
	return g;
}
