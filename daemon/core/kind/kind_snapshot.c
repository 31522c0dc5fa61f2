/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/kind_snapshot.h"

#include <assert.h>

#include "core/kind/observe.h"
#include "core/kind/semaphore.h"
#include "core/lock/lock_snapshot.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "core/znode/record.h"
#include "protocol/limits.h"

static const struct field semaphore_fields[] = {
	FIELD_FLAG(struct semaphore, "incomplete", incomplete),
	FIELD_NUMBER(struct semaphore, "tries", tries, 0, SEMAPHORE_TRIES),
	FIELD_NUMBER(struct semaphore, "limit", limit, 0, LIMIT_PERMITS_MAX),
	FIELD_FLAG(struct semaphore, "seen", holders.seen),
	FIELD_INSTANT(struct semaphore, "looked", holders.looked_ns),
	FIELD_INSTANT(struct semaphore, "checked", holders.checked_ns),
	FIELD_INSTANT(struct semaphore, "told", holders.told_ns),
};

static const struct field observation_fields[] = {
	FIELD_FLAG(struct observation, "known", known),
	FIELD_FLAG(struct observation, "missing", missing),
	FIELD_NUMBER(struct observation, "token", token, 0, INT64_MAX),
	FIELD_TEXT(struct observation, "host", host, RECORD_VALUE_MAX),
	FIELD_TEXT(struct observation, "data", data, RECORD_VALUE_MAX),
};

static const struct field observer_fields[] = {
	FIELD_NUMBER(struct observer, "mark", mark, 1, UINT32_MAX),
	FIELD_FLAG(struct observer, "told", told),
	FIELD_NUMBER(struct observer, "token", token, 0, INT64_MAX),
};

static void semaphore_snapshot(const struct semaphore *s, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "semaphore");

	assert(s->state == SEMAPHORE_UNKNOWN && !s->made);
	entry_fields(&w, FIELDS(semaphore_fields), s);
	entry_number(&w, "gathering", s->gathering != NULL);
	entry_end(&w);
}

void observer_snapshot(const struct observer *o, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "observer");

	assert(o->outcome.kind == OUTCOME_NONE);
	entry_number(&w, "client", o->client->conn);
	entry_fields(&w, FIELDS(observer_fields), o);
	entry_end(&w);
}

static void observation_snapshot(const struct observation *o, struct bytes *out)
{
	const struct observer *observer;
	struct entry_writer w;

	assert(o->state == OBSERVE_IDLE);
	TAILQ_FOREACH(observer, &o->observers, link)
		observer_snapshot(observer, out);
	w = entry_begin(out, "observation");
	entry_fields(&w, FIELDS(observation_fields), o);
	entry_number(&w, "looking", o->left != 0);
	entry_end(&w);
}

void kind_snapshot(const struct lock *lock, struct bytes *out)
{
	if (lock->semaphore)
		semaphore_snapshot(lock->semaphore, out);
	if (lock->observation)
		observation_snapshot(lock->observation, out);
}

static bool semaphore_restore(struct lock *lock, const struct entry *e)
{
	struct semaphore *s = lock->semaphore;
	bool gathering;

	if (!s)
		return entry_refuse(e, "the lock is no semaphore");
	if (!entry_get_fields(e, FIELDS(semaphore_fields), s) || !entry_get_flag(e, "gathering", &gathering))
		return false;
	if (!gathering)
		return true;
	s->gathering = TAILQ_FIRST(&lock->requests);
	return s->gathering || entry_refuse(e, "nobody waits for permits");
}

struct observer *observer_restore(struct lock *lock, const struct entry *e)
{
	struct client *c = lock_restore_client(lock->locks, e);
	struct observer *o;

	if (!c)
		return NULL;
	if (lock->rule->kind != KIND_ELECTION || lock->idle || observe_find(lock, c)) {
		entry_refuse(e, "the lock cannot be observed by the client");
		return NULL;
	}
	o = observe_add(lock, c);
	return entry_get_fields(e, FIELDS(observer_fields), o) ? o : NULL;
}

static bool observation_restore(struct lock *lock, const struct entry *e)
{
	bool looking;

	if (!lock->observation)
		return entry_refuse(e, "nobody observes the lock");
	if (!entry_get_fields(e, FIELDS(observation_fields), lock->observation) ||
	    !entry_get_flag(e, "looking", &looking))
		return false;
	if (looking && lock->observation->left)
		return entry_refuse(e, "they are looked at already");
	if (looking)
		observe_look_again(lock);
	return true;
}

bool kind_restore(struct lock *lock, const struct entry *e)
{
	if (slice_eq(e->word, SLICE("semaphore")))
		return semaphore_restore(lock, e);
	if (slice_eq(e->word, SLICE("observation")))
		return observation_restore(lock, e);
	return true;
}
