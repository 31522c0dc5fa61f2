/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a snapshot (snapshot.h) is a row of entries. An entry is an array of RESP3: a word, then a key and a value
 * for each field. The writer and the reader of an entry share one table of fields.
 *
 *   field  | is written as  | when it is missing
 *   number | integer        | 0
 *   flag   | integer, 1     | false
 *   text   | bulk string    | empty
 *   due    | integer        | the timer is not set
 *
 * A field with the value that stands for a missing one is left out. A reader skips keys and words that it does not know. So
 * 0, or empty, in a new field must mean the behaviour before the field existed; the key of a removed field is not used
 * again, nor is the number of an enumerator.
 *
 * The text may be anybody's: a value of another type, or outside of the bounds that the table gives, makes the reader
 * refuse the entry, with a sentence. Memory and depth are bounded by the text and by resp.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"
#include "protocol/bytes.h"
#include "protocol/resp.h"
#include "protocol/slice.h"

enum field_type { FIELD_BOOL, FIELD_U8, FIELD_I32, FIELD_U32, FIELD_I64, FIELD_U64, FIELD_BYTES };

struct field {
	struct slice key;
	enum field_type type;
	size_t at;         /* in the struct */
	bool open;         /* a number that may be INT64_MIN or INT64_MAX, too: never, for ever */
	int64_t low, high; /* bounds of the number, or of the length of the text */
};

#define ENTRY_INSTANT_MAX (INT64_C(1) << 61) /* so that differences of instants are numbers */

/* clang-format off */
#define FIELD_TYPE(type, member) \
	_Generic(((const type *)NULL)->member, bool: FIELD_BOOL, uint8_t: FIELD_U8, int32_t: FIELD_I32, uint32_t: FIELD_U32, \
		 int64_t: FIELD_I64, uint64_t: FIELD_U64, struct bytes: FIELD_BYTES)
/* clang-format on */
#define FIELD_OF(type, key, member, open, low, high) \
	{ { (key), sizeof(key) - 1 }, FIELD_TYPE(type, member), offsetof(type, member), open, low, high }
#define FIELD_NUMBER(type, key, member, low, high) FIELD_OF(type, key, member, false, low, high)
#define FIELD_ANY(type, key, member) FIELD_OF(type, key, member, false, INT64_MIN, INT64_MAX)
#define FIELD_FLAG(type, key, member) FIELD_OF(type, key, member, false, 0, 1)
#define FIELD_TEXT(type, key, member, longest) FIELD_OF(type, key, member, false, 0, longest)
#define FIELD_INSTANT(type, key, member) FIELD_OF(type, key, member, false, -ENTRY_INSTANT_MAX, ENTRY_INSTANT_MAX)
#define FIELD_OPEN_INSTANT(type, key, member) FIELD_OF(type, key, member, true, -ENTRY_INSTANT_MAX, ENTRY_INSTANT_MAX)
#define FIELDS(table) (table), sizeof(table) / sizeof((table)[0])

/* ---- writing ---- */

struct entry_writer {
	struct bytes *out;
	size_t begin, values;
};

/* Fields that the text of a ledger's record has. The writer of the entry has the others in a struct. */
struct entry_pairs {
	struct slice text;
	size_t count;
};

struct entry_writer entry_begin(struct bytes *out, const char *word);
void entry_number(struct entry_writer *w, const char *key, int64_t value);
void entry_text(struct entry_writer *w, const char *key, struct slice text);
void entry_due(struct entry_writer *w, const char *key, const struct timer *t);
void entry_fields(struct entry_writer *w, const struct field *fields, size_t count, const void *from);
void entry_list(struct entry_writer *w, const char *key, size_t count); /* that many values are written to `out` next */
void entry_pairs(struct entry_writer *w, const struct entry_pairs *pairs); /* takes NULL */
void entry_end(struct entry_writer *w);

/* ---- reading ---- */

struct entry {
	struct slice word;
	const struct resp_value *values; /* pairs */
	size_t pairs;
	struct bytes *why;
};

struct entry_reader {
	struct resp_replies replies;
	struct slice rest;
	struct bytes *why;
	struct resp_value usual[128]; /* most entries have no more */
};

void entry_reader_init(struct entry_reader *r, struct slice text, struct bytes *why);
void entry_reader_deinit(struct entry_reader *r);
/* False: there is none, or, if *why is not empty then, the rest is no entry. It is valid until the next call. */
bool entry_next(struct entry_reader *r, struct entry *ret);
/* The value of that key, whatever it is; NULL: it is missing. */
const struct resp_value *entry_value(const struct entry *e, const char *key);
/* These return false when they refuse it. */
bool entry_refuse(const struct entry *e, const char *what);
bool entry_get_number(const struct entry *e, const char *key, int64_t low, int64_t high, int64_t *ret);
bool entry_get_flag(const struct entry *e, const char *key, bool *ret);
bool entry_get_text(const struct entry *e, const char *key, size_t longest, struct slice *ret);
/* The list, its values behind it; NULL: it is missing, or none. */
const struct resp_value *entry_get_list(const struct entry *e, const char *key);
bool entry_get_due(const struct entry *e, const char *key, struct heap *timers, struct timer *t);
bool entry_get_fields(const struct entry *e, const struct field *fields, size_t count, void *to);

/*
 * The first line of a snapshot (snapshot.h): "lockbroker state <version> <bytes> <checksum>", of the text behind it. A
 * version can be read by the one before it and by the one after it (as said above). The checksum distinguishes a whole text
 * from a garbled one, and says nothing about its writer: everybody can make one. Nobody is served while it is made, so it
 * is a fast one.
 */

enum { SEAL_VERSION = 1 };

/* Of any bytes, for such a purpose. */
uint64_t seal_checksum(struct slice bytes);
/* Leaves room for the line; then it is written, for all that was appended since. Returns where the room is. */
size_t seal_begin(struct bytes *text);
void seal_end(struct bytes *text, size_t begin);
/* The text behind the line; without data if that does not fit, and *why says why. */
struct slice seal_open(struct slice text, struct bytes *why);
