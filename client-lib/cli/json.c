/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client-lib/cli/shown.h"

bool cli_json_asked;

/* ---- where it goes ---- */

static FILE *other; /* NULL: to the standard output */

static FILE *to(void)
{
	return other ? other : stdout;
}

/* ---- texts ---- */

static void print_unit(uint32_t unit)
{
	fprintf(to(), "\\u%04x", (unsigned)unit);
}

/* JSON numbers characters beyond 16 bits in two halves. */
static void print_escaped(int32_t c)
{
	if (c < 0x10000) {
		print_unit((uint32_t)c);
		return;
	}
	print_unit(0xd800 + ((uint32_t)(c - 0x10000) >> 10));
	print_unit(0xdc00 + ((uint32_t)(c - 0x10000) & 0x3ff));
}

void cli_json_text(struct slice text)
{
	size_t used;
	int32_t c;

	putc('"', to());
	for (size_t at = 0; at < text.len; at += used) {
		used = cli_character(text.data + at, text.len - at, &c);
		if (c == '"' || c == '\\')
			fprintf(to(), "\\%c", (char)c);
		else if (c == '\n')
			fputs("\\n", to());
		else if (c < 0)
			print_escaped(0xfffd);
		else if (cli_is_harmful(c))
			print_escaped(c);
		else
			fwrite(text.data + at, 1, used, to());
	}
	putc('"', to());
}

/* ---- values ---- */

/* Keys of what is true or false, and of numbers whose 0 says that there is none. */
static const char *const flags[] = { "self", "known", "more", "allowed", "loading", "stopping", "draining", "connected",
				     "announced", "stalled", "locks_barred", "names_refused", "audit_running", NULL };
static const char *const counted_from_one[] = { "client", "pid", "token", "depth", "limit", "delegated", "position", NULL };
/* Texts that somebody has chosen: they stay texts if they look like numbers. */
static const char *const chosen[] = { "host", "rival", "server", "name", "path", "command", "why", "data", NULL };

static bool is_one_of(struct slice key, const char *const *keys)
{
	while (*keys && !slice_eq(key, slice_of(*keys)))
		keys++;
	return *keys;
}

/* ACCOUNTS has a number that is called as what ACCESS allows. */
bool cli_is_flag(const struct lb_reply *map, struct slice key)
{
	return is_one_of(key, flags) && !lb_reply_field(map, "used");
}

bool cli_is_null(const struct lb_reply *map, struct slice key, const struct lb_reply *value)
{
	long long number = (long long)lb_reply_integer(value);
	const struct lb_reply *pid = lb_reply_field(map, "pid");

	if (lb_reply_type(value) == LB_REPLY_TEXT)
		return reply_text(value).len == 0;
	if (lb_reply_type(value) != LB_REPLY_INTEGER)
		return lb_reply_type(value) == LB_REPLY_NIL;
	if (number < 0)
		return key.len > 3 && memcmp(key.data + key.len - 3, "_ms", 3) == 0;
	/* Of who is not known the number of the user is not either. */
	return number == 0 && (is_one_of(key, counted_from_one) ||
			       (slice_eq(key, SLICE("uid")) && pid && !lb_reply_integer(pid)));
}

static void print(const struct lb_reply *value, struct slice key, const struct lb_reply *map, bool plain);

static void print_pairs(const struct lb_reply *map, bool plain)
{
	putc('{', to());
	for (size_t i = 0; i < lb_reply_count(map); i++) {
		struct slice key = reply_text(lb_reply_key(map, i));

		if (i > 0)
			putc(',', to());
		cli_json_text(key);
		putc(':', to());
		print(lb_reply_item(map, i), key, map, plain);
	}
}

static void print_array(const struct lb_reply *array, bool plain)
{
	const struct lb_reply *item = lb_reply_item(array, 0);
	size_t count = lb_reply_count(array);

	putc('[', to());
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			putc(',', to());
		print(item, SLICE(""), NULL, plain);
		if (i + 1 < count)
			item = lb_reply_next(item);
	}
	putc(']', to());
}

static void print(const struct lb_reply *value, struct slice key, const struct lb_reply *map, bool plain)
{
	if (map && !plain && cli_is_null(map, key, value)) {
		fputs("null", to());
		return;
	}
	switch (lb_reply_type(value)) {
	case LB_REPLY_NIL:
		fputs("null", to());
		break;
	case LB_REPLY_TEXT:
		cli_json_text(reply_text(value));
		break;
	case LB_REPLY_INTEGER:
		if (map && !plain && cli_is_flag(map, key))
			fputs(lb_reply_integer(value) ? "true" : "false", to());
		else
			fprintf(to(), "%lld", (long long)lb_reply_integer(value));
		break;
	case LB_REPLY_ARRAY:
		print_array(value, plain);
		break;
	case LB_REPLY_MAP:
		print_pairs(value, plain);
		putc('}', to());
		break;
	}
}

void cli_json(const struct lb_reply *reply)
{
	print(reply, SLICE(""), NULL, false);
}

void cli_json_open(const struct lb_reply *map)
{
	print_pairs(map, false);
}

void cli_json_plain(const struct lb_reply *reply)
{
	print(reply, SLICE(""), NULL, true);
}

void cli_json_line(const struct lb_reply *reply)
{
	cli_json(reply);
	putc('\n', to());
}

void cli_json_into(FILE *file)
{
	other = file;
}

/* As JSON has whole numbers: without zeros before it. */
static bool is_number(struct slice text)
{
	size_t sign = text.len > 0 && text.data[0] == '-', digits = sign;

	while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
		digits++;
	return digits == text.len && digits > sign && (text.data[sign] != '0' || text.len == 1);
}

void cli_json_field(bool first, struct slice key, struct slice text)
{
	if (!first)
		putc(',', to());
	cli_json_text(key);
	putc(':', to());
	if (text.len == 0)
		fputs("null", to());
	else if (is_one_of(key, flags))
		fputs(slice_eq(text, SLICE("0")) ? "false" : "true", to());
	else if (is_number(text) && !is_one_of(key, chosen))
		fprintf(to(), "%.*s", (int)text.len, text.data);
	else
		cli_json_text(text);
}

void cli_json_texts(const struct lb_reply *map)
{
	putc('{', to());
	for (size_t i = 0; i < lb_reply_count(map); i++)
		cli_json_field(i == 0, reply_text(lb_reply_key(map, i)), reply_text(lb_reply_item(map, i)));
	fputs("}\n", to());
}

/* ---- lines ---- */

void cli_json_lines(struct slice text)
{
	const char *before = "";
	struct slice line;

	putchar('[');
	while (cli_next_line(&text, &line)) {
		fputs(before, stdout);
		cli_json_text(line);
		before = ",";
	}
	puts("]");
}

/* "# Section", and below it "key:value". */
void cli_json_info(struct slice text)
{
	bool inside = false, first = true;
	struct slice line;

	putchar('{');
	while (cli_next_line(&text, &line)) {
		const char *colon = memchr(line.data, ':', line.len);

		if (line.len > 2 && line.data[0] == '#') {
			fputs(inside ? "}," : "", stdout);
			cli_json_text((struct slice){ line.data + 2, line.len - 2 });
			fputs(":{", stdout);
			inside = first = true;
		} else if (colon && inside) {
			cli_json_field(first, (struct slice){ line.data, (size_t)(colon - line.data) },
				       (struct slice){ colon + 1, line.len - (size_t)(colon + 1 - line.data) });
			first = false;
		}
	}
	puts(inside ? "}}" : "}");
}
