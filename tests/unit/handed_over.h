/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that has handed over ends without a word: the kernel closes its descriptors, and nothing is shut down. A
 * test that frees a server whose sockets another one goes on with sets `handed_over` while it does: the sockets then
 * count as closed to descriptors (intake.h), as all are since Linux 6.16, and so they are only closed. This replaces a
 * function of the C library: one file of a program includes it.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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
