/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks, requests and grants in a snapshot (snapshot.h). A lock's own come behind it, in its order; their order in the
 * lists of their clients is the order of their marks, which are given to all of them before they are written.
 */
#pragma once

struct bytes;
struct client;
struct directory;
struct entry;
struct grant;
struct lock;
struct locks;
struct request;

/* The lock with its directories and their claims, its requests and its grants, lost ones included. */
void lock_snapshot(const struct lock *lock, struct bytes *out);
/* Parts of it. A loss whose client was not notified of it yet is an outcome of the grant. */
void slots_snapshot(const struct directory *slots, struct bytes *out);
void grant_snapshot(const struct grant *g, struct bytes *out);
/* One entry; NULL: it is refused. */
struct lock *lock_restore(struct locks *locks, const struct entry *e);
struct request *request_restore(struct lock *lock, const struct entry *e);
struct grant *grant_restore(struct lock *lock, const struct entry *e);
/* The client of an entry; NULL: refused, there is none that may hold or wait. */
struct client *lock_restore_client(const struct locks *locks, const struct entry *e);
