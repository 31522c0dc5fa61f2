/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of a client in an entry "client" or "bearer": in a snapshot (snapshot.h) and in a ledger (client_ledger.h). Its
 * group, and a bearer's value and tie, are written here, too; connection_restore() and bearer_restore() read them.
 */
#pragma once

#include <stdbool.h>

struct client;
struct entry;
struct entry_writer;

void client_entry_write(const struct client *c, struct entry_writer *w);
/* False: the entry is refused. */
bool client_entry_read(struct client *c, const struct entry *e);
