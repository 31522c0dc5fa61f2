/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large a packet may a server be sent? The protocol has no question for it (jute.maxbuffer), but every server
 * reads four bytes of length first and closes the connection at once when that is too much; else it waits for the
 * rest. So a connection is made, a length is sent and nothing else, and closed again.
 *
 *   a length of what the limits need, and a tenth more
 *     kept open -> it is large enough: the usual case, one connection for each server and run of the daemon
 *     closed    -> 64 bytes: closed as well, or no connection -> nothing is concluded (a proxy, a full server, ...)
 *                  kept open -> the largest length it keeps open is looked for, to a thirtieth
 *                            -> the last two answers are asked for again: the same -> that is the limit
 *
 * Only a close counts as "too large", never silence: a slow server is taken for one that accepts. It costs the server
 * a buffer of that length for a third of a second, and a line of its log. Hosts that start together ask at different
 * moments. All of it is non-blocking on the loop; nobody waits for the answer.
 *
 * An answer is kept while the daemon runs; a server that took too little is asked again after it was connected to
 * again, for it may have been given more, but not within ten seconds.
 */
#pragma once

#include <stdint.h>

struct watch_base;
struct zk_probe;

/* Called from the loop. The least of all servers known; 0: none takes less than `need_bytes` and a tenth. */
typedef void zk_probe_learned(void *arg, int64_t bytes, const char *server);

struct zk_probe *zk_probe_new(struct watch_base *base, int64_t need_bytes, zk_probe_learned *learned, void *arg);
/* Takes NULL. */
void zk_probe_free(struct zk_probe *p);
/* There was a connection to `server`, "address:port", no name. Asks it soon, unless that was done. */
void zk_probe_connected(struct zk_probe *p, const char *server);
/* What is known of others than these ("address:port,...") is forgotten. */
void zk_probe_servers(struct zk_probe *p, const char *servers);
void zk_probe_stop(struct zk_probe *p);
