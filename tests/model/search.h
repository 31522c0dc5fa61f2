/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search, breadth first, of all states that the steps of a model lead to. A state is a run of bytes: two are the same if
 * their bytes are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct search {
	size_t bytes;      /* of a state */
	uint32_t max;      /* states; more than that are bad */
	uint32_t count, at; /* those that were found; the one whose steps are looked at */
	uint8_t *states;
	uint32_t *parents, *table;
	const char **steps;
	const char *bad, *bad_step; /* what was found first, after the state `at` and the step that follows */
};

void search_begin(struct search *s, size_t bytes, uint32_t max, const void *start);
/* The next state whose steps are to be looked at. False: there is none, or something bad was found. */
bool search_next(struct search *s, void *ret);
/* A step leads from the state that search_next() returned last to this one, which is bad unless `bad` is NULL. */
void search_add(struct search *s, const void *state, const char *step, const char *bad);
/* What was bad; NULL: nothing. With `tell`, prints the steps to that. */
const char *search_end(struct search *s, uint32_t *ret_count, bool tell);
