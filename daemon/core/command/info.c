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

/* Rows: "key", value, ...; five at most, the values as bytes_format() takes them. */
#define rows(out, ...) rows_values(out, BYTES_ARGUMENTS(__VA_ARGS__))

static void rows_values(struct bytes *out, const struct bytes_value *values, size_t count)
{
	for (size_t i = 0; i < count; i += 2)
		if (values[i + 1].is_number)
			bytes_format(out, "%s:%d\r\n", values[i].text, values[i + 1].number);
		else
			bytes_format(out, "%s:%s\r\n", values[i].text, values[i + 1].text);
}

static void info_server(const struct hosts *h, struct bytes *out)
{
	const struct broker_conf *conf = h->env->conf;

	/* Clients read these two before they send anything else. */
	rows(out, "redis_version", "7.0.0", "redis_mode", "standalone");
	rows(out, "lockbroker_version", conf->version, "mode", conf->standalone ? "standalone" : "zookeeper");
	rows(out, "host", conf->host, "process_id", conf->pid);
	rows(out, "uptime_in_seconds", (h->env->now_ns - h->env->started_ns) / (1000 * NS_PER_MS));
	rows(out, "loading", 0, "stopping", h->env->stopping);
}

static void info_clients_section(const struct hosts *h, struct bytes *out)
{
	rows(out, "connected_clients", h->locks->client_count, "blocked_clients", h->locks->blocked_count);
	rows(out, "users", h->locks->users.count);
}

static void info_locks_section(const struct hosts *h, struct bytes *out)
{
	rows(out, "locks", h->locks->names.count - h->locks->idle_count, "grants", h->locks->grant_count);
	rows(out, "requests", h->locks->request_count, "claims", h->locks->directories->claim_count);
}

static void info_session(const struct hosts *h, struct bytes *out)
{
	const struct broker_conf *conf = h->env->conf;
	const struct session *s = &h->ensemble->session;
	int64_t until = session_safe_until(h->ensemble);
	struct bytes text = { 0 };

	health_why(h->ensemble, &text);
	rows(out, "session_state", conf->standalone ? "standalone" : session_state_word(s->state));
	rows(out, "session_why", bytes_view(&text));
	bytes_free(&text);
	if (conf->standalone)
		return;
	bytes_format(out, "session_id:0x%x\r\n", s->id);
	rows(out, "asked_timeout_ms", conf->session_timeout_ns / NS_PER_MS);
	rows(out, "session_timeout_ms", s->timeout_ns / NS_PER_MS);
	rows(out, "safe_for_ms", until == INT64_MIN ? 0 : (until - h->env->now_ns) / NS_PER_MS);
	rows(out, "announced", s->announced);
	rows(out, "rival", h->ensemble->presence.lives ? bytes_view(&h->ensemble->presence.other) : SLICE(""));
	rows(out, "leftover_sessions", formers_open(h->ensemble));
	rows(out, "leftover_wait_ms", formers_wait_ns(h->ensemble) / NS_PER_MS, "stalled", s->proof.stalled);
}

static void info_window(const struct hosts *h, struct bytes *out)
{
	const struct window *w = &h->ensemble->operations.window;

	rows(out, "open_bytes", w->open[WINDOW_BYTES], "window_bytes", w->size[WINDOW_BYTES]);
	rows(out, "window_reads", w->size[WINDOW_READS], "window_writes", w->size[WINDOW_WRITES]);
	rows(out, "rate_bytes_per_second",
	     w->size[WINDOW_BYTES] * 1000 * NS_PER_MS / window_span_ns(w, h->ensemble->session.timeout_ns));
	rows(out, "locks_waiting_to_send", h->locks->directories->turns.waiting);
}

static void info_zookeeper(const struct hosts *h, struct bytes *out)
{
	const struct session *s = &h->ensemble->session;
	const struct health *health = &h->ensemble->health;
	const struct budget *budget = &h->ensemble->budget;

	if (h->env->conf->standalone)
		return;
	rows(out, "zookeeper_state", health_word(h->ensemble), "connected", s->connected);
	rows(out, "server", s->connected ? bytes_view(&s->server) : SLICE(""));
	rows(out, "disconnected_ms", s->connected ? 0 : (h->env->now_ns - s->silent_ns) / NS_PER_MS);
	rows(out, "trouble", bytes_view(&health->sentence));
	rows(out, "trouble_age_ms",
	     health->trouble == TROUBLE_NONE ? 0 : (h->env->now_ns - health->at_ns) / NS_PER_MS);
	rows(out, "root", h->env->conf->root);
	rows(out, "operations", h->ensemble->operations.end - h->ensemble->operations.first);
	info_window(h, out);
	rows(out, "session_path_bytes", budget->path_bytes, "watch_path_bytes", budget->watch_bytes);
	rows(out, "packet_bytes", budget->packet_bytes, "letters", h->outbox_count);
}

static void info_audit(const struct hosts *h, struct bytes *out)
{
	const struct directories *all = h->locks->directories;
	const struct stats *stats = &h->env->stats;
	bool running = h->audit.state != AUDIT_IDLE;

	rows(out, "audit_remembered", all->remembered_count, "audit_undeleted", all->orphan_count);
	rows(out, "audit_running", running, "audit_looked_at", running ? h->audit.counts.directories : 0);
	rows(out, "audit_sweeps", stats->audits_total, "audit_relisted", stats->relisted_total);
	rows(out, "audit_strays", stats->strays_total, "audit_adopted", stats->adopted_total);
	rows(out, "audit_vanished", stats->vanished_total);
}

static void info_limits(const struct hosts *h, struct bytes *out)
{
	const struct broker_limits *l = &h->env->conf->limits;

	rows(out, "limit_clients", l->clients, "limit_clients_per_uid", l->clients_per_uid, "limit_locks", l->locks);
	rows(out, "limit_requests_per_lock", l->requests_per_lock);
	rows(out, "limit_requests_per_client", l->requests_per_client, "limit_requests_per_uid", l->requests_per_uid);
	rows(out, "limit_grants_per_client", l->grants_per_client, "limit_grants_per_uid", l->grants_per_uid);
	rows(out, "limit_events_per_client", l->events_per_client);
	rows(out, "limit_request_bytes", l->request_bytes, "limit_request_args", l->request_args);
	rows(out, "limit_output_bytes", l->output_bytes);
	rows(out, "limit_session_path_bytes", budget_max(&h->ensemble->budget));
	rows(out, "configured_session_path_bytes", l->session_path_bytes);
}

static void info_stats(const struct hosts *h, struct bytes *out)
{
#define X(name, text) rows(out, #name, h->env->stats.name);
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
	const struct lock *const *x = a, *const *y = b;

	return slice_order(bytes_view(&(*x)->name), bytes_view(&(*y)->name));
}

void info_locks(struct client *c, const struct slice *pattern)
{
	const struct lock **shown = mem_new((c->locks->names.count + 1) * sizeof(*shown)), *lock;
	size_t begin = reply_out(c)->len, count = 0, work = 0, bytes_max = c->locks->env->conf->limits.output_bytes;
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
	reply_end(c);
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

	TAILQ_FOREACH(other, &c->locks->clients, link)
		if (text.len <= c->locks->env->conf->limits.output_bytes)
			write_client(&text, other);
	resp_bulk(reply_out(c), bytes_view(&text));
	reply_end(c);
	bytes_free(&text);
}
