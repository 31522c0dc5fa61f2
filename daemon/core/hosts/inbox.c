/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/inbox.h"

#include "base/mem.h"
#include "core/session/presence.h"
#include "core/hosts/revocation.h"
#include "core/hosts/outbox.h"
#include "core/znode/record.h"
#include "core/hosts/revoke.h"
#include "core/state.h"
#include "protocol/number.h"

enum { TRIES_MAX = 3 };

static const int64_t REFUSED_PAUSE_NS = 30000000000;

void inbox_init(struct broker *b)
{
	b->inbox.timer.kind = TIMER_INBOX;
}

static void forget_names(struct inbox *m)
{
	bytes_free(&m->names);
	bytes_free(&m->data);
	mem_free(m->sorted);
	m->sorted = NULL;
	m->count = m->sent = m->done = 0;
}

void inbox_deinit(struct broker *b)
{
	outbox_forget_all(b);
	heap_unset(&b->timers, &b->inbox.timer);
	forget_names(&b->inbox);
}

void inbox_path(const struct broker *b, struct slice host, struct bytes *out)
{
	bytes_text(out, b->conf->root);
	bytes_text(out, "/.mail/");
	bytes_slice(out, host);
}

static void own_path(const struct broker *b, struct bytes *out)
{
	inbox_path(b, slice_of(b->conf->host), out);
}

/* To our box, or to what is called `name` in it. */
static void send(struct broker *b, enum effect_type type, enum operation_kind kind, const char *name)
{
	struct operation_request r = {
		.op = { .kind = kind, .query = b->inbox.batch, .watch = kind == OPERATION_INBOX_LIST }
	};
	struct bytes path = { 0 };

	own_path(b, &path);
	if (name) {
		bytes_char(&path, '/');
		bytes_text(&path, name);
	}
	r.path = bytes_view(&path);
	operation_send(b, type, &r);
	bytes_free(&path);
}

static void list(struct broker *b)
{
	heap_unset(&b->timers, &b->inbox.timer);
	b->inbox.state = INBOX_LISTING;
	b->inbox.again = b->inbox.refused = false;
	b->inbox.batch++;
	send(b, EFFECT_ZK_LIST, OPERATION_INBOX_LIST, NULL);
}

static void make(struct broker *b)
{
	struct bytes path = { 0 };

	own_path(b, &path);
	bytes_char(&path, '/');
	presence_above(b, bytes_view(&path)); /* all levels: the box is above what would stand in it */
	bytes_free(&path);
	list(b);
}

static void rest(struct broker *b)
{
	b->inbox.state = INBOX_PAUSED;
	b->inbox.tries = 0;
	heap_set(&b->timers, &b->inbox.timer, b->now_ns + REFUSED_PAUSE_NS);
}

void inbox_connected(struct broker *b)
{
	list(b);
	outbox_connected(b);
}

void inbox_suspended(struct broker *b)
{
	forget_names(&b->inbox);
	heap_unset(&b->timers, &b->inbox.timer);
	b->inbox.state = INBOX_NONE;
	b->inbox.tries = 0;
	revocation_suspended(b);
}

void inbox_forget(struct broker *b)
{
	outbox_forget_all(b);
}

void inbox_due(struct broker *b)
{
	if (b->inbox.state == INBOX_PAUSED || b->inbox.state == INBOX_WATCHING)
		list(b);
}

bool inbox_watched(struct broker *b, struct slice path)
{
	struct bytes own = { 0 };
	bool is_own;

	own_path(b, &own);
	is_own = slice_eq(path, bytes_view(&own));
	bytes_free(&own);
	if (!is_own)
		return false;
	/* A list under way asks for the watch anew: its answer is younger than the event of an older watch. */
	if (b->inbox.state == INBOX_WATCHING)
		list(b);
	else
		b->inbox.again = b->inbox.state == INBOX_READING;
	return true;
}

/* ---- what the list showed ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void keep_names(struct inbox *m, const struct event *event)
{
	size_t at = 0;

	m->count = event->zk_answered.count;
	m->sorted = mem_new((m->count + 1) * sizeof(*m->sorted));
	for (size_t i = 0; i < m->count; i++) {
		bytes_slice(&m->names, event->zk_answered.children[i]);
		bytes_char(&m->names, '\0');
	}
	for (size_t i = 0; i < m->count; i++) {
		m->sorted[i] = m->names.data + at;
		at += strlen(m->sorted[i]) + 1;
	}
	qsort(m->sorted, m->count, sizeof(*m->sorted), by_name);
}

static void read_more(struct broker *b)
{
	struct inbox *m = &b->inbox;

	if (!b->session.connected)
		return;
	while (m->sent < m->count && m->sent - m->done < INBOX_READS_MAX && turn_of_questions(b)) {
		send(b, EFFECT_ZK_GET, OPERATION_INBOX_GET, m->sorted[m->sent]);
		send(b, EFFECT_ZK_DELETE, OPERATION_INBOX_DELETE, m->sorted[m->sent]);
		m->sent++;
	}
	if (m->done < m->count)
		return;
	forget_names(m);
	if (m->again) {
		list(b);
		return;
	}
	m->state = INBOX_WATCHING;
	if (m->refused)
		heap_set(&b->timers, &m->timer, b->now_ns + REFUSED_PAUSE_NS);
}

void inbox_continue(struct broker *b)
{
	if (b->inbox.state == INBOX_READING)
		read_more(b);
}

static void list_answered(struct broker *b, const struct event *event)
{
	struct inbox *m = &b->inbox;

	switch (event->zk_answered.code) {
	case ZK_OK:
		m->tries = 0;
		m->state = INBOX_READING;
		keep_names(m, event);
		read_more(b);
		break;
	case ZK_NONODE:
		if (m->tries++ < TRIES_MAX)
			make(b);
		else
			rest(b);
		break;
	case ZK_UNKNOWN:
		break;
	case ZK_NODEEXISTS:
	case ZK_NOTEMPTY:
	case ZK_BADVERSION:
	case ZK_REFUSED:
		rest(b);
		break;
	}
}

static void ignore(struct broker *b)
{
	b->stats.mail_ignored_total++;
}

static void answer_received(struct broker *b, struct slice data)
{
	struct slice id = record_get(data, "re");
	int64_t holders;

	if (!number_parse(record_get(data, "holders"), &holders)) {
		ignore(b);
		return;
	}
	outbox_answered(b, id);
	revocation_answered(b, id, holders);
}

static void act(struct broker *b, struct slice id, struct slice data)
{
	struct slice kind = record_get(data, "kind");

	b->stats.mail_received_total++;
	if (slice_is(kind, letter_kind_word(LETTER_ANSWER)))
		answer_received(b, data);
	else if (slice_is(kind, letter_kind_word(LETTER_REVOKE)))
		revoke_received(b, LETTER_REVOKE, id, data);
	else if (slice_is(kind, letter_kind_word(LETTER_FORCE)))
		revoke_received(b, LETTER_FORCE, id, data);
	else
		ignore(b);
}

static void get_answered(struct broker *b, const struct event *event)
{
	struct slice data = event->zk_answered.data;

	bytes_clear(&b->inbox.data);
	if (event->zk_answered.code == ZK_OK && data.len <= INBOX_BYTES_MAX)
		bytes_slice(&b->inbox.data, data);
}

static void delete_answered(struct broker *b, const struct event *event)
{
	struct inbox *m = &b->inbox;
	struct slice id = slice_of(m->sorted[m->done++]);

	if (event->zk_answered.code == ZK_OK)
		act(b, id, bytes_view(&m->data));
	m->refused |= event->zk_answered.code == ZK_REFUSED;
	read_more(b);
}

void inbox_answered(struct broker *b, const struct operation *op, const struct event *event)
{
	if (op->query != b->inbox.batch)
		return;
	if (op->kind == OPERATION_INBOX_LIST)
		list_answered(b, event);
	else if (op->kind == OPERATION_INBOX_GET)
		get_answered(b, event);
	else
		delete_answered(b, event);
}
