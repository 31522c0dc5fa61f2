/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections in the file `saved` (saved.h), and the memory for the core behind them: what changes while clients are
 * served.
 *
 * A connection has a place as long as its number is in use, also when it is closed and its process may still believe to hold
 * something (a ghost). Its mark counts once the keeper has the connection, and says that another process cannot go on with
 * it: part of a request was read, a request is not answered, or something is to be written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/files/saved_file.h"

struct saved;

/* Connection numbers are smaller. */
size_t saved_clients(const struct saved *s);

/* These take NULL. */
/* Of `who` its identity and until_ns count. `fd` is our end of the connection; -1: it is closed already. */
void saved_connected(struct saved *s, uint32_t conn, const struct saved_conn *who, int fd);
void saved_gone(struct saved *s, uint32_t conn);
void saved_holder(struct saved *s, uint32_t conn, bool holds);
/* Somebody holds something without a connection, or nobody does any longer. */
void saved_bearers(struct saved *s, bool hold);
/* Learns the other ends of some new holders' connections; to be called about every second. */
void saved_look(struct saved *s);

const struct saved_conn *saved_conn(const struct saved *s, uint32_t conn);
/* The keeper has the connection, which has something under way, or nothing. Returns its mark, for the caller to set. */
uint32_t *saved_keep(struct saved *s, uint32_t conn, bool busy);
/* False: the process of the connection has surely ended, and nobody has the other end. */
bool saved_conn_lives(const struct saved *s, uint32_t conn);

/*
 * Memory that is behind that which there is already in the file, and anywhere in this process. NULL: see errno; a full file
 * system is an error now, not a signal later.
 */
void *saved_grow(struct saved *s, size_t bytes);
/*
 * Gives that part of the memory, a multiple of a page, back to the file system: it reads as zeros, and nobody may write to
 * it. If the file system refuses, the part is unused all the same.
 */
void saved_give_back(struct saved *s, void *memory, size_t bytes);
/* Takes the part that was given back last again, as by saved_grow(). NULL: see errno; 0: nothing was given back. */
void *saved_refill(struct saved *s, size_t *ret_bytes);
/* So much more there is already, because the file was a spare. */
size_t saved_room(const struct saved *s);
