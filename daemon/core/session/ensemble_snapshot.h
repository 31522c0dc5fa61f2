/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session in a snapshot (snapshot.h). Its proof is carried over, and until when; not `seen` and the answers of the
 * connection that has ended: only answered writes of the next one prove more.
 */
#pragma once

#include <stdbool.h>

struct bytes;
struct ensemble;
struct entry;

/* Nothing is open. */
void ensemble_snapshot(const struct ensemble *zk, struct bytes *out);
/* One entry, SESSION, FORMER or RIVAL. False: it is refused. */
bool session_restore(struct ensemble *zk, const struct entry *e);
bool former_restore(struct ensemble *zk, const struct entry *e);
bool rival_restore(struct ensemble *zk, const struct entry *e);
/* Repeats the requests to the adapter that it has not carried out. */
void ensemble_resume(struct ensemble *zk);
