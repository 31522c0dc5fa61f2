/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: every key at its bounds and one past them, what the file may hold, overrides, the sample. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "io/conf/conf_access.h"
#include "io/conf/conf_file.h"
#include "io/conf/conf_value.h"
#include "conf_fixture.h"

#undef TEST
#define TEST(name) TEST_WITH(name, conf_begin, conf_end)

TEST(test_yes_and_no_have_their_usual_words)
{
	static const char *const words[] = { "0", "1", "no", "yes", "False", "TRUE", "off", "On" };
	char text[64];

	for (size_t i = 0; i < 8; i++) {
		conf_anew();
		snprintf(text, sizeof(text), "[locks]\ndelegation = %s\n", words[i]);
		read_text(&c, text, NULL);
		assert_int_equal(c.broker.delegation, i % 2);
	}
	for (const struct conf_key *key = conf_keys(); key->name; key++) {
		if (key->type != CONF_YES)
			continue;
		assert_allowed(key->section, key->name, VALUES("yes"));
		assert_not_allowed(key->section, key->name, VALUES("", "2", "-1", "01", "y", "yess", "1 ", "enabled"));
	}
}

static const char *number_text(const struct conf_key *key, int64_t number, char text[32])
{
	if (key->type == CONF_OCTAL)
		snprintf(text, 32, "%llo", (unsigned long long)number);
	else
		snprintf(text, 32, "%lld", (long long)number);
	return text;
}

TEST(test_numbers_at_their_bounds_and_one_past)
{
	const struct conf_key *key;
	char least[32], most[32], past[32];

	for (key = conf_keys(); key->name; key++) {
		if (key->type != CONF_NUMBER && key->type != CONF_OCTAL)
			continue;
		assert_allowed(key->section, key->name,
			       VALUES(number_text(key, key->min, least), number_text(key, key->max, most)));
		assert_not_allowed(key->section, key->name,
				   VALUES(number_text(key, key->max + 1, past), "", "x", "7x", "-7", "+7", " 7", "7.5",
					  "99999999999999999999999999"));
		if (key->min > 0)
			assert_not_allowed(key->section, key->name, VALUES(number_text(key, key->min - 1, past)));
	}
	assert_not_allowed("daemon", "socket_mode", VALUES("0668"));
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

TEST(test_every_key_has_a_default_a_reason_and_is_named_once)
{
	/* conf_init() asserts that every default is allowed. */
	assert_table(conf_keys());
	assert_table(conf_prefix_keys());
}

TEST(test_a_field_holds_every_number_of_its_key)
{
	for (const struct conf_key *key = conf_keys(); key->name; key++)
		for (int i = 0; conf_value_is_number(key) && i < 2; i++) {
			conf_value_set_number(key, &c, i ? key->max : key->min);
			assert_int_equal(conf_value_number(key, &c), i ? key->max : key->min);
		}
}

static void assert_fields(const struct conf_key *keys)
{
	for (const struct conf_key *key = keys; key->name; key++)
		for (const struct conf_key *other = keys; other != key; other++)
			assert_true(other->offset + other->size <= key->offset || key->offset + key->size <= other->offset);
}

TEST(test_each_key_has_a_field_of_its_own)
{
	assert_fields(conf_keys());
	assert_fields(conf_prefix_keys());
}

TEST(test_defaults_are_those_of_the_design)
{
	assert_string_equal(c.socket, "/run/lockbroker/lockbroker.sock");
	assert_int_equal(c.socket_mode, 0660);
	assert_string_equal(c.broker.root, "/lockbroker");
	assert_int_equal(c.broker.session_timeout_ns, 15000 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.tick_ns, 2000 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.handoff_max, 64);
	assert_int_equal(c.broker.limits.clients, 12500);
	assert_int_equal(c.broker.limits.session_path_bytes, 900000);
}

TEST(test_paths)
{
	char longest[200], longer[200];

	fill(longest, 107, '/', 'x');
	fill(longer, 108, '/', 'x');
	assert_allowed("daemon", "socket", VALUES("/a", longest));
	assert_not_allowed("daemon", "socket", VALUES(longer, "", "/", "relative"));
	assert_allowed("daemon", "rundir", VALUES("/run/a b"));
	assert_not_allowed("daemon", "rundir", VALUES("/run/", "/run/a\tb", "/run/a ;b"));
}

TEST(test_users)
{
	char list[2 * CONF_USERS_MAX + 2] = "1", longest[200], longer[200];

	fill(longest, 100, 'u', 'x');
	fill(longer, 101, 'u', 'x');
	assert_allowed("limits", "by_unit",
		       VALUES("", "app", "app, 1000 ,www-data,DOMAIN\\someone,x.y_z$", "app,", "4294967294", longest));
	assert_not_allowed("limits", "by_unit",
			   VALUES("4294967295", "99999999999", ",app", "app,,web", "app web", "1000-1999", "-app",
				  "7up", "@group", longer));
	for (int i = 1; i < CONF_USERS_MAX; i++)
		strcat(list, ",1");
	assert_allowed("limits", "by_unit", VALUES(list));
	strcat(list, ",1");
	assert_not_allowed("limits", "by_unit", VALUES(list));
}

TEST(test_words)
{
	char longest[200], longer[200];

	assert_allowed("daemon", "log_level", VALUES("error", "debug"));
	assert_not_allowed("daemon", "log_level", VALUES("DEBUG", ""));
	assert_allowed("log", "grants", VALUES("auto", "off"));
	assert_not_allowed("log", "grants", VALUES("AUTO", "2"));
	assert_allowed("daemon", "socket_group", VALUES("", "adm"));
	assert_not_allowed("daemon", "socket_group", VALUES("a b"));
	fill(longest, 100, 'h', 'x');
	fill(longer, 101, 'h', 'x');
	assert_allowed("zookeeper", "host", VALUES("node-1.example_x", longest));
	assert_not_allowed("zookeeper", "host", VALUES(longer, ".", "..", ".hidden", "a/b", "a b"));
}

TEST(test_root)
{
	char longest[200], longer[200];

	fill(longest, 150, '/', 'x');
	fill(longer, 151, '/', 'x');
	assert_allowed("zookeeper", "root", VALUES("/a", "/services/prod/locks", "/zookeepers", longest));
	assert_not_allowed("zookeeper", "root",
			   VALUES(longer, "", "/", "//", "/a/", "/a//b", "a", "/a/../b", "/.", "/zookeeper",
				  "/zookeeper/x", "/a b"));
}

TEST(test_servers)
{
	assert_allowed("zookeeper", "servers",
		       VALUES("" /* standalone */, "a:1", "10.0.0.1:2181,zk-2.example.org:65535", "a:1 , b:2", "a:1, ",
			      "[::1]:2181,[fe80::1%eth0]:2181"));
	assert_not_allowed("zookeeper", "servers",
			   VALUES("a", "a:", ":2181", "a:0", "a:65536", "a:12345678901", "a:1,,b:2", ",", " ", " ,",
				  "::1:2181", "[::1]2181", "[]:2181", "a:1/chroot", "a b:1"));
}

/* The shortest is that of any address. */
TEST(an_address_in_brackets_has_at_least_two_characters)
{
	assert_allowed("zookeeper", "servers", VALUES("[::]:2181", "[::]:1"));
	assert_not_allowed("zookeeper", "servers", VALUES("[:]:2181", "[::]", "[::", "[::]:", "[::]:0"));
}

TEST(test_a_file_is_read)
{
	read_text(&c,
		  "# comment\n; another\n\n[locks]\nlinger_ms=0\n  \n[zookeeper]\nhost : h1 ; inline\n"
		  "servers = a:1,\n  b:2\n\t[::1]:3,\n[daemon]\nsocket_mode = 0600\n[locks]\nhandoff_max = 1",
		  NULL);
	assert_int_equal(c.broker.linger_ns, 0);
	assert_string_equal(c.broker.host, "h1");
	assert_string_equal(c.servers, "a:1,b:2,[::1]:3,");
	assert_int_equal(c.socket_mode, 0600);
	assert_int_equal(c.broker.handoff_max, 1);
	conf_anew();
	read_text(&c, "[zookeeper]\nservers =\n  a:1,\n  b:2\n", NULL);
	assert_string_equal(c.servers, "a:1,b:2");
}

TEST(test_errors_name_the_line_the_key_the_value_and_what_is_allowed)
{
	char text[400];

	assert_refused("[locks]\n\nhandoff_max = many\n",
		       "FILE:3: locks.handoff_max = many: must be a number from 0 to 1000000");
	assert_refused("[daemon]\nsocket_mode = 0999\n", "FILE:2: daemon.socket_mode = 0999: must be an octal number");
	assert_refused("[daemon]\nlog_level = loud\n",
		       "FILE:2: daemon.log_level = loud: must be error, warning, info or debug");
	assert_refused("[daemon]\nnonsense = 1\n", "FILE:2: daemon.nonsense: unknown key");
	assert_refused("\n[nonsense]\na = 1\n", "FILE:2: [nonsense]: unknown section");
	assert_refused("[nonsense]\n", "FILE:1: [nonsense]: unknown section");
	assert_refused("linger_ms = 1\n", "FILE:1: the key is outside of a section");
	assert_refused("[locks]\nlinger_ms\n", "FILE:2: the line is neither a [section] nor KEY = VALUE nor a comment");
	assert_refused("[locks\nlinger_ms = 1\n", "FILE:1: ");
	assert_refused("[locks]\nlinger_ms = 1\nhandoff_ms = 1\nlinger_ms = 1\n",
		       "FILE:4: locks.linger_ms = 1: the key is already set in line 2");
	assert_refused("[locks]\nlinger_ms = 1\n  handoff_ms = 1\n", "an indented line continues the one before");
	assert_refused("[zookeeper]\nservers = a:1,\n  b\n", "FILE:3: zookeeper.servers = a:1,b: must be host:port");
	assert_refused("[zookeeper]\nservers = a:1\nservers = b:1\n",
		       "FILE:3: zookeeper.servers = b:1: the key is already");
	snprintf(text, sizeof(text), "[daemon]\nsocket = /%0300d\n", 0);
	assert_refused(text, "FILE:2: the line is longer than");
}

TEST(test_a_tcp_port_is_refused_in_a_sentence)
{
	static const char why[] =
		"lockbrokerd listens on Unix sockets only: of a client over TCP it would not know the";

	assert_refused(
		"[daemon]\nport = 6379\n",
		"FILE:2: daemon.port: unknown key; lockbrokerd listens on Unix sockets only: of a client over TCP it "
		"would not know the user (uid)");
	assert_refused("[daemon]\nbind = 0.0.0.0\n", why);
	assert_refused("[daemon]\nsocket = 127.0.0.1:6379\n", why);
	assert_refused("[daemon]\nany_socket\n", "FILE:2: the line is neither");
	assert_refused("[daemon]\noperator_socket = tcp://127.0.0.1:6380\n", why);
	assert_int_equal(override("daemon.socket=:6379"), -EINVAL);
	assert_non_null(strstr(conf_error, why));
	assert_int_equal(override("daemon.port=6379"), -EINVAL);
	assert_non_null(strstr(conf_error, why));
	assert_int_equal(override("daemon.socket=run/lockbroker.sock"), -EINVAL);
	assert_null(strstr(conf_error, why));
	assert_int_equal(override("locks.port=6379"), -EINVAL);
	assert_null(strstr(conf_error, why));
}

TEST(test_a_missing_file_is_an_error)
{
	assert_int_equal(conf_read(&c, "/nonexistent/x.conf", conf_error), -ENOENT);
	assert_string_equal(conf_error, "/nonexistent/x.conf: No such file or directory");
}

TEST(test_overrides)
{
	static const char *const others[] = { "locks.linger_ms", "linger_ms=1", "linger_ms=1.5", "", "=" };

	read_text(&c, "[locks]\nlinger_ms = 5\n", NULL);
	assert_overridden("locks.linger_ms=7");
	assert_int_equal(c.broker.linger_ns, 7 * CLOCK_NS_PER_MS);
	assert_overridden("locks.linger_ms=8");
	assert_int_equal(c.broker.linger_ns, 8 * CLOCK_NS_PER_MS);
	/* A dot or an equals sign in the value is the value's. */
	assert_overridden("daemon.socket=/a.b=c");
	assert_string_equal(c.socket, "/a.b=c");
	assert_overridden("zookeeper.servers=");
	assert_string_equal(c.servers, "");
	assert_override_refused("locks.linger_ms=x", "-o: locks.linger_ms = x: must be a number from 0 to 60000");
	assert_override_refused("locks.nonsense=1", "-o: locks.nonsense=1: unknown key locks.nonsense");
	assert_override_refused("nonsense.linger_ms=1", "-o: [nonsense]: unknown section");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(override(others[i]), -EINVAL);
}

TEST(test_a_rule_that_leaves_other_ways_to_take_a_name_is_told)
{
	static const struct { const char *rules; bool leaves; } rows[] = {
		{ "rule = deny 1000 a/* lock,shared,look\n", true },
		{ "rule = deny 1000 a/* lock,campaign,acquire\n", true },
		{ "rule = deny 1000 a/* lock,campaign,acquire,observe\n", false },
		{ "rule = deny 1000 a/* *\n", false },
		{ "rule = deny 1000 a/* shared\n", false },
		{ "rule = allow 1000 a/* lock\n", false },
		{ "rule = deny 1000 a/* lock\nrule = deny 1000 a/* acquire,campaign,observe\n", false },
		{ "rule = deny 1000 a/* lock\nrule = deny 1001 a/* acquire,campaign,observe\n", true },
		{ "rule = deny 1000 a/* lock\nrule = deny 1000 b/* acquire,campaign,observe\n", true },
		{ "rule = deny 1000 a/* lock\nrule = allow 1000 a/* acquire,campaign,observe\n", true },
		{ "rule = deny unit:a.service * lock\nrule = deny unit:b.service * *\n", true },
	};
	char sentence[CONF_SENTENCE_MAX], text[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "[access]\n%s", rows[i].rules);
		conf_anew();
		read_text(&c, text, NULL);
		if (conf_access_leaves(&c, sentence) != rows[i].leaves)
			fail_msg("%s", rows[i].rules);
	}
}

/* Root is a user everywhere, and belongs to the group 0. */
TEST(test_a_denial_that_subordinate_ids_pass_is_told)
{
	static const char *const users[] = { "# none\nno_such_user:1:1\nroot:100000:65536\n", "0:100000:65536" };
	static const struct { const char *rules; bool passed; } rows[] = {
		{ "rule = deny 0 a/* lock\n", true },
		{ "rule = deny 0-999 a/* lock\n", true },
		{ "rule = deny @0 a/* lock\n", true },
		{ "rule = deny root a/* lock\nrule = deny * a/* shared\n", true },
		{ "rule = deny 0 a/* lock\nrule = deny * b/* *\n", true },
		{ "rule = deny 0 a/* lock\nrule = deny * a/* *\n", false },
		{ "rule = deny 0 a/* lock\nrule = deny * * lock\n", false },
		{ "rule = deny 1 a/* lock\n", false },
		{ "rule = allow 0 a/* *\n", false },
		{ "rule = deny unit:a.service * *\n", false },
		{ "rule = deny * * *\n", false },
	};
	char sentence[CONF_SENTENCE_MAX], text[256], path[] = "/tmp/lockbroker.subuid.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *list = users[i % 2];

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, list, strlen(list), 0), strlen(list));
		snprintf(text, sizeof(text), "[access]\n%s", rows[i].rules);
		conf_anew();
		read_text(&c, text, NULL);
		assert_int_equal(conf_access_resolve(&c, conf_error), 0);
		if (conf_subids_pass(&c, path, sentence) != rows[i].passed)
			fail_msg("%s", rows[i].rules);
		assert_false(conf_subids_pass(&c, "/nonexistent/subuid", sentence));
	}
	close(fd);
	unlink(path);
}

TEST(test_a_key_of_former_versions_is_no_error)
{
	char *text;

	read_text(&c, "[limits]\nuser_share = 50\n", NULL);
	assert_false(c.outdated);
	read_text(&c, "[limits]\nclients_per_uid = 9\nrequests_per_uid = 0\ngrants_per_uid = many\n", NULL);
	assert_true(c.outdated);
	assert_non_null(strstr(conf_outdated, "limits.user_share"));
	text = printed(&c);
	assert_null(strstr(text, "per_uid"));
	free(text);
	conf_anew();
	assert_overridden("limits.grants_per_uid=1");
	assert_true(c.outdated);
	assert_int_equal(override("locks.grants_per_uid=1"), -EINVAL);
	assert_refused("[locks]\ngrants_per_uid = 1\n", "FILE:2: locks.grants_per_uid: unknown key");
}

static void assert_finish(int rc, bool standalone, const char *one, const char *two)
{
	conf_anew();
	assert_overridden(one);
	assert_overridden(two);
	if (conf_finish(&c, standalone, conf_error) != rc)
		fail_msg("%s %s: %s", one, two, conf_error);
}

TEST(test_numbers_against_each_other)
{
	assert_finish(0, false, "zookeeper.session_timeout_ms=15000", "zookeeper.tick_ms=3000");
	assert_finish(-EINVAL, false, "zookeeper.session_timeout_ms=14999", "zookeeper.tick_ms=3000");
	assert_finish(0, true, "zookeeper.session_timeout_ms=14999", "zookeeper.tick_ms=3000");
	assert_finish(0, false, "zookeeper.session_timeout_ms=15000", "locks.grant_min_ms=4999");
	assert_finish(-EINVAL, false, "zookeeper.session_timeout_ms=15000", "locks.grant_min_ms=5000");
	assert_finish(-EINVAL, false, "zookeeper.servers=", "zookeeper.host=h");
	assert_finish(0, true, "zookeeper.servers=", "zookeeper.host=h");
}

TEST(test_an_empty_host_is_the_machine)
{
	char name[256];

	assert_int_equal(gethostname(name, sizeof(name)), 0);
	if (conf_finish(&c, false, conf_error) == 0)
		assert_string_equal(c.broker.host, name);
}

TEST(test_what_is_printed_can_be_read_back)
{
	struct conf back;

	assert_overridden("daemon.socket=/run/a b #c");
	assert_overridden("daemon.socket_mode=7");
	assert_overridden("limits.locks=77");
	assert_overridden("zookeeper.servers=zookeeper-1.some.example.org:2181,zookeeper-2.some.example.org:2181,"
			  "zookeeper-3.some.example.org:2181,zookeeper-4.some.example.org:2181,"
			  "zookeeper-5.some.example.org:2181,zookeeper-6.some.example.org:2181");
	assert_printed_again(&c, &back);
	assert_string_equal(back.servers, c.servers);
	assert_string_equal(back.socket, c.socket);
	conf_free(&back);
}

/* The test runs in the project's directory. */
TEST(test_the_sample_shows_the_defaults)
{
	FILE *in = fopen("conf/lockbroker.conf", "re");
	char sample[16384], *text;
	size_t len;

	assert_non_null(in);
	len = fread(sample, 1, sizeof(sample) - 1, in);
	sample[len] = '\0';
	fclose(in);
	text = printed(&c);
	assert_string_equal(sample, text);
	free(text);
	read_text(&c, sample, NULL);
}

/* A long list is printed in several lines. */
TEST(test_what_is_printed_reads_as_it_was)
{
	struct conf back;

	read_text(&c, "[limits]\nby_unit = a0000000000000000000000000000000000000000000000000000000000 , b0000, c\n", NULL);
	assert_printed_again(&c, &back);
	conf_free(&back);
}

/* Reading it fails before there is a line to blame. */
TEST(test_what_cannot_be_read_is_an_error)
{
	assert_int_equal(conf_read(&c, "/tmp", conf_error), -EISDIR);
	assert_non_null(strstr(conf_error, "/tmp"));
	assert_int_equal(conf_read(&c, "/nonexistent/conf", conf_error), -ENOENT);
}
