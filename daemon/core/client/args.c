/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/args.h"

#include "core/client/reply.h"
#include "core/lock/locks.h"
#include "protocol/limits.h"
#include "protocol/name.h"
#include "protocol/number.h"

static const int64_t NS_PER_MS = 1000000;

/* ---- answers to words that are not understood ---- */

void args_command_word(struct bytes *out, enum command command)
{
	for (const char *at = command_table[command].word; *at; at++)
		bytes_char(out, (char)(*at >= 'A' && *at <= 'Z' ? *at + ('a' - 'A') : *at));
}

void args_usage_error(struct client *c, const char *what, enum command command)
{
	struct bytes word = { 0 };

	args_command_word(&word, command);
	reply_error(c, ERROR_ERR, "%s '%s' command; %s", what, bytes_view(&word), command_table[command].summary);
	bytes_free(&word);
}

void args_syntax_error(struct client *c, enum command command)
{
	args_usage_error(c, "syntax error in", command);
}

void args_unknown_word(struct client *c, const char *what, struct slice word, const char *rest)
{
	struct bytes shown = { 0 };

	for (size_t i = 0; i < word.len && i < 64; i++)
		bytes_char(&shown, word.data[i] >= ' ' && word.data[i] <= '~' ? word.data[i] : '?');
	reply_error(c, ERROR_ERR, "unknown %s '%s'%s", what, bytes_view(&shown), rest);
	bytes_free(&shown);
}

void args_unknown_command(struct client *c, struct slice word)
{
	args_unknown_word(c, "command", word, "");
}

enum { NAME_SHOWN_BYTES = 64 };

/* The first bytes of it in quotes, whatever they are. */
static void refuse_name(struct client *c, const char *sentence, struct slice name)
{
	bool is_long = name.len > NAME_SHOWN_BYTES;
	struct slice shown = { name.data, is_long ? NAME_SHOWN_BYTES : name.len };

	reply_error(c, ERROR_BADNAME, "%s%q%s", sentence, shown, is_long ? "..." : "");
}

bool args_valid_name(struct client *c, struct slice name)
{
	if (!name_valid(name)) {
		refuse_name(c, "a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..: ", name);
		return false;
	}
	if (!flavour_has_place(c->locks->env->conf, name)) {
		refuse_name(c, "that is a prefix with a path of its own, a lock's name goes on behind it: ", name);
		return false;
	}
	return true;
}

/* ---- options ---- */

static bool refuse(struct client *c, const char *what, const char *takes)
{
	reply_error(c, ERROR_ERR, "%s%s", what, takes);
	return false;
}

static bool parse_wait(struct client *c, struct slice word, struct options *o)
{
	int64_t ms;

	if (!number_parse(word, &ms) || ms < 0 || ms > LIMIT_MS_MAX)
		return refuse(c, "WAIT", " takes milliseconds, 0..31536000000");
	o->wait_ns = ms * NS_PER_MS;
	return true;
}

bool options_parse_lease(struct client *c, const char *what, struct slice word, int64_t *ret_ns)
{
	int64_t ms;

	if (!number_parse(word, &ms) || ms < 1 || ms > LIMIT_MS_MAX)
		return refuse(c, what, " takes milliseconds, 1..31536000000");
	*ret_ns = ms * NS_PER_MS;
	return true;
}

static bool parse_lease(struct client *c, struct slice word, struct options *o)
{
	return options_parse_lease(c, "LEASE", word, &o->lease_ns);
}

bool options_parse_count(struct client *c, const char *what, struct slice word, int64_t *ret)
{
	if (!number_parse(word, ret) || *ret < 1 || *ret > LIMIT_PERMITS_MAX)
		return refuse(c, what, " takes a number of permits, 1..1000000");
	return true;
}

static bool parse_limit(struct client *c, struct slice word, struct options *o)
{
	return options_parse_count(c, "LIMIT", word, &o->limit);
}

static bool parse_count(struct client *c, struct slice word, struct options *o)
{
	return options_parse_count(c, "COUNT", word, &o->count);
}

static bool parse_data(struct client *c, struct slice word, struct options *o)
{
	if (word.len == 0 || word.len > LIMIT_DATA_BYTES_MAX || !name_is_text(word))
		return refuse(c, "DATA", " takes 1..512 bytes of UTF-8 without control characters");
	o->data = word;
	return true;
}

static bool parse_token(struct client *c, struct slice word, struct options *o)
{
	if (!number_parse(word, &o->token) || o->token < 0)
		return refuse(c, "TOKEN", " takes the integer that LOCK answered");
	return true;
}

#define OPTION(word) #word, sizeof(#word) - 1, OPTION_##word

/* `parse` takes the word that follows; NULL: none does. The most frequent option comes first. */
static const struct {
	const char *word;
	size_t len;
	enum option option;
	bool (*parse)(struct client *c, struct slice word, struct options *o);
} table[] = {
	{ OPTION(REENTER), NULL },
	{ OPTION(WAIT), parse_wait },
	{ OPTION(SHARED), NULL },
	{ OPTION(LEASE), parse_lease },
	{ OPTION(DATA), parse_data },
	{ OPTION(TOKEN), parse_token },
	{ OPTION(ENQUEUE), NULL },
	{ OPTION(LIMIT), parse_limit },
	{ OPTION(COUNT), parse_count },
	{ OPTION(LAZY), NULL },
};

enum { TABLE_LINES = sizeof(table) / sizeof(table[0]) };

bool options_parse(const struct request_words *w, enum command command, size_t from, unsigned int taken,
		   struct options *ret)
{
	*ret = (struct options){ .wait_ns = -1, .token = -1, .count = 1 };
	for (size_t at = from; at < w->argc; at++) {
		size_t i = 0;

		while (i < TABLE_LINES && (w->argv[at].len != table[i].len || !slice_is(w->argv[at], table[i].word)))
			i++;
		if (i == TABLE_LINES || !(table[i].option & taken & ~ret->given) ||
		    (table[i].parse && at + 1 == w->argc)) {
			args_syntax_error(w->client, command);
			return false;
		}
		ret->given |= table[i].option;
		if (table[i].parse && !table[i].parse(w->client, w->argv[++at], ret))
			return false;
	}
	return true;
}
