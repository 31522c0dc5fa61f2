/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf_file.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rule_names.h"
#include "io/conf/conf_access.h"
#include "io/conf/conf_section.h"
#include "io/conf/conf_value.h"

/* inih does not pass line numbers through its stable interface, so the lines are counted where they are read. */
struct reader {
	struct conf *conf;
	FILE *in;
	char *error;
	size_t file; /* in conf->files */
	size_t bytes;
	int line, errors;
	char where[CONF_WHERE_MAX]; /* the file and the line */
	bool indented;
	bool after_key;  /* an indented line continues it */
	bool after_bad;  /* ... which was not accepted */
	bool skips;      /* the section is not known: what its keys are nobody can say */
	bool understood; /* the present line */
};

static void failed(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void failed(struct reader *r, const char *format, ...)
{
	char what[CONF_SENTENCE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	conf_fail(r->error, r->where, "%s", what);
	r->errors++;
}

/* inih does not say which lines it takes for nothing. */
static void end_line(struct reader *r)
{
	if (r->line > 0 && !r->understood)
		failed(r, "the line is neither a [section] nor KEY = VALUE nor a comment");
	r->understood = true;
}

/*
 * inih does not report a section without keys, truncates a long section name, and ignores what follows the first closing
 * bracket. So each section line is examined before inih sees it; a line that inih does not take for a section is none
 * here.
 */
static void read_section(struct reader *r, const char *begin)
{
	const char *end, *rest;
	struct conf_section section;
	char *name;

	if (*begin++ != '[' || (r->indented && r->after_key))
		return;
	end = begin + strcspn(begin, "]");
	if (!*end)
		return;
	r->understood = true;
	r->after_key = r->skips = false;
	name = mem_text_part(begin, (size_t)(end - begin));
	rest = end + 1;
	while (isspace((unsigned char)*rest))
		rest++;
	if (*rest && (rest == end + 1 || (*rest != ';' && *rest != '#'))) {
		failed(r, "[%.200s]: something follows the closing bracket", name);
		r->skips = true;
	} else if (conf_section_open(r->conf, name, &section, r->where, r->error) < 0) {
		r->errors++;
		r->skips = true;
	}
	free(name);
}

/* The next line into `line`, cut if it is longer. False: there is none. */
static bool fetch(struct reader *r, char *line, size_t size)
{
	bool zero = false;
	size_t len = 0;
	int c = EOF;

	while (r->bytes <= CONF_FILE_BYTES_MAX && (c = getc(r->in)) != EOF) {
		r->bytes++;
		zero |= c == '\0';
		if (len + 1 < size)
			line[len] = (char)c;
		len++;
		if (c == '\n')
			break;
	}
	if (len == 0)
		return false;
	r->line++;
	snprintf(r->where, sizeof(r->where), "%s:%d", r->conf->files[r->file], r->line);
	line[len < size ? len : size - 1] = '\0';
	if (r->bytes > CONF_FILE_BYTES_MAX)
		failed(r, "the file is larger than %d bytes", CONF_FILE_BYTES_MAX);
	else if (len - (c == '\n') > size - 2)
		failed(r, "the line is longer than %zu bytes", size - 2);
	else if (zero)
		failed(r, "the line has a zero byte: this is no text file");
	else
		return true;
	memcpy(line, "\n", sizeof("\n"));
	return true;
}

/* Takes the place of fgets(). */
static char *read_line(char *line, int size, void *stream)
{
	struct reader *r = stream;
	const char *begin = line;

	end_line(r);
	if (!fetch(r, line, (size_t)size))
		return NULL;
	r->indented = isspace((unsigned char)line[0]);
	if (r->line == 1 && strncmp(begin, "\xef\xbb\xbf", 3) == 0)
		begin += 3;
	while (isspace((unsigned char)*begin))
		begin++;
	r->understood = !*begin || *begin == '#' || *begin == ';';
	read_section(r, begin);
	return line;
}

static int append_to_list(struct reader *r, const struct conf_section *section, const struct conf_key *key,
			 const char *value)
{
	const char *text = *conf_value_text(key, section->base);
	size_t len = strlen(text);
	char *joined;
	int rc;

	while (len > 0 && (text[len - 1] == ',' || isspace((unsigned char)text[len - 1])))
		len--;
	if (asprintf(&joined, "%.*s%s%s", (int)len, text, len > 0 ? "," : "", value) < 0)
		abort();
	rc = conf_section_set(section, key, joined, r->where, r->error);
	free(joined);
	return rc;
}

static void read_key(struct reader *r, const struct conf_section *section, const struct conf_key *key, const char *value)
{
	struct conf_origin *origin = &section->origins[key - section->table];
	bool again = origin->line && origin->file == r->file;
	int rc;

	if (again && r->indented && (key->type == CONF_SERVERS || key->type == CONF_USERS)) {
		rc = r->after_bad ? 0 : append_to_list(r, section, key, value);
		r->after_bad |= rc < 0;
	} else if (again) {
		failed(r, "%s.%s = %.200s: the key is already set in line %d%s", section->name, key->name, value,
		       origin->line, r->indented ? " (an indented line continues the one before)" : "");
		return;
	} else {
		*origin = (struct conf_origin){ .file = r->file, .line = r->line };
		rc = conf_section_set(section, key, value, r->where, r->error);
		r->after_bad = rc < 0;
	}
	r->errors += rc < 0;
}

/* inih's handler: nonzero means success. What is wrong is told here, and does not end the reading. */
static int handle(void *user, const char *name_of_section, const char *name, const char *value)
{
	struct reader *r = user;
	const struct conf_key *key;
	struct conf_section section;

	r->understood = r->after_key = true;
	if (r->skips)
		return 1;
	if (!name_of_section[0]) {
		failed(r, "the key is outside of a section");
		return 1;
	}
	if (conf_access_is(name_of_section)) {
		r->errors += conf_access_set(r->conf, name, value, r->where, r->error) < 0;
		return 1;
	}
	if (!conf_section_find(r->conf, name_of_section, &section)) {
		failed(r, "[%s]: unknown section", name_of_section);
		return 1;
	}
	key = conf_section_key(&section, name);
	if (key)
		read_key(r, &section, key, value);
	else if (conf_users_is_kept(r->conf, &section, name))
		r->errors += conf_users_take_kept(r->conf, value, r->where, r->error) < 0;
	else if (!conf_section_outdated(r->conf, &section, name))
		failed(r, "%s.%s: unknown key%s", section.name, name, conf_section_no_tcp(&section, name, value));
	return 1;
}

/* Whoever can write to it could make the daemon do what he likes. What has no name was given to this process. */
static bool is_safe(const struct stat *st)
{
	bool group = (st->st_mode & S_IWGRP) && st->st_gid != 0;

	return st->st_nlink == 0 || ((st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & S_IWOTH) && !group);
}

static int refuse(char *error, const char *path, int rc, const char *why)
{
	conf_fail(error, path, "%s", why);
	return rc;
}

static int check_owner(const struct stat *st, const char *path, char *error)
{
	if (is_safe(st))
		return 0;
	return refuse(error, path, -EPERM,
		      "must belong to root or the daemon's user and not be writable by others (chmod go-w)");
}

/* A descriptor, or -errno; FIFOs do not keep the daemon waiting. */
static int open_file(const char *file, bool drop_in, char *error)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | (drop_in ? O_NONBLOCK : 0)), rc = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		rc = refuse(error, file, -errno, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		rc = refuse(error, file, -EISDIR, strerror(EISDIR));
	else if (S_ISREG(st.st_mode))
		rc = check_owner(&st, file, error);
	else if (drop_in)
		rc = refuse(error, file, -EINVAL, "is not a file");
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

static size_t add_file(struct conf *conf, const char *file)
{
	conf->files = mem_resize(conf->files, (conf->file_count + 1) * sizeof(*conf->files));
	conf->files[conf->file_count] = mem_text(file);
	return conf->file_count++;
}

static int read_file(struct conf *conf, const char *file, bool drop_in, char *error)
{
	struct reader r = { .conf = conf, .error = error, .understood = true };
	int fd = open_file(file, drop_in, error), rc;

	if (fd < 0)
		return fd;
	r.in = fdopen(fd, "re");
	if (!r.in)
		abort();
	r.file = add_file(conf, file);
	errno = 0;
	ini_parse_stream(read_line, &r, handle, &r);
	end_line(&r);
	rc = r.errors ? -EINVAL : 0;
	if (ferror(r.in))
		rc = refuse(error, file, errno ? -errno : -EIO, strerror(errno ? errno : EIO));
	fclose(r.in);
	return rc;
}

int conf_read(struct conf *conf, const char *file, char error[CONF_ERROR_MAX])
{
	return read_file(conf, file, false, error);
}

static bool ends_with_conf(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".conf") == 0;
}

static int is_drop_in(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && ends_with_conf(entry->d_name);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool is_numbered(const char *name)
{
	return isdigit((unsigned char)name[0]) && isdigit((unsigned char)name[1]) && name[2] == '-';
}

static int read_drop_in(struct conf *conf, const char *dir, const char *name, char *error)
{
	char *path;
	int rc;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		abort();
	if (is_numbered(name))
		rc = read_file(conf, path, true, error);
	else
		rc = refuse(error, path, -EINVAL,
			    "is not read: a drop-in is named NN-NAME.conf, with two digits first; rename it, or remove it");
	free(path);
	return rc;
}

/* Takes the entries. */
static int read_entries(struct conf *conf, const char *dir, struct dirent **entries, int count, char *error)
{
	int rc = 0, i;

	if (count > CONF_FILES_MAX - 1) {
		conf_fail(error, dir, "has %d drop-ins, and at most %d are read", count, CONF_FILES_MAX - 1);
		rc = -E2BIG;
	}
	for (i = 0; i < count; i++) {
		if (rc != -E2BIG && read_drop_in(conf, dir, entries[i]->d_name, error) < 0)
			rc = -EINVAL;
		free(entries[i]);
	}
	free(entries);
	return rc;
}

/* The drop-ins of `file`, which itself need not exist. */
static int conf_read_drop_ins(struct conf *conf, const char *file, char error[CONF_ERROR_MAX])
{
	struct dirent **entries;
	char dir[PATH_MAX];
	struct stat st;
	int rc, count;

	snprintf(dir, sizeof(dir), "%s.d", file);
	if (stat(dir, &st) < 0)
		return errno == ENOENT ? 0 : refuse(error, dir, -errno, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return refuse(error, dir, -ENOTDIR, "must be a directory: it is where drop-ins are");
	rc = check_owner(&st, dir, error);
	if (rc < 0)
		return rc;
	count = scandir(dir, &entries, is_drop_in, by_bytes);
	if (count < 0)
		return refuse(error, dir, -errno, strerror(errno));
	return read_entries(conf, dir, entries, count, error);
}

static int keep_first(int rc, int next)
{
	return rc < 0 ? rc : next;
}

static int resolve(struct conf *conf, char error[CONF_ERROR_MAX])
{
	char where[CONF_WHERE_MAX];
	int rc = conf_access_resolve(conf, error);

	return rule_worse(rc, conf_users_resolve(conf, conf_section_where(conf, "limits", "by_unit", true, where), error));
}

int conf_load(struct conf *ret, const struct conf_source *source, char error[CONF_ERROR_MAX])
{
	const char *file = source->file ? source->file : source->default_file;
	int rc = 0, i;

	error[0] = '\0';
	conf_init(ret);
	ret->kept = source->kept;
	if (source->file || access(file, F_OK) == 0)
		rc = keep_first(rc, conf_read(ret, file, error));
	rc = keep_first(rc, conf_read_drop_ins(ret, file, error));
	for (i = 0; i < source->override_count; i++)
		rc = keep_first(rc, conf_override(ret, source->overrides[i], error));
	/* What does not fit together may be only what stands for a value that is wrong. */
	if (rc == 0)
		rc = conf_finish(ret, source->standalone, error);
	if (rc == 0)
		rc = resolve(ret, error);
	if (rc < 0)
		conf_free(ret);
	return rc;
}

/* Whoever is told, with the sentence that is being made. */
struct telling {
	conf_tell *tell;
	void *arg;
	char *text;
	size_t size;
	FILE *out;
};

static FILE *telling_begin(struct telling *t)
{
	t->out = open_memstream(&t->text, &t->size);
	if (!t->out)
		abort();
	return t->out;
}

static void telling_end(struct telling *t, bool waits)
{
	fclose(t->out);
	t->tell(t->arg, waits, t->text);
	free(t->text);
}

static bool same(const struct conf_key *key, const void *a, const void *b)
{
	if (conf_value_is_number(key))
		return conf_value_number(key, a) == conf_value_number(key, b);
	return strcmp(*conf_value_text(key, a), *conf_value_text(key, b)) == 0;
}

static void print_value(const struct conf_key *key, const void *base, FILE *out)
{
	if (conf_value_is_number(key))
		conf_value_print(key, base, out);
	else
		fputs(**conf_value_text(key, base) ? *conf_value_text(key, base) : "empty", out);
}

/* `prefix` NULL: of the keys outside of such sections. */
static void tell_difference(struct telling *t, const char *prefix, const struct conf_key *key, const void *before,
			    const void *now)
{
	FILE *out = telling_begin(t);

	fprintf(out, "%s%s%s.%s = ", key->section, prefix ? ":" : "", prefix ? prefix : "", key->name);
	print_value(key, now, out);
	fputs(key->reloads ? ", before " : " needs a restart; until then it is ", out);
	print_value(key, before, out);
	telling_end(t, !key->reloads);
}

static const struct broker_prefix *find(const struct conf *conf, const char *prefix)
{
	size_t i;

	for (i = 0; i < conf->broker.prefix_count; i++)
		if (strcmp(conf->broker.prefixes[i].prefix, prefix) == 0)
			return &conf->broker.prefixes[i];
	return NULL;
}

static void tell_alone(struct telling *t, const struct broker_prefix *p, const char *what)
{
	fprintf(telling_begin(t), "[prefix:%s] is %s, which needs a restart", p->prefix, what);
	telling_end(t, true);
}

static void tell_prefixes(struct telling *t, const struct conf *before, const struct conf *now)
{
	const struct broker_prefix *old;
	const struct conf_key *key;
	size_t i;

	for (i = 0; i < now->broker.prefix_count; i++) {
		old = find(before, now->broker.prefixes[i].prefix);
		if (!old)
			tell_alone(t, &now->broker.prefixes[i], "new");
		for (key = conf_prefix_keys(); old && key->name; key++) {
			assert(!key->reloads);
			if (!same(key, old, &now->broker.prefixes[i]))
				tell_difference(t, old->prefix, key, old, &now->broker.prefixes[i]);
		}
	}
	for (i = 0; i < before->broker.prefix_count; i++)
		if (!find(now, before->broker.prefixes[i].prefix))
			tell_alone(t, &before->broker.prefixes[i], "not there any longer");
}

/* The values of `from` for the keys that may change, with its strings. */
static void take_values(struct conf *to, const struct conf *from)
{
	const struct conf_key *key;

	for (key = conf_keys(); key->name; key++) {
		if (key->reloads && conf_value_is_number(key))
			conf_value_set_number(key, to, conf_value_number(key, from));
		else if (key->reloads)
			*conf_value_text(key, to) = *conf_value_text(key, from);
	}
}

/* Behind take_values(), two have the strings of `read`: `read` gets those of before, and frees them. */
static void give_texts(struct conf *read, const struct conf *before)
{
	const struct conf_key *key;

	for (key = conf_keys(); key->name; key++)
		if (key->reloads && !conf_value_is_number(key))
			*conf_value_text(key, read) = *conf_value_text(key, before);
}

/* Other rules count at once: what is held stays, and what is asked for goes by them. */
static void take_rules(struct telling *t, struct conf *next, struct conf *read)
{
	struct access_rules before = next->broker.access;

	if (conf_access_same(next, read))
		return;
	next->broker.access = read->broker.access;
	read->broker.access = before;
	fprintf(telling_begin(t), "access.rule: there are %zu rules, before %zu", next->broker.access.count, before.count);
	telling_end(t, false);
}

static void take_users(struct telling *t, const struct conf *before, struct conf *next, struct conf *read)
{
	struct broker_limits *now = &next->broker.limits, *other = &read->broker.limits;
	const uint32_t *uids = now->by_unit;
	size_t count = now->by_unit_count;

	if (conf_users_same(next, read))
		return;
	now->by_unit = other->by_unit;
	now->by_unit_count = other->by_unit_count;
	other->by_unit = uids;
	other->by_unit_count = count;
	fprintf(telling_begin(t), "limits.by_unit%s: this is for new connections, and for all after a restart or a hand-over",
		strcmp(before->by_unit, read->by_unit) == 0 ? " names users who have other numbers now" : "");
	telling_end(t, false);
}

int conf_take(struct conf *conf, struct conf *read, bool standalone, conf_tell *tell, void *arg,
	      char error[CONF_ERROR_MAX])
{
	struct conf next = *conf; /* the same strings */
	struct telling telling = { .tell = tell, .arg = arg };
	const struct conf_key *key;
	int rc;

	error[0] = '\0';
	take_values(&next, read);
	rc = conf_check(&next, standalone, error);
	if (rc < 0)
		return rc;
	for (key = conf_keys(); key->name; key++)
		if (!same(key, conf, read))
			tell_difference(&telling, NULL, key, conf, read);
	tell_prefixes(&telling, conf, read);
	take_users(&telling, conf, &next, read);
	give_texts(read, conf);
	take_rules(&telling, &next, read);
	*conf = next;
	return 0;
}
