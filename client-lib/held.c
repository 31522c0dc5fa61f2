#include "held.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, HELD_FIRST = 4 };

static const struct session_page *map(int fd)
{
	struct session_view view;
	struct stat st;
	void *at;

	if (fstat(fd, &st) < 0 || st.st_size != SESSION_PAGE_BYTES)
		return NULL;
	at = mmap(NULL, SESSION_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (session_page_read(at, &view))
		return at;
	munmap(at, SESSION_PAGE_BYTES);
	return NULL;
}

void holdings_map(struct holdings *h, struct slice path)
{
	char name[PATH_MAX];
	int fd;

	if (path.len == 0 || path.len >= sizeof(name))
		return;
	memcpy(name, path.data, path.len);
	name[path.len] = '\0';
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	h->page = map(fd);
	close(fd);
}

static struct held *find(const struct holdings *h, struct slice name)
{
	for (size_t i = 0; i < h->count; i++)
		if (slice_eq(slice_of(h->list[i].name), name))
			return &h->list[i];
	return NULL;
}

static struct held *grow(struct holdings *h)
{
	if (h->count == h->cap) {
		h->cap = h->cap ? h->cap * 2 : HELD_FIRST;
		h->list = realloc(h->list, h->cap * sizeof(*h->list));
		if (!h->list)
			abort();
	}
	return &h->list[h->count++];
}

void holdings_add(struct holdings *h, const char *name, int64_t token)
{
	struct session_view view = { 0 };
	struct held *held = find(h, slice_of(name));

	if (!h->page || !session_page_read(h->page, &view))
		return;
	if (!held) {
		held = grow(h);
		held->name = strdup(name);
		if (!held->name)
			abort();
	} else if (held->token == token) {
		held->depth++;
		return;
	}
	held->token = token;
	held->epoch = view.epoch;
	held->depth = 1;
}

void holdings_remove(struct holdings *h, struct slice name, int64_t token)
{
	struct held *held = find(h, name);

	if (!held || (token >= 0 && held->token != token))
		return;
	free(held->name);
	*held = h->list[--h->count];
}

bool holdings_leave(struct holdings *h, struct slice name, int64_t now_ns)
{
	struct held *held = find(h, name);

	if (!held || holdings_valid_ms(h, held->name, now_ns) == 0)
		return false;
	holdings_left(h, name, held->depth - 1);
	return true;
}

void holdings_left(struct holdings *h, struct slice name, int64_t depth)
{
	struct held *held = find(h, name);

	if (held && depth > 0)
		held->depth = depth;
	else
		holdings_remove(h, name, -1);
}

int64_t holdings_valid_ms(const struct holdings *h, const char *name, int64_t now_ns)
{
	const struct held *held = find(h, slice_of(name));
	struct session_view view;

	if (!held || !session_page_read(h->page, &view) || view.epoch != held->epoch)
		return 0;
	if (view.state != SESSION_PAGE_SAFE && view.state != SESSION_PAGE_JEOPARDY)
		return 0;
	if (view.safe_until_ns == INT64_MAX)
		return INT64_MAX / NS_PER_MS;
	return view.safe_until_ns > now_ns ? (view.safe_until_ns - now_ns) / NS_PER_MS : 0;
}

void holdings_free(struct holdings *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->list[i].name);
	free(h->list);
	if (h->page)
		munmap((void *)(uintptr_t)h->page, SESSION_PAGE_BYTES);
	*h = (struct holdings){ 0 };
}
