/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sends next, when more is to be asked of ZooKeeper than may be open (window.h): locks wait in queues, and
 * what a lock has to send is seen from its state when its turn comes. So what waits takes no memory of its own.
 *
 *   turn    | a lock waits for it                                       | may be sent
 *   DELETE  | with a znode that nobody wants                            | when the window has room
 *   JOIN    | to join, or for what a waiting or held claim has to know  | the same, and nothing open is older than T/12:
 *   RECOVER | to find out what became of its claims (a reconnection)    |   behind an operation that old no read is
 *   LOOK    | to look whether what it waits for is still as it was      |   sent, or it would hide how long that takes
 *
 * An earlier turn goes before a later one, and within one the first comes first. Questions, the mail and the audit come
 * after all of them, and heartbeats do not wait at all. But of eight turns one begins with each queue in its turn, and
 * one is for questions and the like, so that none of them waits for ever. A lock whose turn it is sends all that it has
 * to send, deletes first: one whose delete waits sends nothing else before. What waits is served while the connection
 * proves the session.
 *
 * What one claim sends together is one breath: begun, it is finished, whatever the window says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/queue.h"

struct directories;
struct directory;

enum turn { TURN_DELETE, TURN_JOIN, TURN_RECOVER, TURN_LOOK, TURN_QUESTIONS, TURN_NONE };

enum { TURNS = TURN_LOOK + 1 }; /* those that are waited for in a queue */

TAILQ_HEAD(turn_queue, directory);

struct turns {
	struct turn_queue queues[TURNS];
	size_t waiting;           /* directories in all queues together */
	struct directory *served; /* whose turn it is; NULL */
	bool breath;
	unsigned int count; /* turns that there were */
	bool questions;     /* it is their turn */
};

void turn_init(struct directories *all);
/* True: the directory may send that now. Else it waits, and is settled when its turn comes. */
bool turn_may(struct directory *d, enum turn turn);
void turn_wait(struct directory *d, enum turn turn);
/* It waits for nothing any more. */
void turn_forget(struct directory *d);
/* Gives the next turn, if there is one: to a directory, or to questions. It lasts until this is called again. */
enum turn turn_next(struct directories *all, struct directory **d);
/* Questions, the mail and the audit may send: no directory waits, or it is their turn all the same. */
bool turn_of_questions(const struct directories *all);
