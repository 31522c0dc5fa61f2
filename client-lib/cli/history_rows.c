/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/history_rows.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static void free_row(struct history_row *row)
{
	journal_entry_free(&row->entry);
	journal_entry_free(&row->begin);
}

static void remove_rows(struct history_rows *all, size_t at, size_t count)
{
	for (size_t i = at; i < at + count; i++)
		free_row(&all->rows[i]);
	if (count == 0)
		return;
	all->count -= count;
	memmove(all->rows + at, all->rows + at + count, (all->count - at) * sizeof(*all->rows));
}

/* It has the row now. */
static void add_row(struct history_rows *all, const struct history_row *row)
{
	if (all->count == HISTORY_ROWS_MAX) {
		remove_rows(all, 0, HISTORY_ROWS_MAX / 2);
		all->left_out += HISTORY_ROWS_MAX / 2;
	}
	if (all->count == all->cap) {
		all->cap = all->cap ? 2 * all->cap : 64;
		all->rows = realloc(all->rows, all->cap * sizeof(*all->rows));
		if (!all->rows)
			abort();
	}
	all->rows[all->count++] = *row;
}

static void free_rows(struct history_rows *all)
{
	remove_rows(all, 0, all->count);
	free(all->rows);
	*all = (struct history_rows){ 0 };
}

static bool overlaps(const struct history *h, int64_t since_ms, int64_t until_ms)
{
	return since_ms <= h->to_ms && until_ms >= h->from_ms;
}

static void show(const struct history *h, struct history_rows *all, struct history_row *row)
{
	if (overlaps(h, row->since_ms, row->until_ms))
		add_row(all, row);
	else
		free_row(row);
}

/* ---- entries ---- */

static bool is_event(const struct journal_entry *entry, const char *event)
{
	return slice_eq(journal_field(entry, "LOCKBROKER_EVENT"), slice_of(event));
}

static bool is_same(const struct journal_entry *a, const struct journal_entry *b, const char *field)
{
	return slice_eq(journal_field(a, field), journal_field(b, field));
}

/* These fields identify a client. Its number alone does not: each daemon that starts anew counts its connections from 1. */
static const char *const client_fields[] = { "_MACHINE_ID", "LOCKBROKER_CLIENT", "LOCKBROKER_PID" };

enum { CLIENT_FIELDS = sizeof(client_fields) / sizeof(client_fields[0]) };

/* FNV-1a. */
static uint64_t who_of(const struct journal_entry *entry)
{
	uint64_t h = 0xcbf29ce484222325;

	for (int field = 0; field < CLIENT_FIELDS; field++) {
		struct slice text = journal_field(entry, client_fields[field]);

		for (size_t i = 0; i < text.len; i++)
			h = (h ^ (unsigned char)text.data[i]) * 0x100000001b3;
		h *= 0x100000001b3;
	}
	return h;
}

/* `who`: of the entry. Thousands of rows may be open, and each entry looks at all of them. */
static bool is_of_the_same(const struct history_row *row, const struct journal_entry *entry, uint64_t who)
{
	int field = 0;

	if (row->who != who)
		return false;
	while (field < CLIENT_FIELDS && is_same(&row->entry, entry, client_fields[field]))
		field++;
	return field == CLIENT_FIELDS;
}

/* When it was written. */
static int64_t entry_ms(const struct journal_entry *entry)
{
	return journal_number(entry, "__REALTIME_TIMESTAMP") / 1000;
}

static uint64_t counted(const struct journal_entry *entry, const char *field)
{
	int64_t number = journal_number(entry, field);

	return number > 0 ? (uint64_t)number : 0;
}

static bool is_shared(const struct journal_entry *entry)
{
	return slice_eq(journal_field(entry, "LOCKBROKER_KIND"), SLICE("semaphore")) ||
	       slice_eq(journal_field(entry, "LOCKBROKER_MODE"), SLICE("shared"));
}

/* What lasted `field` milliseconds, up to the entry if it does not say since when. */
static struct history_row row_of(struct history *h, const struct journal_entry *entry, const char *field)
{
	struct history_row row = { .number = h->entries, .who = who_of(entry), .is_shared = is_shared(entry) };
	int64_t lasted_ms = journal_number(entry, field);

	lasted_ms = lasted_ms < 0 ? 0 : lasted_ms;
	row.since_ms = journal_number(entry, "LOCKBROKER_SINCE_MS");
	if (row.since_ms < 0)
		row.since_ms = entry_ms(entry) - lasted_ms;
	row.until_ms = row.since_ms + lasted_ms;
	return row;
}

/* A client got the lock: a client that cannot share it no longer held it. The entry of a delegation has no mode. */
static void end_others(struct history *h, const struct journal_entry *entry, const struct history_row *by)
{
	bool may_share = by->is_shared || is_event(entry, "delegated");

	for (size_t i = 0; i < h->open_holds.count; i++) {
		struct history_row *row = &h->open_holds.rows[i];

		if (row->since_ms <= by->since_ms && row->until_ms > by->since_ms && !(row->is_shared && may_share) &&
		    !(is_of_the_same(row, entry, by->who) && is_same(&row->entry, entry, "LOCKBROKER_TOKEN"))) {
			row->state = HISTORY_UNKNOWN;
			row->until_ms = by->since_ms;
		}
	}
}

/* Takes away what this ends. Of a semaphore a client may release its permits one after the other: the rest stays. */
static void close_hold(struct history *h, const struct journal_entry *entry, uint64_t who)
{
	bool is_release = slice_eq(journal_field(entry, "LOCKBROKER_WHY"), SLICE("released"));
	uint64_t given_back = is_release ? counted(entry, "LOCKBROKER_PERMITS") : UINT64_MAX;

	for (size_t i = h->open_holds.count; i-- > 0;) {
		struct history_row *row = &h->open_holds.rows[i];

		if (!is_of_the_same(row, entry, who) || !is_same(&row->entry, entry, "LOCKBROKER_TOKEN"))
			continue;
		if (row->permits <= given_back)
			remove_rows(&h->open_holds, i, 1);
		else
			row->permits -= given_back;
		return;
	}
}

/* The wait has ended at that instant or before, and the journal does not say when. */
static void end_wait(struct history_row *row, int64_t at_ms)
{
	if (row->since_ms > at_ms || row->until_ms <= at_ms)
		return;
	row->state = HISTORY_UNKNOWN;
	row->until_ms = at_ms;
}

/* The client got the lock at that instant, so it did not wait any longer. */
static void end_its_wait(struct history *h, const struct journal_entry *entry, const struct history_row *hold)
{
	for (size_t i = 0; i < h->open_waits.count; i++)
		if (is_of_the_same(&h->open_waits.rows[i], entry, hold->who))
			end_wait(&h->open_waits.rows[i], hold->since_ms);
}

static void take_hold(struct history *h, struct journal_entry *entry)
{
	struct history_row row = row_of(h, entry, "LOCKBROKER_HELD_MS");
	bool ended = !is_event(entry, "granted");

	end_others(h, entry, &row);
	end_its_wait(h, entry, &row);
	if (ended)
		close_hold(h, entry, row.who);
	row.permits = counted(entry, "LOCKBROKER_PERMITS");
	row.entry = journal_entry_take(entry);
	if (ended) {
		show(h, &h->holds, &row);
		return;
	}
	row.state = HISTORY_OPEN;
	row.until_ms = INT64_MAX;
	add_row(&h->open_holds, &row);
}

static void take_wait(struct history *h, struct journal_entry *entry)
{
	struct history_row row = row_of(h, entry, "LOCKBROKER_WAITED_MS");
	bool ended = is_event(entry, "waited");

	for (size_t i = h->open_waits.count; i-- > 0;) {
		struct history_row *open = &h->open_waits.rows[i];

		if (open->state != HISTORY_OPEN || !is_of_the_same(open, entry, row.who))
			continue;
		if (ended)
			row.begin = journal_entry_take(&open->entry);
		remove_rows(&h->open_waits, i, 1);
		break;
	}
	row.entry = journal_entry_take(entry);
	if (ended) {
		show(h, &h->waits, &row);
		return;
	}
	row.state = HISTORY_OPEN;
	row.until_ms = INT64_MAX;
	add_row(&h->open_waits, &row);
}

static void take_delegated(struct history *h, struct journal_entry *entry)
{
	struct history_row row = row_of(h, entry, "LOCKBROKER_HELD_MS");

	end_others(h, entry, &row);
	if (overlaps(h, row.since_ms, row.until_ms)) {
		h->delegations++;
		h->takings += counted(entry, "LOCKBROKER_TAKINGS");
	}
	row.entry = journal_entry_take(entry);
	show(h, &h->holds, &row);
}

static void take_summary(struct history *h, struct journal_entry *entry)
{
	struct slice name = journal_field(entry, "LOCKBROKER_NAME");
	struct history_row row = row_of(h, entry, "LOCKBROKER_LONGEST_MS");
	int64_t until_ms = journal_number(entry, "LOCKBROKER_UNTIL_MS");
	uint64_t summed;

	row.until_ms = until_ms < row.since_ms ? entry_ms(entry) : until_ms;
	/* The holds of a summary have ended in its time, and may have begun before it. */
	if (!overlaps(h, row.since_ms - (int64_t)counted(entry, "LOCKBROKER_LONGEST_MS"), row.until_ms))
		return;
	summed = counted(entry, "LOCKBROKER_COUNT") + counted(entry, "LOCKBROKER_WAITS");
	if (name.len == 0)
		h->others_summed += summed;
	if (!slice_eq(name, slice_of(h->name)))
		return;
	h->summaries++;
	h->summed += summed;
	row.entry = journal_entry_take(entry);
	add_row(&h->holds, &row);
}

static const struct {
	const char *event;
	void (*take)(struct history *h, struct journal_entry *entry);
} events[] = {
	{ "released", take_hold },       { "granted", take_hold }, { "lost", take_hold },
	{ "delegated", take_delegated }, { "waits", take_wait },   { "waited", take_wait },
	{ "summary", take_summary },
};

enum { EVENTS = sizeof(events) / sizeof(events[0]) };

static size_t event_of(const struct journal_entry *entry, const char *field)
{
	size_t i = 0;

	while (i < EVENTS && !slice_eq(journal_field(entry, field), slice_of(events[i].event)))
		i++;
	return i;
}

/* What a daemon says of itself. */
static void take_other(struct history *h, const struct journal_entry *entry)
{
	bool is_asked = overlaps(h, entry_ms(entry), entry_ms(entry));

	if (is_event(entry, "unread") && is_asked)
		h->unread += counted(entry, "LOCKBROKER_LINES");
	if (is_event(entry, "held_back") && is_asked && event_of(entry, "LOCKBROKER_OF") < EVENTS)
		h->held_back += counted(entry, "LOCKBROKER_LINES");
	if (!is_event(entry, "serves"))
		return;
	h->standalone = counted(entry, "LOCKBROKER_STANDALONE");
	for (size_t i = 0; i < h->open_holds.count; i++)
		h->open_holds.rows[i].is_older |= is_same(&h->open_holds.rows[i].entry, entry, "_MACHINE_ID");
	for (size_t i = 0; i < h->open_waits.count; i++)
		if (is_same(&h->open_waits.rows[i].entry, entry, "_MACHINE_ID"))
			end_wait(&h->open_waits.rows[i], entry_ms(entry));
}

bool history_take(void *context, struct journal_entry *entry)
{
	struct history *h = context;
	size_t event = event_of(entry, "LOCKBROKER_EVENT");

	h->entries++;
	if (event < EVENTS)
		events[event].take(h, entry);
	else
		take_other(h, entry);
	return true;
}

/* ---- the end ---- */

static int order(const void *left, const void *right)
{
	const struct history_row *a = left, *b = right;

	if (a->since_ms != b->since_ms)
		return a->since_ms < b->since_ms ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Shows what is open still. */
static void end_rows(const struct history *h, struct history_rows *open, struct history_rows *shown)
{
	for (size_t i = 0; i < open->count; i++) {
		show(h, shown, &open->rows[i]);
		open->rows[i] = (struct history_row){ 0 };
	}
	shown->left_out += open->left_out;
	if (shown->count > 0)
		qsort(shown->rows, shown->count, sizeof(*shown->rows), order);
}

void history_end(struct history *h)
{
	end_rows(h, &h->open_holds, &h->holds);
	end_rows(h, &h->open_waits, &h->waits);
}

void history_free(struct history *h)
{
	free_rows(&h->holds);
	free_rows(&h->waits);
	free_rows(&h->open_holds);
	free_rows(&h->open_waits);
}
