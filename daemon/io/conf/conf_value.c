/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf_value.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/conf/conf_access.h"
#include "protocol/name.h"

enum {
	PATH_BYTES_MAX = 107, /* what fits into a socket address */
	ROOT_BYTES_MAX = 150,
	WORD_BYTES_MAX = 100,
};

bool conf_value_is_number(const struct conf_key *key)
{
	return key->type == CONF_NUMBER || key->type == CONF_OCTAL || key->type == CONF_YES || key->type == CONF_AUTO ||
	       key->type == CONF_LEVEL || key->type == CONF_FLAVOUR;
}

int64_t conf_value_number(const struct conf_key *key, const void *base)
{
	const char *field = (const char *)base + key->offset;
	int64_t value = 0;
	uint32_t word;

	if (key->size == sizeof(bool)) {
		value = *(const bool *)field;
	} else if (key->size == sizeof(word)) {
		memcpy(&word, field, sizeof(word));
		value = word;
	} else {
		memcpy(&value, field, sizeof(value));
	}
	return value / key->unit;
}

void conf_value_set_number(const struct conf_key *key, void *base, int64_t number)
{
	char *field = (char *)base + key->offset;
	int64_t value = number * key->unit;
	uint32_t word = (uint32_t)value;

	assert(key->size == sizeof(bool) || key->size == sizeof(word) || key->size == sizeof(value));
	if (key->size == sizeof(bool))
		*(bool *)field = value != 0;
	else
		memcpy(field, key->size == sizeof(word) ? (void *)&word : &value, key->size);
}

const char **conf_value_text(const struct conf_key *key, const void *base)
{
	return (const char **)(void *)((char *)base + key->offset);
}

void conf_value_set_text(const struct conf_key *key, void *base, const char *text)
{
	const char **field = conf_value_text(key, base);

	free((void *)*field);
	*field = text ? mem_text(text) : NULL;
}

/* A value that the file format cannot carry is not accepted anywhere, so that printed values can be read back. */
static bool is_plain(const char *value)
{
	size_t i, len = strlen(value);

	for (i = 0; i < len; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f || value[i] == ';')
			return false;
	return len == 0 || (!isspace((unsigned char)value[0]) && !isspace((unsigned char)value[len - 1]));
}

static bool parse_number(const struct conf_key *key, const char *value, int base, int64_t *ret)
{
	intmax_t number;
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return false;
	errno = 0;
	number = strtoimax(value, &end, base);
	if (errno || *end || number < key->min || number > key->max)
		return false;
	*ret = number;
	return true;
}

/* The place of the value among the words, which NULL ends. */
static bool parse_word(const char *value, const char *const *words, int (*compare)(const char *, const char *),
		       int64_t *ret)
{
	for (*ret = 0; words[*ret]; ++*ret)
		if (compare(value, words[*ret]) == 0)
			return true;
	return false;
}

static bool parse_yes(const char *value, int64_t *ret)
{
	static const char *const words[] = { "0", "1", "no", "yes", "false", "true", "off", "on", NULL };
	bool found = parse_word(value, words, strcasecmp, ret);

	*ret %= 2;
	return found;
}

/* The broker's levels are those of the log. */
static_assert((int)EFFECT_LEVEL_ERROR == (int)LOG_LEVEL_ERROR && (int)EFFECT_LEVEL_WARNING == (int)LOG_LEVEL_WARNING &&
		      (int)EFFECT_LEVEL_INFO == (int)LOG_LEVEL_INFO && (int)EFFECT_LEVEL_DEBUG == (int)LOG_LEVEL_DEBUG,
	      "broker.log_level is read as both");

static const char *const flavours[] = {
	[FLAVOUR_RW] = "rw", [FLAVOUR_MUTEX] = "mutex", [FLAVOUR_KAZOO] = "kazoo", NULL
};

static bool is_path(const char *value)
{
	size_t len = strlen(value);

	return len >= 2 && len <= PATH_BYTES_MAX && value[0] == '/' && value[len - 1] != '/' && is_plain(value);
}

static bool is_port(const char *text, size_t len)
{
	long port = 0;
	size_t i;

	for (i = 0; i < len && i < 6; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		port = port * 10 + (text[i] - '0');
	}
	return len >= 1 && len <= 5 && port >= 1 && port <= 65535;
}

/* host:port or [address]:port */
static bool is_server(const char *text, size_t len)
{
	static const char host_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
	static const char address_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:%";
	size_t host;

	if (len > 0 && text[0] == '[') {
		host = strspn(text + 1, address_chars) + 1;
		if (host < 3 || host >= len || text[host] != ']')
			return false;
		host++;
	} else {
		host = strspn(text, host_chars);
	}
	return host > 0 && host + 1 < len && text[host] == ':' && is_port(text + host + 1, len - host - 1);
}

/* Empty means standalone. Blanks around the commas are allowed. */
static bool is_servers(const char *value)
{
	const char *p = value, *last = value, *end;
	size_t len;

	if (!*value)
		return true;
	for (;;) {
		p += strspn(p, " \t");
		end = p + strcspn(p, ",");
		len = (size_t)(end - p);
		while (len > 0 && isspace((unsigned char)p[len - 1]))
			len--;
		/* A comma at the end of a line means that the list continues in the next line. */
		if (len == 0 && !*end && last > value)
			return true;
		if (!is_server(p, len))
			return false;
		if (!*end)
			return true;
		last = p = end + 1;
	}
}

static bool is_component(const char *text, size_t len)
{
	size_t i;

	if (len == 0 || (len == 1 && text[0] == '.') || (len == 2 && text[0] == '.' && text[1] == '.'))
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-%@+=:", text[i]))
			return false;
	return true;
}

static bool is_root(const char *value)
{
	const char *p = value;
	size_t len;

	if (strlen(value) > ROOT_BYTES_MAX || strcmp(value, "/zookeeper") == 0 ||
	    strncmp(value, "/zookeeper/", 11) == 0)
		return false;
	do {
		if (*p++ != '/')
			return false;
		len = strcspn(p, "/");
		if (!is_component(p, len))
			return false;
		p += len;
	} while (*p);
	return true;
}

static bool is_word(const char *value, bool dot_first)
{
	size_t i, len = strlen(value);

	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)value[i]) && !strchr("._-", value[i]))
			return false;
	return len <= WORD_BYTES_MAX && (dot_first || value[0] != '.');
}

bool conf_value_is_prefix(const char *prefix)
{
	size_t len = strlen(prefix);

	return len >= 1 && len <= CONF_PREFIX_BYTES_MAX && name_is_text(slice_of(prefix)) && is_plain(prefix) &&
	       !strchr(prefix, ']');
}

void conf_value_prefix_allowed(char allowed[CONF_ALLOWED_MAX])
{
	snprintf(allowed, CONF_ALLOWED_MAX,
		 "1 to %d bytes of UTF-8 without control characters, ] and ;, and no blank first or last",
		 CONF_PREFIX_BYTES_MAX);
}

bool conf_value_parse(const struct conf_key *key, const char *value, int64_t *ret_number)
{
	switch (key->type) {
	case CONF_NUMBER:
		return parse_number(key, value, 10, ret_number);
	case CONF_OCTAL:
		return parse_number(key, value, 8, ret_number);
	case CONF_YES:
		return parse_yes(value, ret_number);
	case CONF_AUTO:
		*ret_number = CONF_AUTO_AUTO;
		return strcmp(value, "auto") == 0 || parse_yes(value, ret_number);
	case CONF_LEVEL:
		return parse_word(value, log_level_words, strcmp, ret_number);
	case CONF_FLAVOUR:
		return parse_word(value, flavours, strcmp, ret_number);
	case CONF_PATH:
		return is_path(value);
	case CONF_FILE:
		return !*value || is_path(value);
	case CONF_GROUP:
		return is_word(value, true);
	case CONF_SERVERS:
		return is_servers(value);
	case CONF_USERS:
		return conf_users_are(value);
	case CONF_ROOT:
		return is_root(value);
	case CONF_ZNODE:
		return !*value || is_root(value);
	case CONF_HOST:
		return is_word(value, false);
	}
	return false;
}

#define ZNODE_PHRASE "an absolute znode path of at most 150 bytes, not \"/\", not below /zookeeper, no slash at its end"

/* The allowed values of each type whose keys have no bounds of their own. */
static const char *const phrases[] = {
	[CONF_YES] = "yes or no, true or false, on or off, 1 or 0",
	[CONF_AUTO] = "auto, yes or no, true or false, on or off, 1 or 0",
	[CONF_LEVEL] = "error, warning, info or debug",
	[CONF_FLAVOUR] = "rw, mutex or kazoo",
	[CONF_PATH] = "an absolute path of at most 107 bytes, no slash at its end",
	[CONF_FILE] = "an absolute path of at most 107 bytes, or empty",
	[CONF_GROUP] = "a group's name or number, or empty",
	[CONF_SERVERS] = "host:port, separated by commas, IPv6 addresses in brackets",
	[CONF_USERS] = "names or numbers of users, separated by commas, at most 64, or empty",
	[CONF_ROOT] = ZNODE_PHRASE,
	[CONF_ZNODE] = ZNODE_PHRASE ", or empty",
	[CONF_HOST] = "at most 100 letters, digits, dots, hyphens or underscores, no dot first",
};

static_assert(PATH_BYTES_MAX == 107 && CONF_USERS_MAX == 64 && ROOT_BYTES_MAX == 150 && WORD_BYTES_MAX == 100,
	      "the phrases name these");

void conf_value_allowed(const struct conf_key *key, char allowed[CONF_ALLOWED_MAX])
{
	if (key->type == CONF_NUMBER)
		snprintf(allowed, CONF_ALLOWED_MAX, "a number from %" PRId64 " to %" PRId64, key->min, key->max);
	else if (key->type == CONF_OCTAL)
		snprintf(allowed, CONF_ALLOWED_MAX, "an octal number from %" PRIo64 " to %04" PRIo64,
			 (uint64_t)key->min, (uint64_t)key->max);
	else
		snprintf(allowed, CONF_ALLOWED_MAX, "%s", phrases[key->type]);
}

/* A long list continues in indented lines, because the lines of the format are short. Where it breaks no blank may count. */
static void print_list(const char *list, FILE *out)
{
	const char *p;
	size_t column = 0;

	for (p = list; *p; p++) {
		if (isspace((unsigned char)*p))
			continue;
		fputc(*p, out);
		column++;
		if (*p == ',' && column > 60) {
			fputs("\n  ", out);
			column = 0;
		}
	}
}

void conf_value_print(const struct conf_key *key, const void *base, FILE *out)
{
	int64_t number = conf_value_is_number(key) ? conf_value_number(key, base) : 0;

	if (key->type == CONF_SERVERS || key->type == CONF_USERS)
		print_list(*conf_value_text(key, base), out);
	else if (!conf_value_is_number(key))
		fputs(*conf_value_text(key, base), out);
	else if (key->type == CONF_OCTAL)
		fprintf(out, "%04" PRIo64, (uint64_t)number);
	else if (key->type == CONF_LEVEL)
		fputs(log_level_words[number], out);
	else if (key->type == CONF_FLAVOUR)
		fputs(flavours[number], out);
	else if (key->type == CONF_AUTO && number == CONF_AUTO_AUTO)
		fputs("auto", out);
	else
		fprintf(out, "%" PRId64, number);
}
