/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients' side: accepts connections, numbers them, feeds their requests to the broker and writes its replies.
 * Numbers are small and dense; a number is free again when EVENT_CLIENT_GONE has been reported.
 *
 * A connection beyond its user's share of limits.clients gets -LIMIT and is closed; the broker never learns of it. When
 * descriptors run out, accepting pauses for a moment.
 *
 * All that connections want is done in turns (party.h), also their ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/slice.h"

struct accounts;
struct feed;
struct keeper;
struct parcel;
struct remains;
struct saved_conn;

struct server_conf {
	size_t clients, pages, request_bytes, request_args;
	unsigned int user_share; /* percent */
	const uint32_t *by_unit; /* borrowed until the next limits: as broker_limits has it */
	size_t by_unit_count;
	/* If half of it is unread, no more requests of that client are read; if pushes exceed it, it is closed. */
	size_t output_bytes;
	struct saved *saved;   /* the table of connections; NULL: none is kept. Must outlive the server, as must: */
	struct life *life; /* asked before pages are given out; NULL: at once */
	struct keeper *keeper; /* NULL: nobody goes on with connections if this process is killed */
};

struct bytes;
struct server;

/* For connections from `fd`, and for operators' connections from `operators` (-1: none); both stay the caller's. */
struct server *server_new(struct feed *feed, int fd, int operators, const struct server_conf *conf);
/* From here on it accepts connections, and serves the connections that it has. */
void server_begin(struct server *s);
/* Another socket in the place of that for clients, or for operators; the one before stays open (accept_replace()). */
void server_listen(struct server *s, bool operators, int fd);
/* Closes every connection; the broker is not notified. Takes NULL. */
void server_free(struct server *s);

/* Other limits (`saved` is ignored). Connections beyond limits.clients stay; limits of a request are for new connections. */
void server_limits(struct server *s, const struct server_conf *conf);

/* Effects. A connection that is closing ignores them. `lazy`: it may wait for the next output. */
void server_reply(struct server *s, uint32_t number, struct slice text, bool lazy);
/* The reply is `text` from `at` on; `text` is empty afterwards. */
void server_reply_whole(struct server *s, uint32_t number, struct bytes *text, size_t at);
void server_push(struct server *s, uint32_t number, struct slice text, bool report);
void server_close(struct server *s, uint32_t number);
void server_process(struct server *s, uint32_t number, uint32_t pid);
/* A page is made for it when the turn settles (EVENT_CLIENT_PAGE). */
void server_page(struct server *s, uint32_t number);
/* The reply that carries the file descriptor of the page. */
void server_reply_page(struct server *s, uint32_t number, struct slice text);

/* Once a turn: serves connections that have something to be read, parsed or freed, by user and then by connection. */
void server_continue(struct server *s);
/* Writes the output, and does the work that is due once a second. */
void server_settle(struct server *s);
/* No connection is to be freed: the broker knows of all that are gone. Before that nothing is handed over. */
bool server_is_clean(const struct server *s);
/* Frees them now, out of turn: a stream of clients that come and go must not keep a hand-over waiting. */
void server_clean(struct server *s);
/* Settles until it is clean: that a peer has gone is found out when it is written to; the time of ghosts may be over. */
void server_come_to_rest(struct server *s);

/*
 * After a kill, before server_begin(): a connection that is taken back (`fd` is the server's from now on), or a *ghost*, of
 * which the connection is gone. A ghost is a client until its process has surely ended and nobody has its end of the
 * connection, or until `until_ns`; if it was a ghost before this kill, until the instant that it was given then.
 */
void server_take_back(struct server *s, uint32_t number, const struct saved_conn *was, int fd, bool holds);
/* A connection that was taken back has that page, which is the server's from now on. */
void server_take_back_page(struct server *s, uint32_t number, int fd);
void server_add_ghost(struct server *s, uint32_t number, const struct saved_conn *was, int64_t until_ns);
void server_taken_back(struct server *s);
/* Closes a connection of an earlier process that this process does not go on with. `server`: a struct server. */
void server_turn_away(void *server, int fd);

/*
 * A hand-over, when the turn is settled: all connections, with their unread input and unwritten output. Unpacking reads
 * and writes nothing. 0 or -EBADMSG.
 */
void server_pack(const struct server *s, struct parcel *p);
int server_unpack(struct server *s, struct parcel *p);
/* In a process that goes on, before its first event: the broker, which knows all connections, gets their pages. */
void server_give_pages(struct server *s);
/* The use of connections, with the pools of socket_pools.h; and the remains of ended connections. */
struct accounts *server_accounts(struct server *s);
struct remains *server_remains(struct server *s);
bool server_has(const struct server *s, uint32_t number);
size_t server_count(const struct server *s);
