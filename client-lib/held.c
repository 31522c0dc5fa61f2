/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "held.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/resp.h"

enum { NS_PER_MS = 1000000, HELD_FIRST = 4 };

static const struct session_page *map(int fd, struct slice id, struct session_view *ret)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) < 0 || st.st_size != SESSION_PAGE_BYTES)
		return NULL;
	at = mmap(NULL, SESSION_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (session_page_is(at, id) && session_page_read(at, ret))
		return at;
	munmap(at, SESSION_PAGE_BYTES);
	return NULL;
}

static void unmap(struct holdings *h)
{
	if (h->page)
		munmap((void *)(uintptr_t)h->page, SESSION_PAGE_BYTES);
	h->page = NULL;
}

void holdings_map(struct holdings *h, struct slice path, struct slice id)
{
	char name[PATH_MAX];
	int fd;

	unmap(h);
	if (path.len == 0 || path.len >= sizeof(name))
		return;
	memcpy(name, path.data, path.len);
	name[path.len] = '\0';
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	h->page = map(fd, id, &h->seen);
	close(fd);
	for (size_t i = 0; h->page && i < h->count; i++)
		if (h->list[i].epoch == HELD_NO_EPOCH)
			h->list[i].epoch = h->seen.epoch;
}

/*
 * False: it cannot be read, since its writer was stopped or killed while it wrote. What it said last is right for as long
 * as that said.
 */
static bool look(struct holdings *h)
{
	return session_page_read(h->page, &h->seen);
}

bool holdings_moved(struct holdings *h)
{
	return h->page && look(h) && h->seen.moved;
}

static struct held *find(const struct holdings *h, struct slice name)
{
	for (size_t i = 0; i < h->count; i++)
		if (slice_eq((struct slice){ h->list[i].name, h->list[i].name_len }, name))
			return &h->list[i];
	return NULL;
}

static void grow(struct holdings *h)
{
	size_t cap = h->cap ? h->cap * 2 : HELD_FIRST;

	h->list = realloc(h->list, cap * sizeof(*h->list));
	if (!h->list)
		abort();
	memset(h->list + h->cap, 0, (cap - h->cap) * sizeof(*h->list));
	h->cap = cap;
}

/* The entry of that lock; it is made if there is none. */
static struct held *entry(struct holdings *h, struct slice name)
{
	struct held *held = find(h, name);

	if (held)
		return held;
	if (h->count == h->cap)
		grow(h);
	held = &h->list[h->count++];
	*held = (struct held){ .name = held->name, .name_room = held->name_room, .name_len = name.len, .token = -1 };
	if (held->name_room <= name.len) {
		held->name_room = name.len + 1;
		held->name = realloc(held->name, held->name_room);
		if (!held->name)
			abort();
	}
	memcpy(held->name, name.data, name.len);
	held->name[name.len] = '\0';
	return held;
}

static void forget_if_idle(struct holdings *h, struct held *held)
{
	struct held idle = *held;

	if (held->token >= 0 || held->waits || held->observed || held->gone || held->lost)
		return;
	*held = h->list[--h->count];
	h->list[h->count] = idle;
}

static void forget_grant(struct holdings *h, struct held *held)
{
	held->token = -1;
	forget_if_idle(h, held);
}

bool holdings_add(struct holdings *h, struct slice name, int64_t token, int64_t until_ns)
{
	struct held *held = entry(h, name);
	bool known = !h->page || (look(h) && !h->seen.moved);

	if (held->token == token) {
		held->depth++;
		if (held->until_ns < until_ns)
			held->until_ns = until_ns;
		return false;
	}
	held->token = token;
	held->gone = false;
	held->epoch = known ? h->seen.epoch : HELD_NO_EPOCH;
	held->until_ns = until_ns;
	held->depth = 1;
	return true;
}

void holdings_delegated(struct holdings *h, struct slice name, int64_t token, uint64_t epoch)
{
	struct held *held = entry(h, name);

	held->token = token;
	held->gone = false;
	held->epoch = epoch;
	held->until_ns = HELD_FOREVER;
	held->depth = 1;
}

bool holdings_once(const struct holdings *h, struct slice name, int64_t token)
{
	const struct held *held = find(h, name);

	return held && held->token == token && held->depth == 1;
}

void holdings_renew(struct holdings *h, struct slice name, int64_t until_ns)
{
	struct held *held = find(h, name);

	if (held)
		held->until_ns = until_ns;
}

void holdings_wait(struct holdings *h, struct slice name, int64_t until_ns)
{
	struct held *held = entry(h, name);

	held->waits = true;
	held->waits_until_ns = until_ns;
}

void holdings_granted(struct holdings *h, struct slice name, int64_t token)
{
	struct held *held = find(h, name);
	int64_t until_ns = held && held->waits ? held->waits_until_ns : HELD_FOREVER;

	if (held)
		held->waits = false;
	holdings_add(h, name, token, until_ns);
}

void holdings_unwait(struct holdings *h, struct slice name)
{
	struct held *held = find(h, name);

	if (!held)
		return;
	held->waits = false;
	forget_if_idle(h, held);
}

void holdings_remove(struct holdings *h, struct slice name, int64_t token)
{
	struct held *held = find(h, name);

	if (held && (token < 0 || held->token == token))
		forget_grant(h, held);
}

void holdings_gone(struct holdings *h, struct slice name, int64_t token)
{
	struct held *held = find(h, name);

	if (!held || held->token != token)
		return;
	held->token = -1;
	held->gone = true;
}

void holdings_told(struct holdings *h, struct slice name)
{
	struct held *held = find(h, name);

	if (!held)
		return;
	held->gone = false;
	forget_if_idle(h, held);
}

int64_t holdings_valid_ms(struct holdings *h, const char *name, int64_t now_ns)
{
	struct held *held = find(h, slice_of(name));
	const struct session_view *page = &h->seen;
	int64_t until_ns;

	if (!held || held->token < 0 || !h->page)
		return 0;
	if (look(h) && !page->moved && held->epoch == HELD_NO_EPOCH)
		held->epoch = page->epoch;
	if (page->epoch != held->epoch || (page->state != SESSION_SAFE && page->state != SESSION_JEOPARDY))
		return 0;
	until_ns = page->safe_until_ns < held->until_ns ? page->safe_until_ns : held->until_ns;
	if (until_ns == INT64_MAX)
		return INT64_MAX / NS_PER_MS;
	return until_ns > now_ns ? (until_ns - now_ns) / NS_PER_MS : 0;
}

bool holdings_unproven(struct holdings *h, const char *name, int64_t now_ns)
{
	const struct held *held = find(h, slice_of(name));

	if (!h->page)
		return true;
	if (!held || held->token < 0 || held->until_ns <= now_ns || holdings_valid_ms(h, name, now_ns) > 0)
		return false;
	return held->epoch == HELD_NO_EPOCH || h->seen.moved;
}

static void set_depth(struct holdings *h, struct held *held, int64_t depth)
{
	if (depth > 0)
		held->depth = depth;
	else
		forget_grant(h, held);
}

void holdings_leave(struct holdings *h, struct slice name)
{
	struct held *held = find(h, name);

	set_depth(h, held, held->depth - 1);
}

void holdings_left(struct holdings *h, struct slice name, int64_t depth)
{
	struct held *held = find(h, name);

	if (held)
		set_depth(h, held, depth);
}

void holdings_observe(struct holdings *h, struct slice name, bool on)
{
	struct held *held = on ? entry(h, name) : find(h, name);

	if (!held)
		return;
	held->observed = on;
	forget_if_idle(h, held);
}

static void add_event(struct bytes *events, const char *kind, const struct held *held, int64_t token)
{
	resp_push(events, 4, 3);
	resp_bulk(events, slice_of(kind));
	resp_bulk(events, (struct slice){ held->name, held->name_len });
	if (token >= 0) {
		resp_integer(events, token);
		resp_bulk(events, SLICE("connection"));
	} else {
		resp_bulk(events, slice_of(error_word(ERROR_UNAVAILABLE)));
		resp_bulk(events, SLICE("the connection to lockbrokerd ended"));
	}
}

static void disconnect(struct holdings *h, struct held *held, struct bytes *events)
{
	if (held->token >= 0)
		add_event(events, "lost", held, held->token);
	if (held->token >= 0 || held->gone) {
		held->token = -1;
		held->gone = false;
		h->lost_count += !held->lost;
		held->lost = true;
	}
	if (held->waits)
		add_event(events, "failed", held, -1);
	if (held->observed)
		add_event(events, "unobserved", held, -1);
	held->waits = held->observed = false;
	forget_if_idle(h, held);
}

/* From the last one: an entry that is forgotten makes room for the last. */
void holdings_disconnect(struct holdings *h, struct bytes *events)
{
	for (size_t i = h->count; i-- > 0;)
		disconnect(h, &h->list[i], events);
	unmap(h);
}

bool holdings_take_lost(struct holdings *h, struct slice name)
{
	struct held *held = h->lost_count ? find(h, name) : NULL;

	if (!held || !held->lost)
		return false;
	held->lost = false;
	h->lost_count--;
	forget_if_idle(h, held);
	return true;
}

void holdings_free(struct holdings *h)
{
	for (size_t i = 0; i < h->cap; i++)
		free(h->list[i].name);
	free(h->list);
	unmap(h);
	*h = (struct holdings){ 0 };
}
