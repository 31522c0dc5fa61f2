/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/base/file.h"
#include "io/base/parcel.h"
#include "io/files/named.h"
#include "io/files/spare.h"

struct page {
	int fd; /* for the next process */
	struct session_page *shared;
	struct session_view view; /* what stands in it */
	char ended[SESSION_PAGE_ID_CHARS + 1];
};

static struct session_page *map(int fd)
{
	void *at = mmap(NULL, SESSION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void end_earlier(int dir_fd, bool moved, char ret_id[SESSION_PAGE_ID_CHARS + 1])
{
	const struct session_view none = { .state = SESSION_NONE };
	int fd = openat(dir_fd, "session", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct session_page *old = NULL;
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size == SESSION_PAGE_BYTES)
		old = map(fd);
	close(fd);
	if (!old)
		return;
	if (moved)
		session_page_move(old);
	else
		session_page_write(old, &none);
	session_page_id_text(old->id, ret_id);
	munmap(old, SESSION_PAGE_BYTES);
}

static int make(struct page *p, int dir_fd, const uint8_t *id)
{
	int fd = spare_open(dir_fd, "session", 0644, SESSION_PAGE_BYTES, true, NULL);

	if (fd < 0)
		return fd;
	p->fd = fd;
	p->shared = map(fd);
	if (!p->shared)
		return -errno;
	session_page_init(p->shared, id);
	return 0;
}

/*
 * The file gets its name only when it is complete, and when the earlier one says what has become of it: without its name,
 * that one would not be found again if this process ended in between.
 */
int page_open(struct page **ret_page, const char *rundir, const uint8_t id[SESSION_PAGE_ID_BYTES], bool moved)
{
	struct page *p = mem_new(sizeof(*p));
	int dir_fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = dir_fd < 0 ? -errno : 0;

	p->fd = -1;
	if (rc == 0)
		rc = make(p, dir_fd, id);
	if (rc == 0) {
		end_earlier(dir_fd, moved, p->ended);
		/* Readers may map what had the name: that becomes no spare. */
		rc = spare_publish(dir_fd, "session", false);
	}
	if (rc == 0)
		spare_leave(dir_fd, "session", SESSION_PAGE_BYTES); /* or later: see saved_leave_spare() */
	file_close(&dir_fd);
	if (rc < 0)
		page_close(p);
	else
		*ret_page = p;
	return rc;
}

const char *page_ended(const struct page *p)
{
	return p->ended;
}

bool page_is_missing(const struct page *p, const char *rundir)
{
	return !named_is(rundir, "session", p->fd);
}

int page_again(struct page *p, const char *rundir)
{
	struct page next = { .fd = -1 };
	int dir_fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (dir_fd < 0)
		return -errno;
	rc = make(&next, dir_fd, p->shared->id);
	if (rc == 0) {
		session_page_write(next.shared, &p->view);
		rc = spare_publish(dir_fd, "session", false);
	}
	if (rc == 0) {
		spare_leave(dir_fd, "session", SESSION_PAGE_BYTES);
		session_page_move(p->shared);
		munmap(p->shared, SESSION_PAGE_BYTES);
		p->shared = next.shared;
		next.shared = NULL;
		rc = dup3(next.fd, p->fd, O_CLOEXEC) < 0 ? -errno : 0;
	}
	if (next.shared)
		munmap(next.shared, SESSION_PAGE_BYTES);
	file_close(&next.fd);
	close(dir_fd);
	return rc;
}

void page_pack(const struct page *p, struct parcel *parcel)
{
	struct entry_writer w = entry_begin(&parcel->text, "page");

	parcel_fd(parcel, &w, "fd", p->fd);
	entry_end(&w);
}

int page_unpack(struct page **ret_page, struct parcel *parcel, uint8_t ret_id[SESSION_PAGE_ID_BYTES])
{
	struct page *p = mem_new(sizeof(*p));
	struct entry e;
	struct stat st;

	parcel_find(parcel, "page", &e);
	p->fd = parcel_take_fd(parcel, &e, "fd");
	if (p->fd >= 0 && fstat(p->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == SESSION_PAGE_BYTES)
		p->shared = map(p->fd);
	if (!p->shared || !session_page_read(p->shared, &p->view)) {
		page_forget(p);
		return -EBADMSG;
	}
	memcpy(ret_id, p->shared->id, SESSION_PAGE_ID_BYTES);
	*ret_page = p;
	return 0;
}

void page_forget(struct page *p)
{
	if (!p)
		return;
	if (p->shared)
		munmap(p->shared, SESSION_PAGE_BYTES);
	file_close(&p->fd);
	mem_free(p);
}

void page_update(struct page *p, const struct session_view *view)
{
	if (!p || (p->view.epoch == view->epoch && p->view.state == view->state &&
		   p->view.safe_until_ns == view->safe_until_ns))
		return;
	p->view = *view;
	session_page_write(p->shared, &p->view);
}

void page_close(struct page *p)
{
	const struct session_view none = { .state = SESSION_NONE };

	if (!p)
		return;
	if (p->shared)
		page_update(p, &none);
	page_forget(p);
}
