/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a lock's directory. Its data name the kind from its creation on; one name is of one kind at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/slice.h"

/* Each kind: its word in a directory's data, and how sentences call it. Its rule is <word>_rule (lock/kind_rule.h). */
#define KINDS(X) \
	X(LOCK, lock, "a lock") \
	X(ELECTION, election, "an election") \
	X(SEMAPHORE, semaphore, "a semaphore")

enum kind {
#define X(name, word, noun) KIND_##name,
	KINDS(X)
#undef X
};

enum { KINDS_MAX = 8 }; /* the tables of kinds have room for so many; the simulator has one more than the product */

struct kind_words {
	const char *word; /* NULL: there is no such kind */
	const char *noun;
};

extern const struct kind_words kind_words[KINDS_MAX];

static inline const char *kind_word(enum kind kind)
{
	return kind_words[kind].word;
}

static inline const char *kind_noun(enum kind kind)
{
	return kind_words[kind].noun;
}

static inline bool kind_is_known(uint64_t kind)
{
	return kind < KINDS_MAX && kind_words[kind].word;
}

/* False: no kind has that word. */
bool kind_of_word(struct slice word, enum kind *ret);
