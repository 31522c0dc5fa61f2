/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a directory's claims and watches are charged with against the session's budget (budget.h), and whether that allows
 * one more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct claim;
struct directory;

/* The sentence for whoever asks for a name that charge_is_oversize(). */
extern const char charge_too_long[];

/* NULL: so many more claims in this directory are within all limits. Else the sentence for who asked. */
const char *charge_refuses(const struct directory *d, size_t count);
/* The same for who wants to observe it. */
const char *charge_refuses_observer(const struct directory *d);
/* Its name makes requests that are larger than the server takes. */
bool charge_is_oversize(const struct directory *d);
/* What a znode in it tells of a holder may include the text that the holder gave. */
bool charge_fits_text(const struct directory *d);
/* After a reconnection the claim's own znode may be watched: that leaves room for others. */
bool charge_fits_own(const struct claim *c);
/* What its watches count, from its flags. */
size_t charge_watches(const struct directory *d);
/* Once a directory that was touched is settled. */
void charge_recount(struct directory *d);
