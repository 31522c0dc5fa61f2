/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rundir>/saved: what a successor must know if this daemon dies: its ZooKeeper session, until when holders can have
 * been told that it is safe, and who the holders are; and the same of earlier daemons, as far as their sessions are not
 * ended yet. Nobody else may read it: who knows a session can end it.
 *
 * It is memory that outlives the process: every call below that changes it is a store or two, and whatever instruction
 * a kill comes after, what stands there is safe to go by:
 *
 *   session  | written whole beside the present one, then made the present one by one store
 *   instant  | only grows under one session; stored before anything that rests on it is told
 *   holder   | who it is stands there since it connected; one store says that it holds something, before it is told
 *   its end  | of the connection: learnt after that; until then anybody may have it
 *
 * It is locked for as long as the daemon runs. What is garbled, of another version, not ours or a copy is not gone by:
 * the session of a daemon that may live is left alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/broker.h"
#include "io/base/zk_identity.h"

struct saved;

struct saved_conf {
	const char *rundir, *boot_id, *host;
	size_t clients; /* connection numbers are below it */
	int64_t now_ns;
};

/*
 * Reads what the earlier daemon left, then begins anew, with its sessions among what is left. 0 or -errno; -EBUSY:
 * another daemon has it locked. What cannot be gone by is told to the log.
 */
int saved_open(struct saved **ret_saved, const struct saved_conf *conf);
/* Takes NULL. What stands in the file stays. */
void saved_close(struct saved *s);

/* The sessions that were left when it was opened, at most FORMERS_MAX. */
size_t saved_formers(const struct saved *s, struct broker_former *ret_list);
/* False: it is none of them (any more). */
bool saved_identity(const struct saved *s, int64_t session, struct zk_identity *ret);
/*
 * Of the last session: true while a process lives that held something under it, or anybody may have its connection. Looks
 * for a few ms at most, and goes on with the next call: until all were looked at it is true.
 */
bool saved_holders_live(struct saved *s);
/* ... and which session that is; 0: none that had holders. */
int64_t saved_held_session(const struct saved *s);
/* It may be ended at once, also by the next successor. */
void saved_free_former(struct saved *s, int64_t session);
/* It is over. */
void saved_end_former(struct saved *s, int64_t session);

/* All of these take NULL. */
void saved_session(struct saved *s, const struct zk_identity *identity, int64_t timeout_ns);
/* The present session is given up: it is among what is left from now on, until it is over. */
void saved_add_former(struct saved *s, int64_t session);
/* The present session is over: nothing is left to a successor. */
void saved_session_ended(struct saved *s);
void saved_safe_until(struct saved *s, int64_t safe_until_ns);
/* `fd` is our end of the connection. */
void saved_connected(struct saved *s, uint32_t conn, pid_t pid, uint64_t start, int fd);
void saved_holder(struct saved *s, uint32_t conn, bool holds);
/* Learns which connections some new holders have: to be called every second or so. */
void saved_look(struct saved *s);
