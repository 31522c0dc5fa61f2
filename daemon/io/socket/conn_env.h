/* SPDX-License-Identifier: Apache-2.0 */
/* What the connections of a server share (conn.h): their limits, queues, and the memory that one uses after another. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/account.h"
#include "base/log.h"
#include "io/socket/conn_page.h"
#include "io/socket/party.h"
#include "protocol/bytes.h"

struct conn;
struct disposer;
struct feed;
struct remains;
struct watch;

enum {
	CONN_REQUESTS_PER_TURN = 256,
	CONN_READ_BYTES = 65536,
	CONN_TURN_BYTES = 4096, /* are read at once while other accounts have connections */
	CONN_LAZY_MAX = 256,
	CONN_SPARE_MAX = 4096,
	/* In all, of which one user has 64 MiB. */
	CONN_UNWRITTEN_MAX = 88 << 20,
	CONN_UNWRITTEN_SMALL = 8192,
	CONN_PART_BYTES = 32000, /* of a long answer, for each turn: as much as the kernel has room for */
	CONN_UNPARSED_MAX = 88 << 20,
	CONN_UNPARSED_SMALL = 8192,
	/* Of a connection's output, in the kernel, which takes twice as much, and one part more than fits. */
	CONN_KERNEL_BYTES = 16384,
};

struct conn_env {
	struct feed *feed;
	size_t request_bytes, request_args, output_bytes;
	struct accounts accounts; /* socket_pools.h */
	char *scratch;                      /* CONN_READ_BYTES; its contents do not outlast the read */
	struct watch *patience;             /* while somebody is held back: who does not read is looked for */
	struct bytes spare;                 /* empty: the output buffer of the latest client that was answered */
	struct disposer *disposer;          /* closes their sockets */
	struct remains *remains;            /* what their clients keep of those that have ended */
	struct parties parties;             /* those whose connections are to be read, parsed or freed */
	bool one;                           /* all connections are of one account; determined for each serve */
	size_t dead;                        /* how many of them are to be freed */
	TAILQ_HEAD(conn_dirty, conn) dirty; /* something to write: to be settled */
	struct conn_page_list pages;        /* those that are asked for: to be made then */
};
