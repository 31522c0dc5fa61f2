/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a connection: a client connects, closes its sending side, and goes. */
#pragma once

#include <stdbool.h>

struct broker;
struct client;
struct event;
struct entry;
struct bytes;
struct entry_pairs;

void connection_begin(struct broker *b, const struct event *event);
/* The client will send nothing further: its waits end now. */
void connection_half_closed(struct client *c);
/* The adapter has found out something about a process that shares the connection. */
void connection_process(struct client *c, const struct event *event);
/* The client in a snapshot (snapshot.h), without its grants and requests; and one from an entry. False: refused. */
void connection_snapshot(const struct client *c, const struct entry_pairs *noted, struct bytes *out);
bool connection_restore(struct broker *b, const struct entry *e);
/* Its connection is closed: some of its grants and requests are released, and it gets nothing any longer. */
void connection_leaves(struct broker *b, struct client *c);
/* Releases all that the client holds, and frees it. */
void connection_gone(struct broker *b, struct client *c);
