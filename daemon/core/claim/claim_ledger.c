/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/claim_ledger.h"

#include "base/cold.h"
#include "core/port/entry.h"

/* ---- as fields of an entry ---- */

/* A token is a czxid and ten bits. */
static const int64_t CZXID_MAX = INT64_C(1) << 52;

static const struct field fields[] = {
	FIELD_NUMBER(struct claim, "state", state, CLAIM_JOINING, CLAIM_LEAVING),
	FIELD_NUMBER(struct claim, "mode", mode, MODE_EXCLUSIVE, MODE_SHARED),
	FIELD_NUMBER(struct claim, "number", number, 1, INT64_MAX),
	FIELD_NUMBER(struct claim, "nonce", nonce, 0, INT64_MAX),
	FIELD_NUMBER(struct claim, "name length", name_len, 0, CONTENDER_NAME_MAX - 1),
	FIELD_FLAG(struct claim, "named", named),
	FIELD_FLAG(struct claim, "orphan", orphan),
	FIELD_FLAG(struct claim, "spent", spent),
	FIELD_FLAG(struct claim, "withheld", withheld),
	FIELD_FLAG(struct claim, "tries", tries),
	FIELD_FLAG(struct claim, "watches", watches),
	FIELD_FLAG(struct claim, "says held", says_held),
	FIELD_NUMBER(struct claim, "join tries", join_tries, 0, UINT8_MAX - 1),
	FIELD_NUMBER(struct claim, "looks", looks, 0, UINT8_MAX - 1),
	FIELD_ANY(struct claim, "seq", seq),
	FIELD_ANY(struct claim, "followed", followed),
	FIELD_NUMBER(struct claim, "czxid", czxid, 0, CZXID_MAX),
	FIELD_INSTANT(struct claim, "idle", idle_ns),
	FIELD_INSTANT(struct claim, "look", look_ns),
	FIELD_INSTANT(struct claim, "looked", looked_ns),
	FIELD_INSTANT(struct claim, "taken", taken_ns),
	FIELD_FLAG(struct claim, "granted", granted),
	FIELD_FLAG(struct claim, "follows", follows),
	FIELD_FLAG(struct claim, "salvaged", salvaged),
	FIELD_NUMBER(struct claim, "granted mode", granted_mode, MODE_EXCLUSIVE, MODE_SHARED),
	FIELD_INSTANT(struct claim, "held", held_ns),
	FIELD_INSTANT(struct claim, "granted at", granted_ns),
	FIELD_NUMBER(struct claim, "handoffs", handoffs, 0, CLAIM_HANDOFFS_MAX),
	FIELD_NUMBER(struct claim, "contended", contended, 0, INT64_MAX - 1),
	FIELD_INSTANT(struct claim, "contended at", contended_ns),
	FIELD_ANY(struct claim, "holder token", holder_token),
	FIELD_INSTANT(struct claim, "holder at", holder_ns),
};

void claim_entry_write(const struct claim *c, struct entry_writer *w)
{
	entry_text(w, "name", slice_of(c->name));
	entry_fields(w, FIELDS(fields), c);
}

bool claim_entry_read(struct claim *c, const struct entry *e)
{
	struct slice name;

	if (!entry_get_text(e, "name", CONTENDER_NAME_MAX - 1, &name) || !entry_get_fields(e, FIELDS(fields), c))
		return false;
	if (name.len)
		memcpy(c->name, name.data, name.len);
	return true;
}

/* ---- in the ledger ---- */

uint64_t claim_ledger_note(const struct directory *d)
{
	return d->flavour == FLAVOUR_SLOTS ? LEDGER_NOTED_SLOTS : LEDGER_NOTED_OWN;
}

void directory_ledger_note(struct directory *d)
{
	struct ledger *l = d->directories->env->ledger;

	if (l && !(d->record->noted & claim_ledger_note(d)))
		ledger_store(l, &d->record->noted, d->record->noted | claim_ledger_note(d));
}

void directory_ledger_forget(struct directory *d)
{
	struct ledger *l = d->directories->env->ledger;

	if (l && d->record->noted & claim_ledger_note(d))
		ledger_store(l, &d->record->noted, d->record->noted & ~claim_ledger_note(d));
}

bool claim_ledger_wants(const struct claim *c)
{
	if (c->directory->flavour == FLAVOUR_SLOTS)
		return c->state == CLAIM_HELD;
	return !c->directory->part && (c->withheld || (c->state == CLAIM_HELD && c->granted));
}

/* What stays true as long as the znode exists, and is not in a field of the record. */
static void write_lasting(const struct claim *c, struct entry_writer *w)
{
	struct claim lasting = {
		.mode = c->mode,
		.nonce = c->nonce,
		.name_len = c->name_len,
		.named = c->named,
		.tries = c->tries,
		.watches = c->watches,
		.seq = c->seq,
		.follows = c->follows,
		.followed = c->followed,
		.held_ns = c->held_ns,
	};

	memcpy(lasting.name, c->name, sizeof(lasting.name));
	claim_entry_write(&lasting, w);
}

COLD void claim_ledger_write(struct claim *c)
{
	struct ledger *l = c->directory->directories->env->ledger;
	struct bytes text = { 0 };
	struct entry_writer w = { .out = &text };
	struct ledger_claim *r;

	write_lasting(c, &w);
	r = ledger_take(l, sizeof(*r) + text.len);
	r->head.number = c->number;
	r->lock = c->directory->record->head.number;
	r->role = c->withheld                              ? LEDGER_ROLE_WITHHELD
		   : c->directory->flavour == FLAVOUR_SLOTS ? LEDGER_ROLE_SLOTS
							    : LEDGER_ROLE_CLAIM;
	r->czxid = c->czxid;
	r->pairs = (uint32_t)(w.values / 2);
	r->length = (uint32_t)text.len;
	memcpy(r->text, text.data, text.len);
	ledger_publish(l, &r->head, LEDGER_CLAIM);
	c->record = r;
	bytes_free(&text);
}

void claim_ledger_withhold(struct claim *c)
{
	struct ledger *l = c->directory->directories->env->ledger;

	if (l && c->record)
		ledger_store(l, &c->record->role, LEDGER_ROLE_WITHHELD);
}

COLD void claim_ledger_drop(struct claim *c)
{
	struct ledger *l = c->directory->directories->env->ledger;

	if (!l)
		return;
	ledger_drop(l, &c->record->head);
	c->record = NULL;
}
