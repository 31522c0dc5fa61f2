/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns decide what is sent next when more operations are due than may be open at once (operation.h). Directories wait
 * in queues; when its turn comes, a directory's state shows what it has to send. So waiting takes no memory of its own.
 *
 *   turn    | a directory waits for it                                  | may be sent
 *   DELETE  | to delete a znode that nobody wants                       | when the window has room
 *   JOIN    | to join, or to ask what a waiting or held claim must know | the same, and nothing open is older than T/12:
 *   RECOVER | to find out what became of its claims (a reconnection)    |   behind an operation that old no read is
 *   LOOK    | to look at a waiting claim (listing.h)                    |   sent, or it would hide how long that takes
 *
 * A queue that is earlier in the table goes first, and each queue is first in, first out. Questions, the outbox and the
 * audit come after all queues; heartbeats do not wait at all. But of every eight turns one begins with each queue in its
 * turn, and one is for questions and the like, so that none of them starves. A directory whose turn it is sends all that
 * it has to send, deletes first: while its delete waits it sends nothing else. Turns are given only while the connection
 * proves the session.
 *
 * The operations that one claim sends together are one breath: once begun it is finished, even if the window is full.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/queue.h"

struct directories;
struct directory;

enum turn { TURN_DELETE, TURN_JOIN, TURN_RECOVER, TURN_LOOK, TURN_QUESTIONS, TURN_NONE };

enum { TURNS = TURN_LOOK + 1 }; /* the turns that have a queue */

TAILQ_HEAD(turn_queue, directory);

struct turns {
	struct turn_queue queues[TURNS];
	size_t waiting;           /* directories in all queues together */
	struct directory *served; /* the directory whose turn it is, or NULL */
	bool breath;
	unsigned int count; /* turns given so far */
	bool questions;     /* it is the turn of questions */
};

void turn_init(struct directories *all);
/* Nobody waits, and there is room: for operations that may as well be left out. */
bool turn_is_free(const struct directories *all);
/* True: the directory may send that now. Otherwise it waits, and is settled when its turn comes. */
bool turn_may(struct directory *d, enum turn turn);
void turn_wait(struct directory *d, enum turn turn);
/* The directory does not wait any longer. */
void turn_forget(struct directory *d);
/* Gives the next turn, if there is one, to a directory or to questions. It lasts until the next call. */
enum turn turn_next(struct directories *all, struct directory **d);
/* Questions, the outbox and the audit may send: no directory waits, or it is their turn. */
bool turn_of_questions(const struct directories *all);
