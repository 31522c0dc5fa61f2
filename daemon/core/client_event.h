/*
 * What is kept for a client that does not get pushes, until it asks by EVENTS. What it says is written when it is read:
 * the text that was put together before, or what is true then.
 *
 *   type    | of which there is at most one for each | written from
 *   SESSION | client                                 | the session
 *   LOST    | grant                                  | the grant: telling it ends it
 *   LEADER  | observer                               | what is known of the election
 *   REVOKE  | grant                                  | its text; the grant's end takes it with it
 *   TOLD    | (any number)                           | its text
 */
#pragma once

#include <stddef.h>

#include "base/queue.h"
#include "protocol/bytes.h"

struct grant;
struct observer;

enum client_event_type {
	CLIENT_EVENT_SESSION,
	CLIENT_EVENT_LOST,
	CLIENT_EVENT_LEADER,
	CLIENT_EVENT_REVOKE,
	CLIENT_EVENT_TOLD,
};

struct client_event {
	TAILQ_ENTRY(client_event) link;
	enum client_event_type type;
	struct grant *grant;       /* LOST, REVOKE */
	struct observer *observer; /* LEADER */
	size_t items;              /* TOLD, REVOKE: so many, and their text, the same in both versions of RESP */
	struct bytes text;
};

TAILQ_HEAD(client_event_list, client_event);
