/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/client_entry.h"

#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"

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
