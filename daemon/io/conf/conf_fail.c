/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/conf/conf_section.h"

int conf_fail(char error[CONF_ERROR_MAX], const char *where, const char *format, ...)
{
	static const char more[] = "there are more errors than can be shown at once";
	char sentence[CONF_SENTENCE_MAX];
	size_t len = strlen(error);
	va_list args;
	int used;

	used = snprintf(sentence, sizeof(sentence), "%s: ", where);
	va_start(args, format);
	if (used > 0 && (size_t)used < sizeof(sentence))
		vsnprintf(sentence + used, sizeof(sentence) - (size_t)used, format, args);
	va_end(args);
	if (len + strlen(sentence) + sizeof(more) + 2 < CONF_ERROR_MAX)
		snprintf(error + len, CONF_ERROR_MAX - len, "%s%s", len > 0 ? "\n" : "", sentence);
	else if (len + sizeof(more) < CONF_ERROR_MAX && !strstr(error, more))
		snprintf(error + len, CONF_ERROR_MAX - len, "\n%s", more);
	return -EINVAL;
}

const char *conf_section_no_tcp(const struct conf_section *section, const char *name, const char *value)
{
	static const char *const keys[] = { "port", "bind", "listen", "address", "tls-port", "tcp_port" };
	bool looks = strstr(name, "socket") && value[0] != '/' && strchr(value, ':');

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		looks |= strcmp(name, keys[i]) == 0;
	return looks && strcmp(section->name, "daemon") == 0
		       ? "; lockbrokerd listens on Unix sockets only: of a client over TCP it would not know the user (uid)"
		       : "";
}
