/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "session_page.h"

#include <string.h>

/* The reader does not wait for a writer that was stopped half-way. */
enum { READ_TRIES = 1000 };

_Static_assert(sizeof(struct session_page) == SESSION_PAGE_BYTES, "readers of other versions map that much");

void session_page_init(struct session_page *page, const uint8_t id[SESSION_PAGE_ID_BYTES])
{
	*page = (struct session_page){ .magic = SESSION_PAGE_MAGIC, .version = SESSION_PAGE_VERSION };
	memcpy(page->id, id, sizeof(page->id));
}

void session_page_id_text(const uint8_t id[SESSION_PAGE_ID_BYTES], char ret[SESSION_PAGE_ID_CHARS + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SESSION_PAGE_ID_BYTES; i++) {
		ret[2 * i] = digits[id[i] >> 4];
		ret[2 * i + 1] = digits[id[i] & 15];
	}
	ret[SESSION_PAGE_ID_CHARS] = '\0';
}

bool session_page_is(const struct session_page *page, struct slice id)
{
	char text[SESSION_PAGE_ID_CHARS + 1];

	session_page_id_text(page->id, text);
	return slice_eq(id, slice_of(text));
}

/* It is odd already if a writer was killed while it wrote. */
static void store(struct session_page *page, uint64_t epoch, uint64_t state, int64_t safe_until_ns)
{
	uint64_t odd = page->sequence | 1;

	__atomic_store_n(&page->sequence, odd, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&page->epoch, epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&page->state, state, __ATOMIC_RELAXED);
	__atomic_store_n(&page->safe_until_ns, safe_until_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&page->sequence, odd + 1, __ATOMIC_RELEASE);
}

void session_page_write(struct session_page *page, const struct session_view *view)
{
	store(page, view->epoch, (uint64_t)view->state, view->safe_until_ns);
}

/*
 * A page that was half written has the epoch, and perhaps the state, of the later of two views. That promises nothing that
 * neither did: only a session that was lost has another epoch, and no grant has that one yet; and a state that can be
 * relied on has followed one that cannot with a safe_until of 0.
 */
void session_page_move(struct session_page *page)
{
	bool proven =
		page->state == SESSION_SAFE || page->state == SESSION_JEOPARDY || page->state == SESSION_PAGE_MOVED;

	store(page, page->epoch, SESSION_PAGE_MOVED, proven ? page->safe_until_ns : 0);
}

bool session_page_read(const struct session_page *page, struct session_view *ret)
{
	if (page->magic != SESSION_PAGE_MAGIC || page->version != SESSION_PAGE_VERSION)
		return false;
	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t before = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE), state;
		struct session_view view;

		view.epoch = __atomic_load_n(&page->epoch, __ATOMIC_RELAXED);
		state = __atomic_load_n(&page->state, __ATOMIC_RELAXED);
		view.safe_until_ns = __atomic_load_n(&page->safe_until_ns, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if ((before & 1) || before != __atomic_load_n(&page->sequence, __ATOMIC_RELAXED))
			continue;
		if (state > SESSION_PAGE_MOVED)
			return false;
		view.moved = state == SESSION_PAGE_MOVED;
		view.state = view.moved ? SESSION_JEOPARDY : (enum session_state)state;
		*ret = view;
		return true;
	}
	return false;
}
