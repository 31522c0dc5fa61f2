/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/metrics.h"

#include <assert.h>

#include "core/hosts/hosts.h"

enum section { SERVER, CLIENTS, LOCKS, SESSION, ZOOKEEPER, AUDIT, LIMITS, STATS, SECTIONS };
enum when { ALWAYS, ZK, OPERATORS }; /* with ZooKeeper; and that for operators */
enum type { GAUGE, COUNTER };
enum unit { ONE, BYTES, SECONDS, MS };

static const struct {
	const char *name, *title;
} sections[SECTIONS] = {
	[SERVER] = { "server", "# Server\r\n" },
	[CLIENTS] = { "clients", "# Clients\r\n" },
	[LOCKS] = { "locks", "# Locks\r\n" },
	[SESSION] = { "session", "# Session\r\n" },
	[ZOOKEEPER] = { "zookeeper", "# ZooKeeper\r\n" },
	[AUDIT] = { "audit", "# Audit\r\n" },
	[LIMITS] = { "limits", "# Limits\r\n" },
	[STATS] = { "stats", "# Stats\r\n" },
};

/* ---- the table ---- */

/*
 * What INFO shows, in its order. A NUMBER is a metric as well (its name stands behind "lockbroker_"), a TEXT a statement
 * that writes to `out`. Values in SECONDS and MS are nanoseconds: METRICS shows seconds, INFO whole seconds or milliseconds.
 * Counters and histograms are the lists of stats.h.
 */

/* The limits that INFO shows, in its order: the last rows. */
#define LIMIT_ROWS(LINE) \
	LINE(LIMITS, ALWAYS, limit_clients, ONE, l->clients) LINE(LIMITS, ALWAYS, limit_user_share, ONE, l->user_share) \
	LINE(LIMITS, ALWAYS, limit_locks, ONE, l->locks) \
	LINE(LIMITS, ALWAYS, limit_requests_per_lock, ONE, l->requests_per_lock) \
	LINE(LIMITS, ALWAYS, limit_requests_per_client, ONE, l->requests_per_client) \
	LINE(LIMITS, ALWAYS, limit_requests, ONE, l->requests) \
	LINE(LIMITS, ALWAYS, limit_grants_per_client, ONE, l->grants_per_client) \
	LINE(LIMITS, ALWAYS, limit_grants, ONE, l->grants) \
	LINE(LIMITS, ALWAYS, limit_events_per_client, ONE, l->events_per_client) \
	LINE(LIMITS, ALWAYS, limit_request_bytes, BYTES, l->request_bytes) \
	LINE(LIMITS, ALWAYS, limit_request_args, ONE, l->request_args) \
	LINE(LIMITS, ALWAYS, limit_output_bytes, BYTES, l->output_bytes) \
	LINE(LIMITS, ALWAYS, limit_session_path_bytes, BYTES, budget_max(&zk->budget)) \
	LINE(LIMITS, ALWAYS, configured_session_path_bytes, BYTES, l->session_path_bytes)

/* Clients read the first two before they send anything else. */
#define METRIC_ROWS(NUMBER, LINE, TEXT) \
	TEXT(SERVER, ALWAYS, redis_version, bytes_text(out, "7.0.0")) \
	TEXT(SERVER, ALWAYS, redis_mode, bytes_text(out, "standalone")) \
	TEXT(SERVER, ALWAYS, lockbroker_version, bytes_text(out, conf->version)) \
	TEXT(SERVER, ALWAYS, mode, bytes_text(out, mode_of(conf))) TEXT(SERVER, ALWAYS, host, bytes_text(out, conf->host)) \
	LINE(SERVER, ALWAYS, process_id, ONE, conf->pid) \
	LINE(SERVER, ALWAYS, uptime_in_seconds, SECONDS, env->now_ns - env->started_ns) \
	NUMBER(SERVER, ALWAYS, started, conf->started_s, "start_time_seconds", GAUGE, ONE, \
	       "When this process began, in seconds since 1970.") \
	NUMBER(SERVER, ALWAYS, counted_since, stats->since_s, "counters_start_time_seconds", GAUGE, ONE, \
	       "When the counters began at 0, in seconds since 1970: they go on over a hand-over, and not over a kill.") \
	LINE(SERVER, ALWAYS, loading, ONE, 0) \
	NUMBER(SERVER, ALWAYS, stopping, env->stopping, "stopping", GAUGE, ONE, "1: the daemon is stopping.") \
	NUMBER(SERVER, ALWAYS, draining, env->draining, "draining", GAUGE, ONE, "1: drained: it grants nothing.") \
	NUMBER(SERVER, ALWAYS, files_lost, conf->files_lost ? *conf->files_lost : 0, "files_lost", GAUGE, ONE, \
	       "Files and sockets of the daemon that somebody has removed, and that it cannot make again.") \
	NUMBER(CLIENTS, ALWAYS, connected_clients, locks_conns(h->locks), "connected_clients", GAUGE, ONE, "Connections.") \
	NUMBER(CLIENTS, ALWAYS, blocked_clients, h->locks->blocked_count, "blocked_clients", GAUGE, ONE, \
	       "Connections whose request waits for a lock.") \
	NUMBER(CLIENTS, ALWAYS, delegation_pages, h->locks->page_count, "delegation_pages", GAUGE, ONE, \
	       "Connections that have a page by which locks are delegated.") \
	NUMBER(CLIENTS, ALWAYS, users, h->locks->users.count, "users", GAUGE, ONE, "Users that have a connection.") \
	NUMBER(LOCKS, ALWAYS, locks, h->locks->names.count - h->locks->idle_count, "locks", GAUGE, ONE, \
	       "Locks that this host holds or waits for.") \
	NUMBER(LOCKS, ALWAYS, grants, h->locks->grant_count, "grants", GAUGE, ONE, \
	       "Grants, and losses that their clients have not been notified of.") \
	NUMBER(LOCKS, ALWAYS, delegations, h->locks->delegated_count, "delegations", GAUGE, ONE, \
	       "Grants that are delegated, whether their clients hold them or not.") \
	NUMBER(LOCKS, ALWAYS, requests, h->locks->request_count, "waiting_requests", GAUGE, ONE, "Requests that wait.") \
	NUMBER(LOCKS, ALWAYS, longest_wait_ms, locks_longest_wait_ns(h->locks), "longest_wait_seconds", GAUGE, MS, \
	       "For how long the oldest of the waiting requests has waited.") \
	NUMBER(LOCKS, ALWAYS, claims, all->claim_count, "claims", GAUGE, ONE, "Claims of this host.") \
	TEXT(SESSION, ALWAYS, session_state, bytes_text(out, conf->standalone ? "standalone" : session_state_word(s->state))) \
	TEXT(SESSION, ALWAYS, session_why, health_why(zk, out)) \
	TEXT(SESSION, OPERATORS, session_id, bytes_format(out, "0x%x", s->id)) \
	LINE(SESSION, ZK, asked_timeout_ms, MS, conf->session_timeout_ns) \
	NUMBER(SESSION, ZK, session_timeout_ms, s->timeout_ns, "session_timeout_seconds", GAUGE, MS, \
	       "The session's timeout as granted; 0: there is none.") \
	NUMBER(SESSION, ZK, safe_for_ms, safe_ns(h), "session_safe_seconds", GAUGE, MS, \
	       "For how long grants are still proven safe; 0: nothing is proven.") \
	NUMBER(SESSION, ZK, proof_age_ms, proof_age_ns(h), "session_proof_age_seconds", GAUGE, MS, "Age of the proof.") \
	NUMBER(SESSION, ZK, announced, s->announced, "session_announced", GAUGE, ONE, "1: the host's own znode stands.") \
	TEXT(SESSION, ZK, rival, bytes_slice(out, rival(h))) \
	NUMBER(SESSION, ZK, unannounced_ms, env->now_ns - zk->presence.stood_ns, "session_unannounced_seconds", GAUGE, MS, \
	       "For how long the host's own znode has not been seen to stand: more than the timeout is too long.") \
	NUMBER(SESSION, ZK, leftover_sessions, formers_open(zk), "leftover_sessions", GAUGE, ONE, \
	       "Sessions that earlier daemons left or this one gave up, and that have not ended yet.") \
	NUMBER(SESSION, ZK, leftover_wait_ms, formers_wait_ns(zk), "leftover_wait_seconds", GAUGE, MS, \
	       "Time until the last of them may be ended even if a holder lives.") \
	NUMBER(SESSION, ZK, stalled, s->proof.stalled, "stalled", GAUGE, ONE, \
	       "1: the daemon stood still, and grants nothing until a write is answered.") \
	TEXT(ZOOKEEPER, ZK, zookeeper_state, bytes_text(out, health_word(zk))) \
	NUMBER(ZOOKEEPER, ZK, connected, s->connected, "zookeeper_connected", GAUGE, ONE, \
	       "1: the session has a connection to a server.") \
	TEXT(ZOOKEEPER, ZK, server, bytes_slice(out, s->connected ? bytes_view(&s->server) : SLICE(""))) \
	NUMBER(ZOOKEEPER, ZK, disconnected_ms, s->connected ? 0 : env->now_ns - s->silent_ns, \
	       "zookeeper_disconnected_seconds", GAUGE, MS, "For how long there has been no connection; 0: there is one.") \
	TEXT(ZOOKEEPER, ZK, zookeeper_lacks, lacks(out, zk->lacks)) \
	TEXT(ZOOKEEPER, ZK, trouble, bytes_slice(out, bytes_view(&zk->health.sentence))) \
	LINE(ZOOKEEPER, ZK, trouble_age_ms, MS, trouble_age_ns(h)) \
	NUMBER(ZOOKEEPER, ZK, locks_barred, zk->health.barred.len > 0, "locks_barred", GAUGE, ONE, "1: no lock can be had.") \
	NUMBER(ZOOKEEPER, ZK, names_refused, health_refuses_some(zk), "names_refused", GAUGE, ONE, "1: locks of some cannot.") \
	TEXT(ZOOKEEPER, ZK, refusal, bytes_text(out, refusal(zk))) TEXT(ZOOKEEPER, ZK, root, bytes_text(out, conf->root)) \
	NUMBER(ZOOKEEPER, ZK, operations, zk->operations.end - zk->operations.first, "zookeeper_operations", GAUGE, ONE, \
	       "Operations that ZooKeeper has not answered yet.") \
	NUMBER(ZOOKEEPER, ZK, open_bytes, w->open[WINDOW_BYTES], "zookeeper_open_bytes", GAUGE, BYTES, \
	       "Bytes of their requests and expected answers.") \
	NUMBER(ZOOKEEPER, ZK, window_bytes, w->size[WINDOW_BYTES], "zookeeper_window_bytes", GAUGE, BYTES, \
	       "How many bytes may be open.") \
	LINE(ZOOKEEPER, ZK, window_reads, ONE, w->size[WINDOW_READS]) \
	LINE(ZOOKEEPER, ZK, window_writes, ONE, w->size[WINDOW_WRITES]) \
	LINE(ZOOKEEPER, ZK, rate_bytes_per_second, ONE, rate(h)) \
	NUMBER(ZOOKEEPER, ZK, directories_idle, all->left_count, "directories_idle", GAUGE, ONE, \
	       "Persistent directories of idle locks (flavour kazoo) that this host knows.") \
	NUMBER(ZOOKEEPER, ZK, locks_waiting_to_send, all->turns.waiting, "locks_waiting_to_send", GAUGE, ONE, \
	       "Locks that will ask ZooKeeper something as soon as there is room.") \
	LINE(ZOOKEEPER, ZK, new_names, ONE, names_count(h->locks->directories)) \
	LINE(ZOOKEEPER, ZK, new_names_waiting, ONE, all->names.waiting) \
	LINE(ZOOKEEPER, ZK, lasting_directories, ONE, lasting_count(all)) \
	LINE(ZOOKEEPER, ZK, session_path_bytes, BYTES, zk->env->accounts.pools[POOL_PATHS].used) \
	LINE(ZOOKEEPER, ZK, watch_path_bytes, BYTES, zk->env->accounts.pools[POOL_WATCHES].used) \
	NUMBER(ZOOKEEPER, ZK, packet_bytes, zk->budget.packet_bytes, "zookeeper_packet_bytes", GAUGE, BYTES, \
	       "The largest packet that a server takes, when that is too small for the limits; 0: large enough, or not known.") \
	NUMBER(ZOOKEEPER, ZK, letters, h->outbox_count, "letters", GAUGE, ONE, "Letters to other hosts on their way.") \
	NUMBER(AUDIT, ALWAYS, audit_remembered, all->remembered_count, "audit_remembered", GAUGE, ONE, \
	       "Locks whose directory has to be listed again because a connection was lost.") \
	NUMBER(AUDIT, ALWAYS, audit_undeleted, all->stray_count, "audit_undeleted", GAUGE, ONE, \
	       "Strays that were found and are not deleted yet.") \
	NUMBER(AUDIT, ALWAYS, audit_running, h->audit.state != AUDIT_IDLE, "audit_running", GAUGE, ONE, "1: an audit runs.") \
	LINE(AUDIT, ALWAYS, audit_looked_at, ONE, h->audit.state != AUDIT_IDLE ? h->audit.counts.directories : 0) \
	LINE(AUDIT, ALWAYS, audit_sweeps, ONE, stats->audits_total) \
	LINE(AUDIT, ALWAYS, audit_relisted, ONE, stats->relisted_total) \
	LINE(AUDIT, ALWAYS, audit_strays, ONE, stats->strays_total) \
	LINE(AUDIT, ALWAYS, audit_adopted, ONE, stats->adopted_total) \
	LINE(AUDIT, ALWAYS, audit_vanished, ONE, stats->vanished_total) \
	LIMIT_ROWS(LINE)

static const char *mode_of(const struct broker_conf *conf)
{
	return conf->standalone ? "standalone" : "zookeeper";
}

static int64_t safe_ns(const struct hosts *h)
{
	int64_t until = session_safe_until(h->ensemble);

	return until == INT64_MIN || until < h->env->now_ns ? 0 : until - h->env->now_ns;
}

static int64_t trouble_age_ns(const struct hosts *h)
{
	const struct health *health = &h->ensemble->health;

	return health->trouble == TROUBLE_NONE ? 0 : h->env->now_ns - health->at_ns;
}

static int64_t proof_age_ns(const struct hosts *h)
{
	const struct session *s = &h->ensemble->session;

	return s->proved_ns ? h->env->now_ns - s->proved_ns : 0;
}

static int64_t rate(const struct hosts *h)
{
	const struct window *w = &h->ensemble->operations.window;

	return w->size[WINDOW_BYTES] * NS_PER_S / window_span_ns(w, h->ensemble->session.timeout_ns);
}

static const char *refusal(const struct ensemble *zk)
{
	const char *barred = health_refusal(zk, (struct slice){ 0 });

	return barred ? barred : health_refuses_some(zk) ? zk->health.refused.data : "";
}

static void lacks(struct bytes *out, unsigned int lacking)
{
	size_t begin = out->len;

#define X(name, bit, words) \
	if (lacking & ZK_LACKS_##name) \
		bytes_format(out, "%s%s", out->len > begin ? ", " : "", words);
	ZK_LACKS(X)
#undef X
}

static struct slice rival(const struct hosts *h)
{
	return h->ensemble->presence.lives ? bytes_view(&h->ensemble->presence.other) : SLICE("");
}

/* What a row can name; few name all of it. */
#define SEEN_BY_ROWS \
	const struct env *env __attribute__((unused)) = h->env; \
	const struct stats *stats __attribute__((unused)) = &env->stats; \
	const struct broker_conf *conf __attribute__((unused)) = env->conf; \
	const struct broker_limits *l __attribute__((unused)) = &conf->limits; \
	const struct ensemble *zk __attribute__((unused)) = h->ensemble; \
	const struct session *s __attribute__((unused)) = &zk->session; \
	const struct window *w __attribute__((unused)) = &zk->operations.window; \
	const struct directories *all __attribute__((unused)) = h->locks->directories;

#define NUMBER(section, when, line, value, ...) LINE(section, when, line, ONE, value)
#define LINE(section, when, line, unit, value) \
	static int64_t number_##line(const struct hosts *h) \
	{ \
		SEEN_BY_ROWS \
		return (int64_t)(value); \
	}
#define TEXT(section, when, line, write) \
	static void text_##line(const struct hosts *h, struct bytes *out) \
	{ \
		SEEN_BY_ROWS \
		write; \
	}
METRIC_ROWS(NUMBER, LINE, TEXT)
#undef NUMBER
#undef LINE
#undef TEXT

struct row {
	enum section section;
	enum when when;
	const char *line;
	int64_t (*number)(const struct hosts *h); /* NULL: it is a text */
	void (*text)(const struct hosts *h, struct bytes *out);
	const char *metric; /* NULL: it is none */
	enum type type;
	enum unit unit;
	const char *help;
};

static const struct row rows[] = {
#define NUMBER(section, when, line, value, metric, type, unit, help) \
	{ section, when, #line, number_##line, NULL, metric, type, unit, help },
#define LINE(section, when, line, unit, value) { section, when, #line, number_##line, NULL, NULL, GAUGE, unit, NULL },
#define TEXT(section, when, line, write) { section, when, #line, NULL, text_##line, NULL, GAUGE, ONE, NULL },
	METRIC_ROWS(NUMBER, LINE, TEXT)
#undef NUMBER
#undef LINE
#undef TEXT
};

static bool is_shown(const struct hosts *h, enum when when, bool operators)
{
	switch (when) {
	case ALWAYS:
		return true;
	case ZK:
		return !h->env->conf->standalone;
	case OPERATORS:
		return !h->env->conf->standalone && operators;
	}
	return false;
}

/* ---- INFO ---- */

static int64_t shown_number(const struct hosts *h, const struct row *row)
{
	int64_t value = row->number(h);

	return row->unit == MS ? value / NS_PER_MS : row->unit == SECONDS ? value / NS_PER_S : value;
}

static void write_line(const struct hosts *h, const struct row *row, struct bytes *out)
{
	bytes_format(out, "%s:", row->line);
	if (row->number)
		bytes_int(out, shown_number(h, row));
	else
		row->text(h, out);
	bytes_text(out, "\r\n");
}

static void write_section(const struct hosts *h, enum section section, bool operators, struct bytes *out)
{
	bytes_text(out, sections[section].title);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].section == section && is_shown(h, rows[i].when, operators))
			write_line(h, &rows[i], out);
	if (section != STATS)
		return;
#define X(name, help) bytes_format(out, "%s:%d\r\n", #name, h->env->stats.name);
	BROKER_STATS(X)
#undef X
}

static bool is_asked(const char *name, size_t count, const struct slice *asked)
{
	for (size_t i = 0; i < count; i++)
		if (slice_is(asked[i], name) || slice_is(asked[i], "all") || slice_is(asked[i], "default") ||
		    slice_is(asked[i], "everything"))
			return true;
	return count == 0;
}

bool metrics_info_knows(struct slice section)
{
	for (size_t i = 0; i < SECTIONS; i++)
		if (is_asked(sections[i].name, 1, &section))
			return true;
	return false;
}

void metrics_info(const struct hosts *h, bool operators, struct bytes *out, size_t count, const struct slice *asked)
{
	for (unsigned int i = 0; i < SECTIONS; i++) {
		if (!is_asked(sections[i].name, count, asked))
			continue;
		if (out->len)
			bytes_text(out, "\r\n");
		write_section(h, (enum section)i, operators, out);
	}
}

/* ---- METRICS ---- */

static void write_head(struct bytes *out, const char *name, const char *type, const char *help)
{
	bytes_format(out, "# HELP lockbroker_%s %s\n# TYPE lockbroker_%s %s\n", name, help, name, type);
}

/* Seconds, in decimal notation, to the nanosecond. */
static void write_seconds(struct bytes *out, uint64_t ns)
{
	static const uint64_t per_s = 1000000000;

	bytes_int(out, (int64_t)(ns / per_s));
	if (ns % per_s == 0)
		return;
	bytes_char(out, '.');
	for (uint64_t rest = ns % per_s, digit = per_s / 10; rest; rest %= digit, digit /= 10)
		bytes_char(out, (char)('0' + rest / digit));
}

static void write_metric(const struct hosts *h, const struct row *row, struct bytes *out)
{
	int64_t value = row->number(h);

	write_head(out, row->metric, row->type == COUNTER ? "counter" : "gauge", row->help);
	bytes_format(out, "lockbroker_%s ", row->metric);
	if (row->unit == MS || row->unit == SECONDS)
		write_seconds(out, value > 0 ? (uint64_t)value : 0);
	else
		bytes_int(out, value);
	bytes_char(out, '\n');
}

static void write_counter(struct bytes *out, const char *name, const char *help, uint64_t value)
{
	write_head(out, name, "counter", help);
	bytes_format(out, "lockbroker_%s %d\n", name, value);
}

static void write_states(const struct hosts *h, struct bytes *out)
{
	write_head(out, "session_state", "gauge",
		   "1 for the state of the session with ZooKeeper, 0 for the other ones.");
	for (int state = SESSION_NONE; state <= SESSION_LOST; state++)
		bytes_format(out, "lockbroker_session_state{state=\"%s\"} %d\n",
			     session_state_word((enum session_state)state),
			     h->ensemble->session.state == (enum session_state)state);
}

struct fill {
	const char *name;
	uint64_t used, limit;
};

enum { FILLS_MAX = 3 + 2 * ACCOUNT_POOLS_MAX };

static size_t fill_all(struct fill *fills, const struct accounts *all, const struct pool_words *words)
{
	size_t count = 0;

	for (size_t pool = 0; all && pool < all->pool_count; pool++)
		if (words[pool].metric)
			fills[count++] =
				(struct fill){ words[pool].metric, all->pools[pool].used, all->pools[pool].total };
	return count;
}

/* What can become full: who watches one of them watches all. */
static void write_pools(const struct hosts *h, struct bytes *out)
{
	const struct broker_conf *conf = h->env->conf;
	struct fill pools[FILLS_MAX] = {
		{ "clients", locks_conns(h->locks), conf->limits.clients },
		{ "locks", h->locks->names.count - h->locks->idle_count, conf->limits.locks },
		{ "new_names", names_count(h->locks->directories), conf->limits.new_names },
	};
	size_t count = 3;

	count += fill_all(pools + count, &h->env->accounts, pools_words);
	count += fill_all(pools + count, conf->sockets, conf->sockets_words);
	write_head(out, "pool_used", "gauge", "How much of each shared resource is in use.");
	for (size_t i = 0; i < count; i++)
		bytes_format(out, "lockbroker_pool_used{pool=\"%s\"} %d\n", pools[i].name, pools[i].used);
	write_head(out, "pool_limit", "gauge", "How much of it there is.");
	for (size_t i = 0; i < count; i++)
		bytes_format(out, "lockbroker_pool_limit{pool=\"%s\"} %d\n", pools[i].name, pools[i].limit);
}

static void write_histogram(struct bytes *out, const char *name, const char *help, const struct histogram *of)
{
	uint64_t count = 0;

	bytes_format(out, "# HELP lockbroker_%s_seconds Time %s.\n# TYPE lockbroker_%s_seconds histogram\n", name, help,
		     name);
	for (unsigned int i = 0; i < HISTOGRAM_CLASSES; i++) {
		count += of->counts[i];
		bytes_format(out, "lockbroker_%s_seconds_bucket{le=\"", name);
		if (i < HISTOGRAM_CLASSES - 1)
			write_seconds(out, histogram_bound_ns(i));
		else
			bytes_text(out, "+Inf");
		bytes_format(out, "\"} %d\n", count);
	}
	bytes_format(out, "lockbroker_%s_seconds_sum ", name);
	write_seconds(out, of->sum_ns);
	bytes_format(out, "\nlockbroker_%s_seconds_count %d\n", name, count);
}

void metrics_write(const struct hosts *h, struct bytes *out)
{
	const struct stats *stats = &h->env->stats;
	size_t begin = out->len;

	write_head(out, "up", "gauge", "1: the daemon has answered.");
	bytes_text(out, "lockbroker_up 1\n");
	write_head(out, "build_info", "gauge", "1, with the version of the daemon and how it was started.");
	bytes_format(out, "lockbroker_build_info{version=\"%s\",mode=\"%s\"} 1\n", h->env->conf->version,
		     mode_of(h->env->conf));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].metric && is_shown(h, rows[i].when, false))
			write_metric(h, &rows[i], out);
	if (!h->env->conf->standalone)
		write_states(h, out);
	write_pools(h, out);
#define X(name, help) write_counter(out, #name, help, stats->name);
	BROKER_STATS(X)
#undef X
#define X(name, help) write_histogram(out, #name, help, &stats->name);
	BROKER_HISTOGRAMS(X)
#undef X
	assert(out->len - begin <= METRICS_BYTES_MAX);
}
