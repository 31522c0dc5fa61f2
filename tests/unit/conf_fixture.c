/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the configuration have in common. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/conf/conf_file.h"
#include "conf_fixture.h"

struct conf c;
char conf_error[CONF_ERROR_MAX];

int conf_begin(void **state)
{
	conf_anew();
	return 0;
}

int conf_end(void **state)
{
	conf_free(&c);
	return 0;
}

void conf_anew(void)
{
	conf_error[0] = '\0';
	conf_free(&c);
	conf_init(&c);
}

static void add(char *to, const char *text, size_t len, const char *more)
{
	size_t used = strlen(to);

	snprintf(to + used, CONF_ERROR_MAX - used, "%.*s%s", (int)len, text, more);
}

int read_text(struct conf *conf, const char *text, char *ret_error)
{
	char path[] = "/tmp/test_conf.XXXXXX", own[CONF_ERROR_MAX] = "", *in, *rest;
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = conf_read(conf, path, own);
	unlink(path);
	if (!ret_error) {
		if (rc < 0)
			fail_msg("%s", own);
		return rc;
	}
	/* The name of the file is told, and differs from run to run. */
	ret_error[0] = '\0';
	for (rest = own; (in = strstr(rest, path)); rest = in + strlen(path))
		add(ret_error, rest, (size_t)(in - rest), "FILE");
	add(ret_error, rest, strlen(rest), "");
	return rc;
}

void assert_refused(const char *text, const char *expected)
{
	struct conf conf;

	conf_init(&conf);
	assert_int_equal(read_text(&conf, text, conf_error), -EINVAL);
	if (!strstr(conf_error, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, conf_error);
	conf_free(&conf);
}

int override(const char *text)
{
	conf_error[0] = '\0';
	return conf_override(&c, text, conf_error);
}

void assert_overridden(const char *text)
{
	if (override(text) != 0)
		fail_msg("%s", conf_error);
}

void assert_override_refused(const char *text, const char *expected)
{
	assert_int_equal(override(text), -EINVAL);
	assert_string_equal(conf_error, expected);
}

static int set(const char *section, const char *name, const char *value)
{
	struct conf conf;
	char *text;
	int rc;

	conf_init(&conf);
	assert_true(asprintf(&text, "%s.%s=%s", section, name, value) > 0);
	rc = conf_override(&conf, text, conf_error);
	free(text);
	conf_free(&conf);
	return rc;
}

void assert_allowed(const char *section, const char *name, const char *const *values)
{
	for (; *values; values++)
		if (set(section, name, *values) < 0)
			fail_msg("%s.%s = %s is refused", section, name, *values);
}

void assert_not_allowed(const char *section, const char *name, const char *const *values)
{
	for (; *values; values++)
		if (set(section, name, *values) == 0)
			fail_msg("%s.%s = %s is taken", section, name, *values);
}

void fill(char *text, size_t len, char first, char others)
{
	memset(text, others, len);
	text[0] = first;
	text[len] = '\0';
}

char *printed(const struct conf *conf)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	conf_print(conf, out);
	fclose(out);
	return text;
}

void assert_printed_again(const struct conf *conf, struct conf *back)
{
	char *text = printed(conf), *again;

	conf_init(back);
	read_text(back, text, NULL);
	again = printed(back);
	assert_string_equal(again, text);
	free(text);
	free(again);
}
