/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The common part of the calls that acquire one of several locks, or all of them. Not part of the public interface. */
#pragma once

#include "lockbroker.h"

/*
 * Releases one level of a lock that a call has acquired which does not return it: a call that fails acquires nothing.
 * LB_CONNECTION or LB_OK.
 */
enum lb_result lock_give_back(struct lb *lb, const char *name);
