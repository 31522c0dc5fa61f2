/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rundir>/saved has what the next daemon must know if this one dies: its ZooKeeper session, the latest instant until
 * which holders may have been told that it is safe, and who the holders are; and the same of earlier daemons, as long
 * as their sessions have not ended. Other users may not read it: a session can be ended by everybody who knows it.
 *
 * The file is memory that outlives the process: every call below that changes it is a store or two, and after whatever
 * instruction the daemon is killed, the contents can be relied on:
 *
 *   session  | written completely beside the present one, then made the present one by one store
 *   instant  | only grows during a session; stored before anybody is told what rests on it
 *   holder   | its identity is stored when it connects; one store says that it holds something, before it is told
 *   its end  | of the connection: learnt after that; until then any process may have it
 *
 * It is locked for as long as the daemon runs. A corrupt, foreign, copied or other-version file is ignored: the session
 * of a daemon that may be running is left alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/broker.h"
#include "io/base/zk_identity.h"

struct parcel;
struct saved;

struct saved_conf {
	const char *rundir, *boot_id, *host;
	size_t clients; /* connection numbers are smaller */
	int64_t now_ns;
};

/*
 * Reads what the earlier daemon left, then makes a new file that lists its sessions. 0 or -errno; -EBUSY: another
 * daemon has the file locked. Why a file is ignored is logged.
 */
int saved_open(struct saved **ret_saved, const struct saved_conf *conf);
/* Takes NULL. The contents of the file stay. */
void saved_close(struct saved *s);

/*
 * A hand-over keeps the file and its lock. Unpacking changes nothing in it; -EBADMSG: it is no such file. Once the other
 * process has ended its service, saved_take_over() notes whose file it is now. Before, each connection that was taken over
 * is named.
 */
void saved_pack(const struct saved *s, struct parcel *p);
int saved_unpack(struct saved **ret_saved, struct parcel *p);
/* Connection numbers are smaller. */
size_t saved_clients(const struct saved *s);
void saved_take_over(struct saved *s);
/* Takes NULL. */
void saved_reconnected(struct saved *s, uint32_t conn, int fd);

/* The sessions that the file listed when it was opened, at most FORMERS_MAX. */
size_t saved_formers(const struct saved *s, struct broker_former *ret_list);
/* False: it is none of them, or no longer. */
bool saved_identity(const struct saved *s, int64_t session, struct zk_identity *ret);
/*
 * Concerns the latest session: true while a process that held something under it is alive, or any process may have its
 * connection. Examines holders for a few ms at most, and continues with the next call; true until all were examined.
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
/* `fd` is our end of the connection. */
void saved_connected(struct saved *s, uint32_t conn, pid_t pid, uint64_t start, int fd);
void saved_holder(struct saved *s, uint32_t conn, bool holds);
/* Learns the other ends of some new holders' connections; to be called about every second. */
void saved_look(struct saved *s);
