/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/args.h"

#include "core/client/reply.h"
#include "core/lock/locks.h"
#include "protocol/limits.h"
#include "protocol/name.h"
#include "protocol/number.h"

/* ---- answers to words that are not understood ---- */

void args_command_word(struct bytes *out, enum command command)
{
	for (const char *at = command_table[command].word; *at; at++)
		bytes_char(out, (char)(*at >= 'A' && *at <= 'Z' ? *at + ('a' - 'A') : *at));
}

void args_usage_error(const struct call *call, const char *what)
{
	struct bytes word = { 0 };

	args_command_word(&word, call->command);
	reply_error(call->client, ERROR_ERR, "%s '%s' command; %s", what, bytes_view(&word),
		    command_table[call->command].summary);
	bytes_free(&word);
}

void args_syntax_error(const struct call *call)
{
	args_usage_error(call, "syntax error in");
}

void args_unknown_word(struct client *c, const char *what, struct slice word, const char *rest)
{
	struct bytes shown = { 0 };

	for (size_t i = 0; i < word.len && i < 64; i++)
		bytes_char(&shown, word.data[i] >= ' ' && word.data[i] <= '~' ? word.data[i] : '?');
	reply_error(c, ERROR_ERR, "unknown %s '%s'%s", what, bytes_view(&shown), rest);
	bytes_free(&shown);
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

/* A number that a word may be, in units of what is kept of it. */
struct range {
	int64_t least, most, unit;
	const char *takes;
};

static const struct range waits = { 0, LIMIT_MS_MAX, NS_PER_MS, "takes milliseconds, 0..31536000000" };
static const struct range leases = { 1, LIMIT_MS_MAX, NS_PER_MS, "takes milliseconds, 1..31536000000" };
static const struct range permits = { 1, LIMIT_PERMITS_MAX, 1, "takes a number of permits, 1..1000000" };
static const struct range counts = { 1, LIMIT_PERMITS_MAX, 1, "takes a number, 1..1000000" };
static const struct range slots = { 1, DELEGATION_SLOTS, 1, "takes the number of a slot, 1..63" };
static const struct range tokens = { 0, INT64_MAX, 1, "takes the integer that LOCK answered" };

static bool parse_number(struct client *c, const char *what, const struct range *range, struct slice word, int64_t *ret)
{
	int64_t number;

	if (!number_parse(word, &number) || number < range->least || number > range->most) {
		reply_error(c, ERROR_ERR, "%s %s", what, range->takes);
		return false;
	}
	*ret = number * range->unit;
	return true;
}

bool args_parse_lease(struct client *c, const char *what, struct slice word, int64_t *ret_ns)
{
	return parse_number(c, what, &leases, word, ret_ns);
}

bool args_parse_limit(struct client *c, struct slice word, int64_t *ret)
{
	return parse_number(c, "LIMIT", &permits, word, ret);
}

#define OPTION(word) #word, sizeof(#word) - 1, OPTION_##word
#define NUMBER(range, field) &(range), offsetof(struct options, field)

/* The most frequent option comes first. A range: a number follows, which becomes that field; DATA: a text; AFTER: a name;
 * ORDER: a word. */
static const struct row {
	const char *word;
	size_t len;
	enum option option;
	const struct range *range;
	size_t field;
} table[] = {
	{ OPTION(REENTER), NULL, 0 },
	{ OPTION(WAIT), NUMBER(waits, wait_ns) },
	{ OPTION(SHARED), NULL, 0 },
	{ OPTION(LEASE), NUMBER(leases, lease_ns) },
	{ OPTION(DATA), NULL, 0 },
	{ OPTION(TOKEN), NUMBER(tokens, token) },
	{ OPTION(ENQUEUE), NULL, 0 },
	{ OPTION(LIMIT), NUMBER(permits, limit) },
	{ OPTION(COUNT), NUMBER(counts, count) },
	{ OPTION(LAZY), NULL, 0 },
	{ OPTION(ALL), NULL, 0 },
	{ OPTION(AFTER), NULL, 0 },
	{ OPTION(SLOT), NUMBER(slots, slot) },
	{ OPTION(FRESH), NULL, 0 },
	{ OPTION(ORDER), NULL, 0 },
};

enum { TABLE_LINES = sizeof(table) / sizeof(table[0]) };

static bool takes_word(const struct row *row)
{
	return row->range || row->option & (OPTION_DATA | OPTION_AFTER | OPTION_ORDER);
}

static bool parse_order(struct client *c, struct slice word, enum order *ret)
{
	static const char *const words[] = { NULL, "wait", "waiters", "grants", "name" };

	for (*ret = ORDER_NAME; *ret; --*ret)
		if (slice_is(word, words[*ret]))
			return true;
	reply_error(c, ERROR_ERR, "ORDER takes wait, waiters, grants or name");
	return false;
}

static bool parse_word(struct client *c, const struct row *row, struct slice word, struct options *o)
{
	if (row->range)
		return parse_number(c, row->word, row->range, word, (int64_t *)((char *)o + row->field));
	if (row->option == OPTION_ORDER)
		return parse_order(c, word, &o->order);
	if (row->option == OPTION_AFTER) {
		o->after = word;
		if (!name_valid(word))
			reply_error(c, ERROR_ERR, "AFTER takes the name of a lock");
		return name_valid(word);
	}
	if (word.len == 0 || word.len > LIMIT_DATA_BYTES_MAX || !name_is_text(word)) {
		reply_error(c, ERROR_ERR, "DATA takes 1..512 bytes of UTF-8 without control characters");
		return false;
	}
	o->data = word;
	return true;
}

bool args_parse_options(struct call *call, size_t from, unsigned int taken)
{
	struct options *o = &call->options;

	for (size_t at = from; at < call->argc; at++) {
		const struct row *row = table;

		while (row < table + TABLE_LINES && (call->argv[at].len != row->len || !slice_is(call->argv[at], row->word)))
			row++;
		if (row == table + TABLE_LINES || !(row->option & taken & ~o->given) ||
		    (takes_word(row) && at + 1 == call->argc)) {
			args_syntax_error(call);
			return false;
		}
		o->given |= row->option;
		if (takes_word(row) && !parse_word(call->client, row, call->argv[++at], o))
			return false;
	}
	return true;
}
