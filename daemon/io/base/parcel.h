/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the adapters of one process hand over to those of the next: records, and descriptors that the records name.
 *
 * A record is a kind and fields, each a key and bytes:
 *
 *     conn number 1:5,fd 1:9,in 4:PING,
 *
 * Spaces may stand before the number of bytes. A reader asks for the keys that it knows: unknown ones are skipped, a
 * missing number is 0 and a missing text empty, so that versions can add and drop keys. Packing a descriptor does not take
 * it over; unpacking one does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/bytes.h"
#include "protocol/slice.h"

enum { PARCEL_FIELDS_MAX = 32 };

/* Zero-initialised: empty. */
struct parcel {
	struct bytes text;
	bool text_is_mapped; /* it is unmapped, not freed, and nobody appends to it */
	int *fds;            /* -1: unpacked */
	size_t fd_count, fd_cap;
};

struct parcel_record {
	struct slice kind;
	struct {
		struct slice key, value;
	} fields[PARCEL_FIELDS_MAX];
	size_t count;
};

/* ---- packing ---- */

void parcel_begin(struct parcel *p, const char *kind);
/* Numbers that are 0, empty texts and descriptors that are -1 are left out. */
void parcel_int(struct parcel *p, const char *key, int64_t value);
void parcel_text(struct parcel *p, const char *key, struct slice value);
void parcel_fd(struct parcel *p, const char *key, int fd);
/* What is appended to p->text until parcel_close_text() is the value; `begin` is what this one returns. */
size_t parcel_open_text(struct parcel *p, const char *key);
void parcel_close_text(struct parcel *p, size_t begin);
void parcel_end(struct parcel *p);
/* A descriptor that no record has named yet: its place among them. */
size_t parcel_add_fd(struct parcel *p, int fd);

/* ---- unpacking ---- */

/* The first record of that kind; false: there is none before text that is no record. */
bool parcel_find(const struct parcel *p, const char *kind, struct parcel_record *ret);
/* Reads one record off the beginning of `rest`; false: it is at its end, or broken (and then not empty). */
bool parcel_next(struct slice *rest, struct parcel_record *ret);
int64_t parcel_get_int(const struct parcel_record *r, const char *key);
struct slice parcel_get_text(const struct parcel_record *r, const char *key);
/* -1: none, or there is no such descriptor. */
int parcel_look_at_fd(const struct parcel *p, const struct parcel_record *r, const char *key);
/* The same, and it is the caller's from now on. */
int parcel_take_fd(struct parcel *p, const struct parcel_record *r, const char *key);

/* Frees the memory. */
void parcel_free(struct parcel *p);
/* ... and closes the descriptors that nobody unpacked. */
void parcel_discard(struct parcel *p);
