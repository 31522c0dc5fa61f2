/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/watch.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/heap.h"
#include "base/mem.h"

static_assert(WATCH_TIMEOUT == EV_TIMEOUT && WATCH_READ == EV_READ && WATCH_WRITE == EV_WRITE &&
		      WATCH_KEEP == EV_PERSIST && WATCH_EDGE == EV_ET && WATCH_HANGUP == EV_CLOSED,
	      "the numbers are libevent's");

struct watch_base {
	struct event_base *events;
	struct heap timers;
	int timer_fd;
	struct event timer;
	int64_t armed_ns; /* what timer_fd is set to; INT64_MAX: nothing */
	int64_t now_ns;   /* the watches due by then are being called; 0: none are */
};

struct watch {
	struct watch_base *base;
	watch_fired *fired;
	void *arg;
	struct event event;
	struct timer timer;
	int fd; /* -1: `event` is none */
	bool set;
};

/* ---- time ---- */

/* A watch that is set in a callback, for an instant that has passed, fires in the next turn: descriptors come first. */
static void watch_due(struct watch *w, int64_t due_ns)
{
	heap_set(&w->base->timers, &w->timer, due_ns > w->base->now_ns ? due_ns : w->base->now_ns + 1);
}

static void watch_timer(evutil_socket_t fd, short what, void *arg)
{
	struct watch_base *base = arg;
	struct timer *t;
	uint64_t count;
	ssize_t got = read(fd, &count, sizeof(count));

	(void)got;
	base->armed_ns = INT64_MAX;
	base->now_ns = clock_now_ns();
	while ((t = heap_first(&base->timers)) && t->due_ns <= base->now_ns) {
		struct watch *w = container_of(t, struct watch, timer);

		watch_clear(w);
		if (w->fired)
			w->fired(w->fd, WATCH_TIMEOUT, w->arg);
	}
	base->now_ns = 0;
}

/* Seldom called: kept apart from watch_base_turn(), which then needs no frame for it. */
static __attribute__((noinline)) void watch_arm(struct watch_base *base, int64_t due_ns)
{
	struct itimerspec at = { 0 };
	int rc;

	/* Zero would disarm it. */
	at.it_value.tv_sec = (time_t)(due_ns > 0 ? due_ns / CLOCK_NS_PER_S : 0);
	at.it_value.tv_nsec = (long)(due_ns > 0 ? due_ns % CLOCK_NS_PER_S : 1);
	rc = timerfd_settime(base->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	assert(rc == 0);
	base->armed_ns = due_ns;
}

/* ---- the base ---- */

static struct event_base *events_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *events;

	if (!config)
		abort();
	event_config_require_features(config, EV_FEATURE_EARLY_CLOSE | EV_FEATURE_ET | EV_FEATURE_O1);
	/*
	 * epoll's change list, which the environment could enable, would not notice that the C client closed a descriptor
	 * and got the same number again. libevent need not read the clock.
	 */
	event_config_set_flag(config,
			      EVENT_BASE_FLAG_IGNORE_ENV | EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME);
	events = event_base_new_with_config(config);
	event_config_free(config);
	return events;
}

struct watch_base *watch_base_new(void)
{
	struct watch_base *base = mem_new(sizeof(*base));

	base->armed_ns = INT64_MAX;
	base->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	base->events = base->timer_fd < 0 ? NULL : events_new();
	if (!base->events ||
	    event_assign(&base->timer, base->events, base->timer_fd, EV_READ | EV_PERSIST, watch_timer, base) < 0 ||
	    event_add(&base->timer, NULL) < 0) {
		watch_base_free(base);
		return NULL;
	}
	return base;
}

void watch_base_free(struct watch_base *base)
{
	if (!base)
		return;
	if (base->events) {
		event_del(&base->timer);
		event_base_free(base->events);
	}
	if (base->timer_fd >= 0)
		close(base->timer_fd);
	heap_deinit(&base->timers);
	mem_free(base);
}

void watch_base_turn(struct watch_base *base, bool wait)
{
	const struct timer *first = heap_first(&base->timers);
	int rc;

	/*
	 * A timer that is set to an earlier instant than needed is left alone: waking up once more is cheaper than setting
	 * it.
	 */
	if (first && first->due_ns < base->armed_ns)
		watch_arm(base, first->due_ns);
	rc = event_base_loop(base->events, EVLOOP_ONCE | (wait ? 0 : EVLOOP_NONBLOCK));
	assert(rc >= 0);
}

/* ---- watches ---- */

/* Of a watch without WATCH_KEEP; libevent calls the others' functions itself. */
static void watch_event(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;

	w->set = false;
	heap_unset(&w->base->timers, &w->timer);
	w->fired(fd, what, w->arg);
}

struct watch *watch_new(struct watch_base *base, watch_fired *fired, void *arg)
{
	struct watch *w = mem_new(sizeof(*w));

	w->base = base;
	w->fired = fired;
	w->arg = arg;
	w->fd = -1;
	return w;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	watch_clear(w);
	mem_free(w);
}

void watch_set(struct watch *w, int fd, unsigned int flags, int64_t timeout_ns)
{
	assert(!(flags & WATCH_KEEP) || timeout_ns == WATCH_NO_TIMEOUT);
	watch_clear(w);
	w->fd = flags ? fd : -1;
	if (flags) {
		bool keep = flags & WATCH_KEEP;
		int rc = event_assign(&w->event, w->base->events, fd, (short)flags, keep ? w->fired : watch_event,
				      keep ? w->arg : w);

		assert(rc == 0);
		if (event_add(&w->event, NULL) < 0)
			abort();
	}
	if (timeout_ns != WATCH_NO_TIMEOUT)
		watch_due(w, clock_now_ns() + timeout_ns);
	w->set = true;
}

void watch_set_by(struct watch *w, int64_t due_ns)
{
	watch_clear(w);
	watch_due(w, due_ns);
	w->fd = -1;
	w->set = true;
}

void watch_clear(struct watch *w)
{
	if (!w || !w->set)
		return;
	if (w->fd >= 0)
		event_del(&w->event);
	heap_unset(&w->base->timers, &w->timer);
	w->set = false;
}

bool watch_is_set(const struct watch *w)
{
	return w && w->set;
}
