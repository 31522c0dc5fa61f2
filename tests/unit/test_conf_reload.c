/* SPDX-License-Identifier: Apache-2.0 */
/* Another configuration takes the place of that in use (conf_file.h): what changes, what waits, what is refused. */

#include "tests/unit/unit.h"

#include <fcntl.h>
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

#undef TEST
#define TEST(name) TEST_WITH(name, conf_begin, conf_end)

static char told[4096];

static void tell(void *arg, bool waits, const char *sentence)
{
	size_t len = strlen(told);

	snprintf(told + len, sizeof(told) - len, "%s%s\n", waits ? "! " : "", sentence);
}

/* The second text is read while the first is in use: what is told then, or the error. */
static const char *reloaded(const char *before, const char *now)
{
	struct conf read;
	int rc;

	conf_anew();
	conf_init(&read);
	read_text(&c, before, NULL);
	assert_int_equal(conf_finish(&c, false, conf_error), 0);
	read_text(&read, now, NULL);
	assert_int_equal(conf_finish(&read, false, conf_error), 0);
	told[0] = '\0';
	rc = conf_take(&c, &read, false, tell, NULL, conf_error);
	conf_free(&read);
	assert_true(rc == 0 || !*told);
	return rc == 0 ? told : conf_error;
}

#define HOST "[zookeeper]\nhost = h\n"

TEST(the_same_is_told_as_nothing)
{
	assert_string_equal(reloaded(HOST, HOST "# another comment\n[locks]\nlinger_ms = 100\n"), "");
}

/* The daemon sets them at its start. */
TEST(what_no_key_says_stays)
{
	struct conf read;

	conf_init(&read);
	c.broker.hash_key[0] = 7;
	c.broker.former_count = 1;
	c.broker.standalone = true;
	c.broker.version = "9.9";
	read_text(&read, "[locks]\nlinger_ms = 7\n", NULL);
	assert_int_equal(conf_finish(&read, true, conf_error), 0);
	assert_int_equal(conf_take(&c, &read, true, tell, NULL, conf_error), 0);
	assert_int_equal(c.broker.linger_ns, 7 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.hash_key[0], 7);
	assert_int_equal(c.broker.former_count, 1);
	assert_true(c.broker.standalone);
	assert_string_equal(c.broker.version, "9.9");
	conf_free(&read);
}

TEST(what_may_change_changes)
{
	assert_string_equal(reloaded(HOST, HOST "[locks]\nlinger_ms = 5\n[daemon]\nlog_level = debug\n"),
			    "daemon.log_level = debug, before info\nlocks.linger_ms = 5, before 100\n");
	assert_int_equal(c.broker.linger_ns, 5 * CLOCK_NS_PER_MS);
}

TEST(what_may_not_change_waits_for_a_restart)
{
	assert_string_equal(reloaded(HOST "root = /a\n",
				     HOST "root = /b\nauth_file = /etc/secret\n[daemon]\nsocket_mode = 0600\n"),
			    "! daemon.socket_mode = 0600 needs a restart; until then it is 0660\n"
			    "! zookeeper.root = /b needs a restart; until then it is /a\n"
			    "! zookeeper.auth_file = /etc/secret needs a restart; until then it is empty\n");
	assert_string_equal(c.broker.root, "/a");
	assert_int_equal(c.socket_mode, 0660);
}

TEST(the_servers_change)
{
	assert_string_equal(reloaded(HOST "servers = a:1\n", HOST "servers = a:1,\n  b:2\n"),
			    "zookeeper.servers = a:1,b:2, before a:1\n");
	assert_string_equal(c.servers, "a:1,b:2");
	assert_string_equal(reloaded(HOST "servers = a:1\n", HOST "servers = b:1\n[locks]\nlinger_ms = 7\n"),
			    "zookeeper.servers = b:1, before a:1\nlocks.linger_ms = 7, before 100\n");
}

TEST(prefixes_wait_for_a_restart)
{
	assert_string_equal(reloaded(HOST "[prefix:a/]\nflavour = kazoo\n[prefix:b/]\n",
				     HOST "[prefix:c/]\n[prefix:a/]\nflavour = mutex\npath = /x\n"),
			    "! [prefix:c/] is new, which needs a restart\n"
			    "! prefix:a/.flavour = mutex needs a restart; until then it is kazoo\n"
			    "! prefix:a/.path = /x needs a restart; until then it is empty\n"
			    "! [prefix:b/] is not there any longer, which needs a restart\n");
	assert_int_equal(c.broker.prefix_count, 2);
}

/* The session that goes on is the old one. */
TEST(what_does_not_fit_to_what_stays_is_refused)
{
	const char *before = HOST "session_timeout_ms = 6000\ntick_ms = 1000\n[locks]\nlinger_ms = 7\n";

	assert_string_equal(reloaded(before,
				     HOST "session_timeout_ms = 60000\n[locks]\ngrant_min_ms = 2000\nlinger_ms = 8\n"),
			    "locks.grant_min_ms: 2000 is not less than a third of zookeeper.session_timeout_ms = 6000");
	assert_int_equal(c.broker.linger_ns, 7 * CLOCK_NS_PER_MS);
	assert_int_equal(c.broker.grant_min_ns, 1000 * CLOCK_NS_PER_MS);
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

/* As the daemon does it at its start, of options alone: the result. */
static int load(struct conf *conf, const char *one, const char *two)
{
	char *overrides[] = { (char *)one, (char *)two };
	const struct conf_source source = { .default_file = "/nonexistent/lockbroker.conf",
					    .overrides = overrides,
					    .override_count = two ? 2 : 1 };

	conf_free(conf);
	return conf_load(conf, &source, conf_error);
}

TEST(a_source_without_a_file_is_the_defaults)
{
	char override[] = "locks.linger_ms=3", *overrides[] = { override };
	const struct conf_source source = { .file = "/nonexistent/lockbroker.conf",
					    .overrides = overrides,
					    .override_count = 1 };

	assert_int_equal(load(&c, "locks.linger_ms=3", NULL), 0);
	assert_int_equal(c.broker.linger_ns, 3 * CLOCK_NS_PER_MS);
	conf_free(&c);
	assert_true(conf_load(&c, &source, conf_error) < 0);
	assert_string_equal(conf_error, "/nonexistent/lockbroker.conf: No such file or directory");
}

/* What the next process has of `c`, which was kept for it. Overrides stand in what is kept. */
static void load_kept(struct conf *kept)
{
	char path[] = "/tmp/test_conf_reload.XXXXXX", override[] = "access.rule=deny * b lock", *overrides[] = { override };
	const struct conf_source source = { .file = path, .kept = true, .overrides = overrides, .override_count = 1 };
	FILE *out = fdopen(mkostemp(path, O_CLOEXEC), "w");

	assert_non_null(out);
	conf_keep(&c, out);
	assert_int_equal(fclose(out), 0);
	if (conf_load(kept, &source, conf_error) < 0)
		fail_msg("%s", conf_error);
	unlink(path);
}

/* The process that goes on after a kill finds rules where they stood, and users who may be gone by then. */
TEST(what_is_kept_has_the_rules_as_they_were)
{
	struct conf kept;
	struct rule *first;

	assert_int_equal(load(&c, "access.rule=allow 7-9 * look", "access.rule=deny * b lock"), 0);
	first = (struct rule *)&c.broker.access.list[0];
	rule_free(first);
	assert_int_equal(rule_parse(first, "deny somebody-who-left a* lock", "/etc/a b.conf:12", conf_error), 0);
	first->low = first->high = 4711;
	load_kept(&kept);
	assert_true(conf_access_same(&c, &kept));
	assert_int_equal(kept.broker.access.count, 2);
	assert_string_equal(kept.broker.access.list[0].where, "/etc/a b.conf:12");
	conf_free(&kept);
}

/* What is told when these users take the place of others; `first` is the number of the first one by now; 0: its own. */
static const char *taken(const char *by_unit, uint32_t first)
{
	struct conf read = { 0 };

	assert_int_equal(load(&read, by_unit, NULL), 0);
	if (first)
		*(uint32_t *)read.broker.limits.by_unit = first;
	told[0] = '\0';
	assert_int_equal(conf_take(&c, &read, false, tell, NULL, conf_error), 0);
	conf_free(&read);
	return told;
}

TEST(users_change_for_who_comes_then)
{
	assert_int_equal(load(&c, "limits.by_unit=", NULL), 0);
	assert_int_equal(c.broker.limits.by_unit_count, 0);
	assert_string_equal(taken("limits.by_unit=root, 7,8", 0),
			    "limits.by_unit = root, 7,8, before empty\n"
			    "limits.by_unit: this is for new connections, and for all after a restart or a hand-over\n");
	assert_int_equal(c.broker.limits.by_unit_count, 3);
	assert_int_equal(c.broker.limits.by_unit[0], 0);
	assert_int_equal(c.broker.limits.by_unit[2], 8);
	/* A user was made again meanwhile. */
	assert_string_equal(taken("limits.by_unit=root, 7,8", 9),
			    "limits.by_unit names users who have other numbers now: this is for new connections, and for "
			    "all after a restart or a hand-over\n");
	assert_int_equal(c.broker.limits.by_unit[0], 9);
	assert_string_equal(taken("limits.by_unit=root, 7,8", 9), "");
}

TEST(a_list_of_users_may_take_several_lines)
{
	read_text(&c, "[limits]\nby_unit = a,\n  b, c\n  7\n", NULL);
	assert_string_equal(c.by_unit, "a,b, c,7");
}

TEST(users_that_are_not_there_are_an_error)
{
	assert_true(load(&c, "limits.by_unit=no-such-user,root,nor-this-one", NULL) < 0);
	assert_string_equal(conf_error, "limits.by_unit: there is no user no-such-user; make it, or name its number\n"
					"limits.by_unit: there is no user nor-this-one; make it, or name its number");
}

/* A user that no longer exists is no error, and keeps its number. */
TEST(what_is_kept_has_the_users_as_they_were)
{
	struct conf kept;

	assert_int_equal(load(&c, "limits.by_unit=root,7", NULL), 0);
	free((void *)c.by_unit);
	c.by_unit = strdup("somebody-who-left,7");
	*(uint32_t *)c.broker.limits.by_unit = 4711;
	load_kept(&kept);
	assert_true(conf_users_same(&c, &kept));
	assert_string_equal(kept.by_unit, "somebody-who-left,7");
	assert_int_equal(kept.broker.limits.by_unit[0], 4711);
	conf_free(&kept);
}

TEST(nobody_else_says_what_a_user_was)
{
	assert_refused("[limits]\nby_unit = root\nby_unit_was = 7\n", "limits.by_unit_was: unknown key");
}

TEST(nobody_else_says_what_a_rule_was)
{
	assert_refused("[access]\nrule = deny * * lock\nwas = 1 2 x\n", "access.was: unknown key");
}
