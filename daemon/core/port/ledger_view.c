/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/ledger_view.h"

#include "base/mem.h"

enum { VERSION_BITS = 16 };

/* How much of each type comes before its text. */
static const size_t fixed[LEDGER_TYPES] = {
	[LEDGER_CLIENT] = sizeof(struct ledger_client), [LEDGER_LOCK] = sizeof(struct ledger_lock),
	[LEDGER_CLAIM] = sizeof(struct ledger_claim),   [LEDGER_GRANT] = sizeof(struct ledger_grant),
	[LEDGER_OBSERVER] = sizeof(struct ledger_observer), [LEDGER_LETTER] = sizeof(struct ledger_letter),
};

static size_t text_of(const struct ledger_record *r, enum ledger_type type)
{
	switch (type) {
	case LEDGER_CLIENT:
		return ledger_view_client(r)->length;
	case LEDGER_LOCK:
		return ledger_view_lock(r)->length;
	case LEDGER_CLAIM:
		return ledger_view_claim(r)->length;
	case LEDGER_GRANT:
		return ledger_view_grant(r)->length;
	case LEDGER_LETTER:
		return ledger_view_letter(r)->length;
	case LEDGER_OBSERVER:
	case LEDGER_NONE:
	case LEDGER_TYPES:
		break;
	}
	return 0;
}

/* The cell is of that size, and has a record. */
static bool is_whole(const struct ledger_record *r, unsigned int class)
{
	size_t size = (size_t)LEDGER_CELL_MIN << class;
	enum ledger_type type = LEDGER_TYPE(r->word);

	if (type >= LEDGER_TYPES || LEDGER_CLASS(r->word) != class || r->word & LEDGER_PRIVATE)
		return false;
	return fixed[type] <= size && text_of(r, type) <= size - fixed[type];
}

static void add(struct ledger_list *l, const struct ledger_record *r, size_t *cap)
{
	if (l->count == *cap) {
		*cap = *cap ? *cap * 2 : 64;
		l->list = mem_resize(l->list, *cap * sizeof(l->list[0]));
	}
	l->list[l->count++] = r;
}

static bool refuse(struct bytes *why, const char *what)
{
	bytes_text(why, what);
	return false;
}

static bool read_chunk(struct ledger_view *v, const char *chunk, size_t caps[LEDGER_TYPES], struct bytes *why)
{
	uint64_t word = *(const uint64_t *)(const void *)chunk;
	size_t class = word - LEDGER_CHUNK;

	/* Its cells were being laid out, or nobody came so far. */
	if (!word)
		return true;
	if (word < LEDGER_CHUNK || class >= LEDGER_CLASSES)
		return refuse(why, "a part of it is garbled");
	for (size_t at = LEDGER_CELLS_AT; at + (LEDGER_CELL_MIN << class) <= LEDGER_CHUNK_BYTES;
	     at += LEDGER_CELL_MIN << class) {
		const struct ledger_record *r = (const struct ledger_record *)(const void *)(chunk + at);
		enum ledger_type type = LEDGER_TYPE(r->word);

		if (type == LEDGER_NONE)
			continue;
		if (!is_whole(r, (unsigned int)class))
			return refuse(why, "a record in it is garbled");
		add(&v->of[type], r, &caps[type]);
	}
	return true;
}

/* The one that counts comes before what it replaced. */
static int by_number(const void *a, const void *b)
{
	const struct ledger_record *x = *(const struct ledger_record *const *)a,
				   *y = *(const struct ledger_record *const *)b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->word < y->word) - (x->word > y->word);
}

static bool sort(struct ledger_list *l, struct bytes *why)
{
	const struct ledger_record *replaced = NULL;
	size_t kept = 0;

	if (l->count)
		qsort(l->list, l->count, sizeof(l->list[0]), by_number);
	for (size_t i = 0; i < l->count; i++) {
		if (kept && l->list[kept - 1]->number == l->list[i]->number) {
			if (replaced == l->list[kept - 1] ||
			    LEDGER_GENERATION(l->list[i]->word) == LEDGER_GENERATION(l->list[kept - 1]->word))
				return refuse(why, "it has one record too often");
			replaced = l->list[kept - 1];
			continue;
		}
		l->list[kept++] = l->list[i];
	}
	l->count = kept;
	return true;
}

static bool read_head(const struct ledger_view *v, size_t bytes, struct bytes *why)
{
	if (bytes < LEDGER_CHUNK_BYTES ||
	    (v->head->magic && v->head->magic >> VERSION_BITS != LEDGER_MAGIC >> VERSION_BITS))
		return refuse(why, "it is no ledger");
	if (!v->head->magic)
		return refuse(why, "the process that wrote it ended before it was complete");
	if (v->head->magic != LEDGER_MAGIC)
		return refuse(why, "it is of another version");
	if (v->head->missing)
		return refuse(why, "there was no room for all of it");
	return true;
}

struct ledger_view *ledger_view_new(const void *memory, size_t bytes, struct bytes *why)
{
	struct ledger_view *v = mem_new(sizeof(*v));
	size_t caps[LEDGER_TYPES] = { 0 };
	bool good;

	bytes_clear(why);
	v->head = memory;
	good = read_head(v, bytes, why);
	for (size_t at = LEDGER_CHUNK_BYTES; good && at + LEDGER_CHUNK_BYTES <= bytes; at += LEDGER_CHUNK_BYTES)
		good = read_chunk(v, (const char *)memory + at, caps, why);
	for (int type = 0; good && type < LEDGER_TYPES; type++)
		good = sort(&v->of[type], why);
	if (good)
		return v;
	ledger_view_free(v);
	return NULL;
}

void ledger_view_free(struct ledger_view *v)
{
	if (!v)
		return;
	for (int type = 0; type < LEDGER_TYPES; type++)
		mem_free(v->of[type].list);
	mem_free(v);
}

bool ledger_view_find(const struct ledger_view *v, enum ledger_type type, uint64_t number, size_t *ret)
{
	const struct ledger_list *l = &v->of[type];
	size_t low = 0, high = l->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->list[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return low < l->count && l->list[low]->number == number;
}
