/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/vigil.h"

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

int64_t vigil_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

void vigil_open(struct vigil *v)
{
	int rc = notify_open(&v->notify);

	if (rc < 0)
		log_warning("cannot use NOTIFY_SOCKET: %s; the service manager is not told that the keeper lives",
			    strerror(-rc));
	v->every_ns = v->notify.fd >= 0 ? watchdog_setting_us() * NS_PER_US / 2 : 0;
	v->next_ns = v->every_ns ? 0 : NEVER;
	v->within_ns = 0;
	vigil_end(v);
}

void vigil_close(struct vigil *v)
{
	notify_close(&v->notify);
}

static void await(struct vigil *v, enum vigil_state state, int64_t due_ns)
{
	v->state = state;
	v->due_ns = due_ns;
}

void vigil_begin(struct vigil *v, int64_t now_ns)
{
	await(v, VIGIL_WELL, v->every_ns ? now_ns + max64(BEGIN_NS, v->within_ns) : NEVER);
}

void vigil_end(struct vigil *v)
{
	await(v, VIGIL_WELL, NEVER);
}

void vigil_alive(struct vigil *v, int64_t now_ns, uint64_t within_us)
{
	v->within_ns = within_us <= WATCHDOG_US_MAX ? (int64_t)within_us * NS_PER_US : 0;
	/* One that was aborted cannot take that back. */
	if (v->state == VIGIL_WELL || v->state == VIGIL_LATE)
		await(v, VIGIL_WELL, v->within_ns ? now_ns + v->within_ns : NEVER);
	/* The service manager's watchdog was made as long. */
	if (v->within_ns && v->every_ns)
		v->every_ns = v->within_ns / 2;
}

void vigil_ready(const struct vigil *v)
{
	notify_send(&v->notify, "READY=1");
}

int64_t vigil_deadline(const struct vigil *v)
{
	return min64(v->next_ns, v->due_ns);
}

static enum vigil_due look_at_worker(struct vigil *v, int64_t now_ns)
{
	switch (v->state) {
	case VIGIL_WELL:
		await(v, VIGIL_LATE, now_ns + LATE_NS);
		return VIGIL_NOTHING;
	case VIGIL_LATE:
		await(v, VIGIL_ABORTED, now_ns + CORE_NS);
		return VIGIL_ABORT;
	case VIGIL_ABORTED:
		await(v, VIGIL_KILLED, NEVER);
		return VIGIL_KILL;
	case VIGIL_KILLED:
		return VIGIL_NOTHING;
	}
	abort();
}

enum vigil_due vigil_look(struct vigil *v, int64_t now_ns)
{
	if (now_ns >= v->next_ns) {
		notify_send(&v->notify, "WATCHDOG=1");
		v->next_ns = now_ns + v->every_ns;
	}
	return now_ns >= v->due_ns ? look_at_worker(v, now_ns) : VIGIL_NOTHING;
}
