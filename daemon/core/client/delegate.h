/* SPDX-License-Identifier: Apache-2.0 */
/* DELEGATE: a client asks for the page by which locks are delegated to it (lock/delegated.h). */
#pragma once

struct client;
struct event;

/* Answers why not, or asks the adapter for a page. */
void delegate_ask(struct client *c);
/* EVENT_CLIENT_PAGE. */
void delegate_page(struct client *c, const struct event *event);
