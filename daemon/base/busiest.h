/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the events of names, in bounded memory: which names are the busiest, how often, for how long at most, and which
 * commands cause most of the events.
 *
 * There are BUSIEST_MAX counters. A name without one takes over the counter with the smallest count, and begins with that
 * count plus one (the space-saving algorithm): so a name of more than one part in BUSIEST_MAX of all events has a
 * counter. The events since it took the counter are its own for certain (`own`): these are shown.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/map.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

enum { BUSIEST_MAX = 256, BUSIEST_SHOWN = 20, BUSIEST_COMMANDS = 8, BUSIEST_COMMAND_BYTES = 16 };

struct busiest_command {
	char text[BUSIEST_COMMAND_BYTES]; /* without a 0 if it is as long; */
	uint64_t count;                   /* counted in the same way; 0: none */
};

struct busy {
	struct map_node node;
	struct timer rank; /* due_ns: the count, which includes the counts of earlier names */
	struct bytes name;
	uint64_t own, others; /* holds; of the other kind */
	int64_t longest_ms;
	struct busiest_command commands[BUSIEST_COMMANDS];
};

struct busiest {
	struct map names;
	struct heap ranks; /* the smallest count first */
	uint64_t own, others; /* of all names */
	int64_t longest_ms;   /* of names that have no counter any longer */
};

void busiest_init(struct busiest *b, const uint64_t key[2]);
void busiest_deinit(struct busiest *b);
/* `held_ms` below 0: it is of the other kind. */
void busiest_count(struct busiest *b, struct slice name, struct slice command, int64_t held_ms);
/* The busiest ones, the first one first; returns how many there are. They stay until the next count. */
size_t busiest_look(const struct busiest *b, const struct busy *ret[BUSIEST_SHOWN]);
/* The longest hold of the names that are not among these `count`. */
int64_t busiest_longest_of_others(const struct busiest *b, const struct busy *const *shown, size_t count);
/* Its most frequent commands, with commas between them. A blank or a comma in one becomes '?'. */
void busiest_commands(const struct busy *b, struct bytes *ret);
/* Forgets everything. */
void busiest_clear(struct busiest *b);
