/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/bearer.h"

#include "base/cold.h"
#include "base/mem.h"
#include "core/lock/client_ledger.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"

/* Larger than any number of a connection, and than versions without bearers take. */
static const int64_t NUMBERS = INT64_C(1) << 32;

enum { BEARER_BYTES = sizeof(struct client) + sizeof(struct request) + sizeof(struct bearer) };

void bearer_wipe(struct bytes *text)
{
	mem_wipe(text->data, text->cap);
	bytes_free(text);
}

size_t bearer_memory(struct slice value)
{
	return BEARER_BYTES + value.len;
}

static void have(struct client *c, struct slice value)
{
	c->bearer = mem_new(sizeof(*c->bearer));
	c->bearer->client = c;
	bytes_reserve(&c->bearer->value, BEARER_VALUE_MAX);
	bytes_slice(&c->bearer->value, value);
	c->bearer->place = (struct place){ .bearer = c, .timer.kind = TIMER_PLACE };
	c->conn = EFFECT_NO_CONN;
}

static void pay(struct client *c)
{
	charge_force(&c->bearer->charge, c->account, POOL_MEMORY, bearer_memory(bytes_view(&c->bearer->value)));
}

COLD struct client *bearer_new(const struct client *by, struct slice value)
{
	struct client *c = client_new(by->locks, by->uid, bytes_view(&by->unit));

	have(c, value);
	client_enter_new(c);
	pay(c);
	c->version = 3; /* nothing is kept for it */
	c->last_command = COMMAND_COUNT;
	c->connected_ns = c->locks->env->now_ns;
	bearer_adopt(c, by);
	c->locks->bearer_count++;
	return c;
}

void bearer_adopt(struct client *bearer, const struct client *by)
{
	bearer->pid = by->pid;
	bearer->started = by->started;
	bearer->privileged = by->privileged;
	bytes_set(&bearer->comm, bytes_view(&by->comm));
	bytes_set(&bearer->name, bytes_view(&by->name));
	client_ledger_changed(bearer);
}

void bearer_leave(struct client *bearer)
{
	struct place *p = &bearer->bearer->place;

	heap_unset(&bearer->locks->env->timers, &p->timer);
	if (p->lock)
		map_remove(&bearer->locks->places, &p->node);
	p->lock = NULL;
}

void bearer_free(struct client *bearer)
{
	bearer_leave(bearer);
	client_ledger_remove(bearer); /* which wipes, too */
	lifeline_untie(bearer);
	charge_give_back(&bearer->bearer->charge, POOL_MEMORY);
	bearer_wipe(&bearer->bearer->value);
	mem_free(bearer->bearer);
	bearer->bearer = NULL;
	bearer->locks->bearer_count--;
	client_free(bearer);
}

COLD void bearer_rest(struct client *bearer)
{
	if (!bearer->request_count && !bearer->grant_count)
		bearer_free(bearer);
}

void bearer_tie(struct client *bearer)
{
	lifeline_tie(bearer);
	client_ledger_changed(bearer);
}

void bearer_untie(struct client *bearer)
{
	if (!bearer->bearer->lifeline)
		return;
	lifeline_untie(bearer);
	client_ledger_changed(bearer);
}

bool bearer_is_told(const struct client *bearer)
{
	return !bearer_has_place(bearer) && !bearer->bid;
}

static struct grant *of_user(const struct lock *lock, const struct client *c)
{
	struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;

	return g && g->client->bearer && client_is_own(c, g->client) && bearer_is_told(g->client) ? g : NULL;
}

struct grant *bearer_grant(const struct lock *lock, const struct client *c)
{
	return of_user(lock, c);
}

struct grant *bearer_grant_of(const struct lock *lock, const struct client *c, struct slice value)
{
	struct grant *g = of_user(lock, c);

	return g && slice_eq(bytes_view(&g->client->bearer->value), value) ? g : NULL;
}

/* A user is the same on two hosts if it has the same number there. */
void bearer_hash(struct slice salt, struct slice value, char ret[SHA256_HEX_CHARS + 1])
{
	struct bytes text = { 0 };

	bytes_reserve(&text, salt.len + 1 + value.len + 1);
	bytes_format(&text, "%s:%s", salt, value);
	sha256_hex(bytes_view(&text), ret);
	bearer_wipe(&text);
}

struct grant *bearer_grant_by_hash(const struct lock *lock, int64_t uid, struct slice salt, struct slice sha256)
{
	struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;
	char hash[SHA256_HEX_CHARS + 1];

	if (!g || !g->client->bearer || !bearer_is_told(g->client) || g->client->uid != uid)
		return NULL;
	bearer_hash(salt, bytes_view(&g->client->bearer->value), hash);
	return slice_eq(slice_of(hash), sha256) ? g : NULL;
}

bool bearer_is_of(const struct client *bearer, const struct client *c)
{
	return client_is_own(c, bearer) && c->pid && c->started && c->pid == bearer->pid &&
	       c->started == bearer->started;
}

COLD void bearer_holds(struct client *bearer, bool holds)
{
	struct locks *locks = bearer->locks;
	struct effect *e;

	locks->bearers_hold += holds ? 1 : (size_t)-1;
	if (locks->env->conf->standalone || !locks->env->out || locks->bearers_hold != (size_t)holds)
		return;
	e = effects_add(locks->env->out, EFFECT_HOLDER);
	e->conn = EFFECT_NO_CONN;
	e->holds = holds;
}

/* ---- in a snapshot ---- */

int64_t bearer_number(const struct client *c)
{
	return c->bearer ? NUMBERS + (int64_t)c->id : c->conn;
}

struct client *bearer_numbered(const struct locks *locks, int64_t number)
{
	struct client *c;

	if (number < NUMBERS)
		return (uint64_t)number < locks->conns_cap ? locks->conns[number] : NULL;
	c = client_by_id(locks, (uint64_t)(number - NUMBERS));
	return c && c->bearer ? c : NULL;
}

void bearer_snapshot(const struct client *bearer, const struct entry_pairs *noted, struct bytes *out)
{
	const struct lifeline *l = bearer->bearer->lifeline;
	struct entry_writer w = entry_begin(out, "bearer");

	entry_number(&w, "uid", bearer->uid);
	client_entry_write(bearer, &w);
	entry_due(&w, "place", &bearer->bearer->place.timer);
	entry_number(&w, "ended", l && l->state == LIFELINE_ENDED);
	entry_pairs(&w, noted);
	entry_end(&w);
}

bool bearer_restore(struct locks *locks, const struct entry *e)
{
	struct slice value;
	struct client *c;
	int64_t uid;
	bool read, tied, ended;

	if (!entry_get_number(e, "uid", 0, UINT32_MAX, &uid) || !entry_get_text(e, "value", BEARER_VALUE_MAX, &value))
		return false;
	if (!value.len)
		return entry_refuse(e, "it has no value");
	c = client_new(locks, (uint32_t)uid, (struct slice){ 0 });
	have(c, value);
	locks->bearer_count++;
	read = client_entry_read(c, e);
	c->last_command = COMMAND_COUNT;
	client_enter(c, c->id);
	pay(c);
	if (!read || !entry_get_due(e, "place", &locks->env->timers, &c->bearer->place.timer) ||
	    !entry_get_flag(e, "tied", &tied) || !entry_get_flag(e, "ended", &ended))
		return false;
	if (c->version != 3 || c->asking || c->half_closed || c->closed || c->events_waiting || c->reloading ||
	    c->ghost || c->resetting)
		return entry_refuse(e, "it is no connection");
	if (tied && !lifeline_may_be(c))
		return entry_refuse(e, "it is tied to a process that is not known");
	if (tied && ended)
		lifeline_tie_ended(c);
	else if (tied)
		lifeline_tie(c);
	return true;
}
