/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's end of its channel to the keeper (daemon/keeper/): the process that started it, that holds copies of
 * descriptors for the next worker if this worker is killed, and that passes on the signals of the service. Messages:
 * keeper_message.h. A hand-over hands this end over with everything else; the next process reads the messages that wait
 * in it.
 *
 * The keeper's end is this process's: it exits at once, as if it were killed.
 *
 * All functions take NULL, which means that there is no keeper (daemon.keeper = 0), and then do nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/base/keeper_message.h"

/* The number of our end is here in the environment. */
#define KEEPER_VARIABLE "LOCKBROKERD_KEEPER"

/* Ids that are none of a connection. The ids of connections are never used twice, so they are SO_COOKIE's. */
#define KEEPER_LISTENER (KEEPER_ROLE | 1)
#define KEEPER_LISTENER_LOCK (KEEPER_ROLE | 2)
#define KEEPER_PIDFILE (KEEPER_ROLE | 3)
#define KEEPER_CONF (KEEPER_ROLE | 5)
#define KEEPER_OPERATORS (KEEPER_ROLE | 6)
#define KEEPER_OPERATORS_LOCK (KEEPER_ROLE | 7)
#define KEEPER_SECRET (KEEPER_ROLE | 8)
#define KEEPER_ROLES_MAX 8
/* With the id of a connection: the page that is shared with its process. */
#define KEEPER_PAGE (UINT64_C(1) << 62)

struct keeper;
struct parcel;
struct watch_base;

/* The keeper's copies of descriptors of the earlier worker. */
struct keeper_copy {
	uint64_t id;
	int fd; /* this process's; -1: taken */
};

struct keeper_past {
	struct keeper_copy *kept;
	size_t count;
	unsigned int crashes; /* within a minute; KEEPER_CRASHES_ANEW: no state of earlier workers is to be used */
};

/* The keeper that started this process, and passed on its sockets (LISTEN_FDS); NULL: none. To be called first. */
struct keeper *keeper_new(void);
/* Frees the memory; the channel stays open, since its end is this process's end. */
void keeper_free(struct keeper *k);
/* The main process of the service, which stays the same one; without a keeper, this process. */
pid_t keeper_pid(const struct keeper *k);

/* A process that was not handed anything over: waits for all that is kept. To be called once, before keeper_attach(). */
void keeper_receive(struct keeper *k, struct keeper_past *ret);
/* Takes the descriptor of that id out of it; -1: there is none. */
int keeper_take(struct keeper_past *past, uint64_t id);
/*
 * Shuts down the descriptors that nobody has taken, has the keeper drop them, and frees the memory. Connections go to
 * `finish`, which owns them from then on: they may have unread descriptors. Descriptors with a role are closed here.
 */
void keeper_refuse(struct keeper *k, struct keeper_past *past, void (*finish)(void *arg, int fd), void *arg);
/* For a process that ends because it cannot serve: the descriptors stay as they are, for the next one. */
void keeper_past_free(struct keeper_past *past);

/* A hand-over. keeper_unpack(): NULL if the other process has none. */
void keeper_pack(const struct keeper *k, struct parcel *p);
struct keeper *keeper_unpack(struct parcel *p);

/* This process serves: messages are read from now on, and `signalled` is called for each signal of the service. */
void keeper_attach(struct keeper *k, struct watch_base *base, void (*signalled)(void *arg, int number, pid_t sender),
		   void *arg);
/* ... and `kept` for each descriptor: the keeper has it, or has no room for it. */
void keeper_on_kept(struct keeper *k, void (*kept)(void *arg, uint64_t id, bool kept), void *arg);

/*
 * The keeper is to hold a copy, too. It does when `kept` says so. False: not now; to be asked again later. That is
 * never the answer for a role. Before that descriptor is closed, keeper_drop() must be called: the request is not yet
 * sent. */
bool keeper_keep(struct keeper *k, uint64_t id, int fd);
/* The keeper is to close its copy. Never lost; also of one for which keeper_keep() was not answered yet. */
void keeper_drop(struct keeper *k, uint64_t id);
/* Once a turn: sends the requests. */
void keeper_settle(struct keeper *k);

/*
 * Sends the text to the service manager, at most KEEPER_TEXT_MAX bytes (NOTIFY); with a descriptor, or -1. A text alone
 * waits until it can be sent: of several states (STATUS=) in a row the latest, of too many others the first. 0 or
 * -errno.
 */
int keeper_notify(struct keeper *k, const char *text, int fd);

/* See ALIVE. */
void keeper_alive(struct keeper *k, int64_t within_us);
/* See MOST: cut to KEEPER_TEXT_MAX, and lost if it cannot be sent at once, because a later one comes. */
void keeper_most(struct keeper *k, const char *text);
/* The keeper runs the program anew that is installed by now, if it is another one than its own; nothing is lost by that. */
void keeper_again(struct keeper *k);
/* This worker does not do as SIGUSR1 asked: a later worker is not to leave everything for the next start either. */
void keeper_stays(struct keeper *k);
