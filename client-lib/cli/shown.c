/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/shown.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "client-lib/cli/reply_text.h"

/* ---- characters ---- */

size_t cli_character(const char *text, size_t len, int32_t *ret)
{
	static const int32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned char c = (unsigned char)text[0];
	size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
	int32_t number = more ? c & (0x3f >> more) : c;
	size_t i;

	*ret = -1;
	if ((c >= 0x80 && c < 0xc0) || c >= 0xf8 || more >= len)
		return 1;
	for (i = 1; i <= more; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 1;
		number = number << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (number < least[more] || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
		return 1;
	*ret = number;
	return more + 1;
}

bool cli_is_harmful(int32_t c)
{
	/* Breaks of a line, and the class Default_Ignorable_Code_Point of Unicode, which has the marks of direction. */
	static const struct {
		int32_t first, last;
	} harmful[] = {
		{ INT32_MIN, 0x1f },  { 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },
		{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x2028, 0x202e },
		{ 0x2060, 0x206f },   { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfff8 },   { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]) && c >= harmful[i].first; i++)
		if (c <= harmful[i].last)
			return true;
	return false;
}

/* What another process calls itself must not steer the reader's terminal. */
size_t cli_show_character(const char *text, size_t len, char ret_shown[CLI_SHOWN_MAX], int *ret_width)
{
	int32_t c;
	size_t used = cli_character(text, len, &c);

	if (cli_is_harmful(c)) {
		if (c < 0)
			*ret_width = snprintf(ret_shown, CLI_SHOWN_MAX, "\\x%02x", (unsigned)(unsigned char)text[0]);
		else
			*ret_width = snprintf(ret_shown, CLI_SHOWN_MAX, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
		return used;
	}
	memcpy(ret_shown, text, used);
	ret_shown[used] = '\0';
	*ret_width = wcwidth((wchar_t)c);
	if (*ret_width < 0)
		*ret_width = 1;
	return used;
}

const char *cli_shown(const char *text, char *ret, size_t size)
{
	size_t len = strlen(text), at = 0, to = 0;
	char shown[CLI_SHOWN_MAX];
	int width;

	while (at < len) {
		at += cli_show_character(text + at, len - at, shown, &width);
		if (to + strlen(shown) >= size)
			break;
		memcpy(ret + to, shown, strlen(shown));
		to += strlen(shown);
	}
	ret[to] = '\0';
	return ret;
}

void cli_quoted(struct slice text)
{
	static const char escaped[] = "\"\"\\\\\nn\rr\tt";
	size_t used;
	int32_t c;

	putchar('"');
	for (size_t at = 0; at < text.len; at += used) {
		const char *letter = escaped;

		used = cli_character(text.data + at, text.len - at, &c);
		while (*letter && *letter != text.data[at])
			letter += 2;
		if (*letter)
			printf("\\%c", letter[1]);
		else if (!cli_is_harmful(c) && c >= 0)
			printf("%.*s", (int)used, text.data + at);
		else
			for (size_t i = 0; i < used; i++)
				printf("\\x%02x", (unsigned)(unsigned char)text.data[at + i]);
	}
	putchar('"');
}

/* ---- numbers ---- */

const char *cli_duration(long long ms, char ret[CLI_DURATION_MAX])
{
	long long seconds = ms / 1000;

	if (ms < 0)
		ret[0] = '\0';
	else if (ms < 1000)
		snprintf(ret, CLI_DURATION_MAX, "%lldms", ms);
	else if (seconds < 60)
		snprintf(ret, CLI_DURATION_MAX, "%llds", seconds);
	else if (seconds < 3600)
		snprintf(ret, CLI_DURATION_MAX, "%lldm%02llds", seconds / 60, seconds % 60);
	else if (seconds < 86400)
		snprintf(ret, CLI_DURATION_MAX, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
	else
		snprintf(ret, CLI_DURATION_MAX, "%lldd%02lldh", seconds / 86400, seconds / 3600 % 24);
	return ret;
}

const char *cli_instant(long long seconds, char ret[CLI_DURATION_MAX])
{
	time_t at = (time_t)seconds;
	struct tm tm;

	if (!localtime_r(&at, &tm) || !strftime(ret, CLI_DURATION_MAX, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(ret, CLI_DURATION_MAX, "%lld", seconds);
	return ret;
}

/* ---- lines ---- */

void cli_text(struct slice text)
{
	char shown[CLI_SHOWN_MAX];
	int width;

	if (text.len == 0)
		putchar('-');
	for (size_t at = 0; at < text.len;) {
		at += cli_show_character(text.data + at, text.len - at, shown, &width);
		fputs(shown, stdout);
	}
}

bool cli_next_line(struct slice *text, struct slice *ret)
{
	const char *end;

	if (text->len == 0)
		return false;
	end = memchr(text->data, '\n', text->len);
	ret->data = text->data;
	ret->len = end ? (size_t)(end - text->data) : text->len;
	text->data += end ? ret->len + 1 : ret->len;
	text->len -= end ? ret->len + 1 : ret->len;
	if (ret->len > 0 && ret->data[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

void cli_lines(struct slice text)
{
	struct slice line;

	while (cli_next_line(&text, &line)) {
		if (line.len > 0)
			cli_text(line);
		putchar('\n');
	}
}

void cli_line(const struct lb_reply *value)
{
	if (lb_reply_type(value) == LB_REPLY_INTEGER)
		printf("%lld", (long long)lb_reply_integer(value));
	else
		cli_text(reply_text(value));
	putchar('\n');
}
