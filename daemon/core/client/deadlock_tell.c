/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/deadlock_tell.h"

#include "core/lock/locks.h"

enum {
	HOPS_TOLD = 4,  /* of the cycle */
	NAME_TOLD = 32, /* bytes of each name */
};

/* A long name is cut between characters of UTF-8. */
static void write_name(struct bytes *out, struct slice name)
{
	size_t len = name.len;

	if (len > NAME_TOLD) {
		len = NAME_TOLD;
		while (len && ((unsigned char)name.data[len] & 0xc0) == 0x80)
			len--;
	}
	bytes_slice(out, (struct slice){ name.data, len });
	if (len < name.len)
		bytes_text(out, "...");
}

static void write_client(const struct search *s, struct bytes *out, const struct client *c, const struct lock *lock)
{
	if (c == s->client) {
		bytes_text(out, "this client");
		return;
	}
	if (!client_may_look(s->client, bytes_view(&lock->name), c->account)) {
		bytes_text(out, c->uid == s->client->uid ? "a client of another unit" : "a client of another user");
		return;
	}
	write_name(out, bytes_view(c->name.len ? &c->name : &c->comm));
	bytes_format(out, " (pid %d)", c->pid);
}

/* Writes one edge; `next`, usually `how->met` itself, is the client whose wait comes next. */
static void write_hop(const struct search *s, struct bytes *out, const struct search_step *how, const struct client *next)
{
	const struct lock *lock = s->steps[how->before].request->lock;

	bytes_text(out, " waits for \"");
	write_name(out, bytes_view(&lock->name));
	bytes_text(out, how->behind ? "\" behind " : "\" held by ");
	write_client(s, out, how->met, lock);
	if (next != how->met) {
		bytes_text(out, ", which is one owner with ");
		write_client(s, out, next, lock);
	}
}

void deadlock_tell(const struct search *s, struct bytes *out)
{
	size_t path[HOPS_TOLD + 1], count = 0, at;

	/* The walk begins at the end of the path, so that the last steps kept are the first of the cycle. */
	for (at = s->last.before; at; at = s->steps[at].before)
		path[count++ % HOPS_TOLD] = at;
	bytes_text(out, "this client");
	for (size_t told = 0; told < count && told < HOPS_TOLD - 1; told++) {
		const struct search_step *step = &s->steps[path[(count - 1 - told) % HOPS_TOLD]];

		write_hop(s, out, step, step->request->client);
		bytes_text(out, ", which");
	}
	if (count >= HOPS_TOLD)
		bytes_format(out, " waits for %d more in turn, the last of which", count - (HOPS_TOLD - 1));
	write_hop(s, out, &s->last, s->client);
	bytes_text(out, ": release one of them first");
}
