/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rundir>/saved has the state that the next daemon must know if this daemon dies: its ZooKeeper session, the latest
 * instant until which holders may believe that it is safe, its connections and which of them hold something, the memory
 * of the core behind them (core/port/ledger.h); and the sessions of earlier daemons that have not ended. Other users
 * may not read it: a session can be ended by everybody who knows it.
 *
 * The file is memory that outlives the process: every call below that changes it is a store or two, and after whatever
 * instruction the daemon is killed, the contents can be relied on:
 *
 *   session    | written completely beside the present one, then made the present one by one store
 *   instant    | only grows during a session; stored before anybody learns of a grant that rests on it
 *   connection | its identity is stored when it connects, last that there is one; one store says that it holds something,
 *              | before its client learns it; another that the keeper has it, after the keeper has said so
 *   busy       | of a connection that is kept: set before anything is read or written, cleared when nothing is under way
 *   its end    | of the connection: learnt after that; until then any process may have it
 *   memory     | added memory counts once it is there; memory that was given back still counts, and reads as zeros
 *
 * Each process makes a file of its own, complete before it gets the name, and locked as long as the process runs; until
 * then the file of the earlier process stays true (saved_previous.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/broker.h"
#include "io/base/zk_identity.h"
#include "io/files/saved_file.h"
#include "protocol/slice.h"

struct parcel;
struct saved;
struct saved_previous;

struct saved_conf {
	const char *rundir, *boot_id, *host;
	struct slice identity; /* which the next process must share with this process */
	bool standalone;
	size_t clients; /* connection numbers are smaller, but for numbers that another process gave out */
	bool may_take;  /* the spare (spare.h), because there is no way back */
	int64_t now_ns;
};

/*
 * Makes a new file that lists the sessions of the earlier daemon, with its last one. `previous` (saved_previous.h) must be
 * freed after that. 0 or -errno.
 */
int saved_open(struct saved **ret, const struct saved_conf *conf, const struct saved_previous *previous);
/*
 * Makes one that goes on with its session; its connections are still to be added, and the file has no name before
 * saved_publish(): until then the earlier file counts, which stays locked. `ahead` is from saved_ahead(), and belongs to the
 * new file. 0 or -errno.
 */
int saved_continue(struct saved **ret, const struct saved_conf *conf, struct saved_previous *previous, int ahead);
/*
 * Makes a file, still without a name, with as much room as the present one has: for saved_continue(), whose clients then do
 * not wait while the kernel makes so much memory. Returns its descriptor; -1: there is none, and saved_continue() makes one.
 */
int saved_ahead(const char *rundir);
int saved_publish(struct saved *s);
/* Leaves a spare for the next process, with as much memory as this one has. 0 or -errno: -EAGAIN: it has no name yet. */
int saved_leave_spare(const struct saved *s);
/* The file was made ahead, and has room that nothing uses. */
bool saved_has_excess(const struct saved *s);
/* Takes away at most `bytes` of that excess, or else of a spare that is longer than it needs to be. False: neither is. */
bool saved_cut(const struct saved *s, uint64_t bytes);
/* Somebody has removed the file, which has its name; makes one of the same contents and memory in its place, 0 or -errno. */
bool saved_is_missing(const struct saved *s, const char *rundir);
int saved_again(struct saved *s, const char *rundir);
/* saved_publish() failed, and this process goes on: the earlier file is no longer true, and nobody will go by it. */
void saved_spoil_earlier(const struct saved *s);
/* Takes NULL. The contents of the file stay; without a name, it is gone. */
void saved_close(struct saved *s);

/* For a hand-over. */
void saved_pack(struct saved *s, struct parcel *p);
/* The latest parcel is for the next process, whenever that comes: this is the last act of this process. */
void saved_finish(struct saved *s);

/* The sessions that the file listed when it was opened, at most FORMERS_MAX. */
size_t saved_formers(const struct saved *s, struct broker_former *ret_list);
/* False: it is none of them, or no longer. */
bool saved_identity(const struct saved *s, int64_t session, struct zk_identity *ret);
/*
 * Concerns the earlier daemon's latest session: true while a process that held something under it is alive, or any process
 * may have its connection. Examines holders for a few ms at most, and continues with the next call; true until all were
 * examined.
 */
bool saved_holders_live(struct saved *s);
/* The number of that session; 0: there is none that had holders. */
int64_t saved_held_session(const struct saved *s);
/* The session may be ended at once, also by the next daemon. */
void saved_free_former(struct saved *s, int64_t session);
/* The session is over. */
void saved_end_former(struct saved *s, int64_t session);

/* The present session; false: there is none. */
bool saved_present(const struct saved *s, struct zk_identity *ret);

/* All of these take NULL. */
void saved_session(struct saved *s, const struct zk_identity *identity, int64_t timeout_ns);
/* The present session is given up: from now on it is listed among the former ones, until it is over. */
void saved_add_former(struct saved *s, int64_t session);
/* The present session is over: nothing is left to the next daemon. */
void saved_session_ended(struct saved *s);
void saved_safe_until(struct saved *s, int64_t safe_until_ns);

/*
 * The connections in the file `saved` (saved.h), and the memory for the core behind them: the parts that change while
 * clients are served.
 *
 * A connection has a place as long as its number is in use, also when it is closed and its process may still believe to hold
 * something (a ghost). That it is `busy` counts once the keeper has the connection, and says that another process cannot go
 * on with it: part of a request was read, a request is not answered, or something is to be written.
 */

/* Connection numbers are smaller. */
size_t saved_clients(const struct saved *s);
/* These take NULL. */
/* Of `who` its identity and until_ns count. `fd` is our end of the connection; -1: it is closed already. */
void saved_connected(struct saved *s, uint32_t conn, const struct saved_conn *who, int fd);
void saved_gone(struct saved *s, uint32_t conn);
void saved_holder(struct saved *s, uint32_t conn, bool holds);
/* Somebody holds something without a connection, or nobody does any longer. */
void saved_bearers(struct saved *s, bool hold);
/* Learns the other ends of some new holders' connections; to be called about every second. */
void saved_look(struct saved *s);
const struct saved_conn *saved_conn(const struct saved *s, uint32_t conn);
/* The keeper has the connection, which has something under way, or nothing. Returns its word `busy`, to be set. */
uint32_t *saved_keep(struct saved *s, uint32_t conn, bool busy);
/* False: the process of the connection has surely ended, and nobody has the other end. */
bool saved_conn_lives(const struct saved *s, uint32_t conn);
/*
 * Memory that is behind the present memory in the file, and anywhere in this process. NULL: see errno; a full file
 * system is an error now, not a signal later.
 */
void *saved_grow(struct saved *s, size_t bytes);
/*
 * Gives that part of the memory, a multiple of a page, back to the file system: it reads as zeros, and nobody may write to
 * it. If the file system refuses, the part is unused all the same.
 */
void saved_give_back(struct saved *s, void *memory, size_t bytes);
/* Takes the part that was given back last again, as by saved_grow(). NULL: see errno; 0: nothing was given back. */
void *saved_refill(struct saved *s, size_t *ret_bytes);
/* So much more there is already, because the file was a spare, or was made ahead. */
size_t saved_room(const struct saved *s);
