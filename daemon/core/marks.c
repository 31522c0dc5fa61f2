/* SPDX-License-Identifier: Apache-2.0 */
#include "core/marks.h"

#include "base/mem.h"
#include "core/kind/observe.h"

void marks_set(const struct locks *locks)
{
	uint32_t grants = 0, requests = 0, observers = 0;
	struct observer *o;
	struct request *r;
	struct client *c;
	struct grant *g;

	TAILQ_FOREACH(c, &locks->clients, link) {
		TAILQ_FOREACH(g, &c->grants, client_link)
			g->mark = ++grants;
		TAILQ_FOREACH(r, &c->requests, client_link)
			r->mark = ++requests;
		TAILQ_FOREACH(o, &c->observers, client_link)
			o->mark = ++observers;
	}
}

void *marks_note(struct marked_list *all, uint32_t mark, void *what)
{
	if (all->count == all->cap) {
		all->cap = all->cap ? all->cap * 2 : 64;
		all->list = mem_resize(all->list, all->cap * sizeof(*all->list));
	}
	all->list[all->count++] = (struct marked){ mark, what };
	return what;
}

static bool sort(struct marked_list *all)
{
	all->sorted = mem_new_array(all->count + 1, sizeof(void *));
	for (size_t i = 0; i < all->count; i++) {
		const struct marked *m = &all->list[i];

		if (m->mark < 1 || m->mark > all->count || all->sorted[m->mark - 1])
			return false;
		all->sorted[m->mark - 1] = m->what;
	}
	return true;
}

bool marks_sort(struct marks *m)
{
	if (m->sorted)
		return true;
	m->sorted = true;
	if (!sort(&m->grants) || !sort(&m->requests) || !sort(&m->observers))
		return false;
	for (size_t i = 0; i < m->grants.count; i++) {
		struct grant *g = m->grants.sorted[i];

		TAILQ_REMOVE(&g->client->grants, g, client_link);
		TAILQ_INSERT_TAIL(&g->client->grants, g, client_link);
	}
	for (size_t i = 0; i < m->requests.count; i++) {
		struct request *r = m->requests.sorted[i];

		TAILQ_REMOVE(&r->client->requests, r, client_link);
		TAILQ_INSERT_TAIL(&r->client->requests, r, client_link);
	}
	for (size_t i = 0; i < m->observers.count; i++) {
		struct observer *o = m->observers.sorted[i];

		TAILQ_REMOVE(&o->client->observers, o, client_link);
		TAILQ_INSERT_TAIL(&o->client->observers, o, client_link);
	}
	return true;
}

static void forget(struct marked_list *all)
{
	mem_free(all->list);
	mem_free(all->sorted);
}

void marks_forget(struct marks *m)
{
	forget(&m->grants);
	forget(&m->requests);
	forget(&m->observers);
}
