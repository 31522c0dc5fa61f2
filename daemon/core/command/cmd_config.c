/* SPDX-License-Identifier: Apache-2.0 */
/* CONFIG GET: the keys of the configuration, with the values that count now. */
#include "base/glob.h"
#include "core/client/reply.h"
#include "core/command/call.h"

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
