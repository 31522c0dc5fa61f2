/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/watchdogs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "io/watchdog.h"

#define NS_PER_US INT64_C(1000)
#define BEGIN_NS (60 * CLOCK_NS_PER_S)
#define LATE_NS CLOCK_NS_PER_S
#define CORE_NS (10 * CLOCK_NS_PER_S)
#define NEVER INT64_MAX

int64_t watchdogs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

void watchdogs_open(struct watchdogs *w)
{
	int rc = notify_open(&w->notify);

	if (rc < 0)
		log_warning(
			cannot_use, LOG_FIELDS("what=%s error=%v", "notify", strerror(-rc)),
			"cannot use NOTIFY_SOCKET: %s; the keeper cannot report to the service manager that it lives",
			strerror(-rc));
	w->every_ns = w->notify.fd >= 0 ? watchdog_setting_us() * NS_PER_US / 2 : 0;
	w->next_ns = w->every_ns ? 0 : NEVER;
	w->within_ns = 0;
	watchdogs_end(w);
}

void watchdogs_close(struct watchdogs *w)
{
	notify_close(&w->notify);
}

static void await(struct watchdogs *w, enum watchdogs_state state, int64_t due_ns)
{
	w->state = state;
	w->due_ns = due_ns;
}

void watchdogs_begin(struct watchdogs *w, int64_t now_ns)
{
	await(w, WATCHDOGS_WELL, w->every_ns ? now_ns + max64(BEGIN_NS, w->within_ns) : NEVER);
}

void watchdogs_end(struct watchdogs *w)
{
	await(w, WATCHDOGS_WELL, NEVER);
}

void watchdogs_alive(struct watchdogs *w, int64_t now_ns, uint64_t within_us)
{
	w->within_ns = within_us <= WATCHDOG_US_MAX ? (int64_t)within_us * NS_PER_US : 0;
	/* One that was aborted cannot take that back. */
	if (w->state == WATCHDOGS_WELL || w->state == WATCHDOGS_LATE)
		await(w, WATCHDOGS_WELL, w->within_ns ? now_ns + w->within_ns : NEVER);
	/* The service manager's watchdog was made as long. */
	if (w->within_ns && w->every_ns)
		w->every_ns = w->within_ns / 2;
}

void watchdogs_ready(const struct watchdogs *w)
{
	notify_send(&w->notify, "READY=1");
}

int64_t watchdogs_deadline(const struct watchdogs *w)
{
	return min64(w->next_ns, w->due_ns);
}

static enum watchdogs_due look_at_worker(struct watchdogs *w, int64_t now_ns)
{
	switch (w->state) {
	case WATCHDOGS_WELL:
		await(w, WATCHDOGS_LATE, now_ns + LATE_NS);
		return WATCHDOGS_NOTHING;
	case WATCHDOGS_LATE:
		await(w, WATCHDOGS_ABORTED, now_ns + CORE_NS);
		return WATCHDOGS_ABORT;
	case WATCHDOGS_ABORTED:
		await(w, WATCHDOGS_KILLED, NEVER);
		return WATCHDOGS_KILL;
	case WATCHDOGS_KILLED:
		return WATCHDOGS_NOTHING;
	}
	abort();
}

enum watchdogs_due watchdogs_look(struct watchdogs *w, int64_t now_ns)
{
	if (now_ns >= w->next_ns) {
		notify_send(&w->notify, "WATCHDOG=1");
		w->next_ns = now_ns + w->every_ns;
	}
	return now_ns >= w->due_ns ? look_at_worker(w, now_ns) : WATCHDOGS_NOTHING;
}
