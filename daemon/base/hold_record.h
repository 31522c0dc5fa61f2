/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold or a wait, for the log: numbers and texts as one run of bytes, on their way from the core to the writer of the
 * log. docs/design/log.md says which of them become fields.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/bytes.h"
#include "protocol/slice.h"

/* The words (kind, mode, why) are in memory that stays. An instant of 0 is not known. */
struct hold_record {
	const char *kind, *mode, *why;
	bool over; /* a hold has ended; false: it goes on, or some of its permits are given back, or it is a wait */
	bool here; /* of a wait: the lock has a holder on this host */
	uint32_t pid, holder_pid;
	uint64_t client;
	int64_t token, permits, takings;
	int64_t asked_ns, granted_ns, now_ns;
	struct slice name, command, data;
	struct slice before;         /* the host that had the lock before */
	struct slice holder;         /* of a wait: the text in the claim of the holder's host (core/znode/holder.h), */
	struct slice holder_command; /* or, with `here`, a process of this host */
};

void hold_record_write(const struct hold_record *h, struct bytes *out);
/* Of bytes that it has written: its texts lie in these. */
struct hold_record hold_record_read(struct slice bytes);
/*
 * The command that the log shows for a connection: for `lockbroker lock` the name of the connection, which is the command
 * that it runs; else the program. The name of another program's connection may hold arguments.
 */
struct slice hold_record_command(struct slice program, struct slice connection_name);
