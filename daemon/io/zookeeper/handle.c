/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/handle.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zookeeper/zookeeper.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/base/watch.h"
#include "io/zookeeper/handshake.h"
#include "io/zookeeper/ops.h"
#include "io/zookeeper/paths.h"
#include "io/zookeeper/secret.h"

/*
 * How a handle proves to the servers who it is, and who may use the znodes that it makes. Both follow from the secret
 * (secret.h). Without a secret the handle proves nothing, and everybody may use its znodes.
 */

struct zk_authority {
	const struct secret *secret; /* NULL: none */
	struct ACL acl;
	struct ACL_vector acls;
};

/* The library only reads the text, but its types do not say so. */
static char *unwritten(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* `secret` must outlive it. */
static void zk_authority_init(struct zk_authority *a, const struct secret *secret)
{
	a->secret = secret;
	if (secret)
		a->acl = (struct ACL){ ZOO_PERM_ALL, { unwritten("digest"), unwritten(secret_owner(secret)) } };
	a->acls = (struct ACL_vector){ 1, &a->acl };
}

/* Gives the secret to the library, which sends it first on every connection: call this before the first connection. */
static void zk_authority_show(const struct zk_authority *a, zhandle_t *zh)
{
	for (size_t i = 0; a->secret && i < secret_lines(a->secret); i++) {
		const char *line = secret_line(a->secret, i);
		int rc = zoo_add_auth(zh, "digest", line, (int)strlen(line), NULL, NULL);

		if (rc != ZOK)
			log_error(zookeeper_trouble, LOG_FIELDS("error=%v", zerror(rc)),
				  "ZooKeeper client: cannot use the secret of zookeeper.auth_file: %s", zerror(rc));
	}
}

/* The access list for new znodes, valid as long as `a`. */
static const struct ACL_vector *zk_authority_acl(const struct zk_authority *a)
{
	return a->secret ? &a->acls : &ZOO_OPEN_ACL_UNSAFE;
}

/*
 * A handle's attempts to connect: the servers in turn, and the pauses after rounds of failures.
 *
 * - After a failure the library skips every second server; here it is turned back to the one after the last.
 * - The library tries all servers again every T/60, for ever, and all hosts do so in step. Here the pause after each
 *   round of failures is longer, and random: up to T/24 while there is a session to lose, otherwise up to five seconds.
 *
 * Zero-initialised: no server was tried.
 */
struct zk_attempts {
	char *servers; /* in the library's form: "address:port,..." */
	size_t server_count;
	char server[ZK_SERVER_NAME_MAX]; /* the latest one that was tried; survives the library's handle */
	bool proven;                     /* a server has served this session */
	size_t failures;                 /* in a row */
	struct backoff backoff;
	int64_t next_ns; /* not before */
};

enum { BACKOFF_PART = 24 }; /* of T, while there is a session to lose */

#define BACKOFF_MAX_NS (5 * CLOCK_NS_PER_S) /* while there is none */

static void zk_attempts_deinit(struct zk_attempts *a)
{
	free(a->servers);
}

static void zk_attempts_servers(struct zk_attempts *a, const char *servers)
{
	const char *p;

	free(a->servers);
	a->servers = mem_text(servers);
	a->server_count = 1;
	for (p = servers; *p; p++)
		a->server_count += *p == ',';
}

/* The same, and tells the library's handle, which exists already. */
static void zk_attempts_set_servers(struct zk_attempts *a, zhandle_t *zh, const char *servers)
{
	int rc;

	zk_attempts_servers(a, servers);
	/*
	 * The library compares addresses without their ports: if the new list has the same hosts as the old one, as with local
	 * proxies, it would keep the old list. So it first gets an address that no server can have (RFC 5737).
	 */
	rc = zoo_set_servers(zh, "192.0.2.1:1");
	if (rc == ZOK)
		rc = zoo_set_servers(zh, servers);
	if (rc != ZOK)
		log_warning(zookeeper_trouble, LOG_FIELDS("error=%v", zerror(rc)),
			    "ZooKeeper client: cannot use the new addresses: %s", zerror(rc));
}

/* At the next interest(), the library takes the server after the current one. */
/* To be called before the library is asked for a connection, so that it takes the server after the last one. */
static void zk_attempts_turn(const struct zk_attempts *a, zhandle_t *zh)
{
	size_t i;

	for (i = 0; a->server[0] && i < a->server_count; i++) {
		if (strcmp(zoo_get_current_server(zh), a->server) == 0)
			return;
		zoo_cycle_next_server(zh);
	}
}

/* The library now tries its current server. */
static void zk_attempts_begin(struct zk_attempts *a, zhandle_t *zh)
{
	snprintf(a->server, sizeof(a->server), "%s", zoo_get_current_server(zh));
}

/* There is a pause after each round of all servers. */
/* `timeout_ms` is that of the session. */
static void zk_attempts_failed(struct zk_attempts *a, int timeout_ms)
{
	int64_t max_ns = a->proven ? timeout_ms * CLOCK_NS_PER_MS / BACKOFF_PART : BACKOFF_MAX_NS;

	if (++a->failures % a->server_count == 0)
		a->next_ns = clock_now_ns() + backoff_next_ns(&a->backoff, max_ns);
}

static void zk_attempts_served(struct zk_attempts *a)
{
	a->proven = true;
	a->failures = 0;
	backoff_reset(&a->backoff);
}

/* How long until the next attempt may begin; not positive: now. */
static int64_t zk_attempts_pause_ns(const struct zk_attempts *a)
{
	return a->next_ns - clock_now_ns();
}

/* Whoever knows a session can end it. */
static void log_line(const char *text)
{
	static const char secret[] = "sessionId=";
	const char *id = strstr(text, secret), *rest;

	if (!id) {
		log_debug(zookeeper_client, LOG_NO_FIELDS, "ZooKeeper client: %s", text);
		return;
	}
	rest = id + strlen(secret);
	log_debug(zookeeper_client, LOG_NO_FIELDS, "ZooKeeper client: %.*s...%s", (int)(rest - text), text,
		  rest + strcspn(rest, ", "));
}

void zk_client_log(const char *message)
{
	const char *text = strstr(message, "@");

	text = text ? strstr(text, ": ") : NULL;
	log_line(text ? text + 2 : message);
}

enum {
	PACKETS_PER_TURN = 64,
	RETRY_MS = 10,         /* after a call that failed; the library itself delays its attempts */
	PATIENCE_MIN_MS = 250, /* for a handshake, however short the session is */
};

struct zk_handle {
	struct zk_handle_conf conf;
	struct zk_handle_owner owner;
	struct watch *watch;
	zhandle_t *zh; /* NULL: idle */
	struct zk_attempts attempts;
	int fd;                            /* the library's socket; -1: it has none */
	int64_t attempt_ns;                /* when the connection to that server was begun */
	int timeout_ms;                    /* negotiated, or asked for */
	bool connected, dead, dirty, detached;
	bool planned;  /* this side ends the connection, and soon makes another one */
	bool unpurged; /* the library still has requests that it could not send on a connection that is over */
	bool corked;                       /* output waits for what follows it */
	bool failed;             /* this attempt has failed, and the owner was told */
	bool answered, served;   /* on this connection: anything was answered; a request was not refused */
	bool trying; /* connected, and the owner is not told before it is known what the server can do */
	unsigned int lacks; /* what the owner was told of that */
	bool admitted; /* the library reads an answer that was looked at */
	int waited; /* for so many bytes of a reply to the handshake */
	char refused[ZK_HANDSHAKE_SENTENCE_MAX]; /* a sentence: the session is to be forgotten when the turn settles */
	struct zk_ops ops;
	struct zk_paths paths;
	struct zk_authority authority;
};

static void handle_watcher(zhandle_t *zh, int type, int state, const char *path, void *context);

static void handle_off_loop(struct zk_handle *h)
{
	watch_clear(h->watch);
	h->dirty = true;
}

static void handle_tell(struct zk_handle *h, struct event *event)
{
	h->owner.event(h->owner.arg, event);
}

/* Not for a socket that the library has closed silently: its number may now be a client's. */
static void handle_shutdown(struct zk_handle *h)
{
	if (h->zh && h->fd >= 0 && zoo_state(h->zh) != ZOO_NOTCONNECTED_STATE)
		shutdown(h->fd, SHUT_RDWR);
}

static void handle_unwatch(void *arg, const char *path)
{
	struct zk_handle *h = arg;

	zoo_aremove_all_watches(h->zh, path, ZWATCHTYPE_ANY, 1, NULL, NULL);
}

/* There is a pause before a round of attempts begins anew. False: this attempt was counted already. */
static bool handle_wait(struct zk_handle *h)
{
	if (h->failed)
		return false;
	h->failed = true;
	zk_attempts_failed(&h->attempts, h->timeout_ms);
	return true;
}

/* The present attempt has failed. */
static void handle_fail(struct zk_handle *h, enum zk_handle_trouble kind, const char *text)
{
	char sentence[ZK_SERVER_NAME_MAX + ZK_ANSWER_SENTENCE_MAX];

	if (!handle_wait(h))
		return;
	snprintf(sentence, sizeof(sentence), "%s %s", h->attempts.server, text);
	h->owner.trouble(h->owner.arg, kind, sentence);
}

/* The connection ended. If it served, that is no failure; if requests were refused, their answers have the reason. */
static void handle_judge(struct zk_handle *h)
{
	if (h->served || h->failed)
		return;
	if (h->answered)
		handle_wait(h);
	else
		handle_fail(h, ZK_HANDLE_CLOSED, "gave a session and closed the connection before it answered anything");
}

static void handle_suspended(struct zk_handle *h)
{
	struct event event = { .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = h->planned } };

	if (!h->connected)
		return;
	h->connected = false;
	if (!h->planned)
		zk_ops_ended(&h->ops);
	zk_inlet_reset(&h->ops.inlet);
	zk_paths_clear(&h->paths, handle_unwatch, h);
	if (!h->trying)
		handle_tell(h, &event);
	h->trying = false;
}

static struct zk_ops_client handle_client(struct zk_handle *h)
{
	return (struct zk_ops_client){
		.zh = h->zh,
		.watcher = handle_watcher,
		.acl = zk_authority_acl(&h->authority),
		.context = h,
	};
}

static void handle_tell_lacks(struct zk_handle *h)
{
	struct event event = { .type = EVENT_ZK_LACKS, .zk_lacks = zk_capable_word(h->ops.server) };

	h->lacks = event.zk_lacks;
	handle_tell(h, &event);
}

/* The server does not suit the broker. False: it does, as far as is known. */
static bool handle_unfit(struct zk_handle *h)
{
	if (!zk_capable_lacks(h->ops.server, ZK_CZXID))
		return false;
	handle_fail(h, ZK_HANDLE_BOGUS,
		    "cannot be used: a znode that was just made has no number of a transaction (czxid), or none above those "
		    "of earlier znodes, and tokens are made of this number");
	zk_handle_drop(h);
	return true;
}

/* The owner is told of the connection. */
static void handle_begin(struct zk_handle *h)
{
	struct event event = { .type = EVENT_ZK_CONNECTED };

	h->trying = false;
	event.zk_connected.session = zoo_client_id(h->zh)->client_id;
	event.zk_connected.timeout_ns = h->timeout_ms * CLOCK_NS_PER_MS;
	event.zk_connected.asked_ns = h->attempt_ns;
	event.zk_connected.server = slice_of(h->attempts.server);
	if (h->ops.server)
		handle_tell_lacks(h);
	handle_tell(h, &event);
}

static void handle_connected(struct zk_handle *h)
{
	struct zk_capabilities *all = h->conf.capabilities;
	struct zk_ops_client client = handle_client(h);

	h->connected = true;
	h->answered = h->served = h->corked = false;
	h->timeout_ms = zoo_recv_timeout(h->zh);
	h->trying = true;
	if (!zk_ops_begin(&h->ops, all ? zk_capable_connected(all, h->attempts.server) : NULL, &client) && !handle_unfit(h))
		handle_begin(h);
}

/* After each answer. */
static void handle_tried(struct zk_handle *h)
{
	struct zk_ops_client client = handle_client(h);

	if (!h->connected || zoo_state(h->zh) != ZOO_CONNECTED_STATE || !h->ops.server)
		return;
	if (h->trying && !zk_ops_tries(&h->ops, &client) && !handle_unfit(h))
		handle_begin(h);
	else if (!h->trying && !handle_unfit(h) && h->lacks != zk_capable_word(h->ops.server))
		handle_tell_lacks(h);
}

static void handle_session(struct zk_handle *h, int state)
{
	struct event event = { .type = EVENT_ZK_EXPIRED };

	if (state == ZOO_CONNECTED_STATE || state == ZOO_READONLY_STATE) {
		handle_suspended(h);
		if (!zk_handshake_gives(h->zh, state, &h->conf, h->attempts.server, h->refused))
			return;
		handle_connected(h);
	} else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
		h->fd = -1;
		if (state == ZOO_AUTH_FAILED_STATE)
			handle_fail(h, ZK_HANDLE_DENIED, "refuses the authentication by zookeeper.auth_file");
		handle_suspended(h);
		h->dead = true;
		handle_tell(h, &event);
	} else {
		bool was_connected = h->connected;

		h->fd = -1; /* it is closed before the library says so */
		handle_suspended(h);
		if (was_connected && h->admitted)
			handle_fail(h, ZK_HANDLE_BOGUS,
				    "spoils its answers: the next one is not of the request that was sent first");
		else if (was_connected && !h->planned)
			handle_judge(h);
	}
}

/* The only watcher, with the only context: session events go to every different one, in quadratic time. */
static void handle_watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
	struct zk_handle *h = context;
	struct event event = { .type = EVENT_ZK_WATCH };

	if (zh != h->zh || h->detached)
		return;
	if (type == ZOO_SESSION_EVENT) {
		handle_session(h, state);
		return;
	}
	if (!h->connected || !zk_paths_fired(&h->paths, path, type, &event.zk_watch.type))
		return;
	event.zk_watch.path = slice_of(path);
	handle_tell(h, &event);
}

static int handle_init(struct zk_handle *h, const clientid_t *id)
{
	zoo_set_debug_level(log_level() == LOG_LEVEL_DEBUG ? ZOO_LOG_LEVEL_INFO : ZOO_LOG_LEVEL_ERROR);
	errno = 0;
	h->zh = zookeeper_init2(h->attempts.servers, handle_watcher, h->conf.timeout_ms, id, h, ZOO_NO_LOG_CLIENTENV,
				zk_client_log);
	if (!h->zh)
		return errno ? -errno : -EINVAL;
	zk_authority_show(&h->authority, h->zh);
	/* The addresses are numeric, and are looked up elsewhere. */
	zoo_set_servers_resolution_delay(h->zh, -1);
	h->fd = -1;
	h->connected = h->dead = h->unpurged = false;
	h->timeout_ms = h->conf.timeout_ms;
	h->refused[0] = '\0';
	h->dirty = true;
	return 0;
}

/*
 * Frees the library's handle without ending the session. Because the socket is shut down, the library cannot send a
 * farewell, and so does not wait for its answer. Its pending completions are called and find nobody.
 */
static void handle_discard(struct zk_handle *h)
{
	zhandle_t *zh = h->zh;
	uint64_t id;

	handle_off_loop(h);
	while (zk_ops_abandon(&h->ops, &id))
		;
	zk_paths_clear(&h->paths, NULL, NULL);
	handle_shutdown(h);
	h->zh = NULL;
	h->fd = -1;
	zookeeper_close(zh);
}

/* Answers the open operations, in order. */
static void handle_answer_unknown(struct zk_handle *h)
{
	struct event event = { .type = EVENT_ZK_ANSWERED, .zk_answered = { .code = ZK_UNKNOWN } };
	uint64_t id;

	while (zk_ops_abandon(&h->ops, &id)) {
		event.zk_answered.op = id;
		handle_tell(h, &event);
	}
}

/*
 * A call that sent something has closed the socket, and the library does not know that its connection is over: requests
 * that it kept unsent would reach the next server. It learns of that from the end of another connection, which is cut
 * as soon as it is begun. False: no connection could be begun.
 */
static bool handle_purge(struct zk_handle *h)
{
	struct timeval tv = { 0 };
	int fd = -1, interest = 0;

	if (zookeeper_interest(h->zh, &fd, &interest, &tv) == ZOK && fd >= 0) {
		zk_handshake_reject(fd);
		zookeeper_process(h->zh, ZOOKEEPER_READ);
	}
	return zoo_state(h->zh) == 0;
}

/*
 * The session is not continued by a new handle: that would not know the last zxid it has seen, and a server that is
 * behind could answer "expired" about a session of which it has not heard yet.
 */
static void handle_broken(struct zk_handle *h)
{
	log_debug(zookeeper_client, LOG_NO_FIELDS, "the connection to ZooKeeper broke while sending");
	h->fd = -1;
	handle_suspended(h);
	handle_judge(h);
	handle_answer_unknown(h);
	h->unpurged = true;
}

/* How long the present handshake may still take. */
static int64_t handle_patience_ns(const struct zk_handle *h)
{
	int64_t patience_ms = h->timeout_ms / 6 > PATIENCE_MIN_MS ? h->timeout_ms / 6 : PATIENCE_MIN_MS;

	return h->attempt_ns + patience_ms * CLOCK_NS_PER_MS - clock_now_ns();
}

static void handle_closed(struct zk_handle *h)
{
	handle_fail(h, ZK_HANDLE_CLOSED,
		    "closed the connection instead of answering the handshake: it is not serving yet, has too many "
		    "connections, or its data are older than this session");
}

/*
 * A call of the library failed: the attempt has, or the connection is over. The end of one that had a session says nothing
 * about whether its server can be reached, because perhaps this side has ended it; only the next attempt may have to wait.
 */
static void handle_missed(struct zk_handle *h, bool had_session, bool reached)
{
	if (h->connected || h->dead || h->refused[0])
		return;
	if (had_session)
		handle_wait(h);
	else if (reached)
		handle_closed(h);
	else
		handle_fail(h, ZK_HANDLE_UNREACHABLE, "cannot be reached");
}

static void handle_arm(struct zk_handle *h)
{
	struct timeval tv = { .tv_sec = 1 };
	int64_t timeout_ns, patience_ns, began_ns;
	bool had_session = h->connected;
	int fd = -1, interest = 0, rc;

	watch_clear(h->watch);
	h->unpurged = h->unpurged && !handle_purge(h);
	if (h->unpurged) {
		watch_set(h->watch, -1, 0, RETRY_MS * CLOCK_NS_PER_MS);
		return;
	}
	if (h->fd < 0)
		zk_attempts_turn(&h->attempts, h->zh);
	if (h->fd < 0 && !h->connected && (timeout_ns = zk_attempts_pause_ns(&h->attempts)) > 0) {
		watch_set(h->watch, -1, 0, timeout_ns);
		return;
	}
	h->failed = h->failed && h->fd >= 0;
	began_ns = clock_now_ns(); /* the call may send the handshake at once */
	rc = zookeeper_interest(h->zh, &fd, &interest, &tv);
	if (is_unrecoverable(h->zh) && !h->dead)
		handle_session(h, ZOO_EXPIRED_SESSION_STATE);
	if (h->dead)
		return;
	/* The descriptor of a failed call is already closed. */
	if (rc != ZOK) {
		if (h->fd < 0)
			zk_attempts_begin(&h->attempts, h->zh);
		handle_missed(h, had_session, false);
		h->fd = -1;
		watch_set(h->watch, -1, 0, RETRY_MS * CLOCK_NS_PER_MS);
		return;
	}
	if (h->fd < 0 && fd >= 0) {
		fcntl(fd, F_SETFD, FD_CLOEXEC); /* the library leaves it to be inherited */
		h->attempt_ns = began_ns;
		h->waited = 0;
		zk_attempts_begin(&h->attempts, h->zh);
	}
	h->fd = fd;
	timeout_ns = tv.tv_sec * CLOCK_NS_PER_S + tv.tv_usec * INT64_C(1000);
	patience_ns = handle_patience_ns(h);
	if (fd >= 0 && (!h->connected || h->trying) && patience_ns < timeout_ns)
		timeout_ns = patience_ns > 0 ? patience_ns : 0;
	watch_set(h->watch, fd,
		  fd < 0 ? 0
			 : (interest & ZOOKEEPER_READ ? WATCH_READ : 0) |
				   (interest & ZOOKEEPER_WRITE ? WATCH_WRITE : 0),
		  timeout_ns);
}

/* Looks at the next answer. False: the library should not read. */
static bool handle_admits(struct zk_handle *h)
{
	char sentence[ZK_ANSWER_SENTENCE_MAX];

	switch (zk_ops_look(&h->ops, h->fd, h->zh, h->conf.secret, sentence)) {
	case ZK_INLET_READ:
		h->admitted = true;
		return true;
	case ZK_INLET_MORE:
		return false;
	case ZK_INLET_WRONG:
		handle_fail(h, ZK_HANDLE_BOGUS, sentence);
		break;
	case ZK_INLET_END:
		break;
	}
	/* Whatever else comes, the library reads the end. */
	zk_handshake_reject(h->fd);
	return true;
}

/* Negative: the socket is closed. */
static int handle_process(struct zk_handle *h, unsigned int what)
{
	int events = (what & WATCH_READ ? ZOOKEEPER_READ : 0) | (what & WATCH_WRITE ? ZOOKEEPER_WRITE : 0);
	int packets = 0, rc;

	do {
		if (h->connected && (events & ZOOKEEPER_READ) && !handle_admits(h))
			events &= ~ZOOKEEPER_READ;
		rc = events ? zookeeper_process(h->zh, events) : ZNOTHING;
		h->admitted = false;
		handle_tried(h);
		events = ZOOKEEPER_READ;
	} while (rc == ZOK && h->connected && zoo_state(h->zh) == ZOO_CONNECTED_STATE && ++packets < PACKETS_PER_TURN);
	if (rc == ZOK || rc == ZNOTHING)
		return 0;
	h->fd = -1;
	return -1;
}

/* False: there is nothing that the library should read. */
static bool handle_looks(struct zk_handle *h, unsigned int *what)
{
	switch (zk_handshake_look(h->fd, &h->waited)) {
	case ZK_HANDSHAKE_READ:
		return true;
	case ZK_HANDSHAKE_END:
		handle_closed(h);
		return true;
	case ZK_HANDSHAKE_MORE:
		*what &= ~(unsigned int)WATCH_READ;
		return *what & WATCH_WRITE;
	case ZK_HANDSHAKE_BOGUS:
		handle_fail(h, ZK_HANDLE_BOGUS, "is no ZooKeeper server");
		zk_handshake_reject(h->fd);
		return false;
	}
	return false;
}

static void handle_fired(int fd, short fired, void *arg)
{
	unsigned int what = (unsigned int)fired;
	struct zk_handle *h = arg;

	h->dirty = true;
	if ((what & WATCH_READ) && !h->connected && !handle_looks(h, &what))
		return;
	if (what & (WATCH_READ | WATCH_WRITE)) {
		/* A server that closes at once may do so before the handshake is sent, and then it is the sending that fails. */
		bool had_session = h->connected, reached = !had_session && zk_handshake_reached(h->fd);

		if (handle_process(h, what) < 0)
			handle_missed(h, had_session, reached);
	} else if (h->fd >= 0 && (!h->connected || h->trying) && handle_patience_ns(h) <= 0) {
		handle_fail(h, ZK_HANDLE_SILENT,
			    h->trying ? "gave a session and does not answer the first request" : "does not answer the handshake");
		zk_handshake_reject(h->fd);
		h->attempt_ns = clock_now_ns();
	}
}

/* The answer to an operation. */
static void handle_answered(void *arg, struct event *event)
{
	struct zk_handle *h = arg;

	if (h->ops.server && h->connected && h->lacks != zk_capable_word(h->ops.server))
		handle_tell_lacks(h); /* before an answer that follows from that */
	/*
	 * The outcome is unknown although the handle is connected (the session moved, or the server gave up): only a new
	 * connection can tell it.
	 */
	if (event->zk_answered.code == ZK_UNKNOWN && h->connected)
		zk_handle_drop(h);
	h->answered = h->answered || event->zk_answered.code != ZK_UNKNOWN;
	if (event->zk_answered.code < ZK_REFUSED) {
		h->served = true;
		zk_attempts_served(&h->attempts);
	}
	/* A server that has no quorum serves nobody: the next one may. */
	if (event->zk_answered.code == ZK_BUSY && event->zk_answered.cause == ZK_CAUSE_read_only)
		zk_handle_drop(h);
	handle_tell(h, event);
}

struct zk_handle *zk_handle_new(struct watch_base *base, const struct zk_handle_conf *conf,
				const struct zk_handle_owner *owner)
{
	struct zk_handle *h = mem_new(sizeof(*h));

	h->conf = *conf;
	h->owner = *owner;
	zk_authority_init(&h->authority, conf->secret);
	h->watch = watch_new(base, handle_fired, h);
	h->fd = -1;
	zk_ops_init(&h->ops, &h->paths, handle_answered, h);
	zk_paths_init(&h->paths);
	return h;
}

void zk_handle_free(struct zk_handle *h)
{
	if (!h)
		return;
	assert(!h->zh);
	watch_free(h->watch);
	zk_paths_deinit(&h->paths);
	zk_ops_deinit(&h->ops);
	zk_attempts_deinit(&h->attempts);
	mem_free(h);
}

int zk_handle_connect(struct zk_handle *h, const char *servers, const struct zk_identity *identity)
{
	clientid_t id = { 0 };

	static_assert(sizeof(id.passwd) == ZK_PASSWORD_BYTES, "an identity is the library's");
	assert(!h->zh);
	zk_attempts_servers(&h->attempts, servers);
	h->attempts.proven = identity != NULL; /* in a hurry, because others wait for it */
	if (!identity)
		return handle_init(h, NULL);
	id.client_id = identity->session;
	memcpy(id.passwd, identity->password, sizeof(id.passwd));
	return handle_init(h, &id);
}

void zk_handle_identity(const struct zk_handle *h, struct zk_identity *ret)
{
	const clientid_t *id = zoo_client_id(h->zh);

	ret->session = id->client_id;
	memcpy(ret->password, id->passwd, sizeof(ret->password));
}

void zk_handle_forget(struct zk_handle *h)
{
	if (!h->zh)
		return;
	handle_suspended(h);
	handle_answer_unknown(h);
	handle_discard(h);
}

const char *zk_handle_server(const struct zk_handle *h)
{
	return h->attempts.server;
}

bool zk_handle_connected(const struct zk_handle *h)
{
	return h->connected;
}

/*
 * The library sends the length of a request, and then the request; each would go out as a packet of its own and wake up
 * the server, and so would each of several requests. A cork costs no delay: the kernel sends everything when it is
 * removed. Not if the library has closed the socket silently, as above.
 */
static void handle_cork(struct zk_handle *h, bool cork)
{
	int value = cork;

	if (h->corked == cork || h->fd < 0 || zoo_state(h->zh) != ZOO_CONNECTED_STATE)
		return;
	h->corked = cork;
	setsockopt(h->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
}

enum zk_code zk_handle_send(struct zk_handle *h, const struct effect *effect, struct slice path, struct slice data)
{
	struct zk_ops_client client;
	enum zk_code code;

	if (!h->connected || h->trying || zoo_state(h->zh) != ZOO_CONNECTED_STATE)
		return ZK_UNKNOWN;
	handle_off_loop(h);
	handle_cork(h, true);
	client = handle_client(h);
	code = zk_ops_send(&h->ops, effect, path, data, &client);
	if (!effect->more)
		handle_cork(h, false);
	/* Nothing on this connection can tell the outcome. */
	if (code == ZK_UNKNOWN)
		zk_handle_drop(h);
	return code;
}

void zk_handle_drop(struct zk_handle *h)
{
	handle_shutdown(h);
}

/* The library learns of the end of its connection here, and begins no other one: that needs zookeeper_interest(). */
void zk_handle_suspend(struct zk_handle *h)
{
	if (!h->zh || h->dead)
		return;
	handle_off_loop(h);
	h->planned = true;
	if (h->fd >= 0 && zoo_state(h->zh) != ZOO_NOTCONNECTED_STATE) {
		zk_handshake_reject(h->fd);
		zookeeper_process(h->zh, ZOOKEEPER_READ);
		h->fd = -1;
	}
	/* It had closed the socket silently. */
	h->unpurged = h->unpurged || h->connected;
	handle_suspended(h);
	handle_answer_unknown(h);
	h->planned = false;
}

void zk_handle_set_servers(struct zk_handle *h, const char *servers)
{
	if (!h->zh || h->dead || h->connected)
		return;
	handle_off_loop(h);
	zk_attempts_set_servers(&h->attempts, h->zh, servers);
	/* The library closes a socket that leads to a server which is no longer listed. */
	if (zoo_state(h->zh) == ZOO_NOTCONNECTED_STATE)
		h->fd = -1;
}

/* Kept apart from zk_handle_settle(), which then needs no frame for it. */
static __attribute__((noinline)) void handle_settle(struct zk_handle *h)
{
	if (h->refused[0]) {
		char sentence[sizeof(h->refused)];

		memcpy(sentence, h->refused, sizeof(sentence));
		zk_handle_forget(h);
		h->refused[0] = '\0';
		h->owner.refused(h->owner.arg, sentence);
	}
	while (h->zh && !h->dead && h->dirty && !h->refused[0]) {
		if (h->connected && zoo_state(h->zh) != ZOO_CONNECTED_STATE)
			handle_broken(h);
		h->dirty = false;
		if (h->zh && !h->dead)
			handle_arm(h);
	}
}

void zk_handle_settle(struct zk_handle *h)
{
	if (h->zh && (h->dirty || h->refused[0]))
		handle_settle(h);
}

void zk_handle_detach(struct zk_handle *h)
{
	uint64_t id;

	h->detached = true;
	h->connected = false;
	watch_clear(h->watch);
	while (zk_ops_abandon(&h->ops, &id))
		;
}

bool zk_handle_end(struct zk_handle *h)
{
	bool heard;

	assert(h->detached);
	heard = zk_farewell(h->zh, h->fd);
	h->zh = NULL;
	h->fd = -1;
	return heard;
}
