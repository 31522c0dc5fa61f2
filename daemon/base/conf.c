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
#include "base/log.h"
#include "base/mem.h"

#define FIELD(field) offsetof(struct conf, field)
#define NUMBER(section, field, initial, min, max, why) \
	{ \
		section, #field, CONF_NUMBER, FIELD(field), initial, min, max, why \
	}
#define TEXT(section, field, type, initial, why) \
	{ \
		section, #field, type, FIELD(field), initial, 0, 0, why \
	}

static const struct conf_key keys[] = {
	TEXT("daemon", socket, CONF_PATH, "/run/lockbroker/lockbroker.sock", "Where local processes connect."),
	{ "daemon", "socket_mode", CONF_OCTAL, FIELD(socket_mode), "0660", 0, 0777,
	  "Who may connect: the permissions of the socket, octal." },
	TEXT("daemon", socket_group, CONF_GROUP, "",
	     "The group of the socket, a name or a number; empty: the daemon's."),
	TEXT("daemon", rundir, CONF_PATH, "/run/lockbroker",
	     "Where the daemon keeps its pid and the session page; one daemon for each."),
	TEXT("daemon", statedir, CONF_PATH, "/var/lib/lockbroker",
	     "Where a standalone daemon keeps what its tokens rest on, over restarts of the host too."),
	TEXT("daemon", log_level, CONF_LEVEL, "info", "What is logged: error, warning, info or debug."),
	NUMBER("daemon", stop_timeout_ms, "10000", 0, 3600000, "At SIGTERM, how long holders may take to let go."),

	TEXT("zookeeper", servers, CONF_SERVERS, "127.0.0.1:2181",
	     "The ensemble: host:port, separated by commas; IPv6 addresses in brackets."),
	TEXT("zookeeper", root, CONF_ROOT, "/lockbroker",
	     "The znode below which everything is kept; the same on every host."),
	NUMBER("zookeeper", session_timeout_ms, "15000", 100, 3600000,
	       "How long ZooKeeper waits for a silent host before its locks go to others; at least 5 ticks."),
	NUMBER("zookeeper", tick_ms, "2000", 10, 600000, "The tickTime of the servers."),
	TEXT("zookeeper", host, CONF_HOST, "", "This host's name among the hosts; empty: its host name."),
	TEXT("zookeeper", auth_file, CONF_FILE, "",
	     "A file with user:password (digest), for nobody else to read; everything made is then for that user alone."),

	NUMBER("locks", linger_ms, "100", 0, 60000,
	       "How long an idle lock that nobody else wants stays with this host, which saves the network; 0: off."),
	NUMBER("locks", handoff_max, "64", 0, 1000000,
	       "Grants inside this host in a row while another host waits; 0: the other host is next."),
	NUMBER("locks", handoff_ms, "100", 0, 60000, "And for how long such a row may go on."),
	NUMBER("locks", grant_min_ms, "1000", 0, 600000,
	       "A lock is granted only if it is proven safe for longer than this; under a third of the session timeout."),

	NUMBER("limits", clients, "10000", 1, 1000000, "Connections."),
	NUMBER("limits", clients_per_uid, "9000", 1, 1000000, "Connections of one user."),
	NUMBER("limits", locks, "100000", 1, 10000000, "Locks held or waited for."),
	NUMBER("limits", requests_per_lock, "10000", 1, 1000000, "Requests that wait for one lock."),
	NUMBER("limits", requests_per_client, "1000", 1, 1000000, "Requests of one connection that wait."),
	NUMBER("limits", requests_per_uid, "20000", 1, 10000000, "Requests of one user that wait."),
	NUMBER("limits", grants_per_client, "10000", 1, 1000000, "Locks that one connection holds or waits for."),
	NUMBER("limits", grants_per_uid, "100000", 1, 10000000, "Locks that one user holds."),
	NUMBER("limits", events_per_client, "1024", 1, 1000000,
	       "Events kept for a connection that does not fetch them; past it the connection is closed."),
	NUMBER("limits", request_bytes, "65536", 1024, 16777216, "Bytes of one request."),
	NUMBER("limits", request_args, "1024", 8, 1000000, "Words of one request."),
	NUMBER("limits", output_bytes, "1048576", 4096, 1073741824,
	       "Bytes kept for a connection that does not read its answers."),
	NUMBER("limits", session_path_bytes, "900000", 1000, 1000000,
	       "Bytes of znode paths of this host's session; ZooKeeper fails for good at 1 MB."),
	{ 0 },
};

static_assert(sizeof(keys) / sizeof(keys[0]) <= CONF_KEYS_MAX, "conf.lines is too short");

const struct conf_key *conf_keys(void)
{
	return keys;
}

static bool is_number(const struct conf_key *key)
{
	return key->type == CONF_NUMBER || key->type == CONF_OCTAL || key->type == CONF_LEVEL;
}

static int64_t *number_of(const struct conf_key *key, const struct conf *conf)
{
	return (int64_t *)(void *)((char *)conf + key->offset);
}

static char **text_of(const struct conf_key *key, const struct conf *conf)
{
	return (char **)(void *)((char *)conf + key->offset);
}

static bool known_section(const char *section)
{
	const struct conf_key *key;

	for (key = keys; key->name; key++)
		if (strcmp(key->section, section) == 0)
			return true;
	return false;
}

static const struct conf_key *find(const char *section, const char *name)
{
	const struct conf_key *key;

	for (key = keys; key->name; key++)
		if (strcmp(key->section, section) == 0 && strcmp(key->name, name) == 0)
			return key;
	return NULL;
}

/* Keeps the first error: what follows it is often its consequence. */
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

static int set(struct conf *conf, const struct conf_key *key, const char *value, const char *where, char *error)
{
	char allowed[CONF_ALLOWED_MAX];
	int64_t number;
	char **text;

	if (!conf_value_parse(key, value, &number)) {
		conf_value_allowed(key, allowed);
		return fail(error, where, "%s.%s = %.200s: must be %s", key->section, key->name, value, allowed);
	}
	if (is_number(key)) {
		*number_of(key, conf) = number;
		return 0;
	}
	text = text_of(key, conf);
	free(*text);
	*text = strdup(value);
	if (!*text)
		abort();
	return 0;
}

void conf_init(struct conf *conf)
{
	char error[CONF_ERROR_MAX];
	const struct conf_key *key;
	int rc;

	*conf = (struct conf){ 0 };
	for (key = keys; key->name; key++) {
		rc = set(conf, key, key->initial, "default", error);
		assert(rc == 0);
	}
}

void conf_free(struct conf *conf)
{
	const struct conf_key *key;

	for (key = keys; key->name; key++)
		if (!is_number(key))
			free(*text_of(key, conf));
	*conf = (struct conf){ 0 };
}

/* inih tells no line numbers through its stable interface, so the lines are counted where they are read. */
struct reader {
	struct conf *conf;
	const char *file;
	FILE *in;
	char *error;
	int line, error_line; /* error_line 0: none yet */
	bool indented;
};

static bool reader_failed(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool reader_failed(struct reader *r, const char *format, ...)
{
	char where[PATH_MAX + 16], what[CONF_ERROR_MAX];
	va_list args;

	if (r->error_line)
		return false;
	r->error_line = r->line;
	snprintf(where, sizeof(where), "%s:%d", r->file, r->line);
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	fail(r->error, where, "%s", what);
	return false;
}

/* inih says nothing about a section without keys. */
static void check_section(struct reader *r, const char *line)
{
	char name[64];
	size_t len;

	if (*line != '[') /* an indented one goes on with a list of servers */
		return;
	len = strcspn(line + 1, "]");
	if (line[1 + len] != ']')
		return;
	snprintf(name, sizeof(name), "%.*s", (int)len, line + 1);
	if (!known_section(name))
		reader_failed(r, "[%s]: unknown section", name);
}

/* Stands in for fgets(). */
static char *read_line(char *line, int size, void *stream)
{
	struct reader *r = stream;
	size_t len;

	if (r->error_line || !fgets(line, size, r->in))
		return NULL;
	r->line++;
	len = strlen(line);
	if (len + 1 == (size_t)size && line[len - 1] != '\n') {
		reader_failed(r, "the line is longer than %d bytes", size - 2);
		return NULL;
	}
	r->indented = isspace((unsigned char)line[0]);
	check_section(r, line);
	return line;
}

static int append_server(struct reader *r, const struct conf_key *key, const char *value)
{
	char where[PATH_MAX + 16], *joined, *text = *text_of(key, r->conf);
	size_t len = strlen(text);
	int rc;

	while (len > 0 && (text[len - 1] == ',' || isspace((unsigned char)text[len - 1])))
		len--;
	if (asprintf(&joined, "%.*s,%s", (int)len, text, value) < 0)
		abort();
	snprintf(where, sizeof(where), "%s:%d", r->file, r->line);
	rc = set(r->conf, key, joined, where, r->error);
	free(joined);
	return rc;
}

/* inih's handler: nonzero is success. */
static int handle(void *user, const char *section, const char *name, const char *value)
{
	struct reader *r = user;
	const struct conf_key *key;
	char where[PATH_MAX + 16];
	int *line;
	int rc;

	if (r->error_line)
		return 0;
	if (!known_section(section))
		return reader_failed(r, section[0] ? "[%s]: unknown section" : "a key outside a section%s", section);
	key = find(section, name);
	if (!key)
		return reader_failed(r, "%s.%s: unknown key", section, name);
	line = &r->conf->lines[key - keys];
	if (r->indented && *line && key->type == CONF_SERVERS) {
		rc = append_server(r, key, value);
	} else if (*line) {
		return reader_failed(r, "%s.%s = %.200s: the key is already set in line %d%s", section, name, value,
				     *line, r->indented ? " (an indented line continues the one before)" : "");
	} else {
		*line = r->line;
		snprintf(where, sizeof(where), "%s:%d", r->file, r->line);
		rc = set(r->conf, key, value, where, r->error);
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
		r.line = rc;
		reader_failed(&r, "neither a [section] nor KEY = VALUE nor a comment");
	}
	fclose(r.in);
	return r.error_line ? -EINVAL : 0;
}

int conf_override(struct conf *conf, const char *text, char error[CONF_ERROR_MAX])
{
	const struct conf_key *key;
	const char *equals = strchr(text, '='), *dot = NULL, *p;
	char section[64], name[64];

	for (p = text; equals && p < equals; p++)
		if (*p == '.')
			dot = p;
	if (!equals || !dot || dot - text >= (int)sizeof(section) || equals - dot > (int)sizeof(name))
		return fail(error, "-o", "%.200s: must be SECTION.KEY=VALUE", text);
	snprintf(section, sizeof(section), "%.*s", (int)(dot - text), text);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - dot - 1), dot + 1);
	if (!known_section(section))
		return fail(error, "-o", "%.200s: unknown section %s", text, section);
	key = find(section, name);
	if (!key)
		return fail(error, "-o", "%.200s: unknown key %s.%s", text, section, name);
	conf->lines[key - keys] = 0;
	return set(conf, key, equals + 1, "-o", error);
}

static int fill_host(struct conf *conf, char *error)
{
	const struct conf_key *key = find("zookeeper", "host");
	char name[HOST_NAME_MAX + 1] = "";
	int rc;

	if (conf->host[0])
		return 0;
	rc = gethostname(name, sizeof(name) - 1);
	if (rc < 0 || !name[0])
		return fail(error, "zookeeper.host", "this machine has no host name: set the key");
	return set(conf, key, name, "host name of this machine (set the key instead)", error);
}

int conf_finish(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX])
{
	int rc = fill_host(conf, error);

	if (rc < 0)
		return rc;
	if (standalone)
		return 0;
	if (!conf->servers[0])
		return fail(error, "zookeeper.servers", "must be set (or run with --standalone)");
	if (conf->session_timeout_ms < 5 * conf->tick_ms)
		return fail(error, "zookeeper.session_timeout_ms",
			    "%" PRId64 " is less than 5 ticks of zookeeper.tick_ms = %" PRId64,
			    conf->session_timeout_ms, conf->tick_ms);
	if (conf->grant_min_ms * 3 >= conf->session_timeout_ms)
		return fail(error, "locks.grant_min_ms",
			    "%" PRId64 " is not less than a third of zookeeper.session_timeout_ms = %" PRId64,
			    conf->grant_min_ms, conf->session_timeout_ms);
	return 0;
}

/* A long list goes on in indented lines, because the lines of the format are short. */
static void print_servers(const char *servers, FILE *out)
{
	const char *p;
	size_t column = 0;

	for (p = servers; *p; p++) {
		fputc(*p, out);
		column++;
		if (*p == ',' && column > 60) {
			fputs("\n  ", out);
			column = 0;
		}
	}
}

static void print_value(const struct conf *conf, const struct conf_key *key, FILE *out)
{
	switch (key->type) {
	case CONF_NUMBER:
		fprintf(out, "%" PRId64, *number_of(key, conf));
		break;
	case CONF_OCTAL:
		fprintf(out, "%04" PRIo64, (uint64_t)*number_of(key, conf));
		break;
	case CONF_LEVEL:
		fputs(log_level_word((enum log_level) * number_of(key, conf)), out);
		break;
	case CONF_SERVERS:
		print_servers(*text_of(key, conf), out);
		break;
	case CONF_PATH:
	case CONF_FILE:
	case CONF_GROUP:
	case CONF_ROOT:
	case CONF_HOST:
		fputs(*text_of(key, conf), out);
		break;
	}
}

void conf_print(const struct conf *conf, FILE *out)
{
	const struct conf_key *key;
	const char *section = NULL;

	fputs("# lockbrokerd. Every key, its value and why. An unknown key or a bad value is an error.\n", out);
	for (key = keys; key->name; key++) {
		if (!section || strcmp(section, key->section) != 0)
			fprintf(out, "\n[%s]\n", key->section);
		section = key->section;
		fprintf(out, "# %s\n%s =%s", key->why, key->name,
			is_number(key) || (*text_of(key, conf))[0] ? " " : "");
		print_value(conf, key, out);
		fputc('\n', out);
	}
}
