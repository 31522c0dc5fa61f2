/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/base/safe_dir.h"

enum { ZEROS = 4096, BLOCK = 512 }; /* of st_blocks */

struct names {
	char new[NAME_MAX], spare[NAME_MAX];
};

static struct names name(const char *of)
{
	struct names n;

	snprintf(n.new, sizeof(n.new), "%s.new", of);
	snprintf(n.spare, sizeof(n.spare), "%s.spare", of);
	return n;
}

/* One that a killed process left may be the spare that it had taken: its room is not given away. 0 or -errno. */
static int clear(int dir_fd, const struct names *n)
{
	struct stat st;

	if (fstatat(dir_fd, n->new, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    renameat2(dir_fd, n->new, dir_fd, n->spare, RENAME_NOREPLACE) == 0)
		return 0;
	return unlinkat(dir_fd, n->new, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/*
 * Of too little, nothing is taken at all: for that instant, nobody else could write on this file system. What others take
 * meanwhile is noticed when the room is taken.
 */
static bool has_room(int fd, uint64_t bytes)
{
	struct statvfs fs;
	struct stat st;

	if (fstatvfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return true;
	return bytes <= (uint64_t)st.st_blocks * BLOCK + (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* The bytes that a file without holes has already. Allocating them again would make the kernel look at each page. */
static off_t allocated(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_blocks * BLOCK == (uint64_t)st.st_size ? st.st_size : 0;
}

static int allocate(int fd, uint64_t bytes)
{
	off_t from = allocated(fd);

	return (uint64_t)from < bytes ? -posix_fallocate(fd, from, (off_t)(bytes - (uint64_t)from)) : 0;
}

/* Of memory that is allocated: a full file system is an error now, not a signal later. */
static int give_room(int fd, mode_t mode, uint64_t bytes)
{
	if (fchmod(fd, mode | NOT_AGED) < 0)
		return -errno;
	return has_room(fd, bytes) ? allocate(fd, bytes) : -ENOSPC;
}

static int with_room(int fd, mode_t mode, uint64_t bytes)
{
	int rc = give_room(fd, mode, bytes);

	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static int make(int dir_fd, const char *path, mode_t mode, uint64_t bytes)
{
	int fd = openat(dir_fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);

	return fd < 0 ? -errno : with_room(fd, mode, bytes);
}

/* Nobody else can read or write it, or has it under another name. Its size, or -errno. */
static off_t check(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 ? st.st_size : -EPERM;
}

/* It may have been a file that counted: it is zero from end to end, and all of it is written in its place. */
static int wipe(int fd)
{
	static const char zeros[ZEROS];
	off_t size = check(fd), at = 0;

	while (at < size) {
		size_t len = size - at < ZEROS ? (size_t)(size - at) : ZEROS;
		ssize_t written = pwrite(fd, zeros, len, at);

		if (written < 0 && errno != EINTR)
			return -errno;
		at += written > 0 ? written : 0;
	}
	return size < 0 ? (int)size : 0;
}

static int take(int dir_fd, const struct names *n, mode_t mode, uint64_t bytes)
{
	char next[NAME_MAX];
	int fd, rc;

	if (renameat(dir_fd, n->spare, dir_fd, n->new) < 0)
		return -errno;
	/* A spare may have one, too. */
	if (snprintf(next, sizeof(next), "%s.spare", n->spare) < (int)sizeof(next))
		renameat(dir_fd, next, dir_fd, n->spare);
	fd = openat(dir_fd, n->new, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	rc = wipe(fd);
	if (rc == 0)
		return with_room(fd, mode, bytes);
	close(fd);
	return rc;
}

int spare_open(int dir_fd, const char *of, mode_t mode, uint64_t bytes, bool may_take, bool *ret_taken)
{
	const struct names n = name(of);
	int fd = clear(dir_fd, &n);

	if (ret_taken)
		*ret_taken = false;
	if (fd < 0)
		return fd;
	fd = make(dir_fd, n.new, mode, bytes);
	if (fd != -ENOSPC || !may_take)
		return fd;
	unlinkat(dir_fd, n.new, 0);
	fd = take(dir_fd, &n, mode, bytes);
	if (fd < 0)
		return -ENOSPC;
	if (ret_taken)
		*ret_taken = true;
	return fd;
}

int spare_ahead(int dir_fd, mode_t mode, uint64_t bytes)
{
	int fd = openat(dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);

	return fd < 0 ? -errno : with_room(fd, mode, bytes);
}

int spare_name(int dir_fd, const char *of, int fd, mode_t mode, uint64_t bytes)
{
	const struct names n = name(of);
	char path[sizeof("/proc/self/fd/") + 11];
	int rc = clear(dir_fd, &n);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (rc == 0 && linkat(AT_FDCWD, path, dir_fd, n.new, AT_SYMLINK_FOLLOW) < 0)
		rc = -errno;
	return rc == 0 ? give_room(fd, mode, bytes) : rc;
}

int spare_publish(int dir_fd, const char *of, bool taken)
{
	const struct names n = name(of);

	/* No name is without a file in between, and killed there, the next process finds one to be cleared. */
	if (taken && renameat2(dir_fd, n.new, dir_fd, of, RENAME_EXCHANGE) == 0) {
		renameat(dir_fd, n.new, dir_fd, n.spare);
		return 0;
	}
	return renameat(dir_fd, n.new, dir_fd, of) < 0 ? -errno : 0;
}

/* One that was a file that counts may have holes: what is behind the end fills them. */
static int fill(int fd, uint64_t bytes)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size > bytes && (uint64_t)st.st_blocks * BLOCK < (uint64_t)st.st_size &&
	    ftruncate(fd, (off_t)bytes) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return with_room(fd, 0600, bytes);
}

static int open_spare(int dir_fd, const struct names *n, int flags)
{
	return openat(dir_fd, n->spare, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

int spare_leave(int dir_fd, const char *of, uint64_t bytes)
{
	const struct names n = name(of);
	int fd = open_spare(dir_fd, &n, O_CREAT);
	off_t size;

	if (fd < 0)
		return -errno;
	size = check(fd);
	if (size < 0) {
		close(fd);
		return (int)size;
	}
	fd = fill(fd, bytes);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

bool spare_cut(int dir_fd, const char *of, uint64_t bytes, uint64_t piece)
{
	const struct names n = name(of);
	int fd = open_spare(dir_fd, &n, 0);
	off_t size = fd < 0 ? -1 : check(fd);
	bool cut = false;

	if (size > 0 && (uint64_t)size > bytes) {
		uint64_t rest = (uint64_t)size - bytes < piece ? bytes : (uint64_t)size - piece;

		cut = ftruncate(fd, (off_t)rest) == 0;
	}
	if (fd >= 0)
		close(fd);
	return cut;
}
