/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the configuration (conf_file.h): all errors at once, drop-ins and their order, what is refused or left alone. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "io/conf/conf_file.h"
#include "conf_fixture.h"

/* A directory with the file and its drop-ins; errors are shown without its path. */
static char dir[32], file[96];

static int make_place(void **state)
{
	char drop_ins[256];

	snprintf(dir, sizeof(dir), "/tmp/test_conf_file.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/f", dir);
	snprintf(drop_ins, sizeof(drop_ins), "%s.d", file);
	assert_int_equal(mkdir(drop_ins, 0755), 0);
	return conf_begin(state);
}

static int remove_place(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -r %s", dir, dir);
	assert_int_equal(system(command), 0);
	return conf_end(state);
}

#undef TEST
#define TEST(name) TEST_WITH(name, make_place, remove_place)

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* "f" is the file, "f.d/10-a.conf" a drop-in. */
static void put(const char *name, const char *text)
{
	FILE *out = fopen(path_of(name), "we");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	assert_int_equal(chmod(path_of(name), 0644), 0);
}

/* All errors, each with its line end, with the place left out. */
static const char *loaded(void)
{
	const struct conf_source source = { .file = file };
	static char shown[CONF_ERROR_MAX];
	const char *in, *rest = conf_error;
	size_t len = strlen(dir) + 1;
	int rc;

	conf_free(&c);
	rc = conf_load(&c, &source, conf_error);
	assert_int_equal(rc < 0, conf_error[0] != '\0');
	shown[0] = '\0';
	for (; (in = strstr(rest, dir)); rest = in + len)
		strncat(shown, rest, (size_t)(in - rest));
	strcat(shown, rest);
	return shown;
}

#define HOST "[zookeeper]\nhost = h\n"

TEST(all_errors_are_told_each_with_its_line)
{
	put("f",
	    "linger_ms = 1\n[locks]\nlinger_ms = x\nfoo\n\nhandoff_ms = 5s\n[nope]\na = 1\nb = 2\n[zookeeper\n[zookeeper]\n"
	    "servers = a:1\n  b\n  c:3\nservers = c:3\n[nope] x\nlast");
	assert_string_equal(loaded(),
			    "f:1: the key is outside of a section\n"
			    "f:3: locks.linger_ms = x: must be a number from 0 to 60000\n"
			    "f:4: the line is neither a [section] nor KEY = VALUE nor a comment\n"
			    "f:6: locks.handoff_ms = 5s: must be a number from 0 to 60000\n"
			    "f:7: [nope]: unknown section\n"
			    "f:10: the line is neither a [section] nor KEY = VALUE nor a comment\n"
			    "f:13: zookeeper.servers = a:1,b: must be host:port, separated by commas, IPv6 addresses in brackets\n"
			    "f:15: zookeeper.servers = c:3: the key is already set in line 12\n"
			    "f:16: [nope]: something follows the closing bracket\n"
			    "f:17: the line is neither a [section] nor KEY = VALUE nor a comment");
}

TEST(values_that_do_not_fit_together_are_told_with_their_lines)
{
	put("f", HOST "tick_ms = 4000\n[prefix:a]\npath = /x\n[prefix:b]\npath = /x/y\n[prefix:c]\npath = /lockbroker/c\n");
	put("f.d/10-a.conf", "[locks]\ngrant_min_ms = 5000\n");
	assert_string_equal(loaded(),
			    "zookeeper.session_timeout_ms: 15000 is less than 5 ticks of zookeeper.tick_ms = 4000\n"
			    "f.d/10-a.conf:2: locks.grant_min_ms: 5000 is not less than a third of "
			    "zookeeper.session_timeout_ms = 15000\n"
			    "f:7: prefix:b.path: /x/y must be neither inside nor around prefix:a.path = /x\n"
			    "f:9: prefix:c.path: /lockbroker/c must be neither inside nor around zookeeper.root = /lockbroker");
}

TEST(there_is_a_bound_to_what_is_told)
{
	FILE *out = fopen(file, "we");
	size_t len;

	for (int i = 0; i < 2000; i++)
		fputs("nonsense\n", out);
	fclose(out);
	loaded();
	len = strlen(conf_error);
	assert_true(len < CONF_ERROR_MAX && len > CONF_ERROR_MAX - 400);
	assert_non_null(strstr(conf_error, "\nthere are more errors than can be shown at once"));
}

TEST(one_line_tells_the_first_and_how_many_follow)
{
	char line[CONF_SENTENCE_MAX];

	conf_error_line("a: x", line);
	assert_string_equal(line, "a: x");
	conf_error_line("a: x\nb: y\nc: z", line);
	assert_string_equal(line, "a: x (and 2 more: lockbrokerd --check-config shows all)");
}

TEST(drop_ins_come_in_the_order_of_their_bytes_and_the_last_counts)
{
	put("f", HOST "[locks]\nlinger_ms = 1\nhandoff_ms = 1\ntry_ms = 1\n[prefix:a]\nflavour = kazoo\npath = /a\n");
	put("f.d/20-b.conf", "[locks]\nlinger_ms = 4\n");
	put("f.d/10-b.conf", "[locks]\nlinger_ms = 3\nhandoff_ms = 3\n");
	put("f.d/10-B.conf", "[locks]\nlinger_ms = 2\nhandoff_ms = 2\n[prefix:b]\n[prefix:a]\nflavour = mutex\n");
	assert_string_equal(loaded(), "");
	assert_int_equal(c.broker.linger_ns, 4 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.handoff_ns, 3 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.try_ns, 1 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.prefix_count, 2);
	assert_int_equal(c.broker.prefixes[0].flavour, FLAVOUR_MUTEX);
	assert_string_equal(c.broker.prefixes[0].path, "/a");
	assert_int_equal(c.file_count, 4);
}

TEST(they_count_without_the_file_if_that_is_the_default_one)
{
	const struct conf_source source = { .default_file = file };

	put("f.d/10-a.conf", HOST "[locks]\nlinger_ms = 3\n");
	conf_free(&c);
	assert_int_equal(conf_load(&c, &source, conf_error), 0);
	assert_int_equal(c.broker.linger_ns, 3 * CLOCK_NS_PER_MS);
}

TEST(errors_of_all_files_name_theirs)
{
	put("f", "[locks]\nx = 1\n");
	put("f.d/10-a.conf", "[locks]\nlinger_ms = 1\nlinger_ms = 2\n");
	put("f.d/20-a.conf", "linger_ms = 1\n");
	assert_string_equal(loaded(),
			    "f:2: locks.x: unknown key\n"
			    "f.d/10-a.conf:3: locks.linger_ms = 2: the key is already set in line 2\n"
			    "f.d/20-a.conf:1: the key is outside of a section");
}

TEST(what_editors_leave_is_ignored)
{
	static const char *const names[] = { "10-a.conf~",      ".10-a.conf",      ".#10-a.conf",        "#10-a.conf#",
					     "10-a.conf.bak",   "10-a.conf.swp",   "10-a.conf.dpkg-old", "README",
					     "10-a.conf.rpmnew", "..conf" };
	char name[64];

	put("f", HOST);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "f.d/%s", names[i]);
		put(name, "nonsense\n");
	}
	assert_string_equal(loaded(), "");
}

TEST(what_looks_like_a_drop_in_and_is_none_is_an_error)
{
	put("f", HOST);
	put("f.d/local.conf", "");
	put("f.d/1-a.conf", "");
	put("f.d/10a.conf", "");
	assert_int_equal(mkdir(path_of("f.d/30-a.conf"), 0755), 0);
	assert_int_equal(mkfifo(path_of("f.d/40-a.conf"), 0644), 0);
	assert_int_equal(symlink("nowhere", path_of("f.d/50-a.conf")), 0);
	assert_string_equal(loaded(),
			    "f.d/1-a.conf: is not read: a drop-in is named NN-NAME.conf, with two digits first; rename it, or "
			    "remove it\n"
			    "f.d/10a.conf: is not read: a drop-in is named NN-NAME.conf, with two digits first; rename it, or "
			    "remove it\n"
			    "f.d/30-a.conf: Is a directory\n"
			    "f.d/40-a.conf: is not a file\n"
			    "f.d/50-a.conf: No such file or directory\n"
			    "f.d/local.conf: is not read: a drop-in is named NN-NAME.conf, with two digits first; rename it, or "
			    "remove it");
}

#define OWNER "must belong to root or the daemon's user and not be writable by others (chmod go-w)"

TEST(what_others_can_write_is_refused)
{
	put("f", HOST);
	put("f.d/10-a.conf", "");
	assert_int_equal(chmod(path_of("f"), 0646), 0);
	assert_int_equal(chmod(path_of("f.d/10-a.conf"), 0602), 0);
	assert_string_equal(loaded(), "f: " OWNER "\nf.d/10-a.conf: " OWNER);
	assert_int_equal(chmod(path_of("f"), 0600), 0);
	assert_int_equal(chmod(path_of("f.d"), 0757), 0);
	assert_string_equal(loaded(), "f.d: " OWNER);
}

/* As root: to whom else could a file be given? */
TEST(a_foreign_owner_or_group_is_refused)
{
	if (geteuid() != 0) {
		print_message("skipped: only root can give a file away\n");
		skip();
	}
	put("f", HOST);
	put("f.d/10-a.conf", "");
	put("f.d/20-a.conf", "");
	assert_int_equal(chown(path_of("f.d/10-a.conf"), 4711, 0), 0);
	assert_int_equal(chown(path_of("f.d/20-a.conf"), 0, 4711), 0);
	assert_string_equal(loaded(), "f.d/10-a.conf: " OWNER);
	assert_int_equal(chmod(path_of("f.d/20-a.conf"), 0664), 0);
	assert_string_equal(loaded(), "f.d/10-a.conf: " OWNER "\nf.d/20-a.conf: " OWNER);
	/* Root's group is root. */
	assert_int_equal(chmod(path_of("f"), 0664), 0);
	assert_int_equal(unlink(path_of("f.d/10-a.conf")), 0);
	assert_int_equal(unlink(path_of("f.d/20-a.conf")), 0);
	assert_string_equal(loaded(), "");
}

/* Not as root, who may read all. */
TEST(an_unreadable_drop_in_is_an_error)
{
	if (geteuid() == 0) {
		print_message("skipped: root may read a file of any mode\n");
		skip();
	}
	put("f", HOST);
	put("f.d/10-a.conf", "");
	assert_int_equal(chmod(path_of("f.d/10-a.conf"), 0), 0);
	assert_string_equal(loaded(), "f.d/10-a.conf: Permission denied");
	assert_int_equal(chmod(path_of("f.d"), 0), 0);
	assert_string_equal(loaded(), "f.d: Permission denied");
}

TEST(there_are_at_most_a_hundred)
{
	char name[64];

	put("f", HOST);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "f.d/%02d-a.conf", i);
		put(name, "[locks]\ntry_ms = 1\n");
	}
	assert_string_equal(loaded(), "");
	put("f.d/50-b.conf", "");
	assert_string_equal(loaded(), "f.d: has 101 drop-ins, and at most 100 are read");
}

static void write_bytes(const char *text, size_t len, size_t times)
{
	FILE *out = fopen(file, "we");

	assert_non_null(out);
	while (times--)
		fwrite(text, 1, len, out);
	fclose(out);
}

TEST(a_file_has_at_most_a_megabyte_and_no_zeroes)
{
	write_bytes("#\n", 2, 524288);
	assert_string_equal(loaded(), "");
	write_bytes("#\n", 2, 524289);
	assert_string_equal(loaded(), "f:524289: the file is larger than 1048576 bytes");
	write_bytes("[locks]\nlinger_ms = 1\0 7\n", 25, 1);
	assert_string_equal(loaded(), "f:2: the line has a zero byte: this is no text file");
	write_bytes("", 0, 0);
	assert_string_equal(loaded(), "");
}

TEST(a_line_has_at_most_198_bytes)
{
	char text[256];

	snprintf(text, sizeof(text), "[locks]\n%-198s\nlinger_ms = 3\n", "try_ms = 2");
	put("f", text);
	assert_string_equal(loaded(), "");
	assert_int_equal(c.broker.linger_ns, 3 * CLOCK_NS_PER_MS);
	snprintf(text, sizeof(text), "[locks]\n%-199s\nlinger_ms = x\n", "try_ms = 2");
	put("f", text);
	assert_string_equal(loaded(),
			    "f:2: the line is longer than 198 bytes\n"
			    "f:3: locks.linger_ms = x: must be a number from 0 to 60000");
}
