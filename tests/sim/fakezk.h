/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake ZooKeeper ensemble, faithful where it matters to a lock service.
 *
 * The leader checks a write against the truth (everything committed), appends it to the log and tells each server;
 * a server applies the log in order, later than the truth, fires its watches and answers what came through it.
 * Reads are answered from what the server has applied, after earlier writes of their connection. Watches belong to
 * a connection and fire once. A session is touched by what reaches its leader: a follower hands on its touches
 * only in the answer to the leader's ping, every half tick. It expires in buckets of a tick; a new leader gives
 * every session its whole time again. A server cut off as a former leader goes on answering reads.
 *
 * What the leader proposes is in the truth once it was acknowledged. Between the two it was checked already: the
 * session may move meanwhile, and list elsewhere what the write is not in yet. At an election the first of the
 * proposals in flight are known to the next leader, who commits them before it serves; the others never were, an
 * expiry among them too, although the session's client may have been told of it.
 */
#pragma once

#include "rng.h"
#include "sched.h"

#include <sys/queue.h>

enum { FAKEZK_SERVERS = 3, FAKEZK_TRUTH = FAKEZK_SERVERS, FAKEZK_VIEWS, FAKEZK_BUCKETS = 1 << 12 };

enum packet {
	/* client to server */
	PACKET_CONNECT, PACKET_REQUEST, PACKET_PING, PACKET_FIN,
	/* server to client; PACKET_FIN too */
	PACKET_CONNECTED, PACKET_EXPIRED, PACKET_ANSWER, PACKET_WATCH, PACKET_PONG,
	/* follower to leader */
	LINK_FORWARD, LINK_REVALIDATE, LINK_TOUCHES,
	/* the leader to its quorum */
	LINK_EXPIRY,
	/* leader to server */
	LINK_COMMIT, LINK_PING, LINK_REVALIDATED,
};

struct zdata {
	int refs;
	size_t len;
	char bytes[];
};

/* What one server (or the truth) thinks of a znode. */
struct zview {
	bool exists;
	int32_t version, creates, children;
	int64_t mzxid, pzxid;
	struct zdata *data;
};

struct znode {
	struct znode *hash_next, *parent;
	TAILQ_ENTRY(znode) sibling;
	LIST_ENTRY(znode) owned;      /* ephemerals of one session, while they stand in the truth */
	TAILQ_HEAD(, znode) children; /* every child that some view or the log still knows */
	int refs;                     /* views it exists in, transactions that name it, children */
	uint32_t hash;
	enum zk_create type;
	int64_t czxid;
	struct zsession *session;     /* NULL: no ephemeral */
	int64_t created_at;
	struct zview view[FAKEZK_VIEWS];
	size_t len, name_at;
	char path[];
};

struct zsession {
	LIST_ENTRY(zsession) link;
	LIST_HEAD(, znode) ephemerals;
	int64_t id, timeout, expiry;
	bool alive;                   /* in the truth */
	bool evicted;                 /* a third party ended it */
	bool closing, was_closing;    /* its end is proposed; or was once, and the next leader knew nothing of it */
	bool known[FAKEZK_SERVERS];   /* applied there and not closed there */
	int64_t opened;               /* the transaction that opened it */
	int owner;                    /* the server it was last seen connected to, by the leader; -1: any */
	void *user;                   /* whose handle opened it */
};

enum txn_type { TXN_CREATE, TXN_DELETE, TXN_SET, TXN_OPEN, TXN_CLOSE, TXN_ERROR };

struct txn {
	int64_t zxid;
	enum txn_type type;
	enum zk_code code;
	bool more;                    /* the next one belongs to the same transaction */
	int origin;                   /* the server that owes the answer, -1: none */
	uint64_t op;
	enum effect_type request;
	bool exact;                   /* a set: only of that version */
	int32_t version;
	struct znode *node;
	struct zdata *data;
	struct zsession *session;
	struct zconn *conn;
};

struct zconn {
	LIST_ENTRY(zconn) link;       /* of its server while server_open */
	LIST_ENTRY(zconn) all;
	struct zserver *server;
	struct zhandle *handle;       /* NULL: the client closed it */
	struct zsession *session;
	bool server_open, established;
	struct pipe up, down;
	struct message *pending, **pending_tail; /* requests in order, from the first unanswered write on */
	struct message *watches;
};

struct zserver {
	struct fakezk *z;
	int index;
	bool up;
	bool cut;                     /* a former leader that does not know it yet */
	bool silent;                  /* accepts connections, then says nothing */
	unsigned int lacks;           /* ZK_LACKS_*: as servers that are not Apache's, or old ones */
	uint64_t applied;             /* transactions of the log */
	int64_t zxid;                 /* of the last one applied */
	int64_t life;                 /* counts restarts: what was timed for an older life is dropped */
	struct pipe to_leader, from_leader;
	LIST_HEAD(, zconn) conns;
	struct bytes touched;         /* struct zsession pointers since the last ping */
};

enum zk_by { ZK_BY_SESSION, ZK_BY_EXPIRY, ZK_BY_OPERATOR };

struct fakezk_hooks {
	void *ctx;
	void (*created)(void *ctx, struct znode *n);
	void (*deleted)(void *ctx, struct znode *n, enum zk_by cause);
	void (*expired)(void *ctx, struct zsession *s);
	void (*restored)(void *ctx);
};

struct fakezk {
	struct sched *sched;
	struct rng rng;
	struct fakezk_hooks hooks;
	int64_t tick;
	int64_t life;                 /* counts leaders: what was timed for an older one is dropped */
	int32_t first_sequence;       /* the first containers made count from here: they were used for long before */
	int used_containers;
	int64_t delay_max;            /* of a packet on a connection */
	int64_t lag_max;              /* of a commit on its way to a server */
	int64_t quorum_max;           /* of a proposal until a quorum has it; 0: at once */
	int64_t link_bytes_s;         /* the bandwidth of a new connection, in each direction; 0: without bound */
	int64_t refuses_until, refuses_reads_until; /* many writes, or reads, are refused until then, as by an access list */
	int64_t throttles_until;      /* a server is too busy for many requests until then */
	int64_t quota_until;          /* a quota of the root is used up until then: nothing is created there */
	int64_t refused_at;           /* a write, last; throttled ones, too */
	bool refused;                 /* anything was, not only throttled */
	int leader;                   /* -1: an election is going on */
	struct pipe proposals;        /* of the leader; during an election: those that the next one knows */
	int64_t led_at;               /* since when it leads */
	int64_t epoch, counter;
	bool lacking;                 /* servers may lack something */
	bool single;                  /* numbered as by a single server, which counts no leaders */
	struct { bool made; int64_t epoch, counter; } backup; /* what may be restored */
	struct txn *log;
	size_t log_count, log_cap;
	uint64_t log_base;            /* number of log[0] */
	struct zserver server[FAKEZK_SERVERS];
	LIST_HEAD(, zsession) sessions;
	LIST_HEAD(, zconn) conns;
	struct znode *buckets[FAKEZK_BUCKETS];
	size_t nodes;
};

enum zhandle_state { ZHANDLE_CLOSED, ZHANDLE_WAITING, ZHANDLE_CONNECTING, ZHANDLE_CONNECTED, ZHANDLE_DEAD };

/* The client library: one handle, one session at a time. Tells its owner by the events of core/port/event.h. */
struct zhandle {
	struct fakezk *z;
	enum zhandle_state state;
	int64_t timeout;
	struct zsession *session;
	struct zconn *conn;
	int server;                   /* to be tried next */
	uint64_t life;                /* counts connections */
	int64_t zxid, heard, said, asked; /* asked: when the handshake was sent */
	int64_t reachable_at;         /* no server can be reached before that instant */
	int64_t slow_handshake;       /* the next connection hears nothing for so long */
	struct message *open, **open_tail; /* operations without an answer, oldest first */
	int64_t resumed_at;           /* another process went on with the session, which it knows by name only; 0: none did */
	bool adapts;                  /* its owner is told what the server lacks, and is not given what cannot be believed */
	int doubtful;                 /* resumed: the server that does not know that session; -1: none */
	const int64_t *gate;          /* the process is stopped until then */
	uint32_t mute_suspended_percent; /* how often a loss is told by nothing but the answers */
	void (*notify)(void *owner, const struct event *e);
	void *owner;
};

/* fakezk_tree.c */
uint32_t fakezk_hash(struct slice path);
struct znode *fakezk_find(struct fakezk *z, struct slice path, int view);
struct zk_stat fakezk_stat(const struct znode *n, int view);
/* Checks a write against the truth, commits it when it can be, and says how it went. */
enum zk_code fakezk_write(struct fakezk *z, struct txn origin, struct slice path, struct slice data,
			  enum zk_create create, enum zk_by cause);
void fakezk_session_close(struct fakezk *z, struct zsession *s, struct txn origin, enum zk_by cause);
void fakezk_append(struct fakezk *z, struct txn t);
int64_t fakezk_zxid(const struct fakezk *z); /* of the latest transaction */
int64_t fakezk_zxid_next(struct fakezk *z);
/* All servers have applied everything: what was made after that transaction is gone, and nothing shows a later number. */
void fakezk_roll_back(struct fakezk *z, int64_t zxid);
/* Takes the next transaction (all its parts) into the server's view. */
void fakezk_apply(struct fakezk *z, struct zserver *s);
void fakezk_trim(struct fakezk *z);
void fakezk_tree_init(struct fakezk *z);
void fakezk_tree_free(struct fakezk *z);

/* fakezk_server.c */
void fakezk_init(struct fakezk *z, struct sched *sched, uint64_t seed, int64_t tick);
void fakezk_deinit(struct fakezk *z);
void fakezk_commit_to(struct fakezk *z, struct zserver *s);
void fakezk_applied(struct zserver *s, const struct txn *t);
void fakezk_received(void *conn, struct message *m);
void fakezk_touch(struct fakezk *z, struct zsession *s);
void fakezk_conn_close(struct zconn *c, bool lose_answers);
void fakezk_revalidated(struct zconn *c, bool valid);

/* fakezk_ensemble.c */
/* A session of somebody who is no part of the world: it lives without a connection. */
struct zsession *fakezk_session(struct fakezk *z, int64_t timeout);
/* Done at once and without a session: for an operator and the container reaper. */
enum zk_code fakezk_operate(struct fakezk *z, enum effect_type request, struct slice path, struct slice data);
/* One container that is empty and had a child goes away. */
void fakezk_reap(struct fakezk *z);
void fakezk_server_down(struct fakezk *z, struct zserver *s, int64_t down_for);
/* A new leader after `outage`; the old one is cut off for `cut_for` (0: it crashed). */
void fakezk_elect(struct fakezk *z, int64_t outage, int64_t cut_for);
void fakezk_link_delivered(void *server, struct message *m);
void fakezk_leader_delivered(void *server, struct message *m);
/*
 * A backup; and all servers are stopped for that long and restored from it: what was made since is gone, with the sessions
 * that were opened since. (What was deleted since does not come back.) False: not now.
 */
void fakezk_back_up(struct fakezk *z);
bool fakezk_restore(struct fakezk *z, int64_t outage);
/* All servers are stopped for that long, and the next leader's epoch is above that one. False: not now. */
bool fakezk_raise(struct fakezk *z, int64_t epoch, int64_t outage);
/* Ends every fault. */
void fakezk_heal(struct fakezk *z);

/* fakezk_handle.c */
struct zhandle *zhandle_new(struct fakezk *z, int64_t timeout, void (*notify)(void *, const struct event *),
			    void *owner, const int64_t *gate);
void zhandle_free(struct zhandle *h);
void zhandle_open(struct zhandle *h);
/* A handle that is closed, for a session that another process has left. */
void zhandle_resume(struct zhandle *h, int64_t session);
void zhandle_send(struct zhandle *h, const struct effect *e, struct slice path, struct slice data);
/* The connection ends, as the network or the caller wants; `lose` what was on its way up or down. */
void zhandle_drop(struct zhandle *h, bool lose_up);
void zhandle_close(struct zhandle *h, bool end_session);
void zhandle_received(void *conn, struct message *m);
/* Tells the owner what the server lacks, if any may lack something. */
void zhandle_tell_lacks(struct zhandle *h);
/* A connection stands still no more. */
void zconn_release(void *conn, uint64_t argument);
