/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash(const uint8_t *bytes, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15, word;

	for (size_t i = 0; i < len; i += sizeof(word)) {
		word = 0;
		memcpy(&word, bytes + i, len - i < sizeof(word) ? len - i : sizeof(word));
		h = (h ^ word) * 0xff51afd7ed558ccd;
		h ^= h >> 32;
	}
	return h;
}

static uint8_t *state_at(const struct search *s, uint32_t i)
{
	return s->states + (size_t)i * s->bytes;
}

static void find_or_add(struct search *s, const void *state, const char *step)
{
	uint64_t places = 2 * (uint64_t)s->max, i = hash(state, s->bytes) % places;

	for (; s->table[i]; i = (i + 1) % places)
		if (memcmp(state_at(s, s->table[i] - 1), state, s->bytes) == 0)
			return;
	if (s->count == s->max) {
		s->bad = "too many states";
		s->bad_step = step;
		return;
	}
	memcpy(state_at(s, s->count), state, s->bytes);
	s->parents[s->count] = s->at;
	s->steps[s->count] = step;
	s->table[i] = ++s->count;
}

static void *room(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

void search_begin(struct search *s, size_t bytes, uint32_t max, const void *start)
{
	s->bytes = bytes;
	s->max = max;
	s->count = s->at = 0;
	s->bad = s->bad_step = NULL;
	s->states = room(max, bytes);
	s->parents = room(max, sizeof(*s->parents));
	s->steps = room(max, sizeof(*s->steps));
	s->table = room(2 * (size_t)max, sizeof(*s->table));
	find_or_add(s, start, "start");
	s->at = UINT32_MAX;
}

bool search_next(struct search *s, void *ret)
{
	if (s->bad || s->at + 1 == s->count)
		return false;
	memcpy(ret, state_at(s, ++s->at), s->bytes);
	return true;
}

void search_add(struct search *s, const void *state, const char *step, const char *bad)
{
	if (s->bad)
		return;
	s->bad = bad;
	s->bad_step = step;
	if (!bad)
		find_or_add(s, state, step);
}

const char *search_end(struct search *s, uint32_t *ret_count, bool tell)
{
	*ret_count = s->count;
	if (tell && s->bad) {
		printf("%s after (the last first): %s", s->bad, s->bad_step);
		for (uint32_t i = s->at; i; i = s->parents[i])
			printf(" | %s", s->steps[i]);
		printf("\n");
	}
	free(s->states);
	free(s->parents);
	free((void *)s->steps);
	free(s->table);
	return s->bad;
}
