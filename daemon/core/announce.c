#include "core/announce.h"

#include "core/record.h"
#include "core/state.h"

static void host_path(const struct broker *b, struct bytes *out)
{
	bytes_text(out, b->conf->root);
	bytes_text(out, "/.hosts/");
	bytes_text(out, b->conf->host);
}

static void host_data(const struct broker *b, struct bytes *out)
{
	record_begin(out);
	record_text(out, "host", b->conf->host);
	record_int(out, "pid", b->conf->pid);
	record_text(out, "boot_id", b->conf->boot_id);
	record_int(out, "started", b->conf->started_s);
	record_text(out, "version", b->conf->version);
	record_int(out, "tick_ms", b->conf->tick_ns / 1000000);
}

static void send_path(struct broker *b, struct slice path)
{
	struct operation_request r = { .op.kind = OPERATION_PATH, .path = path, .create = ZK_PERSISTENT };

	operation_send(b, EFFECT_ZK_CREATE, &r);
}

void announce_above(struct broker *b, struct slice path)
{
	for (size_t i = 1; i < path.len; i++)
		if (path.data[i] == '/')
			send_path(b, (struct slice){ path.data, i });
}

void announce_parents(struct broker *b)
{
	struct bytes path = { 0 };

	host_path(b, &path);
	announce_above(b, bytes_view(&path));
	bytes_free(&path);
}

void announce_beat(struct broker *b)
{
	struct bytes path = { 0 }, data = { 0 };
	struct operation_request r = { .op.kind = OPERATION_BEAT, .create = ZK_EPHEMERAL };

	host_path(b, &path);
	host_data(b, &data);
	r.path = bytes_view(&path);
	r.data = bytes_view(&data);
	operation_send(b, b->session.announced ? EFFECT_ZK_SET : EFFECT_ZK_CREATE, &r);
	b->session.beat_ns = b->now_ns;
	b->stats.heartbeats_total++;
	bytes_free(&path);
	bytes_free(&data);
}

static void ask_rival(struct broker *b)
{
	struct bytes path = { 0 };
	struct operation_request r = { .op.kind = OPERATION_RIVAL };

	host_path(b, &path);
	r.path = bytes_view(&path);
	operation_send(b, EFFECT_ZK_GET, &r);
	bytes_free(&path);
}

static void beat_answered(struct broker *b, enum zk_code code)
{
	struct session *s = &b->session;

	if (code == ZK_OK) {
		s->announced = true;
	} else if (code == ZK_NODEEXISTS) {
		ask_rival(b);
	} else if (code == ZK_NONODE) {
		/* Deleted by hand, or a parent is missing: the next heartbeat makes it. */
		s->announced = false;
		announce_parents(b);
	}
}

static void rival_answered(struct broker *b, const struct event *event)
{
	struct session *s = &b->session;
	size_t begin;

	if (event->zk_answered.code != ZK_OK)
		return;
	if (event->zk_answered.stat.owner == s->id) {
		s->announced = true;
		return;
	}
	if (s->rival_told)
		return;
	s->rival_told = true;
	begin = broker_log_begin(b);
	bytes_text(&b->out->arena, "another session announces this host's name \"");
	bytes_text(&b->out->arena, b->conf->host);
	bytes_text(&b->out->arena, "\": what an earlier daemon left and ZooKeeper has not expired yet, or a second one");
	broker_log_end(b, EFFECT_LEVEL_WARNING, begin);
}

void announce_answered(struct broker *b, enum operation_kind kind, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	if (kind == OPERATION_BEAT)
		beat_answered(b, code);
	else if (kind == OPERATION_RIVAL)
		rival_answered(b, event);
}
