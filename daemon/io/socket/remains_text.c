/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/remains_text.h"

#include <stdbool.h>

#include "protocol/bytes_format.h"

enum { NAMED = 3 };

void remains_propose(struct remains_tally *t, uint32_t pid)
{
	size_t free_at = REMAINS_TOP;

	for (size_t i = 0; i < REMAINS_TOP; i++) {
		if (t->top[i].votes && t->top[i].pid == pid) {
			t->top[i].votes++;
			return;
		}
		if (!t->top[i].votes)
			free_at = i;
	}
	if (free_at < REMAINS_TOP) {
		t->top[free_at].pid = pid;
		t->top[free_at].votes = 1;
		return;
	}
	for (size_t i = 0; i < REMAINS_TOP; i++)
		t->top[i].votes--;
}

void remains_count(struct remains_tally *t, uint32_t pid, uint32_t bytes)
{
	t->count++;
	t->bytes += bytes;
	for (size_t i = 0; i < REMAINS_TOP; i++)
		if (t->top[i].votes && t->top[i].pid == pid)
			t->top[i].count++;
}

/* The place of the one who has most of those that were not named yet; REMAINS_TOP: there is none. */
static size_t next(const struct remains_tally *t, const bool *named)
{
	size_t most = REMAINS_TOP;

	for (size_t i = 0; i < REMAINS_TOP; i++)
		if (!named[i] && t->top[i].count && (most == REMAINS_TOP || t->top[i].count > t->top[most].count))
			most = i;
	return most;
}

static void name(const struct remains_tally *t, struct bytes *out)
{
	bool named[REMAINS_TOP] = { false };
	size_t left = t->count;

	bytes_format(out, "%d (", t->count);
	for (size_t i = 0, at; i < NAMED && (at = next(t, named)) < REMAINS_TOP; i++) {
		named[at] = true;
		left -= t->top[at].count;
		bytes_format(out, "%sprocess %d: %d", i ? ", " : "", t->top[at].pid, t->top[at].count);
	}
	if (left)
		bytes_format(out, "%sothers: %d", left < t->count ? ", " : "", left);
	bytes_char(out, ')');
}

void remains_answers_text(const struct remains_tally *t, struct bytes *out)
{
	if (!t->count)
		return;
	bytes_format(out, "connections that have ended with unread answers (%d bytes): ", t->bytes);
	name(t, out);
}

void remains_pages_text(const struct remains_tally *t, size_t late, struct bytes *out)
{
	if (t->count) {
		bytes_text(out, "pages of ended connections that are still open: ");
		name(t, out);
	}
	if (late)
		bytes_format(out, "%spages that are closed, and count for a while yet: %d", t->count ? "; " : "", late);
}
