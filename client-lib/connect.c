/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "connect.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Says what is not permitted, and what to do about it. */
static enum lb_result may_not(struct lb *lb, const char *path)
{
	struct group group, *found = NULL;
	char text[1024], number[24];
	const char *name = number;
	struct stat st;

	if (stat(path, &st) < 0)
		return wire_fail(lb, LB_DENIED, "This user may not look for lockbrokerd at %s: a directory of the path "
			    "cannot be searched. See its mode, or daemon.socket in lockbroker.conf.", path);
	if (!(st.st_mode & S_IWGRP))
		return wire_fail(lb, LB_DENIED, "This user may not use lockbrokerd at %s: the mode of the socket is %04o. "
			    "Set daemon.socket_mode in lockbroker.conf to admit more users.", path,
			    (unsigned)st.st_mode & 0777);
	if (st.st_gid == 0)
		return wire_fail(lb, LB_DENIED, "This user may not use lockbrokerd at %s: the socket belongs to the group "
			    "root; a member of it may. Set daemon.socket_group in lockbroker.conf to admit more users.", path);
	snprintf(number, sizeof(number), "%u", (unsigned)st.st_gid);
	if (getgrgid_r(st.st_gid, &group, text, sizeof(text), &found) == 0 && found)
		name = group.gr_name;
	return wire_fail(lb, LB_DENIED, "This user may not use lockbrokerd at %s: only the group %s may. Become a member "
		    "(usermod -aG %s USER, then log in again); the key daemon.socket_group in lockbroker.conf names "
		    "the group.", path, name, name);
}

static enum lb_result cannot_connect(struct lb *lb, const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return wire_fail(lb, LB_CONNECTION, "No lockbrokerd is serving %s: %s. Start it, or set LOCKBROKER_SOCKET to the "
				 "socket that it serves.", path, strerror(error));
	case EACCES:
	case EPERM:
		return may_not(lb, path);
	case EAGAIN:
		return wire_fail(lb, LB_CONNECTION, "The lockbrokerd at %s does not accept connections.", path);
	}
	return wire_fail(lb, LB_CONNECTION, "Cannot connect to lockbrokerd at %s: %s.", path, strerror(error));
}

/* The send timeout limits each blocking connect() to a local socket whose queue may be full. */
static int connect_within(int fd, const struct sockaddr_un *address, int64_t ms)
{
	int64_t deadline = wire_deadline(ms);

	for (; ms > 0; ms = deadline - wire_deadline(0)) {
		struct timeval timeout = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

		if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
			return errno;
		if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
			return 0;
		if (errno != EINTR)
			return errno;
	}
	return EAGAIN;
}

enum lb_result connect_socket(struct lb *lb)
{
	const char *path = lb->path;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int error, fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return wire_fail(lb, LB_CONNECTION, "The path of the socket is longer than %zu bytes: %.200s.",
			    sizeof(address.sun_path) - 1, path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return wire_fail(lb, LB_CONNECTION, "Cannot make a socket: %s.", strerror(errno));
	error = connect_within(fd, &address, lb->patience_ms);
	lb->refused = error == ECONNREFUSED;
	if (error) {
		close(fd);
		return cannot_connect(lb, path, error);
	}
	lb->fd = fd;
	return LB_OK;
}
