/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the holders of a lock on this host to release it, or takes it from them: for a client here (revocation.h), or
 * for one elsewhere, by letter.
 *
 * A lock that is taken is lost to its holder at once, who learns so before anybody else is granted it; the claim
 * stays, and settling the lock grants it to the next client with a larger token, or gives the claim back.
 */
#pragma once

#include <stdint.h>

#include "core/hosts/outbox.h"
#include "protocol/slice.h"

struct hosts;
struct client;
struct lock;

enum {
	REVOKE_REASON_MAX = 128,
	REVOKE_NOT_MINE =
		-1, /* in the place of a number of holders: the znode is of a session that is over */
};

/* The client that asks for it. */
struct revoker {
	struct slice host, command, client;
	int64_t uid, pid;
};

/* 1..REVOKE_REASON_MAX bytes of UTF-8 without control characters. */
bool revoke_reason_valid(struct slice reason);
/* The client as the log and other hosts see it; valid as long as it is not changed. */
struct revoker revoke_by(const struct client *c);
/* Asks the holders here, each at most once a second, unless it has no room for that. Returns how many were asked. */
int64_t revoke_ask(struct lock *lock, struct slice reason);
/* Takes it from the holders here. Returns how many there were. `lock` may be NULL. */
int64_t revoke_force(struct lock *lock);
/* Logs it. `id`: of the letter, or empty. */
void revoke_log(struct hosts *h, struct slice name, int64_t holders, const struct revoker *by, struct slice id);
/* Acts upon a letter of one of those kinds, which this host alone has. */
void revoke_received(struct hosts *h, enum letter_kind kind, struct slice id, struct slice data);
