/* SPDX-License-Identifier: Apache-2.0 */
#include "io/watchdog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/base/keeper.h"
#include "io/base/watch.h"
#include "io/notify.h"

#define NS_PER_US INT64_C(1000)

struct watchdog {
	const struct notify *notify;
	struct keeper *keeper;
	struct watch *watch;
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

static void watchdog_feed(int fd, short what, void *arg)
{
	struct watchdog *w = arg;

	if (w->keeper)
		keeper_alive(w->keeper, w->within_us);
	else
		notify_send(w->notify, "WATCHDOG=1");
	watch_set(w->watch, -1, 0, w->every_ns);
}

static void watchdog_lengthen(const struct notify *n, int64_t us)
{
	char text[64];

	snprintf(text, sizeof(text), "WATCHDOG_USEC=%" PRId64, us);
	notify_send(n, text);
	log_info(watchdog, LOG_FIELDS("ms=%d", us / 1000),
		 "the watchdog is made %" PRId64 " ms long, two thirds of the session timeout", us / 1000);
}

int64_t watchdog_setting_us(void)
{
	int64_t us = setting("WATCHDOG_USEC"), pid = setting("WATCHDOG_PID");

	return us > WATCHDOG_US_MAX || (pid && pid != getpid()) ? 0 : us;
}

struct watchdog *watchdog_new(struct watch_base *base, const struct notify *notify, struct keeper *keeper,
			      int64_t session_timeout_ns)
{
	int64_t us = watchdog_setting_us(), least_us = session_timeout_ns / NS_PER_US / 3 * 2;
	struct watchdog *w;

	if (us == 0)
		return NULL;
	if (us < least_us) {
		us = least_us;
		watchdog_lengthen(notify, us);
	}
	w = mem_new(sizeof(*w));
	w->notify = notify;
	w->keeper = keeper;
	w->within_us = us;
	w->every_ns = us * NS_PER_US / 2;
	w->watch = watch_new(base, watchdog_feed, w);
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
