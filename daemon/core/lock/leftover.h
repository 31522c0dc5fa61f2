/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What idle locks leave in ZooKeeper. Containers are removed by the servers; the directory of flavour kazoo is persistent,
 * because a living Lock object of kazoo makes it once and fails without it. Where remove_idle_s says that no such object
 * lives, this host removes a directory that it has used, once the lock was idle here for that long.
 *
 *   directory.left | means                                           | event -> next
 *   false          | the lock is in use; or there is none to remove  | parked, its directory fits -> true
 *   true           | idle: nobody else removes it                    | used, removed or forgotten (counted) -> false
 *
 * `refused`: the latest delete was. The lock is in use while it is under way.
 *
 * The timer of a directory that is left is the instant of its removal. ZooKeeper deletes what is empty and nothing else, so
 * this may come between any two steps of another host, which then meets NONODE and makes the directory again. A refusal
 * (somebody is in it) and an unknown outcome are tried again as much later. With more idle locks than are remembered, the
 * oldest directory goes earlier: so at most that many stay, and those that nothing can be sent for.
 */
#pragma once

#include <stdbool.h>

struct lock;

/*
 * Nothing uses the lock any longer. False: it need not be remembered, since its directory is gone; or, when there is no more
 * room for idle locks, because it cannot be removed, and the next one would be tried instead, one after the other.
 */
bool leftover_is_known(struct lock *lock, bool full);
void leftover_park(struct lock *lock);
void leftover_forget(struct lock *lock); /* it is used again, or is about to be freed */
void leftover_restore(struct lock *lock); /* a parked one, whose timer is as it was */
bool leftover_is_due(const struct lock *lock); /* its time has come */
bool leftover_may_go(const struct lock *lock); /* it may be removed, and that can be sent now */
void leftover_arm(struct lock *lock);          /* it is removed after the next period */
