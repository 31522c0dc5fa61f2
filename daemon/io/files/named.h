/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a name in a directory still leads to an open file. */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/* True: `dir`/`name`, which is no symbolic link, is the file that is open as `fd`. */
static inline bool named_is(const char *dir, const char *name, int fd)
{
	char path[PATH_MAX];
	struct stat is, was;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && fstat(fd, &was) == 0 &&
	       lstat(path, &is) == 0 && is.st_dev == was.st_dev && is.st_ino == was.st_ino;
}
