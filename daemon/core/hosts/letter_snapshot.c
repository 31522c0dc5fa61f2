/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/letter_snapshot.h"

#include <assert.h>

#include "base/mem.h"
#include "core/hosts/answer.h"
#include "core/hosts/scan.h"
#include "core/hosts/hosts.h"
#include "core/lock/lock_snapshot.h"
#include "core/port/entry.h"
#include "protocol/limits.h"
#include "protocol/name.h"

enum { PATH_MAX_BYTES = 4096, COMMAND_WORD_MAX = 32 };

static const struct field letter_fields[] = {
	FIELD_NUMBER(struct letter, "number", number, 1, INT64_MAX),
	FIELD_NUMBER(struct letter, "state", state, LETTER_POSTED, LETTER_WITHDRAWING),
	FIELD_TEXT(struct letter, "path", path, PATH_MAX_BYTES),
	FIELD_NUMBER(struct letter, "id at", id_at, 1, PATH_MAX_BYTES),
};

static const struct field query_fields[] = {
	FIELD_TEXT(struct query, "name", name, NAME_BYTES_MAX),
	FIELD_NUMBER(struct query, "limit", limit, 0, LIMIT_PERMITS_MAX),
	FIELD_FLAG(struct query, "known", known),
};

static void query_snapshot(const struct query *q, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "query");
	struct bytes word = { 0 };

	bool here = q->state == QUERY_REVOKING;

	assert(here ? revocation_is_here(q->revocation) : q->state == QUERY_ASKED || q->state == QUERY_ANSWERING);
	args_command_word(&word, q->command);
	entry_number(&w, "client", q->client->conn);
	entry_text(&w, "command", bytes_view(&word));
	if (q->scan)
		scan_snapshot(q->scan, &w);
	else
		entry_fields(&w, FIELDS(query_fields), q);
	entry_number(&w, "answering", q->state == QUERY_ANSWERING);
	if (q->revocation) {
		entry_text(&w, "reason", bytes_view(&q->revocation->reason));
		entry_number(&w, "revoking", here);
		if (here && q->revocation->here.forced)
			entry_number(&w, "taken", q->revocation->here.count);
	}
	entry_end(&w);
	bytes_free(&word);
}

static bool is_question(enum command command)
{
	return command == COMMAND_HOLDERS || command == COMMAND_QUEUE || command == COMMAND_WHY ||
	       command == COMMAND_LEADER || command == COMMAND_HOSTS || command == COMMAND_LIMIT || command == COMMAND_LOCKS;
}

static bool is_revocation(enum command command)
{
	return command == COMMAND_REVOKE || command == COMMAND_FORCEUNLOCK;
}

/* What other hosts were found to have is not in the snapshot. */
static bool ask_again(const struct entry *e, struct query *q, const struct query *read, bool answering)
{
	q->limit = read->limit;
	q->known = read->known;
	if (!answering)
		return !q->known || entry_refuse(e, "nobody is to be asked");
	if (q->scan) {
		q->partial = !q->hosts->env->conf->standalone;
		scan_leave(q);
		return true;
	}
	if (!answer_is_of(q))
		return entry_refuse(e, "its answer is not made in pieces");
	q->partial = !q->known && !q->hosts->env->conf->standalone;
	answer_leave(q);
	return true;
}

bool query_restore(struct hosts *h, const struct entry *e)
{
	struct client *c = lock_restore_client(h->locks, e);
	struct query read = { 0 }, *q = NULL;
	enum command command;
	struct slice word, reason;
	bool fits, answering, here;
	int64_t taken;

	if (!c || !entry_get_text(e, "command", COMMAND_WORD_MAX, &word) ||
	    !entry_get_text(e, "reason", REVOKE_REASON_MAX, &reason) || !entry_get_flag(e, "answering", &answering) ||
	    !entry_get_flag(e, "revoking", &here) || !entry_get_number(e, "taken", 0, INT64_MAX, &taken))
		return false;
	command = command_find(word);
	if (c->query || !(is_question(command) || is_revocation(command)))
		return entry_refuse(e, "the client cannot ask that");
	if (!entry_get_fields(e, FIELDS(query_fields), &read)) {
		bytes_free(&read.name);
		return false;
	}
	fits = command == COMMAND_HOSTS || command == COMMAND_LOCKS ? read.name.len == 0 : name_valid(bytes_view(&read.name));
	if (command == COMMAND_REVOKE)
		fits = fits && revoke_reason_valid(reason);
	if (fits && is_revocation(command) && here)
		revocation_resume(h, c, command, bytes_view(&read.name), reason, taken);
	else if (fits && is_revocation(command))
		revocation_restore(h, c, command, bytes_view(&read.name), reason);
	else if (fits)
		q = query_new(h, c, command, bytes_view(&read.name));
	if (c->query)
		query_go_last(c->query);
	bytes_free(&read.name);
	if (!fits)
		return entry_refuse(e, "the name or the reason is not one");
	if (command == COMMAND_LOCKS && !scan_restore(q, e))
		return false;
	return !q || ask_again(e, q, &read, answering);
}

bool audit_restore(struct hosts *h, const struct entry *e)
{
	struct client *c = lock_restore_client(h->locks, e);

	if (!c)
		return false;
	if (c->auditing)
		return entry_refuse(e, "the client waits for an audit already");
	audit_wait(h, c);
	return true;
}

void letter_snapshot(const struct letter *l, const struct entry_pairs *noted, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "letter");

	entry_fields(&w, FIELDS(letter_fields), l);
	entry_due(&w, "due", &l->timer);
	entry_pairs(&w, noted);
	entry_end(&w);
}

void letters_snapshot(const struct hosts *h, struct bytes *out)
{
	const struct client *c;
	const struct query *q;
	const struct letter *l;

	assert(h->audit.state == AUDIT_IDLE && TAILQ_EMPTY(&h->audit.served));
	TAILQ_FOREACH(c, &h->audit.queued, audit_link) {
		struct entry_writer w = entry_begin(out, "audit");

		entry_number(&w, "client", c->conn);
		entry_end(&w);
	}
	/* What a lookup asks is asked again from its words. */
	TAILQ_FOREACH(q, &h->queries, link)
		if (!q->client->lookup)
			query_snapshot(q, out);
	TAILQ_FOREACH(c, &h->locks->clients, link)
		if (c->lookup)
			lookup_snapshot(c->lookup, out);
	TAILQ_FOREACH(l, &h->letters, link) {
		assert(!l->target && !l->forward && !l->deleting);
		letter_snapshot(l, NULL, out);
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
