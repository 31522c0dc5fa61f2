/* SPDX-License-Identifier: Apache-2.0 */
#include "io/reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/container.h"
#include "base/mem.h"
#include "io/base/watch.h"
#include "io/base/worker.h"
#include "io/notify.h"
#include "io/zookeeper/secret.h"

struct reload {
	struct work work;
	struct worker *worker;
	const struct notify *notify; /* NULL: not any longer */
	struct reload_conf conf;
	struct watch *patience; /* wakes the loop, which then sees whether somebody waits */
	int64_t asked_ns;
	bool reading, again, abandoned;
	/* The worker's while it reads. */
	struct conf read;
	struct secret *secret; /* that it names */
	int rc, secret_rc;
	char error[CONF_ERROR_MAX];
};

static void reload_run(struct work *work)
{
	struct reload *r = container_of(work, struct reload, work);

	r->rc = conf_load(&r->read, r->conf.source, r->error);
	if (r->rc == 0)
		r->rc = r->conf.look(r->conf.arg, &r->read, r->error);
	if (r->rc == 0)
		r->secret_rc = secret_open(&r->secret, r->read.auth_file);
}

static void reload_forget(struct reload *r)
{
	conf_free(&r->read);
	secret_close(r->secret);
	r->secret = NULL;
}

static void reload_begin(struct reload *r)
{
	r->again = false;
	worker_add(r->worker, &r->work);
}

static void reload_ended(struct work *work)
{
	struct reload *r = container_of(work, struct reload, work);

	if (r->again) {
		r->abandoned = false;
		reload_forget(r);
		reload_begin(r);
		return;
	}
	r->reading = false;
	watch_clear(r->patience);
	if (!r->abandoned)
		r->conf.done(r->conf.arg, r->rc == 0 ? &r->read : NULL, r->error);
	r->abandoned = false;
	reload_forget(r);
	if (r->notify)
		notify_send(r->notify, "READY=1");
}

/* The loop only has to look. */
static void reload_is_slow(int fd, short what, void *arg)
{
}

struct reload *reload_new(struct watch_base *base, struct worker *w, const struct notify *notify,
			  const struct reload_conf *conf)
{
	struct reload *r = mem_new(sizeof(*r));

	r->work = (struct work){ .run = reload_run, .done = reload_ended };
	r->worker = w;
	r->notify = notify;
	r->conf = *conf;
	r->patience = watch_new(base, reload_is_slow, r);
	return r;
}

void reload_free(struct reload *r)
{
	if (!r)
		return;
	reload_forget(r);
	watch_free(r->patience);
	mem_free(r);
}

/* Service managers that are newer than this need the instant; older ones ignore it. */
static void reload_tell(const struct notify *n)
{
	char text[64];
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		 (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000);
	notify_send(n, text);
}

void reload_ask(struct reload *r)
{
	r->again = r->reading;
	r->asked_ns = clock_now_ns();
	watch_set(r->patience, -1, 0, RELOAD_PATIENCE_NS);
	if (r->reading)
		return;
	r->reading = true;
	if (r->notify)
		reload_tell(r->notify);
	reload_begin(r);
}

int reload_secret(const struct reload *r, const struct secret **ret)
{
	*ret = r->secret;
	return r->secret_rc;
}

bool reload_is_reading(const struct reload *r)
{
	return r->reading && !(r->abandoned && !r->again);
}

void reload_give_way(struct reload *r)
{
	if (!reload_is_reading(r) || clock_now_ns() - r->asked_ns < RELOAD_PATIENCE_NS)
		return;
	r->abandoned = true;
	r->again = false;
	r->conf.done(r->conf.arg, NULL,
		     "reading it, or looking up its names, takes too long for a hand-over that waits: the next process "
		     "reads it");
}

void reload_mute(struct reload *r)
{
	r->notify = NULL;
}
