/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/client_snapshot.h"

#include <assert.h>

#include "base/mem.h"
#include "core/client/bid.h"
#include "core/client/mlock.h"
#include "core/kind/observe.h"
#include "core/lock/lock_snapshot.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "protocol/limits.h"
#include "protocol/name.h"

enum { TEXT_MAX = 4096, ITEMS_MAX = 8 };

static const struct field notification_fields[] = {
	FIELD_NUMBER(struct notification, "type", type, NOTIFICATION_SESSION, NOTIFICATION_TOLD),
	FIELD_NUMBER(struct notification, "items", items, 0, ITEMS_MAX),
	FIELD_TEXT(struct notification, "text", text, TEXT_MAX),
};

static const struct field mlock_fields[] = {
	FIELD_NUMBER(struct mlock, "mode", mode, MODE_EXCLUSIVE, MODE_SHARED),
	FIELD_FLAG(struct mlock, "reenter", reenter),
	FIELD_OPEN_INSTANT(struct mlock, "until", until_ns),
	FIELD_NUMBER(struct mlock, "lease", lease_ns, 0, LIMIT_MS_MAX * 1000000),
	FIELD_NUMBER(struct mlock, "at", at, 0, LIMIT_NAMES_MAX - 1),
};

/* ---- notifications ---- */

/* The grant that it is about; NULL: none. */
static const struct grant *grant_of(const struct client *c, const struct notification *n)
{
	const struct grant *g;

	if (n->type == NOTIFICATION_LOST)
		return n->grant;
	if (n->type == NOTIFICATION_REVOKE)
		TAILQ_FOREACH(g, &c->grants, client_link)
			if (n->place == &g->notification)
				return g;
	return NULL;
}

void notification_snapshot(const struct client *c, const struct notification *n, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "notification");
	const struct grant *g = grant_of(c, n);

	entry_number(&w, "client", c->conn);
	entry_fields(&w, FIELDS(notification_fields), n);
	entry_number(&w, "grant", g ? g->mark : 0);
	entry_number(&w, "observer", n->type == NOTIFICATION_LEADER ? n->observer->mark : 0);
	entry_end(&w);
}

/* False: it is about something of another client, or about something that has a notification already. */
static bool attach(struct notification *n, struct client *c, struct grant *g, struct observer *o)
{
	bool of_grant = n->type == NOTIFICATION_LOST || n->type == NOTIFICATION_REVOKE;

	if (of_grant && (!g || g->client != c || g->lost != (n->type == NOTIFICATION_LOST)))
		return false;
	if (n->type == NOTIFICATION_LEADER && (!o || o->client != c))
		return false;
	if (n->type == NOTIFICATION_LOST)
		n->grant = g;
	if (n->type == NOTIFICATION_LEADER)
		n->observer = o;
	if (of_grant)
		n->place = &g->notification;
	else if (n->type == NOTIFICATION_LEADER)
		n->place = &o->notification;
	else if (n->type == NOTIFICATION_SESSION)
		n->place = &c->session_notification;
	return !n->place || !*n->place;
}

bool notification_restore(struct locks *locks, const struct client_marks *marks, const struct entry *e)
{
	struct client *c = lock_restore_client(locks, e);
	struct notification told = { 0 };
	int64_t grant, observer;

	if (!c || !entry_get_number(e, "grant", 0, (int64_t)marks->grant_count, &grant) ||
	    !entry_get_number(e, "observer", 0, (int64_t)marks->observer_count, &observer))
		return false;
	if (c->version != 2)
		return entry_refuse(e, "nothing is kept for the client");
	if (entry_get_fields(e, FIELDS(notification_fields), &told) &&
	    attach(&told, c, grant ? marks->grants[grant - 1] : NULL,
		   observer ? marks->observers[observer - 1] : NULL)) {
		notification_keep(c, &told);
		return true;
	}
	bytes_free(&told.text);
	return e->why->len ? false : entry_refuse(e, "the subject does not fit the client");
}

/* ---- MLOCK ---- */

static void mlock_snapshot(const struct mlock *m, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "mlock");

	assert(m->state != MLOCK_AGAIN);
	entry_number(&w, "client", m->client->conn);
	entry_fields(&w, FIELDS(mlock_fields), m);
	entry_number(&w, "next", m->state == MLOCK_NEXT);
	entry_list(&w, "parts", 3 * m->count);
	for (size_t i = 0; i < m->count; i++) {
		resp_bulk(out, bytes_view(&m->parts[i].name));
		resp_integer(out, (int64_t)m->parts[i].place);
		resp_integer(out, m->parts[i].held);
	}
	entry_end(&w);
}

static bool part_restore(struct mlock *m, size_t i, const struct resp_value *v)
{
	struct mlock_part *part = &m->parts[i];

	if (v[0].type != RESP_BULK || v[1].type != RESP_INTEGER || v[2].type != RESP_INTEGER ||
	    !name_valid(v[0].text) || v[1].integer < 0 || (uint64_t)v[1].integer >= m->count)
		return false;
	for (size_t j = 0; j < i; j++)
		if (m->parts[j].place == (size_t)v[1].integer)
			return false;
	bytes_slice(&part->name, v[0].text);
	part->place = (size_t)v[1].integer;
	part->held = v[2].integer != 0;
	return i == 0 || mlock_by_name(part - 1, part) < 0;
}

/* It has what it has taken or held before, and waits for the one that is next, or has that, too. */
static bool is_consistent(const struct mlock *m, bool next)
{
	const struct client *c = m->client;

	for (size_t i = 0; i < m->count; i++) {
		struct lock *lock = lock_find(c->locks, bytes_view(&m->parts[i].name));
		const struct grant *g = lock && !lock->slots ? grant_find(lock, c) : NULL;

		if ((i < m->at + next || m->parts[i].held) && (!g || g->lost))
			return false;
		if (i == m->at && (m->parts[i].held || (next ? c->request != NULL : !c->request || c->request->lock != lock)))
			return false;
	}
	return m->at < m->count;
}

bool mlock_restore(struct locks *locks, const struct entry *e)
{
	struct client *c = lock_restore_client(locks, e);
	const struct resp_value *parts = entry_get_list(e, "parts");
	struct mlock *m;
	size_t count;
	bool next;

	if (!c)
		return false;
	if (!parts || parts->integer % 3 || parts->integer < 3 || parts->integer > 3 * LIMIT_NAMES_MAX || c->mlock ||
	    (int64_t)parts->span != parts->integer + 1)
		return entry_refuse(e, "the names are not those");
	count = (size_t)parts->integer / 3;
	m = mem_new(sizeof(*m) + count * sizeof(m->parts[0]));
	m->client = c;
	m->work.kind = WORK_MLOCK;
	m->count = count;
	c->mlock = m;
	if (!entry_get_fields(e, FIELDS(mlock_fields), m) || !entry_get_flag(e, "next", &next))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!part_restore(m, i, parts + 1 + 3 * i))
			return entry_refuse(e, "a name is not one");
	charge_force(&m->charge, c->account, POOL_MEMORY, mlock_memory(m));
	if (!is_consistent(m, next))
		return entry_refuse(e, "the held locks do not match the request");
	if (next)
		mlock_resume(m);
	return true;
}

void client_snapshot(const struct client *c, struct bytes *out)
{
	const struct notification *n;

	TAILQ_FOREACH(n, &c->notifications, link)
		notification_snapshot(c, n, out);
	if (c->mlock)
		mlock_snapshot(c->mlock, out);
	if (c->bid && !c->bearer)
		bid_snapshot(c->bid, out);
}
