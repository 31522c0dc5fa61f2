/* SPDX-License-Identifier: Apache-2.0 */
/* A client connects, closes its sending side, and goes. */
#pragma once

struct broker;
struct client;
struct event;

void connection_begin(struct broker *b, const struct event *event);
/* It will send nothing further: what waits ends now. */
void connection_half_closed(struct client *c);
/* What the adapter saw of the processes that share the connection. */
void connection_process(struct client *c, const struct event *event);
/* Releases everything and frees it. */
void connection_gone(struct broker *b, struct client *c);
