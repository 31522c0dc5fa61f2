/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the keeper and one worker (io/base/keeper_message.h). Nothing here waits: the messages that
 * cannot be sent now are bounded, and nothing more is read before an answer could be sent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/base/keeper_message.h"

struct descriptors;
struct notify;

enum { EXCHANGE_SIGNALS = 64 };

/* The worker's messages; the function that has handled them sets them back. */
struct exchange_heard {
	pid_t sender; /* of the latest message; 0: none */
	bool here, alive, again, stays;
	uint64_t within_us; /* of `alive` */
};

struct exchange {
	struct descriptors *descriptors;
	struct notify *manager; /* NULL: there is none */
	int fd;           /* -1: there is no worker, or it has ended */
	size_t given;     /* of the kept descriptors */
	bool begun;       /* and BEGIN was sent */
	uint32_t crashes; /* for BEGIN */
	uint64_t signals; /* that are to be passed on: bits; they stay from one worker to the next */
	pid_t senders[EXCHANGE_SIGNALS];
	struct keeper_message kept, refused; /* answers */
	struct exchange_heard heard;
	char most[KEEPER_TEXT_MAX + 1]; /* of the latest MOST of this worker; "": there was none */
};

/* With another worker, which is given all that is kept. `fd` is the exchange's. */
void exchange_begin(struct exchange *x, int fd, unsigned int crashes);
/* ... with one that was given it by another keeper. */
void exchange_go_on(struct exchange *x, int fd);
void exchange_signal(struct exchange *x, int number, pid_t sender);
/* Sends the messages that can be sent now. False: something waits until the worker reads. */
bool exchange_tell(struct exchange *x);
/* Sends and receives, until there is nothing more, or AGAIN. False: the worker's end is closed, and our end as well. */
bool exchange_turn(struct exchange *x);
