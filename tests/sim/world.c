/* SPDX-License-Identifier: Apache-2.0 */
/* Making a world from a seed, running it, and bringing it to rest. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/znode/flavour.h"

#define ALL_FAULTS { 8, 4, 3, 4, 4, 3, 2, 4, 5, 3, 1, 4, 2, 2, 1, 2 }

static const struct mix mixes[] = {
	{ .name = "calm", .share = 12, .long_hold_percent = 10, .think_ms = 20, .foreign_every_ms = 0 },
	{ .name = "calm, operator", .share = 8, .operator_every_ms = 9000, .long_hold_percent = 50, .think_ms = 500,
	  .orphan_every_ms = 3000 },
	{ .name = "faulty", .share = 25, .fault_every_ms = 2000, .fault_weight = ALL_FAULTS, .long_hold_percent = 15,
	  .think_ms = 150 },
	{ .name = "expiry", .share = 12, .fault_every_ms = 5000, .long_hold_percent = 60, .think_ms = 1500,
	  .fault_weight = { 1, 4, 2, 2, 0, 2, 1, 1, 4, 1, 1, 10, 2 } },
	{ .name = "idle expiry", .share = 8, .fault_every_ms = 4000, .long_hold_percent = 100, .think_ms = 6000,
	  .fault_weight = { 1, 2, 1, 5, 12, 3, 1, 1, 3, 0, 0, 2, 8 } },
	{ .name = "ensemble", .share = 12, .fault_every_ms = 3000, .long_hold_percent = 30, .think_ms = 300,
	  .fault_weight = { 6, 2, 3, 6, 8, 8, 4, 6, 0, 0, 0, 2, 2 } },
	{ .name = "stopped", .share = 10, .fault_every_ms = 4000, .long_hold_percent = 40, .think_ms = 400,
	  .fault_weight = { 1, 1, 0, 4, 4, 0, 0, 1, 12, 0, 0, 1 } },
	{ .name = "operator", .share = 8, .fault_every_ms = 6000, .fault_weight = ALL_FAULTS, .operator_every_ms = 1500,
	  .orphan_every_ms = 2000, .long_hold_percent = 20, .think_ms = 100, .foreign_every_ms = 3000 },
	{ .name = "foreign", .share = 10, .fault_every_ms = 5000, .fault_weight = ALL_FAULTS, .foreign_every_ms = 300,
	  .long_hold_percent = 20, .think_ms = 100 },
	/* Queues of many, of all flavours, and somebody who deletes and writes what waits and what is held. */
	{ .name = "foreign, operator", .share = 0, .fault_every_ms = 15000, .fault_weight = ALL_FAULTS,
	  .foreign_every_ms = 200, .operator_every_ms = 700, .long_hold_percent = 5, .think_ms = 30, .locks_max = 2,
	  .shared_percent = 20 },
	{ .name = "resets", .share = 12, .fault_every_ms = 300, .long_hold_percent = 10, .think_ms = 30,
	  .fault_weight = { 12, 3, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0 }, .foreign_every_ms = 4000 },
	{ .name = "storm", .share = 1, .steps = 80000, .fault_every_ms = 30000, .hold_us = 300, .think_ms = 1,
	  .fault_weight = { 4, 1 }, .operator_every_ms = 15,
	  .operator_from = 770, .hosts_max = 2, .locks_max = 1, .shared_percent = 4, .plain_percent = 70 },
	/* Local hand-offs by the thousand, so that claims follow spent ones; now and then somebody comes. */
	{ .name = "spent", .share = 0, .steps = 20000, .fault_every_ms = 10000, .hold_us = 100, .think_ms = 1,
	  .fault_weight = { 4, 1 }, .operator_every_ms = 4000, .foreign_every_ms = 2500,
	  .hosts_max = 1, .locks_max = 1, .shared_percent = 1, .plain_percent = 90 },
	/* The same, with all that can come between. */
	{ .name = "spent, operator", .share = 0, .steps = 40000, .fault_every_ms = 8000, .hold_us = 600, .think_ms = 1,
	  .fault_weight = { 6, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2 }, .operator_every_ms = 400, .operator_from = 450,
	  .foreign_every_ms = 1500, .hosts_max = 1, .locks_max = 1, .shared_percent = 1, .plain_percent = 90, .warm = true },
	{ .name = "readers", .share = 12, .fault_every_ms = 6000, .fault_weight = ALL_FAULTS, .foreign_every_ms = 2000,
	  .operator_every_ms = 8000, .long_hold_percent = 12, .think_ms = 60, .shared_percent = 85, .locks_max = 2 },
	/* Locks that are idle for most of the time, and linger. */
	{ .name = "tries", .share = 8, .fault_every_ms = 30000, .fault_weight = ALL_FAULTS, .long_hold_percent = 8,
	  .think_ms = 1500, .tries_percent = 50, .shared_percent = 20, .locks_max = 2, .foreign_every_ms = 20000 },
	{ .name = "crossing", .share = 5, .fault_every_ms = 8000, .fault_weight = ALL_FAULTS, .long_hold_percent = 5,
	  .think_ms = 15, .hosts_max = 1, .shared_percent = 25 },
	{ .name = "near the wrap", .share = 3, .fault_every_ms = 4000, .fault_weight = ALL_FAULTS, .long_hold_percent = 10,
	  .think_ms = 100, .near_wrap = true },
	{ .name = "permits", .share = 0, .foreign_every_ms = 3000, .fault_every_ms = 5000, .fault_weight = ALL_FAULTS,
	  .long_hold_percent = 10, .think_ms = 60, .permits = true },
	{ .name = "permits, operator", .share = 0, .fault_every_ms = 8000, .fault_weight = ALL_FAULTS,
	  .operator_every_ms = 1500, .orphan_every_ms = 4000, .long_hold_percent = 10, .think_ms = 60, .permits = true },
	{ .name = "calm permits", .share = 0, .long_hold_percent = 5, .think_ms = 30, .permits = true },
	{ .name = "permits standalone", .share = 0, .standalone = true, .fault_every_ms = 6000, .long_hold_percent = 10,
	  .think_ms = 30, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 1, 0 }, .permits = true },
	{ .name = "load", .share = 0, .fault_every_ms = 2500, .fault_weight = ALL_FAULTS, .long_hold_percent = 15,
	  .think_ms = 100, .foreign_every_ms = 3000, .loaded = true },
	/* Many questions who is to let go, and often no answer. */
	{ .name = "refused", .share = 0, .fault_every_ms = 1500, .fault_weight = { [FAULT_RESET] = 1, [FAULT_REFUSE] = 8 },
	  .long_hold_percent = 50, .think_ms = 80, .demands_percent = 15 },
	/* A server is too busy; and nothing is created any longer. */
	{ .name = "throttled", .share = 0, .fault_every_ms = 1000, .long_hold_percent = 20, .think_ms = 80, .demands_percent = 2,
	  .foreign_every_ms = 3000, .fault_weight = { [FAULT_RESET] = 1, [FAULT_LINK] = 1, [FAULT_ELECTION] = 2,
						      [FAULT_ISOLATE] = 1, [FAULT_THROTTLE] = 10 } },
	{ .name = "throttled, permits", .share = 0, .fault_every_ms = 1000, .long_hold_percent = 20, .think_ms = 80,
	  .permits = true, .fault_weight = { [FAULT_RESET] = 1, [FAULT_THROTTLE] = 8 } },
	{ .name = "throttled, anything", .share = 0, .anything = true, .hosts_max = 3, .fault_every_ms = 1500,
	  .fault_weight = { [FAULT_RESET] = 1, [FAULT_THROTTLE] = 8, [FAULT_KILL] = 1 } },
	{ .name = "quota", .share = 0, .fault_every_ms = 2500, .long_hold_percent = 30, .think_ms = 80, .foreign_every_ms = 4000,
	  .fault_weight = { [FAULT_RESET] = 2, [FAULT_QUOTA] = 6, [FAULT_THROTTLE] = 1 } },
	/* Servers that are not Apache's, and old ones; each is exchanged now and then. */
	{ .name = "old servers", .share = 0, .old_servers = true, .fault_every_ms = 3000, .foreign_every_ms = 2000,
	  .operator_every_ms = 9000, .long_hold_percent = 15, .think_ms = 60, .snapshot_every_ms = 5000, .kill_every_ms = 8000,
	  .fault_weight = { [FAULT_RESET] = 4, [FAULT_ISOLATE] = 1, [FAULT_ELECTION] = 1, [FAULT_SERVERS] = 8 } },
	{ .name = "old servers, permits", .share = 0, .old_servers = true, .permits = true, .fault_every_ms = 3000,
	  .long_hold_percent = 10, .think_ms = 60, .fault_weight = { [FAULT_RESET] = 2, [FAULT_SERVERS] = 6 } },
	{ .name = "old servers, anything", .share = 0, .old_servers = true, .anything = true, .hosts_max = 3,
	  .fault_every_ms = 3000, .fault_weight = { [FAULT_RESET] = 2, [FAULT_KILL] = 1, [FAULT_SERVERS] = 6 } },
	{ .name = "old servers, near the wrap", .share = 0, .old_servers = true, .near_wrap = true, .fault_every_ms = 5000,
	  .long_hold_percent = 10, .think_ms = 60, .fault_weight = { [FAULT_RESET] = 3, [FAULT_SERVERS] = 4 } },
	/* Daemons die with a write of theirs under way. */
	{ .name = "late", .share = 0, .fault_every_ms = 6000, .fault_weight = { [FAULT_RESET] = 1, [FAULT_LATE] = 8 },
	  .long_hold_percent = 40, .think_ms = 500 },
	/* Another configuration, again and again. */
	{ .name = "reloads", .share = 0, .fault_every_ms = 5000, .fault_weight = ALL_FAULTS, .long_hold_percent = 15,
	  .think_ms = 40, .foreign_every_ms = 4000, .reload_every_ms = 400 },
	{ .name = "reloads standalone", .share = 0, .standalone = true, .fault_every_ms = 6000, .long_hold_percent = 15,
	  .think_ms = 20, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 1, 0 }, .reload_every_ms = 200 },
	/* Processes that follow each other, again and again. */
	{ .name = "snapshots", .share = 0, .snapshot_every_ms = 600, .fault_every_ms = 8000, .fault_weight = ALL_FAULTS,
	  .foreign_every_ms = 3000, .long_hold_percent = 15, .think_ms = 60 },
	{ .name = "snapshots, calm", .share = 0, .snapshot_every_ms = 250, .long_hold_percent = 10, .think_ms = 20 },
	{ .name = "snapshots, permits", .share = 0, .snapshot_every_ms = 600, .fault_every_ms = 8000,
	  .fault_weight = ALL_FAULTS, .long_hold_percent = 10, .think_ms = 60, .permits = true },
	{ .name = "snapshots, anything", .share = 0, .snapshot_every_ms = 800, .anything = true, .hosts_max = 3,
	  .fault_weight = { 5, 1, 1, 1, 1, 2, 2, 4, 4, 4, 1, 4, 1, 3 } },
	{ .name = "snapshots, standalone", .share = 0, .snapshot_every_ms = 50, .standalone = true, .fault_every_ms = 6000,
	  .long_hold_percent = 10, .think_ms = 30, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 1, 0 } },
	{ .name = "snapshots, anything standalone", .share = 0, .snapshot_every_ms = 100, .anything = true,
	  .standalone = true, .hosts_max = 1, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 1, 0 } },
	/* Processes that are killed, and others that go on from their ledgers. */
	{ .name = "kills", .share = 0, .kill_every_ms = 1500, .fault_every_ms = 8000, .fault_weight = ALL_FAULTS,
	  .foreign_every_ms = 3000, .long_hold_percent = 15, .think_ms = 60 },
	{ .name = "kills, calm", .share = 0, .kill_every_ms = 500, .long_hold_percent = 30, .think_ms = 20 },
	{ .name = "kills, readers", .share = 0, .kill_every_ms = 800, .long_hold_percent = 30, .think_ms = 30,
	  .foreign_every_ms = 3000, .shared_percent = 75, .locks_max = 2 },
	{ .name = "kills, permits", .share = 0, .kill_every_ms = 1500, .fault_every_ms = 8000, .fault_weight = ALL_FAULTS,
	  .long_hold_percent = 20, .think_ms = 60, .permits = true },
	{ .name = "kills, anything", .share = 0, .kill_every_ms = 1500, .anything = true, .hosts_max = 3,
	  .fault_weight = { 5, 1, 1, 1, 1, 2, 2, 4, 4, 4, 1, 4, 1, 3 } },
	{ .name = "kills, operator", .share = 0, .kill_every_ms = 700, .operator_every_ms = 600, .orphan_every_ms = 2000,
	  .foreign_every_ms = 3000, .long_hold_percent = 40, .think_ms = 30 },
	{ .name = "kills, snapshots", .share = 0, .kill_every_ms = 1000, .snapshot_every_ms = 700, .fault_every_ms = 8000,
	  .fault_weight = ALL_FAULTS, .long_hold_percent = 20, .think_ms = 40 },
	{ .name = "kills, standalone", .share = 0, .kill_every_ms = 400, .standalone = true, .fault_every_ms = 6000,
	  .long_hold_percent = 20, .think_ms = 30, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 1, 0 } },
	{ .name = "kills, anything standalone", .share = 0, .kill_every_ms = 400, .anything = true,
	  .standalone = true, .hosts_max = 1, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 1, 0 } },
	/* The ensemble is stopped, and an older state of it restored. */
	{ .name = "restores", .share = 0, .restore_every_ms = 12000, .long_hold_percent = 15, .think_ms = 60, .hosts_max = 3,
	  .fault_every_ms = 6000,
	  .fault_weight = { [FAULT_RESET] = 4, [FAULT_STALL] = 2, [FAULT_RESTART] = 3, [FAULT_ISOLATE] = 4,
			    [FAULT_ELECTION] = 2 } },
	{ .name = "restores, kills", .share = 0, .restore_every_ms = 12000, .kill_every_ms = 3000, .long_hold_percent = 15,
	  .think_ms = 60, .hosts_max = 3, .fault_every_ms = 8000,
	  .fault_weight = { [FAULT_RESET] = 4, [FAULT_RESTART] = 3, [FAULT_ISOLATE] = 4, [FAULT_ELECTION] = 2 } },
	/* Locks that stay with the processes that took them last. */
	{ .name = "delegations", .share = 0, .delegations = true, .hosts_max = 2, .fault_every_ms = 6000,
	  .fault_weight = ALL_FAULTS, .foreign_every_ms = 3000, .long_hold_percent = 10, .think_ms = 40, .shared_percent = 8 },
	{ .name = "delegations, calm", .share = 0, .delegations = true, .hosts_max = 2, .long_hold_percent = 4, .think_ms = 40,
	  .shared_percent = 5 },
	{ .name = "delegations, operator", .share = 0, .delegations = true, .hosts_max = 2, .fault_every_ms = 9000,
	  .fault_weight = ALL_FAULTS, .operator_every_ms = 2000, .orphan_every_ms = 4000, .demands_percent = 4,
	  .long_hold_percent = 10, .think_ms = 40, .shared_percent = 8 },
	{ .name = "delegations, snapshots", .share = 0, .delegations = true, .hosts_max = 2, .snapshot_every_ms = 500,
	  .fault_every_ms = 9000, .fault_weight = ALL_FAULTS, .long_hold_percent = 10, .think_ms = 40, .shared_percent = 8 },
	{ .name = "delegations, kills", .share = 0, .delegations = true, .hosts_max = 2, .kill_every_ms = 800,
	  .fault_every_ms = 9000, .fault_weight = ALL_FAULTS, .long_hold_percent = 10, .think_ms = 40, .shared_percent = 8 },
	{ .name = "delegations, standalone", .share = 0, .delegations = true, .hosts_max = 2, .standalone = true,
	  .fault_every_ms = 6000, .kill_every_ms = 2000, .snapshot_every_ms = 3000, .long_hold_percent = 10, .think_ms = 40,
	  .shared_percent = 8, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 1, 0 } },
	{ .name = "delegations, readers", .share = 0, .delegations = true, .hosts_max = 2, .fault_every_ms = 9000,
	  .fault_weight = ALL_FAULTS, .kill_every_ms = 3000, .foreign_every_ms = 6000, .long_hold_percent = 4, .think_ms = 40,
	  .shared_percent = 85 },
	{ .name = "delegations, readers, calm", .share = 0, .delegations = true, .hosts_max = 2, .long_hold_percent = 2,
	  .think_ms = 30, .shared_percent = 90 },
	{ .name = "delegations, readers, standalone", .share = 0, .delegations = true, .hosts_max = 2, .standalone = true,
	  .fault_every_ms = 6000, .kill_every_ms = 3000, .snapshot_every_ms = 3000, .long_hold_percent = 4, .think_ms = 40,
	  .shared_percent = 85, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 1, 0 } },
	{ .name = "delegations, reloads", .share = 0, .delegations = true, .hosts_max = 2, .standalone = true,
	  .fault_every_ms = 6000, .long_hold_percent = 4, .think_ms = 20, .shared_percent = 8, .reload_every_ms = 500,
	  .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 2, 0 } },
	{ .name = "anything", .share = 0, .anything = true, .hosts_max = 3,
	  .fault_weight = { 5, 1, 1, 1, 1, 2, 2, 4, 4, 4, 1, 4, 1, 3 } },
	{ .name = "anything standalone", .share = 0, .anything = true, .standalone = true, .hosts_max = 1,
	  .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 1, 0 } },
	/* Locks, elections and semaphores of the same two names. */
	{ .name = "kinds", .share = 0, .anything = true, .kinds = true, .hosts_max = 2, .snapshot_every_ms = 3000,
	  .fault_weight = { 5, 1, 1, 1, 1, 2, 2, 4, 4, 4, 1, 4, 1, 3 } },
	{ .name = "kinds, standalone", .share = 0, .anything = true, .kinds = true, .standalone = true, .hosts_max = 1,
	  .snapshot_every_ms = 300, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 1, 0 } },
	{ .name = "latch", .share = 0, .anything = true, .latch = true, .hosts_max = 3,
	  .fault_weight = { 5, 1, 1, 1, 1, 2, 2, 4, 4, 4, 1, 4, 1, 3 } },
	{ .name = "latch, snapshots", .share = 0, .snapshot_every_ms = 500, .anything = true, .latch = true, .hosts_max = 2,
	  .fault_weight = { 5, 1, 1, 1, 1, 2, 2, 4, 4, 4, 1, 4, 1, 3 } },
	{ .name = "latch, kills", .share = 0, .kill_every_ms = 1000, .anything = true, .latch = true, .hosts_max = 2,
	  .fault_weight = { 5, 1, 1, 1, 1, 2, 2, 4, 4, 4, 1, 4, 1, 3 } },
	{ .name = "latch, standalone", .share = 0, .kill_every_ms = 1000, .snapshot_every_ms = 900, .anything = true,
	  .latch = true, .standalone = true, .hosts_max = 1, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 1, 0 } },
	{ .name = "standalone", .share = 6, .standalone = true, .fault_every_ms = 6000, .long_hold_percent = 10,
	  .think_ms = 30, .fault_weight = { 0, 0, 0, 0, 0, 0, 0, 0, 4, 2, 1, 0 } },
};

enum { CHOSEN_CHECK_EVERY = 4 /* events; and at the end */ };
enum { MIXES = sizeof(mixes) / sizeof(mixes[0]), REAP_EVERY_MS = 4000, DELEGATED_FROM = 50, DELEGATED_SHARE = 6 };

/* Delegation is on by default. The traces of the first seeds are recorded without (golden.py). */
static const struct mix *mix_delegated(uint64_t seed)
{
	struct rng r = { .state = seed * 0x9e3779b97f4a7c15u + 17 }; /* all else is what it is without */
	const struct mix *mix;

	if (seed <= DELEGATED_FROM || rng_below(&r, DELEGATED_SHARE))
		return NULL;
	do
		mix = &mixes[rng_below(&r, MIXES)];
	while (!mix->delegations);
	return mix;
}

static const struct mix *mix_choose(struct rng *r, uint64_t seed)
{
	const struct mix *delegated = mix_delegated(seed);
	uint32_t total = 0, roll;
	int i;

	for (i = 0; i < MIXES; i++)
		total += mixes[i].share;
	roll = rng_below(r, total);
	for (i = 0; roll >= mixes[i].share; i++)
		roll -= mixes[i].share;
	return delegated ? delegated : &mixes[i];
}

static const struct mix *mix_find(const char *name)
{
	int i;

	for (i = 0; i < MIXES; i++)
		if (strcmp(mixes[i].name, name) == 0)
			return &mixes[i];
	return NULL;
}

bool world_has_mix(const char *name)
{
	return mix_find(name) != NULL;
}

void world_mixes(bool other)
{
	int i;

	for (i = 0; i < MIXES; i++)
		if (!other || !mixes[i].share)
			puts(mixes[i].name);
}

void world_fail(struct world *w, int lock, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
	longjmp(w->failed, lock + 2);
}

int world_lock_of(const struct world *w, const char *path, size_t len)
{
	int i;

	for (i = 0; i < w->lock_count; i++)
		if (w->lock_path_len[i] == len && memcmp(w->lock_path[i], path, len) == 0)
			return i;
	return -1;
}

static void reap(void *world, uint64_t argument)
{
	struct world *w = world;

	(void)argument;
	fakezk_reap(&w->zk);
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 1, REAP_EVERY_MS * 2) * MS, reap, w, 0);
}

static void ensemble_init(struct world *w)
{
	static const int64_t delays[] = { 2 * MS, 2 * MS, 10 * MS, 60 * MS }, quorum_ms[] = { 0, 0, 0, 0, 2, 10, 60, 200 };
	struct rng r = { .state = w->seed * 0x9e3779b97f4a7c15u + 11 }; /* all else is what it is without */

	fakezk_init(&w->zk, &w->sched, rng_next(&w->rng), w->tick);
	w->zk.hooks = (struct fakezk_hooks){ w, check_created, check_deleted, check_expired, restores_done };
	w->zk.delay_max = delays[rng_below(&w->rng, 4)];
	w->zk.lag_max = delays[rng_below(&w->rng, 4)];
	w->zk.quorum_max = quorum_ms[rng_below(&r, 8)] * MS;
	w->zk.used_containers = w->mix->near_wrap ? LOCKS_MAX : 0;
	if (w->mix->near_wrap)
		w->zk.first_sequence = INT32_MAX - (1 << 20) - (int32_t)rng_below(&w->rng, 40);
	w->zk.lacking = w->mix->old_servers;
	for (int i = 0; w->zk.lacking && i < FAKEZK_SERVERS; i++)
		w->zk.server[i].lacks = servers_lack(w);
	restores_init(w);
	sched_at(&w->sched, w->sched.now, reap, w, 0);
}

static const struct broker_prefix prefixes[] = {
	{ "m/", FLAVOUR_MUTEX, "/app/locks", 0 },
	{ "k/", FLAVOUR_KAZOO, "", 0 },
};
/* A daemon may remove a directory that nobody here uses between any two steps of another one. */
static const struct broker_prefix removing[] = {
	{ "m/", FLAVOUR_MUTEX, "/app/locks", 0 },
	{ "k/", FLAVOUR_KAZOO, "", 50 * MS },
};

/* Whoever may ask for what others hold finds more than who may not. */
static const struct rule may_revoke = { .allows = true, .pattern = { "*", 1 }, .verbs = 1U << RULE_revoke,
					.text = (char *)"allow * * revoke", .where = (char *)"sim" };
static const struct broker_conf places = { .root = "/locks", .prefixes = prefixes, .prefix_count = 2 };

static void locks_init(struct world *w)
{
	static const char *const names[LOCKS_MAX] = { "a", "orders/42", ("m\xc3\xbc" "de"), "d" };
	static const char *const mutexes[LOCKS_MAX] = { "m/a", "m/orders/42", "m/.", "m/d" };
	static const char *const kazoos[LOCKS_MAX] = { "k/a", "k/orders", "k/k/", "k/d" };
	int i;

	fakezk_operate(&w->zk, EFFECT_ZK_CREATE, SLICE("/app"), (struct slice){ 0 });
	fakezk_operate(&w->zk, EFFECT_ZK_CREATE, SLICE("/app/locks"), (struct slice){ 0 });
	w->lock_count = (int)rng_between(&w->rng, 1, w->mix->locks_max ? w->mix->locks_max : LOCKS_MAX);
	for (i = 0; i < w->lock_count; i++) {
		uint32_t roll = rng_below(&w->rng, 10);
		struct bytes path = { 0 };

		w->lock_name[i] = roll < 6 ? names[i] : roll < 8 ? mutexes[i] : kazoos[i];
		w->lock_flavour[i] = flavour_place(&places, slice_of(w->lock_name[i]), &path);
		memcpy(w->lock_path[i], path.data, path.len);
		w->lock_path_len[i] = path.len;
		bytes_free(&path);
	}
}

static struct broker_limits limits_choose(struct world *w)
{
	struct broker_limits l = {
		.clients = 100, .locks = 100, .requests_per_lock = 100, .requests_per_client = 100,
		.requests = 200, .grants = 200, .observers = 100, .memory_bytes = 1 << 20, .user_share = 75,
		.grants_per_client = 100, .events_per_client = 100,
		.output_bytes = 1 << 20, .session_path_bytes = 100000, .lasting_directories = 100,
	};

	if (rng_percent(&w->rng, 85) || w->ballast.names) {
		l.locks += 2 * w->ballast.names;
		l.requests_per_client += w->ballast.names;
		l.requests += 2 * w->ballast.names;
		l.grants_per_client += w->ballast.names;
		l.grants += 2 * w->ballast.names;
		return l;
	}
	l.locks = 2;
	l.requests_per_lock = 2;
	l.requests_per_client = 2;
	l.requests = 4;
	l.grants_per_client = 2;
	l.grants = 4;
	l.events_per_client = 4;
	l.session_path_bytes = 300;
	l.clients = 4;
	return l;
}

static void warm(struct world *w, struct broker_conf *conf)
{
	if (conf->linger_ns == 0)
		conf->linger_ns = 100 * MS;
	if (rng_percent(&w->rng, 50))
		return;
	conf->handoff_max = 1000000;
	conf->handoff_ns = 1000000 * SECOND;
}

static void host_init(struct world *w, struct host *h, int index)
{
	static const int64_t handoffs[] = { 0, 1, 3, 64 }, lingers[] = { 0, 100 * MS, 2 * SECOND, 30 * SECOND };
	static const int64_t tries[] = { 0, 100 * MS, SECOND };
	int i;

	h->w = w;
	h->index = index;
	snprintf(h->name, sizeof(h->name), "h%d", index);
	h->offset = rng_between(&w->rng, 0, 1000) * SECOND;
	h->conf = (struct broker_conf){
		.standalone = w->mix->standalone, .root = places.root, .prefixes = w->seed & 1 ? removing : places.prefixes,
		.operator_socket = "/run/operator.sock", .access = { &may_revoke, 1, 1U << RULE_revoke },
		.prefix_count = places.prefix_count, .host = h->name, .version = "sim",
		.hash_key = { w->seed, (uint64_t)index + 1 }, .boot_id = "sim", .session_page = "",
		.session_page_id = w->mix->delegations ? h->page_id : "", .pid = 1,
		.delegation = w->mix->delegations,
		.session_timeout_ns = w->timeout, .tick_ns = w->tick,
		.linger_ns = lingers[rng_below(&w->rng, 4)], .handoff_max = handoffs[rng_below(&w->rng, 4)],
		.handoff_ns = rng_percent(&w->rng, 30) ? 50 * MS : 5 * SECOND,
		.try_ns = tries[rng_below(&w->rng, 3)],
		.deadlock_detection = rng_percent(&w->rng, 90),
		.all_in_pieces = w->seed % 3 == 0,
		.grant_min_ns = rng_percent(&w->rng, 50) ? 0 : 200 * MS,
		.stop_timeout_ns = 2 * SECOND, .limits = limits_choose(w),
	};
	if (w->mix->warm)
		warm(w, &h->conf);
	if (w->mix->delegations && h->conf.linger_ns < 2 * SECOND && rng_percent(&w->rng, 70))
		h->conf.linger_ns = 2 * SECOND;
	h->zk = zhandle_new(&w->zk, w->timeout, host_zk_notified, h, &h->stopped_until);
	h->zk->adapts = true;
	h->client_count = (int)rng_between(&w->rng, 1, CLIENTS_MAX);
	if (w->mix->delegations && w->mix->shared_percent < 50) /* a lock that many want would be taken back all the time */
		h->client_count = (h->client_count + 1) / 2;
	for (i = 0; i < h->client_count; i++)
		caller_init(&h->clients[i], h, (uint32_t)i);
	if (w->mix->orphan_every_ms) {
		caller_init(&h->clients[i], h, (uint32_t)i);
		h->clients[i].auditor = true;
		h->client_count++;
	}
}

void world_init(struct world *w, uint64_t seed, const char *mix, struct tally *stats)
{
	static const int64_t ticks[] = { 400 * MS, SECOND, 2 * SECOND };
	int i;

	w->seed = seed;
	w->stats = stats;
	w->rng.state = seed * 0x2545f4914f6cdd1du + 1;
	w->mix = mix_choose(&w->rng, seed);
	if (mix)
		w->mix = mix_find(mix);
	w->fault_every_ms = w->mix->fault_every_ms;
	w->plain = rng_percent(&w->rng, w->mix->plain_percent);
	w->owners = rng_percent(&w->rng, 15);
	w->check_every = rng_percent(&w->rng, 10) ? 1 : 16;
	w->tick = ticks[rng_below(&w->rng, 3)];
	w->timeout = w->tick * rng_between(&w->rng, 5, 9);
	sched_init(&w->sched);
	ensemble_init(w);
	locks_init(w);
	elections_init(w);
	ballast_init(w);
	w->host_count = (int)rng_between(&w->rng, 1, w->mix->hosts_max ? w->mix->hosts_max : HOSTS_MAX);
	for (i = 0; i < w->host_count; i++)
		host_init(w, &w->hosts[i], i);
	permits_init(w);
	snapshots_init(w);
	kills_init(w);
	if (w->mix->anything)
		any_init(w);
}

static void run_for(struct world *w, int64_t ns)
{
	int64_t until = w->sched.now + ns;

	while (sched_step(&w->sched, until))
		;
	w->sched.now = until;
}

static bool clients_finished(const struct world *w)
{
	int h, i, lock;

	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++) {
			const struct caller *c = &w->hosts[h].clients[i];

			if (!c->done || c->sent || c->permits.count)
				return false;
			for (lock = 0; lock < LOCKS_MAX; lock++)
				if (c->holding[lock].held || c->wait[lock].on)
					return false;
		}
	return true;
}

static void describe_waiters(struct world *w, char *text, size_t size)
{
	size_t len = 0;
	int h, i, lock;

	text[0] = '\0';
	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++) {
			const struct caller *c = &w->hosts[h].clients[i];

			if (len < size && c->asking)
				len += (size_t)snprintf(text + len, size - len, " host %d client %d waits for %s;", h, i,
							w->lock_name[c->current.lock]);
			else if (len < size && c->auditor && !c->done)
				len += (size_t)snprintf(text + len, size - len, " host %d was never audited clean;", h);
			else if (len < size && !c->done)
				len += (size_t)snprintf(text + len, size - len, " host %d client %d was never granted;", h, i);
			for (lock = 0; lock < w->lock_count && len < size; lock++)
				if (c->wait[lock].on)
					len += (size_t)snprintf(text + len, size - len, " host %d client %d has queued for %s;", h,
								i, w->lock_name[lock]);
		}
}

/* Faults are over: whoever waits is served, in bounded time, and everybody is served once more. */
static void come_to_rest(struct world *w)
{
	int64_t until = w->sched.now + 60 * w->timeout + 120 * SECOND;
	int lock, h;

	w->quiet = true;
	w->quiet_at = w->sched.now;
	faults_stop(w);
	reloads_stop(w);
	while (!clients_finished(w) || !foreign_idle(w)) {
		if (w->sched.now > until) {
			char text[300];

			describe_waiters(w, text, sizeof(text));
			for (lock = w->lock_count - 1; lock > 0; lock--)
				if (strstr(text, w->lock_name[lock]))
					break;
			world_fail(w, lock, "not everybody is served although all faults are over:%s%s", text,
				   foreign_idle(w) ? "" : " a foreign contender waits");
		}
		run_for(w, SECOND / 10);
		for (h = 0; h < w->host_count; h++)
			saved_check_given_up(&w->hosts[h]);
	}
}

static void hang_up(struct world *w)
{
	int h, i;

	w->leaving = true;
	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++)
			caller_hang_up(&w->hosts[h].clients[i]);
	run_for(w, 35 * SECOND + 3 * w->timeout);
}

static void start_anything(struct world *w)
{
	any_start(w);
	snapshots_start(w);
	kills_start(w);
	faults_start(w);
}

/* Nobody counts what is asked, so that it is time that ends. */
static void run_anything(struct world *w)
{
	start_anything(w);
	run_for(w, rng_between(&w->rng, 10, 60) * SECOND);
	w->quiet = true;
	w->quiet_at = w->sched.now;
	faults_stop(w);
	run_for(w, 60 * SECOND + 4 * w->timeout);
	w->leaving = true;
	run_for(w, 60 * SECOND + 4 * w->timeout);
	any_check_end(w);
}

static void run_model(struct world *w, uint64_t steps)
{
	int64_t limit = w->sched.now + 400 * SECOND;

	clutter_start(w);
	readers_start(w);
	tries_start(w);
	elections_start(w);
	foreign_start(w);
	permits_start(w);
	ballast_start(w);
	snapshots_start(w);
	kills_start(w);
	restores_start(w);
	faults_start(w);
	reloads_start(w);
	while (w->sched.steps < steps && w->sched.now < limit && sched_step(&w->sched, limit))
		;
	come_to_rest(w);
	ballast_converge(w);
	hang_up(w);
}

void world_run(struct world *w)
{
	uint64_t steps = w->mix->steps ? w->mix->steps : (uint64_t)rng_between(&w->rng, 1500, 6000);

	for (int i = 0; i < w->host_count; i++)
		host_start(&w->hosts[i]);
	if (w->any)
		run_anything(w);
	else
		run_model(w, steps);
	check_end(w);
}

void world_run_chosen(struct world *w)
{
	w->leaps = true;
	w->check_every = CHOSEN_CHECK_EVERY;
	for (int i = 0; i < w->host_count; i++)
		host_start(&w->hosts[i]);
	start_anything(w);
	while (w->rng.chosen_left && sched_step(&w->sched, INT64_MAX))
		;
	any_hang_up(w);
	for (int i = 0; i < w->host_count; i++)
		if (w->hosts[i].broker)
			broker_check(w->hosts[i].broker);
}

void world_deinit(struct world *w)
{
	int i;

	w->zk.hooks = (struct fakezk_hooks){ 0 };
	w->stats->steps += w->sched.steps;
	w->stats->seeds++;
	for (i = 0; i < w->host_count; i++)
		host_free(&w->hosts[i]);
	foreign_free(w);
	any_free(w);
	if (w->guest.zk)
		zhandle_free(w->guest.zk);
	fakezk_deinit(&w->zk);
	sched_deinit(&w->sched);
}
