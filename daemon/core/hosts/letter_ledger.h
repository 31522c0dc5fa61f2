/* SPDX-License-Identifier: Apache-2.0 */
/* Letters in the ledger (port/ledger.h): after a kill the next process withdraws those that may stand. */
#pragma once

struct letter;

/* Before it is posted. */
void letter_ledger_add(struct letter *l);
/* It stands no longer. */
void letter_ledger_remove(struct letter *l);
