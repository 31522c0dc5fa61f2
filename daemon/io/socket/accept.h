/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The acceptor accepts connections from the ordinary and the operators' socket, and finds out whose they are. When
 * descriptors run out, accepting pauses for a moment.
 *
 * Each of the two is a party of its own (party.h): a crowd that comes in gets as much time as one of the accounts, and
 * the time that one visitor takes counts for its account, too. A user who has used up its share is refused before its
 * process is looked at: with a -LIMIT, or without a word if too many of these are unread (remains.h). A visitor that
 * has gone again without a word does not count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/socket/conn.h"

struct acceptor;

/* As the kernel has it; its texts do not outlast the call. */
struct visitor {
	int fd;
	bool privileged; /* it came through the operators' socket */
	uint32_t pid, uid, gid;
	uint64_t start; /* of the process; 0: unknown */
	struct slice comm, unit; /* base/unit_name.h */
	struct account *account;
};

struct accept_calls {
	bool (*is_full)(void *arg);                                /* there is no number for one more */
	void (*welcome)(void *arg, const struct visitor *visitor); /* takes over its descriptor */
	void *arg;
};

/* For connections from `fd`, and for operators' connections from `operators` (-1: none). */
struct acceptor *accept_new(struct conn_env *env, int fd, int operators, const struct accept_calls *calls);
/* Takes NULL. */
void accept_free(struct acceptor *a);
void accept_begin(struct acceptor *a);
/*
 * From here on connections come from `fd`, too. The earlier socket is the acceptor's now: clients that wait at it still
 * come in, and also clients that still reach it (through another mount); that ends when the new socket is replaced, or
 * with the process.
 */
void accept_replace(struct acceptor *a, bool operators, int fd);
/* The turn of a door has come (party_member.is_door): some of the visitors that wait there come in. */
void accept_serve(struct party_member *place);
/*
 * The groups that the process had when it connected: the connection tells them for as long as it is open. They are valid
 * until the next call.
 */
void accept_groups(struct acceptor *a, int fd, gid_t gid, struct event_groups *ret);
