/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which socket is meant. lb_open(), -S and LOCKBROKER_SOCKET take a path, or one of two short names:
 *
 *   user  -> lockbroker/lockbroker.sock in the user's runtime directory: $XDG_RUNTIME_DIR, or /run/user/UID if it is not set
 *   @NAME -> /run/lockbroker@NAME/lockbroker.sock: the socket of lockbrokerd@NAME.service
 *
 * The user's broker is never used unless somebody has asked for it: its locks exclude nobody else, and a program that gets
 * one while the system's broker is stopped would take it for a lock of all hosts. Not part of the public interface.
 */
#pragma once

#include <stdbool.h>

/* The system's: the socket of lockbrokerd.service. */
#define SOCKET_PATH_DEFAULT "/run/lockbroker/lockbroker.sock"
/* The name of the user's own. */
#define SOCKET_PATH_USER "user"

enum { SOCKET_PATH_MAX = 4096 };

struct socket_path {
	char text[SOCKET_PATH_MAX]; /* the path; or, if there is none, a sentence that says why */
	const char *remedy;         /* a sentence: the remedy if nobody listens there */
};

/*
 * NULL: the socket that LOCKBROKER_SOCKET names, if this program may trust that variable, otherwise the system's.
 * false: the user's runtime directory is not known, or somebody else may write to it.
 */
bool socket_path_find(const char *name, struct socket_path *ret);
/* A socket that never blocks, connected to the path; -1: it cannot be, or not at once, and errno says why. */
int socket_path_connect(const char *path);
