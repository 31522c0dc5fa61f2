/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other clients see of delegated locks: a command that only reads takes no delegation back, and the answers to HOLDERS
 * and WHY show correctly which client held the lock between the question and the answer, and since when.
 */
#include "core/state.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- looking takes nothing back ---- */

static bool only_looks(const struct event *e)
{
	static const enum command commands[] = {
		COMMAND_HOLDERS, COMMAND_QUEUE, COMMAND_WHY, COMMAND_LOCKS, COMMAND_VALID, COMMAND_GET, COMMAND_EXISTS,
		COMMAND_TTL, COMMAND_PTTL, COMMAND_TOKEN, COMMAND_LEADER, COMMAND_AUDIT,
	};

	if (e->type != EVENT_CLIENT_ASKED)
		return false;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (command_find(e->asked.argv[0]) == commands[i])
			return true;
	return false;
}

/* The delegations of all clients but that one, which may end its own and be told so. */
static int count(const struct host *h, uint32_t but)
{
	const struct client *c;
	int count = 0;

	TAILQ_FOREACH(c, &h->broker->locks.clients, link)
		if (c->delegations && c->conn != but)
			count += (int)c->delegations->count;
	return count;
}

void delegations_look_begins(struct host *h, const struct event *e)
{
	h->looks = only_looks(e) && broker_deadline(h->broker) > host_now(h);
	if (h->looks)
		h->delegated = count(h, e->conn);
}

void delegations_look_ends(struct host *h, const struct event *e)
{
	if (h->looks && count(h, e->conn) != h->delegated)
		world_fail(h->w, -1, "host %d client %u: looks, and takes a delegation back by that", h->index, e->conn);
}

/* ---- what is told ---- */

/* The milliseconds that the answer gives for the holder; -1: the answer does not name it. */
static int64_t told_held_ms(struct slice reply, const struct host *h, uint64_t client)
{
	static const char key[] = "\r\nheld_ms\r\n:";
	const char *at;
	char who[160];

	snprintf(who, sizeof(who), "host\r\n$%zu\r\n%s\r\n$6\r\nclient\r\n:%" PRIu64 "\r\n", strlen(h->conf.host), h->conf.host,
		 client);
	at = memmem(reply.data, reply.len, who, strlen(who));
	if (at)
		at = memmem(at, (size_t)(reply.data + reply.len - at), key, strlen(key));
	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void bad(const struct caller *c, const struct ask *a, const struct caller *whose, struct slice reply, const char *why)
{
	world_fail(c->host->w, a->lock, "host %d client %u: the answer about %s, which is delegated to client %u, %s: %.*s",
		   c->host->index, c->conn, c->host->w->lock_name[a->lock], whose->conn, why, (int)reply.len, reply.data);
}

static void check(struct caller *c, const struct ask *a, struct slice reply, const struct caller *whose)
{
	const struct kept *k = &whose->kept[a->lock];
	const struct holding *g = &whose->holding[a->lock];
	const struct client *client = c->host->broker->locks.conns[whose->conn];
	int64_t told, since = c->host->w->sched.now - k->at;

	if (!client || k->at >= a->asked_at)
		return;
	told = told_held_ms(reply, c->host, client->id);
	/*
	 * It may have got a lock that it asked for by message, also as one of several, and not have read the answer yet. Where
	 * the word is none, it may even have released such a grant since.
	 */
	if (k->state == KEPT_FREE && !delegation_none(&whose->page.slots[a->lock]) && !g->held && !whose->wait[a->lock].on &&
	    !several_asked(whose, a->lock) && told >= 0)
		bad(c, a, whose, reply, "says that it is held, but it was free all the time");
	if (k->state != KEPT_HELD || !g->held || g->lost || holding_unsure(g) || g->token != k->terms.token || g->depth > 1)
		return;
	if (told < 0)
		bad(c, a, whose, reply, "says that it is free, but it was held all the time");
	/* A host's second may be a little shorter. */
	if (told > (since + since / 10) / MS + 1)
		bad(c, a, whose, reply, "says that it has been held for longer than it was");
	c->host->w->stats->looked++;
}

void delegations_told(struct caller *c, const struct ask *a, struct slice reply)
{
	struct host *h = c->host;
	const struct lock *lock = h->broker ? lock_find(&h->broker->locks, slice_of(h->w->lock_name[a->lock])) : NULL;

	if (!h->w->mix->delegations || a->permits || !lock || lock->slots || reply.len == 0 || reply.data[0] == '-')
		return;
	for (int i = 0; i < h->client_count; i++)
		if (h->clients[i].has_page && h->clients[i].state == CLIENT_ON)
			check(c, a, reply, &h->clients[i]);
}
