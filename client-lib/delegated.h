/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The locks that the daemon has delegated to a handle: they stay with it after the unlock, so that it takes and
 * releases them again in memory (protocol/delegation.h). Not part of the public interface.
 *
 *     of a slot       from -> to
 *     unused          no name, or its word is NONE: it may be given to another name
 *     asked for       a LOCK with SLOT was sent -> delegated, if its word says so when the answer is read; or unused
 *     delegated       taken and left without a word to the daemon -> unused, once the daemon has taken it back
 *
 * A lock that is held as delegated is also in `holdings`, and everything but taking and leaving it is asked of the daemon,
 * which makes an ordinary grant of it: then leaving it fails, and it is released by message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lockbroker.h"

/*
 * To be called before a LOCK of that name without lease and data: asks for the page if that is worth a message, which may
 * end the connection. Returns the number for SLOT; 0: none.
 */
unsigned delegated_prepare(struct lb *lb, const char *name);
/* To be called after the answer, a grant with that token in that mode: notes whether the daemon has delegated it. */
void delegated_read(struct lb *lb, unsigned slot, bool shared, int64_t token);
/* Takes the lock if it is delegated in that mode and free. LB_NONE: the caller has to ask the daemon. LB_CONNECTION. */
enum lb_result delegated_take(struct lb *lb, const char *name, bool shared, int64_t *ret_token);
/*
 * Releases the lock if it is held as delegated and still proven. LB_NONE: by message; with *ret_wait, which is set anyway,
 * only the answer says whether it was lost.
 */
enum lb_result delegated_leave(struct lb *lb, const char *name, bool *ret_wait);
/* The lock is held as delegated, and was not lost. */
bool delegated_holds(struct lb *lb, const char *name);
/* False, about once a second: the caller has to read the daemon's messages; perhaps the connection has ended. */
bool delegated_is_heard(struct lb *lb, int64_t now_ns);
