/* SPDX-License-Identifier: Apache-2.0 */
/* What a server leaves to the next process at a hand-over or a kill, and what it takes from the previous process. */
#include <errno.h>
#include <stdlib.h>

#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/files/saved_table.h"
#include "io/socket/conn.h"
#include "io/socket/conn_page.h"
#include "io/socket/disposer.h"
#include "io/socket/remains.h"
#include "io/socket/server_state.h"

/* What the next process cannot learn from the connection itself. */
static const struct field place_fields[] = {
	FIELD_ANY(struct saved_conn, "pid", pid),
	FIELD_ANY(struct saved_conn, "uid", uid),
	FIELD_ANY(struct saved_conn, "gid", gid),
	FIELD_ANY(struct saved_conn, "start", start),
	FIELD_ANY(struct saved_conn, "peer", peer),
	FIELD_FLAG(struct saved_conn, "holds", holds),
	FIELD_FLAG(struct saved_conn, "kept", kept),
};

static bool server_unpack_place(struct server *s, struct conn *c, const struct entry *e)
{
	struct saved_conn who = { .until_ns = c->until_ns };

	if (!entry_get_fields(e, FIELDS(place_fields), &who))
		return false;
	saved_connected(s->saved, c->number, &who, c->fd);
	saved_holder(s->saved, c->number, who.holds);
	c->given = s->same_keeper && parcel_get_number(e, "given");
	if (s->same_keeper && who.kept)
		server_kept(s, c);
	return true;
}

void server_pack(const struct server *s, struct parcel *p)
{
	for (size_t i = 0; i < s->conns_cap; i++) {
		struct entry_writer w;

		if (!s->conns[i])
			continue;
		w = entry_begin(&p->text, "conn");
		conn_pack(s->conns[i], p, &w);
		if (s->saved)
			entry_fields(&w, FIELDS(place_fields), saved_conn(s->saved, (uint32_t)i));
		entry_number(&w, "given", s->conns[i]->given);
		entry_end(&w);
	}
	remains_pack(s->env.remains, p);
}

static void server_place(struct server *s, uint32_t number, struct conn *c)
{
	while (number >= s->conns_cap)
		server_grow(s);
	assert(!s->conns[number]);
	s->conns[number] = c;
	s->count++;
	s->ghosts += conn_is_ghost(c);
}

static int server_unpack_one(struct server *s, struct parcel *p, const struct entry *e)
{
	int64_t number = parcel_get_number(e, "number");
	struct conn *c;

	if (number < 0 || (uint64_t)number >= s->numbers_max || server_has(s, (uint32_t)number))
		return -EBADMSG;
	c = conn_unpack(&s->env, p, e);
	if (!c)
		return -EBADMSG;
	server_place(s, (uint32_t)number, c);
	return server_unpack_place(s, c, e) ? 0 : -EBADMSG;
}

/* The numbers that are left; the lowest is given out first. */
static void server_count_free(struct server *s)
{
	s->free_count = 0;
	for (size_t i = s->conns_cap; i > 0; i--)
		if (!s->conns[i - 1])
			s->free_numbers[s->free_count++] = (uint32_t)(i - 1);
}

int server_unpack(struct server *s, struct parcel *p)
{
	struct entry e;
	int rc = 0;

	s->same_keeper = s->keeper && parcel_find(p, "keeper", &e);
	parcel_rewind(p);
	while (rc == 0 && parcel_next(p, &e))
		if (slice_is(e.word, "conn"))
			rc = server_unpack_one(s, p, &e);
		else if (!remains_unpack(s->env.remains, &s->env.accounts, p, &e))
			rc = -EBADMSG;
	if (rc == 0 && p->why.len)
		rc = -EBADMSG;
	server_count_free(s);
	return rc;
}

void server_take_back(struct server *s, uint32_t number, const struct saved_conn *was, int fd, bool holds)
{
	struct conn *c = conn_new(&s->env, fd, number);

	server_place(s, number, c);
	saved_connected(s->saved, number, was, fd);
	saved_holder(s->saved, number, holds);
	server_kept(s, c);
}

void server_add_ghost(struct server *s, uint32_t number, const struct saved_conn *was, int64_t until_ns)
{
	struct saved_conn who = *was;

	/* It may have been one before this kill, too. */
	if (!who.until_ns)
		who.until_ns = until_ns;
	server_place(s, number, conn_ghost(&s->env, number, who.until_ns));
	saved_connected(s->saved, number, &who, -1);
	saved_holder(s->saved, number, true);
}

void server_take_back_page(struct server *s, uint32_t number, int fd)
{
	struct conn *c = server_conn(s, number);

	c->page = conn_page_take(c, fd);
	/* As with any other memory. */
	if (!c->page)
		abort();
}

void server_give_pages(struct server *s)
{
	for (size_t i = 0; i < s->conns_cap; i++)
		if (s->conns[i] && s->conns[i]->page)
			feed_give_page(s->feed, (uint32_t)i, s->conns[i]->page->shared);
}

void server_taken_back(struct server *s)
{
	server_count_free(s);
}

void server_turn_away(void *server, int fd)
{
	struct server *s = server;

	disposer_take(s->env.disposer, fd, &s->env.accounts.nobody);
}
