/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "delegations.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { BYTE_ROOM = 4096 };

_Static_assert(sizeof(struct delegations) <= 256, "each handle has one, also where nothing is delegated");

struct delegation_page *delegations_page(struct delegations *d)
{
	if (!d->page)
		return NULL;
	if (*d->ours)
		return d->page;
	/* A child after fork(), to which the page is not mapped. */
	d->page = NULL;
	munmap((void *)(uintptr_t)d->ours, BYTE_ROOM);
	d->refused = true;
	for (unsigned i = 0; i < DELEGATION_SLOTS; i++)
		d->slots[i].held = false;
	return NULL;
}

void delegations_map(struct delegations *d, int fd)
{
	struct stat st;
	void *page, *byte;

	if (fstat(fd, &st) < 0 || st.st_size != DELEGATION_PAGE_BYTES)
		return;
	page = mmap(NULL, DELEGATION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return;
	byte = mmap(NULL, BYTE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (byte == MAP_FAILED || madvise(byte, BYTE_ROOM, MADV_WIPEONFORK) < 0 ||
	    madvise(page, DELEGATION_PAGE_BYTES, MADV_DONTFORK) < 0 || !delegation_is_page(page)) {
		if (byte != MAP_FAILED)
			munmap(byte, BYTE_ROOM);
		munmap(page, DELEGATION_PAGE_BYTES);
		return;
	}
	*(uint8_t *)byte = 1;
	d->slots = calloc(DELEGATION_SLOTS, sizeof(*d->slots));
	if (!d->slots)
		abort();
	d->page = page;
	d->ours = byte;
}

void delegations_drop(struct delegations *d)
{
	if (delegations_page(d)) {
		munmap(d->page, DELEGATION_PAGE_BYTES);
		munmap((void *)(uintptr_t)d->ours, BYTE_ROOM);
	}
	for (unsigned i = 0; d->slots && i < DELEGATION_SLOTS; i++)
		free(d->slots[i].name);
	free(d->slots);
	*d = (struct delegations){ .off = d->off };
}
