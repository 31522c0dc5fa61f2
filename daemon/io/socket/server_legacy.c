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
static void server_pack_place(const struct server *s, uint32_t number, struct parcel *p)
{
	const struct saved_conn *c = s->saved ? saved_conn(s->saved, number) : &(struct saved_conn){ 0 };

	parcel_int(p, "pid", c->pid);
	parcel_int(p, "uid", c->uid);
	parcel_int(p, "gid", c->gid);
	parcel_int(p, "start", (int64_t)c->start);
	parcel_int(p, "peer", (int64_t)c->peer);
	parcel_int(p, "holds", c->holds);
	parcel_int(p, "kept", c->kept);
	parcel_int(p, "given", s->conns[number]->given);
}

static void server_unpack_place(struct server *s, struct conn *c, const struct parcel_record *r)
{
	const struct saved_conn who = { .pid = (uint32_t)parcel_get_int(r, "pid"),
					.uid = (uint32_t)parcel_get_int(r, "uid"),
					.gid = (uint32_t)parcel_get_int(r, "gid"),
					.start = (uint64_t)parcel_get_int(r, "start"),
					.peer = (uint64_t)parcel_get_int(r, "peer"),
					.until_ns = c->until_ns };

	saved_connected(s->saved, c->number, &who, c->fd);
	saved_holder(s->saved, c->number, parcel_get_int(r, "holds"));
	c->given = s->same_keeper && parcel_get_int(r, "given");
	if (s->same_keeper && parcel_get_int(r, "kept"))
		server_kept(s, c);
}

void server_pack(const struct server *s, struct parcel *p)
{
	for (size_t i = 0; i < s->conns_cap; i++) {
		if (!s->conns[i])
			continue;
		parcel_begin(p, "conn");
		conn_pack(s->conns[i], p);
		server_pack_place(s, (uint32_t)i, p);
		parcel_end(p);
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

static int server_unpack_one(struct server *s, struct parcel *p, const struct parcel_record *r)
{
	int64_t number = parcel_get_int(r, "number");
	struct conn *c;

	if (number < 0 || (uint64_t)number >= s->numbers_max || server_has(s, (uint32_t)number))
		return -EBADMSG;
	c = conn_unpack(&s->env, p, r);
	if (!c)
		return -EBADMSG;
	server_place(s, (uint32_t)number, c);
	server_unpack_place(s, c, r);
	return 0;
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
	struct slice rest = bytes_view(&p->text);
	struct parcel_record r;
	int rc = 0;

	s->same_keeper = s->keeper && parcel_find(p, "keeper", &r);
	while (rc == 0 && parcel_next(&rest, &r))
		if (slice_eq(r.kind, SLICE("conn")))
			rc = server_unpack_one(s, p, &r);
		else if (!remains_unpack(s->env.remains, &s->env.accounts, p, &r))
			rc = -EBADMSG;
	if (rc == 0 && rest.len)
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
