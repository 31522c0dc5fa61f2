/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: hosts with a broker and clients each, foreign contenders, an operator, one ensemble, all from one seed.
 *
 * The model of what clients hold comes from what the brokers tell them, and from what they see themselves (the end of
 * safe_until, an expiry). checks.c compares that with the truth of the ensemble after every step.
 */
#pragma once

#include "host.h"

#include <setjmp.h>

#define FAULTS(X) \
	X(RESET) X(STALL) X(SILENT) X(LINK) X(TRICKLE) X(CUT) X(ELECTION) X(RESTART) X(FREEZE) X(KILL) X(STOP) X(ISOLATE) \
	X(HANDSHAKE) X(REFUSE) X(PACKET) X(EVICT) X(LATE) X(THROTTLE) X(QUOTA) X(SERVERS)

enum fault {
#define X(name) FAULT_##name,
	FAULTS(X)
#undef X
	FAULT_COUNT
};

/* A kind of weather. Weights are relative. */
struct mix {
	const char *name;
	uint32_t share;                 /* of the seeds */
	bool standalone;
	int64_t fault_every_ms;         /* mean; 0: none */
	uint32_t fault_weight[FAULT_COUNT];
	int64_t operator_every_ms, foreign_every_ms, orphan_every_ms; /* mean; 0: none */
	int64_t operator_from;          /* acts only after so many hand-offs on one znode, or where one without tokens stands */
	bool warm;                      /* claims are kept for a while, and half of the hosts never give one back for others */
	uint32_t long_hold_percent;
	int64_t hold_us;                /* at most, if not long; 0: the usual */
	int64_t think_ms;               /* mean between two acts of a client */
	uint32_t plain_percent;         /* of the runs: LOCK and UNLOCK only */
	uint32_t shared_percent;        /* of what is asked for; 0: the usual */
	uint32_t tries_percent;         /* the same */
	uint32_t demands_percent;       /* the same, of REVOKE and FORCEUNLOCK */
	bool near_wrap;
	bool old_servers;               /* they lack what servers that are not Apache's do, each for a while */
	bool permits;                   /* half of the clients ask for nothing but permits */
	bool loaded;                    /* there is ballast (ballast.c), and a link that it fills */
	int64_t reload_every_ms;        /* mean; 0: the configuration stays (reloads.c) */
	bool delegations;               /* clients have pages (delegations.c) */
	bool anything;                  /* clients that ask for whatever can be asked (anything.h) are all there is */
	bool kinds;                     /* the same, and they ask for two names as everything that a name can be */
	bool latch;                     /* ... and for a latch (latch.h) */
	int64_t snapshot_every_ms;      /* mean; 0: only a part of the seeds takes any */
	int64_t restore_every_ms;       /* mean, of backups and restores of an older state; 0: none (restores.c) */
	int64_t kill_every_ms;          /* the same, of processes that are killed, and others that go on from their ledgers */
	uint64_t steps;                 /* 0: the usual number */
	int hosts_max, locks_max;       /* 0: as many as there can be */
};

struct foreign {
	struct world *w;
	int index, lock, state;
	struct zhandle *zk;
	bool connected, reader, holds;
	uint64_t op, waits_for, life;
	char uuid[48], name[80];
};

enum guest_state { GUEST_IDLE, GUEST_MAKING, GUEST_JOINING, GUEST_QUEUED, GUEST_LEASING, GUEST_WAITING, GUEST_PASSING,
		   GUEST_HOLDING };

/* A contender for permits that is no broker. */
struct guest {
	struct world *w;
	enum guest_state state;
	struct zhandle *zk;
	bool connected;
	uint64_t op, life, made;
	char mutex[128], lease[128];
};

struct tally {
	uint64_t seeds, steps, grants, handoffs, losses, reentries, requests, expiries, foreign_grants, operations;
	uint64_t leaders_told, permits, followed, joined;
	uint64_t held_told, queued, queued_grants, cancels, timeouts, failures, leases_ended, renewals, deadlocks, scans;
	uint64_t several, several_granted, long_waits;
	uint64_t forced, force_deleted, faults[FAULT_COUNT];
	uint64_t snapshots, kills, restores;
	uint64_t delegated, taken, read_again, left; /* by words; read_again: takes of shared ones; left: releases of any */
	uint64_t looked;                 /* correct answers about a delegated lock that is held */
	const char *snapshot_file; /* keeps the one with the most kinds of entries; NULL: none is kept */
	size_t snapshot_score;
	int64_t counter_max;     /* hand-offs on one znode */
	int64_t margin_permille; /* least time from safe_until to the expiry, of T */
};

struct world {
	uint64_t seed;
	const struct mix *mix;
	struct rng rng;
	struct sched sched;
	struct fakezk zk;
	struct host hosts[HOSTS_MAX];
	int host_count, lock_count, foreign_count;
	struct foreign foreign[FOREIGN_MAX];
	const char *lock_name[LOCKS_MAX];
	enum flavour lock_flavour[LOCKS_MAX];
	bool election[LOCKS_MAX];
	int64_t leader[LOCKS_MAX], leader_since[LOCKS_MAX]; /* in the truth, as it was looked at */
	char lock_path[LOCKS_MAX][64];
	size_t lock_path_len[LOCKS_MAX];
	int64_t timeout, tick;
	struct { struct rng rng; int64_t every_ms; } snapshots; /* mean; 0: none */
	struct { struct rng rng; int64_t every_ms; bool narrow; } kills; /* likewise; narrow: little memory for ledgers */
	/* given: the highest number that was; advised: the one that logs name; raised: before the restored servers started */
	struct { struct rng rng; int count; bool raised; int64_t given, advised, at, raised_at; } restores;
	int64_t slow_ns;         /* how much later things may happen because of the link */
	int64_t fault_every_ms;  /* mean; 0: none */
	struct guest guest;
	struct ballast ballast;
	struct any *any;         /* of the mixes "anything" only */
	int64_t permits_limit;   /* of the semaphore, when it is new; 0: this world has none */
	int64_t permits_most;    /* ... and the largest that an operator may have set */
	bool limits_asked;       /* one has tried */
	int64_t overwritten[OVERWRITTEN_MAX]; /* znodes whose data an operator has, the latest */
	size_t overwritten_count;
	bool limit_overwritten;  /* an operator has: for a while nobody knows it */
	uint64_t permit_forces;  /* times FORCEUNLOCK of it was asked for */
	bool plain;              /* no leases, no queued waits */
	bool owners;             /* clients often say whose they are */
	bool quiet;              /* faults have stopped; clients finish */
	bool leaving;            /* clients hang up */
	bool leaps;              /* now and then nobody acts for so long that sessions expire */
	int64_t leap_until;      /* processes end once in a leap at most, however long it is */
	int64_t last_fault, quiet_at;
	int64_t operator_from;
	int64_t deleted_at[LOCKS_MAX]; /* when a znode of it went away */
	int64_t taken_at[LOCKS_MAX];   /* the same, by an operator */
	int64_t strange_at[LOCKS_MAX]; /* when one went that is of no host */
	struct tokens tokens_of[LOCKS_MAX];
	struct contended contended[LOCKS_MAX];
	struct meddled meddled[MEDDLED_MAX];
	size_t meddled_count;
	uint64_t forces[LOCKS_MAX];     /* times FORCEUNLOCK was asked for */
	int64_t forced[FORCED_MAX];     /* znodes that are being deleted for it, the latest */
	size_t forced_count;
	char letters[FORCED_MAX][64];   /* by which locks were taken, the latest */
	size_t outbox_count;
	int64_t mail_meddled_at;        /* an operator deleted a mailbox, or put something into it */
	struct belief belief[BELIEFS_MAX];
	size_t belief_count;
	int64_t replaced[REPLACED_MAX]; /* znodes in whose place somebody put others of the same name, the latest */
	size_t replaced_count;
	uint64_t check_every, stray_count;
	bool tracing, trace_all;
	struct trace *trace;
	struct tally *stats;
	jmp_buf failed;
	char failure[512];
};

/* world.c */
/* `mix` is the name of the weather wanted; NULL: the seed chooses. */
void world_init(struct world *w, uint64_t seed, const char *mix, struct tally *stats);
bool world_has_mix(const char *name);
void world_mixes(bool other); /* prints their names; `other`: of those without a share of all seeds */
/* Runs to the end; leaves by w->failed when an invariant is broken. */
void world_run(struct world *w);
/* Runs, a world of a mix "anything", until nothing is left of what was chosen (rng.h); then all hang up. Likewise. */
void world_run_chosen(struct world *w);
void world_deinit(struct world *w);
/* The lock whose directory that is; -1. */
int world_lock_of(const struct world *w, const char *path, size_t len);
void world_fail(struct world *w, int lock, const char *format, ...) __attribute__((format(printf, 3, 4), noreturn));

/* host.c */
void host_start(struct host *h);
/* The process ends; its sockets close. The session ends at once when told so, else lives on. */
void host_die(struct host *h, bool end_session);
void host_handle(struct host *h, const struct event *e);
void host_zk_notified(void *host, const struct event *e);
void host_free(struct host *h);
/* Another process of it has a broker: what its adapter knows begins again. */
void host_goes_on(struct host *h);
int64_t host_now(const struct host *h);
/* The numbers of its connections are below this. */
uint32_t host_conns(const struct host *h);
/* For how long its grants are proven; 0: they are not. */
int64_t host_proven_ns(const struct host *h);

/* saved.c: what a host's daemon leaves to the next one, and what that one does with it */
/* The process is about to end. */
void saved_leave(struct host *h);
/* The process was killed, and its session cannot be continued: nothing is held under it any longer. */
void saved_leave_session(struct host *h);
/* A process begins: fills in what the configuration says of formers. */
void saved_begin(struct host *h);
/* The same, of one that goes on from a ledger. */
void saved_formers(struct host *h);
void saved_end(struct host *h, int64_t session);
void saved_holder(struct host *h, uint32_t conn, bool holds);
/* The present session is one of those that are left, from now on. */
void saved_add(struct host *h, int64_t session);
/* The broker wants another session than the one it has. */
void saved_given_up(struct host *h);
/* Nothing that could be reached keeps a session that was given up alive. */
void saved_check_given_up(struct host *h);

/* caller.c */
void caller_init(struct caller *c, struct host *h, uint32_t conn);
/* It comes through the operators' socket. */
static inline bool caller_is_operator(const struct caller *c)
{
	return c->conn % 2 == 0 || c->auditor;
}

void caller_begin(struct caller *c);
void caller_replied(struct caller *c, struct slice reply);
/* It holds nothing any more, by what it asked for or because it is gone. */
void caller_let_go(struct caller *c);
/* The broker wants the connection closed. */
void caller_close(struct caller *c);
/* The process at the other end is gone. */
void caller_cut(struct caller *c);
void caller_hang_up(struct caller *c);
void caller_ask_next(struct caller *c);

/* asks.c: what a client asks for */
struct ask ask_choose(struct caller *c);
/* Up to ASK_WORDS words; numbers are written to `buffer`, of ASK_BYTES. */
size_t ask_words(const struct caller *c, const struct ask *a, struct slice *words, char *buffer);
struct slice ask_put_number(char **at, int64_t value);
/* Whether what a LOCK or UNLOCK of it would be answered is known. */
bool ask_may_touch(const struct caller *c, int lock);
/* No deadlock may stay. */
bool ask_is_watched(const struct host *h);

/* answers.c: what the answers mean for the model of what it holds */
void answer_taken(struct caller *c, const struct ask *a, struct slice reply);
bool answer_begins(struct slice reply, const char *text);
void answer_bad(struct caller *c, const struct ask *a, struct slice reply, const char *why);
/* Whether the model knows for certain that the grant was not lost unseen: it does not. */
bool holding_unsure(const struct holding *g);
/* What a grant made now is. */
struct holding holding_granted(const struct caller *c, const struct ask *a, int64_t token);
/* -HELD: of a->lock. */
void held_answered(struct caller *c, const struct ask *a, struct slice reply);
/* A level more. */
void holding_reentered(struct caller *c, const struct ask *a);

/* elections.c */
void elections_init(struct world *w);
void elections_start(struct world *w);
/* What is asked of an election instead. */
struct ask elections_turn(struct caller *c, struct ask a);
/* LOCK, ENQUEUE and UNLOCK, as one has them. */
size_t elections_words(const struct caller *c, const struct ask *a, struct slice *words, char *buffer);
void elections_check_told(struct caller *c, int lock, int64_t token);
void elections_resigned(struct caller *c, const struct ask *a, int64_t answer);
void elections_answered(struct caller *c, const struct ask *a, struct slice reply);
void elections_told(struct caller *c, int lock, int64_t token, struct slice host, struct slice data);

/* told.c: what a client is told by events */
void told_pushed(struct caller *c, struct slice push);
/* Of a grant made, or entered again, that is read later: it may be lost by then, and its lease is not known. */
void told_late(struct holding *g);
/* The answer of EVENTS. */
void told_event(struct caller *c, struct slice reply);

/* checks.c */
void check_grant(struct caller *c, const struct ask *a, int64_t token);
/* Another grant of it may have been made, and nobody was told. */
bool check_granted_unseen(const struct host *h, int lock);
bool check_is_together(const struct host *h, const struct ask *a, int64_t token);
/* Its own word is about to give it the lock again. */
void check_nobody_waits(const struct caller *c, int lock, int64_t token);
/* It did. */
void check_taken(struct caller *c, const struct ask *a, int64_t token);
/* A foreign contender, whose znode that is, takes the lock as its own. */
void check_foreign_grant(struct world *w, int lock, const char *path);
void check_before(struct host *h, const struct event *e);
void check_after(struct host *h);
void check_created(void *world, struct znode *n);
void check_deleted(void *world, struct znode *n, enum zk_by cause);
void check_expired(void *world, struct zsession *s);
void check_end(struct world *w);
/* It has asked for the end of all that it has, which may take a while, and relies on nothing any longer. */
bool check_resetting(const struct caller *c);
/* Is it inside what its broker can prove? */
bool check_grant_valid(const struct caller *c, int lock);
/* A grant may have been made since that was not seen: who reads next joins nobody known. */
void check_forget_last(struct host *h, int lock);
/* What the client waits for that lock with; NULL: it does not, or its end may be known to it only later. */
const struct ask *check_waiting_ask(const struct caller *c, int lock);

/* An operator has overwritten what stands in the znode of that token. */
bool elections_overwritten(const struct world *w, int64_t token);

/* scan.c: the answer of LOCKS ... ALL. */
void scan_check(struct caller *c, const struct ask *a, struct slice reply);

/* clutter.c */
void clutter_start(struct world *w);
/* AUDIT says that nothing is left. */
void check_audited(struct caller *c, const struct ask *a);

/* entitled.c: what entitles to grants, in the truth */
/* A token that a client has read. */
void entitled_granted(struct host *h, int lock, int64_t token);
/* The znode under the grant, in the truth; fails if it does not entitle to one. */
void check_entitled(struct caller *c, const struct ask *a, int64_t token);
/* A znode that was followed without a gap stands in that directory. */
bool entitled_followed(const struct world *w, const struct znode *dir);
/* An operator deletes it. */
void entitled_meddle(struct world *w, const struct znode *n);
/* Grants on its znode are the exception: an operator has deleted it. */
bool check_is_meddled(const struct world *w, int64_t token);
bool check_is_reader(const struct znode *n);
/* A contender in the truth that keeps `n` from being entitled; NULL. */
const struct znode *check_ahead_of(const struct world *w, const struct znode *n);

/* cmd_semaphore.c: a semaphore, and those who share it */
void permits_init(struct world *w);
/* Something about it, instead of something about a lock. */
bool permits_turn(struct caller *c);
/* What is void without being told: with the session; with its lease. */
void permits_void(struct caller *c);
void permits_end_due(struct caller *c);
bool permits_valid(const struct caller *c);
/* Its permits were taken by force: what the broker logs of it. */
void permits_forced(struct host *h, struct slice text);
/* Who is told by pushes knows of a loss, and the timer comes in time. */
void permits_check_told(struct caller *c);
/* An operator who deletes, and makes what nobody knows. */
void permits_start(struct world *w);
struct ask permits_ask(struct caller *c);
size_t permits_words(const struct caller *c, const struct ask *a, struct slice *words, char *buffer);
void permits_answered(struct caller *c, const struct ask *a, struct slice reply);
/* Their loss is told by an event; false: that is no name of the semaphore. */
bool permits_told_lost(struct caller *c, struct slice name, struct slice reason, bool pushed);
/* Something goes away in the truth. */
void permits_check_deleted(struct world *w, const struct znode *n, enum zk_by cause);
void permits_check_end(struct world *w);
/* It has just taken a permit. */
void permits_check_guest(struct world *w);
/* permits_foreign.c */
void permits_guest_start(struct world *w);
bool permits_guest_holds(const struct guest *g);

/* known.c: what a host was told of who waits elsewhere */
void known_forget(struct host *h);
void known_event(struct host *h, const struct event *e);
void known_effect(struct host *h, const struct effect *e, struct slice path);
/* A reader is granted: past nobody who is known, or may be, to wait elsewhere. */
void known_check_reader(struct caller *c, const struct ask *a, int64_t token);
/* Nobody keeps a reader from joining those who read by that token. */
bool known_open(struct host *h, int lock, int64_t token);

/* readers.c: nobody waits who need not, as far as modes are concerned */
void readers_start(struct world *w);
/* Queued readers at the front get it together. */
void readers_check_together(struct host *h);
/* shares.c */
void shares_check(struct host *h);

/* tries.c: what a try is told */
void tries_start(struct world *w);
/* Something is about to happen to it. */
void tries_before(struct host *h);
void tries_deleted(struct world *w, int lock, const struct znode *n);
/* Nil: the lock is taken. */
void tries_answered(struct caller *c, const struct ask *a);
/* Its data say that it is held. */
bool tries_says_held(const struct znode *n);
/* Its name says that only tries want it. */
bool tries_is_one(const struct world *w, int lock, const struct znode *n);

/* several.c: MLOCK and MUNLOCK */
/* Makes one of an ask for a lock; false: not now. */
bool several_choose(struct caller *c, struct ask *a);
bool several_choose_unlock(struct caller *c, struct ask *a);
size_t several_words(const struct world *w, const struct ask *a, struct slice *words, char **buffer);
void several_answered(struct caller *c, const struct ask *a, struct slice reply);
/* It is under way, with that lock among others: what it has of it nobody knows. */
bool several_asked(const struct caller *c, int lock);
bool several_asked_by_any(const struct host *h, int lock);
/* What was taken on the way is gone, or known. */
void several_forget(struct caller *c, const struct ask *a);
/* The model says that the client holds and waits for nothing: so does the broker. */
void several_check_left(const struct host *h);
/* Of a grant that was made some time before it is told. */
void check_late_grant(struct caller *c, const struct ask *a, int64_t token);

/* deadlocks.c */
/* A LOCK was refused because it would close a cycle. */
void deadlock_answered(struct caller *c, const struct ask *a, struct slice reply);
/* CLIENT SETINFO OWNER */
void deadlock_owner_answered(struct caller *c, const struct ask *a, struct slice reply);
/* Nobody waits for itself. */
void deadlock_check(struct host *h);

/* load.c: what is open, and when its server is silent */
void load_sent(struct host *h, const struct effect *e, struct slice path);
void load_dropped(struct host *h);
void load_opened(struct host *h);
void load_before(struct host *h, const struct event *e);
void load_after(struct host *h, const struct event *e);

/* The host whose present session that is; NULL: a foreign contender's, or one that a host has left behind. */
struct host *check_host_of(struct world *w, const struct zsession *s);

/* forced.c: locks taken by force */
/* What a broker logs. */
void check_logged(struct host *h, struct slice text);

/* restores.c */
void restores_init(struct world *w);
void restores_start(struct world *w);
void restores_begin(struct host *h);
void restores_done(void *world);
void restores_expired(struct world *w, const struct zsession *s);
/* What a host is answered: the highest number of its stat, and that of the latest write of the host's own znode. 0: none. */
struct restores_answer { int64_t number, own; bool write; };
struct restores_answer restores_answer(const struct host *h, const struct event *e);
void restores_answered(struct host *h, const struct restores_answer *a);
bool restores_excuse(const struct host *h, int64_t token);
void restores_logged(struct host *h, struct slice text);
/* Something is answered to it. */
void forced_answered(struct host *h, const struct event *e);
/* The broker has handled an event, and nothing of it is carried out. */
void forced_handled(struct host *h);
/* It was granted that lock, or permits, while others lost it. */
bool forced_spared(const struct caller *c, struct slice name);
/* Its deletion is on its way, in place of its daemon. */
bool check_is_forced(const struct world *w, const struct znode *n);

/* faults.c */
/* snapshots.c: hosts go on in another process. */
void snapshots_init(struct world *w);
void snapshots_start(struct world *w);

/* kills.c: hosts go on from the ledger of a process that was killed. */
void kills_init(struct world *w);
void kills_start(struct world *w);
/* The host has another broker: it keeps a ledger from now on. */
void kills_record(struct host *h);
void kills_free(struct host *h);
/* An event comes; how many of its effects are carried out. */
void kills_before(struct host *h, const struct event *e);
size_t kills_carried(struct host *h);
void kills_check_told(struct host *h);
void kills_check_grant(struct world *w, const struct host *h, int lock, int64_t token);

/* ghosts.c: connections that a kill has cut */
/* This connection is cut: until which instant its process may rely on its grants. */
void ghost_leave(struct host *h, uint32_t conn);
/* The effect is for a ghost, and goes nowhere. */
bool ghost_takes(struct host *h, const struct effect *e);
/* Another broker goes on: connections that it knows and that were not kept are ghosts. */
void ghosts_find(struct host *h);
/* What a process without a connection held of that lock, or of all (-1), is not its own any longer. */
void ghosts_forget(struct host *h, int lock);

void faults_start(struct world *w);
unsigned int servers_lack(struct world *w); /* ZK_LACKS_*: what a server that is put in place lacks */
void faults_stop(struct world *w);
/* A host sends a write. */
void faults_written(struct host *h, struct slice path);

/* foreign.c */
/* A znode under the session of a host that its broker never made. */
bool stray_is(const struct znode *n);
void foreign_start(struct world *w);
void foreign_free(struct world *w);
bool foreign_idle(const struct world *w);

/* delegations.c: what clients take and leave by a word in memory */
/* The adapter makes a page for it. */
void delegations_make(struct host *h, uint32_t conn);
/* Another process has the connections, with their pages; before its first event. */
void delegations_resume(struct host *h);
/* What is proven is written to the session page; or another page takes its place. */
void delegations_page(struct host *h, bool another);
/* It has no connection any longer. */
void delegations_forget(struct caller *c);
/* A LOCK is answered, and the grant is in the model. */
void delegations_granted(struct caller *c, const struct ask *a);
bool delegations_may_lose(const struct caller *c, int lock);
/* True: the answer to an UNLOCK of what it took and did not enter. */
bool delegations_returned(struct caller *c, const struct ask *a, struct slice reply);
/* Its broker may have a grant for it, though it does not hold it. */
bool delegations_keep(const struct caller *c, int lock);
/* It is between taking and entering. */
bool delegations_busy(const struct caller *c);
/* True: it does what it wants without a message. Else *a is what it asks. */
bool delegations_turn(struct caller *c, struct ask *a);

/* delegations_seen.c: what other clients see of delegations */
void delegations_look_begins(struct host *h, const struct event *e);
void delegations_look_ends(struct host *h, const struct event *e);
/* HOLDERS or WHY was answered. */
void delegations_told(struct caller *c, const struct ask *a, struct slice reply);

/* reloads.c */
void reloads_begin(struct host *h);
void reloads_start(struct world *w);
/* What stands in its conf counts from now on. */
void reloads_tell(struct host *h);
/* The configuration of the process that a hand-over goes to: perhaps another one than that of the process before it. */
const struct broker_conf *reloads_read(struct host *h);
/* From now on every host has the limits that it began with. */
void reloads_stop(struct world *w);

/* ballast.c */
void ballast_init(struct world *w);
void ballast_start(struct world *w);
/* All faults are over and everybody was served: a cut, a lock that becomes free, a while of nothing, and the end. */
void ballast_converge(struct world *w);
void ballast_replied(struct host *h, struct slice reply);
void ballast_pushed(struct host *h, struct slice push);
void ballast_cut(struct host *h);
void ballast_checked(struct host *h);

/* anything.c */
void any_init(struct world *w);
void any_start(struct world *w);
/* All clients are gone at once, but those of processes that stand still. */
void any_hang_up(struct world *w);
void any_free(struct world *w);
/* The broker has something for one of its clients. */
void any_effect(struct host *h, const struct effect *e, struct slice text);
/* Its process has ended. */
void any_cut(struct host *h);
void any_cut_one(struct host *h, uint32_t conn);
/* Another one has gone on. */
void any_revived(struct host *h);
/* Another process has the clients: their groups are not known yet. */
void any_rules_restored(struct host *h);
void any_deleted(struct world *w, const struct znode *n);
/* anything_checks.c */
void any_logged(struct host *h, const struct effect *e, struct slice text);
void any_held(struct host *h, const struct effect *e);
/* A host makes a znode. */
void any_created(struct host *h, const struct effect *e, struct slice path, struct slice data);
/* After each event of that host. */
void any_check(struct host *h);
/* When all have hung up. */
void any_check_end(struct world *w);

/* trace.c */
void trace_line(struct world *w, int lock, const char *format, ...) __attribute__((format(printf, 3, 4)));
void trace_event(struct host *h, const struct event *e);
void trace_effect(struct host *h, const struct effect *e);
void trace_print(struct world *w, int lock);
struct trace *trace_new(void);

#define TRACE(w, lock, ...) \
	do { \
		if ((w)->tracing) \
			trace_line(w, lock, __VA_ARGS__); \
	} while (0)
