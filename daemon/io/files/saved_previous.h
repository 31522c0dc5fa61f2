/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that the earlier process left: in its file `saved`, which is read, or in the parcel that it handed over.
 * Its session, the sessions that still earlier processes left, its connections, and the memory that its core wrote.
 *
 * A file is only gone by if it is this user's own and nobody else's to read, whole, of this version, this boot and this
 * host's name, no copy, and if the process that wrote it has ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/files/saved_file.h"
#include "protocol/slice.h"

struct parcel;
struct saved_conf;

struct saved_previous {
	int fd; /* of its file, locked; -1: none */
	uint64_t number; /* of the parcel */
	bool unnamed;    /* its file has no name */
	bool standalone;
	bool here; /* its numbers of processes, its connections and its instants are of our namespaces */
	struct saved_session session; /* its last one; id 0: none */
	struct saved_former former[FORMERS_MAX];
	size_t conn_count;              /* numbers of connections are smaller */
	const struct saved_conn *conns; /* by number; NULL: the state and the connections were handed over */
	struct slice identity, memory;
	/* The connections that held something under a session that it had found (saved.h). */
	int64_t held_session;
	struct saved_conn *held;
	size_t held_count;
	bool held_foreign;
	struct saved_file *file; /* the whole of it, to which some of these point; NULL: it was handed over */
};

/*
 * 0, or -EBUSY: another daemon has it locked; or -errno. If there is none that can be gone by, *ret has nothing, and the
 * reason is logged. The caller frees it.
 */
int saved_previous_read(struct saved_previous **ret, const struct saved_conf *conf);
/* The process that wrote the file there is still running, or on its way out. */
bool saved_previous_is_ending(const char *rundir);
/* Closes the file: a process that waits for its lock gets it then. Takes NULL. */
void saved_previous_free(struct saved_previous *l);

/* Its entries in a parcel. Reading it changes nothing in the file. 0 or -EBADMSG. */
void saved_previous_pack(const struct saved_previous *l, struct parcel *p);
int saved_previous_unpack(struct saved_previous **ret, struct parcel *p);
/*
 * The latest process left the parcel as its last act. Otherwise that process went on, or another process has served
 * since, and the parcel may be out of date.
 */
bool saved_previous_is_latest(struct parcel *p, const char *rundir);
