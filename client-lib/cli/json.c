/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client-lib/cli/table.h"

bool cli_json_asked;

/* ---- where it goes ---- */

static FILE *other; /* for one value; NULL: to the standard output */

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

static void print_map(const struct lb_reply *map)
{
	putc('{', to());
	for (size_t i = 0; i < lb_reply_count(map); i++) {
		if (i > 0)
			putc(',', to());
		cli_json_text(reply_text(lb_reply_key(map, i)));
		putc(':', to());
		cli_json(lb_reply_item(map, i));
	}
	putc('}', to());
}

static void print_array(const struct lb_reply *array)
{
	const struct lb_reply *item = lb_reply_item(array, 0);
	size_t count = lb_reply_count(array);

	putc('[', to());
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			putc(',', to());
		cli_json(item);
		if (i + 1 < count)
			item = lb_reply_next(item);
	}
	putc(']', to());
}

void cli_json(const struct lb_reply *reply)
{
	switch (lb_reply_type(reply)) {
	case LB_REPLY_NIL:
		fputs("null", to());
		break;
	case LB_REPLY_TEXT:
		cli_json_text(reply_text(reply));
		break;
	case LB_REPLY_INTEGER:
		fprintf(to(), "%lld", (long long)lb_reply_integer(reply));
		break;
	case LB_REPLY_ARRAY:
		print_array(reply);
		break;
	case LB_REPLY_MAP:
		print_map(reply);
		break;
	}
}

void cli_json_line(const struct lb_reply *reply)
{
	cli_json(reply);
	putc('\n', to());
}

void cli_json_to(FILE *file, const struct lb_reply *reply)
{
	other = file;
	cli_json(reply);
	other = NULL;
}

/* ---- lines ---- */

/* Takes the next line off the text, without its end. False: there is none. */
static bool next_line(struct slice *text, struct slice *ret)
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

void cli_json_lines(struct slice text)
{
	const char *before = "";
	struct slice line;

	putchar('[');
	while (next_line(&text, &line)) {
		fputs(before, stdout);
		cli_json_text(line);
		before = ",";
	}
	puts("]");
}

/* "# Section", and below it "key:value". */
void cli_json_info(struct slice text)
{
	const char *before = "";
	bool inside = false;
	struct slice line;

	putchar('{');
	while (next_line(&text, &line)) {
		const char *colon = memchr(line.data, ':', line.len);

		if (line.len > 2 && line.data[0] == '#') {
			fputs(inside ? "}," : "", stdout);
			cli_json_text((struct slice){ line.data + 2, line.len - 2 });
			fputs(":{", stdout);
			inside = true;
			before = "";
		} else if (colon && inside) {
			fputs(before, stdout);
			cli_json_text((struct slice){ line.data, (size_t)(colon - line.data) });
			putchar(':');
			cli_json_text((struct slice){ colon + 1, line.len - (size_t)(colon + 1 - line.data) });
			before = ",";
		}
	}
	puts(inside ? "}}" : "}");
}
