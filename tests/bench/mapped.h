/* SPDX-License-Identifier: Apache-2.0 */
/* The file in which a preloaded library keeps its array of entries. */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Makes the file, or empties it, and maps so many bytes of it, which are 0. Aborts the program if that fails. */
static inline void *mapped_file(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p;

	if (fd < 0 || ftruncate(fd, 0) || ftruncate(fd, (off_t)bytes))
		abort();
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		abort();
	close(fd);
	return p;
}
