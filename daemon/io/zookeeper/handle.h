/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One handle of the ZooKeeper C client (single-threaded flavour) in the loop. Everything that one must know to use that
 * library safely is in this file and in the files that it is made of, and nowhere else.
 *
 * - Its socket is taken off the loop before every call into the library, which may close it, and comes back from
 *   zookeeper_interest() when the turn settles.
 * - The requests of one event are sent together, each with its length: one segment, not two for each request.
 * - A call that sends may close the socket silently; that is noticed when the turn settles, and the library is made to
 *   forget the requests that it could not send. The handle, and with it the last zxid, is kept: to a handshake without
 *   one, a server that is behind answers "expired", and the library believes it.
 * - The library believes any reply to its handshake, so the reply is examined before it counts. It also believes any
 *   answer, and crashes if that is cut short, so each one is examined before the library reads it (answer.h).
 * - A handshake that is unanswered for T/6 is given up (the library would wait for 2/3 T).
 * - A server that is met for the first time is tried (capabilities.h) before the owner is notified of the connection.
 * - The library does not choose which server it tries, and when (see handle.c). A connection on which nothing was
 *   answered is a failed attempt, too.
 *
 *     idle --connect--> connecting <--> connected        (suspended: back to connecting, same session)
 *                           \-----------/-> dead         (expired, or refused): until the next connect
 */
#pragma once

#include <stdbool.h>

#include "core/port/effect.h"
#include "core/port/event.h"
#include "io/base/zk_identity.h"

struct watch_base;
struct secret;
struct zk_capabilities;
struct zk_handle;

/* Why a server is not used, so that the next one is tried. */
enum zk_handle_trouble {
	ZK_HANDLE_UNREACHABLE, /* no connection */
	ZK_HANDLE_SILENT,      /* the handshake was not answered in time */
	ZK_HANDLE_CLOSED,      /* the connection ended instead of an answer */
	ZK_HANDLE_BOGUS,       /* not a ZooKeeper server */
	ZK_HANDLE_DENIED,      /* the secret was refused; the handle is dead */
};

enum { ZK_HANDLE_TROUBLES = ZK_HANDLE_DENIED + 1 };

/* Called from within the library, except `refused`. None may call the handle again, except zk_handle_send(). */
struct zk_handle_owner {
	void *arg;
	/*
	 * EVENT_ZK_LACKS, CONNECTED, SUSPENDED, EXPIRED, ANSWERED or WATCH, valid during the call. After SUSPENDED every open
	 * operation is answered with ZK_UNKNOWN.
	 */
	void (*event)(void *arg, const struct event *event);
	void (*trouble)(void *arg, enum zk_handle_trouble kind, const char *sentence);
	/* The reply to the handshake is not usable; the handle is idle again. */
	void (*refused)(void *arg, const char *sentence);
};

struct zk_handle_conf {
	int timeout_ms;                     /* asked for */
	int timeout_min_ms, timeout_max_ms; /* accepted */
	const struct secret *secret; /* NULL: none. Must outlive the handle */
	struct zk_capabilities *capabilities; /* of the servers; NULL: none is tried, all are taken for Apache's. The same */
};

struct zk_handle *zk_handle_new(struct watch_base *base, const struct zk_handle_conf *conf,
				const struct zk_handle_owner *owner);
/* Must be idle. Takes NULL. */
void zk_handle_free(struct zk_handle *h);
/* `identity` NULL: a new session. `servers` in the form of resolve_servers(). 0 or -errno. The handle must be idle. */
int zk_handle_connect(struct zk_handle *h, const char *servers, const struct zk_identity *identity);
/* Makes the handle idle: answers open operations, ends no session and does not wait. */
void zk_handle_forget(struct zk_handle *h);
/* The latest one that was tried, "address:port". */
const char *zk_handle_server(const struct zk_handle *h);
bool zk_handle_connected(const struct zk_handle *h);
/* To be called while connected, or during EVENT_ZK_CONNECTED. */
void zk_handle_identity(const struct zk_handle *h, struct zk_identity *ret);
/*
 * Sends EFFECT_ZK_CREATE, LIST, GET, DELETE or SET. ZK_OK: an event will bring the answer. Any other code is the
 * answer, which the owner has to report. ZK_UNKNOWN if not connected.
 */
enum zk_code zk_handle_send(struct zk_handle *h, const struct effect *effect, struct slice path, struct slice data);
/* Cuts the connection; the library notices that and takes the next server. */
void zk_handle_drop(struct zk_handle *h);
/*
 * Ends the connection, at once and without a farewell, and begins no other one before the next settling: the owner has
 * been notified that it is suspended, as planned, and that all open operations are ZK_UNKNOWN. Not from within the
 * library.
 */
void zk_handle_suspend(struct zk_handle *h);
/* Sets other addresses; only for a handle that is not connected. */
void zk_handle_set_servers(struct zk_handle *h, const char *servers);
/* To be called after every turn in which any of the above was called or happened. */
void zk_handle_settle(struct zk_handle *h);
/*
 * The farewell, in two steps. The first takes the handle off the loop (no more events). The second ends the session and
 * frees the library's handle; it may block for seconds and may run in another thread. True: the server has received the
 * farewell. The handle is not used again.
 */
void zk_handle_detach(struct zk_handle *h);
bool zk_handle_end(struct zk_handle *h);

/*
 * Logs a line of ZooKeeper's C client, without the number of a session, and for debugging only: the library's log has
 * no context, calls a port that refuses a "broken pipe", and repeats itself at every attempt. Important failures are
 * reported as a trouble instead. The library also logs from the thread that ends a session.
 */
void zk_client_log(const char *message);

enum { ZK_SERVER_NAME_MAX = 136 }; /* "address:port" and a NUL */
