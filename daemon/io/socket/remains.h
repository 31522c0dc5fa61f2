/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of ended connections that the kernel keeps, because their clients keep them. It is memory of this service,
 * and descriptors that are under way count against its user. So it stays charged to the client's account:
 *
 *     kind     the part                                    charged          left by
 *     answers  bytes that nobody has read; the socket is   CONNECTIONS: 1   all are read, or the other end is closed -> none
 *              shut down, but stays open to find that out
 *     refusal  the same of a connection that got -LIMIT    nothing          the same
 *     page     the file of a page (page_file.h)            PAGES: 1         nobody else has it open -> late
 *     late     nothing that can be found out: but there    PAGES: 1         its turn comes -> none
 *              may be a descriptor of O_PATH, or a pipe
 *              that refers to the memory of the page
 *
 * Refusals have limits of their own: REMAINS_REFUSALS of each account and SOCKET_REFUSALS_MAX of all. A user with more
 * unread answers is turned away without a word. Of the late ones, of all accounts together, REMAINS_LATE_BURST go back
 * at once, and then one in REMAINS_LATE_NS, by turns of the accounts: so fast can clients hide memory from here, and no
 * faster.
 *
 * All are looked at once a second; REMAINS_LOOK_MAX remains of an account also before the account is refused anything.
 * Their number, and the processes that connected, stand in `kept` of the account.
 *
 * At a hand-over the next process gets the answers and the pages. A kill closes them all, and nobody is charged for them
 * from then on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/socket/socket_pools.h"
#include "protocol/bytes.h"

struct disposer;
struct entry;
struct feed;
struct parcel;
struct remains;

enum { REMAINS_REFUSALS = 16, REMAINS_LOOK_MAX = 256, REMAINS_LATE_BURST = 64 };
#define REMAINS_LATE_NS (INT64_C(10) * 1000 * 1000 * 1000)

struct remains *remains_new(struct feed *feed, struct disposer *disposer);
/* Closes them all. Takes NULL. */
void remains_free(struct remains *r);

/* The end of a connection of that account: keeps the socket, which is not the caller's any longer, if it has answers. */
bool remains_keep_answers(struct remains *r, struct account *account, int fd);
/* The same, before that: owns the file of the page that was sent on the connection. */
void remains_take_page(struct remains *r, struct account *account, int fd, int page);
/* One more connection of that account may get the reason of its refusal. */
bool remains_may_tell(struct remains *r, struct account *account);
/* It got the reason. Owns the socket. */
void remains_take_refusal(struct remains *r, struct account *account, int fd);

/* As account_may() of one more, after another look at the remains. */
bool remains_admit(struct remains *r, struct account *account, enum socket_pool pool, bool privileged);
/* Looks at each of them once, but not beyond that instant. */
void remains_look(struct remains *r, int64_t until_ns);
/* There is nothing to be looked at. */
bool remains_is_empty(const struct remains *r);

/* For a hand-over: writes a record for each of them. */
void remains_pack(const struct remains *r, struct parcel *p);
/* Reads such a record, or ignores another one. False: it is not valid. */
bool remains_unpack(struct remains *r, struct accounts *accounts, struct parcel *p, const struct entry *e);

/* The parts that clients keep of ended connections (remains.h), in sentences that name the processes which keep most. */
enum { REMAINS_TOP = 8 /* processes that may be named */ };

/* Zeroed: nothing. Each thing is proposed; then each is counted. So no more memory is needed for more processes. */
struct remains_tally {
	struct {
		uint32_t pid; /* 0: unknown */
		size_t votes, count;
	} top[REMAINS_TOP];
	size_t count;
	uint64_t bytes;
};

/* A process that has more than one in REMAINS_TOP + 1 of all is among `top` then, whatever the order. */
void remains_propose(struct remains_tally *t, uint32_t pid);
void remains_count(struct remains_tally *t, uint32_t pid, uint32_t bytes);
/* Nothing is appended if nothing is kept. */
void remains_answers_text(const struct remains_tally *t, struct bytes *out);
