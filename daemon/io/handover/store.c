/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/store.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/base/parcel.h"
#include "io/handover/channel.h"
#include "io/handover/sealed.h"

enum {
	QUEUE_BYTES = 1 << 24, /* room for as many messages as a million descriptors need */
};

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
	rc = sealed_make(bytes_view(&p->text), &ret->text);
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

int store_read(const struct store *s, struct parcel *ret)
{
	struct channel_message m;
	int rc;

	*ret = (struct parcel){ 0 };
	rc = channel_receive(s->queue, &m, 0);
	if (rc == 0)
		rc = channel_receive_parcel(s->queue, &m, ret, 0);
	if (rc == 0)
		rc = ret->text.len == 0 ? sealed_map(s->text, CHANNEL_BYTES_MAX, ret) : -EBADMSG;
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
