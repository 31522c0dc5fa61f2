/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The look at a claim that waits: somebody may have deleted its znode, or a server may have missed something. It comes
 * every 20 to 30 seconds, by chance, so that those who began to wait together do not look together.
 *
 * Two small reads are enough: its own znode, which is the one it made, and the one before it, which still stands. What
 * they cannot show is what else may lie in the directory; so every tenth look is a list, and so is each of a claim
 *
 * - in a directory whose data are not known to fit,
 * - of a semaphore: a stray of ours among the permits would keep whoever is before us,
 * - behind a znode of our own session: if no claim knows it, only a list has it deleted,
 * - whose mode is not that of who waits for it: a reader whom readers alone keep waiting needs another claim.
 *
 * Where the outcome of anything is unknown no look is due: what was listed since then shows all that there is of ours.
 *
 * And one follows when either znode is not there, or is another's. The list decides, as it always does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct claim;
struct event;
struct operation;

enum { LOOKS_MAX = 10 };

/* A list has shown that the claim waits: the next look is not due for a while. */
void look_later(struct claim *c);
/* Looks, if that is due and its turn has come. `fits`: its mode is that of who waits for it. True: it is listed. */
bool look_continue(struct claim *c, bool fits);
/* The answers of LOOK_OWN and LOOK_PRED. */
void look_answered(struct claim *c, const struct operation *op, const struct event *event);
