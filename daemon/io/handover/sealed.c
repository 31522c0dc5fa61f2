/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/base/parcel.h"

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static int write_all(int fd, struct slice text)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.data, text.len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			text = (struct slice){ text.data + n, text.len - (size_t)n };
	}
	return 0;
}

int sealed_make(struct slice text, int *ret)
{
	int fd = memfd_create("lockbroker", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	*ret = -1;
	if (fd < 0)
		return -errno;
	rc = write_all(fd, text);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		rc = -errno;
	if (rc < 0)
		close(fd);
	else
		*ret = fd;
	return rc;
}

int sealed_map(int fd, int64_t bytes_max, struct parcel *ret)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *data;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size > bytes_max)
		return -EBADMSG;
	if (st.st_size == 0)
		return 0;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	ret->text = (struct bytes){ .data = data, .len = (size_t)st.st_size };
	ret->text_is_mapped = true;
	return 0;
}
