/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches wake the loop: for a descriptor that is ready, or time that has passed. Only watch.c includes the headers
 * of libevent, whose `struct event` is not the broker's.
 *
 * A watch is set and cleared; when it fires, it is cleared unless it has WATCH_KEEP. It must be cleared before its
 * descriptor is closed. A watch that is set from within a call, for an instant that has passed, fires in the next turn.
 * Running out of memory for a watch ends the process.
 *
 * Timers have a heap of their own and one timerfd, which is only ever set to an earlier instant. It goes on while the
 * host sleeps, unlike libevent's timers, and costs nothing while clients are busy: libevent would pass a timeout to
 * each epoll_wait(), where it costs the kernel a timer, 7 % of the rate of a null broker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The numbers and the type of the function are libevent's: nothing has to be translated. */
enum {
	WATCH_TIMEOUT = 1, /* only reported: the time has passed */
	WATCH_READ = 2,
	WATCH_WRITE = 4,
	WATCH_KEEP = 16,    /* stays set when it fires */
	WATCH_EDGE = 32,    /* reported when it changes, not for as long as it lasts */
	WATCH_HANGUP = 128, /* the peer will send no more, or is gone */
};

#define WATCH_NO_TIMEOUT INT64_C(-1)

struct watch;
struct watch_base;

/* `what`: the reported events, and WATCH_EDGE if that was set. */
typedef void watch_fired(int fd, short what, void *arg);

/* NULL if the kernel lacks a function that is needed. */
struct watch_base *watch_base_new(void);
/* All its watches must be freed before. Takes NULL. */
void watch_base_free(struct watch_base *base);
/* Calls the watches that are ready; with `wait`, waits until one is. */
void watch_base_turn(struct watch_base *base, bool wait);

/* `fired` NULL: a watch for time only, which just wakes the loop. */
struct watch *watch_new(struct watch_base *base, watch_fired *fired, void *arg);
/* Takes NULL. Not to be called from within its own call. */
void watch_free(struct watch *w);
/*
 * Replaces the previous setting. `fd` -1 with no flags: time only. `timeout_ns` may be WATCH_NO_TIMEOUT, and must be with
 * WATCH_KEEP.
 */
void watch_set(struct watch *w, int fd, unsigned int flags, int64_t timeout_ns);
/* Time only, up to that instant. */
void watch_set_by(struct watch *w, int64_t due_ns);
/* These take NULL. */
void watch_clear(struct watch *w);
bool watch_is_set(const struct watch *w);
