/* SPDX-License-Identifier: Apache-2.0 */
/* What INFO says of the session and of ZooKeeper, and why. */
#pragma once

#include "protocol/bytes.h"

struct ensemble;

/*
 * One readable sentence for the state the session is in.
 *
 *   NONE     | never connected; or connected, and nothing answered yet; or a new session not reached yet
 *   SAFE     | the age of the last proof
 *   JEOPARDY | the same, and when it is lost
 *   LOST     | since when nothing was answered, or that a new session is asked for
 */
void status_why(const struct ensemble *zk, struct bytes *out);
/* connecting: no write was answered on this connection, or there is none; refused: for a reason that is known;
 * connected: it serves. */
const char *status_zookeeper_word(const struct ensemble *zk);
