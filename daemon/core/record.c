/* SPDX-License-Identifier: Apache-2.0 */
#include "core/record.h"

#include "core/snapshot.h"
#include "core/state.h"

static void write_head(const struct broker *b)
{
	struct ledger *l = b->env.ledger;

	l->head->place = snapshot_place(b->env.conf);
	ledger_number(l, CEILING_CLIENT, b->locks.last_client);
	ledger_number(l, CEILING_CLAIM, b->directories.last_claim);
	ledger_number(l, CEILING_NONCE, b->directories.last_nonce);
	ledger_number(l, CEILING_LETTER, b->hosts.outbox_last);
	ledger_number(l, CEILING_QUERY, b->hosts.last_query);
	ledger_number(l, CEILING_SWEEP, b->hosts.audit.sweep);
	ledger_number(l, CEILING_TOKENS, (uint64_t)b->directories.token_limit);
}

void broker_record(struct broker *b, struct ledger *ledger)
{
	b->env.ledger = ledger;
	if (!ledger)
		return;
	write_head(b);
	ledger_store(ledger, &ledger->head->magic, LEDGER_MAGIC);
}

void broker_record_missing(struct broker *b)
{
	(void)b;
}
