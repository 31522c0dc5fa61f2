/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis's glob: * ? [abc] [^a-z] \x. It compares bytes, and case matters. A pattern is compiled once, in a few steps for
 * each of its bytes. A text is then matched in one pass: at most GLOB_WORDS_MAX steps for each of its bytes, whatever the
 * pattern is.
 *
 * An element matches one byte: it is a byte, a ? or a class. A place is the number of elements that have matched. The pass
 * keeps the set of places at which the bytes so far can end, as bits: a byte moves each place whose element accepts it, and
 * a place with a star stays.
 */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

/* A pattern of more elements matches nothing: a text that it could match is longer than any name. */
enum { GLOB_ELEMENTS_MAX = 512, GLOB_WORDS_MAX = GLOB_ELEMENTS_MAX / 64 + 1 };

struct glob;

/* The pattern is copied. Freed by glob_free(). */
struct glob *glob_new(struct slice pattern);
/* Takes NULL. */
void glob_free(struct glob *g);
/* NULL matches everything. The steps that it takes are added to *steps. */
bool glob_matches(const struct glob *g, struct slice text, size_t *steps);
/* The pattern, valid as long as the glob. */
struct slice glob_pattern(const struct glob *g);
/* The memory that it has; of NULL none. */
size_t glob_memory(const struct glob *g);
/* Each [ of the pattern has its ]. Otherwise it matches as in Redis, which is hardly intended. */
bool glob_is_closed(struct slice pattern);
