/* SPDX-License-Identifier: Apache-2.0 */
/* A host in the simulator: its broker, the state that outlives the broker, its clients, and what others know of it. */
#pragma once

#include "caller.h"

/* What stands in the daemon's file of a session for which nobody speaks any more. */
struct saved {
	bool own;                          /* it was given up; else a dead process of the daemon left it */
	int64_t session, not_before;       /* of the host's clock */
	int64_t holder_dies[CLIENTS_MAX];  /* of the processes that its table names; 0: not named */
};

/* A process that was told of a grant, and of nothing since: its daemon is dead. */
struct belief {
	struct host *host;
	int lock;
	int64_t token, until;
	bool kept_out;           /* the next one knows it, and grants nothing against it */
	bool shared;             /* kept_out: readers may join it */
};

/* How the process of a host is to be killed. */
struct kill {
	bool armed;
	bool off;                /* it is handed over, which no kill meets */
	bool within;             /* the core; else between two effects */
	int skip;                /* events before that one; below 0: it has come */
	int stores;              /* until the ledger is as the next one finds it; 0: no such thing */
	bool stored;             /* it was reached */
	int64_t session, safe_until, saved_until; /* before the event */
};

/* A client whose connection was not kept: it holds what it held until its process has surely ended. */
struct ghost {
	bool on;
	int64_t until;
};

enum { LOAD_MAX = 4096 };

/* What a host has asked of ZooKeeper and has not been answered, on this connection. */
struct load {
	uint64_t first, end;     /* numbers of the open operations */
	uint64_t answering;      /* what is younger than the operation that the event answers begins here; 0: none */
	int64_t sent_at[LOAD_MAX];
	bool writes[LOAD_MAX];
	uint64_t answered_when_sent[LOAD_MAX]; /* of the same sort: reads or writes */
	int64_t answered_at;     /* the latest answer to one */
	uint64_t answered[2];    /* reads, and writes, ever */
	uint64_t most[2];        /* answered in time at once, on this connection: reads, and writes */
	int64_t handled_at;      /* the latest event */
	bool by_time;            /* the event is that time has passed, and the host did not stand still until then: */
	int looks;               /* reads without a watch that it has led to */
	bool wrote;              /* a create was sent in this event: what follows belongs to it */
	bool failed;             /* the event is an answer of unknown outcome: reason enough to drop the connection */
};

/* What a host has been told of who waits for a lock elsewhere. */
struct batch_seen {
	int64_t at, token; /* of the latest shared grant that was not together with one before; 0: nobody was told */
	int64_t latest;    /* of the latest one that needed nobody before it */
};

struct known {
	bool armed;              /* by a list with watch, and nothing has changed since; or so when the connection went */
	bool moved;              /* a znode of the host's own went since that list was asked for */
	bool others, writers;    /* the list showed contenders of other sessions; some that are no readers */
	uint64_t op;             /* the list with watch that is under way; 0: none */
	bool op_moved;           /* a znode of the host's own went since it was asked for */
	uint64_t made_at_step;   /* the latest znode of its own */
};

enum ballast_wait { BALLAST_OFF, BALLAST_WAITING, BALLAST_HOLDING };

/* A client of a host that does nothing but wait for the ballast. */
struct porter {
	bool on, asking;
	enum ballast_wait wait[BALLAST_MAX];
	int asked;               /* the name that the request under way is about; -1: none */
	int64_t drops;           /* connections that its broker gave up, so far */
};

/* Many locks that many others wait for: what a reconnection has to find out again, and the link takes its time. */
struct ballast {
	int names, contenders;   /* names 0: there is none */
	int64_t transfer_ns;     /* to list it all once */
	struct zsession *others; /* whose contenders stand before all hosts */
	bool still;              /* nothing is given back or asked for again */
	bool steady;             /* no fault, and time has passed since the last: whatever is proven stays so */
	int freed;               /* the latest that the others have let go; -1: none */
	int64_t freed_at;
};

struct host {
	struct world *w;
	int index;
	struct broker *broker;
	struct broker_conf conf;     /* that in use */
	struct broker_conf told[2];  /* what its broker has, and what it had before */
	int turn;
	struct broker_conf loosest;  /* of all it ever had, what allows most of what is checked */
	int64_t least_try_ns;
	struct broker_limits limits; /* as they were chosen first */
	char name[16];
	int64_t offset;          /* of its clock */
	bool loses_one;          /* in the event in which a client goes, or begins to */
	int64_t stopped_until;   /* SIGSTOP */
	bool stopping;
	bool opening; /* a session, in this instant: the old handle is not heard */
	struct zhandle *zk;
	struct effects effects;
	int64_t timer_at;
	uint64_t timer_life, life, order;
	int64_t idle_wakes, woke_at;
	int64_t session, safe_until; /* the session, and how far it was ever proven; 0: not yet */
	int64_t saved_until;     /* the last instant that a holder can have been told under that session */
	bool holds[CLIENTS_MAX + 1]; /* the table of holders, by connection */
	struct saved saved[SAVED_MAX]; /* sessions of earlier lives, the oldest first */
	int saved_count;
	int64_t given_up, given_up_at, given_up_told; /* the last session it gave up that lived then; 0: none */
	int64_t began_at;        /* its process */
	bool answered;           /* its event is an answer of ZooKeeper */
	int64_t dies_writing_until; /* until then its process dies by the next write of its own znode */
	int64_t mail_refused_at;    /* it could not read or write its mailbox; 0: never */
	bool file_lost;             /* the next process does not know what this one leaves */
	struct broker_former formers[SAVED_MAX];
	int64_t tokens;          /* standalone: reserved below */
	struct tokens tokens_of[LOCKS_MAX]; /* standalone: its own order */
	struct used used[LOCKS_MAX][USED_MAX]; /* the latest */
	uint64_t read_at_step[LOCKS_MAX]; /* of its last shared grant */
	struct batch_seen batch[LOCKS_MAX];
	int64_t wanted_at[LOCKS_MAX]; /* when a client last held or waited for it */
	int64_t moved_at[LOCKS_MAX];  /* when a grant was last made or ended */
	bool looks;    /* the event only reads; */
	int delegated; /* ... delegations before the event */
	int64_t busy_at[LOCKS_MAX], crowded_at[LOCKS_MAX]; /* when one, or two, last held it or asked for it (tries.c) */
	struct caller clients[CLIENTS_MAX + 1]; /* with the auditor */
	int client_count;
	struct load load;
	uint64_t front_order[LOCKS_MAX]; /* of the request that is to be served first, as it was looked at */
	int64_t front_at[LOCKS_MAX];     /* since when */
	struct known known[LOCKS_MAX], known_before[LOCKS_MAX]; /* now, and before the event */
	bool hears;              /* of changes: it is connected, as far as it was told */
	struct porter porter;
	struct ledger *ledger;   /* NULL: none is kept */
	char *memory, *memory_then; /* its memory; as it was when the process was killed within the core */
	size_t memory_bytes;
	struct kill kill;
	bool dying;              /* it was killed in this instant: nothing is carried out any longer */
	bool crashed;            /* it was killed, and the next process goes on soon */
	int64_t frozen_until;    /* what was proven then */
	bool kept[CLIENTS_MAX + 1]; /* connections of the killed process that the next one has */
	struct ghost ghosts[CLIENTS_MAX + 1];
	struct session_page session_page;
	char page_id[SESSION_PAGE_ID_CHARS + 1];
	int page_number;
	int64_t seen;            /* the highest number of a transaction that it was answered (restores.c) */
	int64_t own;             /* that of the latest write of its own znode */
	bool undone;             /* the restored servers have that znode as it was before that write */
	int restores_met;        /* restores before its latest write that was answered */
	int64_t wrote_at;        /* when that was */
	bool unaware;            /* it cannot know that an older state was restored */
	int64_t excused;         /* nor that znodes numbered so far have no good tokens */
	bool permits_vague;      /* an operator deleted a permit of it: what its clients have is known to the broker only */
};
