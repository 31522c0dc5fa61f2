/* SPDX-License-Identifier: Apache-2.0 */
/* A process takes over only if its configuration and secret fit those of the one before, or says why not (identity.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/conf/conf.h"
#include "io/base/parcel.h"
#include "io/handover/identity.h"
#include "io/zookeeper/secret.h"

static struct conf conf;

static int set_up(void **state)
{
	conf_init(&conf);
	return 0;
}

static int tear_down(void **state)
{
	conf_free(&conf);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

static struct secret *make(const char *text)
{
	int fd = memfd_create("secret", MFD_CLOEXEC);
	struct secret *s;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(secret_read(&s, fd), 0);
	close(fd);
	return s;
}

/* The words that the sentence has; NULL: nothing differs. */
static void check(struct slice text, const struct identity *self, const char *words)
{
	char error[IDENTITY_ERROR_MAX];

	assert_true(identity_differs(text, self, error) == (words != NULL));
	if (words && !strstr(error, words))
		fail_msg("\"%s\" is not in \"%s\"", words, error);
}

static void check_after(const struct identity *before, const struct identity *now, const char *words)
{
	struct bytes text = { 0 };

	identity_pack(&text, before);
	check(bytes_view(&text), now, words);
	bytes_free(&text);
}

static void check_uid(int64_t uid, const char *words)
{
	const struct identity self = { .conf = &conf };
	struct bytes text = { 0 };
	struct entry_writer w = entry_begin(&text, "identity");

	entry_number(&w, "pid", 7);
	entry_number(&w, "uid", uid);
	entry_end(&w);
	check(bytes_view(&text), &self, words);
	bytes_free(&text);
}

TEST(another_user_is_refused_but_root_may_be_followed)
{
	const struct identity self = { .conf = &conf };

	check(SLICE(""), &self, "the running daemon does not say who it is");
	check_uid((int64_t)geteuid() + 1, "the running daemon has uid ");
	check_uid(0, "the configuration now has daemon.socket = ");
}

/* As it stands in what the process hands over or leaves to systemd, and in its file `saved`. */
TEST(what_a_process_of_0_2_0_says_of_itself_is_understood)
{
	static const char text[] = "identity version 5:0.2.0,pid 5:19136,standalone 1:1,daemon.socket 9:/x/socket,"
				   "daemon.rundir 2:17,daemon.statedir 2:/x,zookeeper.root 11:/lockbroker,zookeeper.host 4:host,\n";
	char socket[] = "/x/socket", rundir[] = "17", statedir[] = "/x", root[] = "/lockbroker", host[] = "host", none[] = "";
	struct conf its = { .socket = socket, .rundir = rundir, .statedir = statedir, .operator_socket = none };
	const struct identity self = { .conf = &its, .standalone = true };

	its.broker.root = root;
	its.broker.host = host;
	check(SLICE(text), &self, NULL);
	its.rundir = statedir;
	check(SLICE(text), &self, "the configuration now has daemon.rundir = /x, and the running daemon has 17:");
}

TEST(what_cannot_change_is_named)
{
	const struct identity self = { .conf = &conf };
	struct conf other = conf;
	const struct identity another = { .conf = &other }, standalone = { .conf = &conf, .standalone = true };
	char elsewhere[] = "elsewhere";

	check_after(&self, &self, NULL);
	check_after(&self, &standalone, "only one of the two processes is standalone");
	other.broker.host = elsewhere;
	check_after(&self, &another, "the configuration now has zookeeper.host = elsewhere");
	other = conf;
	other.rundir = elsewhere;
	check_after(&self, &another, "the configuration now has daemon.rundir = elsewhere");
	other = conf;
	other.broker.prefixes = &(struct broker_prefix){ .prefix = elsewhere, .path = elsewhere };
	other.broker.prefix_count = 1;
	check_after(&self, &another, "the configuration now has other prefixes");
}

TEST(the_line_to_which_znodes_belong_has_to_be_there)
{
	struct secret *old = make("broker:old\n"), *both = make("broker:new\nbroker:old\n"), *new = make("broker:new\n");
	const struct identity none = { .conf = &conf }, of_old = { &conf, old, false }, of_both = { &conf, both, false };
	const struct identity of_new = { &conf, new, false }, alone = { &conf, old, true }, alone_new = { &conf, new, true };

	check_after(&of_old, &of_both, NULL);
	check_after(&of_both, &of_new, NULL);
	check_after(&none, &of_new, NULL);
	check_after(&of_old, &of_new, "zookeeper.auth_file lacks the first line");
	check_after(&of_both, &of_old, "zookeeper.auth_file lacks the first line");
	check_after(&of_old, &none, "zookeeper.auth_file lacks the first line");
	check_after(&alone, &alone_new, NULL);
	secret_close(old);
	secret_close(both);
	secret_close(new);
}

TEST(each_part_of_a_prefix_counts)
{
	char prefix[] = "jobs/", other_prefix[] = "job/", path[] = "/a", other_path[] = "/b";
	struct broker_prefix was = { .prefix = prefix, .path = path, .flavour = FLAVOUR_RW };
	struct broker_prefix others[] = { was, was, was };
	struct conf of_was = conf, of_other = conf;
	const struct identity before = { .conf = &of_was }, now = { .conf = &of_other };

	others[0].prefix = other_prefix;
	others[1].path = other_path;
	others[2].flavour = FLAVOUR_MUTEX;
	of_was.broker.prefixes = &was;
	of_was.broker.prefix_count = of_other.broker.prefix_count = 1;
	of_other.broker.prefixes = &was;
	check_after(&before, &now, NULL);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		of_other.broker.prefixes = &others[i];
		check_after(&before, &now, "the configuration now has other prefixes");
	}
	of_other.broker.prefixes = &was;
	of_other.broker.prefix_count = 0;
	check_after(&before, &now, "the configuration now has other prefixes");
}

TEST(each_key_that_cannot_change_is_named_with_both_values)
{
	char elsewhere[] = "elsewhere";
	struct conf other;
	const struct identity before = { .conf = &conf }, now = { .conf = &other };
	const struct {
		const char **at;
		const char *sentence;
	} keys[] = {
		{ &other.socket, "the configuration now has daemon.socket = elsewhere, and the running daemon has /" },
		{ &other.rundir, "the configuration now has daemon.rundir = elsewhere, and the running daemon has /" },
		{ &other.statedir, "the configuration now has daemon.statedir = elsewhere, and the running daemon has /" },
		{ &other.broker.root, "the configuration now has zookeeper.root = elsewhere, and the running daemon has /" },
		{ &other.broker.host, "the configuration now has zookeeper.host = elsewhere, and the running daemon has " },
		{ &other.operator_socket, "the configuration now has daemon.operator_socket = elsewhere, and the running" },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		other = conf;
		*keys[i].at = elsewhere;
		check_after(&before, &now, keys[i].sentence);
	}
}
