/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/base/safe_dir.h"
#include "io/files/named.h"

enum { PID_TEXT_MAX = 32 };

static pid_t read_pid(int fd)
{
	char text[PID_TEXT_MAX];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return 0;
	text[len] = '\0';
	return (pid_t)strtol(text, NULL, 10);
}

int pidfile_write(int fd, pid_t pid)
{
	char text[PID_TEXT_MAX];
	int len = snprintf(text, sizeof(text), "%ld\n", (long)pid);

	/* In its place: a full file system may have no other. */
	if (pwrite(fd, text, (size_t)len, 0) != len || ftruncate(fd, len) < 0)
		return errno ? -errno : -EIO;
	return 0;
}

static int open_locked(int dir_fd, pid_t pid, pid_t *ret_other)
{
	int fd = openat(dir_fd, "lockbrokerd.pid", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		rc = fchmod(fd, 0600 | NOT_AGED) < 0 ? -errno : pidfile_write(fd, pid);
		if (rc == 0)
			return fd;
	} else {
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
		*ret_other = read_pid(fd);
	}
	close(fd);
	return rc;
}

/* A user who owns it, or may write to it, can put files there that clients and the next daemon believe. */
static bool is_ours(int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) == 0 && safe_dir_is(&st);
}

int pidfile_open(const char *rundir, pid_t pid, pid_t *ret_other)
{
	int dir_fd, rc;

	/* Clients reach the socket and the session page through it, whatever the umask is. */
	if (mkdir(rundir, 0755) < 0 ? errno != EEXIST : chmod(rundir, 0755) < 0)
		return -errno;
	dir_fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	errno = 0;
	rc = is_ours(dir_fd) ? open_locked(dir_fd, pid, ret_other) : -EPERM;
	close(dir_fd);
	return rc;
}

bool pidfile_is(const char *rundir, int fd)
{
	return named_is(rundir, "lockbrokerd.pid", fd);
}
