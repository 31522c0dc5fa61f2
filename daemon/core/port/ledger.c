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

static unsigned int class_of(size_t bytes)
{
	unsigned int class = 0;

	while (ledger_cell_size(class) < bytes)
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
	cells->cap += ledger_cell_count(class);
	cells->list = mem_resize(cells->list, cells->cap * sizeof(void *));
	cells->chunks = mem_resize(cells->chunks, (cells->chunk_count + 1) * sizeof(char *));
	cells->chunks[cells->chunk_count++] = chunk;
	for (size_t i = ledger_cell_count(class); i-- > 0;) {
		struct ledger_record *r = ledger_cell(chunk, class, i);

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

void *ledger_unused(struct ledger *l, size_t bytes, size_t *ret_bytes)
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
	char *chunk = ledger_unused(l, LEDGER_CHUNK_BYTES, &bytes);

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
