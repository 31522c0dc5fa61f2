/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/former.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/session/former.h"
#include "io/base/feed.h"
#include "io/files/saved.h"
#include "io/base/watch.h"
#include "io/base/worker.h"
#include "io/zookeeper/handle.h"
#include "io/zookeeper/zookeeper.h"

enum { TRIES_MAX = 10 };

#define LOOK_NS (50 * CLOCK_NS_PER_MS)
#define RETRY_NS (500 * CLOCK_NS_PER_MS)

enum step { STEP_IDLE, STEP_ATTACHING, STEP_CLOSING };
/* The handle's latest message, which is handled when the turn settles. */
enum said { SAID_NOTHING, SAID_CONNECTED, SAID_EXPIRED, SAID_REFUSED };

struct zk_former {
	struct feed *feed;
	struct worker *worker;
	const struct zookeeper *zookeeper;
	struct zookeeper_conf conf;
	struct watch *look, *retry;
	int64_t asked[FORMERS_MAX]; /* to be ended; the first one is under way */
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
	struct zk_former *f = arg;

	if (event->type == EVENT_ZK_CONNECTED)
		f->said = SAID_CONNECTED;
	else if (event->type == EVENT_ZK_EXPIRED && f->said != SAID_REFUSED)
		f->said = SAID_EXPIRED;
	else if (event->type == EVENT_ZK_SUSPENDED && f->said == SAID_CONNECTED)
		f->said = SAID_NOTHING;
}

/*
 * The daemon's own handle reports the same troubles. If the secret was refused, the handle is dead, but the session is
 * not.
 */
static void trouble(void *arg, enum zk_handle_trouble kind, const char *sentence)
{
	struct zk_former *f = arg;

	log_debug(session_former, LOG_FIELDS("state=%s error=%v", "ending", sentence),
		  "ending a session that was left: %s", sentence);
	if (kind == ZK_HANDLE_DENIED)
		f->said = SAID_REFUSED;
}

static void refused(void *arg, const char *sentence)
{
	struct zk_former *f = arg;

	log_debug(session_former, LOG_FIELDS("state=%s error=%v", "ending", sentence),
		  "ending a session that was left: %s", sentence);
	f->said = SAID_REFUSED;
}

static void look_fired(int fd, short what, void *arg)
{
	struct zk_former *f = arg;

	f->look_due = true;
}

static void closing_run(struct work *work)
{
	struct zk_former *f = container_of(work, struct zk_former, closing);

	zk_handle_end(f->handle);
}

static void closing_done(struct work *work)
{
	struct zk_former *f = container_of(work, struct zk_former, closing);

	f->closed = true;
}

struct zk_former *zk_former_new(struct feed *feed, struct worker *worker,
				const struct zookeeper *zookeeper, const struct zookeeper_conf *conf)
{
	struct zk_former *f = mem_new(sizeof(*f));

	f->feed = feed;
	f->worker = worker;
	f->zookeeper = zookeeper;
	f->conf = *conf;
	f->look = watch_new(feed_base(feed), look_fired, f);
	f->retry = watch_new(feed_base(feed), NULL, f);
	f->closing = (struct work){ .run = closing_run, .done = closing_done };
	if (saved_held_session(conf->saved))
		watch_set(f->look, -1, 0, LOOK_NS);
	return f;
}

void zk_former_free(struct zk_former *f)
{
	if (!f)
		return;
	zk_handle_free(f->handle);
	watch_free(f->look);
	watch_free(f->retry);
	mem_free(f);
}

void zk_former_end(struct zk_former *f, int64_t session)
{
	assert(f->asked_count < FORMERS_MAX);
	f->asked[f->asked_count++] = session;
	/* Whether holders are alive no longer matters. */
	if (session == saved_held_session(f->conf.saved))
		watch_clear(f->look);
}

/* The session under way is over, or given up: the next daemon may try again. */
static void over(struct zk_former *f, bool ended)
{
	struct event event = { .type = EVENT_FORMER_OVER };

	event.former.session = f->asked[0];
	event.former.ended = ended;
	if (ended)
		saved_end_former(f->conf.saved, f->asked[0]);
	f->asked_count--;
	memmove(f->asked, f->asked + 1, f->asked_count * sizeof(f->asked[0]));
	f->tries = 0;
	f->retry_ns = 0;
	feed_event(f->feed, &event);
}

static void to_idle(struct zk_former *f)
{
	zk_handle_free(f->handle);
	f->handle = NULL;
	f->step = STEP_IDLE;
}

static void attach(struct zk_former *f)
{
	struct zk_handle_conf conf = f->conf.handle;
	struct zk_identity identity;
	int rc;

	if (!saved_identity(f->conf.saved, f->asked[0], &identity) || ++f->tries > TRIES_MAX) {
		over(f, false);
		return;
	}
	/* The session is only attached to be ended, whatever timeout the servers grant. */
	conf.timeout_min_ms = 1;
	f->said = SAID_NOTHING;
	f->closed = false;
	f->handle = zk_handle_new(feed_base(f->feed), &conf, &(struct zk_handle_owner){ f, said, trouble, refused });
	rc = zk_handle_connect(f->handle, zookeeper_addresses(f->zookeeper), &identity);
	explicit_bzero(&identity, sizeof(identity));
	if (rc < 0) {
		log_debug(session_former, LOG_FIELDS("state=%s error=%v", "ending", strerror(-rc)),
			  "ending a session that was left: %s", strerror(-rc));
		f->retry_ns = feed_now(f->feed) + RETRY_NS;
		to_idle(f);
		return;
	}
	f->step = STEP_ATTACHING;
}

static void attached(struct zk_former *f)
{
	zk_handle_settle(f->handle);
	switch (f->said) {
	case SAID_NOTHING:
		break;
	case SAID_CONNECTED:
		zk_handle_detach(f->handle);
		f->step = STEP_CLOSING;
		worker_add(f->worker, &f->closing);
		break;
	case SAID_EXPIRED:
		zk_handle_forget(f->handle);
		to_idle(f);
		over(f, true);
		break;
	case SAID_REFUSED:
		zk_handle_forget(f->handle);
		to_idle(f);
		f->retry_ns = feed_now(f->feed) + RETRY_NS;
		break;
	}
}

static void look(struct zk_former *f)
{
	struct event event = { .type = EVENT_FORMER_FREE };

	f->look_due = false;
	if (saved_holders_live(f->conf.saved)) {
		watch_set(f->look, -1, 0, LOOK_NS);
		return;
	}
	event.former.session = saved_held_session(f->conf.saved);
	saved_free_former(f->conf.saved, event.former.session);
	feed_event(f->feed, &event);
}

void zk_former_settle(struct zk_former *f)
{
	int64_t now_ns = feed_now(f->feed);

	if (f->look_due)
		look(f);
	if (f->step == STEP_CLOSING && f->closed)
		to_idle(f);
	if (f->step == STEP_IDLE && f->asked_count && now_ns >= f->retry_ns && zookeeper_addresses(f->zookeeper))
		attach(f);
	if (f->step == STEP_ATTACHING)
		attached(f);
	if (f->step == STEP_IDLE && f->asked_count && f->retry_ns > now_ns)
		watch_set(f->retry, -1, 0, f->retry_ns - now_ns);
}

void zk_former_stop(struct zk_former *f)
{
	if (!f)
		return;
	watch_clear(f->look);
	watch_clear(f->retry);
	if (f->step == STEP_ATTACHING) {
		zk_handle_detach(f->handle);
		zk_handle_forget(f->handle);
	}
}
