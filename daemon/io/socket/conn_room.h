/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for answers. What is not read yet is charged to the user, but for CONN_UNWRITTEN_SMALL of each connection. An answer
 * is never a reason to close a client that reads: its request waits until there is room.
 *
 *   request | means                                    | event -> next state
 *   short   | its answer is short, whatever others own | asked at once
 *   long    | its answer may be long: a command that   | there is room for the longest answer, or its user has nothing
 *           |   shows much, or a request that is long  |   unread -> asked; else -> held
 *   held    | it stays unparsed, and what comes behind | an answer of its user was written, and there is room -> asked,
 *           |   it in the socket                       |   the oldest first; the connection ends -> none
 *   asked   | a long one that is not answered at once: | answered -> none; what is unread then is charged
 *           |   room for the longest answer is charged |
 *
 * So a user never has more unread than its share, or one answer if others leave less, and for each connection: twice
 * CONN_UNWRITTEN_SMALL, once for answers and once for pushes, which cannot wait; and an answer that no command of the table
 * above gives. Who would get more than that is closed.
 *
 * While a request is held, connections of that user that have had something unread for CONN_PATIENCE_NS, and read nothing
 * of it, are closed until there is room: they keep others waiting. Who reads, however slowly, is not closed.
 */
#pragma once

#include "io/socket/conn_watch.h"

/* How much is unwritten, or expected, has changed: its account is charged for it. */
void conn_count_output(struct conn *c);
/* A place among those that are held may be free. */
void conn_wake(struct conn *c);
void conn_hold(struct conn *c);
/* Its request, of so many bytes, may have a long answer. */
bool conn_asks_much(const struct conn *c, size_t request_bytes);
/* It was asked, and is not answered yet. */
void conn_expect(struct conn *c);
/* False: its user has too much that is not read, and it is closed for that. */
bool conn_admits(struct conn *c, size_t more);
/* Closes it if it keeps others waiting. */
void conn_lose_patience(struct conn *c, int64_t now_ns);

static inline bool conn_must_wait(const struct conn *c, size_t request_bytes)
{
	return c->account->used[SOCKET_OUTPUT] && !conn_has_room(c) && conn_asks_much(c, request_bytes);
}
