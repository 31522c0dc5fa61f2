/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the holders of a lock on this host to release it, or takes it from them: for a client here (revocation.h), or
 * for one elsewhere (letter_task.h).
 *
 * A lock that is taken is lost to its holder at once, who learns so before anybody else is granted it; the claim
 * stays, and settling the lock grants it to the next client with a larger token, or gives the claim back.
 *
 * Thousands may share a lock, so it is done in pieces. Until all have lost it, the others hold it: a request that conflicts
 * with them is granted nothing. A client that is granted it after the first piece is neither asked nor loses it.
 */
#pragma once

#include <stdint.h>

#include "core/lock/walk.h"
#include "protocol/slice.h"

struct hosts;

enum {
	REVOKE_REASON_MAX = 128,
	REVOKE_NOT_MINE = -1, /* in the place of a number of holders: the znode is of a session that is over */
	REVOKE_AT_ONCE = 32,  /* holders in the event that begins it */
};

/* The client that asks for it. */
struct revoker {
	struct slice host, command, client;
	int64_t uid, pid;
};

struct revoke {
	bool forced;
	int64_t count;       /* holders that were asked, or have lost it */
	struct locks *locks; /* NULL: it has not begun */
	struct walk walk;    /* along the holders at the beginning */
	int64_t begun_ns;
};

/* 1..REVOKE_REASON_MAX bytes of UTF-8 without control characters. */
bool revoke_reason_valid(struct slice reason);
/* The client as the log and other hosts see it; valid as long as it is not changed. */
struct revoker revoke_by(const struct client *c);
/*
 * Asks the holders of the lock, or takes it from them, as `r->forced` says, and adds them to the count. The first piece;
 * `lock` may be NULL. Each is asked at most once a second, and not if it has no room for that. True: that were all.
 */
bool revoke_begin(struct revoke *r, struct locks *locks, struct lock *lock, struct slice reason);
/* Goes on with it until *steps is `most`, or a few more. True: those were all. */
bool revoke_some(struct revoke *r, struct slice reason, int64_t most, int64_t *steps);
/* Takes one that has not begun, or is over. */
void revoke_end(struct revoke *r);
/* Logs that it is over. `id`: of the letter, or empty. */
void revoke_log(struct hosts *h, struct slice name, int64_t holders, const struct revoker *by, struct slice id);
