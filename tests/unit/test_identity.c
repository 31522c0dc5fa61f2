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
	(void)state;
	conf_init(&conf);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
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
static void check(const struct parcel *p, const struct identity *self, const char *words)
{
	char error[IDENTITY_ERROR_MAX];

	assert_true(identity_differs(p, self, error) == (words != NULL));
	if (words && !strstr(error, words))
		fail_msg("\"%s\" is not in \"%s\"", words, error);
}

static void check_after(const struct identity *before, const struct identity *now, const char *words)
{
	struct parcel p = { 0 };

	identity_pack(&p, before);
	check(&p, now, words);
	parcel_free(&p);
}

TEST(another_user_is_refused_but_root_may_be_followed)
{
	const struct identity self = { .conf = &conf };
	struct parcel p = { 0 };

	(void)state;
	check(&p, &self, "the running daemon does not say who it is");
	parcel_begin(&p, "identity");
	parcel_int(&p, "uid", (int64_t)geteuid() + 1);
	parcel_end(&p);
	check(&p, &self, "the running daemon has uid ");
	parcel_free(&p);
	parcel_begin(&p, "identity");
	parcel_int(&p, "uid", 0);
	parcel_end(&p);
	check(&p, &self, "the configuration now has daemon.socket = ");
	parcel_free(&p);
}

TEST(what_cannot_change_is_named)
{
	const struct identity self = { .conf = &conf };
	struct conf other = conf;
	const struct identity another = { .conf = &other }, standalone = { .conf = &conf, .standalone = true };
	char elsewhere[] = "elsewhere";

	(void)state;
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

	(void)state;
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
