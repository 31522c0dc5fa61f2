/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What connections share (base/account.h); the core has pools of its own (core/port/pools.h). A connection is charged
 *
 *   pool        | with
 *   CONNECTIONS | 1, unless it is a ghost; so is a process that is watched (lifelines.h), and a page (conn_page.h)
 *   INPUT       | the bytes of its input that cannot be served yet, beyond CONN_UNPARSED_SMALL
 *   OUTPUT      | the bytes of its output that are not written yet, beyond CONN_UNWRITTEN_SMALL
 */
#pragma once

#include "core/port/account_text.h"

enum socket_pool { SOCKET_CONNECTIONS, SOCKET_INPUT, SOCKET_OUTPUT, SOCKET_POOLS };

extern const struct pool_words socket_pools_words[SOCKET_POOLS];
