/* SPDX-License-Identifier: Apache-2.0 */
#include "core/connection.h"

#include <assert.h>

#include "base/mem.h"
#include "core/client/mlock.h"
#include "core/command/list.h"
#include "core/hosts/release.h"
#include "core/lock/bearer.h"
#include "core/lock/client_ledger.h"
#include "core/lock/take_back.h"
#include "core/port/entry.h"
#include "core/state.h"

enum {
	CONNS_FIRST_SIZE = 64,
	CONNS_MAX = 1 << 20, /* the adapter's numbers are dense */
	TEXT_MAX = 4096,
};

static void reserve_conn(struct locks *locks, uint32_t conn)
{
	size_t cap = locks->conns_cap ? locks->conns_cap : CONNS_FIRST_SIZE;

	if (conn < locks->conns_cap)
		return;
	while (cap <= conn)
		cap *= 2;
	locks->conns = mem_resize(locks->conns, cap * sizeof(struct client *));
	memset(locks->conns + locks->conns_cap, 0, (cap - locks->conns_cap) * sizeof(struct client *));
	locks->conns_cap = cap;
}

/* The peer chose its command's name: characters that would break a list of one line per client are not kept. */
static void keep_printable(struct bytes *to, struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		bytes_char(to, text.data[i] > ' ' && text.data[i] <= '~' ? text.data[i] : '?');
	bytes_fit(to);
}

static struct client *begin(struct locks *locks, uint32_t conn, uint32_t uid, struct slice unit)
{
	struct client *c;

	reserve_conn(locks, conn);
	assert(!locks->conns[conn]);
	c = client_new(locks, uid, unit);
	c->conn = conn;
	locks->conns[conn] = c;
	return c;
}

void connection_begin(struct broker *b, const struct event *event)
{
	struct locks *locks = &b->locks;
	struct client *c = begin(locks, event->conn, event->connected.uid, event->connected.unit);

	client_enter_new(c);
	c->pid = event->connected.pid;
	c->started = event->connected.started;
	c->version = 2;
	c->last_command = COMMAND_COUNT;
	c->connected_ns = locks->env->now_ns;
	keep_printable(&c->comm, event->connected.comm);
	c->privileged = event->connected.privileged;
	client_set_groups(c, &event->connected.groups);
	locks->env->stats.connections_total++;
	env_note(locks->env, FLIGHT_client_connected, (int64_t)c->id, c->uid, bytes_view(&c->comm));
}

void connection_process(struct client *c, const struct event *event)
{
	/* The client may have named another process since. */
	if (event->process.pid != c->child)
		return;
	if (event->process.comm.len) {
		bytes_clear(&c->child_comm);
		keep_printable(&c->child_comm, event->process.comm);
	}
	c->child_known = true;
	c->peer_ended = event->process.peer_ended;
	c->child_ended = event->process.child_ended;
	client_ledger_changed(c);
}

/* From now on it is one that is closed. */
static void leave(struct locks *locks, struct client *c)
{
	if (c->closing && !c->closed)
		TAILQ_REMOVE(&locks->closing, c, closing_link);
	c->closing = c->closed = true;
	c->resetting = false;
	if (c->delegations)
		delegated_take_back_all(c); /* at once: it could take them again */
	list_end(c->list);
	work_drop(&locks->env->works, &c->releasing);
}

void connection_leaves(struct broker *b, struct client *c)
{
	int64_t steps = 0;

	leave(&b->locks, c);
	client_ledger_review(c);
	release_some(&b->hosts, c, b->env.conf->all_in_pieces ? 1 : WORK_TURN_STEPS, &steps);
}

void connection_gone(struct broker *b, struct client *c)
{
	struct locks *locks = &b->locks;

	/* This comes first, so that no effect names the connection any longer. */
	if (!c->bearer)
		locks->conns[c->conn] = NULL;
	env_note(locks->env, FLIGHT_client_gone, (int64_t)c->id, c->uid, bytes_view(&c->comm));
	if (locks->restarter == c)
		locks->restarter = NULL;
	leave(locks, c);
	release_client(&b->hosts, c);
	if (c->bearer)
		bearer_free(c);
	else
		client_free(c);
}

void connection_half_closed(struct client *c)
{
	struct request *r;

	c->half_closed = true;
	client_ledger_review(c);
	c->locks->after = c;
	if (c->mlock)
		mlock_hurry(c->mlock);
	TAILQ_FOREACH(r, &c->requests, client_link)
		if (!r->expired)
			request_expire(r);
}

/* ---- in a snapshot ---- */

void connection_snapshot(const struct client *c, const struct entry_pairs *noted, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "client");

	assert(!c->answered && c->closing == c->closed);
	entry_number(&w, "conn", c->conn);
	entry_number(&w, "uid", c->uid);
	client_entry_write(c, &w);
	if (c->last_command != COMMAND_COUNT)
		entry_text(&w, "command", slice_of(command_table[c->last_command].word));
	entry_number(&w, "restarting", c->locks->restarter == c);
	entry_number(&w, "releasing", c->releasing.worker != NULL);
	if (c->list)
		list_snapshot(c->list, &w);
	entry_due(&w, "events due", &c->events_timer);
	entry_pairs(&w, noted);
	entry_end(&w);
}

bool connection_restore(struct broker *b, const struct entry *e)
{
	struct locks *locks = &b->locks;
	struct slice command, group;
	int64_t conn, uid;
	struct client *c;
	bool releasing, restarting, read;

	if (!entry_get_number(e, "conn", 0, CONNS_MAX, &conn) || !entry_get_number(e, "uid", 0, UINT32_MAX, &uid))
		return false;
	if ((uint64_t)conn < locks->conns_cap && locks->conns[conn])
		return entry_refuse(e, "there are two with the connection");
	c = begin(locks, (uint32_t)conn, (uint32_t)uid, (struct slice){ 0 });
	read = client_entry_read(c, e);
	client_enter(c, c->id);
	if (!read || !entry_get_text(e, "command", TEXT_MAX, &command) ||
	    !entry_get_text(e, "group", TEXT_MAX, &group) || !entry_get_flag(e, "restarting", &restarting) ||
	    !entry_get_flag(e, "releasing", &releasing) || !entry_get_flag(e, "searching", &c->searching) ||
	    !list_restore(c, e) || !entry_get_due(e, "events due", &b->env.timers, &c->events_timer))
		return false;
	if (c->version < 2 || (c->events_waiting && (c->version != 2 || !c->asking)) ||
	    (c->resetting && (!c->asking || !releasing || c->closed)) || (c->events_timer.place && !c->events_waiting) ||
	    (restarting && (!c->asking || locks->restarter)))
		return entry_refuse(e, "the fields do not fit each other");
	c->last_command = command.len ? command_find(command) : COMMAND_COUNT;
	c->closing = c->closed;
	if (releasing)
		work_add(&b->env.works, &c->user->worker, &c->releasing);
	if (restarting)
		locks->restarter = c;
	/* It ends by itself: who waits for it does not wait for its group. */
	if (!c->ghost)
		group_join(c, group);
	return true;
}
