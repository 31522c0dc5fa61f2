/* SPDX-License-Identifier: Apache-2.0 */
#include "io/watchdog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "core/broker.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/watch.h"
#include "io/notify.h"

#define NS_PER_US INT64_C(1000)

struct watchdog {
	const struct feed *feed;
	const struct notify *notify;
	struct keeper *keeper;
	struct watch *watch;
	int64_t asked_ns; /* the session timeout of the configuration */
	int64_t within_us, every_ns;
};

/* 0: none is set, or what is set is no number. */
static int64_t setting(const char *name)
{
	const char *text = getenv(name);
	char *end;
	int64_t value;

	if (!text || text[0] < '0' || text[0] > '9')
		return 0;
	value = strtoll(text, &end, 10);
	return *end ? 0 : value;
}

static void watchdog_lengthen(struct watchdog *w)
{
	int64_t granted_ns = broker_session_timeout(feed_broker(w->feed));
	int64_t least_us = max64(w->asked_ns, granted_ns) / NS_PER_US / 3 * 2;
	char text[64];

	if (w->within_us >= least_us)
		return;
	w->within_us = least_us;
	w->every_ns = least_us * NS_PER_US / 2;
	snprintf(text, sizeof(text), "WATCHDOG_USEC=%" PRId64, least_us);
	notify_send(w->notify, text);
	log_info(watchdog, LOG_FIELDS("ms=%d", least_us / 1000),
		 "the watchdog is made %" PRId64 " ms long, two thirds of the session timeout", least_us / 1000);
}

static void watchdog_feed(int fd, short what, void *arg)
{
	struct watchdog *w = arg;

	watchdog_lengthen(w);
	if (w->keeper)
		keeper_alive(w->keeper, w->within_us);
	else
		notify_send(w->notify, "WATCHDOG=1");
	watch_set(w->watch, -1, 0, w->every_ns);
}

int64_t watchdog_setting_us(void)
{
	int64_t us = setting("WATCHDOG_USEC"), pid = setting("WATCHDOG_PID");

	return us > WATCHDOG_US_MAX || (pid && pid != getpid()) ? 0 : us;
}

struct watchdog *watchdog_new(const struct feed *feed, const struct notify *notify, struct keeper *keeper,
			      int64_t session_timeout_ns)
{
	int64_t us = watchdog_setting_us();
	struct watchdog *w;

	if (us == 0)
		return NULL;
	w = mem_new(sizeof(*w));
	w->feed = feed;
	w->asked_ns = session_timeout_ns;
	w->notify = notify;
	w->keeper = keeper;
	w->within_us = us;
	w->every_ns = us * NS_PER_US / 2;
	w->watch = watch_new(feed_base(feed), watchdog_feed, w);
	watchdog_feed(-1, 0, w);
	return w;
}

void watchdog_end(struct watchdog *w)
{
	if (w)
		keeper_alive(w->keeper, 0);
}

void watchdog_free(struct watchdog *w)
{
	if (!w)
		return;
	watch_free(w->watch);
	mem_free(w);
}
