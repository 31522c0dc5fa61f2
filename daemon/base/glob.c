/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob.h"

#include "base/mem.h"

enum { BYTES = 256, WORD_BITS = 64, CLASS_WORDS = BYTES / WORD_BITS };

struct glob {
	struct slice pattern;
	size_t memory;
	size_t words;                   /* of a row; 0: nothing matches */
	size_t last;                    /* the place behind all elements */
	uint64_t stars[GLOB_WORDS_MAX]; /* places that stay */
	unsigned char row_of[BYTES];    /* bytes that the same elements accept have one row */
	uint64_t rows[];                /* of each, a bit for each element that accepts it; then the pattern */
};

/* ---- elements ---- */

static void class_add(uint64_t class[CLASS_WORDS], size_t low, size_t high)
{
	for (size_t w = low / WORD_BITS; w <= high / WORD_BITS; w++) {
		uint64_t from = w == low / WORD_BITS ? UINT64_MAX << low % WORD_BITS : UINT64_MAX;
		uint64_t to = w == high / WORD_BITS ? UINT64_MAX >> (WORD_BITS - 1 - high % WORD_BITS) : UINT64_MAX;

		class[w] |= from & to;
	}
}

/* `*at` is behind the opening bracket; it is moved behind the class. One that is not closed ends with the pattern. */
static void read_class(struct slice pattern, size_t *at, uint64_t class[CLASS_WORDS])
{
	const unsigned char *p = (const unsigned char *)pattern.data;
	size_t i = *at, end = pattern.len;
	bool negated = i < end && p[i] == '^';

	for (i += negated; i < end && p[i] != ']'; i++) {
		unsigned char low = p[i], high = p[i];

		if (low == '\\' && i + 1 < end) {
			low = high = p[++i];
		} else if (i + 2 < end && p[i + 1] == '-') {
			high = p[i + 2];
			i += 2;
		}
		class_add(class, low < high ? low : high, low < high ? high : low);
	}
	*at = i < end ? i + 1 : end;
	for (size_t w = 0; negated && w < CLASS_WORDS; w++)
		class[w] = ~class[w];
}

/* The bytes that the element at `*at`, which is no star, accepts; `*at` is moved behind it. */
static void read_element(struct slice pattern, size_t *at, uint64_t class[CLASS_WORDS])
{
	unsigned char element = (unsigned char)pattern.data[(*at)++];

	if (element == '?') {
		class_add(class, 0, BYTES - 1);
	} else if (element == '[') {
		read_class(pattern, at, class);
	} else {
		/* At the end of the pattern a backslash stands for itself. */
		if (element == '\\' && *at < pattern.len)
			element = (unsigned char)pattern.data[(*at)++];
		class_add(class, element, element);
	}
}

/* ---- compiled ---- */

/* A row for each byte that other elements accept than the byte before: of the places where classes begin and end. */
struct edges {
	uint64_t at[BYTES][GLOB_WORDS_MAX];
};

static void add_edges(struct edges *e, const uint64_t class[CLASS_WORDS], size_t element)
{
	uint64_t before = 0;

	for (size_t w = 0; w < CLASS_WORDS; w++) {
		for (uint64_t edges = class[w] ^ (class[w] << 1 | before); edges; edges &= edges - 1)
			e->at[w * WORD_BITS + (size_t)__builtin_ctzll(edges)][element / WORD_BITS] |=
				UINT64_C(1) << element % WORD_BITS;
		before = class[w] >> (WORD_BITS - 1);
	}
}

/* Puts the rows where the edges were, one behind the other. Returns how many. */
static size_t make_rows(struct edges *e, struct glob *g)
{
	uint64_t row[GLOB_WORDS_MAX] = { 0 };
	size_t count = 0;

	for (size_t byte = 0; byte < BYTES; byte++) {
		uint64_t changes = 0;

		for (size_t w = 0; w < g->words; w++) {
			changes |= e->at[byte][w];
			row[w] ^= e->at[byte][w];
		}
		if (changes || !count)
			memcpy(e->at[count++], row, sizeof(row));
		g->row_of[byte] = (unsigned char)(count - 1);
	}
	return count;
}

struct glob *glob_new(struct slice pattern)
{
	struct edges edges = { 0 };
	struct glob head = { 0 }, *g;
	size_t at = 0, rows;
	char *text;

	while (at < pattern.len && head.last <= GLOB_ELEMENTS_MAX) {
		uint64_t class[CLASS_WORDS] = { 0 };

		if (pattern.data[at] == '*') {
			head.stars[head.last / WORD_BITS] |= UINT64_C(1) << head.last % WORD_BITS;
			at++;
			continue;
		}
		read_element(pattern, &at, class);
		if (head.last < GLOB_ELEMENTS_MAX)
			add_edges(&edges, class, head.last);
		head.last++;
	}
	head.words = head.last > GLOB_ELEMENTS_MAX ? 0 : head.last / WORD_BITS + 1;
	rows = make_rows(&edges, &head);
	head.memory = sizeof(head) + rows * head.words * sizeof(uint64_t) + pattern.len;
	g = mem_new(head.memory);
	*g = head;
	for (size_t i = 0; i < rows && g->words; i++)
		memcpy(&g->rows[i * g->words], edges.at[i], g->words * sizeof(uint64_t));
	text = (char *)&g->rows[rows * g->words];
	if (pattern.len)
		memcpy(text, pattern.data, pattern.len);
	g->pattern = (struct slice){ text, pattern.len };
	return g;
}

void glob_free(struct glob *g)
{
	mem_free(g);
}

struct slice glob_pattern(const struct glob *g)
{
	return g->pattern;
}

size_t glob_memory(const struct glob *g)
{
	return g ? g->memory : 0;
}

/* ---- matched ---- */

static bool has(const uint64_t *places, size_t place)
{
	return places[place / WORD_BITS] >> place % WORD_BITS & 1;
}

/* The places behind one more byte, whose row that is; all are in so many words. False: there is none. */
static bool pass_byte(const struct glob *g, const uint64_t *row, uint64_t *places, size_t words)
{
	uint64_t carry = 0, any = 0;

	for (size_t w = 0; w < words; w++) {
		uint64_t moved = places[w] & row[w];

		places[w] = (places[w] & g->stars[w]) | moved << 1 | carry;
		carry = moved >> (WORD_BITS - 1);
		any |= places[w];
	}
	return any != 0;
}

bool glob_matches(const struct glob *g, struct slice text, size_t *steps)
{
	uint64_t places[GLOB_WORDS_MAX] = { 1 };

	if (!g)
		return true;
	if (!g->words)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		const uint64_t *row = &g->rows[g->row_of[(unsigned char)text.data[i]] * g->words];
		/* A place is not beyond what was matched. */
		size_t reached = (i + 1) / WORD_BITS + 1, words = reached < g->words ? reached : g->words;

		if (has(places, g->last) && has(g->stars, g->last))
			return true;
		*steps += words;
		if (!pass_byte(g, row, places, words))
			return false;
	}
	return has(places, g->last);
}

bool glob_is_closed(struct slice pattern)
{
	bool open = false;

	for (size_t i = 0; i < pattern.len; i++) {
		if (pattern.data[i] == '\\')
			i++;
		else if (pattern.data[i] == (open ? ']' : '['))
			open = !open;
	}
	return !open;
}
