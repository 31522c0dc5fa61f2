/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that may be none, and small files that are read and written whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#include "protocol/slice.h"

/* Closes the descriptor and makes it -1. One that is negative is none. */
static inline void file_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * The beginning of the file, opened with these flags more: at most `size` - 1 bytes, and a NUL. Returns how many bytes that
 * are; or -errno, and the text is empty.
 */
ssize_t file_read(int dir_fd, const char *path, int flags, char *text, size_t size);
/*
 * The file gets that text, or stays as it is: the text is written to <path>.new, which nobody else may read. `lasts`: it is
 * on the disk then. 0 or -errno.
 */
int file_replace(int dir_fd, const char *path, struct slice text, bool lasts);
