/* The configuration: every key at its bounds and one past them, what the file may hold, overrides, prefixes, the sample. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/conf.h"

/* Reads a file of that text. `error` may be NULL when it must not fail. */
static int read_text(struct conf *conf, const char *text, char *error)
{
	char path[] = "/tmp/test_conf.XXXXXX", own[CONF_ERROR_MAX] = "", where[32], *in;
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = conf_read(conf, path, own);
	unlink(path);
	if (!error) {
		if (rc < 0)
			fail_msg("%s", own);
		return rc;
	}
	/* The name of the file is told, and differs from run to run. */
	in = strstr(own, path);
	snprintf(where, sizeof(where), "%s", in ? "FILE" : "");
	snprintf(error, CONF_ERROR_MAX, "%s%s", where, in ? in + strlen(path) : own);
	return rc;
}

static void assert_refused(const char *text, const char *expected)
{
	char error[CONF_ERROR_MAX] = "";
	struct conf conf;

	conf_init(&conf);
	assert_int_equal(read_text(&conf, text, error), -EINVAL);
	if (!strstr(error, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, error);
	conf_free(&conf);
}

static int set(const char *section, const char *name, const char *value)
{
	char error[CONF_ERROR_MAX], *text;
	struct conf conf;
	int rc;

	conf_init(&conf);
	assert_true(asprintf(&text, "%s.%s=%s", section, name, value) > 0);
	rc = conf_override(&conf, text, error);
	free(text);
	conf_free(&conf);
	return rc;
}

static void assert_allowed(const char *section, const char *name, const char *value)
{
	if (set(section, name, value) < 0)
		fail_msg("%s.%s = %s is refused", section, name, value);
}

static void assert_not_allowed(const char *section, const char *name, const char *value)
{
	if (set(section, name, value) == 0)
		fail_msg("%s.%s = %s is taken", section, name, value);
}

static const char *number_text(const struct conf_key *key, int64_t number, char text[32])
{
	if (key->type == CONF_OCTAL)
		snprintf(text, 32, "%llo", (unsigned long long)number);
	else
		snprintf(text, 32, "%lld", (long long)number);
	return text;
}

static void test_numbers_at_their_bounds_and_one_past(void **state)
{
	const struct conf_key *key;
	char value[32];

	(void)state;
	for (key = conf_keys(); key->name; key++) {
		if (key->type != CONF_NUMBER && key->type != CONF_OCTAL)
			continue;
		assert_allowed(key->section, key->name, number_text(key, key->min, value));
		assert_allowed(key->section, key->name, number_text(key, key->max, value));
		assert_not_allowed(key->section, key->name, number_text(key, key->max + 1, value));
		if (key->min > 0)
			assert_not_allowed(key->section, key->name, number_text(key, key->min - 1, value));
		assert_not_allowed(key->section, key->name, "");
		assert_not_allowed(key->section, key->name, "x");
		assert_not_allowed(key->section, key->name, "7x");
		assert_not_allowed(key->section, key->name, "-7");
		assert_not_allowed(key->section, key->name, "+7");
		assert_not_allowed(key->section, key->name, " 7");
		assert_not_allowed(key->section, key->name, "7.5");
		assert_not_allowed(key->section, key->name, "99999999999999999999999999");
	}
	assert_not_allowed("daemon", "socket_mode", "0668");
}

static void assert_table(const struct conf_key *keys)
{
	const struct conf_key *key, *other;

	for (key = keys; key->name; key++) {
		assert_true(strlen(key->why) > 5 && strlen(key->why) < 118);
		assert_null(strchr(key->why, '\n'));
		for (other = keys; other != key; other++)
			assert_false(strcmp(other->section, key->section) == 0 && strcmp(other->name, key->name) == 0);
	}
}

static void test_every_key_has_a_default_a_reason_and_is_named_once(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf); /* asserts that every default is allowed */
	conf_free(&conf);
	assert_table(conf_keys());
	assert_table(conf_prefix_keys());
}

static void test_defaults_are_those_of_the_design(void **state)
{
	struct conf c;

	(void)state;
	conf_init(&c);
	assert_string_equal(c.socket, "/run/lockbroker/lockbroker.sock");
	assert_int_equal(c.socket_mode, 0660);
	assert_string_equal(c.root, "/lockbroker");
	assert_int_equal(c.session_timeout_ms, 15000);
	assert_int_equal(c.tick_ms, 2000);
	assert_int_equal(c.handoff_max, 64);
	assert_int_equal(c.clients, 10000);
	assert_int_equal(c.session_path_bytes, 900000);
	conf_free(&c);
}

static void fill(char *text, size_t len, char first, char c)
{
	memset(text, c, len);
	text[0] = first;
	text[len] = '\0';
}

static void test_paths(void **state)
{
	char path[200];

	(void)state;
	assert_allowed("daemon", "socket", "/a");
	assert_allowed("daemon", "rundir", "/run/a b");
	fill(path, 107, '/', 'x');
	assert_allowed("daemon", "socket", path);
	fill(path, 108, '/', 'x');
	assert_not_allowed("daemon", "socket", path);
	assert_not_allowed("daemon", "socket", "");
	assert_not_allowed("daemon", "socket", "/");
	assert_not_allowed("daemon", "socket", "relative");
	assert_not_allowed("daemon", "rundir", "/run/");
	assert_not_allowed("daemon", "rundir", "/run/a\tb");
	assert_not_allowed("daemon", "rundir", "/run/a ;b");
}

static void test_words(void **state)
{
	char name[200];

	(void)state;
	assert_allowed("daemon", "log_level", "error");
	assert_allowed("daemon", "log_level", "debug");
	assert_not_allowed("daemon", "log_level", "DEBUG");
	assert_not_allowed("daemon", "log_level", "");
	assert_allowed("daemon", "socket_group", "");
	assert_allowed("daemon", "socket_group", "adm");
	assert_not_allowed("daemon", "socket_group", "a b");
	assert_allowed("zookeeper", "host", "node-1.example_x");
	fill(name, 100, 'h', 'x');
	assert_allowed("zookeeper", "host", name);
	fill(name, 101, 'h', 'x');
	assert_not_allowed("zookeeper", "host", name);
	assert_not_allowed("zookeeper", "host", ".");
	assert_not_allowed("zookeeper", "host", "..");
	assert_not_allowed("zookeeper", "host", ".hidden");
	assert_not_allowed("zookeeper", "host", "a/b");
	assert_not_allowed("zookeeper", "host", "a b");
}

static void test_root(void **state)
{
	char root[200];

	(void)state;
	assert_allowed("zookeeper", "root", "/a");
	assert_allowed("zookeeper", "root", "/services/prod/locks");
	assert_allowed("zookeeper", "root", "/zookeepers");
	fill(root, 150, '/', 'x');
	assert_allowed("zookeeper", "root", root);
	fill(root, 151, '/', 'x');
	assert_not_allowed("zookeeper", "root", root);
	assert_not_allowed("zookeeper", "root", "");
	assert_not_allowed("zookeeper", "root", "/");
	assert_not_allowed("zookeeper", "root", "//");
	assert_not_allowed("zookeeper", "root", "/a/");
	assert_not_allowed("zookeeper", "root", "/a//b");
	assert_not_allowed("zookeeper", "root", "a");
	assert_not_allowed("zookeeper", "root", "/a/../b");
	assert_not_allowed("zookeeper", "root", "/.");
	assert_not_allowed("zookeeper", "root", "/zookeeper");
	assert_not_allowed("zookeeper", "root", "/zookeeper/x");
	assert_not_allowed("zookeeper", "root", "/a b");
}

static void test_servers(void **state)
{
	(void)state;
	assert_allowed("zookeeper", "servers", "a:1");
	assert_allowed("zookeeper", "servers", "10.0.0.1:2181,zk-2.example.org:65535");
	assert_allowed("zookeeper", "servers", "a:1 , b:2");
	assert_allowed("zookeeper", "servers", "[::1]:2181,[fe80::1%eth0]:2181");
	assert_allowed("zookeeper", "servers", ""); /* standalone */
	assert_not_allowed("zookeeper", "servers", "a");
	assert_not_allowed("zookeeper", "servers", "a:");
	assert_not_allowed("zookeeper", "servers", ":2181");
	assert_not_allowed("zookeeper", "servers", "a:0");
	assert_not_allowed("zookeeper", "servers", "a:65536");
	assert_not_allowed("zookeeper", "servers", "a:12345678901");
	assert_not_allowed("zookeeper", "servers", "a:1,,b:2");
	assert_not_allowed("zookeeper", "servers", ",");
	assert_not_allowed("zookeeper", "servers", "::1:2181");
	assert_not_allowed("zookeeper", "servers", "[::1]2181");
	assert_not_allowed("zookeeper", "servers", "[]:2181");
	assert_not_allowed("zookeeper", "servers", "a:1/chroot");
	assert_not_allowed("zookeeper", "servers", "a b:1");
}

static void test_a_file_is_read(void **state)
{
	struct conf c;

	(void)state;
	conf_init(&c);
	read_text(&c,
		  "# comment\n; another\n\n[locks]\nlinger_ms=0\n  \n[zookeeper]\nhost : h1 ; inline\n"
		  "servers = a:1,\n  b:2\n\t[::1]:3,\n[daemon]\nsocket_mode = 0600\n[locks]\nhandoff_max = 1",
		  NULL);
	assert_int_equal(c.linger_ms, 0);
	assert_string_equal(c.host, "h1");
	assert_string_equal(c.servers, "a:1,b:2,[::1]:3,");
	assert_int_equal(c.socket_mode, 0600);
	assert_int_equal(c.handoff_max, 1);
	conf_free(&c);
}

static void test_errors_name_the_line_the_key_the_value_and_what_is_allowed(void **state)
{
	char text[400];

	(void)state;
	assert_refused("[locks]\n\nhandoff_max = many\n",
		       "FILE:3: locks.handoff_max = many: must be a number from 0 to 1000000");
	assert_refused("[daemon]\nsocket_mode = 0999\n", "FILE:2: daemon.socket_mode = 0999: must be an octal number");
	assert_refused("[daemon]\nlog_level = loud\n",
		       "FILE:2: daemon.log_level = loud: must be error, warning, info or debug");
	assert_refused("[daemon]\nnonsense = 1\n", "FILE:2: daemon.nonsense: unknown key");
	assert_refused("\n[nonsense]\na = 1\n", "FILE:2: [nonsense]: unknown section");
	assert_refused("[nonsense]\n", "FILE:1: [nonsense]: unknown section");
	assert_refused("linger_ms = 1\n", "FILE:1: a key outside a section");
	assert_refused("[locks]\nlinger_ms\n", "FILE:2: neither a [section] nor KEY = VALUE nor a comment");
	assert_refused("[locks\nlinger_ms = 1\n", "FILE:1: ");
	assert_refused("[locks]\nlinger_ms = 1\nhandoff_ms = 1\nlinger_ms = 1\n",
		       "FILE:4: locks.linger_ms = 1: the key is already set in line 2");
	assert_refused("[locks]\nlinger_ms = 1\n  handoff_ms = 1\n", "an indented line continues the one before");
	assert_refused("[zookeeper]\nservers = a:1,\n  b\n", "FILE:3: zookeeper.servers = a:1,b: must be host:port");
	assert_refused("[zookeeper]\nservers = a:1\nservers = b:1\n",
		       "FILE:3: zookeeper.servers = b:1: the key is already");
	snprintf(text, sizeof(text), "[daemon]\nsocket = /%0300d\n", 0);
	assert_refused(text, "FILE:2: the line is longer than");
	/* The first error is the one that is told. */
	assert_refused("[locks]\nlinger_ms = x\nnonsense\n", "FILE:2: locks.linger_ms");
	assert_refused("[locks]\nnonsense\nlinger_ms = x\n", "FILE:2: neither");
}

static void test_a_missing_file_is_an_error(void **state)
{
	char error[CONF_ERROR_MAX];
	struct conf c;

	(void)state;
	conf_init(&c);
	assert_int_equal(conf_read(&c, "/nonexistent/x.conf", error), -ENOENT);
	assert_string_equal(error, "/nonexistent/x.conf: No such file or directory");
	conf_free(&c);
}

static void test_overrides(void **state)
{
	char error[CONF_ERROR_MAX];
	struct conf c;

	(void)state;
	conf_init(&c);
	read_text(&c, "[locks]\nlinger_ms = 5\n", NULL);
	assert_int_equal(conf_override(&c, "locks.linger_ms=7", error), 0);
	assert_int_equal(c.linger_ms, 7);
	assert_int_equal(conf_override(&c, "locks.linger_ms=8", error), 0);
	assert_int_equal(c.linger_ms, 8);
	/* A dot or an equals sign in the value is the value's. */
	assert_int_equal(conf_override(&c, "daemon.socket=/a.b=c", error), 0);
	assert_string_equal(c.socket, "/a.b=c");
	assert_int_equal(conf_override(&c, "zookeeper.servers=", error), 0);
	assert_string_equal(c.servers, "");
	assert_int_equal(conf_override(&c, "locks.linger_ms=x", error), -EINVAL);
	assert_string_equal(error, "-o: locks.linger_ms = x: must be a number from 0 to 60000");
	assert_int_equal(conf_override(&c, "locks.nonsense=1", error), -EINVAL);
	assert_string_equal(error, "-o: locks.nonsense=1: unknown key locks.nonsense");
	assert_int_equal(conf_override(&c, "nonsense.linger_ms=1", error), -EINVAL);
	assert_string_equal(error, "-o: [nonsense]: unknown section");
	assert_int_equal(conf_override(&c, "locks.linger_ms", error), -EINVAL);
	assert_int_equal(conf_override(&c, "linger_ms=1", error), -EINVAL);
	assert_int_equal(conf_override(&c, "linger_ms=1.5", error), -EINVAL);
	assert_int_equal(conf_override(&c, "", error), -EINVAL);
	assert_int_equal(conf_override(&c, "=", error), -EINVAL);
	conf_free(&c);
}

static void assert_finish(int rc, bool standalone, const char *one, const char *two)
{
	char error[CONF_ERROR_MAX] = "";
	struct conf c;

	conf_init(&c);
	assert_int_equal(conf_override(&c, one, error), 0);
	assert_int_equal(conf_override(&c, two, error), 0);
	if (conf_finish(&c, standalone, error) != rc)
		fail_msg("%s %s: %s", one, two, error);
	conf_free(&c);
}

static void test_numbers_against_each_other(void **state)
{
	(void)state;
	assert_finish(0, false, "zookeeper.session_timeout_ms=15000", "zookeeper.tick_ms=3000");
	assert_finish(-EINVAL, false, "zookeeper.session_timeout_ms=14999", "zookeeper.tick_ms=3000");
	assert_finish(0, true, "zookeeper.session_timeout_ms=14999", "zookeeper.tick_ms=3000");
	assert_finish(0, false, "zookeeper.session_timeout_ms=15000", "locks.grant_min_ms=4999");
	assert_finish(-EINVAL, false, "zookeeper.session_timeout_ms=15000", "locks.grant_min_ms=5000");
	assert_finish(-EINVAL, false, "zookeeper.servers=", "zookeeper.host=h");
	assert_finish(0, true, "zookeeper.servers=", "zookeeper.host=h");
}

static void test_an_empty_host_is_the_machine(void **state)
{
	char error[CONF_ERROR_MAX], name[256];
	struct conf c;

	(void)state;
	assert_int_equal(gethostname(name, sizeof(name)), 0);
	conf_init(&c);
	if (conf_finish(&c, false, error) == 0)
		assert_string_equal(c.host, name);
	conf_free(&c);
}

static char *printed(const struct conf *c)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	conf_print(c, out);
	fclose(out);
	return text;
}

static void test_what_is_printed_can_be_read_back(void **state)
{
	struct conf c, back;
	char error[CONF_ERROR_MAX], *text, *again;

	(void)state;
	conf_init(&c);
	assert_int_equal(conf_override(&c, "daemon.socket=/run/a b #c", error), 0);
	assert_int_equal(conf_override(&c, "daemon.socket_mode=7", error), 0);
	assert_int_equal(conf_override(&c, "limits.locks=77", error), 0);
	assert_int_equal(
		conf_override(&c,
			      "zookeeper.servers=zookeeper-1.some.example.org:2181,zookeeper-2.some.example.org:2181,"
			      "zookeeper-3.some.example.org:2181,zookeeper-4.some.example.org:2181,"
			      "zookeeper-5.some.example.org:2181,zookeeper-6.some.example.org:2181",
			      error),
		0);
	text = printed(&c);
	conf_init(&back);
	read_text(&back, text, NULL);
	assert_string_equal(back.servers, c.servers);
	assert_string_equal(back.socket, c.socket);
	again = printed(&back);
	assert_string_equal(again, text);
	free(text);
	free(again);
	conf_free(&c);
	conf_free(&back);
}

/* The test runs in the project's directory. */
static void test_the_sample_shows_the_defaults(void **state)
{
	FILE *in = fopen("conf/lockbroker.conf", "re");
	char sample[16384], *text;
	struct conf c;
	size_t len;

	(void)state;
	assert_non_null(in);
	len = fread(sample, 1, sizeof(sample) - 1, in);
	sample[len] = '\0';
	fclose(in);
	conf_init(&c);
	text = printed(&c);
	assert_string_equal(sample, text);
	free(text);
	read_text(&c, sample, NULL);
	conf_free(&c);
}

/* ---- [prefix:...] ---- */

static void assert_prefix_allowed(const char *prefix, bool allowed)
{
	char error[CONF_ERROR_MAX] = "", text[200];
	struct conf c;
	int rc;

	conf_init(&c);
	snprintf(text, sizeof(text), "[prefix:%s]\nflavour = kazoo\n", prefix);
	rc = read_text(&c, text, error);
	if (allowed) {
		if (rc < 0)
			fail_msg("%s", error);
		assert_int_equal(c.prefix_count, 1);
		assert_string_equal(c.prefixes[0].prefix, prefix);
		assert_int_equal(c.prefixes[0].flavour, CONF_FLAVOUR_KAZOO);
	} else {
		if (rc != -EINVAL || !strstr(error, "FILE:1: [prefix:") ||
		    !strstr(error, "]: the prefix must be 1 to 42"))
			fail_msg("[prefix:%s]: \"%s\"", prefix, error);
		assert_int_equal(c.prefix_count, 0);
	}
	conf_free(&c);
	/* And by -o, where a bracket does not end it. */
	conf_init(&c);
	snprintf(text, sizeof(text), "prefix:%s.flavour=kazoo", prefix);
	assert_int_equal(conf_override(&c, text, error), allowed ? 0 : -EINVAL);
	if (allowed)
		assert_string_equal(c.prefixes[0].prefix, prefix);
	else if (!strstr(error, "-o: [prefix:") || !strstr(error, "]: the prefix must be 1 to 42"))
		fail_msg("%s: \"%s\"", text, error);
	conf_free(&c);
}

static void test_what_a_prefix_may_be(void **state)
{
	char prefix[100];

	(void)state;
	assert_prefix_allowed("a", true);
	assert_prefix_allowed("app/", true);
	assert_prefix_allowed(".x", true);
	assert_prefix_allowed("a.b/.c", true);
	assert_prefix_allowed("a: [b#c", true);
	assert_prefix_allowed("\xc2\xa0", true);
	assert_prefix_allowed("\xc3\xbc/\xe2\x82\xac/\xf0\x9f\x94\x92", true);
	/* What inih's section holds to the byte, and one more: never cut. */
	fill(prefix, 42, 'p', 'x');
	assert_prefix_allowed(prefix, true);
	fill(prefix, 43, 'p', 'x');
	assert_prefix_allowed(prefix, false);
	fill(prefix, 90, 'p', 'x');
	assert_prefix_allowed(prefix, false);
	assert_prefix_allowed("", false);
	assert_prefix_allowed(" ", false);
	assert_prefix_allowed(" a", false);
	assert_prefix_allowed("a ", false);
	assert_prefix_allowed("a;b", false);
	assert_prefix_allowed("a ;b", false);
	assert_prefix_allowed("a\tb", false);
	assert_prefix_allowed("a\x01", false);
	assert_prefix_allowed("a\x7f", false);
	assert_prefix_allowed("\xc2\x80", false);
	assert_prefix_allowed("\xc2\x9f", false);
	assert_prefix_allowed("\x80", false);
	assert_prefix_allowed("\xc3", false);
	assert_prefix_allowed("\xc3(", false);
	assert_prefix_allowed("\xc0\xaf", false);
	assert_prefix_allowed("\xe0\x80\xaf", false);
	assert_prefix_allowed("\xed\xa0\x80", false);
	assert_prefix_allowed("\xf4\x90\x80\x80", false);
	assert_prefix_allowed("\xf8\x88\x80\x80\x80", false);
	assert_prefix_allowed("\xf9\x80\x80\x80", false);
	assert_prefix_allowed("\xbf\xbf", false);
}

static void test_prefixes_are_read(void **state)
{
	char error[CONF_ERROR_MAX];
	struct conf c;

	(void)state;
	conf_init(&c);
	assert_int_equal(c.prefix_count, 0);
	read_text(&c,
		  "[prefix:app/] ; theirs\nflavour = mutex\n[locks]\nlinger_ms = 3\n[prefix:empty]\n"
		  "[prefix:app/]  # goes on\n  path = /app/locks ; there\n[prefix:a=b]\nflavour : kazoo",
		  NULL);
	assert_int_equal(c.linger_ms, 3);
	assert_int_equal(c.prefix_count, 3);
	assert_string_equal(c.prefixes[0].prefix, "app/");
	assert_int_equal(c.prefixes[0].flavour, CONF_FLAVOUR_MUTEX);
	assert_string_equal(c.prefixes[0].path, "/app/locks");
	assert_string_equal(c.prefixes[1].prefix, "empty");
	assert_int_equal(c.prefixes[1].flavour, CONF_FLAVOUR_RW);
	assert_string_equal(c.prefixes[1].path, "");
	assert_string_equal(c.prefixes[2].prefix, "a=b");
	assert_int_equal(c.prefixes[2].flavour, CONF_FLAVOUR_KAZOO);
	assert_int_equal(conf_finish(&c, true, error), 0);
	conf_free(&c);
	/* Wherever inih sees a section, also an indented one and one behind a byte order mark. */
	conf_init(&c);
	read_text(&c, "\xef\xbb\xbf[prefix:a]\n  [prefix:b]\nflavour = mutex\n[locks]\n  [prefix:c]\n", NULL);
	assert_int_equal(c.prefix_count, 3);
	assert_int_equal(c.prefixes[0].flavour, CONF_FLAVOUR_RW);
	assert_int_equal(c.prefixes[1].flavour, CONF_FLAVOUR_MUTEX);
	conf_free(&c);
}

static void test_what_is_wrong_with_a_prefix_is_told(void **state)
{
	char text[200];

	(void)state;
	assert_refused("[prefix:app/]\nflavor = rw\n", "FILE:2: prefix:app/.flavor: unknown key");
	assert_refused("[prefix:app/]\nlinger_ms = 1\n", "FILE:2: prefix:app/.linger_ms: unknown key");
	assert_refused("[locks]\nflavour = rw\n", "FILE:2: locks.flavour: unknown key");
	assert_refused("[prefix:app/]\n\nflavour = RW\n",
		       "FILE:3: prefix:app/.flavour = RW: must be rw, mutex or kazoo");
	assert_refused("[prefix:app/]\nflavour =\n", "FILE:2: prefix:app/.flavour = : must be rw, mutex or kazoo");
	assert_refused("[prefix:app/]\npath = app\n",
		       "FILE:2: prefix:app/.path = app: must be an absolute znode path of at most 150 bytes");
	assert_refused("[prefix:app/]\nflavour = rw\n[prefix:b]\n[prefix:app/]\nflavour = rw\n",
		       "FILE:5: prefix:app/.flavour = rw: the key is already set in line 2");
	assert_refused("[prefix:app/]\nflavour = rw\n  path = /p\n", "an indented line continues the one before");
	assert_refused("[prefix]\n", "FILE:1: [prefix]: unknown section");
	assert_refused("[prefix:a\nflavour = rw\n", "FILE:1: neither a [section]");
	/* inih would go on with the prefix "a". */
	assert_refused("[prefix:a]b]\nflavour = rw\n", "FILE:1: [prefix:a]: more behind the closing bracket");
	assert_refused("[prefix:a]#b]\n", "FILE:1: [prefix:a]: more behind the closing bracket");
	assert_refused("[locks] linger_ms = 1\n", "FILE:1: [locks]: more behind the closing bracket");
	/* ... and cut this one. */
	snprintf(text, sizeof(text), "\xef\xbb\xbf[prefix:%043d]\nflavour = rw\n", 0);
	assert_refused(text, "FILE:1: [prefix:0000000000000000000000000000000000000000000]: the prefix must be");
	snprintf(text, sizeof(text), "  [prefix:%043d]\nflavour = rw\n", 0);
	assert_refused(text, "FILE:1: [prefix:0000000000000000000000000000000000000000000]: the prefix must be");
}

static void test_the_path_of_a_prefix(void **state)
{
	char path[200];

	(void)state;
	assert_allowed("prefix:a", "path", "");
	assert_allowed("prefix:a", "path", "/a");
	assert_allowed("prefix:a", "path", "/app/locks");
	fill(path, 150, '/', 'x');
	assert_allowed("prefix:a", "path", path);
	fill(path, 151, '/', 'x');
	assert_not_allowed("prefix:a", "path", path);
	assert_not_allowed("prefix:a", "path", "/");
	assert_not_allowed("prefix:a", "path", "/a/");
	assert_not_allowed("prefix:a", "path", "/a//b");
	assert_not_allowed("prefix:a", "path", "/a/..");
	assert_not_allowed("prefix:a", "path", "a");
	assert_not_allowed("prefix:a", "path", "/zookeeper");
	assert_not_allowed("prefix:a", "path", "/zookeeper/x");
}

static void test_prefixes_by_option(void **state)
{
	char error[CONF_ERROR_MAX];
	struct conf c;

	(void)state;
	conf_init(&c);
	read_text(&c, "[prefix:app/]\nflavour = mutex\npath = /x\n", NULL);
	assert_int_equal(conf_override(&c, "prefix:app/.path=/app/locks", error), 0);
	assert_int_equal(conf_override(&c, "prefix:v1.2/.flavour=kazoo", error), 0);
	assert_int_equal(conf_override(&c, "prefix:v1.2/.path=/a.b=c", error), 0);
	assert_int_equal(conf_override(&c, "prefix:v1.2/.flavour=rw", error), 0);
	assert_int_equal(conf_override(&c, "prefix:v1.2/.flavour=mutex", error), 0);
	assert_int_equal(c.prefix_count, 2);
	assert_int_equal(c.prefixes[0].flavour, CONF_FLAVOUR_MUTEX);
	assert_string_equal(c.prefixes[0].path, "/app/locks");
	assert_string_equal(c.prefixes[1].prefix, "v1.2/");
	assert_int_equal(c.prefixes[1].flavour, CONF_FLAVOUR_MUTEX);
	assert_string_equal(c.prefixes[1].path, "/a.b=c");
	assert_int_equal(conf_override(&c, "prefix:app/.flavour=x", error), -EINVAL);
	assert_string_equal(error, "-o: prefix:app/.flavour = x: must be rw, mutex or kazoo");
	assert_int_equal(conf_override(&c, "prefix:app/.nonsense=x", error), -EINVAL);
	assert_string_equal(error, "-o: prefix:app/.nonsense=x: unknown key prefix:app/.nonsense");
	assert_int_equal(conf_override(&c, "prefix:app/=mutex", error), -EINVAL);
	assert_string_equal(error, "-o: prefix:app/=mutex: must be SECTION.KEY=VALUE");
	/* What follows the first equals sign is the value: such a prefix is for the file. */
	assert_int_equal(conf_override(&c, "prefix:a=b.flavour=rw", error), -EINVAL);
	assert_int_equal(conf_override(&c, "prefix:a]b.flavour=rw", error), -EINVAL);
	assert_non_null(strstr(error, "-o: [prefix:a]b]: the prefix must be"));
	assert_int_equal(conf_override(&c, "prefix.flavour=rw", error), -EINVAL);
	assert_string_equal(error, "-o: [prefix]: unknown section");
	assert_int_equal(c.prefix_count, 2);
	conf_free(&c);
}

static void test_not_more_prefixes_than_allowed(void **state)
{
	char text[CONF_PREFIXES_MAX * 16 + 64], error[CONF_ERROR_MAX];
	size_t len = 0, i;
	struct conf c;

	(void)state;
	for (i = 0; i < CONF_PREFIXES_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "[prefix:%zu]\n", i);
	conf_init(&c);
	read_text(&c, text, NULL);
	assert_int_equal(c.prefix_count, CONF_PREFIXES_MAX);
	assert_string_equal(c.prefixes[CONF_PREFIXES_MAX - 1].prefix, "63");
	assert_int_equal(conf_override(&c, "prefix:7.flavour=kazoo", error), 0);
	assert_int_equal(c.prefixes[7].flavour, CONF_FLAVOUR_KAZOO);
	assert_int_equal(conf_override(&c, "prefix:x.flavour=rw", error), -EINVAL);
	assert_string_equal(error, "-o: [prefix:x]: more than 64 prefixes");
	conf_free(&c);
	snprintf(text + len, sizeof(text) - len, "[prefix:0]\n[prefix:x]\n[prefix:y]\n");
	assert_refused(text, "FILE:66: [prefix:x]: more than 64 prefixes");
}

static void assert_paths(int expected, const char *root, const char *a, const char *b)
{
	char error[CONF_ERROR_MAX] = "", text[600];
	struct conf c;
	int rc;

	conf_init(&c);
	snprintf(text, sizeof(text), "[zookeeper]\nhost = h\nroot = %s\n[prefix:a]\npath = %s\n[prefix:b]\npath = %s\n",
		 root, a, b);
	read_text(&c, text, NULL);
	rc = conf_finish(&c, false, error);
	if (rc != expected)
		fail_msg("%s %s %s: %d %s", root, a, b, rc, error);
	if (rc < 0 && strncmp(error, "prefix:a.path: ", 15) != 0 && strncmp(error, "prefix:b.path: ", 15) != 0)
		fail_msg("%s", error);
	/* Without ZooKeeper there are no directories. */
	assert_int_equal(conf_finish(&c, true, error), 0);
	conf_free(&c);
}

static void test_no_path_inside_another(void **state)
{
	char error[CONF_ERROR_MAX];
	struct conf c;

	(void)state;
	assert_paths(0, "/r", "", "");
	assert_paths(0, "/r", "/a", "/b");
	assert_paths(0, "/r", "/ra", "/rab");
	assert_paths(0, "/r/a", "/r/b", "/r/c");
	assert_paths(0, "/r", "/a/b", "/a/bc");
	assert_paths(0, "/r", "/a/bc", "/a/b");
	assert_paths(-EINVAL, "/r", "/r", "");
	assert_paths(-EINVAL, "/r", "", "/r");
	assert_paths(-EINVAL, "/r", "/r/a", "");
	assert_paths(-EINVAL, "/r/a", "/r", "");
	assert_paths(-EINVAL, "/r", "/a", "/a");
	assert_paths(-EINVAL, "/r", "/a", "/a/b");
	assert_paths(-EINVAL, "/r", "/a/b", "/a");
	assert_paths(-EINVAL, "/r", "/a/b/c", "/a");

	conf_init(&c);
	assert_int_equal(conf_override(&c, "prefix:x/.path=/lockbroker/x", error), 0);
	assert_int_equal(conf_finish(&c, false, error), -EINVAL);
	assert_string_equal(error, "prefix:x/.path: /lockbroker/x must be neither inside nor around "
				   "zookeeper.root = /lockbroker");
	assert_int_equal(conf_override(&c, "prefix:x/.path=/x", error), 0);
	assert_int_equal(conf_override(&c, "prefix:y/.path=/x", error), 0);
	assert_int_equal(conf_finish(&c, false, error), -EINVAL);
	assert_string_equal(error, "prefix:y/.path: /x must be neither inside nor around prefix:x/.path = /x");
	conf_free(&c);
}

static void test_printed_prefixes_can_be_read_back(void **state)
{
	char error[CONF_ERROR_MAX], longest[43], path[151], option[300], *text, *again;
	struct conf c, back;
	size_t i;

	(void)state;
	conf_init(&c);
	fill(longest, 42, '#', 'x');
	fill(path, 150, '/', 'x');
	snprintf(option, sizeof(option), "prefix:%s.path=%s", longest, path);
	assert_int_equal(conf_override(&c, option, error), 0);
	assert_int_equal(conf_override(&c, "prefix:[\xc3\xbc .:#.flavour=kazoo", error), 0);
	assert_int_equal(conf_override(&c, "prefix:app/.flavour=mutex", error), 0);
	assert_int_equal(conf_override(&c, "prefix:app/.path=/app/locks", error), 0);
	read_text(&c, "[prefix:a=b]\n", NULL);
	assert_int_equal(c.prefix_count, 4);
	text = printed(&c);
	conf_init(&back);
	read_text(&back, text, NULL);
	assert_int_equal(back.prefix_count, c.prefix_count);
	for (i = 0; i < c.prefix_count; i++) {
		assert_string_equal(back.prefixes[i].prefix, c.prefixes[i].prefix);
		assert_int_equal(back.prefixes[i].flavour, c.prefixes[i].flavour);
		assert_string_equal(back.prefixes[i].path, c.prefixes[i].path);
	}
	again = printed(&back);
	assert_string_equal(again, text);
	free(text);
	free(again);
	conf_free(&c);
	conf_free(&back);
}

/* Without prefixes an example is printed as a comment: what it shows are the defaults, and every key. */
static void test_the_example_of_a_prefix(void **state)
{
	const struct conf_key *key;
	char text[16384] = "", *example, *p;
	struct conf c;
	FILE *out;

	(void)state;
	conf_init(&c);
	out = fmemopen(text, sizeof(text), "w");
	assert_non_null(out);
	conf_print(&c, out);
	fclose(out);
	example = strstr(text, "#[prefix:");
	assert_non_null(example);
	for (key = conf_prefix_keys(); key->name; key++) {
		assert_non_null(strstr(example, key->why));
		assert_non_null(strstr(example, key->name));
	}
	for (p = example; (p = strchr(p, '#')); p++)
		if (p[1] != ' ')
			*p = '\n';
	read_text(&c, example, NULL);
	assert_int_equal(c.prefix_count, 1);
	assert_string_equal(c.prefixes[0].prefix, "app/");
	for (key = conf_prefix_keys(); key->name; key++)
		assert_true(c.prefixes[0].lines[key - conf_prefix_keys()] > 0);
	assert_int_equal(c.prefixes[0].flavour, CONF_FLAVOUR_RW);
	assert_string_equal(c.prefixes[0].path, "");
	conf_free(&c);
}

/* Reading it fails before there is a line to blame. */
static void test_what_cannot_be_read_is_an_error(void **state)
{
	char error[CONF_ERROR_MAX] = "";
	struct conf conf;

	(void)state;
	conf_init(&conf);
	assert_int_equal(conf_read(&conf, "/tmp", error), -EISDIR);
	assert_non_null(strstr(error, "/tmp"));
	assert_int_equal(conf_read(&conf, "/nonexistent/conf", error), -ENOENT);
	conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_at_their_bounds_and_one_past),
		cmocka_unit_test(test_every_key_has_a_default_a_reason_and_is_named_once),
		cmocka_unit_test(test_defaults_are_those_of_the_design),
		cmocka_unit_test(test_what_cannot_be_read_is_an_error),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_a_file_is_read),
		cmocka_unit_test(test_errors_name_the_line_the_key_the_value_and_what_is_allowed),
		cmocka_unit_test(test_a_missing_file_is_an_error),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_numbers_against_each_other),
		cmocka_unit_test(test_an_empty_host_is_the_machine),
		cmocka_unit_test(test_what_is_printed_can_be_read_back),
		cmocka_unit_test(test_the_sample_shows_the_defaults),
		cmocka_unit_test(test_what_a_prefix_may_be),
		cmocka_unit_test(test_prefixes_are_read),
		cmocka_unit_test(test_what_is_wrong_with_a_prefix_is_told),
		cmocka_unit_test(test_the_path_of_a_prefix),
		cmocka_unit_test(test_prefixes_by_option),
		cmocka_unit_test(test_not_more_prefixes_than_allowed),
		cmocka_unit_test(test_no_path_inside_another),
		cmocka_unit_test(test_printed_prefixes_can_be_read_back),
		cmocka_unit_test(test_the_example_of_a_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
