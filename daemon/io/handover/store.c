/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/base/parcel.h"
#include "io/handover/channel.h"

enum {
	QUEUE_BYTES = 1 << 24, /* room for as many messages as a million descriptors need */
	SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

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

static int make_text(struct slice text, int *ret)
{
	int fd = memfd_create("lockbroker", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	*ret = fd;
	if (fd < 0)
		return -errno;
	rc = write_all(fd, text);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		rc = -errno;
	return rc;
}

/* Without the right to more, as much as everybody may have. */
static void make_room(int fd)
{
	const int bytes = QUEUE_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

int store_make(const struct parcel *p, struct store *ret, int *ret_kept)
{
	const struct parcel fds = { .fds = p->fds, .fd_count = p->fd_count };
	int ends[2] = { -1, -1 }, rc;

	*ret = (struct store){ .text = -1, .queue = -1 };
	*ret_kept = -1;
	rc = make_text(bytes_view(&p->text), &ret->text);
	if (rc == 0)
		rc = channel_pair(ends);
	if (rc < 0) {
		store_close(ret);
		return rc;
	}
	ret->queue = ends[1];
	make_room(ends[0]);
	rc = channel_send_parcel(ends[0], &fds, 0);
	if (rc < 0) {
		close(ends[0]);
		store_close(ret);
		return rc;
	}
	*ret_kept = ends[0];
	return 0;
}

static int read_text(int fd, struct bytes *ret)
{
	struct stat st;
	ssize_t n = 1;

	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size > CHANNEL_BYTES_MAX)
		return -EBADMSG;
	bytes_reserve(ret, (size_t)st.st_size);
	while (n != 0 && ret->len < (size_t)st.st_size) {
		n = pread(fd, ret->data + ret->len, (size_t)st.st_size - ret->len, (off_t)ret->len);
		if (n < 0 && errno != EINTR)
			return -errno;
		ret->len += n > 0 ? (size_t)n : 0;
	}
	return ret->len == (size_t)st.st_size ? 0 : -EBADMSG;
}

int store_read(const struct store *s, struct parcel *ret)
{
	struct channel_message m;
	int rc;

	*ret = (struct parcel){ 0 };
	rc = channel_receive(s->queue, &m, 0);
	if (rc == 0)
		rc = channel_receive_parcel(s->queue, &m, ret, 0);
	if (rc == 0)
		rc = ret->text.len == 0 ? read_text(s->text, &ret->text) : -EBADMSG;
	/* All of it is there before somebody reads it. */
	return rc == -ETIMEDOUT || rc == -EPIPE ? -EBADMSG : rc;
}

void store_close(struct store *s)
{
	if (s->text >= 0)
		close(s->text);
	if (s->queue >= 0)
		close(s->queue);
	*s = (struct store){ .text = -1, .queue = -1 };
}
