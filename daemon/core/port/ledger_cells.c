/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/ledger_cells.h"

#include <assert.h>

#include "base/mem.h"
#include "core/port/ledger.h"

/* Of what is unused, at once. */
enum { PIECE_BYTES = 16 * LEDGER_CHUNK_BYTES };

bool ledger_may_shrink(const struct ledger *l, size_t bytes)
{
	size_t unused = l->room, used = 0;

	for (unsigned int class = 0; class < LEDGER_CLASSES; class++) {
		const struct ledger_cells *cells = &l->cells[class];

		unused += cells->count * ledger_cell_size(class);
		used += (cells->cap - cells->count) * ledger_cell_size(class);
	}
	return unused >= bytes && unused > used;
}

void ledger_shrink_begin(struct ledger *l)
{
	for (unsigned int class = 0; class < LEDGER_CLASSES; class++)
		l->cells[class].look = l->cells[class].chunk_count;
}

static bool is_free(char *chunk, unsigned int class)
{
	for (size_t i = 0; i < ledger_cell_count(class); i++)
		if (LEDGER_TYPE(ledger_cell(chunk, class, i)->word) != LEDGER_NONE)
			return false;
	return true;
}

/* The last one of the list comes into the place of each. */
static void remove_cells(struct ledger_cells *cells, unsigned int class, char *chunk)
{
	for (size_t i = 0; i < ledger_cell_count(class); i++) {
		struct ledger_record *r = ledger_cell(chunk, class, i), *last = cells->list[--cells->count];

		assert(cells->list[r->number] == r);
		cells->list[r->number] = last;
		last->number = r->number;
	}
	cells->cap -= ledger_cell_count(class);
	if (cells->cap)
		cells->list = mem_resize(cells->list, cells->cap * sizeof(void *));
}

/* NULL: somebody uses it. */
static char *take_chunk(struct ledger *l, unsigned int class)
{
	struct ledger_cells *cells = &l->cells[class];
	size_t at = --cells->look;
	char *chunk = cells->chunks[at];

	if (!is_free(chunk, class))
		return NULL;
	ledger_store(l, (uint64_t *)(void *)chunk, 0);
	remove_cells(cells, class, chunk);
	cells->chunks[at] = cells->chunks[--cells->chunk_count];
	return chunk;
}

bool ledger_shrink(struct ledger *l, size_t keep, void **ret, size_t *ret_bytes)
{
	unsigned int class = 0;

	*ret_bytes = 0;
	if (l->room > keep) {
		*ret = ledger_unused(l, l->room - keep < PIECE_BYTES ? l->room - keep : PIECE_BYTES, ret_bytes);
		if (*ret_bytes)
			return true;
	}
	while (class < LEDGER_CLASSES && !l->cells[class].look)
		class ++;
	if (class == LEDGER_CLASSES)
		return false;
	*ret = take_chunk(l, class);
	*ret_bytes = *ret ? LEDGER_CHUNK_BYTES : 0;
	return true;
}
