/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/saved_table.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/base/peer.h"
#include "io/base/process.h"
#include "io/files/saved_state.h"

#define LOOK_NS (2 * CLOCK_NS_PER_MS) /* for the questions of one call, while clients wait */

static struct saved_conn *place(const struct saved *s, uint32_t conn)
{
	assert(conn < s->file->conn_count);
	return &s->conns[conn];
}

size_t saved_clients(const struct saved *s)
{
	return s->file->conn_count;
}

/* The cookie is last: a place that has one is complete. */
void saved_connected(struct saved *s, uint32_t conn, const struct saved_conn *who, int fd)
{
	struct saved_conn *c;

	if (!s)
		return;
	c = place(s, conn);
	assert(!c->cookie && !c->holds);
	c->pid = who->pid;
	c->uid = who->uid;
	c->gid = who->gid;
	c->start = who->start;
	c->peer = who->peer;
	c->until_ns = who->until_ns;
	__atomic_store_n(&c->cookie, fd < 0 ? 0 : peer_cookie(fd), __ATOMIC_RELEASE);
	s->self[conn] = who->peer || fd < 0 ? 0 : peer_self(fd);
	if (conn >= s->used)
		s->used = conn + 1;
}

void saved_gone(struct saved *s, uint32_t conn)
{
	struct saved_conn *c;

	if (!s)
		return;
	c = place(s, conn);
	__atomic_store_n(&c->kept, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->cookie, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->holds, 0, __ATOMIC_RELEASE);
}

void saved_holder(struct saved *s, uint32_t conn, bool holds)
{
	if (s)
		__atomic_store_n(&place(s, conn)->holds, holds, __ATOMIC_RELEASE);
}

void saved_bearers(struct saved *s, bool hold)
{
	if (s)
		__atomic_store_n(&s->file->bearers, hold, __ATOMIC_RELEASE);
}

/* The next daemon must take a connection for open if this one did not learn its other end before it was killed. */
void saved_look(struct saved *s)
{
	int64_t until_ns = clock_now_ns() + LOOK_NS;

	if (!s)
		return;
	for (size_t i = 0; i < s->used; i++) {
		size_t conn = s->look++ % s->used;
		struct saved_conn *c = &s->conns[conn];

		if (!s->self[conn] || !c->holds)
			continue;
		__atomic_store_n(&c->peer, peer_of(s->diag, s->self[conn]), __ATOMIC_RELEASE);
		s->self[conn] = 0;
		if (clock_now_ns() >= until_ns)
			return;
	}
}

const struct saved_conn *saved_conn(const struct saved *s, uint32_t conn)
{
	return place(s, conn);
}

/* Whoever finds it kept finds the mark that belongs to it. */
uint32_t *saved_keep(struct saved *s, uint32_t conn, bool busy)
{
	struct saved_conn *c = place(s, conn);

	__atomic_store_n(&c->mark, busy, __ATOMIC_RELEASE);
	__atomic_store_n(&c->kept, 1, __ATOMIC_RELEASE);
	return &c->mark;
}

bool saved_conn_lives(const struct saved *s, uint32_t conn)
{
	const struct saved_conn *c = place(s, conn);

	return process_lives((pid_t)c->pid, c->start) || peer_is_open(s->diag, (uint32_t)c->peer);
}

size_t saved_room(const struct saved *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && (uint64_t)st.st_size > s->size ? (size_t)st.st_size - s->size : 0;
}

void *saved_grow(struct saved *s, size_t bytes)
{
	uint64_t more = saved_pages(bytes);
	void *at;

	errno = ENOSPC;
	if (!bytes || bytes > SAVED_MEMORY_MAX - s->file->memory_bytes)
		return NULL;
	errno = posix_fallocate(s->fd, (off_t)s->size, (off_t)more);
	if (errno)
		return NULL;
	at = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, (off_t)s->size);
	if (at == MAP_FAILED)
		return NULL;
	s->more = mem_resize(s->more, (s->more_count + 1) * sizeof(*s->more));
	s->more[s->more_count++] = (struct saved_piece){ at, more, s->size };
	s->size += more;
	__atomic_store_n(&s->file->memory_bytes, s->file->memory_bytes + more, __ATOMIC_RELEASE);
	return at;
}

static uint64_t place_of(const struct saved *s, const char *memory)
{
	const struct saved_piece *p = s->more;

	while (memory < p->at || memory >= p->at + p->bytes)
		p++;
	return p->from + (uint64_t)(memory - p->at);
}

void saved_give_back(struct saved *s, void *memory, size_t bytes)
{
	struct saved_piece hole = { memory, bytes, place_of(s, memory) };

	fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)hole.from, (off_t)bytes);
	s->holes = mem_resize(s->holes, (s->hole_count + 1) * sizeof(*s->holes));
	s->holes[s->hole_count++] = hole;
	s->hole_bytes += bytes;
}

/* Where the kernel cannot make its pages at once, each is made when it is written first. */
void *saved_refill(struct saved *s, size_t *ret_bytes)
{
	struct saved_piece hole;

	errno = 0;
	if (!s->hole_count)
		return NULL;
	hole = s->holes[s->hole_count - 1];
	errno = posix_fallocate(s->fd, (off_t)hole.from, (off_t)hole.bytes);
	if (errno)
		return NULL;
	madvise(hole.at, hole.bytes, MADV_POPULATE_WRITE);
	s->hole_count--;
	s->hole_bytes -= hole.bytes;
	*ret_bytes = hole.bytes;
	return hole.at;
}
