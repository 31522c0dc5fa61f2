/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of a connection that the keeper has, too: while something is under way on it, no other process can go on with it
 * (conn.h).
 */
#pragma once

#include "io/socket/conn.h"

/* The kernel must not have given or taken anything before; the compiler sees no use of the mark. */
static inline void conn_mark(struct conn *c)
{
	if (!c->mark)
		return;
	__atomic_store_n(c->mark, 1, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void conn_unmark(struct conn *c)
{
	if (c->mark && !conn_is_busy(c))
		__atomic_store_n(c->mark, 0, __ATOMIC_RELEASE);
}
