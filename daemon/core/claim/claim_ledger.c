/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/claim_ledger.h"

#include "base/cold.h"
#include "core/claim/claim_entry.h"
#include "core/port/entry.h"

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
	r->place = c->withheld                              ? LEDGER_PLACE_WITHHELD
		   : c->directory->flavour == FLAVOUR_SLOTS ? LEDGER_PLACE_SLOTS
							    : LEDGER_PLACE_CLAIM;
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
		ledger_store(l, &c->record->place, LEDGER_PLACE_WITHHELD);
}

COLD void claim_ledger_drop(struct claim *c)
{
	struct ledger *l = c->directory->directories->env->ledger;

	if (!l)
		return;
	ledger_drop(l, &c->record->head);
	c->record = NULL;
}
