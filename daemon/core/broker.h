/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: the model of the whole service for one host. It is pure: it has no I/O, no clock, no libevent, no ZooKeeper
 * and no logging; the same events at the same instants give the same effects.
 *
 *     clients, socket                    broker                         ZooKeeper
 *     EVENT_CLIENT_*  ----------->  command -> lock  (tier 1)
 *     EFFECT_REPLY/PUSH/CLOSE <---        lock <-> claim (tier 2) ---> EFFECT_ZK_*
 *                                       session (time)         <---  EVENT_ZK_*
 *
 * The deadlines up to `now` are applied before the event, unless the event is the end of the session. After the call the
 * caller carries out the effects in order and arms one timer for broker_deadline().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/conf.h"
#include "core/port/effect.h"
#include "core/port/event.h"
#include "protocol/session_page.h"

struct broker;

/* `conf` and the memory that it points to must outlive the broker. `seed` feeds names and jitter, which others see. */
struct broker *broker_new(const struct broker_conf *conf, uint64_t seed, int64_t now_ns);
/* Takes NULL. It sends nothing to anybody. */
void broker_free(struct broker *b);
void broker_handle(struct broker *b, int64_t now_ns, const struct event *event, struct effects *effects);
/* The instant at which EVENT_TIME is due at the latest, at once while there is work; INT64_MAX: never. */
int64_t broker_deadline(const struct broker *b);
/* Something is left to be done in pieces (core/port/work.h): each EVENT_TIME does one of them. */
bool broker_has_work(const struct broker *b);

/* How many clients it knows, and whether that connection is one of them. */
size_t broker_clients(const struct broker *b);
/* The accounts that its clients are charged to, by the pools of core/port/pools.h. */
const struct accounts *broker_accounts(const struct broker *b);
/*
 * To be called before the first event of a broker that goes on from another process. The broker knows the connection, which
 * has that page, as the other process left it. At the first event all delegations in the page are taken back.
 */
void broker_give_page(struct broker *b, uint32_t conn, struct delegation_page *page);
bool broker_has_client(const struct broker *b, uint32_t conn);
/* The connection has more than EVENT_CLIENT_GONE should release at once: EVENT_CLIENT_LEAVES goes before. */
bool broker_owns_much(const struct broker *b, uint32_t conn);
/* With ZooKeeper: somebody without a connection holds something (core/lock/bearer.h). */
bool broker_has_bearers(const struct broker *b);
/* Since when that connection, which it knows, has held something without a break; INT64_MAX: it holds nothing. */
int64_t broker_held_since(const struct broker *b, uint32_t conn);

/* The user of a connection that the broker knows. */
struct client_origin {
	uint32_t uid;
	struct slice unit; /* its systemd unit (base/unit_name.h), valid as long as the connection */
	bool privileged;   /* it came through the operators' socket */
};
struct client_origin broker_origin(const struct broker *b, uint32_t conn);

/* The proven state of the session, for the session page. */
void broker_session(const struct broker *b, struct session_view *ret);

/* T: the session timeout that the servers have granted; before they have, the configured one. */
int64_t broker_session_timeout(const struct broker *b);

/* For tests and the simulator. */
/* Until when grants are proven; INT64_MIN: none is. */
int64_t broker_safe_until(const struct broker *b);
/* Aborts when an internal invariant is broken: counters equal sums, at most one claim and one next per lock, ... */
void broker_check(const struct broker *b);
/* Everything that clients can leave behind is gone: no client, lock in use, request, grant, claim or letter. */
bool broker_quiet(const struct broker *b);
