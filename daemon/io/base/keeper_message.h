/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the keeper, which holds descriptors, and the worker, which does everything else: over one SOCK_SEQPACKET
 * pair, so that each arrives whole or not at all.
 *
 *     from    message  numbers
 *     worker  HERE     none: it serves (READY=1); the kernel says which process that is
 *     worker  KEEP     ids, and as many descriptors with them
 *     worker  DROP     ids: their descriptors are to be closed
 *     worker  ALIVE    one: microseconds within which it says so again, or hangs and is to be ended; 0: it need not
 *     worker  AGAIN    none: the keeper is to run the program that is installed by now
 *     worker  NOTIFY   the bytes of a text, and perhaps a descriptor: to be sent to the service manager as they are, which
 *                      believes the main process of the service only
 *     worker  STAYS    none: it has not left everything for the next start of the service, and goes on (SIGUSR1)
 *     worker  MOST     the bytes of a text: who is charged for most memory, if the kernel kills the worker for want of it
 *     keeper  BACK     ids, and the descriptors that an earlier worker gave it; only at the start of a worker
 *     keeper  BEGIN    one: how many workers crashed within the last minute; all of BACK came before
 *     keeper  KEPT     ids of a KEEP: it has their descriptors
 *     keeper  REFUSED  ids of a KEEP: it has no room for them
 *     keeper  SIGNAL   two: the number of a signal that the service was sent, and the process that sent it
 *
 * The two may be of different versions for a moment: a kind has its number for good, and a process that does not know a
 * kind ignores it. An id is the worker's business, but for KEEPER_ROLE: after too many crashes the keeper shuts down
 * and closes all descriptors without a role.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum keeper_kind {
	KEEPER_HERE = 1,
	KEEPER_KEEP,
	KEEPER_DROP,
	KEEPER_ALIVE,
	KEEPER_AGAIN,
	KEEPER_BACK,
	KEEPER_BEGIN,
	KEEPER_KEPT,
	KEEPER_REFUSED,
	KEEPER_SIGNAL,
	KEEPER_NOTIFY,
	KEEPER_STAYS,
	KEEPER_MOST,
};

enum {
	KEEPER_BATCH = 64, /* numbers in one message */
	KEEPER_TEXT_MAX = KEEPER_BATCH * sizeof(uint64_t),
	/* From so many crashes within a minute on, the worker starts without the state of the worker before it. */
	KEEPER_CRASHES_ANEW = 3,
	/* The exit status of a worker that has handed over: another process is the worker. */
	KEEPER_HANDED_OVER = 75,
};

/* Of an id: a part of the daemon, such as its listening socket, and not a client's connection. */
#define KEEPER_ROLE (UINT64_C(1) << 63)

struct keeper_message {
	uint32_t kind, count;
	uint64_t numbers[KEEPER_BATCH];
};

/*
 * The descriptors and the sender of a message. The descriptors are the caller's; the kernel may have had room for fewer
 * than were sent.
 */
struct keeper_message_with {
	int fds[KEEPER_BATCH];
	size_t fd_count;
	pid_t sender; /* 0: unknown; only if the socket was made with keeper_message_pair(), at the keeper's end */
};

/* The text has to fit, and has no byte 0. */
void keeper_message_text(struct keeper_message *m, const char *text);
/* Its length; it is at m->numbers. */
size_t keeper_message_text_len(const struct keeper_message *m);

/* Two ends that no other program inherits, and that never block. 0 or -errno. */
int keeper_message_pair(int *ret_keeper, int *ret_worker);
/* With so many descriptors, at most `m->count`. 0 or -errno: -EAGAIN: not now; -EPIPE: the other end is closed. */
int keeper_message_send_with(int fd, const struct keeper_message *m, const int *fds, size_t fd_count);
/* With `m->count`, or none (NULL). */
int keeper_message_send(int fd, const struct keeper_message *m, const int *fds);
/* 0 or -errno, also -EAGAIN, -EPIPE as above, -EBADMSG: that is no message. */
int keeper_message_receive(int fd, struct keeper_message *ret, struct keeper_message_with *ret_with);
