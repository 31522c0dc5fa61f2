/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One handle of the ZooKeeper C client (single-threaded flavour) in the loop: what must be known about the library
 * to use it safely is known here, and in the zk_*.h that this is made of, and nowhere else.
 *
 * - Its socket is taken off the loop before every call into the library, which may close it, and comes back from
 *   zookeeper_interest() when the turn settles.
 * - What is asked in one event goes out together, each request and its length too: a segment, not two for each.
 * - A call that sends may close the socket and say nothing; that is noticed when the turn settles, and the library is
 *   made to forget what it could not send. It keeps the last zxid it has seen: to a handshake without one a server
 *   that is behind says "expired", and that is believed.
 * - It believes any reply to its handshake, so the reply is judged before anybody is told.
 * - A handshake unanswered for T/6 is given up (the library would wait for 2/3 T).
 * - Which server it tries, and when, is not left to it (attempts.h). A connection on which nothing was answered is
 *   a failed attempt, too.
 *
 *     idle --connect--> connecting <--> connected        (suspended: back to connecting, same session)
 *                           \-----------/-> dead         (expired, or refused): until the next connect
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/effect.h"
#include "core/port/event.h"
#include "io/base/zk_identity.h"

struct watch_base;
struct zk_handle;

/* Why a server is not used, and the next one is tried. */
enum zk_handle_trouble {
	ZK_HANDLE_UNREACHABLE, /* no connection */
	ZK_HANDLE_SILENT,      /* the handshake was not answered in time */
	ZK_HANDLE_CLOSED,      /* the connection ended instead of an answer */
	ZK_HANDLE_BOGUS,       /* no ZooKeeper server */
	ZK_HANDLE_DENIED,      /* the secret was refused; the handle is dead */
};

enum { ZK_HANDLE_TROUBLES = ZK_HANDLE_DENIED + 1 };

/* Called from within the library, except `refused`. None may call back into the handle but zk_handle_send(). */
struct zk_handle_owner {
	void *arg;
	/* EVENT_ZK_CONNECTED, SUSPENDED, EXPIRED, ANSWERED or WATCH: valid during the call. After SUSPENDED every
	 * open operation is answered ZK_UNKNOWN. */
	void (*event)(void *arg, const struct event *event);
	void (*trouble)(void *arg, enum zk_handle_trouble kind, const char *sentence);
	/* The handshake made no sense; the handle is idle again. */
	void (*refused)(void *arg, const char *sentence);
};

struct zk_handle_conf {
	int timeout_ms;                     /* asked for */
	int timeout_min_ms, timeout_max_ms; /* believed */
	const char *secret;               /* "user:password"; NULL: none. Must outlive the handle */
};

struct zk_handle *zk_handle_new(struct watch_base *base, const struct zk_handle_conf *conf,
				const struct zk_handle_owner *owner);
/* Must be idle. Takes NULL. */
void zk_handle_free(struct zk_handle *h);
/* `identity` NULL: a new session. `servers` as resolve_servers() makes them. 0 or -errno. Must be idle. */
int zk_handle_connect(struct zk_handle *h, const char *servers, const struct zk_identity *identity);
/* Idle again: answers what is open, ends no session and waits for nothing. */
void zk_handle_forget(struct zk_handle *h);
bool zk_handle_connected(const struct zk_handle *h);
/* While connected, and during EVENT_ZK_CONNECTED. */
void zk_handle_identity(const struct zk_handle *h, struct zk_identity *ret);
/*
 * EFFECT_ZK_CREATE, LIST, GET, DELETE, SET. ZK_OK: the answer will be an event. Anything else is the answer, and
 * the owner has to tell it. ZK_UNKNOWN when not connected.
 */
enum zk_code zk_handle_send(struct zk_handle *h, const struct effect *effect, struct slice path, struct slice data);
/* Cuts the connection; the library notices and takes the next server. */
void zk_handle_drop(struct zk_handle *h);
/* For a handle that is not connected: other addresses. */
void zk_handle_set_servers(struct zk_handle *h, const char *servers);
/* To be called after every turn in which anything of the above was. */
void zk_handle_settle(struct zk_handle *h);
/*
 * The farewell, in two steps: the first takes the handle off the loop (no more events), the second ends the
 * session, frees the library's handle, may block for seconds and may run in another thread; true: the server has
 * heard it. The handle is not used again.
 */
void zk_handle_detach(struct zk_handle *h);
bool zk_handle_end(struct zk_handle *h);
