/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/former.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/session/former.h"
#include "io/loop.h"
#include "io/files/saved.h"
#include "io/watch.h"
#include "io/worker.h"
#include "io/zookeeper/handle.h"
#include "io/zookeeper/zookeeper.h"

enum { TRIES_MAX = 10 };

#define LOOK_NS (50 * CLOCK_NS_PER_MS)
#define RETRY_NS (500 * CLOCK_NS_PER_MS)

enum step { STEP_IDLE, STEP_ATTACHING, STEP_CLOSING };
/* What the handle said; it is acted upon when the turn settles. */
enum said { SAID_NOTHING, SAID_CONNECTED, SAID_EXPIRED, SAID_REFUSED };

struct zk_former {
	struct loop *loop;
	struct worker *worker;
	struct zk_former_conf conf;
	struct watch *look, *retry;
	int64_t asked[FORMERS_MAX]; /* to be ended, the first is under way */
	size_t asked_count;
	enum step step;
	enum said said;
	int tries;
	int64_t retry_ns; /* not before */
	bool look_due;
	struct zk_handle *handle; /* NULL when idle */
	struct work closing;
	bool closed;
};

static void said(void *arg, const struct event *event)
{
	struct zk_former *s = arg;

	if (event->type == EVENT_ZK_CONNECTED)
		s->said = SAID_CONNECTED;
	else if (event->type == EVENT_ZK_EXPIRED && s->said != SAID_REFUSED)
		s->said = SAID_EXPIRED;
	else if (event->type == EVENT_ZK_SUSPENDED && s->said == SAID_CONNECTED)
		s->said = SAID_NOTHING;
}

/* The daemon's own handle tells of the same troubles. A handle whose secret was refused is dead, the session is not. */
static void trouble(void *arg, enum zk_handle_trouble kind, const char *sentence)
{
	struct zk_former *s = arg;

	log_debug("ending a session that was left: %s", sentence);
	if (kind == ZK_HANDLE_DENIED)
		s->said = SAID_REFUSED;
}

static void refused(void *arg, const char *sentence)
{
	struct zk_former *s = arg;

	log_debug("ending a session that was left: %s", sentence);
	s->said = SAID_REFUSED;
}

static void look_fired(void *arg, int fd, unsigned int what)
{
	struct zk_former *s = arg;

	(void)fd;
	(void)what;
	s->look_due = true;
}

static void retry_fired(void *arg, int fd, unsigned int what)
{
	/* Only wakes the loop. */
	(void)arg;
	(void)fd;
	(void)what;
}

static void closing_run(struct work *work)
{
	struct zk_former *s = container_of(work, struct zk_former, closing);

	zk_handle_end(s->handle);
}

static void closing_done(struct work *work)
{
	struct zk_former *s = container_of(work, struct zk_former, closing);

	s->closed = true;
}

struct zk_former *zk_former_new(struct loop *loop, struct worker *worker, const struct zk_former_conf *conf)
{
	struct zk_former *s = mem_new(sizeof(*s));

	s->loop = loop;
	s->worker = worker;
	s->conf = *conf;
	s->look = watch_new(loop_base(loop), look_fired, s);
	s->retry = watch_new(loop_base(loop), retry_fired, s);
	s->closing = (struct work){ .run = closing_run, .done = closing_done };
	if (saved_held_session(conf->saved))
		watch_set(s->look, -1, 0, LOOK_NS);
	return s;
}

void zk_former_free(struct zk_former *s)
{
	if (!s)
		return;
	zk_handle_free(s->handle);
	watch_free(s->look);
	watch_free(s->retry);
	mem_free(s);
}

void zk_former_end(struct zk_former *s, int64_t session)
{
	assert(s->asked_count < FORMERS_MAX);
	s->asked[s->asked_count++] = session;
	/* Whether anybody lives is of no interest any more. */
	if (session == saved_held_session(s->conf.saved))
		watch_clear(s->look);
}

/* The one under way is over, or given up: then a successor may try again. */
static void over(struct zk_former *s, bool ended)
{
	struct event event = { .type = EVENT_FORMER_OVER };

	event.former.session = s->asked[0];
	event.former.ended = ended;
	if (ended)
		saved_end_former(s->conf.saved, s->asked[0]);
	s->asked_count--;
	memmove(s->asked, s->asked + 1, s->asked_count * sizeof(s->asked[0]));
	s->tries = 0;
	s->retry_ns = 0;
	loop_event(s->loop, &event);
}

static void to_idle(struct zk_former *s)
{
	zk_handle_free(s->handle);
	s->handle = NULL;
	s->step = STEP_IDLE;
}

static void attach(struct zk_former *s)
{
	/* Whatever the servers grant: the session is only attached to be ended. */
	const struct zk_handle_conf conf = {
		.timeout_ms = s->conf.timeout_ms,
		.timeout_min_ms = 1,
		.timeout_max_ms = s->conf.timeout_ms > 20 * s->conf.tick_ms ? s->conf.timeout_ms : 20 * s->conf.tick_ms,
		.secret = s->conf.secret,
	};
	struct zk_identity identity;
	int rc;

	if (!saved_identity(s->conf.saved, s->asked[0], &identity) || ++s->tries > TRIES_MAX) {
		over(s, false);
		return;
	}
	s->said = SAID_NOTHING;
	s->closed = false;
	s->handle = zk_handle_new(loop_base(s->loop), &conf, &(struct zk_handle_owner){ s, said, trouble, refused });
	rc = zk_handle_connect(s->handle, zookeeper_addresses(s->conf.zookeeper), &identity);
	if (rc < 0) {
		log_debug("ending a session that was left: %s", strerror(-rc));
		s->retry_ns = loop_now(s->loop) + RETRY_NS;
		to_idle(s);
		return;
	}
	s->step = STEP_ATTACHING;
}

static void attached(struct zk_former *s)
{
	zk_handle_settle(s->handle);
	switch (s->said) {
	case SAID_NOTHING:
		break;
	case SAID_CONNECTED:
		zk_handle_detach(s->handle);
		s->step = STEP_CLOSING;
		worker_add(s->worker, &s->closing);
		break;
	case SAID_EXPIRED:
		zk_handle_forget(s->handle);
		to_idle(s);
		over(s, true);
		break;
	case SAID_REFUSED:
		zk_handle_forget(s->handle);
		to_idle(s);
		s->retry_ns = loop_now(s->loop) + RETRY_NS;
		break;
	}
}

static void look(struct zk_former *s)
{
	struct event event = { .type = EVENT_FORMER_FREE };

	s->look_due = false;
	if (saved_holders_live(s->conf.saved)) {
		watch_set(s->look, -1, 0, LOOK_NS);
		return;
	}
	event.former.session = saved_held_session(s->conf.saved);
	saved_free_former(s->conf.saved, event.former.session);
	loop_event(s->loop, &event);
}

void zk_former_settle(struct zk_former *s)
{
	int64_t now_ns = loop_now(s->loop);

	if (s->look_due)
		look(s);
	if (s->step == STEP_CLOSING && s->closed)
		to_idle(s);
	if (s->step == STEP_IDLE && s->asked_count && now_ns >= s->retry_ns && zookeeper_addresses(s->conf.zookeeper))
		attach(s);
	if (s->step == STEP_ATTACHING)
		attached(s);
	if (s->step == STEP_IDLE && s->asked_count && s->retry_ns > now_ns)
		watch_set(s->retry, -1, 0, s->retry_ns - now_ns);
}

void zk_former_stop(struct zk_former *s)
{
	if (!s)
		return;
	watch_clear(s->look);
	watch_clear(s->retry);
	if (s->step == STEP_ATTACHING) {
		zk_handle_detach(s->handle);
		zk_handle_forget(s->handle);
	}
}
