/* SPDX-License-Identifier: Apache-2.0 */
/* What saved.c and saved_table.c share: an open file (saved.h). */
#pragma once

#include "io/files/saved_file.h"

struct saved {
	int fd;         /* locked */
	int dir_fd;     /* until it has its name; -1 from then on */
	int earlier_fd; /* the earlier file, until then */
	/* Room is reserved for as much as the file can become, so that nothing moves. */
	struct saved_file *file;
	uint64_t size;
	struct saved_conn *conns;
	/* Of the session that was the earlier daemon's last. */
	int64_t held_session;
	struct saved_conn *held;
	size_t held_count;
	bool held_foreign; /* the process numbers are from another namespace */
	int diag;          /* see peer.h */
	uint32_t *self;    /* our ends of the connections whose other ends are not known yet; 0: none */
	size_t look;       /* the holder to be asked about next */
};
