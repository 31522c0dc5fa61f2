/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening socket. Made in a private directory beside its place, given its owner and mode there, and renamed
 * into place listening: nobody ever meets it with other rights, and a stale one is replaced in one step. A lock
 * file beside it (PATH.lock) keeps two starting daemons apart; it stays when the daemon ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LISTEN_ERROR_MAX 512
#define LISTEN_NO_GROUP ((gid_t)-1)

struct listener {
	int fd, lock_fd; /* -1: none */
	char *path;      /* NULL when the socket was passed */
	dev_t dev;
	ino_t ino;
};

/* The group of that name or number, LISTEN_NO_GROUP for "". 0, or -errno and a sentence. */
int listen_group(const char *group, gid_t *ret_gid, char error[LISTEN_ERROR_MAX]);
/* 0, or -errno and a sentence. LISTEN_NO_GROUP leaves the group alone. */
int listen_open(struct listener *l, const char *path, mode_t mode, gid_t gid, char error[LISTEN_ERROR_MAX]);
/* Takes the socket passed by the service manager. 1 when there is one, 0 when not, else -errno and a sentence. */
int listen_passed(struct listener *l, char error[LISTEN_ERROR_MAX]);
/* True, and a sentence, when a socket that was passed has not that mode and group, as far as can be seen. */
bool listen_differs(const struct listener *l, mode_t mode, gid_t gid, char text[LISTEN_ERROR_MAX]);
/* Removes the socket if it is still the one that was made here. Takes a zero fd of -1. */
void listen_close(struct listener *l);
