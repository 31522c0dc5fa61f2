/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a connection: a client connects, closes its sending side, and goes. */
#pragma once

struct broker;
struct client;
struct event;

void connection_begin(struct broker *b, const struct event *event);
/* The client will send nothing further: its waits end now. */
void connection_half_closed(struct client *c);
/* The adapter has found out something about a process that shares the connection. */
void connection_process(struct client *c, const struct event *event);
/* Releases all that the client holds and frees it. */
void connection_gone(struct broker *b, struct client *c);
