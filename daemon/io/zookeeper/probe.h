/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large may a packet to a server be? The protocol has no question for that (jute.maxbuffer), but every server first
 * reads four bytes of length, and closes the connection at once if that is too much; otherwise it waits for the rest.
 * So the probe makes a connection, sends a length and nothing else, and closes it again.
 *   the length that the limits need, and a tenth more
 *     kept open -> it is large enough: the usual case, one connection for each server and run of the daemon
 *     closed    -> 64 bytes: closed as well, or no connection -> nothing is concluded (a proxy, a full server, ...)
 *                  kept open -> the largest length that is kept open is searched for, to a thirtieth
 *                            -> the last two lengths are tried again: same answers -> that is the limit
 *
 * Only a close means "too large", silence never does: a slow server counts as one that accepts. A probe costs the
 * server a buffer of that length for a third of a second, and a line in its log. Hosts that start together ask at
 * different moments. Everything is non-blocking on the loop; nobody waits for the answer.
 *
 * An answer is kept while the daemon runs, also over a hand-over. A server that accepted too little is asked again after
 * another connection to it, because its limit may have been raised, but not within ten seconds.
 */
#pragma once

#include <stdint.h>

struct parcel;
struct watch_base;
struct zk_probe;

/*
 * Called from the loop, with the smallest limit of all known servers; 0: none accepts less than `need_bytes` and a tenth.
 */
typedef void zk_probe_learned(void *arg, int64_t bytes, const char *server);

struct zk_probe *zk_probe_new(struct watch_base *base, int64_t need_bytes, zk_probe_learned *learned, void *arg);
/* Takes NULL. */
void zk_probe_free(struct zk_probe *p);
/* There was a connection to `server`, a numeric "address:port". It is asked soon, unless that has been done. */
void zk_probe_connected(struct zk_probe *p, const char *server);
/* Forgets all servers except these ("address:port,..."). */
void zk_probe_servers(struct zk_probe *p, const char *servers);
void zk_probe_stop(struct zk_probe *p);
/*
 * A hand-over. A result for another `need_bytes` is not used; a result that the broker has counts as reported.
 * Unpacking reports nothing.
 */
void zk_probe_pack(const struct zk_probe *p, struct parcel *parcel);
void zk_probe_unpack(struct zk_probe *p, struct parcel *parcel);
