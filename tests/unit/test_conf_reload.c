/* SPDX-License-Identifier: Apache-2.0 */
/* Another configuration takes the place of that in use (conf_file.h): what changes, what waits, what is refused. */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rule.h"
#include "conf_fixture.h"
#include "io/conf/conf_access.h"
#include "io/conf/conf_file.h"
#include "io/conf/conf_value.h"

static char told[4096];

static void tell(void *arg, bool waits, const char *sentence)
{
	size_t len = strlen(told);

	snprintf(told + len, sizeof(told) - len, "%s%s\n", waits ? "! " : "", sentence);
}

/* The second text is read while the first is in use: what is told then, or the error. */
static const char *reloaded(struct conf *conf, const char *before, const char *now)
{
	struct conf read;
	char error[CONF_ERROR_MAX] = "";
	int rc;

	conf_init(conf);
	conf_init(&read);
	read_text(conf, before, NULL);
	assert_int_equal(conf_finish(conf, false, error), 0);
	read_text(&read, now, NULL);
	assert_int_equal(conf_finish(&read, false, error), 0);
	told[0] = '\0';
	rc = conf_take(conf, &read, false, tell, NULL, error);
	conf_free(&read);
	assert_true(rc == 0 || !*told);
	return rc == 0 ? told : strcpy(told, error);
}

#define HOST "[zookeeper]\nhost = h\n"

TEST(the_same_is_told_as_nothing)
{
	struct conf conf;

	assert_string_equal(reloaded(&conf, HOST, HOST "# another comment\n[locks]\nlinger_ms = 100\n"), "");
	conf_free(&conf);
}

/* The daemon sets them at its start. */
TEST(what_no_key_says_stays)
{
	struct conf conf, read;
	char error[CONF_ERROR_MAX] = "";

	(void)state;
	conf_init(&conf);
	conf_init(&read);
	conf.broker.hash_key[0] = 7;
	conf.broker.former_count = 1;
	conf.broker.standalone = true;
	conf.broker.version = "9.9";
	read_text(&read, "[locks]\nlinger_ms = 7\n", NULL);
	assert_int_equal(conf_finish(&read, true, error), 0);
	assert_int_equal(conf_take(&conf, &read, true, tell, NULL, error), 0);
	assert_int_equal(conf.broker.linger_ns, 7 * CLOCK_NS_PER_MS);
	assert_int_equal(conf.broker.hash_key[0], 7);
	assert_int_equal(conf.broker.former_count, 1);
	assert_true(conf.broker.standalone);
	assert_string_equal(conf.broker.version, "9.9");
	conf_free(&read);
	conf_free(&conf);
}

TEST(what_may_change_changes)
{
	struct conf conf;

	assert_string_equal(reloaded(&conf, HOST, HOST "[locks]\nlinger_ms = 5\n[daemon]\nlog_level = debug\n"),
			    "daemon.log_level = debug, before info\nlocks.linger_ms = 5, before 100\n");
	assert_int_equal(conf.broker.linger_ns, 5 * CLOCK_NS_PER_MS);
	conf_free(&conf);
}

TEST(what_may_not_change_waits_for_a_restart)
{
	struct conf conf;

	assert_string_equal(reloaded(&conf, HOST "root = /a\n",
				     HOST "root = /b\nauth_file = /etc/secret\n[daemon]\nsocket_mode = 0600\n"),
			    "! daemon.socket_mode = 0600 needs a restart; until then it is 0660\n"
			    "! zookeeper.root = /b needs a restart; until then it is /a\n"
			    "! zookeeper.auth_file = /etc/secret needs a restart; until then it is empty\n");
	assert_string_equal(conf.broker.root, "/a");
	assert_int_equal(conf.socket_mode, 0660);
	conf_free(&conf);
}

TEST(the_servers_change)
{
	struct conf conf;

	assert_string_equal(reloaded(&conf, HOST "servers = a:1\n", HOST "servers = a:1,\n  b:2\n"),
			    "zookeeper.servers = a:1,b:2, before a:1\n");
	assert_string_equal(conf.servers, "a:1,b:2");
	conf_free(&conf);
	assert_string_equal(reloaded(&conf, HOST "servers = a:1\n", HOST "servers = b:1\n[locks]\nlinger_ms = 7\n"),
			    "zookeeper.servers = b:1, before a:1\nlocks.linger_ms = 7, before 100\n");
	conf_free(&conf);
}

TEST(prefixes_wait_for_a_restart)
{
	struct conf conf;

	assert_string_equal(reloaded(&conf, HOST "[prefix:a/]\nflavour = kazoo\n[prefix:b/]\n",
				     HOST "[prefix:c/]\n[prefix:a/]\nflavour = mutex\npath = /x\n"),
			    "! [prefix:c/] is new, which needs a restart\n"
			    "! prefix:a/.flavour = mutex needs a restart; until then it is kazoo\n"
			    "! prefix:a/.path = /x needs a restart; until then it is empty\n"
			    "! [prefix:b/] is not there any longer, which needs a restart\n");
	assert_int_equal(conf.broker.prefix_count, 2);
	conf_free(&conf);
}

/* The session that goes on is the old one. */
TEST(what_does_not_fit_to_what_stays_is_refused)
{
	const char *before = HOST "session_timeout_ms = 6000\ntick_ms = 1000\n[locks]\nlinger_ms = 7\n";
	struct conf conf;

	assert_string_equal(reloaded(&conf, before,
				     HOST "session_timeout_ms = 60000\n[locks]\ngrant_min_ms = 2000\nlinger_ms = 8\n"),
			    "locks.grant_min_ms: 2000 is not less than a third of zookeeper.session_timeout_ms = 6000");
	assert_int_equal(conf.broker.linger_ns, 7 * CLOCK_NS_PER_MS);
	assert_int_equal(conf.broker.grant_min_ns, 1000 * CLOCK_NS_PER_MS);
	conf_free(&conf);
}

/* Any other string is in use somewhere. */
TEST(only_numbers_and_lists_change)
{
	const struct conf_key *key;
	int count = 0;

	for (key = conf_keys(); key->name; key++) {
		assert_true(!key->reloads || conf_value_is_number(key) || key->type == CONF_SERVERS ||
			    key->type == CONF_USERS);
		count += key->reloads;
	}
	assert_true(count > 15);
	for (key = conf_prefix_keys(); key->name; key++)
		assert_false(key->reloads);
}

TEST(a_source_without_a_file_is_the_defaults)
{
	char text[] = "locks.linger_ms=3", *overrides[] = { text };
	struct conf_source source = { .default_file = "/nonexistent/lockbroker.conf", .overrides = overrides,
				      .override_count = 1 };
	char error[CONF_ERROR_MAX] = "";
	struct conf conf;

	assert_int_equal(conf_load(&conf, &source, error), 0);
	assert_int_equal(conf.broker.linger_ns, 3 * CLOCK_NS_PER_MS);
	conf_free(&conf);
	source.file = source.default_file;
	assert_true(conf_load(&conf, &source, error) < 0);
	assert_string_equal(error, "/nonexistent/lockbroker.conf: No such file or directory");
}

/* The process that goes on after a kill finds rules where they stood, and users who may be gone by then. */
TEST(what_is_kept_has_the_rules_as_they_were)
{
	static const char path[] = "/tmp/lockbroker-test-kept.conf";
	char rule[] = "access.rule=allow 7-9 * look", again[] = "access.rule=deny * b lock", *overrides[] = { rule, again };
	struct conf_source source = { .default_file = "/nonexistent/lockbroker.conf", .overrides = overrides,
				      .override_count = 2 };
	char error[CONF_ERROR_MAX] = "";
	struct conf conf, kept;
	struct rule *first;
	FILE *out;

	assert_int_equal(conf_load(&conf, &source, error), 0);
	first = (struct rule *)&conf.broker.access.list[0];
	rule_free(first);
	assert_int_equal(rule_parse(first, "deny somebody-who-left a* lock", "/etc/a b.conf:12", error), 0);
	first->low = first->high = 4711;
	out = fopen(path, "we");
	assert_non_null(out);
	conf_keep(&conf, out);
	assert_int_equal(fclose(out), 0);
	source.file = path;
	source.kept = true;
	if (conf_load(&kept, &source, error) < 0)
		fail_msg("%s", error);
	unlink(path);
	assert_true(conf_access_same(&conf, &kept));
	assert_int_equal(kept.broker.access.count, 2);
	assert_string_equal(kept.broker.access.list[0].where, "/etc/a b.conf:12");
	conf_free(&kept);
	conf_free(&conf);
}

static void load(struct conf *conf, const char *value)
{
	char option[64], *overrides[] = { option }, error[CONF_ERROR_MAX] = "";
	struct conf_source source = { .default_file = "/nonexistent/lockbroker.conf", .overrides = overrides,
				      .override_count = 1 };

	snprintf(option, sizeof(option), "limits.by_unit=%s", value);
	if (conf_load(conf, &source, error) < 0)
		fail_msg("%s", error);
}

TEST(users_change_for_who_comes_then)
{
	struct conf conf, read;
	char error[CONF_ERROR_MAX];

	load(&conf, "");
	assert_int_equal(conf.broker.limits.by_unit_count, 0);
	load(&read, "root, 7,8");
	told[0] = '\0';
	assert_int_equal(conf_take(&conf, &read, false, tell, NULL, error), 0);
	assert_string_equal(told, "limits.by_unit = root, 7,8, before empty\n"
				  "limits.by_unit: this is for new connections, and for all after a restart or a hand-over\n");
	conf_free(&read);
	assert_int_equal(conf.broker.limits.by_unit_count, 3);
	assert_int_equal(conf.broker.limits.by_unit[0], 0);
	assert_int_equal(conf.broker.limits.by_unit[2], 8);
	/* A user was made again meanwhile. */
	load(&read, "root, 7,8");
	*(uint32_t *)read.broker.limits.by_unit = 9;
	told[0] = '\0';
	assert_int_equal(conf_take(&conf, &read, false, tell, NULL, error), 0);
	assert_string_equal(told, "limits.by_unit names users who have other numbers now: this is for new connections, and for "
				  "all after a restart or a hand-over\n");
	conf_free(&read);
	assert_int_equal(conf.broker.limits.by_unit[0], 9);
	load(&read, "root, 7,8");
	*(uint32_t *)read.broker.limits.by_unit = 9;
	told[0] = '\0';
	assert_int_equal(conf_take(&conf, &read, false, tell, NULL, error), 0);
	assert_string_equal(told, "");
	conf_free(&read);
	conf_free(&conf);
}

TEST(a_list_of_users_may_take_several_lines)
{
	struct conf conf;

	conf_init(&conf);
	read_text(&conf, "[limits]\nby_unit = a,\n  b, c\n  7\n", NULL);
	assert_string_equal(conf.by_unit, "a,b, c,7");
	conf_free(&conf);
}

TEST(users_that_are_not_there_are_an_error)
{
	char text[] = "limits.by_unit=no-such-user,root,nor-this-one", *overrides[] = { text }, error[CONF_ERROR_MAX] = "";
	struct conf_source source = { .default_file = "/nonexistent/lockbroker.conf", .overrides = overrides,
				      .override_count = 1 };
	struct conf conf;

	assert_true(conf_load(&conf, &source, error) < 0);
	assert_string_equal(error, "limits.by_unit: there is no user no-such-user; make it, or name its number\n"
				   "limits.by_unit: there is no user nor-this-one; make it, or name its number");
}

/* A user that no longer exists is no error, and keeps its number. */
TEST(what_is_kept_has_the_users_as_they_were)
{
	static const char path[] = "/tmp/lockbroker-test-kept-users.conf";
	struct conf_source source = { .file = path, .kept = true };
	char error[CONF_ERROR_MAX] = "";
	struct conf conf, kept;
	FILE *out;

	load(&conf, "root,7");
	free((void *)conf.by_unit);
	conf.by_unit = strdup("somebody-who-left,7");
	*(uint32_t *)conf.broker.limits.by_unit = 4711;
	out = fopen(path, "we");
	assert_non_null(out);
	conf_keep(&conf, out);
	assert_int_equal(fclose(out), 0);
	if (conf_load(&kept, &source, error) < 0)
		fail_msg("%s", error);
	unlink(path);
	assert_true(conf_users_same(&conf, &kept));
	assert_string_equal(kept.by_unit, "somebody-who-left,7");
	assert_int_equal(kept.broker.limits.by_unit[0], 4711);
	conf_free(&kept);
	conf_free(&conf);
}

TEST(nobody_else_says_what_a_user_was)
{
	assert_refused("[limits]\nby_unit = root\nby_unit_was = 7\n", "limits.by_unit_was: unknown key");
}

TEST(nobody_else_says_what_a_rule_was)
{
	assert_refused("[access]\nrule = deny * * lock\nwas = 1 2 x\n", "access.was: unknown key");
}
