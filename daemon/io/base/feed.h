/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All events from the adapters to the broker go through here. The feed owns the watches' base, the broker and the
 * clock.
 *
 * An adapter that has received something calls feed_event(): the clock is read (after the data were), the broker
 * consumes the event, and its effects are carried out in order, at once, by one callback.
 *
 * Carrying out an effect never calls feed_event(): its result (a write that failed, an operation that could not be
 * sent) is remembered by the adapter and reported when the turn settles. Therefore nothing re-enters the broker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/broker.h"

struct feed;
struct ledger;
struct watch_base;

/* The broker has consumed the event: the callback carries out its effects. */
typedef void feed_carry_out(void *arg, const struct event *event, struct effects *effects);

/* 0 or -errno. `conf` and all that it points to must outlive the feed. */
int feed_new(struct feed **ret_feed, const struct broker_conf *conf, uint64_t seed);
/* With a broker that broker_snapshot() wrote. 0, or -errno and a sentence, which the caller frees. */
int feed_restore(struct feed **ret_feed, const struct broker_conf *conf, struct slice text, struct bytes *why);
/* Takes NULL. */
void feed_free(struct feed *f);
/* To be called before the first event. */
void feed_attach(struct feed *f, feed_carry_out *carry_out, void *arg);
struct watch_base *feed_base(const struct feed *f);
const struct broker *feed_broker(const struct feed *f);
/* Before the first event of a process that goes on: see broker_give_page(). */
void feed_give_page(struct feed *f, uint32_t conn, struct delegation_page *page);
/* The locks of that connection are given back in pieces before it is gone (EVENT_CLIENT_LEAVES). */
bool feed_owns_much(const struct feed *f, uint32_t conn);
/* Since when that connection has held something without a break; INT64_MAX: it holds nothing. */
int64_t feed_held_since(const struct feed *f, uint32_t conn);

/* The process and the user of that connection. */
struct client_origin feed_origin(const struct feed *f, uint32_t conn);

/* The broker keeps that ledger from now on (core/record.h); and: there is more memory for it. */
void feed_record(struct feed *f, struct ledger *ledger);
void feed_record_missing(struct feed *f);

void feed_event(struct feed *f, const struct event *event);
/* EVENT_CLIENT_ASKED. */
void feed_asked(struct feed *f, uint32_t conn, size_t argc, const struct slice *argv);
/* The effects of the events so far are carried out, but not written yet; the next event may be far away. */
void feed_carried_out(struct feed *f);
/* The instant for the next event; it never goes back. */
int64_t feed_now(struct feed *f);
/* The instant of the latest event, for uses that need not be exact. */
int64_t feed_seen(const struct feed *f);

/* A turn begins. Returns whether something is left to do since the turn before, so that this one must not wait. */
bool feed_begin_turn(struct feed *f);
/* A share of the turn, which began at that instant; 0: it begins with the next event. */
void feed_begin_share(struct feed *f, int64_t begun_ns, int64_t share_ns);
/* It is over: the rest waits, so that nobody keeps others, or ZooKeeper, waiting. */
bool feed_share_spent(const struct feed *f);
/* Something is left to do in the next turn. */
void feed_hurry(struct feed *f);
bool feed_hurries(const struct feed *f);
