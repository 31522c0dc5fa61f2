/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/notify.h"

#include "core/client/reply.h"
#include "core/kind/observe.h"
#include "core/lock/client_ledger.h"
#include "core/lock/locks.h"

/* Others who ask for what a client holds may fill this part, one in four, of what it may leave unread. */
enum { REVOKE_PART = 4 };

/* A push of RESP3, or an answer of EVENTS. The values are given as bytes_format() takes them. */
#define write_items(c, ...) write_values(c, BYTES_ARGUMENTS(__VA_ARGS__))
static void write_values(struct client *c, const struct bytes_value *values, size_t count)
{
	resp_push(reply_out(c), count, c->version);
	reply_values(reply_out(c), values, count);
}

static void write_session(struct client *c)
{
	const struct locks *locks = c->locks;

	if (c->told_jeopardy)
		write_items(c, "jeopardy", (session_safe_until(locks->ensemble) - locks->env->now_ns) / NS_PER_MS);
	else
		write_items(c, "safe");
}

static void write_leader(struct client *c, struct observer *o)
{
	const struct observation *known = observation_of(o->lock);
	bool looks = client_may(c, RULE_look, bytes_view(&o->lock->name), NULL);

	write_items(c, "leader", bytes_view(&o->lock->name), known->token, bytes_view(&known->host),
		    looks ? bytes_view(&known->data) : SLICE(""));
	observe_told(o);
}

static void write_notification(struct client *c, const struct notification *n)
{
	switch (n->type) {
	case NOTIFICATION_SESSION:
		write_session(c);
		break;
	case NOTIFICATION_LOST:
		write_items(c, "lost", bytes_view(&n->grant->lock->name), n->grant->token, loss_word(n->grant->loss));
		break;
	case NOTIFICATION_LEADER:
		write_leader(c, n->observer);
		break;
	case NOTIFICATION_REVOKE:
	case NOTIFICATION_TOLD:
		resp_push(reply_out(c), n->items, c->version);
		bytes_slice(reply_out(c), bytes_view(&n->text));
		break;
	}
}

/* ---- pushed, or kept for EVENTS ---- */

/* Once the push that fills the share of revocations is written, the share begins again: the client reads. */
static void push(struct client *c, const struct notification *n)
{
	bool was_full = notify_unresponsive(c);
	struct effect *e;

	/* Before the leader that it is told is noted as told. */
	client_ledger_told(c);
	write_notification(c, n);
	e = reply_push(c);
	if (n->type != NOTIFICATION_REVOKE)
		return;
	c->revoke_bytes += e->text.len;
	e->report = !was_full && notify_unresponsive(c);
}

static void end_wait(struct client *c)
{
	c->events_waiting = false;
	heap_unset(&c->locks->env->timers, &c->events_timer);
}

/* What is to be told first. A leader that is again the one who it was told last is not. NULL: nothing is. */
static struct notification *first(struct client *c)
{
	struct notification *n;

	while ((n = TAILQ_FIRST(&c->notifications)) && n->type == NOTIFICATION_LEADER && observe_knows(n->observer))
		notification_drop(c, n);
	return n;
}

/* EVENTS waits, and there is a notification: answers with the oldest. A grant whose loss is told ends here. */
static void answer_events(struct client *c)
{
	struct notification *n = TAILQ_FIRST(&c->notifications);
	struct grant *g = n->type == NOTIFICATION_LOST ? n->grant : NULL;

	write_notification(c, n);
	reply_end_whole(c);
	notification_drop(c, n);
	if (g)
		grant_end(g);
	end_wait(c);
}

/*
 * Takes over its text. A client that has left, and has something yet (hosts/release.h), is told nothing. Nor is a ghost: it
 * reads nothing, and a limit of what is unread would end what its process relies on.
 */
static void tell(struct client *c, struct notification n)
{
	if (c->version == 3 || c->closed || (c->ghost && notification_counts(n.type))) {
		if (c->version == 3 && !c->closed && !c->bearer)
			push(c, &n);
		bytes_free(&n.text);
		return;
	}
	notification_add(c, &n);
	if (c->events_waiting && !c->closing)
		answer_events(c);
}

/* ---- what is told ---- */

bool notify_full(const struct client *c)
{
	return c->version == 2 && c->notification_count + 1 >= c->locks->env->conf->limits.events_per_client;
}

bool notify_unresponsive(const struct client *c)
{
	return c->revoke_bytes > c->locks->env->conf->limits.output_bytes / REVOKE_PART;
}

void notify_lost(struct client *c, struct grant *g)
{
	if (c->lost_count > c->locks->env->conf->limits.grants_per_client && !c->ghost)
		client_close(c);
	tell(c, (struct notification){ .type = NOTIFICATION_LOST, .place = &g->notification, .grant = g });
}

void notify_session(struct client *c)
{
	bool jeopardy = c->locks->ensemble->session.state == SESSION_JEOPARDY;

	if (jeopardy == c->told_jeopardy)
		return;
	if (jeopardy && !c->is_holder)
		return;
	c->told_jeopardy = jeopardy;
	notification_drop(c, c->session_notification); /* only the latest counts */
	tell(c, (struct notification){ .type = NOTIFICATION_SESSION, .place = &c->session_notification });
}

void notify_leader(struct client *c, struct observer *o)
{
	tell(c, (struct notification){ .type = NOTIFICATION_LEADER, .place = &o->notification, .observer = o });
}

static struct notification composed(const struct bytes_value *values, size_t count)
{
	struct notification n = { .type = NOTIFICATION_TOLD, .items = count };

	reply_values(&n.text, values, count);
	return n;
}

void notify_values(struct client *c, const struct bytes_value *values, size_t count)
{
	tell(c, composed(values, count));
}

void notify_revoke(struct client *c, struct grant *g, struct slice reason)
{
	struct notification n = composed(BYTES_ARGUMENTS("revoke", bytes_view(&g->lock->name), g->token, reason));

	n.type = NOTIFICATION_REVOKE;
	n.place = &g->notification;
	notification_drop(c, g->notification);
	tell(c, n);
}

void notify_forget_unobserved(struct client *c, struct slice name)
{
	struct bytes begin = { 0 };
	struct notification *n, *after;

	reply_values(&begin, BYTES_ARGUMENTS("unobserved", name));
	TAILQ_FOREACH_SAFE(n, &c->notifications, link, after)
		if (n->text.len > begin.len && memcmp(n->text.data, begin.data, begin.len) == 0)
			notification_drop(c, n);
	bytes_free(&begin);
}

/* ---- EVENTS ---- */

void notify_wait(struct client *c, int64_t wait_ns)
{
	if (c->version == 3) {
		reply_error(c, ERROR_ERR, "this connection speaks RESP3: its events come as pushes");
		return;
	}
	c->events_waiting = true;
	if (first(c))
		answer_events(c);
	else if (wait_ns == 0 || c->half_closed)
		notify_end_wait(c);
	else if (wait_ns > 0)
		heap_set(&c->locks->env->timers, &c->events_timer, c->locks->env->now_ns + wait_ns);
}

void notify_end_wait(struct client *c)
{
	reply_nil_array(c);
	end_wait(c);
}

void notify_speak(struct client *c, int version)
{
	struct notification *n;

	c->version = version;
	while (version == 3 && (n = first(c))) {
		push(c, n);
		notification_drop(c, n);
	}
}
