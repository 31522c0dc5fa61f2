/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/aside.h"

#include "core/client/ask.h"
#include "core/client/deadlock.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"

static void decide(struct request *r)
{
	struct lock *lock = r->lock;
	struct refusal no;

	if (!ask_fits(lock, request_kind(r), &no)) {
		bytes_char(&no.sentence, '\0');
		request_fail(r, no.code, no.sentence.data);
		bytes_free(&no.sentence);
		return;
	}
	TAILQ_REMOVE(&lock->aside, r, link);
	lock->aside_count--;
	r->aside = 0;
	TAILQ_INSERT_TAIL(&lock->requests, r, link);
	lock->request_count++;
	if (r->expired)
		request_mark_expired(r);
	if (lock->rule->begun)
		lock->rule->begun(lock, r);
	directory_touch(&lock->directory);
	if (r->client->asking)
		deadlock_look_at(r->client); /* only from now on it waits for others */
}

/* A lock with two directories is another struct than one with one directory. */
static void turn(struct lock *lock)
{
	struct request_list aside = TAILQ_HEAD_INITIALIZER(aside);
	struct request *r = TAILQ_FIRST(&lock->aside);
	enum kind kind = request_kind(r);
	struct locks *locks = lock->locks;
	struct bytes name = { 0 };

	bytes_slice(&name, bytes_view(&lock->name));
	TAILQ_CONCAT(&aside, &lock->aside, link);
	lock->aside_count = 0;
	lock_rest(lock);
	locks->restoring = true; /* the requests were admitted, whatever the limits are now */
	lock = locks->rules[kind]->make(locks, bytes_view(&name), r->client);
	locks->restoring = false;
	bytes_free(&name);
	lock_become(lock, kind);
	lock->mixed = true;
	TAILQ_CONCAT(&lock->aside, &aside, link);
	TAILQ_FOREACH(r, &lock->aside, link) {
		r->lock = lock;
		lock->aside_count++;
		if (r->client->bearer && r->client->bearer->place.lock)
			r->client->bearer->place.lock = lock;
	}
}

void aside_settle(struct lock *lock)
{
	int left = lock->locks->env->conf->all_in_pieces ? 1 : ASIDE_AT_ONCE;
	struct request *r;

	while ((r = TAILQ_FIRST(&lock->aside)) && (request_kind(r) == lock->rule->kind || lock_is_confirmed(lock))) {
		if (!left-- || lock->locks->searched >= DEADLOCK_EDGES_AT_ONCE)
			directory_touch_later(&lock->directory);
		if (lock->directory.later)
			return;
		decide(r);
	}
	if (!r)
		lock_rest(lock);
	else if (!lock->directory.touched && !(lock->slots && lock->slots->touched) && !lock_in_use(lock))
		turn(lock);
}
