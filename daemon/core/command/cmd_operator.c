/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for operators only: DRAIN, ACCESS, ACCOUNTS, CONFIG GET, LOG. */
#include "base/glob.h"
#include "core/client/halt.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/lock/locks.h"
#include "protocol/number.h"

/* ---- DRAIN: nothing is granted any longer, so that the host can be served, or stopped without a loss ---- */

static int64_t held(const struct locks *locks)
{
	return (int64_t)(locks->grant_count - locks->lost_count);
}

static void say(const struct client *c)
{
	const struct locks *locks = c->locks;
	const struct env *env = locks->env;
	const char *sentence = env->draining ? "operators drain this daemon: it grants nothing"
					     : "operators end the drain: this daemon grants again";
	int64_t on = env->draining, count = held(locks);
	struct effect *line = effects_say(env->out, EFFECT_LEVEL_INFO, drain,
					  EFFECT_FIELDS("on=%d held=%d waiting=%d pid=%d", on, count, locks->request_count,
							c->pid),
					  "%s", sentence);

	effects_caused(env->out, line, c->account->uid, slice_of(c->account->unit));
}

/* To drain once more asks the holders once more. */
static void change(struct client *c, bool draining)
{
	bool before = c->locks->env->draining;

	if (draining)
		halt_drain(c->locks);
	else if (before)
		halt_over(c->locks);
	if (before != draining)
		say(c);
}

static void reply_state(struct client *c)
{
	const struct locks *locks = c->locks;

	resp_map(reply_out(c), 4, c->version);
	reply_pairs(reply_out(c), "draining", locks->env->draining, "held", held(locks), "waiting", locks->request_count,
		    "claims", locks->directories->claim_count);
	reply_end(c);
}

void cmd_drain(struct client *c, struct call *call)
{
	bool off = call->argc > 1 && slice_is(call->argv[1], "OFF");
	bool asks = call->argc > 1 && slice_is(call->argv[1], "STATE");

	if (!client_is_operator(c)) {
		reply_denied(c, "drain the daemon");
	} else if (call->argc > 1 && !off && !asks) {
		args_syntax_error(call);
	} else if (c->locks->env->stopping) {
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
	} else {
		if (!asks)
			change(c, !off);
		reply_state(c);
	}
}

/* ---- ACCESS: what a user, who need not be connected, may do with a lock, and by which rule ---- */

enum { GROUPS_MAX = 1024 };

struct asked {
	struct access_peer peer;
	uint32_t groups[GROUPS_MAX];
};

static bool parse_id(struct slice word, uint32_t *ret)
{
	int64_t value;

	if (!number_parse(word, &value) || value < 0 || value >= UINT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

static bool parse_groups(struct slice list, struct asked *a)
{
	while (list.len) {
		const char *comma = memchr(list.data, ',', list.len);
		struct slice word = { list.data, comma ? (size_t)(comma - list.data) : list.len };
		size_t used = comma ? word.len + 1 : word.len;

		if (a->peer.group_count == GROUPS_MAX || !parse_id(word, &a->groups[a->peer.group_count]))
			return false;
		a->peer.group_count++;
		list = (struct slice){ list.data + used, list.len - used };
	}
	return true;
}

static bool parse(const struct call *call, struct asked *a)
{
	a->peer = (struct access_peer){ .groups = a->groups, .groups_known = true };
	if (call->argc % 2 == 0 || !parse_id(call->argv[1], &a->peer.uid))
		return false;
	for (size_t i = 3; i < call->argc; i += 2)
		if (slice_is(call->argv[i], "unit"))
			a->peer.unit = call->argv[i + 1];
		else if (!slice_is(call->argv[i], "groups") || !parse_groups(call->argv[i + 1], a))
			return false;
	return true;
}

static void write_verb(struct client *c, const struct asked *a, enum rule_verb verb, struct slice name)
{
	const struct rule *rule;
	bool may = access_may(&c->locks->env->conf->access, &a->peer, verb, name, &rule);

	resp_map(reply_out(c), 4, c->version);
	reply_pairs(reply_out(c), "verb", rule_verb_word(verb), "allowed", may, "rule", rule ? rule->text : "", "where",
		    rule ? rule->where : "");
}

void cmd_access(struct client *c, struct call *call)
{
	struct asked a;

	if (!client_is_operator(c)) {
		reply_denied(c, "ask what other users may do");
		return;
	}
	if (!parse(call, &a)) {
		args_syntax_error(call);
		return;
	}
	if (!args_valid_name(c, call->argv[2]))
		return;
	resp_array(reply_out(c), RULE_VERB_COUNT);
	for (int verb = 0; verb < RULE_VERB_COUNT; verb++)
		write_verb(c, &a, (enum rule_verb)verb, call->argv[2]);
	reply_end(c);
}

/* ---- ACCOUNTS: how much of each shared resource each user uses; the users nearest to their share come first ---- */

enum { ROWS_MAX = 100, PERCENT_MAX = 999 };

struct row {
	const struct account *account;
	const struct pool_words *words;
	const char *kept; /* "": nothing that its user may not know of */
	uint64_t used, allowed, percent;
	uint64_t reserve; /* for operators, whatever others use */
};

/* Only the first rows are kept: there may be thousands of users. */
struct rows {
	struct row list[ROWS_MAX];
	size_t count;
};

static void keep(struct rows *rows, const struct row *row)
{
	size_t i = rows->count;

	if (i == ROWS_MAX && rows->list[--i].percent >= row->percent)
		return;
	for (; i > 0 && rows->list[i - 1].percent < row->percent; i--)
		rows->list[i] = rows->list[i - 1];
	rows->list[i] = *row;
	rows->count += rows->count < ROWS_MAX;
}

static void look(struct rows *rows, const struct account *a, const struct pool_words *words)
{
	for (size_t pool = 0; pool < a->all->pool_count; pool++) {
		struct row row = { .account = a, .words = &words[pool], .used = a->used[pool] };

		if (!row.used)
			continue;
		row.kept = a->kept[pool] ? a->kept[pool] : "";
		row.allowed = account_allowed(a, pool, false);
		row.reserve = a->all->pools[pool].reserve;
		row.percent = row.allowed ? row.used * 100 / row.allowed : PERCENT_MAX;
		if (row.percent > PERCENT_MAX)
			row.percent = PERCENT_MAX;
		keep(rows, &row);
	}
}

static void look_at_all(struct rows *rows, const struct accounts *all, const struct pool_words *words)
{
	const struct account *a;

	look(rows, &all->nobody, words);
	TAILQ_FOREACH(a, &all->list, link)
		look(rows, a, words);
}

static void write_row(struct client *c, const struct row *row)
{
	struct bytes name = { 0 };

	account_name(row->account, &name);
	resp_map(reply_out(c), 7, c->version);
	reply_pairs(reply_out(c), "percent", row->percent, "account", bytes_view(&name), "used", row->used, "allowed",
		    row->allowed, "reserve", row->reserve);
	reply_pairs(reply_out(c), "of", row->words->noun, "kept", row->kept);
	bytes_free(&name);
}

void cmd_accounts(struct client *c, struct call *call)
{
	const struct env *env = c->locks->env;
	struct rows rows = { .count = 0 };

	(void)call;
	if (!client_is_operator(c)) {
		reply_denied(c, "see what others use");
		return;
	}
	look_at_all(&rows, &env->accounts, pools_words);
	if (env->conf->sockets)
		look_at_all(&rows, env->conf->sockets, env->conf->sockets_words);
	resp_array(reply_out(c), rows.count);
	for (size_t i = 0; i < rows.count; i++)
		write_row(c, &rows.list[i]);
	reply_end(c);
}

/* ---- CONFIG GET: the keys of the configuration, with the values that count now ---- */

enum { PATTERNS_MAX = 16 }; /* in one event they are compiled, and each is matched with all keys */

static bool is_asked_for(struct glob *const *globs, size_t count, struct slice name)
{
	size_t steps = 0;

	for (size_t i = 0; i < count; i++)
		if (glob_matches(globs[i], name, &steps))
			return true;
	return false;
}

static void reply_settings(struct client *c, const struct call *call)
{
	const struct broker_conf *conf = c->locks->env->conf;
	struct glob *globs[PATTERNS_MAX];
	struct bytes pairs = { 0 };
	size_t patterns = call->argc - 2, count = 0;

	for (size_t i = 0; i < patterns; i++)
		globs[i] = glob_new(call->argv[i + 2]);
	for (size_t i = 0; i < conf->setting_count; i++) {
		const struct broker_setting *setting = &conf->settings[i];

		if (!is_asked_for(globs, patterns, slice_of(setting->name)))
			continue;
		resp_bulk(&pairs, slice_of(setting->name));
		resp_bulk(&pairs, slice_of(setting->value));
		count++;
	}
	resp_map(reply_out(c), count, c->version);
	bytes_append(reply_out(c), pairs.data, pairs.len);
	reply_end(c);
	bytes_free(&pairs);
	for (size_t i = 0; i < patterns; i++)
		glob_free(globs[i]);
}

void cmd_config(struct client *c, struct call *call)
{
	if (!client_is_operator(c))
		reply_denied(c, "see the configuration");
	else if (call->argc - 2 > PATTERNS_MAX)
		reply_error(c, ERROR_LIMIT, "CONFIG GET takes at most 16 patterns: ask several times");
	else if (slice_is(call->argv[1], "GET") && call->argc > 2)
		reply_settings(c, call);
	else
		reply_error(c, ERROR_ERR,
			    "CONFIG GET pattern [pattern ...] is all that there is: to change a key, change the file and RELOAD");
}

/* ---- LOG: the flight recorder ---- */

static void reply_records(struct client *c, int64_t count)
{
	struct flight_reader reader = flight_read(c->locks->env->conf->flight, (uint64_t)count);
	char line[FLIGHT_LINE_MAX];

	resp_array(reply_out(c), reader.left);
	while (reader.left) {
		size_t len = flight_line(&reader, line);

		resp_bulk(reply_out(c), (struct slice){ line, len });
	}
	reply_end(c);
}

void cmd_log(struct client *c, struct call *call)
{
	int64_t count = INT64_MAX;

	if (!client_is_operator(c))
		reply_denied(c, "see the flight recorder");
	else if (call->argc > 1 && (!number_parse(call->argv[1], &count) || count < 1))
		args_syntax_error(call);
	else
		reply_records(c, count);
}
