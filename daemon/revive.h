/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start after a kill: the keeper has the connections that the killed process had given it, the file `saved` says who
 * they are and has the ledger, and the broker is made of that (core/salvage.h).
 *
 *   a connection                               | becomes of it
 *   is as the file says, and is not marked,    | goes on under its number, with its page if that is there
 *     its client misses nothing, and there is  |
 *     the page by which locks are delegated to |
 *     it, if any are                           |
 *   anything else                              | is shut down. If its client holds something, that is a ghost's (server.h)
 *
 * Until the new file has its name, the old one counts: another kill leaves what this one did.
 */
#pragma once

#include <stdbool.h>

struct daemon;
struct keeper_kept;
struct saved_left;

/* What is gone on with. Zero-initialised: nothing. */
struct revival {
	struct saved_left *left; /* NULL: nothing */
	/* By number: what is taken back of what the keeper has. */
	struct keeper_kept **taken, **pages;
	bool *back;
};

/*
 * Makes d->feed of what was left. False: there is nothing to go on from, and if there should be, the reason was logged: then
 * this process starts as usual. `left` stays the caller's, and has to outlive the revival; its sessions are those that
 * d->saved is to have.
 */
bool revive_broker(struct daemon *d, struct saved_left *left, struct revival *ret);
/* When d->server is made: its connections and ghosts. What is not taken back is shut down. */
void revive_clients(struct daemon *d, struct revival *r);
void revive_free(struct revival *r);
