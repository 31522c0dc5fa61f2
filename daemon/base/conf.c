/* SPDX-License-Identifier: Apache-2.0 */
#include "base/conf.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/conf_value.h"
#include "base/mem.h"

#define FIELD(field) offsetof(struct conf, field)
#define NUMBER(section, field, initial, min, max, why) \
	{ \
		section, #field, CONF_NUMBER, FIELD(field), initial, min, max, why, true \
	}
/* Others were told of it at the start: the service manager, the servers. */
#define FIXED(section, field, initial, min, max, why) \
	{ \
		section, #field, CONF_NUMBER, FIELD(field), initial, min, max, why, false \
	}
#define TEXT(section, field, type, initial, why) \
	{ \
		section, #field, type, FIELD(field), initial, 0, 0, why, false \
	}

static const struct conf_key keys[] = {
	TEXT("daemon", socket, CONF_PATH, "/run/lockbroker/lockbroker.sock",
	     "The Unix-domain socket to which local processes connect."),
	{ "daemon", "socket_mode", CONF_OCTAL, FIELD(socket_mode), "0660", 0, 0777,
	  "Who may connect: the permissions of the socket, octal.", false },
	TEXT("daemon", socket_group, CONF_GROUP, "",
	     "The group of the socket, a name or a number; empty: lockbroker if there is one, else the daemon's group."),
	TEXT("daemon", operator_socket, CONF_FILE, "",
	     "The socket for operators, whose commands are carried out there only; empty: operator.sock in rundir."),
	TEXT("daemon", operator_group, CONF_GROUP, "",
	     "The group whose members are operators, a name or a number; empty: only root and the daemon's own user are."),
	TEXT("daemon", rundir, CONF_PATH, "/run/lockbroker",
	     "The directory of the daemon's pid file and session page; each daemon needs its own."),
	TEXT("daemon", statedir, CONF_PATH, "/var/lib/lockbroker",
	     "The directory in which a standalone daemon keeps its token counter; it must survive restarts of the host."),
	{ "daemon", "log_level", CONF_LEVEL, FIELD(log_level), "info", 0, 0, "What is logged: error, warning, info or debug.",
	  true },
	NUMBER("daemon", stop_timeout_ms, "10000", 0, 3600000,
	       "How long holders may take to release their locks after SIGTERM."),
	FIXED("daemon", keeper, "1", 0, 1,
	       "1: a process of its own keeps the connections while the daemon crashes and starts again; 0: there is none."),
	FIXED("daemon", core, "0", 0, 1,
	      "1: a crash may leave a core dump, and debuggers of the daemon's user may attach; 0: neither, it has secrets."),

	{ "log", "grants", CONF_NUMBER, FIELD(log_grants), "0", 0, 1,
	  "1: log each grant, release and loss, at level info; 0: only at level debug.", true },

	TEXT("zookeeper", servers, CONF_SERVERS, "127.0.0.1:2181",
	     "The ensemble: host:port, separated by commas; IPv6 addresses in brackets."),
	TEXT("zookeeper", root, CONF_ROOT, "/lockbroker",
	     "The znode below which all locks are; it must be the same on every host."),
	FIXED("zookeeper", session_timeout_ms, "15000", 100, 3600000,
	       "How long ZooKeeper waits for a silent host before others get its locks; at least 5 ticks."),
	FIXED("zookeeper", tick_ms, "2000", 10, 600000, "The tickTime of the servers."),
	TEXT("zookeeper", host, CONF_HOST, "", "The name of this host among the hosts; empty: its host name."),
	TEXT("zookeeper", auth_file, CONF_FILE, "",
	     "A file with user:password (digest) that nobody else may read; only that user may then use what the daemon makes."),

	NUMBER("locks", linger_ms, "100", 0, 60000,
	       "How long an idle lock that no other host wants stays with this host, which saves round trips; 0: off."),
	NUMBER("locks", handoff_max, "64", 0, 1000000,
	       "How often a released lock is handed on inside this host while another host waits; 0: never."),
	NUMBER("locks", handoff_ms, "100", 0, 60000, "For how long a lock may be handed on like that."),
	NUMBER("locks", try_ms, "100", 0, 1000,
	       "How long a try waits for an idle lock of another host, unless that lock is known to be held; 0: not at all."),
	NUMBER("locks", grant_min_ms, "1000", 0, 600000,
	       "A lock is granted only if it is proven safe for longer than this; under a third of the session timeout."),
	NUMBER("locks", deadlock_detection, "1", 0, 1,
	       "1: refuse a request that would deadlock with other clients of this host; 0: off."),

	NUMBER("limits", clients, "10000", 1, 1000000, "The maximum number of connections."),
	NUMBER("limits", clients_per_uid, "9000", 1, 1000000, "The maximum number of connections of one user."),
	NUMBER("limits", locks, "100000", 1, 10000000, "The maximum number of locks that are held or waited for."),
	NUMBER("limits", requests_per_lock, "10000", 1, 1000000, "The maximum number of requests that wait for one lock."),
	NUMBER("limits", requests_per_client, "1000", 1, 1000000, "The maximum number of waiting requests of one connection."),
	NUMBER("limits", requests_per_uid, "20000", 1, 10000000, "The maximum number of waiting requests of one user."),
	NUMBER("limits", grants_per_client, "10000", 1, 1000000,
	       "The maximum number of locks that one connection holds or waits for."),
	NUMBER("limits", grants_per_uid, "100000", 1, 10000000, "The maximum number of locks that one user holds."),
	NUMBER("limits", events_per_client, "1024", 1, 1000000,
	       "The maximum number of events kept for a connection that does not fetch them; with more, it is closed."),
	NUMBER("limits", request_bytes, "65536", 1024, 16777216, "The maximum size of a request, in bytes."),
	NUMBER("limits", request_args, "1024", 8, 1000000, "The maximum number of words in a request."),
	NUMBER("limits", output_bytes, "1048576", 4096, 1073741824,
	       "The maximum number of bytes kept for a connection that does not read its replies."),
	FIXED("limits", session_path_bytes, "900000", 1000, 1000000,
	       "The maximum bytes of all znode paths of this host's session, and of watched ones; ZooKeeper fails at 1 MB."),
	{ 0 },
};

static const struct conf_key prefix_keys[] = {
	{ "prefix", "flavour", CONF_FLAVOUR, offsetof(struct conf_prefix, flavour), "rw", 0, 0,
	  "Whose znode names: rw (Curator's read-write lock), mutex (Curator, go-zookeeper) or kazoo; the same on all hosts.",
	  false },
	{ "prefix", "path", CONF_ZNODE, offsetof(struct conf_prefix, path), "", 0, 0,
	  "With /app/locks the lock app/orders is the znode /app/locks/orders; empty: below zookeeper.root.", false },
	{ 0 },
};

static_assert(sizeof(keys) / sizeof(keys[0]) <= CONF_KEYS_MAX, "conf.lines is too short");
static_assert(sizeof(prefix_keys) / sizeof(prefix_keys[0]) <= CONF_PREFIX_KEYS_MAX + 1,
	      "conf_prefix.lines is too short");

const struct conf_key *conf_keys(void)
{
	return keys;
}

const struct conf_key *conf_prefix_keys(void)
{
	return prefix_keys;
}

/* Keeps the first error: later ones are often its consequences. */
static int fail(char *error, const char *where, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int fail(char *error, const char *where, const char *format, ...)
{
	va_list args;
	int len;

	len = snprintf(error, CONF_ERROR_MAX, "%s: ", where);
	if (len < 0 || len >= CONF_ERROR_MAX)
		return -EINVAL;
	va_start(args, format);
	vsnprintf(error + len, CONF_ERROR_MAX - (size_t)len, format, args);
	va_end(args);
	return -EINVAL;
}

/* A section that exists, and where its values are. */
struct section {
	const char *name;             /* as it was written */
	const char *group;            /* as its keys name it */
	const struct conf_key *table; /* has its keys, and perhaps others */
	void *base;
	int *lines;
};

/* The text after "prefix:"; NULL if it is another section. */
static const char *prefix_of(const char *section)
{
	return strncmp(section, "prefix:", 7) == 0 ? section + 7 : NULL;
}

static bool find_section(struct conf *conf, const char *name, struct section *ret)
{
	const char *prefix = prefix_of(name);
	const struct conf_key *key;
	size_t i;

	for (i = 0; prefix && i < conf->prefix_count; i++)
		if (strcmp(conf->prefixes[i].prefix, prefix) == 0) {
			*ret = (struct section){ name, "prefix", prefix_keys, &conf->prefixes[i],
						 conf->prefixes[i].lines };
			return true;
		}
	for (key = keys; key->name; key++)
		if (strcmp(key->section, name) == 0) {
			*ret = (struct section){ name, name, keys, conf, conf->lines };
			return true;
		}
	return false;
}

static const struct conf_key *find(const struct section *section, const char *name)
{
	const struct conf_key *key;

	for (key = section->table; key->name; key++)
		if (strcmp(key->section, section->group) == 0 && strcmp(key->name, name) == 0)
			return key;
	return NULL;
}

static int set(const struct section *section, const struct conf_key *key, const char *value, const char *where,
	       char *error)
{
	char allowed[CONF_ALLOWED_MAX];
	int64_t number;
	char **text;

	if (!conf_value_parse(key, value, &number)) {
		conf_value_allowed(key, allowed);
		return fail(error, where, "%s.%s = %.200s: must be %s", section->name, key->name, value, allowed);
	}
	if (conf_value_is_number(key)) {
		*conf_value_number(key, section->base) = number;
		return 0;
	}
	text = conf_value_text(key, section->base);
	free(*text);
	*text = strdup(value);
	if (!*text)
		abort();
	return 0;
}

static void set_defaults(const struct conf_key *table, void *base)
{
	char error[CONF_ERROR_MAX];
	const struct conf_key *key;
	int rc;

	for (key = table; key->name; key++) {
		rc = set(&(struct section){ .name = key->section, .base = base }, key, key->initial, "default", error);
		assert(rc == 0);
	}
}

static void free_texts(const struct conf_key *table, void *base)
{
	const struct conf_key *key;

	for (key = table; key->name; key++)
		if (!conf_value_is_number(key))
			free(*conf_value_text(key, base));
}

void conf_init(struct conf *conf)
{
	*conf = (struct conf){ 0 };
	set_defaults(keys, conf);
}

void conf_free(struct conf *conf)
{
	size_t i;

	for (i = 0; i < conf->prefix_count; i++) {
		free_texts(prefix_keys, &conf->prefixes[i]);
		free(conf->prefixes[i].prefix);
	}
	mem_free(conf->prefixes);
	free_texts(keys, conf);
	*conf = (struct conf){ 0 };
}

/* Makes the section of a new prefix; any other section must be in the table. */
static int open_section(struct conf *conf, const char *name, struct section *ret, const char *where, char *error)
{
	const char *prefix = prefix_of(name);
	char allowed[CONF_ALLOWED_MAX];
	struct conf_prefix *added;
	bool found;

	if (find_section(conf, name, ret))
		return 0;
	if (!prefix)
		return fail(error, where, "[%.200s]: unknown section", name);
	if (!conf_value_is_prefix(prefix)) {
		conf_value_prefix_allowed(allowed);
		return fail(error, where, "[%.200s]: the prefix must be %s", name, allowed);
	}
	if (conf->prefix_count == CONF_PREFIXES_MAX)
		return fail(error, where, "[%s]: more than %d prefixes", name, CONF_PREFIXES_MAX);
	conf->prefixes = mem_resize(conf->prefixes, (conf->prefix_count + 1) * sizeof(*added));
	added = &conf->prefixes[conf->prefix_count++];
	*added = (struct conf_prefix){ .prefix = strdup(prefix) };
	if (!added->prefix)
		abort();
	set_defaults(prefix_keys, added);
	found = find_section(conf, name, ret);
	assert(found);
	return 0;
}

/* inih does not pass line numbers through its stable interface, so the lines are counted where they are read. */
struct reader {
	struct conf *conf;
	const char *file;
	FILE *in;
	char *error;
	int line, error_line;      /* error_line 0: none yet */
	char where[PATH_MAX + 16]; /* the file and the line */
	bool indented;
	bool after_key; /* an indented line continues it */
};

static void reader_at(struct reader *r, int line)
{
	r->line = line;
	snprintf(r->where, sizeof(r->where), "%s:%d", r->file, line);
}

static bool reader_failed(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool reader_failed(struct reader *r, const char *format, ...)
{
	char what[CONF_ERROR_MAX];
	va_list args;

	if (r->error_line)
		return false;
	r->error_line = r->line;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	fail(r->error, r->where, "%s", what);
	return false;
}

/*
 * inih does not report a section without keys, truncates a long section name, and ignores what follows the first closing
 * bracket. So each section line is examined before inih sees it; a line that inih does not take for a section is none
 * here.
 */
static void read_section(struct reader *r, const char *line)
{
	const char *begin = line, *end, *rest;
	struct section section;
	char *name;

	if (r->line == 1 && strncmp(begin, "\xef\xbb\xbf", 3) == 0)
		begin += 3;
	while (isspace((unsigned char)*begin))
		begin++;
	if (*begin++ != '[' || (r->indented && r->after_key))
		return;
	end = begin + strcspn(begin, "]");
	if (!*end)
		return;
	r->after_key = false;
	name = strndup(begin, (size_t)(end - begin));
	if (!name)
		abort();
	rest = end + 1;
	while (isspace((unsigned char)*rest))
		rest++;
	if (*rest && (rest == end + 1 || (*rest != ';' && *rest != '#')))
		reader_failed(r, "[%s]: something follows the closing bracket", name);
	else if (open_section(r->conf, name, &section, r->where, r->error) < 0)
		r->error_line = r->line;
	free(name);
}

/* Takes the place of fgets(). */
static char *read_line(char *line, int size, void *stream)
{
	struct reader *r = stream;
	size_t len;

	if (r->error_line || !fgets(line, size, r->in))
		return NULL;
	reader_at(r, r->line + 1);
	len = strlen(line);
	if (len + 1 == (size_t)size && line[len - 1] != '\n') {
		reader_failed(r, "the line is longer than %d bytes", size - 2);
		return NULL;
	}
	r->indented = isspace((unsigned char)line[0]);
	read_section(r, line);
	return line;
}

static int append_server(struct reader *r, const struct section *section, const struct conf_key *key, const char *value)
{
	char *joined, *text = *conf_value_text(key, section->base);
	size_t len = strlen(text);
	int rc;

	while (len > 0 && (text[len - 1] == ',' || isspace((unsigned char)text[len - 1])))
		len--;
	if (asprintf(&joined, "%.*s%s%s", (int)len, text, len > 0 ? "," : "", value) < 0)
		abort();
	rc = set(section, key, joined, r->where, r->error);
	free(joined);
	return rc;
}

/* inih's handler: nonzero means success. */
static int handle(void *user, const char *name_of_section, const char *name, const char *value)
{
	struct reader *r = user;
	const struct conf_key *key;
	struct section section;
	int *line;
	int rc;

	if (r->error_line)
		return 0;
	if (!name_of_section[0])
		return reader_failed(r, "the key is outside of a section");
	if (!find_section(r->conf, name_of_section, &section))
		return reader_failed(r, "[%s]: unknown section", name_of_section);
	key = find(&section, name);
	if (!key)
		return reader_failed(r, "%s.%s: unknown key", section.name, name);
	r->after_key = true;
	line = &section.lines[key - section.table];
	if (r->indented && *line && key->type == CONF_SERVERS) {
		rc = append_server(r, &section, key, value);
	} else if (*line) {
		return reader_failed(r, "%s.%s = %.200s: the key is already set in line %d%s", section.name, name,
				     value, *line, r->indented ? " (an indented line continues the one before)" : "");
	} else {
		*line = r->line;
		rc = set(&section, key, value, r->where, r->error);
	}
	if (rc < 0)
		r->error_line = r->line;
	return rc == 0;
}

int conf_read(struct conf *conf, const char *file, char error[CONF_ERROR_MAX])
{
	struct reader r = { .conf = conf, .file = file, .error = error };
	int rc;

	r.in = fopen(file, "re");
	if (!r.in) {
		rc = -errno;
		fail(error, file, "%s", strerror(-rc));
		return rc;
	}
	errno = 0;
	rc = ini_parse_stream(read_line, &r, handle, &r);
	if (ferror(r.in)) {
		rc = errno ? -errno : -EIO;
		fclose(r.in);
		fail(error, file, "%s", strerror(-rc));
		return rc;
	}
	if (rc > 0 && (!r.error_line || rc < r.error_line)) {
		r.error_line = 0;
		reader_at(&r, rc);
		reader_failed(&r, "the line is neither a [section] nor KEY = VALUE nor a comment");
	}
	fclose(r.in);
	return r.error_line ? -EINVAL : 0;
}

static int override(struct conf *conf, const char *text, const char *name_of_section, const char *name, char *error)
{
	const struct conf_key *key;
	struct section section;
	int rc;

	rc = open_section(conf, name_of_section, &section, "-o", error);
	if (rc < 0)
		return rc;
	key = find(&section, name);
	if (!key)
		return fail(error, "-o", "%.200s: unknown key %s.%.200s", text, section.name, name);
	section.lines[key - section.table] = 0;
	return set(&section, key, strchr(text, '=') + 1, "-o", error);
}

int conf_override(struct conf *conf, const char *text, char error[CONF_ERROR_MAX])
{
	const char *equals = strchr(text, '='), *dot;
	char *section, *name;
	int rc;

	dot = equals ? memrchr(text, '.', (size_t)(equals - text)) : NULL;
	if (!dot)
		return fail(error, "-o", "%.200s: must be SECTION.KEY=VALUE", text);
	section = strndup(text, (size_t)(dot - text));
	name = strndup(dot + 1, (size_t)(equals - dot - 1));
	if (!section || !name)
		abort();
	rc = override(conf, text, section, name, error);
	free(section);
	free(name);
	return rc;
}

static int fill_host(struct conf *conf, char *error)
{
	char name[HOST_NAME_MAX + 1] = "";
	struct section section;
	bool found;
	int rc;

	if (conf->host[0])
		return 0;
	rc = gethostname(name, sizeof(name) - 1);
	if (rc < 0 || !name[0])
		return fail(error, "zookeeper.host", "this machine has no host name, so the key must be set");
	found = find_section(conf, "zookeeper", &section);
	assert(found);
	return set(&section, find(&section, "host"), name, "host name of this machine (set the key instead)", error);
}

/* Whether the paths are equal, or one is inside the other. */
static bool overlap(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b), len = a_len < b_len ? a_len : b_len;

	return strncmp(a, b, len) == 0 && (a_len == b_len || (a_len > len ? a : b)[len] == '/');
}

static int check_paths(const struct conf *conf, char *error)
{
	char where[sizeof("prefix:.path") + CONF_PREFIX_BYTES_MAX];
	const struct conf_prefix *other;
	size_t i;

	for (i = 0; i < conf->prefix_count; i++) {
		const struct conf_prefix *p = &conf->prefixes[i];

		if (!p->path[0])
			continue;
		snprintf(where, sizeof(where), "prefix:%s.path", p->prefix);
		if (overlap(p->path, conf->root))
			return fail(error, where, "%s must be neither inside nor around zookeeper.root = %s", p->path,
				    conf->root);
		for (other = conf->prefixes; other < p; other++)
			if (other->path[0] && overlap(p->path, other->path))
				return fail(error, where, "%s must be neither inside nor around prefix:%s.path = %s",
					    p->path, other->prefix, other->path);
	}
	return 0;
}

int conf_check(const struct conf *conf, bool standalone, char error[CONF_ERROR_MAX])
{
	if (standalone)
		return 0;
	if (!conf->servers[0])
		return fail(error, "zookeeper.servers", "must be set, unless the daemon runs with --standalone");
	if (conf->session_timeout_ms < 5 * conf->tick_ms)
		return fail(error, "zookeeper.session_timeout_ms",
			    "%" PRId64 " is less than 5 ticks of zookeeper.tick_ms = %" PRId64,
			    conf->session_timeout_ms, conf->tick_ms);
	if (conf->grant_min_ms * 3 >= conf->session_timeout_ms)
		return fail(error, "locks.grant_min_ms",
			    "%" PRId64 " is not less than a third of zookeeper.session_timeout_ms = %" PRId64,
			    conf->grant_min_ms, conf->session_timeout_ms);
	return check_paths(conf, error);
}

int conf_finish(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX])
{
	int rc = fill_host(conf, error);

	return rc < 0 ? rc : conf_check(conf, standalone, error);
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
	for (i = 0; i < conf->prefix_count; i++) {
		fprintf(out, "%s[prefix:%s]\n", i > 0 ? "\n" : "", conf->prefixes[i].prefix);
		for (key = prefix_keys; key->name; key++)
			print_key(key, &conf->prefixes[i], out);
	}
	if (conf->prefix_count > 0)
		return;
	fputs("#[prefix:app/]\n", out);
	for (key = prefix_keys; key->name; key++)
		fprintf(out, "# %s%s\n#%s =%s%s\n", key->why, restart_mark(key), key->name, *key->initial ? " " : "",
			key->initial);
}

void conf_print(const struct conf *conf, FILE *out)
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
