/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A handle: how its connection begins and ends, and its settings. */
#include "lockbroker.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "handle.h"
#include "reply.h"
#include "request.h"

#define SOCKET_DEFAULT "/run/lockbroker/lockbroker.sock"

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
			    (unsigned)st.st_mode & 07777);
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
		return wire_fail(lb, LB_CONNECTION, "No lockbrokerd is serving %s: %s.", path, strerror(error));
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

static enum lb_result connect_to(struct lb *lb, const char *path)
{
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
	if (error) {
		close(fd);
		return cannot_connect(lb, path, error);
	}
	lb->fd = fd;
	return LB_OK;
}

static struct lb *new_handle(void)
{
	struct lb *lb = calloc(1, sizeof(*lb));

	if (!lb)
		abort();
	lb->fd = -1;
	resp_replies_init(&lb->replies, WIRE_VALUES_MAX, WIRE_REPLY_BYTES_MAX);
	snprintf(lb->error, sizeof(lb->error), "Nothing has failed.");
	return lb;
}

/* Maps the session page, whose path and id are in the daemon's answer to HELLO. */
static void find_page(struct lb *lb)
{
	const struct lb_reply *hello = (const struct lb_reply *)lb->replies.values;
	struct slice path, id;

	path.data = lb_reply_text(lb_reply_field(hello, "session_page"), &path.len);
	id.data = lb_reply_text(lb_reply_field(hello, "session_page_id"), &id.len);
	holdings_map(&lb->holdings, path, id);
}

enum lb_result handle_open(const char *path, int64_t patience_ms, struct lb **ret)
{
	const struct slice hello[] = { SLICE("HELLO"), SLICE("3") };
	struct lb *lb = *ret = new_handle();
	enum lb_result r;

	lb->patience_ms = patience_ms;
	if (!path)
		path = secure_getenv("LOCKBROKER_SOCKET");
	if (!path || !*path)
		path = SOCKET_DEFAULT;
	r = connect_to(lb, path);
	if (r == LB_OK)
		r = request_ask(lb, 2, hello, 0);
	lb->patience_ms = HANDLE_PATIENCE_MS;
	if (r == LB_OK) {
		find_page(lb);
		return r;
	}
	if (lb->fd >= 0)
		close(lb->fd);
	lb->fd = -1;
	memcpy(lb->end, lb->error, sizeof(lb->end));
	return r;
}

enum lb_result lb_open(const char *path, struct lb **ret)
{
	return handle_open(path, HANDLE_PATIENCE_MS, ret);
}

void lb_close(struct lb *lb)
{
	int kept = errno;

	if (!lb)
		return;
	if (lb->fd >= 0)
		close(lb->fd);
	resp_replies_deinit(&lb->replies);
	bytes_free(&lb->in);
	bytes_free(&lb->out);
	bytes_free(&lb->events);
	bytes_free(&lb->unlock_names);
	bytes_free(&lb->late_error);
	bytes_free(&lb->late_name);
	holdings_free(&lb->holdings);
	free(lb);
	errno = kept;
}

int lb_fd(const struct lb *lb)
{
	return lb->fd;
}

void lb_set_patience(struct lb *lb, int64_t ms)
{
	lb->patience_ms = ms < 1 ? 1 : ms;
}

void lb_set_deferred(struct lb *lb, int on)
{
	lb->waits_for_unlock = !on;
}

const char *lb_error(const struct lb *lb)
{
	return lb->error;
}
