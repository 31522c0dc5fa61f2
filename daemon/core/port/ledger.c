/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/ledger.h"

#include <assert.h>

#include "base/cold.h"
#include "base/mem.h"

/* A ceiling is raised by that much more than is needed, so that it is raised seldom. */
enum { CEILING_STEP = 1024 };

struct ledger_private {
	struct ledger_private *before, *after;
	size_t bytes;
	_Alignas(16) char cell[];
};

void (*ledger_stored)(void *arg);

static size_t cell_size(unsigned int class)
{
	return (size_t)LEDGER_CELL_MIN << class;
}

/* In a chunk. */
static size_t cell_count(unsigned int class)
{
	return (LEDGER_CHUNK_BYTES - LEDGER_CELLS_AT) / cell_size(class);
}

static struct ledger_record *cell_at(char *chunk, unsigned int class, size_t i)
{
	return (struct ledger_record *)(void *)(chunk + LEDGER_CELLS_AT + i * cell_size(class));
}

static unsigned int class_of(size_t bytes)
{
	unsigned int class = 0;

	while (cell_size(class) < bytes)
		class ++;
	return class;
}

void ledger_add(struct ledger *l, void *memory, size_t bytes)
{
	assert(bytes % LEDGER_CHUNK_BYTES == 0);
	l->parts = mem_resize(l->parts, (l->part_count + 1) * sizeof(l->parts[0]));
	l->room += bytes;
	l->parts[l->part_count++] = (struct ledger_part){ memory, (char *)memory + bytes };
}

struct ledger *ledger_new(void *memory, size_t bytes)
{
	struct ledger *l = mem_new(sizeof(*l));

	assert(bytes >= LEDGER_CHUNK_BYTES);
	l->head = memory;
	ledger_add(l, (char *)memory + LEDGER_CHUNK_BYTES, bytes - LEDGER_CHUNK_BYTES);
	return l;
}

void ledger_free(struct ledger *l)
{
	struct ledger_private *p;

	if (!l)
		return;
	while ((p = l->private)) {
		l->private = p->after;
		mem_free(p);
	}
	for (size_t i = 0; i < LEDGER_CLASSES; i++) {
		mem_free(l->cells[i].list);
		mem_free(l->cells[i].chunks);
	}
	mem_free(l->parts);
	mem_free(l);
}

size_t ledger_room(const struct ledger *l)
{
	return l->room;
}

size_t ledger_records(const struct ledger *l)
{
	const struct ledger_private *p;
	size_t count = 0;

	for (size_t i = 0; i < LEDGER_CLASSES; i++)
		count += l->cells[i].cap - l->cells[i].count;
	for (p = l->private; p; p = p->after)
		count++;
	return count;
}

bool ledger_full(const struct ledger *l)
{
	return l->head->missing > 0;
}

void ledger_session(struct ledger *l, int64_t session)
{
	if (l)
		ledger_store(l, &l->head->session, (uint64_t)session);
}

void ledger_state(struct ledger *l, uint64_t epoch, bool jeopardy)
{
	if (!l)
		return;
	ledger_store(l, &l->head->epoch, epoch);
	ledger_store(l, &l->head->jeopardy, jeopardy);
}

void ledger_draining(struct ledger *l, bool draining)
{
	if (l)
		ledger_store(l, &l->head->draining, draining);
}

static void store_changed(struct ledger *l, uint64_t *at, int64_t number)
{
	if (*at != (uint64_t)number)
		ledger_store(l, at, (uint64_t)number);
}

void ledger_zxids(struct ledger *l, int64_t floor, int64_t seen, int64_t own)
{
	if (!l)
		return;
	store_changed(l, &l->head->floor, floor);
	store_changed(l, &l->head->zxid, seen);
	store_changed(l, &l->head->own, own);
}

void ledger_lasting(struct ledger *l, uint64_t count)
{
	if (l)
		ledger_store(l, &l->head->lasting, count);
}

/* The chunk becomes free cells. Its word is still to be stored. */
static void add_cells(struct ledger_cells *cells, unsigned int class, char *chunk)
{
	cells->cap += cell_count(class);
	cells->list = mem_resize(cells->list, cells->cap * sizeof(void *));
	cells->chunks = mem_resize(cells->chunks, (cells->chunk_count + 1) * sizeof(char *));
	cells->chunks[cells->chunk_count++] = chunk;
	for (size_t i = cell_count(class); i-- > 0;) {
		struct ledger_record *r = cell_at(chunk, class, i);

		r->word = (uint64_t)class << 4;
		r->number = cells->count;
		cells->list[cells->count++] = r;
	}
}

/* Parts that are used up go. */
static struct ledger_part *last_part(struct ledger *l)
{
	while (l->part_count && l->parts[l->part_count - 1].next == l->parts[l->part_count - 1].end)
		l->part_count--;
	return l->part_count ? &l->parts[l->part_count - 1] : NULL;
}

/* At most so many bytes of unused chunks in a row, which are used from now on. NULL: there are none. */
static void *take_unused(struct ledger *l, size_t bytes, size_t *ret_bytes)
{
	struct ledger_part *part = last_part(l);
	size_t count = bytes / LEDGER_CHUNK_BYTES * LEDGER_CHUNK_BYTES;

	*ret_bytes = 0;
	if (!part || !count)
		return NULL;
	if ((size_t)(part->end - part->next) < count)
		count = (size_t)(part->end - part->next);
	part->next += count;
	l->room -= count;
	*ret_bytes = count;
	return part->next - count;
}

/* A chunk becomes cells of that size. False: there is none. */
static bool divide(struct ledger *l, unsigned int class)
{
	size_t bytes;
	char *chunk = take_unused(l, LEDGER_CHUNK_BYTES, &bytes);

	if (!chunk)
		return false;
	add_cells(&l->cells[class], class, chunk);
	ledger_store(l, (uint64_t *)(void *)chunk, LEDGER_CHUNK + class);
	return true;
}

/* That it is missing is known before anything can rest on it. */
static void *take_private(struct ledger *l, size_t bytes)
{
	struct ledger_private *p = mem_new(sizeof(*p) + bytes);
	struct ledger_record *r = (struct ledger_record *)(void *)p->cell;

	p->bytes = bytes;
	r->word = LEDGER_PRIVATE;
	p->after = l->private;
	if (p->after)
		p->after->before = p;
	l->private = p;
	ledger_store(l, &l->head->missing, l->head->missing + 1);
	return r;
}

/* NULL: there is no room. */
static void *take_shared(struct ledger *l, size_t bytes)
{
	unsigned int class = class_of(bytes);
	struct ledger_cells *cells = &l->cells[class];

	if (class >= LEDGER_CLASSES || (!cells->count && !divide(l, class)))
		return NULL;
	return cells->list[--cells->count];
}

COLD void *ledger_take_any(struct ledger *l, size_t bytes)
{
	void *cell = take_shared(l, bytes);

	return cell ? cell : take_private(l, bytes);
}

static struct ledger_private *private_of(struct ledger_record *r)
{
	return (struct ledger_private *)(void *)((char *)r - offsetof(struct ledger_private, cell));
}

void *ledger_move(struct ledger *l, void *record)
{
	struct ledger_record *old = record, *r;
	size_t bytes;

	if (!old || !(old->word & LEDGER_PRIVATE))
		return record;
	bytes = private_of(old)->bytes;
	r = take_shared(l, bytes);
	if (!r)
		return record;
	memcpy(r + 1, old + 1, bytes - sizeof(*r));
	r->number = old->number;
	ledger_publish(l, r, LEDGER_TYPE(old->word));
	ledger_drop_private(l, old);
	return r;
}

COLD void ledger_drop_private(struct ledger *l, struct ledger_record *r)
{
	struct ledger_private *p = private_of(r);

	if (p->before)
		p->before->after = p->after;
	else
		l->private = p->after;
	if (p->after)
		p->after->before = p->before;
	mem_free(p);
	ledger_store(l, &l->head->missing, l->head->missing - 1);
}

COLD void ledger_raise(struct ledger *l, enum ceiling which, uint64_t number)
{
	ledger_store(l, &l->head->ceilings[which], number + CEILING_STEP);
}

/* ---- how it becomes smaller ---- */

/* Of what is unused, at once. */
enum { PIECE_BYTES = 16 * LEDGER_CHUNK_BYTES };

bool ledger_may_shrink(const struct ledger *l, size_t bytes)
{
	size_t unused = l->room, used = 0;

	for (unsigned int class = 0; class < LEDGER_CLASSES; class++) {
		const struct ledger_cells *cells = &l->cells[class];

		unused += cells->count * cell_size(class);
		used += (cells->cap - cells->count) * cell_size(class);
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
	for (size_t i = 0; i < cell_count(class); i++)
		if (LEDGER_TYPE(cell_at(chunk, class, i)->word) != LEDGER_NONE)
			return false;
	return true;
}

/* The last one of the list comes into the place of each. */
static void remove_cells(struct ledger_cells *cells, unsigned int class, char *chunk)
{
	for (size_t i = 0; i < cell_count(class); i++) {
		struct ledger_record *r = cell_at(chunk, class, i), *last = cells->list[--cells->count];

		assert(cells->list[r->number] == r);
		cells->list[r->number] = last;
		last->number = r->number;
	}
	cells->cap -= cell_count(class);
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
		*ret = take_unused(l, l->room - keep < PIECE_BYTES ? l->room - keep : PIECE_BYTES, ret_bytes);
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
