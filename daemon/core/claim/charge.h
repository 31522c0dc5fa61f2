/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This module charges a directory's claims and watches against the session's budget (budget.h), and tells whether the
 * budget allows one more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct claim;
struct directory;

/* The error sentence for a name that charge_is_oversize(). */
extern const char charge_too_long[];

/* NULL: `count` more claims in this directory stay within all limits. Otherwise the error sentence. */
const char *charge_refuses(const struct directory *d, size_t count);
/* The same for one more observer. */
const char *charge_refuses_observer(const struct directory *d);
/* The directory's name would make requests larger than the server accepts. */
bool charge_is_oversize(const struct directory *d);
/* The data of a znode in it may include a text of that length. */
bool charge_fits(const struct directory *d, size_t text);
/* After a reconnection the claim's own znode may be watched: the watch leaves enough room for others. */
bool charge_fits_own(const struct claim *c);
/* The bytes that the directory's watches count for, computed from its flags. */
size_t charge_watches(const struct directory *d);
/* Charges the directory's watches again. It is called once a touched directory is settled. */
void charge_recount(struct directory *d);
