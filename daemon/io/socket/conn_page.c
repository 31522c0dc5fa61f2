/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn_page.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cold.h"
#include "base/mem.h"
#include "io/base/feed.h"
#include "io/base/file.h"
#include "io/base/parcel.h"
#include "io/base/socket.h"
#include "io/socket/conn.h"
#include "io/socket/page_file.h"
#include "io/socket/remains.h"
#include "io/socket/socket_pools.h"
#include "protocol/delegation.h"

/* ---- its memory ---- */

/*
 * The kernel charges the memory to this process: a client that asks for page after page, and keeps them mapped, must not use
 * that memory up. Pages that the client touches after this are charged to the client.
 */
void conn_page_void(const struct conn_page *page)
{
	if (page->shared)
		madvise(page->shared, DELEGATION_PAGE_BYTES, MADV_REMOVE);
}

static struct conn_page *conn_page_new(struct conn *c, int fd)
{
	struct conn_page *page = mem_new(sizeof(*page));

	page->conn = c;
	page->fd = fd;
	return page;
}

void conn_page_free(struct conn_page *page)
{
	if (!page)
		return;
	if (page->shared)
		munmap(page->shared, DELEGATION_PAGE_BYTES);
	else
		TAILQ_REMOVE(&page->conn->env->pages, page, link);
	file_close(&page->fd);
	charge_give_back(&page->charge, SOCKET_PAGES);
	mem_free(page);
}

int conn_page_leave(struct conn_page *page)
{
	int fd = page->fd;

	if (!page->shared || page->due)
		return -1;
	page->fd = -1;
	return fd;
}

void conn_page_enter(struct conn_page *page, struct account *account)
{
	charge_set(&page->charge, account, SOCKET_PAGES, 1);
}

/* ---- it is asked for ---- */

void conn_page_ask(struct conn *c)
{
	assert(!c->page);
	c->page = conn_page_new(c, -1);
	TAILQ_INSERT_TAIL(&c->env->pages, c->page, link);
}

static void refuse(struct conn *c, struct event *event, int error)
{
	struct bytes sentence = { 0 };

	event->page.limited = !error;
	if (error)
		bytes_text(&sentence, strerror(error));
	else
		account_refusal(c->account, SOCKET_PAGES, c->privileged, &socket_pools_words[SOCKET_PAGES], &sentence);
	event->page.sentence = bytes_view(&sentence);
	conn_page_free(c->page);
	c->page = NULL;
	feed_event(c->env->feed, event);
	bytes_free(&sentence);
}

static COLD void answer(struct conn *c)
{
	struct event event = { .type = EVENT_CLIENT_PAGE, .conn = c->number };
	struct conn_page *page = c->page;
	void *at;
	int fd;

	assert(page);
	if (!remains_admit(c->env->remains, c->account, SOCKET_PAGES, c->privileged)) {
		refuse(c, &event, 0);
		return;
	}
	fd = page_file_new(&at);
	if (fd < 0) {
		refuse(c, &event, -fd);
		return;
	}
	page->fd = fd;
	page->shared = at;
	delegation_init(page->shared);
	charge_force(&page->charge, c->account, SOCKET_PAGES, 1);
	TAILQ_REMOVE(&c->env->pages, page, link);
	event.page.page = page->shared;
	feed_event(c->env->feed, &event);
}

void conn_page_make_all(struct conn_env *env)
{
	struct conn_page *page;

	while ((page = TAILQ_FIRST(&env->pages)))
		answer(page->conn);
}

/* ---- it is passed on ---- */

void conn_page_pass(struct conn_page *page, size_t before)
{
	page->due = true;
	page->before = before;
}

size_t conn_page_part(const struct conn_page *page, size_t part)
{
	return page->before && page->before < part ? page->before : part;
}

static ssize_t send_with(int fd, struct slice bytes, int passed)
{
	const struct iovec data = { .iov_base = (void *)(uintptr_t)bytes.data, .iov_len = bytes.len };

	return socket_send(fd, &data, 1, &passed, 1);
}

/* The client has its own, or it is under way. */
static void close_keeping_error(int fd)
{
	int error = errno;

	file_close(&fd);
	errno = error;
}

COLD ssize_t conn_page_send(struct conn_page *page, int fd, struct slice bytes)
{
	int passed;
	ssize_t sent;

	if (page->before) {
		sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
		page->before -= sent > 0 ? (size_t)sent : 0;
		return sent;
	}
	passed = page_file_for_client(page->fd);
	sent = passed < 0 ? 0 : send_with(fd, bytes, passed);
	/* Where no file can be opened, or so many are under way to clients that do not receive them, it goes without. */
	if (passed < 0 || (sent < 0 && errno == ETOOMANYREFS))
		sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
	close_keeping_error(passed);
	page->due = sent <= 0;
	return sent;
}

/* ---- a hand-over, or a kill ---- */

struct conn_page *conn_page_take(struct conn *c, int fd)
{
	struct conn_page *page = conn_page_new(c, fd);
	void *at;

	if (page_file_is(fd) && page_file_map(fd, &at) == 0) {
		page->shared = at;
		return page;
	}
	close(fd);
	mem_free(page);
	return NULL;
}

static const struct field fields[] = {
	FIELD_FLAG(struct conn_page, "page_due", due),
	FIELD_ANY(struct conn_page, "page_before", before),
};

void conn_page_pack(const struct conn_page *page, struct parcel *p, struct entry_writer *w)
{
	if (!page)
		return;
	assert(page->shared);
	parcel_fd(p, w, "page", page->fd);
	entry_fields(w, FIELDS(fields), page);
}

bool conn_page_unpack(struct conn *c, struct parcel *p, const struct entry *e)
{
	int fd = parcel_take_fd(p, e, "page");

	if (fd < 0)
		return true;
	c->page = conn_page_take(c, fd);
	return c->page && entry_get_fields(e, FIELDS(fields), c->page);
}
