/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cells of tables for a holder, mostly for a row of HOLDERS or QUEUE. */
#pragma once

#include "client-lib/cli/sheet.h"

/* A program, and the text of its holder in parentheses; each may be empty. */
void holder_text_cell(struct sheet *s, struct slice program, struct slice data);
/* The work of a holder: the name that it gave itself, or its program, and its text in parentheses; empty: not known. */
void holder_cell(struct sheet *s, const struct lb_reply *row);
/* Exclusive, shared; of a semaphore "2 of 3" permits that it holds or waits for; of an election leader, candidate. */
void holder_mode_cell(struct sheet *s, const struct lb_reply *row);
/* For how long it has held the lock by now, also on another host; empty: not known. */
void holder_held_cell(struct sheet *s, const struct lb_reply *row);
