/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What acquiring one lock and acquiring several have in common. Not part of the public interface. */
#pragma once

#include "request.h"

/*
 * The daemon has answered with the token of a lock with that lease, requested at `sent_ns`. LB_LOST: the lease had run
 * out before the answer came, and the lock is not held.
 */
enum lb_result lock_granted(struct lb *lb, const char *name, int64_t token, int64_t lease_ms, int64_t sent_ns);
/*
 * Releases one level of a lock that a failing call has acquired: a call that fails acquires nothing. LB_CONNECTION or
 * LB_OK.
 */
enum lb_result lock_give_back(struct lb *lb, const char *name);
