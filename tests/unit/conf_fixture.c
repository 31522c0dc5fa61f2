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

static void add(char *to, const char *text, size_t len, const char *more)
{
	size_t used = strlen(to);

	snprintf(to + used, CONF_ERROR_MAX - used, "%.*s%s", (int)len, text, more);
}

int read_text(struct conf *conf, const char *text, char *error)
{
	char path[] = "/tmp/test_conf.XXXXXX", own[CONF_ERROR_MAX] = "", *in, *rest;
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = conf_read(conf, path, own);
	unlink(path);
	if (!error) {
		if (rc < 0)
			fail_msg("%s", own);
		return rc;
	}
	/* The name of the file is told, and differs from run to run. */
	error[0] = '\0';
	for (rest = own; (in = strstr(rest, path)); rest = in + strlen(path))
		add(error, rest, (size_t)(in - rest), "FILE");
	add(error, rest, strlen(rest), "");
	return rc;
}

void assert_refused(const char *text, const char *expected)
{
	char error[CONF_ERROR_MAX] = "";
	struct conf conf;

	conf_init(&conf);
	assert_int_equal(read_text(&conf, text, error), -EINVAL);
	if (!strstr(error, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, error);
	conf_free(&conf);
}

static int set(const char *section, const char *name, const char *value)
{
	char error[CONF_ERROR_MAX] = "", *text;
	struct conf conf;
	int rc;

	conf_init(&conf);
	assert_true(asprintf(&text, "%s.%s=%s", section, name, value) > 0);
	rc = conf_override(&conf, text, error);
	free(text);
	conf_free(&conf);
	return rc;
}

void assert_allowed(const char *section, const char *name, const char *value)
{
	if (set(section, name, value) < 0)
		fail_msg("%s.%s = %s is refused", section, name, value);
}

void assert_not_allowed(const char *section, const char *name, const char *value)
{
	if (set(section, name, value) == 0)
		fail_msg("%s.%s = %s is taken", section, name, value);
}

void fill(char *text, size_t len, char first, char c)
{
	memset(text, c, len);
	text[0] = first;
	text[len] = '\0';
}

char *printed(const struct conf *c)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	conf_print(c, out);
	fclose(out);
	return text;
}
