/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/feed.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/record.h"
#include "core/snapshot.h"
#include "io/base/watch.h"

struct feed {
	struct watch_base *base;
	struct broker *broker;
	feed_carry_out *carry_out;
	void *arg;
	int64_t now_ns;   /* of the latest event */
	int64_t share_ns;     /* of the first event of this share of the turn; 0: there was none yet */
	int64_t share_max_ns; /* how long it lasts */
	bool handling, hurry;
	struct effects effects;
	struct event asked; /* a client's request: of most events only what differs is written */
};

/* Without a broker; its base is NULL if the kernel lacks what the loop needs. */
static struct feed *make(void)
{
	struct feed *f = mem_new(sizeof(*f));

	f->base = watch_base_new();
	f->asked.type = EVENT_CLIENT_ASKED;
	return f;
}

int feed_new(struct feed **ret_feed, const struct broker_conf *conf, uint64_t seed)
{
	struct feed *f = make();

	if (!f->base) {
		feed_free(f);
		return -ENOSYS;
	}
	f->broker = broker_new(conf, seed, feed_now(f));
	*ret_feed = f;
	return 0;
}

int feed_restore(struct feed **ret_feed, const struct broker_conf *conf, struct slice text, struct bytes *why)
{
	struct feed *f = make();

	if (f->base)
		f->broker = broker_restore(conf, text, feed_now(f), why);
	else
		bytes_text(why, "the kernel lacks a function that the event loop needs");
	if (!f->broker) {
		feed_free(f);
		return -EBADMSG;
	}
	*ret_feed = f;
	return 0;
}

void feed_free(struct feed *f)
{
	if (!f)
		return;
	broker_free(f->broker);
	effects_free(&f->effects);
	watch_base_free(f->base);
	mem_free(f);
}

void feed_attach(struct feed *f, feed_carry_out *carry_out, void *arg)
{
	f->carry_out = carry_out;
	f->arg = arg;
}

struct watch_base *feed_base(const struct feed *f)
{
	return f->base;
}

const struct broker *feed_broker(const struct feed *f)
{
	return f->broker;
}

void feed_give_page(struct feed *f, uint32_t conn, struct delegation_page *page)
{
	broker_give_page(f->broker, conn, page);
}

bool feed_owns_much(const struct feed *f, uint32_t conn)
{
	return broker_owns_much(f->broker, conn);
}

int64_t feed_held_since(const struct feed *f, uint32_t conn)
{
	return broker_held_since(f->broker, conn);
}

struct client_origin feed_origin(const struct feed *f, uint32_t conn)
{
	return broker_origin(f->broker, conn);
}

void feed_record(struct feed *f, struct ledger *ledger)
{
	broker_record(f->broker, ledger);
}

void feed_record_missing(struct feed *f)
{
	broker_record_missing(f->broker);
}

void feed_event(struct feed *f, const struct event *event)
{
	assert(!f->handling);
	f->handling = true;
	broker_handle(f->broker, feed_now(f), event, &f->effects);
	if (!f->share_ns)
		f->share_ns = f->now_ns;
	f->carry_out(f->arg, event, &f->effects);
	effects_clear(&f->effects);
	f->handling = false;
}

void feed_asked(struct feed *f, uint32_t conn, size_t argc, const struct slice *argv)
{
	f->asked.conn = conn;
	f->asked.asked.argc = argc;
	f->asked.asked.argv = argv;
	feed_event(f, &f->asked);
}

void feed_carried_out(struct feed *f)
{
	broker_carried_out(f->broker);
}

int64_t feed_now(struct feed *f)
{
	int64_t now_ns = clock_now_ns();

	if (now_ns > f->now_ns)
		f->now_ns = now_ns;
	return f->now_ns;
}

int64_t feed_seen(const struct feed *f)
{
	return f->now_ns;
}

bool feed_begin_turn(struct feed *f)
{
	bool hurry = f->hurry;

	f->hurry = false;
	return hurry;
}

void feed_begin_share(struct feed *f, int64_t begun_ns, int64_t share_ns)
{
	f->share_ns = begun_ns;
	f->share_max_ns = share_ns;
}

bool feed_share_spent(const struct feed *f)
{
	return f->share_ns && f->now_ns - f->share_ns > f->share_max_ns;
}

void feed_hurry(struct feed *f)
{
	f->hurry = true;
}

bool feed_hurries(const struct feed *f)
{
	return f->hurry;
}
