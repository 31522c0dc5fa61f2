/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/zookeeper.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/zookeeper/resolve.h"
#include "io/files/saved.h"
#include "io/base/watch.h"
#include "io/base/worker.h"
#include "io/zookeeper/capabilities.h"
#include "io/zookeeper/probe.h"

#define BACKOFF_MAX_NS (5 * CLOCK_NS_PER_S)
/*
 * Between look-ups while there is no connection. A server may have moved: while there is a session to lose, it has to be
 * found in time.
 */
#define RESOLVE_NS (5 * CLOCK_NS_PER_S)
enum { RESOLVE_PART = 8 }; /* of T, until T has passed without a connection */

/* The answer to an operation that could not be sent. */
struct failure {
	STAILQ_ENTRY(failure) entry;
	uint64_t op;
	enum zk_code code;
};

struct resolution {
	struct work work;
	char *servers; /* a copy, while it runs */
	struct resolved found;
	bool running;
	int64_t ended_ns; /* the latest one; negative: the first is due */
};

struct zookeeper {
	struct feed *feed;
	struct worker *worker, *resolver; /* resolver: a look-up may hang, and nothing waits behind it */
	struct zk_handle *handle;
	struct zk_capabilities capabilities;
	struct watch *timer; /* only wakes the loop: what is due is seen when the turn settles */
	STAILQ_HEAD(failure_list, failure) failures;
	char *servers;   /* as in the configuration */
	char *addresses; /* NULL: not known yet */
	bool late;       /* the handle learns these addresses when its connection is over */
	int64_t open_ns; /* a session is opened, or a connection made for `taken`, not before this */
	struct backoff backoff;
	int64_t believe_ns; /* from then on one server is enough that calls `taken` expired */
	struct zk_probe *probe;
	struct work farewell;
	struct zookeeper_conf conf;
	struct resolution resolution;
	int64_t timeout_ns; /* T, as it was granted last, or is asked for */
	int64_t away_ns;    /* since when there has been no connection */
	/* The session of the process before this one, which no server has confirmed to this one yet. */
	struct zk_identity taken; /* session 0: none */
	bool numeric; /* all names are numeric: nothing has to be looked up */
	bool opening; /* a session is to be opened */
	bool known;   /* the broker was told of the present session */
	bool taking;  /* a connection is to be made for `taken` */
	bool stopped, ended;
	char denier[ZK_SERVER_NAME_MAX]; /* the first server that called `taken` expired; "": none */
};

static void zookeeper_tell_trouble(struct zookeeper *z, bool refused, const char *sentence)
{
	const struct event event = {
		.type = EVENT_ZK_TROUBLE,
		.zk_trouble = { .refused = refused, .sentence = slice_of(sentence) },
	};

	feed_event(z->feed, &event);
}

static void zookeeper_trouble(void *arg, enum zk_handle_trouble kind, const char *sentence)
{
	struct zookeeper *z = arg;

	log_event(kind == ZK_HANDLE_BOGUS || kind == ZK_HANDLE_DENIED ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
		  kind == ZK_HANDLE_UNREACHABLE ? LOG_EVENT_zookeeper_away : LOG_EVENT_zookeeper_trouble, LOG_NO_FIELDS,
		  "ZooKeeper: %s", sentence);
	zookeeper_tell_trouble(z, kind != ZK_HANDLE_UNREACHABLE && kind != ZK_HANDLE_SILENT, sentence);
}

static void zookeeper_learned(void *arg, int64_t bytes, const char *server)
{
	const struct event event = {
		.type = EVENT_ZK_PACKET,
		.zk_packet = { .bytes = bytes, .server = slice_of(server) },
	};
	struct zookeeper *z = arg;

	feed_event(z->feed, &event);
}

/*
 * The handle of this process has not seen any zxid yet: a server that is behind, or cut off from the leader, may call a
 * session expired that lives. Another server must say so too, unless enough time has passed for it to be true.
 */
static bool zookeeper_doubts(struct zookeeper *z)
{
	const char *server = zk_handle_server(z->handle);
	bool second = z->denier[0] && strcmp(z->denier, server) != 0;

	if (!z->taken.session || second || clock_now_ns() >= z->believe_ns)
		return false;
	if (!z->denier[0])
		snprintf(z->denier, sizeof(z->denier), "%s", server);
	log_warning(
		session_doubted, LOG_FIELDS("server=%v", server),
		"ZooKeeper: %s says that the session of the process before this one has expired: asking another server",
		server);
	z->taking = true;
	z->open_ns = feed_now(z->feed) + backoff_next_ns(&z->backoff, BACKOFF_MAX_NS);
	return true;
}

static void zookeeper_event(void *arg, const struct event *event)
{
	struct zookeeper *z = arg;

	/* Events of the old handle concern a session that the broker has given up. */
	if (z->opening || z->taking)
		return;
	if (event->type == EVENT_ZK_CONNECTED) {
		struct zk_identity identity;
		char server[ZK_SERVER_NAME_MAX];

		z->timeout_ns = event->zk_connected.timeout_ns;
		zk_handle_identity(z->handle, &identity);
		saved_session(z->conf.saved, &identity, event->zk_connected.timeout_ns);
		explicit_bzero(&identity, sizeof(identity));
		z->known = true;
		snprintf(server, sizeof(server), "%.*s", (int)event->zk_connected.server.len, event->zk_connected.server.data);
		zk_probe_connected(z->probe, server);
	} else if (event->type == EVENT_ZK_ANSWERED && event->zk_answered.code < ZK_REFUSED) {
		/* Only with an answer the handle learns a zxid, by which a server that is behind knows that it is. */
		z->taken.session = 0;
		backoff_reset(&z->backoff);
	} else if (event->type == EVENT_ZK_EXPIRED) {
		if (!z->known) {
			z->opening = true;
			return;
		}
		if (zookeeper_doubts(z))
			return;
		z->known = false;
		z->taken.session = 0;
	}
	feed_event(z->feed, event);
}

static void zookeeper_refused(void *arg, const char *sentence)
{
	const struct event expired = { .type = EVENT_ZK_EXPIRED };
	struct zookeeper *z = arg;

	log_error(zookeeper_trouble, LOG_NO_FIELDS, "ZooKeeper: %s", sentence);
	zookeeper_tell_trouble(z, true, sentence);
	/* A session that could only be continued there is given up. */
	if (z->known)
		zookeeper_event(z, &expired);
	else
		z->opening = true;
}

static void resolution_run(struct work *work)
{
	struct resolution *resolution = container_of(work, struct resolution, work);

	resolve_servers(resolution->servers, &resolution->found);
}

static void zookeeper_resolved(struct zookeeper *z, struct resolved *found)
{
	if (found->failed) {
		char sentence[512];

		snprintf(sentence, sizeof(sentence), "cannot look up servers: %s", found->failed);
		log_warning(zookeeper_trouble, LOG_NO_FIELDS, "ZooKeeper: %s", sentence);
		if (!zk_handle_connected(z->handle))
			zookeeper_tell_trouble(z, false, sentence);
	}
	if (found->servers && !(z->addresses && resolve_same(z->addresses, found->servers))) {
		free(z->addresses);
		z->addresses = found->servers;
		found->servers = NULL;
		log_debug(zookeeper_client, LOG_NO_FIELDS, "ZooKeeper servers: %s", z->addresses);
		zk_handle_set_servers(z->handle, z->addresses);
		zk_probe_servers(z->probe, z->addresses);
	}
	resolved_free(found);
}

static void resolution_done(struct work *work)
{
	struct resolution *resolution = container_of(work, struct resolution, work);
	struct zookeeper *z = container_of(resolution, struct zookeeper, resolution);

	resolution->running = false;
	/* Others have taken their place meanwhile. */
	if (strcmp(resolution->servers, z->servers) == 0) {
		resolution->ended_ns = feed_now(z->feed);
		zookeeper_resolved(z, &resolution->found);
	}
	resolved_free(&resolution->found);
	free(resolution->servers);
	resolution->servers = NULL;
}

struct zookeeper *zookeeper_new(struct feed *feed, struct worker *worker, struct worker *resolver,
				const struct zookeeper_conf *conf)
{
	struct zookeeper *z = mem_new(sizeof(*z));
	const struct zk_handle_owner owner = { z, zookeeper_event, zookeeper_trouble, zookeeper_refused };

	z->feed = feed;
	z->worker = worker;
	z->resolver = resolver;
	z->timeout_ns = conf->handle.timeout_ms * CLOCK_NS_PER_MS;
	z->away_ns = feed_now(feed);
	z->resolution.ended_ns = -RESOLVE_NS;
	z->conf = *conf;
	z->conf.handle.capabilities = &z->capabilities;
	z->handle = zk_handle_new(feed_base(feed), &z->conf.handle, &owner);
	z->timer = watch_new(feed_base(feed), NULL, z);
	z->probe = zk_probe_new(feed_base(feed), conf->packet_bytes, zookeeper_learned, z);
	z->servers = mem_text(conf->servers);
	z->numeric = resolve_is_numeric(z->servers);
	z->resolution.work = (struct work){ .run = resolution_run, .done = resolution_done };
	STAILQ_INIT(&z->failures);
	return z;
}

void zookeeper_free(struct zookeeper *z)
{
	struct failure *f;

	if (!z)
		return;
	while ((f = STAILQ_FIRST(&z->failures))) {
		STAILQ_REMOVE_HEAD(&z->failures, entry);
		mem_free(f);
	}
	zk_handle_free(z->handle);
	zk_probe_free(z->probe);
	watch_free(z->timer);
	resolved_free(&z->resolution.found);
	free(z->resolution.servers);
	free(z->servers);
	free(z->addresses);
	mem_free(z);
}

void zookeeper_open(struct zookeeper *z)
{
	z->known = z->taking = false;
	z->taken.session = 0;
	z->opening = true;
}

void zookeeper_drop(struct zookeeper *z)
{
	if (zk_handle_connected(z->handle))
		zk_handle_drop(z->handle);
}

void zookeeper_send(struct zookeeper *z, const struct effect *effect, struct slice path, struct slice data)
{
	enum zk_code code = zk_handle_send(z->handle, effect, path, data);
	struct failure *f;

	if (code == ZK_OK)
		return;
	f = mem_new(sizeof(*f));
	f->op = effect->op;
	f->code = code;
	STAILQ_INSERT_TAIL(&z->failures, f, entry);
}

static void zookeeper_tell_failures(struct zookeeper *z)
{
	struct event event = { .type = EVENT_ZK_ANSWERED };
	struct failure_list told = STAILQ_HEAD_INITIALIZER(told);
	struct failure *f;

	/* Effects of these answers that fail again have their turn after this one. */
	STAILQ_CONCAT(&told, &z->failures);
	while ((f = STAILQ_FIRST(&told))) {
		STAILQ_REMOVE_HEAD(&told, entry);
		event.zk_answered.op = f->op;
		event.zk_answered.code = f->code;
		event.zk_answered.data =
			f->code == ZK_REFUSED ? SLICE("the request is not valid") : (struct slice){ 0 };
		mem_free(f);
		feed_event(z->feed, &event);
	}
}

static int64_t resolution_due(const struct zookeeper *z)
{
	int64_t pause_ns = z->timeout_ns / RESOLVE_PART;

	if (pause_ns > RESOLVE_NS || feed_now(z->feed) - z->away_ns >= z->timeout_ns)
		pause_ns = RESOLVE_NS;
	return z->resolution.ended_ns + pause_ns;
}

static void zookeeper_resolve(struct zookeeper *z)
{
	struct resolved found;

	if (z->numeric) {
		resolve_servers(z->servers, &found);
		zookeeper_resolved(z, &found);
	} else if (!z->resolution.running && feed_now(z->feed) >= resolution_due(z)) {
		z->resolution.running = true;
		z->resolution.servers = mem_text(z->servers);
		worker_add(z->resolver, &z->resolution.work);
	}
}

static void zookeeper_connect(struct zookeeper *z)
{
	char sentence[128];
	int rc;

	z->opening = z->taking = false;
	z->open_ns = feed_now(z->feed) + backoff_next_ns(&z->backoff, BACKOFF_MAX_NS);
	rc = zk_handle_connect(z->handle, z->addresses, z->taken.session ? &z->taken : NULL);
	if (rc == 0)
		return;
	snprintf(sentence, sizeof(sentence), "cannot open a session: %s", strerror(-rc));
	log_error(zookeeper_trouble, LOG_NO_FIELDS, "ZooKeeper: %s", sentence);
	zookeeper_tell_trouble(z, false, sentence);
	if (z->taken.session)
		z->taking = true;
	else
		z->opening = true;
}

/* Sets the timer for the earliest task. */
static void zookeeper_arm(struct zookeeper *z, bool looking)
{
	int64_t due_ns = INT64_MAX;

	if ((z->opening || z->taking) && z->addresses)
		due_ns = z->open_ns;
	if (looking && !z->numeric && !z->resolution.running && resolution_due(z) < due_ns)
		due_ns = resolution_due(z);
	if (due_ns == INT64_MAX)
		watch_clear(z->timer);
	else
		watch_set_by(z->timer, due_ns);
}

void zookeeper_settle(struct zookeeper *z)
{
	bool looking;

	if (z->late && !zk_handle_connected(z->handle)) {
		z->late = false;
		zk_handle_set_servers(z->handle, z->addresses);
	}
	zk_handle_settle(z->handle);
	if (zk_handle_connected(z->handle)) {
		z->away_ns = feed_seen(z->feed);
		/* The usual case after a client's request: there is no name to resolve, and no failure to report. */
		if (z->addresses && !z->opening && !z->taking && STAILQ_EMPTY(&z->failures)) {
			watch_clear(z->timer);
			return;
		}
	}
	looking = !z->addresses || (!z->numeric && !zk_handle_connected(z->handle));
	if (looking)
		zookeeper_resolve(z);
	if (z->opening || z->taking) {
		zk_handle_forget(z->handle);
		if (z->addresses && feed_now(z->feed) >= z->open_ns)
			zookeeper_connect(z);
	}
	zookeeper_tell_failures(z);
	zookeeper_arm(z, looking);
	zk_handle_settle(z->handle);
}

/* ---- other servers, and a hand-over ---- */

void zookeeper_suspend(struct zookeeper *z)
{
	zk_handle_suspend(z->handle);
	while (!STAILQ_EMPTY(&z->failures))
		zookeeper_tell_failures(z);
}

/* The library would cut connections now and then, so that not all hosts stay with the old servers. Nobody asked for it. */
void zookeeper_set_servers(struct zookeeper *z, const char *servers, struct resolved *found)
{
	free(z->servers);
	z->servers = mem_text(servers);
	z->numeric = resolve_is_numeric(servers);
	z->resolution.ended_ns = feed_now(z->feed);
	zookeeper_resolved(z, found);
	if (!zk_handle_connected(z->handle))
		return;
	z->late = true;
	if (resolve_lists(z->addresses, zk_handle_server(z->handle)))
		return;
	log_info(zookeeper_moves, LOG_FIELDS("server=%v", zk_handle_server(z->handle)),
		 "ZooKeeper: %s is not among zookeeper.servers any longer: the session goes on with another server",
		 zk_handle_server(z->handle));
	zookeeper_suspend(z);
}

void zookeeper_pack(const struct zookeeper *z, struct parcel *p)
{
	struct entry_writer w = entry_begin(&p->text, "zookeeper");

	entry_number(&w, "known", z->known);
	entry_end(&w);
	zk_probe_pack(z->probe, p);
}

int zookeeper_unpack(struct zookeeper *z, struct parcel *p, int64_t timeout_ns)
{
	struct entry e;
	bool known;

	if (!parcel_find(p, "zookeeper", &e))
		return -EBADMSG;
	known = parcel_get_number(&e, "known");
	zk_probe_unpack(z->probe, p);
	if (!known)
		return 0;
	zookeeper_continue(z, timeout_ns);
	return z->known ? 0 : -EBADMSG;
}

void zookeeper_continue(struct zookeeper *z, int64_t timeout_ns)
{
	z->known = z->taking = saved_present(z->conf.saved, &z->taken);
	z->believe_ns = clock_now_ns() + timeout_ns;
	z->timeout_ns = timeout_ns;
}

void zookeeper_prepared(struct zookeeper *z, struct resolved *found)
{
	zookeeper_resolved(z, found);
	z->resolution.ended_ns = feed_now(z->feed);
}

const char *zookeeper_addresses(const struct zookeeper *z)
{
	return z->addresses;
}

static void farewell_run(struct work *work)
{
	struct zookeeper *z = container_of(work, struct zookeeper, farewell);

	z->ended = zk_handle_end(z->handle);
}

void zookeeper_stop(struct zookeeper *z, bool close_session)
{
	assert(!z->stopped);
	z->stopped = true;
	watch_clear(z->timer);
	zk_probe_stop(z->probe);
	if (close_session && zk_handle_connected(z->handle)) {
		zk_handle_detach(z->handle);
		z->farewell = (struct work){ .run = farewell_run };
		worker_add(z->worker, &z->farewell);
	} else {
		zk_handle_detach(z->handle);
		zk_handle_forget(z->handle);
	}
}

bool zookeeper_session_ended(const struct zookeeper *z)
{
	return z->ended;
}
