/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/inbox.h"

#include "base/mem.h"
#include "core/hosts/hosts.h"
#include "core/znode/record.h"
#include "protocol/number.h"

enum { TRIES_MAX = 3 };

static const int64_t REFUSED_PAUSE_NS = 30000000000;

enum { LATE_PART = 4 }; /* of the session's timeout, in which a write is answered twice if nothing is wrong */

static void forget_names(struct inbox *m)
{
	bytes_free(&m->names);
	bytes_free(&m->data);
	mem_free(m->sorted);
	m->sorted = NULL;
	m->count = m->sent = m->done = 0;
}

void inbox_init(struct hosts *h)
{
	h->inbox.timer.kind = TIMER_INBOX;
	outbox_path(h, slice_of(h->env->conf->host), &h->inbox.path);
}

void inbox_deinit(struct hosts *h)
{
	bytes_free(&h->inbox.path);
	heap_unset(&h->env->timers, &h->inbox.timer);
	forget_names(&h->inbox);
}

/* Sends an operation on our box, or on the znode `name` in it. */
static void send(struct hosts *h, enum effect_type type, enum operation_kind kind, const char *name)
{
	struct operation_request r = {
		.op = { .kind = kind, .query = h->inbox.batch, .watch = kind == OPERATION_INBOX_LIST },
		.path = bytes_view(&h->inbox.path),
		.child = slice_of(name),
	};

	operation_send(h->ensemble, type, &r);
}

static void list_since(struct hosts *h, int64_t since_ns)
{
	heap_unset(&h->env->timers, &h->inbox.timer);
	h->inbox.since_ns = since_ns;
	h->inbox.state = INBOX_LISTING;
	h->inbox.again = h->inbox.refused = false;
	h->inbox.batch++;
	send(h, EFFECT_ZK_LIST, OPERATION_INBOX_LIST, "");
}

/* A letter that could not be deleted is still in the box, and as old as the list that showed it first. */
static int64_t posted_since(const struct hosts *h)
{
	if (h->inbox.refused)
		return h->inbox.since_ns;
	return session_safe_until(h->ensemble) == INT64_MIN ? 0 : h->ensemble->session.proved_ns;
}

void inbox_list(struct hosts *h)
{
	list_since(h, posted_since(h));
}

/* A letter that is read now may be so old that its sender has given it up, and has decided otherwise since. */
static bool is_late(const struct hosts *h)
{
	return h->env->now_ns - h->inbox.since_ns > LETTER_PATIENCE_NS + h->ensemble->session.timeout_ns / LATE_PART;
}

static void make(struct hosts *h)
{
	struct bytes path = { 0 };

	bytes_format(&path, "%s/", bytes_view(&h->inbox.path));
	presence_above(h->ensemble, bytes_view(&path)); /* all levels: the box is the parent of that path */
	bytes_free(&path);
	inbox_list(h);
}

static void rest(struct hosts *h)
{
	h->inbox.state = INBOX_PAUSED;
	h->inbox.tries = 0;
	heap_set(&h->env->timers, &h->inbox.timer, h->env->now_ns + REFUSED_PAUSE_NS);
}

void inbox_suspended(struct hosts *h)
{
	h->inbox.refused |= h->inbox.state == INBOX_LISTING || h->inbox.state == INBOX_READING;
	forget_names(&h->inbox);
	heap_unset(&h->env->timers, &h->inbox.timer);
	h->inbox.state = INBOX_NONE;
	h->inbox.tries = 0;
}

void inbox_due(struct hosts *h)
{
	if (h->inbox.state == INBOX_PAUSED || h->inbox.state == INBOX_WATCHING)
		inbox_list(h);
}

bool inbox_watched(struct hosts *h, struct slice path)
{
	if (!slice_eq(path, bytes_view(&h->inbox.path)))
		return false;
	/* A list that is under way sets the watch again: its answer is younger than the event of an older watch. */
	if (h->inbox.state == INBOX_WATCHING) {
		inbox_list(h);
	} else {
		h->inbox.again = h->inbox.state == INBOX_READING;
		h->inbox.again_ns = posted_since(h);
	}
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

void inbox_continue(struct hosts *h)
{
	struct inbox *m = &h->inbox;

	if (m->state != INBOX_READING || !h->ensemble->session.connected)
		return;
	while (m->sent < m->count && m->sent - m->done < INBOX_READS_MAX && turn_of_questions(h->locks->directories)) {
		send(h, EFFECT_ZK_GET, OPERATION_INBOX_GET, m->sorted[m->sent]);
		send(h, EFFECT_ZK_DELETE, OPERATION_INBOX_DELETE, m->sorted[m->sent]);
		m->sent++;
	}
	if (m->done < m->count)
		return;
	forget_names(m);
	if (m->again) {
		list_since(h, m->refused ? m->since_ns : m->again_ns);
		return;
	}
	m->state = INBOX_WATCHING;
	if (m->refused)
		heap_set(&h->env->timers, &m->timer, h->env->now_ns + REFUSED_PAUSE_NS);
}

static void list_answered(struct hosts *h, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	struct inbox *m = &h->inbox;

	if (code == ZK_OK) {
		m->tries = 0;
		m->state = INBOX_READING;
		keep_names(m, event);
		inbox_continue(h);
	} else if (code == ZK_NONODE && m->tries++ < TRIES_MAX) {
		make(h);
	} else if (code != ZK_UNKNOWN) {
		rest(h);
	}
}

static void get_answered(struct hosts *h, const struct event *event)
{
	struct slice data = event->zk_answered.data;

	bytes_clear(&h->inbox.data);
	if (event->zk_answered.code == ZK_OK && data.len <= INBOX_BYTES_MAX)
		bytes_slice(&h->inbox.data, data);
}

/* ---- a letter that this host alone has ---- */

/* False: it is not an answer to a letter of ours. */
static bool take_answer(struct hosts *h, struct slice data)
{
	struct slice id = record_get(data, "re");
	int64_t holders;

	if (forward_answered(h, id, data)) {
		outbox_was_read(h, id);
		return true;
	}
	if (!number_parse(record_get(data, "holders"), &holders))
		return false;
	outbox_was_read(h, id);
	revocation_answered(h, id, holders);
	return true;
}

static void take_letter(struct hosts *h, struct slice id, struct slice data)
{
	struct slice kind = record_get(data, "kind");

	h->env->stats.mail_received_total++;
	if (slice_is(kind, letter_kind_word(LETTER_REVOKE)))
		letter_task_received(h, LETTER_REVOKE, id, data);
	else if (slice_is(kind, letter_kind_word(LETTER_FORCE)))
		letter_task_received(h, LETTER_FORCE, id, data);
	else if (slice_is(kind, letter_kind_word(LETTER_VALUE)))
		forward_received(h, id, data, is_late(h));
	else if (!slice_is(kind, letter_kind_word(LETTER_ANSWER)) || !take_answer(h, data))
		h->env->stats.mail_ignored_total++;
}

void inbox_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	struct inbox *m = &h->inbox;

	if (op->query != m->batch)
		return;
	if (op->kind == OPERATION_INBOX_LIST) {
		list_answered(h, event);
	} else if (op->kind == OPERATION_INBOX_GET) {
		get_answered(h, event);
	} else {
		struct slice id = slice_of(m->sorted[m->done++]);

		if (code == ZK_OK)
			take_letter(h, id, bytes_view(&m->data));
		m->refused |= zk_refuses(code);
		inbox_continue(h);
	}
}
