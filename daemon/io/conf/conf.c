/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/conf/conf_access.h"
#include "io/conf/conf_section.h"
#include "io/conf/conf_value.h"

/* The field of a key may have any type that conf_value_set_number() knows. */
#define IN(type, field) offsetof(type, field), sizeof(((type *)0)->field)
#define FIELD(field) IN(struct conf, field)
#define NUMBER(section, name, field, initial, min, max, reloads, why) \
	{ \
		section, name, CONF_NUMBER, FIELD(field), 1, initial, min, max, reloads, why \
	}
#define MS(section, field, initial, min, max, reloads, why) \
	{ \
		section, #field "_ms", CONF_NUMBER, FIELD(broker.field##_ns), CLOCK_NS_PER_MS, initial, min, max, \
			reloads, why \
	}
#define LIMIT(field, initial, min, max, why) \
	NUMBER("limits", #field, broker.limits.field, initial, min, max, RELOAD, why)
#define YES(section, name, field, initial, reloads, why) \
	{ \
		section, name, CONF_YES, FIELD(field), 1, initial, 0, 1, reloads, why \
	}
#define TEXT(section, name, field, type, initial, reloads, why) \
	{ \
		section, name, type, FIELD(field), 0, initial, 0, 0, reloads, why \
	}

/* What needs a restart, others were told at the start: the service manager, the servers. */
enum { RESTART, RELOAD };

static const struct conf_key keys[] = {
	TEXT("daemon", "socket", socket, CONF_PATH, "/run/lockbroker/lockbroker.sock", RESTART,
	     "The Unix-domain socket to which local processes connect."),
	{ "daemon", "socket_mode", CONF_OCTAL, FIELD(socket_mode), 1, "0660", 0, 0777, RESTART,
	  "The permissions of the socket, octal: they say who may connect." },
	TEXT("daemon", "socket_group", socket_group, CONF_GROUP, "", RESTART,
	     "The group of the socket, a name or a number; empty: lockbroker if there is one, else the daemon's group."),
	TEXT("daemon", "operator_socket", operator_socket, CONF_FILE, "", RESTART,
	     "The socket for operators, whose commands are carried out there only; empty: operator.sock in rundir."),
	TEXT("daemon", "operator_group", operator_group, CONF_GROUP, "", RESTART,
	     "The group whose members are operators, a name or a number; empty: only root and the daemon's own user are."),
	TEXT("daemon", "rundir", rundir, CONF_PATH, "/run/lockbroker", RESTART,
	     "The directory of the daemon's pid file and session page; each daemon needs its own."),
	TEXT("daemon", "statedir", statedir, CONF_PATH, "/var/lib/lockbroker", RESTART,
	     "The directory in which a standalone daemon keeps its token counter; it must survive restarts of the host."),
	{ "daemon", "log_level", CONF_LEVEL, FIELD(broker.log_level), 1, "info", 0, 0, RELOAD,
	  "The least severe level that is logged: error, warning, info or debug." },
	MS("daemon", stop_timeout, "10000", 0, 3600000, RELOAD,
	   "How long holders may take to release their locks after SIGTERM."),
	YES("daemon", "keeper", keeper, "1", RESTART,
	    "1: a process of its own keeps the connections while the daemon crashes and starts again; 0: no such process."),
	YES("daemon", "core", core, "0", RESTART,
	    "1: a crash may leave a core dump, and debuggers of the daemon's user may attach; 0: neither, it has secrets."),

	{ "log", "grants", CONF_AUTO, FIELD(log_grants), 1, "auto", 0, CONF_AUTO_AUTO, RELOAD,
	  "1: log how each grant ends, at level info; 0: only at level debug; auto: 1 if the journal gets the log." },
	NUMBER("log", "grants_mb_per_day", grants_mb_per_day, "50", 1, 100000, RELOAD,
	       "Megabytes of the journal that lines of grants and waits may take in a day; further lines are summed up."),
	MS("log", long_wait, "60000", 0, 86400000, RELOAD,
	   "A client that waits longer than this for a lock is logged, with the holder; 0: no wait is logged."),
	NUMBER("log", "recorder_bytes", ledger_file_bytes, "262144", 0, 67108864, RESTART,
	       "The memory of the flight recorder, for the latest events (`lockbroker log`); 0: there is none."),

	TEXT("zookeeper", "servers", servers, CONF_SERVERS, "127.0.0.1:2181", RELOAD,
	     "The ensemble: host:port, separated by commas; IPv6 addresses in brackets."),
	TEXT("zookeeper", "root", broker.root, CONF_ROOT, "/lockbroker", RESTART,
	     "The znode below which all locks are; it must be the same on every host."),
	MS("zookeeper", session_timeout, "15000", 100, 3600000, RESTART,
	   "How long ZooKeeper waits for a silent host before others get its locks; at least 5 ticks."),
	MS("zookeeper", tick, "2000", 10, 600000, RESTART, "The tickTime of the servers."),
	TEXT("zookeeper", "host", broker.host, CONF_HOST, "", RESTART,
	     "The name of this host among the hosts; empty: its host name."),
	TEXT("zookeeper", "auth_file", auth_file, CONF_FILE, "", RESTART,
	     "A file with user:password (digest) that nobody else may read; only that user may then use the daemon's znodes."),

	MS("locks", linger, "100", 0, 60000, RELOAD,
	   "How long an idle lock that no other host wants stays with this host, which saves round trips; 0: off."),
	NUMBER("locks", "handoff_max", broker.handoff_max, "64", 0, 1000000, RELOAD,
	       "How often a released lock is handed on inside this host while another host waits; 0: never."),
	MS("locks", handoff, "100", 0, 60000, RELOAD,
	   "How long a lock may stay on this host while another host waits for it."),
	MS("locks", try, "100", 0, 1000, RELOAD,
	   "How long a try waits for an idle lock of another host, unless that lock is known to be held; 0: not at all."),
	MS("locks", grant_min, "1000", 0, 600000, RELOAD,
	   "A lock is granted only if it is proven safe for longer than this; under a third of the session timeout."),
	YES("locks", "deadlock_detection", broker.deadlock_detection, "1", RELOAD,
	    "1: refuse a request that would deadlock with other clients of this host; 0: off."),
	YES("locks", "delegation", broker.delegation, "1", RELOAD,
	    "1: a lock that nobody else wants stays with a process that has asked for delegation (DELEGATE); 0: off."),

	/* Totals of which one user has at most 75 % of 98 %: 9,000 connections, 100,000 locks, 20,000 requests. */
	LIMIT(user_share, "75", 1, 100,
	      "How much of the unused part of each limit one user may take, in percent; 100: all of it."),
	TEXT("limits", "by_unit", by_unit, CONF_USERS, "", RELOAD,
	     "Users, separated by commas, each of whose systemd units has a share of its own; root's always have."),
	LIMIT(clients, "12500", 1, 1000000, "The maximum number of connections."),
	LIMIT(locks, "140000", 1, 10000000, "The maximum number of names of locks that are held or waited for."),
	LIMIT(requests, "28000", 1, 10000000, "The maximum number of waiting requests."),
	LIMIT(grants, "140000", 1, 10000000,
	      "The maximum number of locks held or waited for; each client counts that shares one."),
	LIMIT(observers, "28000", 1, 10000000, "The maximum number of observers of elections."),
	LIMIT(memory_bytes, "134217728", 65536, 17179869184,
	      "The maximum bytes of events that are not fetched, and of names that an MLOCK waits for."),
	LIMIT(new_names, "4096", 1, 10000000,
	      "The maximum number of names that were new to ZooKeeper of late: their directories stay there for a while."),
	LIMIT(new_names_per_s, "50", 0, 1000000,
	      "How many new names a second this host may create in the long run; 0: no limit."),
	LIMIT(lasting_directories, "140000", 1, 10000000,
	      "The maximum number of directories of flavour kazoo that this host makes and nobody removes."),
	LIMIT(requests_per_lock, "10000", 1, 1000000, "The maximum number of requests that wait for one lock."),
	LIMIT(requests_per_client, "1000", 1, 1000000, "The maximum number of waiting requests of one connection."),
	LIMIT(grants_per_client, "10000", 1, 1000000,
	      "The maximum number of locks that one connection holds or waits for."),
	LIMIT(events_per_client, "1024", 1, 1000000,
	      "The maximum number of events kept for a connection that does not fetch them; with more, it is closed."),
	LIMIT(request_bytes, "65536", 1024, 16777216, "The maximum size of a request, in bytes."),
	LIMIT(request_args, "1024", 8, 1000000, "The maximum number of words in a request."),
	LIMIT(output_bytes, "1048576", 4096, 1073741824,
	      "The maximum number of bytes kept for a connection that does not read its replies."),
	NUMBER("limits", "session_path_bytes", broker.limits.session_path_bytes, "900000", 1000, 1000000, RESTART,
	       "The maximum bytes of all znode paths of this host's session, and of watched ones; ZooKeeper fails at 1 MB."),
	{ 0 },
};

static const struct conf_key prefix_keys[] = {
	{ "prefix", "flavour", CONF_FLAVOUR, IN(struct broker_prefix, flavour), 1, "rw", 0, 0, RESTART,
	  "Whose znode names: rw (Curator's read-write lock), mutex (Curator, go-zookeeper) or kazoo; the same on all hosts." },
	{ "prefix", "path", CONF_ZNODE, IN(struct broker_prefix, path), 0, "", 0, 0, RESTART,
	  "With /app/locks the lock app/orders is the znode /app/locks/orders; empty: below zookeeper.root." },
	{ "prefix", "remove_idle_s", CONF_NUMBER, IN(struct broker_prefix, remove_idle_ns), CLOCK_NS_PER_S, "0", 0,
	  31536000, RESTART,
	  "kazoo: empty directories are removed when idle for so long; 0: never, because living Lock objects need theirs." },
	{ 0 },
};

static_assert(sizeof(keys) / sizeof(keys[0]) <= CONF_KEYS_MAX, "conf.origins is too short");
static_assert(sizeof(prefix_keys) / sizeof(prefix_keys[0]) <= CONF_PREFIX_KEYS_MAX + 1,
	      "conf.prefix_origins are too short");

const struct conf_key *conf_keys(void)
{
	return keys;
}

const struct conf_key *conf_prefix_keys(void)
{
	return prefix_keys;
}

void conf_error_line(const char *error, char line[CONF_SENTENCE_MAX])
{
	size_t len = strcspn(error, "\n"), others = 0;

	for (const char *p = error + len; *p; p++)
		others += *p == '\n';
	snprintf(line, CONF_SENTENCE_MAX, "%.*s", (int)(len < CONF_SENTENCE_MAX - 80 ? len : CONF_SENTENCE_MAX - 80), error);
	len = strlen(line);
	if (others > 0)
		snprintf(line + len, CONF_SENTENCE_MAX - len, " (and %zu more: lockbrokerd --check-config shows all)", others);
}

/* The text after "prefix:"; NULL if it is another section. */
static const char *prefix_of(const char *section)
{
	return strncmp(section, "prefix:", 7) == 0 ? section + 7 : NULL;
}

bool conf_section_find(struct conf *conf, const char *name, struct conf_section *ret)
{
	const char *prefix = prefix_of(name);
	const struct conf_key *key;
	size_t i;

	for (i = 0; prefix && i < conf->broker.prefix_count; i++)
		if (strcmp(conf->broker.prefixes[i].prefix, prefix) == 0) {
			*ret = (struct conf_section){ name, "prefix", prefix_keys, (void *)&conf->broker.prefixes[i],
						      conf->prefix_origins[i] };
			return true;
		}
	for (key = keys; key->name; key++)
		if (strcmp(key->section, name) == 0) {
			*ret = (struct conf_section){ name, name, keys, conf, conf->origins };
			return true;
		}
	return false;
}

const struct conf_key *conf_section_key(const struct conf_section *section, const char *name)
{
	const struct conf_key *key;

	for (key = section->table; key->name; key++)
		if (strcmp(key->section, section->group) == 0 && strcmp(key->name, name) == 0)
			return key;
	return NULL;
}

const char conf_outdated[] = "limits.clients_per_uid, requests_per_uid and grants_per_uid have no effect any longer: "
			     "limits.user_share says how much of each limit one user may use; remove them";

bool conf_section_outdated(struct conf *conf, const struct conf_section *section, const char *name)
{
	static const char *const names[] = { "clients_per_uid", "requests_per_uid", "grants_per_uid" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(section->name, "limits") == 0 && strcmp(name, names[i]) == 0) {
			conf->outdated = true;
			return true;
		}
	return false;
}

int conf_section_set(const struct conf_section *section, const struct conf_key *key, const char *value, const char *where,
		     char error[CONF_ERROR_MAX])
{
	char allowed[CONF_ALLOWED_MAX];
	int64_t number;

	if (!conf_value_parse(key, value, &number)) {
		conf_value_allowed(key, allowed);
		return conf_fail(error, where, "%s.%s = %.200s: must be %s%s", section->name, key->name, value, allowed,
				 conf_section_no_tcp(section, key->name, value));
	}
	if (conf_value_is_number(key))
		conf_value_set_number(key, section->base, number);
	else
		conf_value_set_text(key, section->base, value);
	return 0;
}

static void set_defaults(const struct conf_key *table, void *base)
{
	char error[CONF_ERROR_MAX];
	const struct conf_key *key;
	int rc;

	error[0] = '\0';
	for (key = table; key->name; key++) {
		rc = conf_section_set(&(struct conf_section){ .name = key->section, .base = base }, key, key->initial,
				      "default", error);
		assert(rc == 0);
	}
}

static void free_texts(const struct conf_key *table, void *base)
{
	const struct conf_key *key;

	for (key = table; key->name; key++)
		if (!conf_value_is_number(key))
			conf_value_set_text(key, base, NULL);
}

void conf_init(struct conf *conf)
{
	*conf = (struct conf){ 0 };
	set_defaults(keys, conf);
}

void conf_free(struct conf *conf)
{
	struct broker_prefix *prefixes = (struct broker_prefix *)conf->broker.prefixes;
	size_t i;

	for (i = 0; i < conf->broker.prefix_count; i++) {
		free_texts(prefix_keys, &prefixes[i]);
		free((void *)prefixes[i].prefix);
	}
	for (i = 0; i < conf->file_count; i++)
		free(conf->files[i]);
	mem_free(conf->files);
	mem_free(prefixes);
	mem_free(conf->prefix_origins);
	conf_access_free(conf);
	conf_users_free(conf);
	free_texts(keys, conf);
	*conf = (struct conf){ 0 };
}

int conf_section_open(struct conf *conf, const char *name, struct conf_section *ret, const char *where,
		      char error[CONF_ERROR_MAX])
{
	const char *prefix = prefix_of(name);
	char allowed[CONF_ALLOWED_MAX];
	struct broker_conf *b = &conf->broker;
	struct broker_prefix *prefixes;
	bool found;

	if (conf_section_find(conf, name, ret) || conf_access_is(name))
		return 0;
	if (!prefix)
		return conf_fail(error, where, "[%.200s]: unknown section", name);
	if (!conf_value_is_prefix(prefix)) {
		conf_value_prefix_allowed(allowed);
		return conf_fail(error, where, "[%.200s]: the prefix must be %s", name, allowed);
	}
	if (b->prefix_count == CONF_PREFIXES_MAX)
		return conf_fail(error, where, "[%s]: more than %d prefixes", name, CONF_PREFIXES_MAX);
	conf->prefix_origins = mem_resize(conf->prefix_origins, (b->prefix_count + 1) * sizeof(*conf->prefix_origins));
	memset(conf->prefix_origins[b->prefix_count], 0, sizeof(*conf->prefix_origins));
	b->prefixes = prefixes = mem_resize((void *)b->prefixes, (b->prefix_count + 1) * sizeof(*prefixes));
	prefixes[b->prefix_count] = (struct broker_prefix){ .prefix = mem_text(prefix) };
	set_defaults(prefix_keys, &prefixes[b->prefix_count++]);
	found = conf_section_find(conf, name, ret);
	assert(found);
	return 0;
}

static int override(struct conf *conf, const char *text, const char *name_of_section, const char *name, char *error)
{
	const struct conf_key *key;
	struct conf_section section;
	int rc;

	if (conf_access_is(name_of_section))
		return conf->kept ? 0 : conf_access_set(conf, name, strchr(text, '=') + 1, "-o", error);
	rc = conf_section_open(conf, name_of_section, &section, "-o", error);
	if (rc < 0)
		return rc;
	key = conf_section_key(&section, name);
	if (!key && conf_section_outdated(conf, &section, name))
		return 0;
	if (!key)
		return conf_fail(error, "-o", "%.200s: unknown key %s.%.200s%s", text, section.name, name,
				 conf_section_no_tcp(&section, name, ""));
	section.origins[key - section.table] = (struct conf_origin){ 0 };
	return conf_section_set(&section, key, strchr(text, '=') + 1, "-o", error);
}

int conf_override(struct conf *conf, const char *text, char error[CONF_ERROR_MAX])
{
	const char *equals = strchr(text, '='), *dot;
	char *section, *name;
	int rc;

	dot = equals ? memrchr(text, '.', (size_t)(equals - text)) : NULL;
	if (!dot)
		return conf_fail(error, "-o", "%.200s: must be SECTION.KEY=VALUE", text);
	section = mem_text_part(text, (size_t)(dot - text));
	name = mem_text_part(dot + 1, (size_t)(equals - dot - 1));
	rc = override(conf, text, section, name, error);
	free(section);
	free(name);
	return rc;
}

static int fill_host(struct conf *conf, char *error)
{
	char name[HOST_NAME_MAX + 1] = "";
	struct conf_section section;
	bool found;
	int rc;

	if (conf->broker.host[0])
		return 0;
	rc = gethostname(name, sizeof(name) - 1);
	if (rc < 0 || !name[0])
		return conf_fail(error, "zookeeper.host", "this machine has no host name, so the key must be set");
	found = conf_section_find(conf, "zookeeper", &section);
	assert(found);
	return conf_section_set(&section, conf_section_key(&section, "host"), name,
				"host name of this machine (set the key instead)", error);
}

/* Whether the paths are equal, or one is inside the other. */
static bool overlap(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b), len = a_len < b_len ? a_len : b_len;

	return strncmp(a, b, len) == 0 && (a_len == b_len || (a_len > len ? a : b)[len] == '/');
}

/* What is checked, and whether its sentences may name the lines that have set the keys. */
struct checking {
	struct conf *conf;
	bool located;
	char *error;
	char where[CONF_WHERE_MAX];
};

const char *conf_section_where(struct conf *conf, const char *name_of_section, const char *name, bool located,
			       char text[CONF_WHERE_MAX])
{
	const struct conf_origin *origin;
	struct conf_section section;
	bool found = conf_section_find(conf, name_of_section, &section);

	assert(found);
	origin = &section.origins[conf_section_key(&section, name) - section.table];
	if (located && origin->line)
		snprintf(text, CONF_WHERE_MAX, "%s:%d: %s.%s", conf->files[origin->file], origin->line, name_of_section, name);
	else
		snprintf(text, CONF_WHERE_MAX, "%s.%s", name_of_section, name);
	return text;
}

static const char *where(struct checking *c, const char *name_of_section, const char *name)
{
	return conf_section_where(c->conf, name_of_section, name, c->located, c->where);
}

static int check_path(struct checking *c, const struct broker_prefix *p)
{
	char section[sizeof("prefix:") + CONF_PREFIX_BYTES_MAX];
	const struct broker_prefix *other;

	snprintf(section, sizeof(section), "prefix:%s", p->prefix);
	if (overlap(p->path, c->conf->broker.root))
		return conf_fail(c->error, where(c, section, "path"),
				 "%s must be neither inside nor around zookeeper.root = %s", p->path,
				 c->conf->broker.root);
	for (other = c->conf->broker.prefixes; other < p; other++)
		if (other->path[0] && overlap(p->path, other->path))
			return conf_fail(c->error, where(c, section, "path"),
					 "%s must be neither inside nor around prefix:%s.path = %s", p->path,
					 other->prefix, other->path);
	return 0;
}

static int check(struct checking *c, bool standalone)
{
	const struct broker_conf *b = &c->conf->broker;
	int rc = 0;

	if (standalone)
		return 0;
	if (!c->conf->servers[0])
		rc = conf_fail(c->error, where(c, "zookeeper", "servers"),
			       "must be set, unless the daemon runs with --standalone");
	if (b->session_timeout_ns < 5 * b->tick_ns)
		rc = conf_fail(c->error, where(c, "zookeeper", "session_timeout_ms"),
			       "%" PRId64 " is less than 5 ticks of zookeeper.tick_ms = %" PRId64,
			       b->session_timeout_ns / CLOCK_NS_PER_MS, b->tick_ns / CLOCK_NS_PER_MS);
	if (b->grant_min_ns * 3 >= b->session_timeout_ns)
		rc = conf_fail(c->error, where(c, "locks", "grant_min_ms"),
			       "%" PRId64 " is not less than a third of zookeeper.session_timeout_ms = %" PRId64,
			       b->grant_min_ns / CLOCK_NS_PER_MS, b->session_timeout_ns / CLOCK_NS_PER_MS);
	for (size_t i = 0; i < b->prefix_count; i++)
		if (b->prefixes[i].path[0] && check_path(c, &b->prefixes[i]) < 0)
			rc = -EINVAL;
	return rc;
}

int conf_check(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX])
{
	return check(&(struct checking){ .conf = conf, .error = error }, standalone);
}

int conf_finish(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX])
{
	int rc = fill_host(conf, error), checked;

	checked = check(&(struct checking){ .conf = conf, .located = true, .error = error }, standalone);
	return rc < 0 ? rc : checked;
}

static const char *restart_mark(const struct conf_key *key)
{
	return key->reloads ? "" : " [restart]";
}

static void print_key(const struct conf_key *key, const void *base, FILE *out)
{
	fprintf(out, "# %s%s\n%s =%s", key->why, restart_mark(key), key->name,
		conf_value_is_number(key) || (*conf_value_text(key, base))[0] ? " " : "");
	conf_value_print(key, base, out);
	fputc('\n', out);
}

static void print_prefixes(const struct conf *conf, FILE *out)
{
	const struct conf_key *key;
	size_t i;

	fprintf(out,
		"\n# Locks whose names begin with a prefix may be shared with other software. The longest prefix that matches "
		"counts.\n"
		"# One section for each prefix, at most %d:\n",
		CONF_PREFIXES_MAX);
	for (i = 0; i < conf->broker.prefix_count; i++) {
		fprintf(out, "%s[prefix:%s]\n", i > 0 ? "\n" : "", conf->broker.prefixes[i].prefix);
		for (key = prefix_keys; key->name; key++)
			print_key(key, &conf->broker.prefixes[i], out);
	}
	if (conf->broker.prefix_count > 0)
		return;
	fputs("#[prefix:app/]\n", out);
	for (key = prefix_keys; key->name; key++)
		fprintf(out, "# %s%s\n#%s =%s%s\n", key->why, restart_mark(key), key->name, *key->initial ? " " : "",
			key->initial);
}

static void print_sections(const struct conf *conf, FILE *out)
{
	const struct conf_key *key;
	const char *section = NULL;

	fputs("# lockbrokerd: every key with its default. An unknown key or a bad value is an error.\n"
	      "# A reload changes all keys but those with [restart].\n",
	      out);
	for (key = keys; key->name; key++) {
		if (!section || strcmp(section, key->section) != 0)
			fprintf(out, "\n[%s]\n", key->section);
		section = key->section;
		print_key(key, conf, out);
	}
	print_prefixes(conf, out);
}

void conf_print(const struct conf *conf, FILE *out)
{
	print_sections(conf, out);
	conf_access_print(conf, out);
}

void conf_keep(const struct conf *conf, FILE *out)
{
	print_sections(conf, out);
	conf_users_keep(conf, out);
	conf_access_keep(conf, out);
}
