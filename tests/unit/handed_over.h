/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that has handed over ends without a word: the kernel closes its descriptors, and nothing is shut down. A
 * server whose sockets another one goes on with is freed while `handed_over` is set: the sockets then count as closed to
 * descriptors (intake.h), as all are since Linux 6.16, and so they are only closed. This replaces a function of the C
 * library: one file of a program includes it.
 */
#pragma once

#include <sys/syscall.h>

#include "io/base/parcel.h"
#include "socket_fixture.h"

static bool handed_over;

int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	enum { PASSRIGHTS = 83 };

	if (handed_over && level == SOL_SOCKET && option == PASSRIGHTS) {
		*(int *)value = 0;
		return 0;
	}
	return (int)syscall(SYS_getsockopt, fd, level, option, value, len);
}

/* The server of the next process takes over what this one has, which is so many descriptors. */
static inline void hand_over(const struct server_conf *conf, size_t fds)
{
	struct parcel parcel = { 0 };

	server_pack(server, &parcel);
	assert_int_equal(parcel.fd_count, fds);
	for (size_t i = 0; i < fds; i++)
		parcel.fds[i] = dup(parcel.fds[i]);
	handed_over = true;
	server_free(server);
	handed_over = false;
	server = server_new(NULL, listening, -1, conf);
	assert_int_equal(server_unpack(server, &parcel), 0);
	server_give_pages(server);
	server_begin(server);
	parcel_free(&parcel);
}
