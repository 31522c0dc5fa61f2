/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What taking one lock and taking several have in common. Not part of the public interface. */
#pragma once

#include "request.h"

/*
 * Of a lock with that lease, asked for at `sent_ns`, the daemon has told the token. LB_LOST: its lease had run out
 * before that was known; it is not held.
 */
enum lb_result lock_granted(struct lb *lb, const char *name, int64_t token, int64_t lease_ms, int64_t sent_ns);
/* Lets go of one level of what a call took that is to fail: what fails takes nothing. LB_CONNECTION, else LB_OK. */
enum lb_result lock_give_back(struct lb *lb, const char *name);
