/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page by which locks are delegated to a connection (protocol/delegation.h): memory that its process shares with this
 * one. An open file of its own (page_file.h) is sent to the client with the first byte of the reply to DELEGATE, and with no
 * other; or not at all, where the kernel has as many under way to others as this user may have.
 *
 *     state    meaning                                        leaves by
 *     asked    the broker wants it                            the turn settles -> due, or refused: none
 *     due      it is mapped, and the reply to be written      the first byte of that is written -> shared
 *     shared   the process has the descriptor, or it is       the end of the connection -> none, or left (remains.h)
 *              under way to the process
 *
 * Nobody can resize the page, so no access can fail. Because of its file descriptor it is charged, to a pool of its own
 * (socket_pools.h), for as long as anybody has it open (remains.h). When the connection ends, the memory goes back to the
 * kernel, even if a process keeps it mapped.
 *
 * The daemon makes the page, and does not accept one that a client has made, because it accepts no descriptors from clients
 * (intake.h).
 *
 * If this process is killed, the next one goes on with a connection that has delegated locks only if it has the page, too
 * (start.c). So the keeper is asked to hold both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/charge.h"
#include "protocol/slice.h"

struct conn;
struct conn_env;
struct delegation_page;
struct entry;
struct entry_writer;
struct parcel;

struct conn_page {
	struct conn *conn;
	struct delegation_page *shared; /* NULL: it is asked for */
	int fd;
	bool due;
	size_t before; /* while it is due: unwritten bytes before its reply */
	bool asked;    /* the keeper was asked to have it, too */
	struct charge charge;
	TAILQ_ENTRY(conn_page) link; /* while it is asked for */
};

TAILQ_HEAD(conn_page_list, conn_page);

/* EFFECT_PAGE. The connection has no page. */
void conn_page_ask(struct conn *c);
/* Makes the pages that are asked for, and tells the broker. */
void conn_page_make_all(struct conn_env *env);
/* If the client may have it: its descriptor, which is the caller's, before the page is freed. -1: it was not sent. */
int conn_page_leave(struct conn_page *page);
/* Charges the page to that account, even beyond its limit. */
void conn_page_enter(struct conn_page *page, struct account *account);
/* Frees the page's memory. The broker must have forgotten the page before, and nobody may need its contents. */
void conn_page_void(const struct conn_page *page);
void conn_page_free(struct conn_page *page); /* takes NULL */

/* The reply to DELEGATE is queued now, behind so many unwritten bytes. */
void conn_page_pass(struct conn_page *page, size_t before);
/* How many of the next `part` bytes may be sent in one call. */
size_t conn_page_part(const struct conn_page *page, size_t part);
/* As send(), with the file descriptor if these bytes are the beginning of its reply. `page` is due. */
ssize_t conn_page_send(struct conn_page *page, int fd, struct slice bytes);

/* Takes the page of an earlier process. NULL: `fd` is no page, and was closed. */
struct conn_page *conn_page_take(struct conn *c, int fd);
/* The same at a hand-over, in the record of a connection with or without a page. False: it cannot be used. */
void conn_page_pack(const struct conn_page *page, struct parcel *p, struct entry_writer *w); /* takes NULL */
bool conn_page_unpack(struct conn *c, struct parcel *p, const struct entry *e);
