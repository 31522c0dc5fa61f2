/* SPDX-License-Identifier: Apache-2.0 */
/* [prefix:...] in the configuration: what a prefix and its path may be, how many, printed and read back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "conf_fixture.h"

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
		assert_int_equal(c.broker.prefix_count, 1);
		assert_string_equal(c.broker.prefixes[0].prefix, prefix);
		assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_KAZOO);
	} else {
		if (rc != -EINVAL || !strstr(error, "FILE:1: [prefix:") ||
		    !strstr(error, "]: the prefix must be 1 to 42"))
			fail_msg("[prefix:%s]: \"%s\"", prefix, error);
		assert_int_equal(c.broker.prefix_count, 0);
	}
	conf_free(&c);
	/* And by -o, where a bracket does not end it. */
	conf_init(&c);
	snprintf(text, sizeof(text), "prefix:%s.flavour=kazoo", prefix);
	assert_int_equal(conf_override(&c, text, error), allowed ? 0 : -EINVAL);
	if (allowed)
		assert_string_equal(c.broker.prefixes[0].prefix, prefix);
	else if (!strstr(error, "-o: [prefix:") || !strstr(error, "]: the prefix must be 1 to 42"))
		fail_msg("%s: \"%s\"", text, error);
	conf_free(&c);
}

TEST(test_what_a_prefix_may_be)
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

TEST(test_prefixes_are_read)
{
	char error[CONF_ERROR_MAX] = "";
	struct conf c;

	(void)state;
	conf_init(&c);
	assert_int_equal(c.broker.prefix_count, 0);
	read_text(&c,
		  "[prefix:app/] ; theirs\nflavour = mutex\n[locks]\nlinger_ms = 3\n[prefix:empty]\n"
		  "[prefix:app/]  # goes on\n  path = /app/locks ; there\n[prefix:a=b]\nflavour : kazoo",
		  NULL);
	assert_int_equal(c.broker.linger_ns, 3 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.prefix_count, 3);
	assert_string_equal(c.broker.prefixes[0].prefix, "app/");
	assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_MUTEX);
	assert_string_equal(c.broker.prefixes[0].path, "/app/locks");
	assert_string_equal(c.broker.prefixes[1].prefix, "empty");
	assert_int_equal(c.broker.prefixes[1].flavour, FLAVOUR_RW);
	assert_string_equal(c.broker.prefixes[1].path, "");
	assert_string_equal(c.broker.prefixes[2].prefix, "a=b");
	assert_int_equal(c.broker.prefixes[2].flavour, FLAVOUR_KAZOO);
	assert_int_equal(conf_finish(&c, true, error), 0);
	conf_free(&c);
	/* Wherever inih sees a section, also an indented one and one behind a byte order mark. */
	conf_init(&c);
	read_text(&c, "\xef\xbb\xbf[prefix:a]\n  [prefix:b]\nflavour = mutex\n[locks]\n  [prefix:c]\n", NULL);
	assert_int_equal(c.broker.prefix_count, 3);
	assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_RW);
	assert_int_equal(c.broker.prefixes[1].flavour, FLAVOUR_MUTEX);
	conf_free(&c);
}

TEST(test_what_is_wrong_with_a_prefix_is_told)
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
	assert_refused("[prefix:a\nflavour = rw\n", "FILE:1: the line is neither a [section]");
	/* inih would go on with the prefix "a". */
	assert_refused("[prefix:a]b]\nflavour = rw\n", "FILE:1: [prefix:a]: something follows the closing bracket");
	assert_refused("[prefix:a]#b]\n", "FILE:1: [prefix:a]: something follows the closing bracket");
	assert_refused("[locks] linger_ms = 1\n", "FILE:1: [locks]: something follows the closing bracket");
	/* ... and cut this one. */
	snprintf(text, sizeof(text), "\xef\xbb\xbf[prefix:%043d]\nflavour = rw\n", 0);
	assert_refused(text, "FILE:1: [prefix:0000000000000000000000000000000000000000000]: the prefix must be");
	snprintf(text, sizeof(text), "  [prefix:%043d]\nflavour = rw\n", 0);
	assert_refused(text, "FILE:1: [prefix:0000000000000000000000000000000000000000000]: the prefix must be");
}

TEST(test_the_path_of_a_prefix)
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

static int override(struct conf *conf, const char *text, char *error)
{
	error[0] = '\0';
	return conf_override(conf, text, error);
}

TEST(test_prefixes_by_option)
{
	char error[CONF_ERROR_MAX] = "";
	struct conf c;

	(void)state;
	conf_init(&c);
	read_text(&c, "[prefix:app/]\nflavour = mutex\npath = /x\n", NULL);
	assert_int_equal(override(&c, "prefix:app/.path=/app/locks", error), 0);
	assert_int_equal(override(&c, "prefix:v1.2/.flavour=kazoo", error), 0);
	assert_int_equal(override(&c, "prefix:v1.2/.path=/a.b=c", error), 0);
	assert_int_equal(override(&c, "prefix:v1.2/.flavour=rw", error), 0);
	assert_int_equal(override(&c, "prefix:v1.2/.flavour=mutex", error), 0);
	assert_int_equal(c.broker.prefix_count, 2);
	assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_MUTEX);
	assert_string_equal(c.broker.prefixes[0].path, "/app/locks");
	assert_string_equal(c.broker.prefixes[1].prefix, "v1.2/");
	assert_int_equal(c.broker.prefixes[1].flavour, FLAVOUR_MUTEX);
	assert_string_equal(c.broker.prefixes[1].path, "/a.b=c");
	assert_int_equal(override(&c, "prefix:app/.flavour=x", error), -EINVAL);
	assert_string_equal(error, "-o: prefix:app/.flavour = x: must be rw, mutex or kazoo");
	assert_int_equal(override(&c, "prefix:app/.nonsense=x", error), -EINVAL);
	assert_string_equal(error, "-o: prefix:app/.nonsense=x: unknown key prefix:app/.nonsense");
	assert_int_equal(override(&c, "prefix:app/=mutex", error), -EINVAL);
	assert_string_equal(error, "-o: prefix:app/=mutex: must be SECTION.KEY=VALUE");
	/* What follows the first equals sign is the value: such a prefix is for the file. */
	assert_int_equal(override(&c, "prefix:a=b.flavour=rw", error), -EINVAL);
	assert_int_equal(override(&c, "prefix:a]b.flavour=rw", error), -EINVAL);
	assert_non_null(strstr(error, "-o: [prefix:a]b]: the prefix must be"));
	assert_int_equal(override(&c, "prefix.flavour=rw", error), -EINVAL);
	assert_string_equal(error, "-o: [prefix]: unknown section");
	assert_int_equal(c.broker.prefix_count, 2);
	conf_free(&c);
}

TEST(test_not_more_prefixes_than_allowed)
{
	char text[CONF_PREFIXES_MAX * 16 + 64], error[CONF_ERROR_MAX] = "";
	size_t len = 0, i;
	struct conf c;

	(void)state;
	for (i = 0; i < CONF_PREFIXES_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "[prefix:%zu]\n", i);
	conf_init(&c);
	read_text(&c, text, NULL);
	assert_int_equal(c.broker.prefix_count, CONF_PREFIXES_MAX);
	assert_string_equal(c.broker.prefixes[CONF_PREFIXES_MAX - 1].prefix, "63");
	assert_int_equal(conf_override(&c, "prefix:7.flavour=kazoo", error), 0);
	assert_int_equal(c.broker.prefixes[7].flavour, FLAVOUR_KAZOO);
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
	if (rc < 0 && !strstr(error, ":5: prefix:a.path: ") && !strstr(error, ":7: prefix:b.path: "))
		fail_msg("%s", error);
	/* Without ZooKeeper there are no directories. */
	assert_int_equal(conf_finish(&c, true, error), 0);
	conf_free(&c);
}

TEST(test_no_path_inside_another)
{
	char error[CONF_ERROR_MAX] = "";
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
	error[0] = '\0';
	assert_int_equal(conf_override(&c, "prefix:x/.path=/x", error), 0);
	assert_int_equal(conf_override(&c, "prefix:y/.path=/x", error), 0);
	assert_int_equal(conf_finish(&c, false, error), -EINVAL);
	assert_string_equal(error, "prefix:y/.path: /x must be neither inside nor around prefix:x/.path = /x");
	conf_free(&c);
}

TEST(test_printed_prefixes_can_be_read_back)
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
	assert_int_equal(c.broker.prefix_count, 4);
	text = printed(&c);
	conf_init(&back);
	read_text(&back, text, NULL);
	assert_int_equal(back.broker.prefix_count, c.broker.prefix_count);
	for (i = 0; i < c.broker.prefix_count; i++) {
		assert_string_equal(back.broker.prefixes[i].prefix, c.broker.prefixes[i].prefix);
		assert_int_equal(back.broker.prefixes[i].flavour, c.broker.prefixes[i].flavour);
		assert_string_equal(back.broker.prefixes[i].path, c.broker.prefixes[i].path);
	}
	again = printed(&back);
	assert_string_equal(again, text);
	free(text);
	free(again);
	conf_free(&c);
	conf_free(&back);
}

/* Without prefixes an example is printed as a comment: what it shows are the defaults, and every key. */
TEST(test_the_example_of_a_prefix)
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
	assert_int_equal(c.broker.prefix_count, 1);
	assert_string_equal(c.broker.prefixes[0].prefix, "app/");
	for (key = conf_prefix_keys(); key->name; key++)
		assert_true(c.prefix_origins[0][key - conf_prefix_keys()].line > 0);
	assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_RW);
	assert_string_equal(c.broker.prefixes[0].path, "");
	conf_free(&c);
}
