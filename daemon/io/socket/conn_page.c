/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn_page.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cold.h"
#include "base/mem.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/base/pass_fds.h"
#include "io/socket/conn.h"
#include "io/socket/socket_pools.h"
#include "protocol/delegation.h"

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW };

/* ---- its memory ---- */

static int map(struct conn_page *page)
{
	void *at = mmap(NULL, DELEGATION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	page->shared = at;
	return 0;
}

static int make(struct conn_page *page)
{
	int rc;

	page->fd = memfd_create("lockbroker-delegation", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (page->fd < 0 || ftruncate(page->fd, DELEGATION_PAGE_BYTES) < 0 || fcntl(page->fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	rc = map(page);
	if (rc == 0)
		delegation_init(page->shared);
	return rc;
}

bool conn_page_is(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &st) == 0 && st.st_size == DELEGATION_PAGE_BYTES;
}

/*
 * The kernel charges the memory to this process: a client that asks for page after page, and keeps them mapped, must not use
 * that memory up. Pages that the client touches after this are charged to the client.
 */
void conn_page_void(const struct conn_page *page)
{
	if (page->shared)
		madvise(page->shared, DELEGATION_PAGE_BYTES, MADV_REMOVE);
}

bool conn_page_is_sent(const struct conn_page *page)
{
	return page->shared && !page->due;
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
	if (page->fd >= 0)
		close(page->fd);
	charge_give_back(&page->charge, SOCKET_PAGES);
	mem_free(page);
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
	int rc;

	assert(page);
	if (!charge_try(&page->charge, c->account, SOCKET_PAGES, 1, c->privileged)) {
		refuse(c, &event, 0);
		return;
	}
	rc = make(page);
	if (rc < 0) {
		refuse(c, &event, -rc);
		return;
	}
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
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = { .iov_base = (void *)(uintptr_t)bytes.data, .iov_len = bytes.len };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	pass_fds(&message, &control.header, &passed, 1);
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

COLD ssize_t conn_page_send(struct conn_page *page, int fd, struct slice bytes)
{
	ssize_t sent;

	if (page->before) {
		sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
		page->before -= sent > 0 ? (size_t)sent : 0;
		return sent;
	}
	sent = send_with(fd, bytes, page->fd);
	/* So many are under way to clients that do not receive them: this one goes without. */
	if (sent < 0 && errno == ETOOMANYREFS)
		sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
	page->due = sent <= 0;
	return sent;
}

/* ---- a hand-over, or a kill ---- */

struct conn_page *conn_page_take(struct conn *c, int fd)
{
	struct conn_page *page = conn_page_new(c, fd);

	if (conn_page_is(fd) && map(page) == 0)
		return page;
	close(fd);
	mem_free(page);
	return NULL;
}

void conn_page_pack(const struct conn_page *page, struct parcel *p)
{
	if (!page)
		return;
	assert(page->shared);
	parcel_fd(p, "page", page->fd);
	parcel_int(p, "page_due", page->due);
	parcel_int(p, "page_before", (int64_t)page->before);
}

bool conn_page_unpack(struct conn *c, struct parcel *p, const struct parcel_record *r)
{
	int fd = parcel_take_fd(p, r, "page");

	if (fd < 0)
		return true;
	c->page = conn_page_take(c, fd);
	if (!c->page)
		return false;
	c->page->due = parcel_get_int(r, "page_due");
	c->page->before = (size_t)parcel_get_int(r, "page_before");
	return true;
}
