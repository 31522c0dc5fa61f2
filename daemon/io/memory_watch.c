/* SPDX-License-Identifier: Apache-2.0 */
#include "io/memory_watch.h"

#include <inttypes.h>
#include <string.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/broker.h"
#include "core/port/pools.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/memory_limit.h"
#include "io/base/watch.h"
#include "io/base/worker.h"
#include "io/crash.h"
#include "io/socket/socket_pools.h"
#include "protocol/bytes_format.h"

/* What MemoryMax= has for one: of a connection 64 KiB in the kernel and twice 16 in the daemon. */
enum { CONNECTION_BYTES = 96 << 10, PAGE_BYTES = 2 << 10, NAME_BYTES = 7 << 10, MIB_SHIFT = 20 };

struct memory_watch {
	struct feed *feed;
	const struct accounts *sockets;
	struct worker *worker;
	struct keeper *keeper;
	struct watch *watch;
	bool busy; /* the thread reads */
	bool warned;
	struct work work;
	struct memory_use use; /* the thread's while it reads */
	struct memory_most most;
};

/* ---- who has most ---- */

static uint64_t used(const struct account *a, size_t pool)
{
	return a ? a->used[pool] : 0;
}

/* An account has charges of its connections, and others in the core. */
static void weigh(struct memory_most *m, const struct account *a, const struct accounts *sockets,
		  const struct accounts *core)
{
	const struct account *s = account_find(sockets, a->uid, a->unit, strlen(a->unit));
	const struct account *c = account_find(core, a->uid, a->unit, strlen(a->unit));
	uint64_t connections = used(s, SOCKET_CONNECTIONS), names = used(c, POOL_LOCKS);
	uint64_t bytes = connections * CONNECTION_BYTES + used(s, SOCKET_PAGES) * PAGE_BYTES + names * NAME_BYTES +
			 2 * (used(s, SOCKET_INPUT) + used(s, SOCKET_OUTPUT) + used(c, POOL_MEMORY) + used(c, POOL_PATHS) +
			      used(c, POOL_WATCHES));

	if (bytes <= m->found)
		return;
	m->found = bytes;
	bytes_clear(&m->found_text);
	account_name(a, &m->found_text);
	bytes_format(&m->found_text, " (up to %d MiB: %d connections, %d names", bytes >> MIB_SHIFT, connections, names);
	if (s && s->kept[SOCKET_CONNECTIONS])
		bytes_format(&m->found_text, "; %s", s->kept[SOCKET_CONNECTIONS]);
	bytes_text(&m->found_text, ")");
}

static void end_pass(struct memory_most *m)
{
	struct bytes text = m->latest_text;

	m->latest = m->found;
	m->latest_text = m->found_text;
	m->found = 0;
	m->found_text = text;
	bytes_clear(&m->found_text);
	m->at = 0;
}

void memory_most_look(struct memory_most *m, const struct accounts *sockets, const struct accounts *core)
{
	for (size_t looks = 0; looks < MEMORY_WATCH_LOOKS; looks++) {
		size_t first = map_buckets(&sockets->map);
		const struct map_node *node;

		if (m->at >= first + map_buckets(&core->map)) {
			end_pass(m);
			return;
		}
		node = m->at < first ? map_bucket(&sockets->map, m->at) : map_bucket(&core->map, m->at - first);
		m->at++;
		for (; node; node = node->next, looks++)
			weigh(m, container_of(node, const struct account, node), sockets, core);
	}
}

const char *memory_most_text(struct memory_most *m)
{
	struct bytes *text = m->found >= m->latest ? &m->found_text : &m->latest_text;

	if (!text->len)
		return "nobody";
	bytes_char(text, '\0');
	text->len--;
	return text->data;
}

void memory_most_deinit(struct memory_most *m)
{
	bytes_free(&m->found_text);
	bytes_free(&m->latest_text);
}

/* ---- the limit ---- */

static void warn(const struct memory_use *use, const char *most)
{
	log_warning(memory_short, LOG_FIELDS("used=%d limit=%d most=%v", use->used, use->limit, most),
		    "the service uses %" PRIu64 " of the %" PRIu64 " MiB that its control group may have; most is charged to %s: "
		    "raise MemoryMax= of the unit, or lower limits.* in the configuration, before the kernel kills the "
		    "process that serves",
		    use->used >> MIB_SHIFT, use->limit >> MIB_SHIFT, most);
}

bool memory_watch_warns(bool *warned, uint64_t percent)
{
	bool before = *warned;

	*warned = percent >= (before ? MEMORY_WATCH_FELL : MEMORY_WATCH_PERCENT);
	return *warned && !before;
}

static void read_use(struct work *work)
{
	struct memory_watch *m = container_of(work, struct memory_watch, work);

	memory_limit_read("", &m->use);
}

static void have_use(struct work *work)
{
	struct memory_watch *m = container_of(work, struct memory_watch, work);
	const char *most;

	m->busy = false;
	memory_most_look(&m->most, m->sockets, broker_accounts(feed_broker(m->feed)));
	most = memory_most_text(&m->most);
	keeper_most(m->keeper, most);
	crash_most(most);
	if (memory_watch_warns(&m->warned, memory_use_percent(&m->use)))
		warn(&m->use, most);
}

static void look(int fd, short what, void *arg)
{
	struct memory_watch *m = arg;

	m->busy = true;
	worker_add(m->worker, &m->work);
}

struct memory_watch *memory_watch_new(struct feed *feed, const struct accounts *sockets, struct worker *worker,
				      struct keeper *keeper)
{
	struct memory_watch *m = mem_new(sizeof(*m));

	m->feed = feed;
	m->sockets = sockets;
	m->worker = worker;
	m->keeper = keeper;
	m->work = (struct work){ .run = read_use, .done = have_use };
	m->watch = watch_new(feed_base(feed), look, m);
	return m;
}

void memory_watch_free(struct memory_watch *m)
{
	if (!m)
		return;
	watch_free(m->watch);
	memory_most_deinit(&m->most);
	mem_free(m);
}

void memory_watch_note(struct memory_watch *m)
{
	if (!m->busy && !watch_is_set(m->watch))
		watch_set(m->watch, -1, 0, CLOCK_NS_PER_S);
}
