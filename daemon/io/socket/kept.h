/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that the keeper (base/keeper.h) was asked to hold a copy of, and that it has not answered for. Its answers
 * come in about the order of the questions; a connection may have ended by then, and its number be another's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keeper;
struct kept;
struct saved;

/* Either may be NULL: then there is nothing to ask. */
struct kept *kept_new(struct keeper *keeper, const struct saved *saved);
/* Takes NULL. */
void kept_free(struct kept *k);
/* Asks for the connection of that number. False: not now. */
bool kept_ask(struct kept *k, uint32_t conn, int fd);
/* The same for the page of a connection that the keeper was already asked to keep. */
bool kept_ask_page(struct kept *k, uint32_t conn, int fd);
/* The keeper has answered about a connection, or about its page. False: that connection has ended. */
bool kept_answered(struct kept *k, uint64_t id, uint32_t *ret_conn);
/* The connection that it was asked for ends: to be called before saved_gone(). */
void kept_drop(struct kept *k, uint32_t conn);
/* The same of a page; it may never have been asked for. */
void kept_drop_page(struct kept *k, uint32_t conn);
