/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This module charges a directory's claims and watches, which the session's packets bound (budget.h), to its payer, and
 * tells whether one more is admitted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct account;
struct claim;
struct directory;

/* The error sentence for a name that charge_is_oversize(). */
extern const char charge_too_long[];

/* NULL: `count` more claims in this directory stay within all limits of d->payer. Otherwise the error sentence. */
const char *charge_refuses(const struct directory *d, size_t count);
/* The same for one more observer, who is privileged or not. */
const char *charge_refuses_observer(const struct directory *d, bool privileged);
/* The directory's name would make requests larger than the server accepts. */
bool charge_is_oversize(const struct directory *d);
/* The data of a znode in it may include a text of that length. */
bool charge_fits(const struct directory *d, size_t text);
/* After a reconnection the claim's own znode may be watched: the watch leaves enough room for others. */
bool charge_fits_own(const struct claim *c);
size_t charge_path(const struct directory *d); /* the bytes that a claim in it counts for */
/* From now on that account pays for its claims, unless they are permits, and for its watches. */
void charge_to(struct directory *d, struct account *payer);
/* The bytes that the directory's watches count for, computed from its flags. */
size_t charge_watches(const struct directory *d);
/* Charges the directory's watches again. It is called once a touched directory is settled. */
void charge_recount(struct directory *d);
