/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What wakes the loop: a descriptor that is ready, or time that has passed. The seam to libevent, whose `struct
 * event` is another than the broker's: no other file includes its headers.
 *
 * A watch is set and cleared; one that fires is clear again unless WATCH_KEEP. It must be cleared before its
 * descriptor is closed. One that is set from within a call for an instant that has passed has the next turn. Running
 * out of memory for one ends the process.
 *
 * Time has a heap of its own and one timerfd, which is only ever set to an earlier instant: it goes on while the host
 * sleeps, as libevent's timers do not, and costs nothing while clients are busy. A timeout that libevent knows of is
 * given to each epoll_wait(), where it costs the kernel a timer: 7 % of what a null broker can do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The numbers are libevent's: nothing has to be translated. */
enum {
	WATCH_TIMEOUT = 1, /* only told: the time has passed */
	WATCH_READ = 2,
	WATCH_WRITE = 4,
	WATCH_KEEP = 16,    /* stays set when it fires */
	WATCH_EDGE = 32,    /* told when it changes, not for as long as it is so */
	WATCH_HANGUP = 128, /* the peer will send no more (or is gone) */
};

#define WATCH_NO_TIMEOUT INT64_C(-1)

struct watch;
struct watch_base;

/* NULL when the kernel lacks what is needed. */
struct watch_base *watch_base_new(void);
/* Its watches must be gone. Takes NULL. */
void watch_base_free(struct watch_base *base);
/* Calls what is ready; with `wait` waits until something is. */
void watch_base_turn(struct watch_base *base, bool wait);

/* `fired` NULL: for time only, which wakes the loop and no more. */
struct watch *watch_new(struct watch_base *base, void (*fired)(void *arg, int fd, unsigned int what), void *arg);
/* Takes NULL. Not from within its own call. */
void watch_free(struct watch *w);
/*
 * Replaces what it was set to. `fd` -1 with no flags: only time. `timeout_ns` may be WATCH_NO_TIMEOUT, and is with
 * WATCH_KEEP.
 */
void watch_set(struct watch *w, int fd, unsigned int flags, int64_t timeout_ns);
/* Only time, up to that instant. */
void watch_set_by(struct watch *w, int64_t due_ns);
void watch_clear(struct watch *w);
bool watch_is_set(const struct watch *w);
