/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/delegation.h"

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW, MODE = S_IRUSR | S_IWUSR };

int page_file_for_client(int fd)
{
	char path[64];
	int other;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDWR | O_CLOEXEC);
	return other < 0 ? -errno : other;
}

int page_file_map(int fd, void **ret)
{
	void *at = mmap(NULL, DELEGATION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*ret = at;
	return 0;
}

/* 0 or -errno: of nobody else, -EAGAIN: of somebody else, too. */
static int lease(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return -errno;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return 0;
}

/* The open file of memfd_create() itself is one that leases do not count. */
static int open_own(void)
{
	int made = memfd_create("lockbroker-delegation", MFD_CLOEXEC | MFD_ALLOW_SEALING), own;

	if (made < 0)
		return -errno;
	if (ftruncate(made, DELEGATION_PAGE_BYTES) < 0 || fcntl(made, F_ADD_SEALS, SEALS) < 0 || fchmod(made, MODE) < 0)
		own = -errno;
	else
		own = page_file_for_client(made);
	close(made);
	return own;
}

int page_file_new(void **ret)
{
	int fd = open_own(), rc;

	if (fd < 0)
		return fd;
	/* Where the kernel grants no lease now it never would, and what clients keep could not be found out. */
	rc = lease(fd);
	if (rc == 0)
		rc = page_file_map(fd, ret);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

bool page_file_is(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &st) == 0 && st.st_size == DELEGATION_PAGE_BYTES;
}

bool page_file_is_alone(int fd)
{
	return lease(fd) == 0;
}

bool page_file_is_shared(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || (st.st_mode & ALLPERMS) != MODE;
}
