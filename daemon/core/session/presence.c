/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/presence.h"

#include "core/znode/record.h"
#include "core/session/ensemble.h"

/* Seen of another session, after the first look at it. */
enum { DUPLICATE_WRITES = 3 };

/* Between two lines of the log about the same trouble. */
static const int64_t COMPLAIN_NS = 600000000000;

void presence_init(struct ensemble *zk)
{
	zk->presence.stood_ns = zk->env->now_ns;
	zk->presence.version = INT32_MAX;
	bytes_format(&zk->presence.path, "%s/.hosts/%s", zk->env->conf->root, zk->env->conf->host);
}

static void write_host(const struct ensemble *zk)
{
	const struct broker_conf *conf = zk->env->conf;
	struct bytes *out = operation_data(zk);

	record_begin(out);
	bytes_format(out, "host=%s\npid=%d\nboot_id=%s\n", conf->host, conf->pid, conf->boot_id);
	bytes_format(out, "started=%d\nversion=%s\ntick_ms=%d\n", conf->started_s, conf->version,
		     conf->tick_ns / 1000000);
}

void presence_above(struct ensemble *zk, struct slice path)
{
	struct operation_request r = { .op.kind = OPERATION_PATH, .path.data = path.data, .create = ZK_PERSISTENT };

	for (r.path.len = 1; r.path.len < path.len; r.path.len++)
		if (path.data[r.path.len] == '/')
			operation_send(zk, EFFECT_ZK_CREATE, &r);
}

void presence_beat(struct ensemble *zk)
{
	struct operation_request r = {
		.op.kind = OPERATION_BEAT,
		.path = bytes_view(&zk->presence.path),
		.create = ZK_EPHEMERAL,
		.exact = zk->session.announced && !zk->past.looked, /* else it would cover what is to be seen */
		.version = zk->presence.version,
	};

	write_host(zk);
	operation_send(zk, zk->session.announced ? EFFECT_ZK_SET : EFFECT_ZK_CREATE, &r);
	zk->session.beat_ns = zk->session.announced_ns = zk->env->now_ns;
	zk->env->stats.heartbeats_total++;
}

void presence_write(const struct ensemble *zk, struct operation_request *ret)
{
	ret->path = bytes_view(&zk->presence.path);
	ret->exact = true;
	ret->version = INT32_MAX;
}

static void ask_duplicate(struct ensemble *zk)
{
	struct operation_request r = { .op.kind = OPERATION_DUPLICATE, .path = bytes_view(&zk->presence.path) };

	operation_send(zk, EFFECT_ZK_GET, &r);
}

static void duplicate_forget(struct ensemble *zk)
{
	struct presence *p = &zk->presence;

	p->session = 0;
	p->writes = 0;
	p->lives = false;
	p->complain_ns = 0;
}

static void announced(struct ensemble *zk, const struct zk_stat *stat)
{
	zk->presence.version = stat->version;
	zk->session.announced = zk->session.was_announced = true;
	zk->presence.stood_ns = zk->env->now_ns;
	duplicate_forget(zk);
}

static void beat_answered(struct ensemble *zk, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	if (code == ZK_OK) {
		announced(zk, &event->zk_answered.stat);
		past_own(zk, event->zk_answered.stat.mzxid);
	} else if (code == ZK_NODEEXISTS || code == ZK_BADVERSION) {
		ask_duplicate(zk);
	} else if (code == ZK_NONODE) {
		/* Deleted by hand, or a parent is missing: the next heartbeat makes it. */
		zk->session.announced = false;
		presence_above(zk, bytes_view(&zk->presence.path));
	}
}

/* ---- another daemon has the name ---- */

static void add_field(struct bytes *out, const char *title, struct slice value)
{
	if (value.len)
		bytes_format(out, "%s%q", title, value);
	else
		bytes_format(out, "%sunknown", title);
}

static void describe(struct ensemble *zk, struct slice data)
{
	struct slice boot_id = record_get(data, "boot_id");
	struct bytes *out = &zk->presence.other;

	bytes_clear(out);
	add_field(out, "pid ", record_get(data, "pid"));
	bytes_text(out, slice_is(boot_id, zk->env->conf->boot_id) ? " on this host" : " on another host");
	add_field(out, ", boot id ", boot_id);
	add_field(out, ", version ", record_get(data, "version"));
}

static void duplicate_seen(struct ensemble *zk, int64_t session, int64_t mzxid)
{
	duplicate_forget(zk);
	zk->presence.session = session;
	zk->presence.mzxid = mzxid;
	effects_say(zk->env->out, EFFECT_LEVEL_INFO, host_taken, EFFECT_FIELDS("host=%v", zk->env->conf->host),
		    "the name %q is announced by another session, which an earlier daemon left and ZooKeeper has not "
		    "expired yet, or which a second daemon uses",
		    zk->env->conf->host);
}

/* False: this daemon has never been announced, and has to end. */
static bool duplicate_lives(struct ensemble *zk, struct slice data)
{
	struct presence *p = &zk->presence;

	p->lives = true;
	describe(zk, data);
	if (!zk->session.was_announced) {
		effects_say(
			zk->env->out, EFFECT_LEVEL_ERROR, host_taken,
			EFFECT_FIELDS("host=%v other=%v", zk->env->conf->host, bytes_view(&p->other)),
			"the name %q is in use by another lockbrokerd (%s): give each daemon its own zookeeper.host, or "
			"stop one of them; this one stops now",
			zk->env->conf->host, bytes_view(&p->other));
		return false;
	}
	if (zk->env->now_ns >= p->complain_ns) {
		p->complain_ns = zk->env->now_ns + COMPLAIN_NS;
		effects_say(
			zk->env->out, EFFECT_LEVEL_ERROR, host_taken,
			EFFECT_FIELDS("host=%v other=%v", zk->env->conf->host, bytes_view(&p->other)),
			"the name %q was taken, while this daemon had no session, by a lockbrokerd that lives (%s): give "
			"each its own zookeeper.host, or stop one",
			zk->env->conf->host, bytes_view(&p->other));
	}
	return true;
}

/* No daemon makes it so. Nothing will ever remove it. */
static void not_ephemeral(struct ensemble *zk)
{
	if (zk->env->now_ns < zk->presence.complain_ns)
		return;
	zk->presence.complain_ns = zk->env->now_ns + COMPLAIN_NS;
	effects_say(
		zk->env->out, EFFECT_LEVEL_WARNING, host_taken, EFFECT_FIELDS("host=%v", zk->env->conf->host),
		"the name %q cannot be announced: its znode below .hosts is no daemon's, it was made by hand; delete it",
		zk->env->conf->host);
}

static bool duplicate_answered(struct ensemble *zk, const struct event *event)
{
	const struct zk_stat *stat = &event->zk_answered.stat;
	struct presence *p = &zk->presence;

	if (event->zk_answered.code != ZK_OK)
		return true;
	past_own(zk, stat->mzxid);
	if (stat->owner == zk->session.id) {
		announced(zk, stat);
		return true;
	}
	zk->session.announced = false;
	if (former_find(zk, stat->owner)) {
		duplicate_forget(zk);
	} else if (stat->owner == 0) {
		not_ephemeral(zk);
	} else if (stat->owner != p->session) {
		duplicate_seen(zk, stat->owner, stat->mzxid);
	} else if (stat->mzxid != p->mzxid) {
		p->mzxid = stat->mzxid;
		if (++p->writes >= DUPLICATE_WRITES)
			return duplicate_lives(zk, event->zk_answered.data);
	}
	return true;
}

bool presence_answered(struct ensemble *zk, enum operation_kind kind, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	bool good = kind != OPERATION_DUPLICATE || duplicate_answered(zk, event);

	if (kind == OPERATION_BEAT)
		beat_answered(zk, event);
	if (kind == OPERATION_PATH || code == ZK_NODEEXISTS || code == ZK_BADVERSION || code == ZK_BUSY || code == ZK_UNKNOWN ||
	    zk->past.looked)
		return good;
	past_look(zk);
	formers_tick(zk); /* their end takes the znode away that is looked at */
	return good;
}
