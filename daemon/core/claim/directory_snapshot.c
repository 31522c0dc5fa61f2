/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/directory_snapshot.h"

#include <assert.h>

#include "core/claim/claim_ledger.h"
#include "core/claim/directories.h"
#include "core/port/entry.h"

static const struct field directory_fields[] = {
	FIELD_INSTANT(struct directory, "pause until", pause_until_ns),
	FIELD_INSTANT(struct directory, "verified", verified_ns),
	FIELD_FLAG(struct directory, "relist", relist),
	FIELD_NUMBER(struct directory, "state", state, DIRECTORY_UNKNOWN, DIRECTORY_MISMATCH),
	FIELD_FLAG(struct directory, "was uncontended", was_uncontended),
	FIELD_FLAG(struct directory, "contended before", contended_before),
	FIELD_FLAG(struct directory, "tells kind", tells_kind),
	FIELD_FLAG(struct directory, "unverified", unverified),
	FIELD_FLAG(struct directory, "exhausted", exhausted),
	FIELD_FLAG(struct directory, "unrecognized reported", unrecognized_reported),
	FIELD_ANY(struct directory, "czxid", czxid),
	FIELD_NUMBER(struct directory, "list bytes", list_bytes, 0, UINT32_MAX),
};

static enum claim_role role_of(const struct claim *c)
{
	if (c->state == CLAIM_LEAVING)
		return ROLE_LEAVING;
	if (c == c->directory->claim)
		return ROLE_CLAIM;
	return c == c->directory->next ? ROLE_NEXT : ROLE_SLOTS;
}

void directory_snapshot(const struct directory *d, struct entry_writer *w)
{
	assert(!d->operations && !d->touched && d->watch == WATCH_NONE && !d->wanted);
	entry_fields(w, FIELDS(directory_fields), d);
	entry_number(w, "remembered", d->remembered);
	entry_due(w, "due", &d->timer);
	entry_number(w, "later", d->later);
	lasting_write_maker(d, w);
}

void claim_snapshot(const struct claim *c, enum claim_role role, const struct entry_pairs *noted, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "claim");

	entry_number(&w, "place", role);
	claim_entry_write(c, &w);
	entry_pairs(&w, noted);
	entry_end(&w);
}

void claims_snapshot(const struct directory *d, struct bytes *out)
{
	const struct claim *c;

	CLAIM_FOREACH(c, d) {
		assert(c->state != CLAIM_JOINING);
		claim_snapshot(c, role_of(c), NULL, out);
	}
}

bool directory_restore(struct directory *d, const struct entry *e)
{
	bool remembered, later;

	if (!entry_get_fields(e, FIELDS(directory_fields), d) ||
	    !entry_get_flag(e, "remembered", &remembered) ||
	    !entry_get_due(e, "due", &d->directories->env->timers, &d->timer) ||
	    !entry_get_flag(e, "later", &later) || !lasting_read_maker(d, e))
		return false;
	if (d->state == DIRECTORY_ASKED)
		return entry_refuse(e, "an answer is waited for by the directory");
	directory_remember(d, remembered);
	if (later)
		directory_touch_later(d);
	return true;
}

/* What its state says of its name and of where it is kept. */
static bool is_consistent(const struct claim *c, enum claim_role role)
{
	const struct directories *all = c->directory->directories;
	struct contender self;

	if (c->number > (uint64_t)INT64_MAX || c->name_len > strlen(c->name))
		return false;
	if (all->env->conf->standalone)
		return c->state == CLAIM_HELD && role == ROLE_CLAIM;
	if (c->named && !contender_parse(slice_of(c->name), c->directory->flavour, &self))
		return false;
	if (c->salvaged && c->state != CLAIM_HELD)
		return false;
	if ((c->withheld && !c->spent) || (c->spent && c->state != CLAIM_LEAVING) || (c->orphan && !c->named))
		return false;
	switch (c->state) {
	case CLAIM_JOINING:
		return false;
	case CLAIM_WAITING:
	case CLAIM_HELD:
		return c->named && role != ROLE_LEAVING;
	case CLAIM_UNSURE:
		return !c->named && c->name_len && role != ROLE_LEAVING;
	case CLAIM_LEAVING:
		return (c->named || c->name_len) && role == ROLE_LEAVING;
	}
	return false;
}

static bool put(struct claim *c, enum claim_role role)
{
	struct directory *d = c->directory;

	switch (role) {
	case ROLE_CLAIM:
		if (d->flavour == FLAVOUR_SLOTS || d->claim)
			return false;
		d->claim = c;
		return true;
	case ROLE_NEXT:
		if (!d->claim || d->next)
			return false;
		d->next = c;
		return true;
	case ROLE_SLOTS:
		if (d->flavour != FLAVOUR_SLOTS)
			return false;
		TAILQ_INSERT_TAIL(&d->slots, c, link);
		return true;
	case ROLE_LEAVING:
		TAILQ_INSERT_TAIL(&d->leaving, c, link);
		return true;
	}
	return false;
}

bool claim_restore(struct directory *d, const struct entry *e)
{
	struct claim read = { .directory = d }, *c;
	int64_t role;

	if (!entry_get_number(e, "place", ROLE_CLAIM, ROLE_LEAVING, &role) ||
	    !claim_entry_read(&read, e))
		return false;
	if (!is_consistent(&read, (enum claim_role)role))
		return entry_refuse(e, "the fields do not fit each other");
	c = claim_new(d, read.mode);
	read.path = c->path;
	*c = read;
	if (!put(c, (enum claim_role)role)) {
		/* It is freed with the others. */
		c->state = CLAIM_LEAVING;
		put(c, ROLE_LEAVING);
		return entry_refuse(e, "its place is taken, or there is none, for the claim");
	}
	d->directories->stray_count += c->orphan;
	return true;
}
