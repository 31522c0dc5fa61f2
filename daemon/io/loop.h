/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop owns the watches' base, the broker and the clock. One turn:
 *
 *     libevent says what is ready; an adapter that got something calls loop_event(): the clock is read (after
 *     the data were), the broker consumes the event, its effects are carried out in order, at once;
 *     what is for clients is written when all that one client has sent is consumed
 *     -> settle: written, closed and freed in one place; ZooKeeper's socket armed again
 *     -> the timer is set for broker_deadline()
 *
 * Carrying out an effect never calls loop_event(): what it leads to (a write that failed, an operation that could
 * not be sent) is remembered by the adapter and told when the turn settles. Therefore nothing re-enters the broker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/broker.h"

struct loop;
struct notify;
struct page;
struct saved;
struct server;
struct zk_former;
struct tokens;
struct watch_base;
struct zookeeper;

/* What carries out the effects. All must outlive loop_run(); zookeeper or tokens is NULL. */
struct loop_adapters {
	struct server *server;
	struct zookeeper *zookeeper;
	struct tokens *tokens;
	const struct notify *notify;
	struct page *page;
	struct saved *saved;         /* NULL in standalone mode; as is the successor */
	struct zk_former *successor;
};

/* 0 or -errno. `conf` and what it points to must outlive the loop. */
int loop_new(struct loop **ret_loop, const struct broker_conf *conf, uint64_t seed);
/* Takes NULL. */
void loop_free(struct loop *l);
struct watch_base *loop_base(const struct loop *l);
void loop_attach(struct loop *l, const struct loop_adapters *adapters);

/* The instant for the next event; never goes back. */
int64_t loop_now(struct loop *l);
void loop_event(struct loop *l, const struct event *event);
/* The instant of the latest event, for what need not be exact. */
int64_t loop_seen(const struct loop *l);
/* From here on others have their time in this turn. */
void loop_share(struct loop *l);
/* It is over: what is left waits for the next turn, so that nobody keeps ZooKeeper waiting. */
bool loop_spent(const struct loop *l);
/* Something is left to do: the next turn does not wait. */
void loop_hurry(struct loop *l);

struct loop_end {
	bool close_session; /* nothing is held, the session may end at once */
	bool refused;       /* starting again would not help */
};

/* Turns until the broker has stopped. */
struct loop_end loop_run(struct loop *l);
