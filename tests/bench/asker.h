/* SPDX-License-Identifier: Apache-2.0 */
/* One process that asks the daemon: requests, whole answers, and what all processes of bench-neighbours count together. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"

enum { ASKER_IN_BYTES = 1 << 16, ASKER_REQUEST_BYTES = 1 << 17 };

struct shared {
	atomic_long asked, refused, connected, ready;
	atomic_int holding; /* processes that have the lock which others are to wait for */
	atomic_int told;
	char sentence[512]; /* the first that refused one of them */
};

struct link {
	int fd;
	size_t len, used;
	char in[ASKER_IN_BYTES];
};

extern struct shared *shared;              /* by all processes */
extern const char *path;                   /* the daemon's socket */
extern int number, processes, connections; /* of this process, among so many, which have so many together */
extern char reply_line[ASKER_IN_BYTES];    /* the latest line of an answer */
extern char request[ASKER_REQUEST_BYTES];

_Noreturn void fail(const char *what);
int open_fd(void); /* -1: refused by the kernel */
bool send_all(int fd, const char *data, size_t len);
/* Words up to NULL, as one request; its length. */
size_t put(char *out, const char *word, ...);
void note_refusal(void); /* reply_line says why */
/* Asks, and waits for the answer. Its first character; 0: the connection is over. */
char ask(struct link *l, const char *text, size_t len);

#define ASK(l, ...) (ask((l), request, put(request, __VA_ARGS__, NULL)))
