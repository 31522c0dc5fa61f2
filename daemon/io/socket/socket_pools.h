/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What connections share (base/account.h); the core has pools of its own (core/port/pools.h). A connection is charged as
 * one, but for a ghost, and for the bytes of its input that cannot be served yet beyond CONN_UNPARSED_SMALL.
 */
#pragma once

enum socket_pool { SOCKET_CONNECTIONS, SOCKET_INPUT, SOCKET_POOLS };
