/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/notify.h"

#include "core/client/reply.h"
#include "core/kind/observe.h"
#include "core/lock/locks.h"

/* Others who ask for what a client holds may fill this part, one in four, of what it may leave unread. */
enum { REVOKE_PART = 4 };

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
	const struct observation *known = o->lock->observation;

	resp_push(reply_out(c), 5, c->version);
	resp_bulk(reply_out(c), SLICE("leader"));
	resp_bulk(reply_out(c), bytes_view(&o->lock->name));
	resp_integer(reply_out(c), known->token);
	resp_bulk(reply_out(c), bytes_view(&known->host));
	resp_bulk(reply_out(c), bytes_view(&known->data));
}

static void write_notification(struct client *c, const struct notification *n)
{
	switch (n->type) {
	case NOTIFICATION_SESSION:
		write_session(c);
		break;
	case NOTIFICATION_LOST:
		write_lost(c, n->grant);
		break;
	case NOTIFICATION_LEADER:
		write_leader(c, n->observer);
		observe_told(n->observer);
		break;
	case NOTIFICATION_UNOBSERVED:
	case NOTIFICATION_REVOKE:
	case NOTIFICATION_TOLD:
		resp_push(reply_out(c), n->items, c->version);
		bytes_slice(reply_out(c), bytes_view(&n->text));
		break;
	}
}

/* EVENTS waits, and there is a notification: answers with the oldest. A grant whose loss is told ends here. */
static void answer_events(struct client *c)
{
	struct notification *n = TAILQ_FIRST(&c->notifications);
	struct grant *g = n->type == NOTIFICATION_LOST ? n->grant : NULL;
	size_t begin = reply_begin(c);

	write_notification(c, n);
	reply_end(c, begin);
	notification_drop(c, n);
	if (g)
		grant_end(g);
	c->events_waiting = false;
	heap_unset(&c->locks->env->timers, &c->events_timer);
}

bool notify_full(const struct client *c)
{
	return c->version == 2 && c->notification_count + 1 >= c->locks->env->conf->limits.events_per_client;
}

bool notify_unresponsive(const struct client *c)
{
	return c->revoke_bytes > c->locks->env->conf->limits.output_bytes / REVOKE_PART;
}

static void wake_events(struct client *c)
{
	if (c->events_waiting && !c->closing)
		answer_events(c);
}

void notify_lost(struct client *c, struct grant *g)
{
	if (c->lost_count > c->locks->env->conf->limits.grants_per_client)
		client_close(c);
	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		write_lost(c, g);
		reply_push(c, begin);
		return;
	}
	notification_add(c, NOTIFICATION_LOST, &g->notification)->grant = g;
	wake_events(c);
}

void notify_session(struct client *c)
{
	bool jeopardy = c->locks->ensemble->session.state == SESSION_JEOPARDY;

	if (jeopardy == c->told_jeopardy)
		return;
	if (jeopardy && !c->is_holder)
		return;
	c->told_jeopardy = jeopardy;
	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		write_session(c);
		reply_push(c, begin);
		return;
	}
	/* Only the latest counts. */
	notification_drop(c, c->session_notification);
	notification_add(c, NOTIFICATION_SESSION, &c->session_notification);
	wake_events(c);
}

void notify_leader(struct client *c, struct observer *o)
{
	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		write_leader(c, o);
		reply_push(c, begin);
		observe_told(o);
		return;
	}
	notification_add(c, NOTIFICATION_LEADER, &o->notification)->observer = o;
	wake_events(c);
}

/* Takes ownership of the text. Returns the push, valid until the next effect; NULL: the text is kept for EVENTS. */
static struct effect *tell(struct client *c, enum notification_type type, struct notification **place, size_t items,
			   struct bytes *text)
{
	struct notification *n;

	if (c->version == 3) {
		size_t begin = effects_begin(c->locks->env->out);

		resp_push(reply_out(c), items, c->version);
		bytes_slice(reply_out(c), bytes_view(text));
		bytes_free(text);
		return reply_push(c, begin);
	}
	n = notification_add(c, type, place);
	n->items = items;
	n->text = *text;
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

/* Once the push that fills the share is written, the share begins again: the client reads. */
static void revoke_pushed(struct client *c, struct effect *push)
{
	bool full = notify_unresponsive(c);

	c->revoke_bytes += push->text.len;
	push->report = !full && notify_unresponsive(c);
}

void notify_revoke(struct client *c, struct grant *g, struct slice reason)
{
	struct bytes text = { 0 };
	struct effect *push;

	notification_drop(c, g->notification);
	write_revoke(&text, g, reason);
	push = tell(c, NOTIFICATION_REVOKE, &g->notification, 4, &text);
	if (push)
		revoke_pushed(c, push);
}

void notify_granted(struct client *c, struct slice name, int64_t token)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("granted"));
	resp_bulk(&text, name);
	resp_integer(&text, token);
	tell(c, NOTIFICATION_TOLD, NULL, 3, &text);
}

void notify_timeout(struct client *c, struct slice name)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("timeout"));
	resp_bulk(&text, name);
	tell(c, NOTIFICATION_TOLD, NULL, 2, &text);
}

static void write_error(struct bytes *text, struct slice name, enum error_code code, struct slice sentence)
{
	resp_bulk(text, name);
	resp_bulk(text, slice_of(error_word(code)));
	resp_bulk(text, sentence);
}

void notify_failed(struct client *c, struct slice name, enum error_code code, struct slice sentence)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("failed"));
	write_error(&text, name, code, sentence);
	tell(c, NOTIFICATION_TOLD, NULL, 4, &text);
}

void notify_unobserved(struct client *c, struct slice name, enum error_code code, struct slice sentence)
{
	struct bytes text = { 0 };

	resp_bulk(&text, SLICE("unobserved"));
	write_error(&text, name, code, sentence);
	tell(c, NOTIFICATION_UNOBSERVED, NULL, 4, &text);
}

void notify_forget_unobserved(struct client *c, struct slice name)
{
	struct bytes begin = { 0 };
	struct notification *n, *after;

	resp_bulk(&begin, SLICE("unobserved"));
	resp_bulk(&begin, name);
	TAILQ_FOREACH_SAFE(n, &c->notifications, link, after)
		if (n->type == NOTIFICATION_UNOBSERVED && n->text.len > begin.len &&
		    memcmp(n->text.data, begin.data, begin.len) == 0)
			notification_drop(c, n);
	bytes_free(&begin);
}

void notify_wait(struct client *c, int64_t wait_ns)
{
	if (c->version == 3) {
		reply_error(c, ERROR_ERR, "this connection speaks RESP3: its events come as pushes");
		return;
	}
	c->events_waiting = true;
	if (!TAILQ_EMPTY(&c->notifications))
		answer_events(c);
	else if (wait_ns == 0 || c->half_closed)
		notify_end_wait(c);
	else if (wait_ns > 0)
		heap_set(&c->locks->env->timers, &c->events_timer, c->locks->env->now_ns + wait_ns);
}

void notify_end_wait(struct client *c)
{
	size_t begin = reply_begin(c);

	resp_nil_array(reply_out(c), c->version);
	reply_end(c, begin);
	c->events_waiting = false;
	heap_unset(&c->locks->env->timers, &c->events_timer);
}

void notify_speak(struct client *c, int version)
{
	struct notification *n;

	c->version = version;
	while (version == 3 && (n = TAILQ_FIRST(&c->notifications))) {
		size_t begin = effects_begin(c->locks->env->out);
		struct effect *push;

		write_notification(c, n);
		push = reply_push(c, begin);
		if (n->type == NOTIFICATION_REVOKE)
			revoke_pushed(c, push);
		notification_drop(c, n);
	}
}
