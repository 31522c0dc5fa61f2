/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listening socket: for all clients, or for operators. It is made in a private directory beside its place, given its
 * owner and mode there, and renamed into place while it listens: nobody ever finds it with other rights, and a stale
 * socket is replaced in one step. A lock file beside it (PATH.lock) keeps two daemons that start at the same time
 * apart; it stays when the daemon ends.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define LISTEN_ERROR_MAX 512
#define LISTEN_NO_GROUP ((gid_t)-1)
/* How a service manager calls the operators' socket (LISTEN_FDNAMES). */
#define LISTEN_OPERATORS_NAME "operators"

struct parcel;

struct listener {
	int fd, lock_fd; /* -1: none */
	char *path;      /* NULL if the socket was passed */
	dev_t dev;
	ino_t ino;
};

/* Members of that group may connect, unless the configuration names another group. */
#define LISTEN_USUAL_GROUP "lockbroker"
/* Where it is to be. `key`: of the configuration, for sentences. LISTEN_NO_GROUP leaves the group alone. */
struct listen_address {
	const char *key, *path;
	mode_t mode;
	gid_t gid;
};

/*
 * The group of that name or number; LISTEN_NO_GROUP for "". 0, or -errno and a sentence; -EAGAIN: not to be looked up now.
 * May block.
 */
int listen_group(const char *key, const char *group, gid_t *ret_gid, char error[LISTEN_ERROR_MAX]);
/* LISTEN_USUAL_GROUP, if there is one and this process may give files to it; else LISTEN_NO_GROUP. May block. */
gid_t listen_usual_group(void);
/*
 * `lock_fd`: a descriptor of the lock file of the earlier process, whose socket is gone. The listener takes the
 * descriptor if it belongs to the lock file of this place, and if nothing fails. -1: none. 0, or -errno and a sentence.
 */
int listen_open(struct listener *l, const struct listen_address *address, int lock_fd, char error[LISTEN_ERROR_MAX]);
/*
 * A user who owns the directory of that path, or may write to it, can put a socket of their own there. 0, also if there
 * is no such directory, or -EPERM and a sentence.
 */
int listen_check_dir(const struct listen_address *address, char error[LISTEN_ERROR_MAX]);
/* Takes the sockets that the service manager passed; fd is -1 where there is none. 0, or -errno and a sentence. */
int listen_passed(struct listener *clients, struct listener *operators, char error[LISTEN_ERROR_MAX]);
/*
 * Takes the socket of the earlier process, and the descriptor of its lock file; -1: it was passed. False, and both stay
 * the caller's: it is no socket, or not the socket of `path`.
 */
bool listen_take_back(struct listener *l, const char *path, int fd, int lock_fd);
/* Somebody has removed the socket: the path leads to no file, or to another one. Also of a socket that was passed. */
bool listen_is_missing(const struct listener *l);
/* The same of the lock file; false of a socket that was passed. */
bool listen_lock_is_missing(const struct listener *l);
/* Makes the lock file again. 0, or -errno and a sentence: -EADDRINUSE: another daemon has it. */
int listen_lock_again(struct listener *l, const char *key, char error[LISTEN_ERROR_MAX]);
/* True, with a sentence, if a socket that was passed is seen to have another mode or group. */
bool listen_differs(const struct listener *l, const struct listen_address *address, char text[LISTEN_ERROR_MAX]);
/*
 * For a process that ends: removes the socket if it is still the socket that was made here. The descriptor stays open
 * until the process ends: connections that were not accepted may have descriptors of lingering sockets unread
 * (intake.h). A close would wait for these; the end of the process does not.
 */
void listen_close(struct listener *l);
/* A hand-over, as a record of that word. 0; -ENOENT: there is none; or -EBADMSG. */
void listen_pack(const struct listener *l, const char *word, struct parcel *p);
int listen_unpack(struct listener *l, const char *word, struct parcel *p);
