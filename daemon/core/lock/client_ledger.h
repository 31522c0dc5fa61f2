/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients in the ledger (port/ledger.h). A client is written when it is granted something for the first time: nobody goes
 * on with a connection that never held anything. All of these do nothing without a ledger.
 *
 * Its record has fields of an entry "client" or "bearer", as a snapshot has them (snapshot.h). Its group, and a
 * bearer's value and tie, are written here, too; connection_restore() and bearer_restore() read them.
 */
#pragma once

#include <stdbool.h>

struct client;
struct entry;
struct entry_writer;
struct locks;

/* False: the entry is refused. */
bool client_entry_read(struct client *c, const struct entry *e);
void client_entry_write(const struct client *c, struct entry_writer *w);

/* Unless it is written already. */
void client_ledger_add(struct client *c);
/* It is freed, and holds nothing any longer. */
void client_ledger_remove(struct client *c);
/* A value that client_entry_write() writes may have changed. */
void client_ledger_changed(struct client *c);
/* That it is written as it is. */
bool client_ledger_is_true(const struct client *c);
/* It may have, or may have no longer, things that are not written down: queued requests, unread notifications. */
void client_ledger_review(struct client *c);
/* It is pushed something. */
void client_ledger_told(struct client *c);
/* All pushes so far are in the hands of the adapter, which marks connections with unwritten output itself. */
void client_ledger_all_told(struct locks *locks);
