/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that the adapters of one process hand over to the adapters of the next: a row of entries
 * (core/port/entry.h), and descriptors that the entries name. The broker's snapshot, whose length is not known before,
 * stands behind the last entry.
 *
 * A reader asks for the keys that it knows: unknown ones are skipped, a missing number is 0 and a missing text empty, so
 * that versions can add and drop keys. Packing a descriptor does not take it over; unpacking one does.
 *
 * The processes of 0.2.0 that hand over write records instead of entries, each a word and fields of any bytes,
 *
 *     conn number 1:5,fd 1:9,in 4:PING,
 *
 * and their snapshot is the field "broker" of the record "process". That is read, and no longer written; the next release
 * need not read it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/entry.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

/* Zero-initialised: empty. */
struct parcel {
	struct bytes text;
	bool text_is_mapped; /* it is unmapped, not freed, and nobody appends to it */
	int *fds;            /* -1: unpacked */
	size_t fd_count, fd_cap;
	struct entry_reader reader; /* of the text */
	struct bytes why;           /* it has found text that is no entry */
	struct slice snapshot;      /* it has read all entries */
};

/* ---- packing ---- */

/* Nothing is written of one that is -1. */
void parcel_fd(struct parcel *p, struct entry_writer *w, const char *key, int fd);
/* A descriptor that no entry has named yet: its place among them. */
size_t parcel_add_fd(struct parcel *p, int fd);
/* All entries are there. All text that is appended from now on is the snapshot. */
void parcel_end(struct parcel *p);

/* ---- unpacking: an entry is valid until the next one is read ---- */

/* The first entry with that word; false: there is none before text that is no entry, and *ret has no fields. */
bool parcel_find(struct parcel *p, const char *word, struct entry *ret);
/* The next call of parcel_next() reads the first one. */
void parcel_rewind(struct parcel *p);
/* False: there are no more, or the rest is no entry, and p->why says so. */
bool parcel_next(struct parcel *p, struct entry *ret);
/* Empty: it has none. */
struct slice parcel_snapshot(struct parcel *p);
int64_t parcel_get_number(const struct entry *e, const char *key);
struct slice parcel_get_text(const struct entry *e, const char *key);
/* -1: none, or there is no such descriptor. */
int parcel_look_at_fd(const struct parcel *p, const struct entry *e, const char *key);
/* The same, and it is the caller's from now on. */
int parcel_take_fd(struct parcel *p, const struct entry *e, const char *key);

/* Frees the memory. */
void parcel_free(struct parcel *p);
/* ... and closes the descriptors that nobody unpacked. */
void parcel_discard(struct parcel *p);
