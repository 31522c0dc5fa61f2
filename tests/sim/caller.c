/* SPDX-License-Identifier: Apache-2.0 */
/* A client's socket, as the adapter shows it to the broker, and the client's acts in time. */
#include "world.h"

#include <stdlib.h>

enum { PIECES_AT_END = 3 }; /* what it has is released in so many, and the rest at once */
enum socket_packet { SOCKET_CONNECT, SOCKET_ASK, SOCKET_HALF_CLOSE, SOCKET_GONE };

static void caller_think(void *client, uint64_t life);

static void think_later(struct caller *c, int64_t mean)
{
	struct world *w = c->host->w;

	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, mean / 10, mean * 2), caller_think, c, c->life);
}

static void socket_say(struct caller *c, enum socket_packet kind, const struct ask *a)
{
	struct world *w = c->host->w;
	struct message *m = message_new(&w->sched, kind);

	m->op = c->life;
	if (a)
		bytes_append(&m->text, a, sizeof(*a));
	pipe_push(&c->socket, m, rng_between(&w->rng, MS / 100, MS / 2));
}

static void caller_event(struct caller *c, enum event_type type)
{
	struct event e = { .type = type, .conn = c->conn };

	if (type == EVENT_CLIENT_CONNECTED) {
		e.connected.pid = 1000 + c->conn;
		e.connected.uid = c->conn % 2;
		e.connected.privileged = caller_is_operator(c);
		e.connected.comm = SLICE("sim");
	}
	host_handle(c->host, &e);
}

static void forget_waits(struct caller *c)
{
	int i;

	for (i = 0; i < LOCKS_MAX; i++)
		if (c->wait[i].on) {
			c->host->read_at_step[i] = 0; /* who stood behind it was not at the front */
			if (c->wait[i].blind)
				check_forget_last(c->host, i);
		}
	memset(c->wait, 0, sizeof(c->wait));
	if (c->asking)
		several_forget(c, &c->current);
}

void caller_let_go(struct caller *c)
{
	int i;

	for (i = 0; i < LOCKS_MAX; i++)
		c->host->wanted_at[i] = c->host->moved_at[i] = c->host->w->sched.now;
	memset(c->holding, 0, sizeof(c->holding));
	memset(c->watching, 0, sizeof(c->watching));
	c->permits = (struct permits){ 0 };
	forget_waits(c);
}

static void caller_forget(struct caller *c)
{
	caller_let_go(c);
	c->state = CLIENT_OFF;
	c->life++;
	c->asking = c->half_closed = false;
	c->owner = 0;
	c->queued = c->sent = c->hellos_sent = 0;
	memset(c->enqueues_sent, 0, sizeof(c->enqueues_sent));
	c->id = 0;
	delegations_forget(c);
	pipe_clear(&c->socket);
}

/* What the adapter does when the connection is closed for good. */
static void caller_gone(void *client, uint64_t life)
{
	struct caller *c = client;
	struct world *w = c->host->w;
	int lock;

	if (life != c->life || c->state == CLIENT_OFF)
		return;
	if (c->host->stopped_until > w->sched.now) {
		sched_at(&w->sched, c->host->stopped_until, caller_gone, c, life);
		return;
	}
	/* Deadlines come before the event: an answer may still be on its way to nobody, and be a grant. */
	for (lock = 0; lock < w->lock_count; lock++)
		if (c->wait[lock].on || (c->asking && c->current.command == COMMAND_LOCK && c->current.lock == lock))
			check_forget_last(c->host, lock);
	caller_forget(c);
	c->going = c->host->loses_one = true;
	for (int i = 0; c->host->conf.all_in_pieces && i < PIECES_AT_END; i++) {
		caller_event(c, EVENT_CLIENT_LEAVES);
		c->host->loses_one = false;
	}
	caller_event(c, EVENT_CLIENT_GONE);
	c->going = c->host->loses_one = false;
	c->host->holds[c->conn] = false;
	think_later(c, w->mix->think_ms * MS);
}

static void adapter_close(struct caller *c)
{
	struct sched *s = &c->host->w->sched;

	if (c->state != CLIENT_ON)
		return;
	c->state = CLIENT_CLOSING;
	sched_at(s, s->now + MS / 10, caller_gone, c, c->life);
}

static void caller_ask(struct caller *c, const struct ask *a)
{
	struct slice words[ASK_WORDS];
	char buffer[ASK_BYTES];
	struct event e = { .type = EVENT_CLIENT_ASKED, .conn = c->conn };

	/* All that was kept under RESP2 has been pushed since. */
	for (int i = 0; i < LOCKS_MAX && c->protocol == 3; i++)
		c->wait[i].blind = false;
	c->current = *a;
	c->current.order = ++c->host->order;
	c->current.asked_at = c->host->w->sched.now;
	c->current.protocol = c->protocol;
	c->asking = true;
	c->host->w->stats->requests++;
	if (a->command == COMMAND_CLIENT && a->owner < 0)
		c->host->clients[a->target].unblocked_at = c->host->w->sched.now;
	e.asked.argv = words;
	e.asked.argc = ask_words(c, a, words, buffer);
	host_handle(c->host, &e);
	if (c->half_closed && c->asking)
		caller_event(c, EVENT_CLIENT_HALF_CLOSED);
}

/* As the adapter: the next request is handed over when the one before was answered. */
void caller_ask_next(struct caller *c)
{
	if (c->state != CLIENT_ON || c->asking)
		return;
	if (c->queued) {
		struct ask a = c->queue[0];

		memmove(c->queue, c->queue + 1, sizeof(a) * (size_t)--c->queued);
		caller_ask(c, &a);
	} else if (c->half_closed) {
		adapter_close(c);
	}
}

static void ask_next_due(void *client, uint64_t life)
{
	struct caller *c = client;

	if (life == c->life)
		caller_ask_next(c);
}

static void socket_delivered(void *client, struct message *m)
{
	struct caller *c = client;
	enum socket_packet kind = (enum socket_packet)m->kind;
	bool stale = m->op != c->life;
	struct ask a;

	if (kind == SOCKET_ASK)
		memcpy(&a, m->text.data, sizeof(a));
	message_free(&c->host->w->sched, m);
	if (stale || !c->host->broker)
		return;
	switch (kind) {
	case SOCKET_CONNECT:
		c->state = CLIENT_ON;
		c->protocol = 2;
		c->jeopardy = false;
		c->wants_pushes = rng_percent(&c->host->w->rng, c->host->w->mix->delegations ? 90 : 60);
		caller_event(c, EVENT_CLIENT_CONNECTED);
		think_later(c, MS);
		break;
	case SOCKET_ASK:
		if (c->state != CLIENT_ON)
			break;
		c->queue[c->queued++] = a;
		caller_ask_next(c);
		break;
	case SOCKET_HALF_CLOSE:
		c->half_closed = true;
		if (c->state == CLIENT_ON && c->asking)
			caller_event(c, EVENT_CLIENT_HALF_CLOSED);
		caller_ask_next(c);
		break;
	case SOCKET_GONE:
		caller_gone(c, c->life);
		break;
	}
}

void caller_init(struct caller *c, struct host *h, uint32_t conn)
{
	c->host = h;
	c->conn = conn;
	c->state = CLIENT_OFF;
	pipe_init(&c->socket, &h->w->sched, socket_delivered, c);
	c->socket.gate = &h->stopped_until;
}

void caller_begin(struct caller *c)
{
	think_later(c, c->host->w->mix->think_ms * MS);
}

void caller_cut(struct caller *c)
{
	caller_forget(c);
}

void caller_close(struct caller *c)
{
	/* What it holds may be given to others from now on. */
	memset(c->holding, 0, sizeof(c->holding));
	c->permits = (struct permits){ 0 };
	forget_waits(c);
	adapter_close(c);
}

void caller_hang_up(struct caller *c)
{
	if (c->state == CLIENT_OFF)
		return;
	/* The adapter looks no further at what was sent before. */
	pipe_clear(&c->socket);
	socket_say(c, SOCKET_GONE, NULL);
}

/* What a server is too busy for is tried again: that ends no wait. */
static void check_refusal(const struct caller *c, struct slice reply)
{
	static const char *const refusals[] = { "create", "list", "read", "make", "write" };
	static const char begin[] = "-UNAVAILABLE ZooKeeper refuses to ";
	size_t len = strlen(begin);

	if (c->host->w->zk.refused || reply.len < len + 6 || memcmp(reply.data, begin, len) != 0)
		return;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (memcmp(reply.data + len, refusals[i], strlen(refusals[i])) == 0)
			world_fail(c->host->w, -1, "host %d client %u: nothing was refused for good: %.*s", c->host->index, c->conn,
				   (int)reply.len, reply.data);
}

void caller_replied(struct caller *c, struct slice reply)
{
	struct world *w = c->host->w;
	struct ask a = c->current;

	if (!c->asking)
		world_fail(w, -1, "host %d client %u: a reply without a request: %.*s", c->host->index, c->conn,
			   (int)reply.len, reply.data);
	check_refusal(c, reply);
	c->asking = false;
	c->sent--;
	if (a.permits)
		permits_answered(c, &a, reply);
	else
		answer_taken(c, &a, reply);
	if (c->queued || c->half_closed)
		sched_at(&w->sched, w->sched.now, ask_next_due, c, c->life);
}

static int64_t hold_ns(struct world *w)
{
	if (rng_percent(&w->rng, w->mix->long_hold_percent))
		return rng_between(&w->rng, w->timeout / 10, w->timeout * 3 / 2);
	return rng_between(&w->rng, 0, w->mix->hold_us ? w->mix->hold_us * 1000 : 60 * MS);
}

static bool holds_any(const struct caller *c)
{
	int i;

	for (i = 0; i < LOCKS_MAX; i++)
		if (c->holding[i].held)
			return true;
	return c->permits.count > 0;
}

static bool waits_any(const struct caller *c)
{
	int i;

	for (i = 0; i < LOCKS_MAX; i++)
		if (c->wait[i].on)
			return true;
	return false;
}

static void send_ask(struct caller *c)
{
	struct ask a = elections_turn(c, ask_choose(c));

	if (delegations_turn(c, &a) || a.command == COMMAND_COUNT)
		return;
	c->sent++;
	c->enqueues_sent[a.lock] += a.command == COMMAND_ENQUEUE;
	c->hellos_sent += a.command == COMMAND_HELLO;
	socket_say(c, SOCKET_ASK, &a);
}

static bool still_needed(struct caller *c)
{
	return !c->host->w->quiet || c->sent || holds_any(c) || waits_any(c) || !c->done;
}

static void caller_think(void *client, uint64_t life)
{
	struct caller *c = client;
	struct world *w = c->host->w;

	if (life != c->life || w->leaving || !still_needed(c))
		return;
	if (c->host->crashed || (c->host->broker && c->host->ghosts[c->conn].on)) {
		think_later(c, w->mix->think_ms * MS);
		return;
	}
	if (!c->host->broker)
		return;
	if (c->state == CLIENT_OFF) {
		if (c->socket.head == NULL)
			socket_say(c, SOCKET_CONNECT, NULL);
		return;
	}
	if (c->state == CLIENT_CLOSING)
		return;
	if (delegations_busy(c)) {
		think_later(c, w->mix->think_ms * MS);
		return;
	}
	if (!w->quiet && rng_percent(&w->rng, 2)) {
		caller_hang_up(c);
		return;
	}
	if (!w->quiet && rng_percent(&w->rng, 1)) {
		socket_say(c, SOCKET_HALF_CLOSE, NULL);
		return;
	}
	if (c->sent == 0)
		send_ask(c);
	else if (!w->quiet && c->sent < QUEUE_MAX && rng_percent(&w->rng, 5))
		send_ask(c);
	think_later(c, holds_any(c) ? hold_ns(w) + MS / 10 : w->mix->think_ms * MS);
}
