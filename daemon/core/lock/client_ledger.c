/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/client_ledger.h"

#include "base/cold.h"
#include "base/mem.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"

/* ---- as fields of an entry ---- */

enum { TEXT_MAX = 4096 };

static const struct field fields[] = {
	FIELD_ANY(struct client, "pid", pid),
	FIELD_ANY(struct client, "started", started),
	FIELD_TEXT(struct client, "unit", unit, TEXT_MAX),
	FIELD_FLAG(struct client, "privileged", privileged),
	FIELD_NUMBER(struct client, "id", id, 1, INT64_MAX),
	FIELD_NUMBER(struct client, "version", version, 2, 3),
	FIELD_FLAG(struct client, "half closed", half_closed),
	FIELD_FLAG(struct client, "asking", asking),
	FIELD_FLAG(struct client, "lazy", lazy),
	FIELD_FLAG(struct client, "closed", closed),
	FIELD_INSTANT(struct client, "connected", connected_ns),
	FIELD_TEXT(struct client, "comm", comm, TEXT_MAX),
	FIELD_TEXT(struct client, "name", name, TEXT_MAX),
	FIELD_TEXT(struct client, "lib name", lib_name, TEXT_MAX),
	FIELD_TEXT(struct client, "lib version", lib_version, TEXT_MAX),
	FIELD_ANY(struct client, "child", child),
	FIELD_TEXT(struct client, "child comm", child_comm, TEXT_MAX),
	FIELD_FLAG(struct client, "child known", child_known),
	FIELD_FLAG(struct client, "child ended", child_ended),
	FIELD_FLAG(struct client, "peer ended", peer_ended),
	FIELD_NUMBER(struct client, "revoke bytes", revoke_bytes, 0, INT32_MAX),
	FIELD_FLAG(struct client, "told jeopardy", told_jeopardy),
	FIELD_FLAG(struct client, "events", events_waiting),
	FIELD_FLAG(struct client, "reloading", reloading),
	FIELD_FLAG(struct client, "delegating", delegating),
	FIELD_FLAG(struct client, "ghost", ghost),
	FIELD_FLAG(struct client, "recorded", recorded),
	FIELD_FLAG(struct client, "resetting", resetting),
};

void client_entry_write(const struct client *c, struct entry_writer *w)
{
	entry_fields(w, FIELDS(fields), c);
	if (c->group)
		entry_text(w, "group", bytes_view(&c->group->name));
	if (c->bearer)
		entry_text(w, "value", bytes_view(&c->bearer->value));
	if (c->bearer)
		entry_number(w, "tied", c->bearer->lifeline != NULL);
}

bool client_entry_read(struct client *c, const struct entry *e)
{
	return entry_get_fields(e, FIELDS(fields), c);
}

/* ---- in the ledger ---- */

/* A name, a unit, a program and a value, of which a unit is the longest. */
enum { BEARER_TEXT_BYTES = 4096 };

static struct ledger *ledger_of(const struct client *c)
{
	return c->locks->env->ledger;
}

static bool is_busy(const struct client *c)
{
	return c->request_count > (c->request != NULL) ||
	       c->notification_count > (c->session_notification != NULL) || c->half_closed || c->closing;
}

static uint64_t flags_of(const struct client *c)
{
	return (is_busy(c) ? LEDGER_BUSY : 0) | (c->session_notification ? LEDGER_UNREAD : 0);
}

static void set_flags(struct client *c, uint64_t flags)
{
	if (c->record->flags != flags)
		ledger_store(ledger_of(c), &c->record->flags, flags);
}

static void write(struct client *c, const struct bytes *text, size_t pairs, uint64_t flags)
{
	struct ledger *l = ledger_of(c);
	struct ledger_client *r = ledger_take(l, sizeof(*r) + text->len);

	r->head.number = c->id;
	r->flags = flags | flags_of(c);
	r->conn = c->conn;
	r->uid = c->uid;
	r->pairs = (uint32_t)pairs;
	r->length = (uint32_t)text->len;
	memcpy(r->text, text->data, text->len);
	ledger_publish(l, &r->head, LEDGER_CLIENT);
	if (c->record)
		ledger_drop(l, &c->record->head);
	c->record = r;
	c->recorded = true;
}

/* Who it is, whatever it is doing. */
static void write_lasting(const struct client *c, struct entry_writer *w)
{
	struct client lasting = {
		.pid = c->pid,
		.started = c->started,
		.unit = c->unit,
		.privileged = c->privileged,
		.version = c->version,
		.connected_ns = c->connected_ns,
		.comm = c->comm,
		.name = c->name,
		.lib_name = c->lib_name,
		.lib_version = c->lib_version,
		.child = c->child,
		.child_comm = c->child_comm,
		.child_known = c->child_known,
		.child_ended = c->child_ended,
		.peer_ended = c->peer_ended,
		.group = c->group,
		.bearer = c->bearer,
	};

	client_entry_write(&lasting, w);
}

/* A bearer's value is in it, and was never in memory that is free by now. */
static struct entry_writer begin(const struct client *c, struct bytes *text)
{
	if (c->bearer)
		bytes_reserve(text, BEARER_TEXT_BYTES);
	return (struct entry_writer){ .out = text };
}

static void end(const struct client *c, struct bytes *text)
{
	if (c->bearer)
		mem_wipe(text->data, text->cap);
	bytes_free(text);
}

static void write_text(struct client *c, uint64_t flags)
{
	struct bytes text = { 0 };
	struct entry_writer w = begin(c, &text);

	write_lasting(c, &w);
	if (!c->record || c->record->length != text.len || memcmp(c->record->text, text.data, text.len) != 0)
		write(c, &text, w.values / 2, flags);
	end(c, &text);
}

COLD void client_ledger_add(struct client *c)
{
	if (ledger_of(c) && !c->record)
		write_text(c, 0);
}

void client_ledger_remove(struct client *c)
{
	if (!ledger_of(c) || !c->record)
		return;
	if (c->record->flags & LEDGER_TOLD)
		TAILQ_REMOVE(&c->locks->told, c, told_link);
	if (c->bearer && !(c->record->head.word & LEDGER_PRIVATE)) {
		struct ledger_client *r = c->record;

		ledger_drop(ledger_of(c), &r->head);
		mem_wipe(r->text, r->length); /* nobody takes the cell for a record any longer */
	} else {
		ledger_drop(ledger_of(c), &c->record->head);
	}
	c->record = NULL;
}

void client_ledger_changed(struct client *c)
{
	if (ledger_of(c) && c->record)
		write_text(c, c->record->flags & LEDGER_TOLD);
}

/* Marks it as told in the same store that takes other marks off. */
static void mark_told(struct client *c, uint64_t flags)
{
	if (!(c->record->flags & LEDGER_TOLD))
		TAILQ_INSERT_TAIL(&c->locks->told, c, told_link);
	set_flags(c, flags | LEDGER_TOLD);
}

/* What it waited for has ended, and may be told to it later in this event. */
COLD void client_ledger_review(struct client *c)
{
	uint64_t flags;

	if (!ledger_of(c) || !c->record)
		return;
	flags = flags_of(c);
	if (c->record->flags & LEDGER_BUSY && !(flags & LEDGER_BUSY))
		mark_told(c, flags);
	else
		set_flags(c, flags | (c->record->flags & LEDGER_TOLD));
}

void client_ledger_told(struct client *c)
{
	if (ledger_of(c) && c->record)
		mark_told(c, c->record->flags);
}

void client_ledger_all_told(struct locks *locks)
{
	struct client *c;

	while ((c = TAILQ_FIRST(&locks->told))) {
		TAILQ_REMOVE(&locks->told, c, told_link);
		set_flags(c, c->record->flags & ~(uint64_t)LEDGER_TOLD);
	}
}

bool client_ledger_is_true(const struct client *c)
{
	struct bytes text = { 0 };
	struct entry_writer w = begin(c, &text);
	bool same;

	write_lasting(c, &w);
	same = slice_eq(bytes_view(&text), (struct slice){ c->record->text, c->record->length });
	end(c, &text);
	return same && c->record->pairs == w.values / 2 &&
	       (c->record->flags | LEDGER_TOLD) == (flags_of(c) | LEDGER_TOLD);
}
