/* SPDX-License-Identifier: Apache-2.0 */
/* What saved.c and saved_table.c share: an open file (saved.h). */
#pragma once

#include "io/files/saved_file.h"

/* A run of the memory for the core, and where it is in the file. */
struct saved_piece {
	char *at;
	size_t bytes;
	uint64_t from;
};

struct saved {
	int fd; /* locked */
	int dir_fd;
	bool named;              /* otherwise it is saved.new */
	bool taken;              /* it was the spare */
	uint64_t packed;         /* the number of the latest parcel */
	int earlier_fd;          /* the earlier file, until it is named */
	size_t next_conns;       /* the next process makes places for so many connections */
	struct saved_file *file; /* up to the memory */
	uint64_t size;           /* of all */
	struct saved_conn *conns;
	struct saved_piece *more; /* all of the memory */
	size_t more_count;
	struct saved_piece *holes; /* of it: what was given back */
	size_t hole_count;
	uint64_t hole_bytes;
	/* Of the session that was the earlier daemon's last. */
	int64_t held_session;
	struct saved_conn *held;
	size_t held_count;
	bool held_foreign; /* the process numbers are from another namespace */
	int diag;          /* see peer.h */
	uint32_t *self;    /* our ends of the connections whose other ends are not known yet; 0: none */
	size_t used;       /* no connection had a place from here on */
	size_t look;       /* the holder to be asked about next */
};
