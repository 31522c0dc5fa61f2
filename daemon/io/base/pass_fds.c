/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/pass_fds.h"

#include <string.h>
#include <sys/socket.h>

void pass_fds(struct msghdr *message, struct cmsghdr *room, const int *fds, size_t count)
{
	size_t len = count * sizeof(int);

	memset(room, 0, CMSG_SPACE(len));
	room->cmsg_level = SOL_SOCKET;
	room->cmsg_type = SCM_RIGHTS;
	room->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(room), fds, len);
	message->msg_control = room;
	message->msg_controllen = CMSG_SPACE(len);
}
