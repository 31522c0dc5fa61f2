/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Entries of systemd's journal, as journalctl(1) writes them with `-o export`: "NAME=value" in a line; or the name in a
 * line, the length in eight bytes, the lowest first, and the value. An empty line ends the entry. So a value can have any
 * bytes, and nothing has to be decoded.
 *
 * journalctl is run without a shell: its words are a vector, and its standard input is /dev/null.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/bytes.h"
#include "protocol/slice.h"

/* Bytes of a value, at most: systemd-journald takes longer ones, lockbrokerd sends none. */
enum { JOURNAL_VALUE_MAX = 1024 * 1024 };

struct journal_entry {
	struct bytes text; /* names and values, one behind the other */
	struct journal_field {
		size_t at, name_len, value_len;
	} * fields;
	size_t count, cap;
};

/* Its value, as long as the entry; empty: it has none. Of a field that is there twice, the first one. */
struct slice journal_field(const struct journal_entry *entry, const char *name);
/* Its number, from 0 on; -1: it has none. */
int64_t journal_number(const struct journal_entry *entry, const char *name);
/* Moves the fields to the entry that is returned; `entry` is as empty as a new one. */
struct journal_entry journal_entry_take(struct journal_entry *entry);
void journal_entry_free(struct journal_entry *entry);

/*
 * Takes the next entry off `text`; `used` says how much of it that was. JOURNAL_MORE: it is not all there. JOURNAL_BROKEN:
 * it is no entry.
 */
enum journal_result { JOURNAL_ENTRY, JOURNAL_MORE, JOURNAL_BROKEN };
enum journal_result journal_parse(struct journal_entry *entry, struct slice text, size_t *used);

/*
 * Runs journalctl with these words, NULL at their end, and calls `take` for each entry, until it says false. Returns 0, or
 * an exit status, after it said why. The warnings of journalctl about files are said, too.
 */
int journal_read(char *const *words, bool (*take)(void *context, struct journal_entry *entry), void *context);
