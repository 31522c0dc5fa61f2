/* SPDX-License-Identifier: Apache-2.0 */
/* ACCESS: what a user may do with a lock, and by which rule. The user may be one that is not connected. */
#include "core/client/reply.h"
#include "core/command/call.h"
#include "protocol/number.h"

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
		reply_denied(c, "ask what others may do");
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
