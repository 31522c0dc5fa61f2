/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/command.h"

#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/command/script.h"
#include "core/hosts/lookup.h"
#include "core/lock/take_back.h"
#include "protocol/commands.h"

static const struct {
	void (*run)(struct client *c, struct call *call);
	size_t from;
	enum named named;
	unsigned int options;
} table[COMMAND_COUNT] = {
#define X(command, run, named, from, options) [COMMAND_##command] = { run, from, named, options },
	COMMAND_ROWS(X)
#undef X
};

#define X(command, ...) ROW_##command,
enum { COMMAND_ROWS(X) ROW_COUNT };
#undef X
_Static_assert((int)ROW_COUNT == (int)COMMAND_COUNT, "each command has its row");

/* The grant that the client holds; the word of a delegated one says whether it does. */
static struct grant *grant_of(const struct call *call)
{
	struct grant *g = grant_find(call->lock, call->client);

	return g && delegated_is_free(g) ? NULL : g;
}

/* False: the words are not what the command takes, and that was answered. */
static bool prepare(struct call *call)
{
	enum command command = call->command;

	if (table[command].named != PLAIN) {
		call->name = call->argv[1];
		call->lock = lock_find(call->client->locks, call->name);
		/* No lock was made of a name that is not valid. */
		if (!call->lock && !args_valid_name(call->client, call->name))
			return false;
		if (call->lock && table[command].named == OWN)
			delegated_take_back_own(call->lock, call->client);
		call->grant = call->lock ? grant_of(call) : NULL;
	}
	return !table[command].from || table[command].from >= call->argc ||
	       args_parse_options(call, table[command].from, table[command].options);
}

/* It is none of the table's. */
static void other(struct client *c, size_t argc, const struct slice *argv)
{
	const struct kind_rule *const *rule = c->locks->rules;
	const char *why = script_uncovered(argv[0]);

	for (; *rule; rule++)
		if ((*rule)->command && (*rule)->command(c, argc, argv))
			return;
	if (why)
		reply_error(c, ERROR_ERR, "%s", why);
	else
		args_unknown_word(c, "command", argv[0], "");
}

void command_handle(struct hosts *h, struct client *c, size_t argc, const struct slice *argv)
{
	enum command command = command_find(argv[0]);
	const struct command_spec *spec;
	struct call call = {
		.client = c,
		.command = command,
		.argc = argc,
		.argv = argv,
		.hosts = h,
		.options = { .wait_ns = -1, .token = -1, .count = 1 },
	};

	c->last_command = command;
	if (command == COMMAND_COUNT) {
		other(c, argc, argv);
		return;
	}
	spec = &command_table[command];
	if (argc < (size_t)spec->args_min || (spec->args_max >= 0 && argc > (size_t)spec->args_max)) {
		args_usage_error(&call, "wrong number of arguments for");
		return;
	}
	if (prepare(&call))
		table[command].run(c, &call);
}

void command_again(struct hosts *h, struct lookup *i)
{
	struct client *c = i->client;

	work_drop(&h->env->works, &i->work);
	i->asks = false;
	command_handle(h, c, i->argc, i->argv);
	if (c->lookup && !c->lookup->asks)
		forward_end(c->lookup);
}
