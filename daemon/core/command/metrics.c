/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/metrics.h"

#include <assert.h>

#include "core/command/metrics_table.h"
#include "core/hosts/hosts.h"

static const int64_t NS_PER_MS = 1000000, NS_PER_S = 1000000000;

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

static const char *mode_of(const struct broker_conf *conf)
{
	return conf->standalone ? "standalone" : "zookeeper";
}

static int64_t safe_ns(const struct hosts *h)
{
	int64_t until = session_safe_until(h->ensemble);

	return until == INT64_MIN || until < h->env->now_ns ? 0 : until - h->env->now_ns;
}

static int64_t uptime_ns(const struct hosts *h)
{
	return h->env->now_ns - h->env->started_ns;
}

static int64_t trouble_age_ns(const struct hosts *h)
{
	const struct health *health = &h->ensemble->health;

	return health->trouble == TROUBLE_NONE ? 0 : h->env->now_ns - health->at_ns;
}

static size_t recent_names(const struct hosts *h)
{
	return names_count(h->locks->directories);
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
	write_head(out, "pool_used", "gauge", "How much of what all share is in use.");
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
