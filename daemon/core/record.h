/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's ledger (port/ledger.h): the state that another process needs to go on after a kill. */
#pragma once

struct broker;
struct ledger;

/*
 * From now on the broker keeps that ledger, which nobody has written yet, in place of its earlier one. Its whole state is
 * in it when this returns. NULL: it keeps none. The ledger has to outlive the broker, or this use; the end of the broker
 * changes nothing in it.
 */
void broker_record(struct broker *b, struct ledger *ledger);
/* Memory was added: records without room get some of it, as far as it goes. */
void broker_record_missing(struct broker *b);
/*
 * All effects of the events so far are carried out, so no notification is on its way any longer. The next event knows that,
 * too, if `effects` is empty; but it may be far away.
 */
void broker_carried_out(struct broker *b);
