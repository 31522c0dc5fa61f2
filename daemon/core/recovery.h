/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a connection or a session begins or ends, this module notifies every lock, claim, client, letter and sweep. The
 * session itself knows what is proven, and since when (session.h): it returns its changes, and this module acts on them.
 * ZooKeeper's answers and watch events go from here to the modules that asked.
 */
#pragma once

#include <stdbool.h>

struct broker;
struct event;

/* Asks for a new session. The old one, if there is one, is given up with all claims and grants. */
void recovery_open(struct broker *b);
void recovery_connected(struct broker *b, const struct event *event);
/* `planned`: this side ended the connection, and it comes back at once. */
void recovery_suspended(struct broker *b, bool planned);
void recovery_expired(struct broker *b);
/* An answer proves something of the session first; then it goes to its asker. One of an older life is dropped. */
void recovery_answered(struct broker *b, const struct event *event);
/* Acts on the changes that a function of the session returned. */
void recovery_follow(struct broker *b, unsigned int changes);
/* EVENT_ZK_PACKET: locks whose requests are too large for the servers now are given up. */
void recovery_packet(struct broker *b, const struct event *event);
void recovery_watched(struct broker *b, const struct event *event);
