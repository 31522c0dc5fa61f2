/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/letter_ledger.h"

#include "core/hosts/hosts.h"
#include "core/port/entry.h"

void letter_ledger_add(struct letter *l)
{
	struct ledger *ledger = l->hosts->env->ledger;
	struct bytes text = { 0 };
	struct entry_writer w = { .out = &text };
	struct ledger_letter *r;

	if (!ledger)
		return;
	entry_text(&w, "path", bytes_view(&l->path));
	entry_number(&w, "id at", (int64_t)l->id_at);
	r = ledger_take(ledger, sizeof(*r) + text.len);
	r->head.number = l->number;
	r->pairs = (uint32_t)(w.values / 2);
	r->length = (uint32_t)text.len;
	memcpy(r->text, text.data, text.len);
	ledger_publish(ledger, &r->head, LEDGER_LETTER);
	l->record = r;
	bytes_free(&text);
}

void letter_ledger_remove(struct letter *l)
{
	struct ledger *ledger = l->hosts->env->ledger;

	if (ledger)
		ledger_drop(ledger, &l->record->head);
}
