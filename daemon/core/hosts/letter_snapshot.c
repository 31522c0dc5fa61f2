/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/letter_snapshot.h"

#include <assert.h>

#include "base/mem.h"
#include "core/hosts/hosts.h"
#include "core/port/entry.h"

enum { PATH_MAX_BYTES = 4096 };

static const struct field letter_fields[] = {
	FIELD_NUMBER(struct letter, "number", number, 1, INT64_MAX),
	FIELD_NUMBER(struct letter, "state", state, LETTER_POSTED, LETTER_WITHDRAWING),
	FIELD_TEXT(struct letter, "path", path, PATH_MAX_BYTES),
	FIELD_NUMBER(struct letter, "id at", id_at, 1, PATH_MAX_BYTES),
};

void letters_snapshot(const struct hosts *h, struct bytes *out)
{
	const struct letter *l;

	assert(TAILQ_EMPTY(&h->queries) && h->audit.state == AUDIT_IDLE);
	TAILQ_FOREACH(l, &h->letters, link) {
		struct entry_writer w = entry_begin(out, "letter");

		assert(!l->target && !l->deleting);
		entry_fields(&w, FIELDS(letter_fields), l);
		entry_due(&w, "due", &l->timer);
		entry_end(&w);
	}
}

bool letter_restore(struct hosts *h, const struct entry *e)
{
	struct letter read = { .hosts = h, .timer.kind = TIMER_LETTER }, *l;

	if (h->outbox_count == LETTERS_MAX || !entry_get_fields(e, FIELDS(letter_fields), &read) ||
	    read.state == LETTER_POSTING || read.id_at < 1 || read.id_at >= read.path.len || read.path.data[0] != '/') {
		bytes_free(&read.path);
		return e->why->len ? false : entry_refuse(e, "the path cannot be that");
	}
	l = mem_new(sizeof(*l));
	*l = read;
	letter_add(l);
	return entry_get_due(e, "due", &h->env->timers, &l->timer);
}
