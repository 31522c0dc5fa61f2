/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools that connections share (base/account.h); the core has pools of its own (core/port/pools.h). A connection is
 * charged
 *
 *   pool        | with
 *   CONNECTIONS | 1, unless it is a ghost; also when it has ended, as long as its answers are unread (remains.h); and
 *               |   1 for a process that is watched (lifelines.h)
 *   PAGES       | 1, if it has a page (conn_page.h); also when it has ended, for as long as the page is kept (remains.h)
 *   INPUT       | the bytes of its input that cannot be served yet, beyond CONN_UNPARSED_SMALL
 *   OUTPUT      | the bytes of its output that are not written yet, beyond CONN_UNWRITTEN_SMALL
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/port/account_text.h"

enum socket_pool { SOCKET_CONNECTIONS, SOCKET_PAGES, SOCKET_INPUT, SOCKET_OUTPUT, SOCKET_POOLS };

/*
 * How many files the daemon opens besides its clients' files, at most; some of these are sockets of refused connections
 * whose -LIMIT is unread (remains.h).
 */
enum { SOCKET_REFUSALS_MAX = 64, SOCKET_SPARE_FILES = 128 };

extern const struct pool_words socket_pools_words[SOCKET_POOLS];

/*
 * The total of PAGES beside so many connections, in a process that may have so many open files. Connections come first:
 * the number that they and the daemon itself do not need is divided by two, because the kernel counts the descriptor of
 * a page once more until the client has received it. So a hand-over can pass all descriptors while no client has
 * received its page.
 */
size_t socket_pools_pages(size_t clients, uint64_t files);
