/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planned hand-over: the side of the old process, then the side of the new process. The new process runs the program
 * that is installed by now. It is started and prepares itself while this one serves, and everything that can fail
 * without harm fails then. There is one commit point:
 *
 *     old                                         new
 *     serves                                      reads the configuration, looks up names
 *       \---- its identity (identity.h) ------->
 *       <------------------------------ READY ----
 *     freezes: the connection to ZooKeeper ends,
 *     without a farewell; snapshot
 *       \---- everything, all descriptors ----->  checks it all; reads, writes, sends nothing
 *       <----------------------------- ACCEPT ----
 *       \---- COMMIT -------------------------->  serves
 *     never serves again, exits
 *
 *   state   | means                                        | left by
 *   IDLE    | nothing is under way                         | asked for -> WARMING; refused at once
 *   WARMING | the new process prepares itself              | READY -> READY; refusal, 10 s -> failed; its end -> ENDING
 *   ENDING  | it has closed its end of the channel         | its status, or killed after 1 s -> failed
 *   READY   | it waits for everything                      | the turn is settled -> frozen; its end, 10 s -> failed
 *   frozen  | nobody is served, and the loop waits         | ACCEPT in time, and no signal to stop -> committed
 *           |                                              | anything else -> failed
 *
 * "Failed" kills the new process and waits for its end, so that there is never a second one that might serve; only then
 * this one goes on, and says why. From the freeze to COMMIT it takes at most a twelfth of the session timeout and two
 * seconds. A failure of the new process after COMMIT is its own: this process exits all the same. The new process exits
 * when it sees the end of the channel before it sees COMMIT.
 *
 * The supervisor of this process sees it end. So it refuses if it cannot give a supervisor the number of the next
 * process, unless there is a keeper: the keeper stays.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct identity;
struct takeover;
struct watch_base;
struct conf;
struct feed;
struct handover;
struct keeper;
struct listener;
struct page;
struct parcel;
struct program;
struct saved;
struct secret;
struct server;
struct tokens;
struct zookeeper;

/* All parts that are handed over. They must outlive the hand-over. */
struct handover_parts {
	const struct program *program;
	const struct conf *conf;
	const struct secret *secret; /* NULL: there is none */
	struct feed *feed;
	struct server *server;
	const struct listener *listener, *operators;
	const struct page *page;
	int pid_fd;
	struct keeper *keeper;       /* NULL: there is none */
	bool standalone;
	bool followed;               /* the supervisor of this process gets the number of the next one */
	struct saved *saved;
	const struct tokens *tokens; /* NULL unless standalone */
	struct zookeeper *zookeeper; /* NULL when standalone */
};

struct handover *handover_new(const struct handover_parts *parts);
/* Ends a new process that has not taken over. Takes NULL. */
void handover_free(struct handover *h);
/* Effect, or a signal: EVENT_RESTART_OVER follows if it fails. If one is under way already, nothing begins. */
void handover_ask(struct handover *h);
/* The daemon stops: a hand-over that is under way fails. */
void handover_stop(struct handover *h);
/* If one is under way, or was asked for, it fails. */
void handover_cancel(struct handover *h, const char *why);
/* The configuration was read again: a new process that has read the one before does so when it has taken over. */
void handover_reread(struct handover *h);
/* To be called when a turn settles: tells the broker what failed. */
void handover_settle(struct handover *h);
/* The new process is: it takes over when the turn is settled. */
bool handover_is_ready(const struct handover *h);
/*
 * When the turn is settled: hands over if the new process is ready. True: it has taken over, and this one must do nothing
 * but exit, by handover_exit().
 */
bool handover_due(struct handover *h);
/*
 * Everything as a parcel, for the process that takes over later. Nobody is served until this process does so itself; it
 * must not, if somebody else may. False: not yet; to be tried again when the next turn is settled.
 */
bool handover_freeze(struct handover *h, struct parcel *ret);
/* That parcel is where it will be found: from now on this process must do nothing but exit. */
void handover_finish(struct handover *h);
/* The process that has taken over; 0: none has. */
pid_t handover_successor(const struct handover *h);
/* Passes on signals that came too late for this process, and exits. */
void handover_exit(struct handover *h) __attribute__((noreturn));

/*
 * The side of the new process. Until COMMIT has come, this process touches nothing
 * that it is given: it may be killed at any time, and the old one goes on.
 */
struct takeover_calls {
	/* Once, when the old process has exited. */
	void (*over)(void *arg);
	/* After that, for each signal that came when it had committed. */
	void (*passed)(void *arg, int number, pid_t sender);
	void *arg;
};

/* NULL: no process hands over to this process, which is started as usual. To be called first. */
struct takeover *takeover_new(void);
/* Takes NULL. */
void takeover_free(struct takeover *t);
/* Why this process will not take over: it is to exit now. `t` NULL: there is nobody to notify. */
void takeover_refuse(struct takeover *t, const char *sentence);
/* True: this process is of that daemon. Otherwise it has refused. */
bool takeover_meet(struct takeover *t, const struct identity *self);
/* Prepared: waits for everything. NULL: this process has refused, or the old one goes on. */
struct parcel *takeover_receive(struct takeover *t);
/* All is checked: waits for COMMIT. False: the old process goes on. */
bool takeover_accept(struct takeover *t);
/* After COMMIT, when this process serves. */
void takeover_watch(struct takeover *t, struct watch_base *base, const struct takeover_calls *calls);
