/* SPDX-License-Identifier: Apache-2.0 */
/* CONFIG GET: the keys of the configuration, with the values that count now. */
#include <assert.h>

#include "core/client/reply.h"
#include "core/command/call.h"
#include "protocol/name.h"

enum { KEYS_STEPS_MAX = 1000000 }; /* some milliseconds, in which nobody else is served */

static bool is_asked_for(const struct call *call, struct slice name, size_t *work)
{
	for (size_t i = 2; i < call->argc && *work <= KEYS_STEPS_MAX; i++) {
		/* A step compares a byte with a class of the pattern, which may be as long as that. */
		*work += call->argv[i].len;
		if (name_matches(call->argv[i], name, work))
			return true;
	}
	return false;
}

static void reply_settings(struct client *c, const struct call *call)
{
	const struct broker_conf *conf = c->locks->env->conf;
	struct bytes pairs = { 0 };
	size_t work = 0, count = 0;

	for (size_t i = 0; i < conf->setting_count; i++) {
		const struct broker_setting *setting = &conf->settings[i];

		if (!is_asked_for(call, slice_of(setting->name), &work))
			continue;
		resp_bulk(&pairs, slice_of(setting->name));
		resp_bulk(&pairs, slice_of(setting->value));
		count++;
	}
	if (work > KEYS_STEPS_MAX) {
		reply_error(c, ERROR_LIMIT,
			    "matching these patterns with all keys takes more than 1000000 steps: use simpler ones");
		static_assert(KEYS_STEPS_MAX == 1000000, "the sentence names it");
	} else {
		resp_map(reply_out(c), count, c->version);
		bytes_append(reply_out(c), pairs.data, pairs.len);
		reply_end(c);
	}
	bytes_free(&pairs);
}

void cmd_config(struct client *c, struct call *call)
{
	if (!client_is_operator(c))
		reply_denied(c, "see the configuration");
	else if (slice_is(call->argv[1], "GET") && call->argc > 2)
		reply_settings(c, call);
	else
		reply_error(c, ERROR_ERR,
			    "CONFIG GET pattern [pattern ...] is all that there is: to change a key, change the file and RELOAD");
}
