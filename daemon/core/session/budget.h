/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that one session may put into one packet. Closing a session logs all its ephemeral paths in one transaction,
 * and one that is larger than jute.maxbuffer lets the ensemble down, also whenever it reads that log again; watches may be
 * set again in one packet. So both are counted in bytes, in two pools (pools.h), and a claim that would take more than its
 * user's share is refused.
 *
 *   limit      | is
 *   configured | limits.session_path_bytes
 *   effective  | the same, or nine tenths of the largest packet a server takes when that is less
 *
 * A watch counts its path and four bytes of length: the children watch of a directory while it is asked for or armed, the
 * watches on a predecessor and on an own znode while the claim rests on them, and the watches of an election that is
 * observed (its directory's and one on the first contender, as long as one of ours). A watch that no claim needs any longer
 * (its waiter went first) stands until its znode goes and is not counted: the adapter never sets it again.
 *
 * A single request larger than the server takes costs the connection each time, and in the end the session: a lock
 * whose name makes such requests is refused, and one that is already under way is given up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/conf.h"

struct ensemble;
struct env;
struct event;

enum { BUDGET_WATCH_OVERHEAD = 4 }; /* the bytes of a watch besides its path: the length before that */

struct budget {
	const struct broker_limits *limits;
	int64_t packet_bytes; /* the largest packet a server takes; 0: large enough, or not known */
};

/* The limits outlive their use here. They, or the largest packet of the servers, are the totals of both pools. */
void budget_limits(struct env *env, struct budget *b);
size_t budget_max(const struct budget *b);
bool budget_takes_request(const struct budget *b, size_t bytes); /* one request of that size */
void budget_packet(struct ensemble *zk, const struct event *event); /* EVENT_ZK_PACKET */
