/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of every part of the broker: the configuration, the instant of the event that is handled, the effects
 * of that event, the timers, the counters and the random numbers. The broker owns it; every part has a pointer to it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/flight.h"
#include "base/heap.h"
#include "base/random.h"
#include "core/port/conf.h"
#include "core/port/effect.h"
#include "core/port/ledger.h"
#include "core/port/pools.h"
#include "core/port/stats.h"
#include "core/port/work.h"

/* The core counts nanoseconds; clients and operators are shown these. */
static const int64_t NS_PER_MS = 1000000, NS_PER_S = 1000000000;

/* Whose timer it is: the kind of each struct timer. */
enum timer_kind {
	TIMER_SESSION, TIMER_DIRECTORY, TIMER_REQUEST, TIMER_LEASE, TIMER_EVENTS, TIMER_FORMER, TIMER_STOP,
	TIMER_INBOX, TIMER_LETTER, TIMER_REVOCATION, TIMER_PLACE, TIMER_ATTEMPT, TIMER_FORWARD, TIMER_DELEGATIONS,
	TIMER_HOLD, TIMER_WAIT,
};

struct env {
	const struct broker_conf *conf;
	struct random random;
	int64_t now_ns;      /* of the event being handled */
	int64_t started_ns;
	struct effects *out; /* where the effects of the event go; NULL between events */
	struct ledger *ledger; /* NULL: none is kept */
	struct heap timers;
	struct work_ring works;
	struct stats stats;
	struct accounts accounts; /* pools.h */
	struct bytes refusal;     /* the latest sentence of pools_refusal() */
	uint32_t rules;      /* number of the present rules of access: each reload counts */
	bool stopping;       /* nothing is granted to new requests, and holders are asked to release */
	bool draining;       /* the same, because operators want it so, until they want it no longer (client/halt.h) */
};

/* Milliseconds since 1970, by the clock that the daemon was started with. */
static inline int64_t env_wall_ms(const struct env *env, int64_t at_ns)
{
	return env->conf->started_s * 1000 + env->conf->started_ms + (at_ns - env->started_ns) / NS_PER_MS;
}

/* Nothing new is granted. */
static inline bool env_halts(const struct env *env)
{
	return env->stopping || env->draining;
}

/* The reason, for a client that asks. */
static inline const char *env_halt_sentence(const struct env *env)
{
	return env->stopping ? "the daemon is stopping"
			     : "operators drain this daemon: it grants nothing until they say `lockbroker drain --off`";
}

/* Into the flight recorder (base/flight.h). */
static inline void env_note(const struct env *env, enum flight_kind kind, int64_t who, int64_t number, struct slice text)
{
	flight_note(env->conf->flight, kind, env->now_ns, who, number, text);
}
