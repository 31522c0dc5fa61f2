/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/tokens.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/base/file.h"
#include "io/base/parcel.h"
#include "io/base/safe_dir.h"
#include "io/base/watch.h"
#include "io/files/named.h"

enum { TOKENS_TEXT_MAX = 32 };

struct tokens {
	struct work work;
	int dir_fd, lock_fd;
	struct worker *worker;
	struct watch *retry;
	void (*reserved)(void *arg, int64_t limit);
	void *arg;
	bool writing, written; /* a write has ended well in this process */
	int64_t limit, wanted; /* being written; the highest asked for */
	int rc;                /* of the write */
};

static int parse(const char *text, int64_t *ret_limit)
{
	intmax_t limit;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EBADMSG;
	errno = 0;
	limit = strtoimax(text, &end, 10);
	if (errno || strcmp(end, "\n") != 0)
		return -EBADMSG;
	*ret_limit = limit;
	return 0;
}

static int read_file(int dir_fd, int64_t *ret_limit)
{
	char text[TOKENS_TEXT_MAX];
	ssize_t len = file_read(dir_fd, "tokens", 0, text, sizeof(text));

	*ret_limit = 0;
	if (len < 0)
		return len == -ENOENT ? 0 : (int)len;
	return strlen(text) == (size_t)len ? parse(text, ret_limit) : -EBADMSG;
}

static int write_file(int dir_fd, int64_t limit)
{
	char text[TOKENS_TEXT_MAX];

	snprintf(text, sizeof(text), "%" PRId64 "\n", limit);
	return file_replace(dir_fd, "tokens", slice_of(text), true);
}

static int open_dir(struct tokens *t, const char *statedir)
{
	if (mkdir(statedir, 0755) < 0 && errno != EEXIST)
		return -errno;
	t->dir_fd = open(statedir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->dir_fd < 0 ? -errno : 0;
}

static int take_lock(struct tokens *t)
{
	t->lock_fd = openat(t->dir_fd, "tokens.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600 | NOT_AGED);
	if (t->lock_fd < 0)
		return -errno;
	if (flock(t->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

int tokens_open(struct tokens **ret_tokens, const char *statedir, int64_t *ret_limit)
{
	struct tokens *t = mem_new(sizeof(*t));
	int rc;

	t->dir_fd = t->lock_fd = -1;
	rc = open_dir(t, statedir);
	if (rc == 0)
		rc = take_lock(t);
	if (rc == 0)
		rc = read_file(t->dir_fd, ret_limit);
	if (rc < 0) {
		tokens_free(t);
		return rc;
	}
	*ret_tokens = t;
	return 0;
}

static void run(struct work *work)
{
	struct tokens *t = container_of(work, struct tokens, work);

	t->rc = write_file(t->dir_fd, t->limit);
}

static void write_next(struct tokens *t)
{
	t->writing = true;
	t->limit = t->wanted;
	worker_add(t->worker, &t->work);
}

static void done(struct work *work)
{
	struct tokens *t = container_of(work, struct tokens, work);
	int64_t limit = t->limit;

	t->writing = false;
	if (t->rc < 0) {
		log_error(tokens_failed, LOG_FIELDS("error=%v", strerror(-t->rc)),
			  "cannot write the tokens file: %s; trying again", strerror(-t->rc));
		watch_set(t->retry, -1, 0, CLOCK_NS_PER_S);
		return;
	}
	t->written = true;
	if (t->wanted > t->limit)
		write_next(t);
	t->reserved(t->arg, limit);
}

static void retry(int fd, short what, void *arg)
{
	struct tokens *t = arg;

	if (!t->writing)
		write_next(t);
}

void tokens_start(struct tokens *t, struct watch_base *base, struct worker *worker,
		  void (*reserved)(void *arg, int64_t limit), void *arg)
{
	t->work = (struct work){ .run = run, .done = done };
	t->worker = worker;
	t->reserved = reserved;
	t->arg = arg;
	t->retry = watch_new(base, retry, t);
}

void tokens_hold(struct tokens *t, int64_t ns)
{
	watch_set(t->retry, -1, 0, ns);
}

static bool is_written(const struct tokens *t)
{
	return !t->written || faccessat(t->dir_fd, "tokens", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool tokens_are_missing(const struct tokens *t, const char *statedir)
{
	return !named_is(statedir, "tokens.lock", t->lock_fd) || !is_written(t);
}

int tokens_again(struct tokens *t, const char *statedir)
{
	struct tokens next = { .dir_fd = -1, .lock_fd = -1 };
	int rc = open_dir(&next, statedir);

	if (rc == 0 && !named_is(statedir, "tokens.lock", t->lock_fd))
		rc = take_lock(&next);
	if (rc == 0 && (dup3(next.dir_fd, t->dir_fd, O_CLOEXEC) < 0 ||
			(next.lock_fd >= 0 && dup3(next.lock_fd, t->lock_fd, O_CLOEXEC) < 0)))
		rc = -errno;
	file_close(&next.dir_fd);
	file_close(&next.lock_fd);
	if (rc == 0 && !is_written(t) && !t->writing)
		write_next(t);
	return rc;
}

bool tokens_writing(const struct tokens *t)
{
	return t->writing;
}

void tokens_pack(const struct tokens *t, struct parcel *p)
{
	struct entry_writer w = entry_begin(&p->text, "tokens");

	assert(!t->writing);
	parcel_fd(p, &w, "lock", t->lock_fd);
	entry_end(&w);
}

int tokens_unpack(struct tokens **ret_tokens, struct parcel *p, const char *statedir)
{
	struct tokens *t = mem_new(sizeof(*t));
	struct entry e;
	int rc;

	parcel_find(p, "tokens", &e);
	t->dir_fd = -1;
	t->lock_fd = parcel_take_fd(p, &e, "lock");
	rc = t->lock_fd < 0 ? -EBADMSG : open_dir(t, statedir);
	if (rc < 0) {
		tokens_free(t);
		return rc;
	}
	*ret_tokens = t;
	return 0;
}

void tokens_reserve(struct tokens *t, int64_t limit)
{
	if (limit > t->wanted)
		t->wanted = limit;
	if (!t->writing && !watch_is_set(t->retry))
		write_next(t);
}

void tokens_free(struct tokens *t)
{
	if (!t)
		return;
	watch_free(t->retry);
	file_close(&t->lock_fd);
	file_close(&t->dir_fd);
	mem_free(t);
}
