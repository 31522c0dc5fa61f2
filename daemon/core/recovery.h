/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a connection or a session that begins or ends means for every lock, claim, client, letter and sweep. What is
 * proven, and since when, is the session's own (session.h): it returns what has changed, and here that is acted on.
 */
#pragma once

#include <stdint.h>

struct broker;
struct event;

/* Asks for a new session. The old one, if there is one, is given up with all claims and grants. */
void recovery_open(struct broker *b);
void recovery_connected(struct broker *b, const struct event *event);
void recovery_suspended(struct broker *b);
void recovery_expired(struct broker *b);
/* An answer: what it proves of the session comes first, then whoever asked gets it. One of an older life is dropped. */
void recovery_answered(struct broker *b, const struct event *event);
/* Acts on what a function of the session returned. */
void recovery_follow(struct broker *b, unsigned int changes);
/* EVENT_ZK_PACKET: what is too large for the servers by now is given up. */
void recovery_packet(struct broker *b, const struct event *event);
