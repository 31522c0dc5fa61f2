/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/kept.h"

#include <string.h>

#include "base/mem.h"
#include "io/base/keeper.h"
#include "io/files/saved_table.h"

struct question {
	uint64_t id;
	uint32_t conn;
};

struct kept {
	struct keeper *keeper;
	const struct saved *saved;
	struct question *asked; /* not answered yet, the oldest first */
	size_t count, cap;
};

struct kept *kept_new(struct keeper *keeper, const struct saved *saved)
{
	struct kept *k = mem_new(sizeof(*k));

	k->keeper = saved ? keeper : NULL;
	k->saved = saved;
	return k;
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	mem_free(k->asked);
	mem_free(k);
}

static bool ask(struct kept *k, uint32_t conn, uint64_t what, int fd)
{
	uint64_t id = k->keeper ? saved_conn(k->saved, conn)->cookie : 0;

	if (!id || !keeper_keep(k->keeper, what | id, fd))
		return false;
	if (k->count == k->cap) {
		k->cap = k->cap ? 2 * k->cap : 64;
		k->asked = mem_resize(k->asked, k->cap * sizeof(*k->asked));
	}
	k->asked[k->count++] = (struct question){ what | id, conn };
	return true;
}

bool kept_ask(struct kept *k, uint32_t conn, int fd)
{
	return ask(k, conn, 0, fd);
}

bool kept_ask_page(struct kept *k, uint32_t conn, int fd)
{
	return ask(k, conn, KEEPER_PAGE, fd);
}

bool kept_answered(struct kept *k, uint64_t id, uint32_t *ret_conn)
{
	size_t at = 0;

	while (at < k->count && k->asked[at].id != id)
		at++;
	if (at == k->count)
		return false;
	*ret_conn = k->asked[at].conn;
	memmove(k->asked + at, k->asked + at + 1, (--k->count - at) * sizeof(*k->asked));
	return true;
}

static void drop(struct kept *k, uint64_t id)
{
	uint32_t asked;

	kept_answered(k, id, &asked);
	keeper_drop(k->keeper, id);
}

void kept_drop(struct kept *k, uint32_t conn)
{
	drop(k, saved_conn(k->saved, conn)->cookie);
}

void kept_drop_page(struct kept *k, uint32_t conn)
{
	if (k->keeper)
		drop(k, KEEPER_PAGE | saved_conn(k->saved, conn)->cookie);
}
