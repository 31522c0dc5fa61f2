/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "io/base/safe_dir.h"

ssize_t file_read(int dir_fd, const char *path, int flags, char *text, size_t size)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | flags);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	if (len < 0)
		len = -errno;
	text[len > 0 ? len : 0] = '\0';
	file_close(&fd);
	return len;
}

static int write_all(int fd, struct slice text, bool lasts)
{
	errno = 0;
	if (write(fd, text.data, text.len) != (ssize_t)text.len)
		return errno ? -errno : -EIO;
	return lasts && fsync(fd) < 0 ? -errno : 0;
}

int file_replace(int dir_fd, const char *path, struct slice text, bool lasts)
{
	char new[PATH_MAX];
	int fd, rc;

	if (snprintf(new, sizeof(new), "%s.new", path) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	fd = openat(dir_fd, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600 | NOT_AGED);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, text, lasts);
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && renameat(dir_fd, new, dir_fd, path) < 0)
		rc = -errno;
	if (rc == 0 && lasts && fsync(dir_fd) < 0)
		rc = -errno;
	return rc;
}
