/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that take a delegation back (delegated.h):
 *
 *   event                                   | one exclusive    | shared ones
 *   a reader asks, and is let in at once    | it is taken back | stay; the new grant may be delegated, too
 *   a reader asks, and has to wait          | it is taken back | all are taken back
 *   a writer asks here, or somebody waits   | it is taken back | all are taken back, in one pass: no client can take the
 *     on another host, or may wait there    |                  |   lock by its word before the writer gets it
 *   its client sends a command of OWN       | it is taken back | that client's is taken back
 *     (command/call.h) about the lock       |                  |
 *   another client sends one                | it stays         | stay
 *   the lock is idle for one of the clients | it is taken back | that client's is taken back
 *
 * A pass takes back at most SHARED_DELEGATIONS_MAX grants: further readers of the lock have ordinary grants.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/znode/mode.h"

struct client;
struct delegation_slot;
struct delegations;
struct grant;
struct lock;

#define DELEGATED_IDLE_NS INT64_C(1000000000) /* between two searches for unused delegations */

/* Takes all delegations of the lock back: each grant ends, or becomes ordinary. `disturbed`: for somebody else's sake. */
void delegated_take_back(struct lock *lock, bool disturbed);
/* The client asks for the lock in that mode: takes all delegations of the lock back, unless both modes are shared. */
void delegated_give_way(struct lock *lock, const struct client *c, enum mode mode);
void delegated_take_back_own(struct lock *lock, const struct client *c); /* only that client's, for its own sake */
void delegated_take_back_all(struct client *c); /* the delegations of all its locks, for its own sake */
/* The most words that are read in one request to find delegations that are free. */
enum { DELEGATED_LOOKS = 256 };
/*
 * The client is at a limit of grants: takes one free delegation back, of the client itself if `own`, else of any client of
 * its user. *looks is the number of words that may still be read. False: no free delegation was found among them.
 */
bool delegated_make_room(struct client *c, bool own, size_t *looks);

/*
 * A pass visits the slots of one client in pieces (core/port/work.h). A slot that it has not visited yet is delegated as
 * before.
 *
 *   state | means                                  | event -> next state
 *   NONE  | no pass is under way                   | a second is over -> IDLE; a reload -> ALL
 *   IDLE  | the pass takes back delegations that   | its last slot -> NONE, for a second; no delegation is left -> NONE;
 *         |   were not used since the last pass    |   a reload -> ALL, from the first slot
 *   ALL   | the pass takes all delegations back    | its last slot -> NONE, for a second; no delegation is left -> NONE;
 *         |                                        |   a second is over, a reload -> ALL, from the first slot
 */
void delegated_look(struct delegations *d); /* the timer fires: a second is over */
void delegated_take_back_later(struct client *c); /* begins a pass of ALL; `c` may have none */
/* Does `steps` steps of the pass, and more only to finish one slot. Returns the number of steps. */
int64_t delegated_continue(struct delegations *d, int64_t steps);

/* Takes all back that was delegated in the other process: each word says whether the lock is held. */
void delegated_resume(struct delegations *d);

/* ---- shared by take_back.c, which ends grants, and delegated.c, which cleans up after the end of one ---- */

void delegated_enter(struct delegations *d, struct grant *g); /* the grant has a slot: its word is not NONE */
/* Of a grant that has one; NULL: its client has no page. */
struct delegation_slot *delegated_slot(const struct grant *g);
/* The grant has a slot. It is held, without a wait, since the instant that its client says, from the grant's to now. */
void delegated_hold(struct grant *g);
/* It is an ordinary grant from now on, or about to end. */
void delegated_leave(struct grant *g);
