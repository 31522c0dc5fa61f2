/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ensemble's past, by the numbers of its transactions (zxids): they only grow, and tokens are made of them. If an older
 * state of the ensemble is restored, they begin again below numbers that this host has seen, and earlier tokens would
 * repeat. So nothing that was made since then is granted, until the numbers are above all that were seen.
 *
 *   an answer shows                                    | then
 *   a znode of the present session whose number is not | the ensemble has gone back: the znode makes no token
 *     above all numbers seen before the session began  |
 *   a write whose number is not above all numbers that | the ensemble has gone back, and other hosts may have seen
 *     were seen before its answer                      |   higher numbers: no token is made of a number up to the
 *   the host's own znode, whose last write is older    |   end of the next epoch, or, at a single server, up to
 *     than the latest write that the host knows of     |   2^17 above the highest number seen
 *
 * All answers of the session's own connection count as seen, once the host has looked at its own znode there: before that
 * they may be of restored servers, whose numbers operators have raised above the numbers that others got. Answers come in
 * the order of sending, so that a write's number is above the numbers of all answers before it. But a znode whose answer
 * was lost may be found late: so its number is compared only with numbers from before the session. The answers to writes
 * make a demand once: until the numbers are above it nothing is granted, and nothing more is demanded. Only the host's own
 * znode shows that the ensemble has gone back once more.
 *
 * Other hosts may write first, and bring the numbers above all that was seen here. Only the host itself writes its own znode
 * (presence.h), so that shows it even then. The host looks at it once on each connection, because servers that are restored
 * end all connections. Before that, nothing is granted there, and no session of before is ended, with which the znode goes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ensemble;
struct zk_stat;

struct past {
	int64_t seen; /* the highest number of a transaction; 0: none yet */
	int64_t fresh; /* the same, on a connection on which the host has not looked yet */
	int64_t floor; /* the highest number before the session began, or one demanded because the numbers went back */
	int64_t own; /* of the latest write of the host's own znode that is known; 0: none is */
	bool looked; /* on the latest connection the host's own znode was written or read */
	int64_t complain_ns; /* until then the log does not say again that the ensemble has gone back */
};

void past_session(struct ensemble *zk); /* another session begins */
void past_connected(struct ensemble *zk); /* a connection begins */
/* An answer, perhaps to a write, shows these numbers; 0: none. */
void past_answered(struct ensemble *zk, bool write, const struct zk_stat *stat);
/* The host's own znode was written, or seen behind an answered write; that is its latest write. 0: no number came. */
void past_own(struct ensemble *zk, int64_t mzxid);
/* The host has looked at its own znode on this connection. */
void past_look(struct ensemble *zk);
/* On the latest connection the host has looked at its own znode, or nothing was known of that. */
bool past_looked(const struct ensemble *zk);
/* The host is connected and has looked there: former sessions may be ended, and the znode with them. */
bool past_may_end(const struct ensemble *zk);
/* A znode that the present session made has that number. False: its token could repeat; the log says so. */
bool past_allows(struct ensemble *zk, int64_t zxid);
