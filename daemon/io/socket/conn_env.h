/* SPDX-License-Identifier: Apache-2.0 */
/* What the connections of a server share (conn.h): their limits, queues, and the memory that one uses after another. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "protocol/bytes.h"

struct conn;
struct feed;

enum {
	CONN_REQUESTS_PER_TURN = 256,
	CONN_READ_BYTES = 65536,
	CONN_LAZY_MAX = 256,
	CONN_SPARE_MAX = 4096,
	CONN_UNWRITTEN_MAX = 64 << 20,
	CONN_UNPARSED_MAX = 64 << 20,
	CONN_UNPARSED_SMALL = 8192,
};

struct conn_env {
	struct feed *feed;
	size_t request_bytes, request_args, output_bytes;
	size_t unwritten, unparsed; /* bytes of all connections */
	struct log_rate rate_overflow, rate_unparsed;
	char *scratch;                      /* CONN_READ_BYTES; its contents do not outlast the read */
	struct bytes spare;                 /* empty: the output buffer of the latest client that was answered */
	TAILQ_HEAD(conn_ready, conn) ready; /* connections with more to parse */
	struct conn_ready later;            /* the same, to be served after those */
	struct conn *asker;                 /* of the latest request in this turn, and when that request began */
	int64_t asked_ns;
	bool several;                       /* that request was not the first one */
	TAILQ_HEAD(conn_dirty, conn) dirty; /* something to write, or dead: to be settled */
};
