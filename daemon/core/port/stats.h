/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that the broker counts, in two lists: INFO and METRICS show it, the simulator reads it. */
#pragma once

#include <stdint.h>

/*
 * How long something took, counted in fixed classes: class i has durations below 4^i * 2^14 ns (16 us, 66 us, 0.26 ms,
 * 1 ms, ..., 73 minutes) and not below the bound of the class before it; the last one has the rest. An instant of the core
 * is the instant of its event, so a duration within one event is 0.
 */

enum { HISTOGRAM_CLASSES = 16, HISTOGRAM_FIRST_BITS = 14 };

struct histogram {
	uint64_t sum_ns; /* begins anew at 2^64, as a counter may */
	uint64_t counts[HISTOGRAM_CLASSES];
};

/* The longest of the class; `i` below HISTOGRAM_CLASSES - 1. */
static inline uint64_t histogram_bound_ns(unsigned int i)
{
	return (UINT64_C(1) << (HISTOGRAM_FIRST_BITS + 2 * i)) - 1;
}

/* It took that long, at least 0. */
static inline void histogram_add(struct histogram *h, int64_t took_ns)
{
	unsigned int bits = 63 ^ (unsigned int)__builtin_clzll((uint64_t)took_ns >> (HISTOGRAM_FIRST_BITS - 1) | 1);
	unsigned int i = (bits + 1) / 2;

	h->sum_ns += (uint64_t)took_ns;
	h->counts[i < HISTOGRAM_CLASSES ? i : HISTOGRAM_CLASSES - 1]++;
}

#define BROKER_STATS(X) \
	X(requests_total, "commands answered or under way") \
	X(connections_total, "clients that connected") \
	X(grants_total, "grants made") \
	X(reentries_total, "levels added to a grant") \
	X(handoffs_total, "grants made on a claim that had served one before") \
	X(claims_total, "claims that were held") \
	X(successions_total, "of those, held when the contender before them went, without a list") \
	X(delegations_total, "grants delegated to the processes that took the locks last") \
	X(delegations_recalled_total, "of those, taken back because somebody else wanted the lock, or for a stop") \
	X(delegations_idle_total, "of those, taken back because they were not used") \
	X(delegations_lost_total, "of those, lost") \
	X(timeouts_total, "waits that ran out") \
	X(losses_total, "grants declared lost") \
	X(leases_ended_total, "of those, because their lease ran out") \
	X(enqueued_total, "waits queued by ENQUEUE") \
	X(cancelled_total, "of those, taken back by CANCEL") \
	X(jeopardies_total, "times the session came into jeopardy") \
	X(sessions_total, "sessions made") \
	X(sessions_lost_total, "sessions declared lost") \
	X(suspensions_total, "connections to ZooKeeper that ended") \
	X(drops_total, "connections to ZooKeeper dropped for silence") \
	X(stalls_total, "times the loop stood still for too long") \
	X(zk_writes_total, "create, delete and set operations sent") \
	X(zk_reads_total, "list and get operations sent") \
	X(heartbeats_total, "writes sent only to prove the session") \
	X(late_writes_total, "writes answered too late to prove anything") \
	X(unknown_total, "operations of unknown outcome") \
	X(refused_acl_total, "operations that ZooKeeper refused by an ACL, or without an authentication that it wants") \
	X(refused_quota_total, "of those refused, because of a quota") \
	X(refused_local_session_total, "because the session is a local one, which may make no ephemeral znode") \
	X(refused_throttled_total, "because the server throttles requests") \
	X(refused_read_only_total, "because the server is read-only") \
	X(refused_other_total, "for another reason") \
	X(adopted_total, "claims found again after a lost reply") \
	X(strays_total, "znodes of ours found that no claim knew, deleted") \
	X(vanished_total, "znodes of ours that somebody else deleted") \
	X(relisted_total, "directories listed again after a connection had ended") \
	X(audits_total, "sweeps of all directories, by AUDIT") \
	X(audit_directories_total, "directories looked at by them") \
	X(deadlocks_total, "LOCKs and ACQUIREs refused because they would have closed a cycle of waits") \
	X(deadlock_cuts_total, "searches for such a cycle given up at their limits; the request waits") \
	X(multi_again_total, "MLOCKs that lost something on the way and began again") \
	X(names_delayed_total, "names new to ZooKeeper that had to wait for their turn") \
	X(names_total, "directories that were made in ZooKeeper for new names") \
	X(directories_removed_total, "idle directories removed from ZooKeeper (remove_idle_s)") \
	X(directories_left_total, "idle directories of flavour kazoo that this host forgot, and nobody removes") \
	X(places_total, "places in a queue for values that are refused again and again") \
	X(places_unused_total, "times that a lock was kept for such a place, and nobody came for it") \
	X(limits_total, "requests refused by a limit") \
	X(revokes_total, "times a holder was asked to let go") \
	X(forced_total, "grants taken from their holders by force") \
	X(mail_posted_total, "letters to other hosts") \
	X(mail_received_total, "letters read") \
	X(mail_ignored_total, "letters read that meant nothing, or not this life of the daemon")

/* How long things took. */
#define BROKER_HISTOGRAMS(X) \
	X(wait, "from asking for a lock, permits or a leadership to the grant") \
	X(hold, "from a grant to its end or loss") \
	X(handoff, "from the end of a grant to the next one on this host, if that was waited for already") \
	X(claim, "with ZooKeeper: from queueing a znode to holding a lock among the hosts") \
	X(round_trip, "from an operation that was sent to ZooKeeper to its answer")

struct stats {
#define X(name, text) uint64_t name;
	BROKER_STATS(X)
#undef X
#define X(name, text) struct histogram name;
	BROKER_HISTOGRAMS(X)
#undef X
	int64_t since_s; /* since 1970: when they began at 0 */
};
