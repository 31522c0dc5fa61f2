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

#undef TEST
#define TEST(name) TEST_WITH(name, conf_begin, conf_end)

/* By the file, and by -o, where a bracket does not end it. */
static void assert_prefixes_allowed(const char *const *prefixes)
{
	char text[200];

	for (; *prefixes; prefixes++) {
		conf_anew();
		snprintf(text, sizeof(text), "[prefix:%s]\nflavour = kazoo\n", *prefixes);
		read_text(&c, text, NULL);
		assert_int_equal(c.broker.prefix_count, 1);
		assert_string_equal(c.broker.prefixes[0].prefix, *prefixes);
		assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_KAZOO);
		conf_anew();
		snprintf(text, sizeof(text), "prefix:%s.flavour=kazoo", *prefixes);
		assert_overridden(text);
		assert_string_equal(c.broker.prefixes[0].prefix, *prefixes);
	}
}

static void assert_prefixes_refused(const char *const *prefixes)
{
	static const char why[] = "]: the prefix must be 1 to 42";
	char text[200];

	conf_anew();
	for (; *prefixes; prefixes++) {
		snprintf(text, sizeof(text), "[prefix:%s]\nflavour = kazoo\n", *prefixes);
		if (read_text(&c, text, conf_error) != -EINVAL || !strstr(conf_error, "FILE:1: [prefix:") ||
		    !strstr(conf_error, why))
			fail_msg("[prefix:%s]: \"%s\"", *prefixes, conf_error);
		assert_int_equal(c.broker.prefix_count, 0);
		snprintf(text, sizeof(text), "prefix:%s.flavour=kazoo", *prefixes);
		if (override(text) != -EINVAL || !strstr(conf_error, "-o: [prefix:") || !strstr(conf_error, why))
			fail_msg("%s: \"%s\"", text, conf_error);
	}
}

TEST(test_what_a_prefix_may_be)
{
	char longest[100], longer[100], much_longer[100];

	/* What inih's section holds to the byte, and one more: never cut. */
	fill(longest, 42, 'p', 'x');
	fill(longer, 43, 'p', 'x');
	fill(much_longer, 90, 'p', 'x');
	assert_prefixes_allowed(VALUES("a", "app/", ".x", "a.b/.c", "a: [b#c", "\xc2\xa0",
				       "\xc3\xbc/\xe2\x82\xac/\xf0\x9f\x94\x92", longest));
	assert_prefixes_refused(VALUES(longer, much_longer, "", " ", " a", "a ", "a;b", "a ;b", "a\tb", "a\x01",
				       "a\x7f", "\xc2\x80", "\xc2\x9f", "\x80", "\xc3", "\xc3(", "\xc0\xaf",
				       "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80",
				       "\xf9\x80\x80\x80", "\xbf\xbf"));
}

TEST(test_prefixes_are_read)
{
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
	assert_int_equal(conf_finish(&c, true, conf_error), 0);
	/* Wherever inih sees a section, also an indented one and one behind a byte order mark. */
	conf_anew();
	read_text(&c, "\xef\xbb\xbf[prefix:a]\n  [prefix:b]\nflavour = mutex\n[locks]\n  [prefix:c]\n", NULL);
	assert_int_equal(c.broker.prefix_count, 3);
	assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_RW);
	assert_int_equal(c.broker.prefixes[1].flavour, FLAVOUR_MUTEX);
}

TEST(test_what_is_wrong_with_a_prefix_is_told)
{
	char text[200];

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
	char longest[200], longer[200];

	fill(longest, 150, '/', 'x');
	fill(longer, 151, '/', 'x');
	assert_allowed("prefix:a", "path", VALUES("", "/a", "/app/locks", longest));
	assert_not_allowed("prefix:a", "path",
			   VALUES(longer, "/", "/a/", "/a//b", "/a/..", "a", "/zookeeper", "/zookeeper/x"));
}

TEST(test_prefixes_by_option)
{
	read_text(&c, "[prefix:app/]\nflavour = mutex\npath = /x\n", NULL);
	assert_overridden("prefix:app/.path=/app/locks");
	assert_overridden("prefix:v1.2/.flavour=kazoo");
	assert_overridden("prefix:v1.2/.path=/a.b=c");
	assert_overridden("prefix:v1.2/.flavour=rw");
	assert_overridden("prefix:v1.2/.flavour=mutex");
	assert_int_equal(c.broker.prefix_count, 2);
	assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_MUTEX);
	assert_string_equal(c.broker.prefixes[0].path, "/app/locks");
	assert_string_equal(c.broker.prefixes[1].prefix, "v1.2/");
	assert_int_equal(c.broker.prefixes[1].flavour, FLAVOUR_MUTEX);
	assert_string_equal(c.broker.prefixes[1].path, "/a.b=c");
	assert_override_refused("prefix:app/.flavour=x", "-o: prefix:app/.flavour = x: must be rw, mutex or kazoo");
	assert_override_refused("prefix:app/.nonsense=x",
				"-o: prefix:app/.nonsense=x: unknown key prefix:app/.nonsense");
	assert_override_refused("prefix:app/=mutex", "-o: prefix:app/=mutex: must be SECTION.KEY=VALUE");
	/* What follows the first equals sign is the value: such a prefix is for the file. */
	assert_int_equal(override("prefix:a=b.flavour=rw"), -EINVAL);
	assert_int_equal(override("prefix:a]b.flavour=rw"), -EINVAL);
	assert_non_null(strstr(conf_error, "-o: [prefix:a]b]: the prefix must be"));
	assert_override_refused("prefix.flavour=rw", "-o: [prefix]: unknown section");
	assert_int_equal(c.broker.prefix_count, 2);
}

TEST(test_not_more_prefixes_than_allowed)
{
	char text[CONF_PREFIXES_MAX * 16 + 64];
	size_t len = 0, i;

	for (i = 0; i < CONF_PREFIXES_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "[prefix:%zu]\n", i);
	read_text(&c, text, NULL);
	assert_int_equal(c.broker.prefix_count, CONF_PREFIXES_MAX);
	assert_string_equal(c.broker.prefixes[CONF_PREFIXES_MAX - 1].prefix, "63");
	assert_overridden("prefix:7.flavour=kazoo");
	assert_int_equal(c.broker.prefixes[7].flavour, FLAVOUR_KAZOO);
	assert_override_refused("prefix:x.flavour=rw", "-o: [prefix:x]: more than 64 prefixes");
	snprintf(text + len, sizeof(text) - len, "[prefix:0]\n[prefix:x]\n[prefix:y]\n");
	assert_refused(text, "FILE:66: [prefix:x]: more than 64 prefixes");
}

static void assert_paths(int expected, const char *root, const char *a, const char *b)
{
	char text[600];
	int rc;

	conf_anew();
	snprintf(text, sizeof(text), "[zookeeper]\nhost = h\nroot = %s\n[prefix:a]\npath = %s\n[prefix:b]\npath = %s\n",
		 root, a, b);
	read_text(&c, text, NULL);
	rc = conf_finish(&c, false, conf_error);
	if (rc != expected)
		fail_msg("%s %s %s: %d %s", root, a, b, rc, conf_error);
	if (rc < 0 && !strstr(conf_error, ":5: prefix:a.path: ") && !strstr(conf_error, ":7: prefix:b.path: "))
		fail_msg("%s", conf_error);
	/* Without ZooKeeper there are no directories. */
	assert_int_equal(conf_finish(&c, true, conf_error), 0);
}

TEST(test_no_path_inside_another)
{
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

	conf_anew();
	assert_overridden("prefix:x/.path=/lockbroker/x");
	assert_int_equal(conf_finish(&c, false, conf_error), -EINVAL);
	assert_string_equal(conf_error, "prefix:x/.path: /lockbroker/x must be neither inside nor around "
					"zookeeper.root = /lockbroker");
	assert_overridden("prefix:x/.path=/x");
	assert_overridden("prefix:y/.path=/x");
	assert_int_equal(conf_finish(&c, false, conf_error), -EINVAL);
	assert_string_equal(conf_error, "prefix:y/.path: /x must be neither inside nor around prefix:x/.path = /x");
}

TEST(test_printed_prefixes_can_be_read_back)
{
	char longest[43], path[151], option[300];
	struct conf back;

	fill(longest, 42, '#', 'x');
	fill(path, 150, '/', 'x');
	snprintf(option, sizeof(option), "prefix:%s.path=%s", longest, path);
	assert_overridden(option);
	assert_overridden("prefix:[\xc3\xbc .:#.flavour=kazoo");
	assert_overridden("prefix:app/.flavour=mutex");
	assert_overridden("prefix:app/.path=/app/locks");
	read_text(&c, "[prefix:a=b]\n", NULL);
	assert_int_equal(c.broker.prefix_count, 4);
	assert_printed_again(&c, &back);
	assert_int_equal(back.broker.prefix_count, c.broker.prefix_count);
	for (size_t i = 0; i < c.broker.prefix_count; i++) {
		assert_string_equal(back.broker.prefixes[i].prefix, c.broker.prefixes[i].prefix);
		assert_int_equal(back.broker.prefixes[i].flavour, c.broker.prefixes[i].flavour);
		assert_string_equal(back.broker.prefixes[i].path, c.broker.prefixes[i].path);
	}
	conf_free(&back);
}

/* Without prefixes an example is printed as a comment: what it shows are the defaults, and every key. */
TEST(test_the_example_of_a_prefix)
{
	const struct conf_key *key;
	char *text = printed(&c), *example, *p;

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
	free(text);
}
