/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `lockbroker log`: the daemon's flight recorder. A record is a sentence, two blanks, and fields (daemon/base/log.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"
#include "protocol/bytes.h"

/*
 * Takes `key=value` off the fields; a value in quotes is a text, and has \ before " and \, and \xHH. False: there is none,
 * and the value is empty.
 */
static bool next_field(struct slice *fields, struct slice *ret_key, struct bytes *ret_value, bool *ret_text)
{
	const char *at = fields->data, *end = at + fields->len, *equals;
	char number[3] = "";

	ret_value->len = 0;
	while (at < end && *at == ' ')
		at++;
	equals = memchr(at, '=', (size_t)(end - at));
	if (!equals)
		return false;
	*ret_key = (struct slice){ at, (size_t)(equals - at) };
	at = equals + 1;
	*ret_text = at < end && *at == '"';
	if (*ret_text) {
		for (at++; at < end && *at != '"'; at++) {
			if (*at != '\\' || end - at < 2) {
				bytes_char(ret_value, *at);
			} else if (*++at != 'x' || end - at < 3) {
				bytes_char(ret_value, *at);
			} else {
				memcpy(number, at + 1, 2);
				bytes_char(ret_value, (char)strtol(number, NULL, 16));
				at += 2;
			}
		}
		at += at < end;
	} else {
		for (; at < end && *at != ' '; at++)
			bytes_char(ret_value, *at);
	}
	*fields = (struct slice){ at, (size_t)(end - at) };
	return true;
}

/* The event and the instant come first; the instant is shown by the clock of this host, before the sentence. */
static void print(struct slice line)
{
	const char *two = memmem(line.data, line.len, "  ", 2);
	struct slice sentence = { line.data, two ? (size_t)(two - line.data) : line.len }, key;
	struct slice fields = { line.data + sentence.len, line.len - sentence.len };
	struct bytes event = { 0 }, value = { 0 };
	char when[CLI_DURATION_MAX];
	bool is_text;

	next_field(&fields, &key, &event, &is_text);
	next_field(&fields, &key, &value, &is_text);
	bytes_char(&value, '\0');
	if (cli_json_asked) {
		printf("{\"time\":%s,\"text\":", value.data);
		cli_json_text(sentence);
		cli_json_field(false, SLICE("event"), bytes_view(&event));
	} else {
		printf("%s  ", cli_instant(strtoll(value.data, NULL, 10), when));
		cli_text(sentence);
		printf("  event=%.*s", (int)event.len, event.data);
	}
	while (next_field(&fields, &key, &value, &is_text)) {
		if (cli_json_asked) {
			cli_json_field(false, key, bytes_view(&value));
			continue;
		}
		printf(" %.*s=", (int)key.len, key.data);
		if (is_text)
			cli_quoted(bytes_view(&value));
		else
			printf("%.*s", (int)value.len, value.data);
	}
	puts(cli_json_asked ? "}" : "");
	bytes_free(&event);
	bytes_free(&value);
}

int cli_log(struct lb *lb, const struct cli_words *w)
{
	const char *records = w->arguments[0];
	const struct lb_reply *reply;
	int status;

	if (records && (!*records || records[strspn(records, "0123456789")]))
		return cli_usage("log takes a number of records, not \"%s\".", records);
	status = cli_ask(lb, "LOG", records, &reply);
	for (size_t i = 0; status == CLI_OK && i < lb_reply_count(reply); i++)
		print(reply_text(lb_reply_item(reply, i)));
	return status;
}
