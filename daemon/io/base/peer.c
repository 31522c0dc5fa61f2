/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/peer.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PEER_PIDFD = 77 /* SO_PEERPIDFD, which the headers of older systems do not have */ };

uint32_t peer_self(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint32_t)st.st_ino : 0;
}

uint64_t peer_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

union answer {
	struct nlmsghdr header;
	char bytes[1024];
};

/* Asks for the message about that socket; its length, or -errno. */
static int ask(int diag, uint32_t inode, union answer *ret)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.request = { .sdiag_family = AF_UNIX,
			     .udiag_states = UINT32_MAX,
			     .udiag_ino = inode,
			     .udiag_show = UDIAG_SHOW_PEER,
			     .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};
	struct nlmsgerr error;
	ssize_t len;

	if (diag < 0 || send(diag, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return -EIO;
	len = recv(diag, ret, sizeof(*ret), 0);
	if (len < (ssize_t)sizeof(ret->header) || ret->header.nlmsg_len > (size_t)len)
		return -EIO;
	if (ret->header.nlmsg_type == SOCK_DIAG_BY_FAMILY)
		return (int)ret->header.nlmsg_len;
	if (ret->header.nlmsg_type != NLMSG_ERROR || ret->header.nlmsg_len < NLMSG_LENGTH(sizeof(error)))
		return -EIO;
	memcpy(&error, NLMSG_DATA(&ret->header), sizeof(error));
	return error.error < 0 ? error.error : -EIO;
}

int peer_open(void)
{
	/* The kernel answers within send(): there is nothing to wait for. */
	int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	union answer answer;

	/* The first question may make the kernel load a module, which must not happen while somebody waits. */
	(void)ask(diag, 1, &answer);
	return diag;
}

uint32_t peer_of(int diag, uint32_t self)
{
	union answer answer;
	int len = self ? ask(diag, self, &answer) : -ENOENT;
	const struct rtattr *at;
	uint32_t peer = 0;

	if (len < (int)NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
		return 0;
	at = (const struct rtattr *)(const void *)(answer.bytes + NLMSG_SPACE(sizeof(struct unix_diag_msg)));
	for (len -= (int)NLMSG_SPACE(sizeof(struct unix_diag_msg)); RTA_OK(at, len); at = RTA_NEXT(at, len))
		if (at->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(at) >= sizeof(peer))
			memcpy(&peer, RTA_DATA(at), sizeof(peer));
	return peer;
}

bool peer_is_open(int diag, uint32_t peer)
{
	union answer answer;

	return !peer || ask(diag, peer, &answer) != -ENOENT;
}

uint64_t peer_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

void peer_groups(int fd, gid_t gid, struct peer_groups *ret)
{
	socklen_t len = (PEER_GROUPS_MAX - 1) * sizeof(gid_t);

	ret->list[0] = gid;
	ret->count = 1;
	ret->all = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret->list + 1, &len) == 0;
	if (ret->all)
		ret->count += len / sizeof(gid_t);
}

int peer_process(int fd)
{
	socklen_t len = sizeof(int);
	int process;

	if (getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &process, &len) == 0)
		return process;
	return errno == ENOPROTOOPT ? PEER_PROCESS_UNKNOWN : -1;
}

bool peer_process_lives(int process)
{
	struct pollfd ended = { .fd = process, .events = POLLIN };
	bool lives;

	if (process < 0)
		return false;
	lives = poll(&ended, 1, 0) == 0;
	close(process);
	return lives;
}
