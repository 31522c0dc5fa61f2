/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/info.h"

#include "base/mem.h"
#include "core/client/args.h"
#include "core/client/reply.h"
#include "core/session/budget.h"
#include "core/kind/semaphore.h"
#include "core/hosts/hosts.h"
#include "protocol/name.h"

static const int64_t NS_PER_MS = 1000000;

enum {
	MATCH_STEPS_MAX = 10000000, /* some tens of milliseconds, in which nobody else is served */
	LOCK_BYTES_MIN = 90,        /* that LOCKS shows of one lock */
};

/* ---- INFO ---- */

static void line_text(struct bytes *out, const char *key, struct slice value)
{
	bytes_format(out, "%s:%s\r\n", key, value);
}

static void line_int(struct bytes *out, const char *key, int64_t value)
{
	bytes_format(out, "%s:%d\r\n", key, value);
}

static void info_server(const struct hosts *h, struct bytes *out)
{
	/* Clients read these two before they send anything else. */
	line_text(out, "redis_version", SLICE("7.0.0"));
	line_text(out, "redis_mode", SLICE("standalone"));
	line_text(out, "lockbroker_version", slice_of(h->env->conf->version));
	line_text(out, "mode", slice_of(h->env->conf->standalone ? "standalone" : "zookeeper"));
	line_text(out, "host", slice_of(h->env->conf->host));
	line_int(out, "process_id", h->env->conf->pid);
	line_int(out, "uptime_in_seconds", (h->env->now_ns - h->env->started_ns) / (1000 * NS_PER_MS));
	line_int(out, "loading", 0);
	line_int(out, "stopping", h->env->stopping);
}

static void info_clients_section(const struct hosts *h, struct bytes *out)
{
	line_int(out, "connected_clients", (int64_t)h->locks->client_count);
	line_int(out, "blocked_clients", (int64_t)h->locks->blocked_count);
	line_int(out, "users", (int64_t)h->locks->users.count);
}

static void info_locks_section(const struct hosts *h, struct bytes *out)
{
	line_int(out, "locks", (int64_t)(h->locks->names.count - h->locks->idle_count));
	line_int(out, "grants", (int64_t)h->locks->grant_count);
	line_int(out, "requests", (int64_t)h->locks->request_count);
	line_int(out, "claims", (int64_t)h->locks->directories->claim_count);
}

static void info_session(const struct hosts *h, struct bytes *out)
{
	const struct session *s = &h->ensemble->session;
	int64_t until = session_safe_until(h->ensemble);
	struct bytes text = { 0 };

	line_text(out, "session_state", slice_of(h->env->conf->standalone ? "standalone" : session_state_word(s->state)));
	health_why(h->ensemble, &text);
	line_text(out, "session_why", bytes_view(&text));
	bytes_free(&text);
	if (h->env->conf->standalone)
		return;
	bytes_format(out, "session_id:0x%x\r\n", s->id);
	line_int(out, "asked_timeout_ms", h->env->conf->session_timeout_ns / NS_PER_MS);
	line_int(out, "session_timeout_ms", s->timeout_ns / NS_PER_MS);
	line_int(out, "safe_for_ms", until == INT64_MIN ? 0 : (until - h->env->now_ns) / NS_PER_MS);
	line_int(out, "announced", s->announced);
	line_text(out, "rival", h->ensemble->duplicate.lives ? bytes_view(&h->ensemble->duplicate.text) : SLICE(""));
	line_int(out, "leftover_sessions", (int64_t)formers_open(h->ensemble));
	line_int(out, "leftover_wait_ms", formers_wait_ns(h->ensemble) / NS_PER_MS);
	line_int(out, "stalled", s->proof.stalled);
}

static void info_window(const struct hosts *h, struct bytes *out)
{
	const struct window *w = &h->ensemble->operations.window;

	line_int(out, "open_bytes", w->open[WINDOW_BYTES]);
	line_int(out, "window_bytes", w->size[WINDOW_BYTES]);
	line_int(out, "window_reads", w->size[WINDOW_READS]);
	line_int(out, "window_writes", w->size[WINDOW_WRITES]);
	line_int(out, "rate_bytes_per_second",
		 w->size[WINDOW_BYTES] * 1000 * NS_PER_MS / window_span_ns(w, h->ensemble->session.timeout_ns));
	line_int(out, "locks_waiting_to_send", (int64_t)h->locks->directories->turns.waiting);
}

static void info_zookeeper(const struct hosts *h, struct bytes *out)
{
	const struct session *s = &h->ensemble->session;

	if (h->env->conf->standalone)
		return;
	line_text(out, "zookeeper_state", slice_of(health_word(h->ensemble)));
	line_int(out, "connected", s->connected);
	line_text(out, "server", s->connected ? bytes_view(&s->server) : SLICE(""));
	line_int(out, "disconnected_ms", s->connected ? 0 : (h->env->now_ns - s->silent_ns) / NS_PER_MS);
	line_text(out, "trouble", bytes_view(&h->ensemble->health.sentence));
	line_int(out, "trouble_age_ms",
		 h->ensemble->health.trouble == TROUBLE_NONE ? 0
							  : (h->env->now_ns - h->ensemble->health.at_ns) / NS_PER_MS);
	line_text(out, "root", slice_of(h->env->conf->root));
	line_int(out, "operations", (int64_t)(h->ensemble->operations.end - h->ensemble->operations.first));
	info_window(h, out);
	line_int(out, "session_path_bytes", (int64_t)h->ensemble->budget.path_bytes);
	line_int(out, "watch_path_bytes", (int64_t)h->ensemble->budget.watch_bytes);
	line_int(out, "packet_bytes", h->ensemble->budget.packet_bytes);
	line_int(out, "letters", (int64_t)h->outbox_count);
}

static void info_audit(const struct hosts *h, struct bytes *out)
{
	const struct audit *a = &h->audit;

	line_int(out, "audit_remembered", (int64_t)h->locks->directories->remembered_count);
	line_int(out, "audit_undeleted", (int64_t)h->locks->directories->orphan_count);
	line_int(out, "audit_running", a->state != AUDIT_IDLE);
	line_int(out, "audit_looked_at", a->state == AUDIT_IDLE ? 0 : a->counts.directories);
	line_int(out, "audit_sweeps", (int64_t)h->env->stats.audits_total);
	line_int(out, "audit_relisted", (int64_t)h->env->stats.relisted_total);
	line_int(out, "audit_strays", (int64_t)h->env->stats.strays_total);
	line_int(out, "audit_adopted", (int64_t)h->env->stats.adopted_total);
	line_int(out, "audit_vanished", (int64_t)h->env->stats.vanished_total);
}

static void info_limits(const struct hosts *h, struct bytes *out)
{
	const struct broker_limits *l = &h->env->conf->limits;

	line_int(out, "limit_clients", (int64_t)l->clients);
	line_int(out, "limit_clients_per_uid", (int64_t)l->clients_per_uid);
	line_int(out, "limit_locks", (int64_t)l->locks);
	line_int(out, "limit_requests_per_lock", (int64_t)l->requests_per_lock);
	line_int(out, "limit_requests_per_client", (int64_t)l->requests_per_client);
	line_int(out, "limit_requests_per_uid", (int64_t)l->requests_per_uid);
	line_int(out, "limit_grants_per_client", (int64_t)l->grants_per_client);
	line_int(out, "limit_grants_per_uid", (int64_t)l->grants_per_uid);
	line_int(out, "limit_events_per_client", (int64_t)l->events_per_client);
	line_int(out, "limit_request_bytes", (int64_t)l->request_bytes);
	line_int(out, "limit_request_args", (int64_t)l->request_args);
	line_int(out, "limit_output_bytes", (int64_t)l->output_bytes);
	line_int(out, "limit_session_path_bytes", (int64_t)budget_max(&h->ensemble->budget));
	line_int(out, "configured_session_path_bytes", (int64_t)l->session_path_bytes);
}

static void info_stats(const struct hosts *h, struct bytes *out)
{
#define X(name, text) line_int(out, #name, (int64_t)h->env->stats.name);
	BROKER_STATS(X)
#undef X
}

static const struct {
	const char *name, *title;
	void (*write)(const struct hosts *h, struct bytes *out);
} sections[] = {
	{ "server", "# Server\r\n", info_server },
	{ "clients", "# Clients\r\n", info_clients_section },
	{ "locks", "# Locks\r\n", info_locks_section },
	{ "session", "# Session\r\n", info_session },
	{ "zookeeper", "# ZooKeeper\r\n", info_zookeeper },
	{ "audit", "# Audit\r\n", info_audit },
	{ "limits", "# Limits\r\n", info_limits },
	{ "stats", "# Stats\r\n", info_stats },
};

static bool is_asked(const char *name, size_t count, const struct slice *asked)
{
	for (size_t i = 0; i < count; i++)
		if (slice_is(asked[i], name) || slice_is(asked[i], "all") || slice_is(asked[i], "default") ||
		    slice_is(asked[i], "everything"))
			return true;
	return count == 0;
}

bool info_knows(struct slice section)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		if (is_asked(sections[i].name, 1, &section))
			return true;
	return false;
}

void info_write(struct hosts *h, struct bytes *out, size_t count, const struct slice *asked)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (!is_asked(sections[i].name, count, asked))
			continue;
		if (out->len)
			bytes_text(out, "\r\n");
		bytes_text(out, sections[i].title);
		sections[i].write(h, out);
	}
}

/* ---- lists ---- */

static void write_lock(struct client *c, const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	struct bytes *out = reply_out(c);

	resp_map(out, 5, c->version);
	reply_pairs(out, "name", bytes_view(&lock->name), "state", lock_state_word(lock), "holders", lock->grant_count,
		    "waiters", lock->request_count, "token", g ? g->token : 0);
}

static int by_name(const void *a, const void *b)
{
	const struct bytes *x = &(*(const struct lock *const *)a)->name, *y = &(*(const struct lock *const *)b)->name;
	int order = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

void info_locks(struct client *c, const struct slice *pattern)
{
	const struct lock **shown = mem_new((c->locks->names.count + 1) * sizeof(*shown)), *lock;
	size_t begin = reply_begin(c), count = 0, work = 0, bytes_max = c->locks->env->conf->limits.output_bytes;
	/* Once there is more than an answer can hold, the search, the sorting and the writing stop. */
	size_t most = bytes_max / LOCK_BYTES_MIN;

	TAILQ_FOREACH(lock, &c->locks->used, link) {
		if (work > MATCH_STEPS_MAX || count > most)
			break;
		if (!pattern || name_matches(*pattern, bytes_view(&lock->name), &work))
			shown[count++] = lock;
	}
	if (work > MATCH_STEPS_MAX) {
		mem_free(shown);
		reply_error(c, ERROR_LIMIT,
			    "matching that pattern with all locks takes more than 10000000 steps: use a simpler one");
		_Static_assert(MATCH_STEPS_MAX == 10000000, "as it is said");
		return;
	}
	if (count <= most)
		qsort(shown, count, sizeof(*shown), by_name);
	resp_array(reply_out(c), count);
	for (size_t i = 0; i < count && reply_out(c)->len - begin <= bytes_max; i++)
		write_lock(c, shown[i]);
	reply_end(c, begin);
	mem_free(shown);
}

static void write_client(struct bytes *out, const struct client *c)
{
	bytes_format(out, "id=%d addr=unix name=%s pid=%d uid=%d cmd=", c->id, bytes_view(&c->name), c->pid, c->uid);
	if (c->last_command != COMMAND_COUNT)
		args_command_word(out, c->last_command);
	bytes_format(out, " comm=%s resp=%d held=%d waiting=", bytes_view(&c->comm), c->version, c->grant_count);
	if (c->request)
		name_encode(bytes_view(&c->request->lock->name), out);
	bytes_format(out, " queued=%d age=%d lib-name=%s lib-ver=%s owner=%s\n", c->request_count - (c->request != NULL),
		     (c->locks->env->now_ns - c->connected_ns) / (1000 * NS_PER_MS), bytes_view(&c->lib_name),
		     bytes_view(&c->lib_version), c->group ? bytes_view(&c->group->name) : SLICE(""));
}

void info_clients(struct client *c)
{
	const struct client *other;
	struct bytes text = { 0 };
	size_t begin = reply_begin(c);

	TAILQ_FOREACH(other, &c->locks->clients, link)
		if (text.len <= c->locks->env->conf->limits.output_bytes)
			write_client(&text, other);
	resp_bulk(reply_out(c), bytes_view(&text));
	reply_end(c, begin);
	bytes_free(&text);
}
