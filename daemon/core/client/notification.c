/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/notification.h"

#include "base/mem.h"
#include "core/client/mlock.h"
#include "core/client/reply.h"
#include "core/kind/observe.h"
#include "core/lock/locks.h"

/* Of what a client may leave unread: more than that is not filled by others who ask for what it holds. */
enum { REVOKE_PART = 4 };

/* What is bounded otherwise does not count. */
static bool counts(enum notification_type type)
{
	return type != NOTIFICATION_LOST && type != NOTIFICATION_LEADER;
}

static void event_free(struct client *c, struct notification *e)
{
	TAILQ_REMOVE(&c->events, e, link);
	if (counts(e->type))
		c->event_count--;
	if (e->observer)
		e->observer->event = NULL;
	if (e->type == NOTIFICATION_SESSION)
		c->session_event = false;
	bytes_free(&e->text);
	mem_free(e);
}

void client_drop_events(struct client *c)
{
	struct notification *e;

	while ((e = TAILQ_FIRST(&c->events)))
		event_free(c, e);
}

static void write_session(struct client *c)
{
	struct locks *locks = c->locks;

	if (!c->told_jeopardy) {
		resp_push(reply_out(c), 1, c->version);
		resp_bulk(reply_out(c), SLICE("safe"));
		return;
	}
	resp_push(reply_out(c), 2, c->version);
	resp_bulk(reply_out(c), SLICE("jeopardy"));
	resp_integer(reply_out(c), (session_safe_until(locks->ensemble) - locks->env->now_ns) / 1000000);
}

static void write_lost(struct client *c, const struct grant *g)
{
	resp_push(reply_out(c), 4, c->version);
	resp_bulk(reply_out(c), SLICE("lost"));
	resp_bulk(reply_out(c), bytes_view(&g->lock->name));
	resp_integer(reply_out(c), g->token);
	resp_bulk(reply_out(c), slice_of(loss_word(g->loss)));
}

static void write_leader(struct client *c, const struct observer *o)
{
	const struct observation *n = o->lock->observation;

	resp_push(reply_out(c), 5, c->version);
	resp_bulk(reply_out(c), SLICE("leader"));
	resp_bulk(reply_out(c), bytes_view(&o->lock->name));
	resp_integer(reply_out(c), n->token);
	resp_bulk(reply_out(c), bytes_view(&n->host));
	resp_bulk(reply_out(c), bytes_view(&n->data));
}

static void write_event(struct client *c, const struct notification *e)
{
	switch (e->type) {
	case NOTIFICATION_SESSION:
		write_session(c);
		break;
	case NOTIFICATION_LOST:
		write_lost(c, e->grant);
		break;
	case NOTIFICATION_LEADER:
		write_leader(c, e->observer);
		observe_told(e->observer);
		break;
	case NOTIFICATION_UNOBSERVED:
	case NOTIFICATION_REVOKE:
	case NOTIFICATION_TOLD:
		resp_push(reply_out(c), e->items, c->version);
		bytes_slice(reply_out(c), bytes_view(&e->text));
		break;
	}
}

/* EVENTS waits and there is one: answers with the oldest. A loss that was told so is done with. */
static void answer_events(struct client *c)
{
	struct notification *e = TAILQ_FIRST(&c->events);
	struct grant *g = e->type == NOTIFICATION_LOST ? e->grant : NULL;
	size_t begin = reply_begin(c);

	write_event(c, e);
	reply_end(c, begin);
	event_free(c, e);
	if (g)
		grant_end(g);
	c->events_waiting = false;
	heap_unset(&c->locks->env->timers, &c->events_timer);
}

static struct notification *add_event(struct client *c, enum notification_type type, struct grant *g)
{
	struct notification *e = mem_new(sizeof(*e));

	e->type = type;
	e->grant = g;
	TAILQ_INSERT_TAIL(&c->events, e, link);
	if (counts(type) && ++c->event_count > c->locks->env->conf->limits.events_per_client)
		client_close(c);
	return e;
}

bool client_events_full(const struct client *c)
{
	return c->version == 2 && c->event_count + 1 >= c->locks->env->conf->limits.events_per_client;
}

bool client_is_unresponsive(const struct client *c)
{
	return c->revoke_bytes > c->locks->env->conf->limits.output_bytes / REVOKE_PART;
}

static struct notification *find_event(const struct client *c, enum notification_type type, const struct grant *g)
{
	struct notification *e;

	TAILQ_FOREACH(e, &c->events, link)
		if (e->type == type && e->grant == g)
			return e;
	return NULL;
}

static void wake_events(struct client *c)
{
	if (c->events_waiting && !c->closing)
		answer_events(c);
}

static bool holds_something(const struct client *c)
{
	return c->grant_count > c->lost_count;
}

/* Only the latest counts. */
static void drop_session_event(struct client *c)
{
	if (c->session_event)
		event_free(c, find_event(c, NOTIFICATION_SESSION, NULL));
}

/* No more to the adapter of who is gone; standalone nobody asks who holds something. */
static void tell_holder(const struct client *c)
{
	struct effect *e;

	if (c->locks->env->conf->standalone || c->locks->conns[c->conn] != c)
		return;
	e = effects_add(c->locks->env->out, EFFECT_HOLDER);
	e->conn = c->conn;
	e->holds = c->is_holder;
}

void client_grants_changed(struct client *c)
{
	bool holds = holds_something(c);

	if (c->is_holder == holds)
		return;
	c->is_holder = holds;
	tell_holder(c);
	if (holds)
		return;
	c->told_jeopardy = false;
	drop_session_event(c);
}

void client_tell_lost(struct client *c, struct grant *g)
{
	client_grants_changed(c);
	/* It was not told of the grant either. */
	if (c->mlock && mlock_lost(c->mlock, g))
		return;
	if (c->lost_count > c->locks->env->conf->limits.grants_per_client)
		client_close(c);
	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		write_lost(c, g);
		reply_push(c, begin);
		return;
	}
	add_event(c, NOTIFICATION_LOST, g);
	wake_events(c);
}

void client_tell_session(struct client *c)
{
	bool jeopardy = c->locks->ensemble->session.state == SESSION_JEOPARDY;

	if (jeopardy == c->told_jeopardy)
		return;
	if (jeopardy && !holds_something(c))
		return;
	c->told_jeopardy = jeopardy;
	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		write_session(c);
		reply_push(c, begin);
		return;
	}
	drop_session_event(c);
	c->session_event = true;
	add_event(c, NOTIFICATION_SESSION, NULL);
	wake_events(c);
}

void client_tell_leader(struct client *c, struct observer *o)
{
	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		write_leader(c, o);
		reply_push(c, begin);
		observe_told(o);
		return;
	}
	o->event = add_event(c, NOTIFICATION_LEADER, NULL);
	o->event->observer = o;
	wake_events(c);
}

void client_drop_event(struct client *c, struct notification *e)
{
	event_free(c, e);
}

/* Takes the text over. The push, valid until the next effect; NULL: it is kept for EVENTS. */
static struct effect *tell(struct client *c, enum notification_type type, struct grant *g, size_t items, struct bytes *text)
{
	struct notification *e;

	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		resp_push(reply_out(c), items, c->version);
		bytes_slice(reply_out(c), bytes_view(text));
		bytes_free(text);
		return reply_push(c, begin);
	}
	e = add_event(c, type, g);
	e->items = items;
	e->text = *text;
	wake_events(c);
	return NULL;
}

static void write_revoke(struct bytes *text, const struct grant *g, struct slice reason)
{
	resp_bulk(text, SLICE("revoke"));
	resp_bulk(text, bytes_view(&g->lock->name));
	resp_integer(text, g->token);
	resp_bulk(text, reason);
}

/* What fills the share begins it again once it is written: the client reads. */
static void revoke_pushed(struct client *c, struct effect *push)
{
	bool full = client_is_unresponsive(c);

	c->revoke_bytes += push->text.len;
	push->report = !full && client_is_unresponsive(c);
}

void client_tell_revoke(struct client *c, struct grant *g, struct slice reason)
{
	struct bytes text = { 0 };
	struct effect *push;

	client_forget_revoke(c, g);
	write_revoke(&text, g, reason);
	push = tell(c, NOTIFICATION_REVOKE, g, 4, &text);
	if (push)
		revoke_pushed(c, push);
}

void client_forget_revoke(struct client *c, const struct grant *g)
{
	struct notification *e = find_event(c, NOTIFICATION_REVOKE, g);

	if (e)
		event_free(c, e);
}

void client_tell_granted(struct client *c, struct slice name, int64_t token)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("granted"));
	resp_bulk(&text, name);
	resp_integer(&text, token);
	tell(c, NOTIFICATION_TOLD, NULL, 3, &text);
}

void client_tell_timeout(struct client *c, struct slice name)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("timeout"));
	resp_bulk(&text, name);
	tell(c, NOTIFICATION_TOLD, NULL, 2, &text);
}

static void write_error(struct bytes *text, struct slice name, enum error_code code, const char *sentence)
{
	resp_bulk(text, name);
	resp_bulk(text, slice_of(error_word(code)));
	resp_bulk(text, slice_of(sentence));
}

void client_tell_failed(struct client *c, struct slice name, enum error_code code, const char *sentence)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("failed"));
	write_error(&text, name, code, sentence);
	tell(c, NOTIFICATION_TOLD, NULL, 4, &text);
}

void client_tell_unobserved(struct client *c, struct slice name, enum error_code code, const char *sentence)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("unobserved"));
	write_error(&text, name, code, sentence);
	tell(c, NOTIFICATION_UNOBSERVED, NULL, 4, &text);
}

void client_forget_unobserved(struct client *c, struct slice name)
{
	struct bytes begin = { 0 };
	struct notification *e, *after;

	resp_bulk(&begin, SLICE("unobserved"));
	resp_bulk(&begin, name);
	TAILQ_FOREACH_SAFE(e, &c->events, link, after)
		if (e->type == NOTIFICATION_UNOBSERVED && e->text.len > begin.len &&
		    memcmp(e->text.data, begin.data, begin.len) == 0)
			event_free(c, e);
	bytes_free(&begin);
}

void client_lost_told(struct client *c, struct grant *g)
{
	struct notification *e = find_event(c, NOTIFICATION_LOST, g);

	if (e)
		event_free(c, e);
	grant_end(g);
}

void client_events(struct client *c, int64_t wait_ns)
{
	if (c->version == 3) {
		reply_error(c, ERROR_ERR, "events come as pushes on this connection (HELLO 3)");
		return;
	}
	c->events_waiting = true;
	if (!TAILQ_EMPTY(&c->events))
		answer_events(c);
	else if (wait_ns == 0 || c->half_closed)
		client_events_end(c);
	else if (wait_ns > 0)
		heap_set(&c->locks->env->timers, &c->events_timer, c->locks->env->now_ns + wait_ns);
}

void client_events_end(struct client *c)
{
	size_t begin = reply_begin(c);

	resp_nil_array(reply_out(c), c->version);
	reply_end(c, begin);
	c->events_waiting = false;
	heap_unset(&c->locks->env->timers, &c->events_timer);
}

void client_speak(struct client *c, int version)
{
	struct notification *e;

	c->version = version;
	while (version == 3 && (e = TAILQ_FIRST(&c->events))) {
		size_t begin = effects_begin(c->locks->env->out);

		struct effect *push;

		write_event(c, e);
		push = reply_push(c, begin);
		if (e->type == NOTIFICATION_REVOKE)
			revoke_pushed(c, push);
		event_free(c, e);
	}
}
