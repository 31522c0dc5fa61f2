/* SPDX-License-Identifier: Apache-2.0 */
#include "core/record.h"

#include "core/claim/claim_ledger.h"
#include "core/kind/observe.h"
#include "core/lock/client_ledger.h"
#include "core/lock/lock_ledger.h"
#include "core/snapshot.h"
#include "core/state.h"

/* ---- the cells of another ledger are nothing to this one ---- */

static void forget_lock(struct lock *lock)
{
	struct directory *d;
	struct claim *c;

	LOCK_DIRECTORIES(d, lock)
	{
		d->record = NULL;
		CLAIM_FOREACH(c, d)
			c->record = NULL;
	}
}

static void forget_all(struct broker *b)
{
	struct client *c;
	struct observer *o;
	struct grant *g;
	struct lock *lock;
	struct letter *l;

	TAILQ_INIT(&b->locks.told);
	TAILQ_FOREACH(c, &b->locks.clients, link) {
		c->record = NULL;
		TAILQ_FOREACH(g, &c->grants, client_link)
			g->record = NULL;
		TAILQ_FOREACH(o, &c->observers, client_link)
			o->record = NULL;
	}
	TAILQ_FOREACH(lock, &b->locks.used, link)
		forget_lock(lock);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		forget_lock(lock);
	TAILQ_FOREACH(l, &b->hosts.letters, link)
		l->record = NULL;
}

/* ---- writing ---- */

static void write_head(const struct broker *b)
{
	struct ledger *l = b->env.ledger;

	l->head->place = snapshot_place(b->env.conf);
	ledger_session(l, b->ensemble.session.id);
	ledger_state(l, b->ensemble.session.epoch, b->ensemble.session.state == SESSION_JEOPARDY);
	ledger_draining(l, b->env.draining);
	ledger_zxids(l, b->ensemble.past.floor, b->ensemble.past.seen, b->ensemble.past.own);
	ledger_lasting(l, lasting_count(&b->directories));
	ledger_number(l, CEILING_CLIENT, b->locks.last_client);
	ledger_number(l, CEILING_CLAIM, b->directories.last_claim);
	ledger_number(l, CEILING_NONCE, b->directories.last_nonce);
	ledger_number(l, CEILING_LETTER, b->hosts.outbox_last);
	ledger_number(l, CEILING_QUERY, b->hosts.last_query);
	ledger_number(l, CEILING_SWEEP, b->hosts.audit.sweep);
	ledger_number(l, CEILING_TOKENS, (uint64_t)b->directories.token_limit);
}

static void write_lock(struct lock *lock)
{
	const struct claim *held = lock->directory.claim;
	struct directory *d;
	struct claim *c;

	lock_ledger_write(lock);
	lock_ledger_token(lock, lock->token, MODE_EXCLUSIVE);
	if (held && held->granted)
		lock_ledger_token(lock, held->czxid << 10 | held->handoffs, held->granted_mode);
	lock_ledger_keep(lock);
	if (lock->locks->env->conf->standalone)
		return;
	LOCK_DIRECTORIES(d, lock)
	CLAIM_FOREACH(c, d) {
		directory_ledger_note(d);
		if (claim_ledger_wants(c))
			claim_ledger_add(c);
	}
}

static void write_all(struct broker *b)
{
	struct client *c;
	struct observer *o;
	struct grant *g;
	struct lock *lock;
	struct letter *l;

	TAILQ_FOREACH(lock, &b->locks.used, link)
		write_lock(lock);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		write_lock(lock);
	TAILQ_FOREACH(c, &b->locks.clients, link) {
		if (c->recorded)
			client_ledger_add(c);
		TAILQ_FOREACH(g, &c->grants, client_link)
			grant_ledger_write(g);
		TAILQ_FOREACH(o, &c->observers, client_link)
			observe_record(o);
	}
	TAILQ_FOREACH(l, &b->hosts.letters, link)
		letter_ledger_add(l);
}

void broker_record(struct broker *b, struct ledger *ledger)
{
	b->env.ledger = ledger;
	forget_all(b);
	if (!ledger)
		return;
	write_head(b);
	write_all(b);
	ledger_store(ledger, &ledger->head->magic, LEDGER_MAGIC);
}

void broker_carried_out(struct broker *b)
{
	client_ledger_all_told(&b->locks);
}

/* ---- room for what had none ---- */

static void move_lock(struct ledger *l, struct lock *lock)
{
	struct directory *d;
	struct claim *c;

	lock->directory.record = ledger_move(l, lock->directory.record);
	LOCK_DIRECTORIES(d, lock)
	{
		d->record = lock->directory.record;
		CLAIM_FOREACH(c, d)
			c->record = ledger_move(l, c->record);
	}
}

void broker_record_missing(struct broker *b)
{
	struct ledger *ledger = b->env.ledger;
	struct client *c;
	struct observer *o;
	struct grant *g;
	struct lock *lock;
	struct letter *l;

	TAILQ_FOREACH(lock, &b->locks.used, link)
		move_lock(ledger, lock);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		move_lock(ledger, lock);
	TAILQ_FOREACH(c, &b->locks.clients, link) {
		c->record = ledger_move(ledger, c->record);
		TAILQ_FOREACH(g, &c->grants, client_link)
			g->record = ledger_move(ledger, g->record);
		TAILQ_FOREACH(o, &c->observers, client_link)
			o->record = ledger_move(ledger, o->record);
	}
	TAILQ_FOREACH(l, &b->hosts.letters, link)
		l->record = ledger_move(ledger, l->record);
}
