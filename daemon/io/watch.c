#include "io/watch.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct watch {
	struct watch_base *base;
	void (*fired)(void *arg, int fd, unsigned int what);
	void *arg;
	struct event event;
	bool set, keep;
};

/* Only a name of our own for libevent's base. */
static struct event_base *events(struct watch_base *base)
{
	return (struct event_base *)(void *)base;
}

struct watch_base *watch_base_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (!config)
		abort();
	event_config_require_features(config, EV_FEATURE_EARLY_CLOSE | EV_FEATURE_ET | EV_FEATURE_O1);
	/* epoll's change list, which the environment could ask for, would miss that the C client closed a descriptor
	 * and got the same number again. */
	event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV | EVENT_BASE_FLAG_NOLOCK);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return (struct watch_base *)(void *)base;
}

void watch_base_free(struct watch_base *base)
{
	if (base)
		event_base_free(events(base));
}

void watch_base_turn(struct watch_base *base, bool wait)
{
	int rc = event_base_loop(events(base), EVLOOP_ONCE | (wait ? 0 : EVLOOP_NONBLOCK));

	assert(rc >= 0);
}

static void watch_event(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;
	unsigned int told = 0;

	if (!w->keep)
		w->set = false;
	if (what & EV_READ)
		told |= WATCH_READ;
	if (what & EV_WRITE)
		told |= WATCH_WRITE;
	if (what & EV_CLOSED)
		told |= WATCH_HANGUP;
	if (what & EV_TIMEOUT)
		told |= WATCH_TIMEOUT;
	w->fired(w->arg, fd, told);
}

struct watch *watch_new(struct watch_base *base, void (*fired)(void *arg, int fd, unsigned int what), void *arg)
{
	struct watch *w = mem_new(sizeof(*w));

	w->base = base;
	w->fired = fired;
	w->arg = arg;
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
	struct timeval tv = {
		.tv_sec = (time_t)(timeout_ns / CLOCK_NS_PER_S),
		.tv_usec = (suseconds_t)(timeout_ns % CLOCK_NS_PER_S / 1000),
	};
	int what = 0, rc;

	watch_clear(w);
	if (flags & WATCH_READ)
		what |= EV_READ;
	if (flags & WATCH_WRITE)
		what |= EV_WRITE;
	if (flags & WATCH_HANGUP)
		what |= EV_CLOSED;
	if (flags & WATCH_EDGE)
		what |= EV_ET;
	if (flags & WATCH_KEEP)
		what |= EV_PERSIST;
	rc = event_assign(&w->event, events(w->base), fd, (short)what, watch_event, w);
	assert(rc == 0);
	if (event_add(&w->event, timeout_ns == WATCH_NO_TIMEOUT ? NULL : &tv) < 0)
		abort();
	w->set = true;
	w->keep = flags & WATCH_KEEP;
}

void watch_clear(struct watch *w)
{
	if (w->set)
		event_del(&w->event);
	w->set = false;
}

bool watch_is_set(const struct watch *w)
{
	return w->set;
}
