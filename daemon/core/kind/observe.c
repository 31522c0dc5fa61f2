/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/observe.h"

#include <assert.h>

#include "base/mem.h"
#include "core/lock/client_ledger.h"
#include "core/lock/lock_snapshot.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "core/znode/record.h"
#include "protocol/number.h"

static struct observation *new (void)
{
	struct observation *o = mem_new(sizeof(*o));

	TAILQ_INIT(&o->observers);
	o->work.kind = WORK_OBSERVERS;
	return o;
}

static void forget(struct observation *o)
{
	bytes_free(&o->first);
	bytes_free(&o->host);
	bytes_free(&o->data);
	mem_free(o);
}

struct observation *observation_of(const struct lock *lock)
{
	return lock->rule->kind == KIND_ELECTION ? lock->own : NULL;
}

struct observer *observe_find(const struct lock *lock, const struct client *client)
{
	struct observer *o;

	TAILQ_FOREACH(o, &client->observers, client_link)
		if (o->lock == lock)
			return o;
	return NULL;
}

/* ---- the ledger ---- */

static uint64_t told(const struct observer *o)
{
	return o->told ? LEDGER_LEADER(o->token) : 0;
}

void observe_record(struct observer *o)
{
	struct ledger *l = o->lock->locks->env->ledger;
	struct ledger_observer *r;

	if (!l)
		return;
	r = ledger_take(l, sizeof(*r));
	r->head.number = ++l->last_number;
	r->lock = o->lock->directory.record->head.number;
	r->client = o->client->id;
	r->told = told(o);
	ledger_publish(l, &r->head, LEDGER_OBSERVER);
	o->record = r;
}

static void unrecord(struct observer *o)
{
	struct ledger *l = o->lock->locks->env->ledger;

	if (l)
		ledger_drop(l, &o->record->head);
	o->record = NULL;
}

bool observe_recorded(const struct observer *o)
{
	const struct ledger_observer *r = o->record;

	return r && LEDGER_TYPE(r->head.word) == LEDGER_OBSERVER && r->client == o->client->id && r->told == told(o) &&
	       r->lock == o->lock->directory.record->head.number;
}

/* ---- telling ---- */

void observe_told(struct observer *o)
{
	struct ledger *l = o->lock->locks->env->ledger;

	o->told = true;
	o->token = observation_of(o->lock)->token;
	if (l)
		ledger_store(l, &o->record->told, told(o));
}

bool observe_knows(const struct observer *o)
{
	return o->told && o->token == observation_of(o->lock)->token;
}

/* Tells the observer, unless it was told the same. An unread notification will tell the latest anyway. */
static void tell(struct observer *o)
{
	struct outcome_list *outcomes = &o->lock->locks->outcomes;
	struct env *env = o->lock->locks->env;

	if (observe_knows(o)) {
		notification_drop(o->client, o->notification);
		outcome_drop(outcomes, &o->outcome);
		work_drop(&env->works, &o->work);
	} else if (o->notification || o->outcome.kind != OUTCOME_NONE) {
		return;
	} else if (o->lock->observer_count > OBSERVERS_AT_ONCE || env->conf->all_in_pieces) {
		work_add(&env->works, &o->client->user->worker, &o->work);
	} else if (!o->work.worker) {
		outcome_add(outcomes, &o->outcome, OUTCOME_LEADER, o->client);
	}
}

void observe_tell(struct observer *o)
{
	work_drop(&o->lock->locks->env->works, &o->work);
	if (!observe_knows(o))
		outcome_add(&o->lock->locks->outcomes, &o->outcome, OUTCOME_LEADER, o->client);
}

void observe_resume(struct observer *o)
{
	const struct observation *known = observation_of(o->lock);

	if (known->known && !o->notification && !observe_knows(o))
		work_add(&o->lock->locks->env->works, &o->client->user->worker, &o->work);
}

/* ---- all observers, when the leader has changed ---- */

static struct observer *behind(struct observation *all, struct observer *o)
{
	struct observer *next = TAILQ_NEXT(o, link);

	return next ? next : TAILQ_FIRST(&all->observers);
}

static void look_later(struct observation *o)
{
	struct client *c = o->next->client;

	work_hurry(&c->locks->env->works, &c->user->worker, &o->work);
}

int64_t observe_look(struct observation *o, int64_t steps)
{
	struct env *env = o->next->client->locks->env;
	int64_t done = 0;

	if (env->conf->all_in_pieces)
		steps = 1;
	for (; o->left && done < steps; done++, o->left--) {
		struct observer *observer = o->next;

		o->next = behind(o, observer);
		tell(observer);
	}
	work_drop(&env->works, &o->work);
	if (o->left)
		look_later(o);
	return done;
}

/* Each of them is looked at, from where the round before is. */
static void look_at_all(struct lock *lock)
{
	struct observation *o = observation_of(lock);

	if (!o->next)
		o->next = TAILQ_FIRST(&o->observers);
	o->left = lock->observer_count;
	if (o->left > OBSERVERS_AT_ONCE || lock->locks->env->conf->all_in_pieces)
		look_later(o);
	else
		observe_look(o, OBSERVERS_AT_ONCE);
}

/* In a new process: there were some left. */
static void look_again(struct lock *lock)
{
	struct observation *o = observation_of(lock);

	o->next = TAILQ_FIRST(&o->observers);
	o->left = lock->observer_count;
	look_later(o);
}

/* It leaves, and is the next one. */
static void skip(struct observation *all, struct observer *o)
{
	work_drop(&o->lock->locks->env->works, &all->work);
	all->next = behind(all, o);
	all->left -= all->left > 0;
	if (all->next == o) { /* it was the only one */
		all->next = NULL;
		all->left = 0;
	}
	if (all->left)
		look_later(all);
}

static void learn(struct lock *lock, int64_t token, struct slice host, struct slice data)
{
	struct observation *o = observation_of(lock);

	if (o->known && o->token == token)
		return;
	o->known = true;
	o->token = token;
	bytes_set(&o->host, host);
	bytes_set(&o->data, data);
	look_at_all(lock);
}

static void learn_none(struct lock *lock)
{
	learn(lock, 0, SLICE(""), SLICE(""));
}

/* ---- who watches ---- */

/* Adds an observer. */
static struct observer *observe_add(struct lock *lock, struct client *client)
{
	struct observer *o = mem_new(sizeof(*o));

	if (!observation_of(lock))
		lock->own = new ();
	o->lock = lock;
	o->client = client;
	o->work.kind = WORK_LEADER;
	charge_add(client->account, POOL_OBSERVERS, 1);
	lock->mixed |= client->account != lock->charge.account;
	TAILQ_INSERT_TAIL(&observation_of(lock)->observers, o, link);
	TAILQ_INSERT_TAIL(&client->observers, o, client_link);
	lock->observer_count++;
	lock->directory.observed = true;
	client->observer_count++;
	observe_record(o);
	return o;
}

void observe_begin(struct lock *lock, struct client *client)
{
	struct observer *o = observe_add(lock, client);

	if (observation_of(lock)->known)
		tell(o);
	if (!lock->locks->env->conf->standalone && !lock->locks->ensemble->session.proving)
		turn_wait(&lock->directory, TURN_RECOVER);
	directory_touch(&lock->directory);
}

/* Drops all that the observer was to be told. The lock may be freed before the observer. */
static void leave(struct observer *o)
{
	struct lock *lock = o->lock;

	unrecord(o);
	notification_drop(o->client, o->notification);
	outcome_drop(&lock->locks->outcomes, &o->outcome);
	work_drop(&lock->locks->env->works, &o->work);
	if (observation_of(lock)->next == o)
		skip(observation_of(lock), o);
	TAILQ_REMOVE(&observation_of(lock)->observers, o, link);
	if (--lock->observer_count == 0) {
		forget(observation_of(lock));
		lock->own = NULL;
		lock->directory.observed = false;
	}
	directory_touch(&lock->directory);
}

void observe_end(struct observer *o)
{
	if (o->outcome.kind == OUTCOME_UNOBSERVED)
		outcome_drop(&o->lock->locks->outcomes, &o->outcome);
	else
		leave(o);
	TAILQ_REMOVE(&o->client->observers, o, client_link);
	o->client->observer_count--;
	charge_remove(o->client->account, POOL_OBSERVERS, 1);
	bytes_free(&o->outcome.sentence);
	mem_free(o);
}

void observe_fail_all(struct lock *lock, enum error_code code, const char *sentence)
{
	while (observation_of(lock)) {
		struct observer *o = TAILQ_FIRST(&observation_of(lock)->observers);

		client_ledger_told(o->client); /* before the ledger forgets it: a kill may come in between */
		leave(o);
		outcome_add_error(&lock->locks->outcomes, &o->outcome, OUTCOME_UNOBSERVED, o->client, code, sentence);
	}
}

/* ---- asking ZooKeeper ---- */

static void send(struct lock *lock, enum effect_type type, enum operation_kind kind, struct slice child)
{
	struct operation_request r = { .op = { .kind = kind, .watch = true } };
	struct directory *d = &lock->directory;

	r.path = bytes_view(&d->path);
	observation_of(lock)->op = child.len ? directory_send_child(d, type, &r, child) : directory_send(d, type, &r);
}

static void look_locally(struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);

	if (g)
		learn(lock, g->token, slice_of(lock->locks->env->conf->host), bytes_view(&g->data));
	else
		learn_none(lock);
}

void observe_continue(struct lock *lock)
{
	struct observation *o = observation_of(lock);

	if (!o)
		return;
	if (lock->locks->env->conf->standalone) {
		look_locally(lock);
		return;
	}
	if (o->state != OBSERVE_IDLE)
		return;
	if (!turn_may(&lock->directory, TURN_RECOVER))
		return;
	directory_check(&lock->directory);
	o->state = OBSERVE_LISTING;
	o->old = false;
	send(lock, EFFECT_ZK_LIST, OPERATION_OBSERVE_LIST, (struct slice){ 0 });
}

void observe_suspended(struct lock *lock)
{
	if (!observation_of(lock))
		return;
	observation_of(lock)->state = OBSERVE_IDLE;
	observation_of(lock)->op = 0;
}

static void missing(struct lock *lock)
{
	struct observation *o = observation_of(lock);

	if (!names_take(&lock->directory))
		return;
	if (o->missing)
		directory_pause(&lock->directory);
	o->missing = true;
	directory_make(&lock->directory);
}

static void find_first(struct lock *lock, const struct event *event)
{
	struct contender first = { 0 }, other;

	for (size_t i = 0; i < event->zk_answered.count; i++) {
		if (!contender_parse(event->zk_answered.children[i], lock->directory.flavour, &other))
			continue;
		if (!first.name.len || contender_before(&other, &first))
			first = other;
	}
	bytes_set(&observation_of(lock)->first, first.name);
}

static void listed(struct lock *lock, const struct event *event)
{
	struct observation *o = observation_of(lock);
	struct directory *d = &lock->directory;

	o->missing = false;
	/* The directory is not the one whose data were read: it may be of another kind. */
	if (d->state == DIRECTORY_FITS && d->czxid != event->zk_answered.stat.czxid)
		d->state = DIRECTORY_UNKNOWN;
	if (d->state != DIRECTORY_FITS)
		return;
	find_first(lock, event);
	if (o->first.len) {
		o->state = OBSERVE_READING;
		send(lock, EFFECT_ZK_GET, OPERATION_OBSERVE_GET, bytes_view(&o->first));
	} else {
		o->state = OBSERVE_KNOWN;
		learn_none(lock);
	}
}

static void read(struct lock *lock, const struct event *event)
{
	struct observation *o = observation_of(lock);
	struct slice data = event->zk_answered.data;
	int64_t token;

	o->state = o->old ? OBSERVE_IDLE : OBSERVE_KNOWN;
	if (slice_eq(record_get(data, "leader"), SLICE("1")) && number_parse(record_get(data, "token"), &token) &&
	    token > 0)
		learn(lock, token, record_get(data, "host"), record_get(data, "data"));
	else
		learn_none(lock);
}

void observe_answered(const struct operation *op, const struct event *event)
{
	struct lock *lock = op->directory->lock;
	struct observation *o = observation_of(lock);
	bool list = op->kind == OPERATION_OBSERVE_LIST;
	enum zk_code code = event->zk_answered.code;

	if (!o || o->op != event->zk_answered.op)
		return;
	o->state = OBSERVE_IDLE;
	if (code == ZK_OK && list) {
		listed(lock, event);
	} else if (code == ZK_OK) {
		read(lock, event);
	} else if (code == ZK_NONODE && list) {
		missing(lock);
	} else if (code == ZK_BUSY) {
		directory_retry(&lock->directory);
	} else if (code != ZK_NONODE && code != ZK_UNKNOWN) {
		directory_pause(&lock->directory);
		observe_fail_all(lock, ERROR_UNAVAILABLE, "ZooKeeper refuses to show who leads");
	}
}

void observe_watched(struct lock *lock, const struct slice *child)
{
	struct observation *o = observation_of(lock);

	if (!o || (child && !slice_eq(*child, bytes_view(&o->first))))
		return;
	/* While the list is under way, the event is of an older watch, and the list is newer. */
	if (o->state == OBSERVE_READING)
		o->old = true;
	else if (o->state == OBSERVE_KNOWN)
		o->state = OBSERVE_IDLE;
	directory_touch(&lock->directory);
}

/* ---- snapshots ---- */

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

void observer_snapshot(const struct observer *o, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "observer");

	assert(o->outcome.kind == OUTCOME_NONE);
	entry_number(&w, "client", o->client->conn);
	entry_fields(&w, FIELDS(observer_fields), o);
	entry_end(&w);
}

void observation_snapshot(const struct lock *lock, struct bytes *out)
{
	const struct observation *o = observation_of(lock);
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

bool observation_restore(struct lock *lock, const struct entry *e)
{
	struct observation *o = observation_of(lock);
	bool looking;

	if (!slice_is(e->word, "observation"))
		return true;
	if (!o)
		return entry_refuse(e, "nobody observes the lock");
	if (!entry_get_fields(e, FIELDS(observation_fields), o) || !entry_get_flag(e, "looking", &looking))
		return false;
	if (looking && o->left)
		return entry_refuse(e, "they are looked at already");
	if (looking)
		look_again(lock);
	return true;
}
