/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups that rules name: who is not there, and what cannot be found out now. A table stands in for libc. */
#include "base/rule_names.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

enum { HERE = 4711, LARGE_BYTES = 1 << 20 };

static size_t largest; /* buffer */

/* What a service answers for that name, and whether it has found it. */
static int answer(const char *name, size_t size, bool *ret_found)
{
	int error = 0;

	largest = size > largest ? size : largest;
	*ret_found = strcmp(name, "here") == 0 || (strcmp(name, "large") == 0 && size >= LARGE_BYTES);
	if (sscanf(name, "error%d", &error) == 1)
		return error;
	return strcmp(name, "large") == 0 && !*ret_found ? ERANGE : 0;
}

int getpwnam_r(const char *name, struct passwd *entry, char *text, size_t size, struct passwd **ret)
{
	bool found;
	int error = answer(name, size, &found);

	entry->pw_uid = HERE;
	*ret = found ? entry : NULL;
	return error;
}

int getgrnam_r(const char *name, struct group *entry, char *text, size_t size, struct group **ret)
{
	bool found;
	int error = answer(name, size, &found);

	entry->gr_gid = HERE + 1;
	*ret = found ? entry : NULL;
	return error;
}

static int resolve(const char *who, struct rule *r, char error[RULE_ERROR_MAX])
{
	char text[64];
	int rc;

	snprintf(text, sizeof(text), "deny %s * lock", who);
	assert_int_equal(rule_parse(r, text, "conf:1", error), 0);
	error[0] = '\0';
	rc = rule_resolve(r, error);
	if (rc < 0)
		rule_free(r);
	return rc;
}

static void expect_number(const char *who, uint32_t number)
{
	char error[RULE_ERROR_MAX];
	struct rule r;

	assert_int_equal(resolve(who, &r, error), 0);
	assert_int_equal(r.low, number);
	assert_int_equal(r.high, number);
	rule_free(&r);
}

static void expect_error(const char *who, int rc, const char *sentence)
{
	char error[RULE_ERROR_MAX];
	struct rule r;

	assert_int_equal(resolve(who, &r, error), rc);
	assert_string_equal(error, sentence);
}

TEST(who_is_there_is_found)
{
	expect_number("here", HERE);
	expect_number("@here", HERE + 1);
}

TEST(who_is_not_there_is_an_error_of_the_configuration)
{
	expect_error("missing", -ENOENT, "there is no user missing; make it, or name its number");
	expect_error("@missing", -ENOENT, "there is no group missing; make it, or name its number");
	expect_error("error2", -ENOENT, "there is no user error2; make it, or name its number"); /* ENOENT */
	expect_error("error3", -ENOENT, "there is no user error3; make it, or name its number"); /* ESRCH */
}

TEST(what_cannot_be_found_out_now_may_be_known_later)
{
	expect_error("error5", -EAGAIN, "the user error5 cannot be looked up: Input/output error");
	expect_error("@error24", -EAGAIN, "the group error24 cannot be looked up: Too many open files");
}

TEST(an_entry_may_be_large)
{
	expect_number("@large", HERE + 1);
	assert_true(largest >= LARGE_BYTES);
	expect_error("error34", -EAGAIN, "the user error34 cannot be looked up: Numerical result out of range");
}
