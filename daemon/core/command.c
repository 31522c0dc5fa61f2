#include "core/command.h"
#include "core/info.h"

#include <assert.h>

#include "core/query.h"
#include "core/redis.h"
#include "core/revoke.h"
#include "core/state.h"
#include "protocol/commands.h"
#include "protocol/name.h"
#include "protocol/number.h"

static const int64_t NS_PER_MS = 1000000;
/* A year: beyond it a wait is a mistake, and the arithmetic of instants stays far from its ends. */
static const int64_t WAIT_MS_MAX = 365LL * 86400 * 1000;
static const int64_t WAIT_FOREVER = -1;

static bool valid_name(struct client *c, struct slice name)
{
	if (!name_valid(name)) {
		client_reply_error(c, ERROR_BADNAME,
				   "a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..");
		return false;
	}
	if (!flavour_has_place(c->broker->conf, name)) {
		client_reply_error(c, ERROR_BADNAME, "that is a prefix with a path of its own: a lock's name goes on behind it");
		return false;
	}
	return true;
}

/* The milliseconds behind WAIT. */
static bool parse_ms(const struct request_words *w, struct slice word, int64_t *wait_ns)
{
	int64_t ms;

	if (!number_parse(word, &ms) || ms < 0 || ms > WAIT_MS_MAX) {
		client_reply_error(w->client, ERROR_ERR, "WAIT takes milliseconds, 0..31536000000");
		return false;
	}
	*wait_ns = ms * NS_PER_MS;
	return true;
}

/* [WAIT ms] at argv[at] and after, if anything is there. */
static bool parse_wait(const struct request_words *w, enum command command, size_t at, int64_t *wait_ns)
{
	*wait_ns = WAIT_FOREVER;
	if (w->argc == at)
		return true;
	if (w->argc != at + 2 || !slice_is(w->argv[at], "WAIT")) {
		syntax_error(w->client, command);
		return false;
	}
	return parse_ms(w, w->argv[at + 1], wait_ns);
}

struct lock_options {
	enum mode mode;
	int64_t wait_ns;
};

/* [SHARED] [WAIT ms] from argv[2] on, in any order. */
static bool parse_lock(const struct request_words *w, struct lock_options *options)
{
	*options = (struct lock_options){ MODE_EXCLUSIVE, WAIT_FOREVER };
	for (size_t at = 2; at < w->argc; at++) {
		if (slice_is(w->argv[at], "SHARED")) {
			options->mode = MODE_SHARED;
		} else if (slice_is(w->argv[at], "WAIT") && at + 1 < w->argc) {
			if (!parse_ms(w, w->argv[++at], &options->wait_ns))
				return false;
		} else {
			syntax_error(w->client, COMMAND_LOCK);
			return false;
		}
	}
	return true;
}

/* [TOKEN t] at argv[2]. Without it *token is -1. */
static bool parse_token(const struct request_words *w, enum command command, int64_t *token)
{
	*token = -1;
	if (w->argc == 2)
		return true;
	if (w->argc != 4 || !slice_is(w->argv[2], "TOKEN")) {
		syntax_error(w->client, command);
		return false;
	}
	if (!number_parse(w->argv[3], token) || *token < 0) {
		client_reply_error(w->client, ERROR_ERR, "TOKEN takes the integer that LOCK answered");
		return false;
	}
	return true;
}

/* ---- locks ---- */

/* An upgrade would wait for this very grant; and of two each would wait for the other. */
static void reenter(struct client *c, struct grant *g, enum mode mode)
{
	if (g->lost) {
		client_lost_told(c, g);
		client_reply_error(c, ERROR_LOST, "an earlier grant of this lock was lost; ask again");
		return;
	}
	if (!mode_covers(g->mode, mode)) {
		client_reply_error(c, ERROR_DEADLOCK,
				   "this client holds the lock shared, and would wait for itself: let go first");
		return;
	}
	g->depth++;
	c->broker->stats.reentries_total++;
	client_reply_integer(c, g->token);
}

static void limit(struct client *c, const char *why)
{
	c->broker->stats.limits_total++;
	client_reply_error(c, ERROR_LIMIT, why);
}

static void do_lock(const struct request_words *w)
{
	struct client *c = w->client;
	struct broker *b = c->broker;
	struct lock *lock;
	struct grant *g;
	const char *why;
	struct lock_options options;

	if (!valid_name(c, w->argv[1]) || !parse_lock(w, &options))
		return;
	lock = lock_find(b, w->argv[1], false);
	g = lock ? grant_find(lock, c) : NULL;
	if (g) {
		reenter(c, g, options.mode);
		return;
	}
	if (b->stopping) {
		client_reply_error(c, ERROR_DRAINING, "the daemon is stopping");
		return;
	}
	if (!client_may_ask(c, &why)) {
		limit(c, why);
		return;
	}
	lock = lock_find(b, w->argv[1], true);
	if (!lock)
		limit(c, "this daemon knows as many locks as it may (limits.locks)");
	else if (lock->request_count >= b->conf->limits.requests_per_lock)
		limit(c, "as many clients wait for this lock as may (limits.requests_per_lock)");
	else
		request_new(lock, c, options.mode, c->half_closed ? 0 : options.wait_ns);
}

static struct grant *find_grant(struct client *c, struct slice name)
{
	struct lock *lock = lock_find(c->broker, name, false);

	return lock ? grant_find(lock, c) : NULL;
}

static void do_unlock(const struct request_words *w)
{
	struct client *c = w->client;
	struct grant *g;
	int64_t token, depth;

	if (!valid_name(c, w->argv[1]) || !parse_token(w, COMMAND_UNLOCK, &token))
		return;
	g = find_grant(c, w->argv[1]);
	if (!g) {
		client_reply_error(c, ERROR_NOTHELD, "this client does not hold that lock");
		return;
	}
	if (token >= 0 && token != g->token) {
		client_reply_error(c, ERROR_LOST, "that token is another grant's; nothing was released");
		return;
	}
	if (g->lost) {
		client_lost_told(c, g);
		client_reply_error(c, ERROR_LOST, "the grant was lost before it was released");
		return;
	}
	depth = --g->depth;
	if (!depth) {
		/* The next holder is told before this one: it has waited longer. */
		grant_end(g);
		broker_settle(c->broker);
	}
	client_reply_integer(c, depth);
}

/* The claim keeps its znode, and with that its place among the hosts; readers of this host may join at once. */
static void do_downgrade(const struct request_words *w)
{
	struct client *c = w->client;
	struct grant *g;

	if (!valid_name(c, w->argv[1]))
		return;
	g = find_grant(c, w->argv[1]);
	if (!g) {
		client_reply_error(c, ERROR_NOTHELD, "this client does not hold that lock");
		return;
	}
	if (g->lost) {
		client_lost_told(c, g);
		client_reply_error(c, ERROR_LOST, "the grant was lost before it was downgraded");
		return;
	}
	g->mode = MODE_SHARED;
	lock_touch(g->lock);
	client_reply_integer(c, g->token);
}

static void do_valid(const struct request_words *w)
{
	struct client *c = w->client;
	struct grant *g;
	int64_t token, left_ms = 0;

	if (!valid_name(c, w->argv[1]) || !parse_token(w, COMMAND_VALID, &token))
		return;
	g = find_grant(c, w->argv[1]);
	if (g && !g->lost && (token < 0 || token == g->token)) {
		int64_t until = session_safe_until(c->broker);

		left_ms = until == INT64_MAX ? INT64_MAX / NS_PER_MS : (until - c->broker->now_ns) / NS_PER_MS;
	}
	client_reply_integer(c, left_ms < 0 ? 0 : left_ms);
}

static void do_revoke(const struct request_words *w)
{
	struct slice reason = w->argc == 3 ? w->argv[2] : SLICE("requested");

	if (!valid_name(w->client, w->argv[1]))
		return;
	if (!revoke_reason_valid(reason))
		client_reply_error(w->client, ERROR_ERR, "a reason is 1..128 bytes of UTF-8 without control characters");
	else
		demand_new(w->client, COMMAND_REVOKE, w->argv[1], reason);
}

static void do_forceunlock(const struct request_words *w)
{
	struct client *c = w->client;

	if (c->uid != 0 && c->uid != c->broker->conf->uid)
		client_reply_error(c, ERROR_DENIED, "locks are taken by force by root and the daemon's own user only");
	else if (valid_name(c, w->argv[1]))
		demand_new(c, COMMAND_FORCEUNLOCK, w->argv[1], (struct slice){ 0 });
}

static void do_events(const struct request_words *w)
{
	int64_t wait_ns;

	if (parse_wait(w, COMMAND_EVENTS, 1, &wait_ns))
		client_events(w->client, wait_ns);
}

/* ---- dispatch ---- */

static void dispatch(enum command command, const struct request_words *w)
{
	switch (command) {
	case COMMAND_LOCK:
		do_lock(w);
		break;
	case COMMAND_UNLOCK:
		do_unlock(w);
		break;
	case COMMAND_DOWNGRADE:
		do_downgrade(w);
		break;
	case COMMAND_VALID:
		do_valid(w);
		break;
	case COMMAND_HOLDERS:
	case COMMAND_QUEUE:
	case COMMAND_WHY:
		if (valid_name(w->client, w->argv[1]))
			query_lock(w->client, command, w->argv[1]);
		break;
	case COMMAND_REVOKE:
		do_revoke(w);
		break;
	case COMMAND_FORCEUNLOCK:
		do_forceunlock(w);
		break;
	case COMMAND_HOSTS:
		query_hosts(w->client);
		break;
	case COMMAND_LOCKS:
		info_locks(w->client, w->argc == 2 ? &w->argv[1] : NULL);
		break;
	case COMMAND_EVENTS:
		do_events(w);
		break;
	case COMMAND_AUDIT:
		audit_ask(w->client);
		break;
	case COMMAND_HELLO:
		redis_hello(w);
		break;
	case COMMAND_PING:
		redis_ping(w);
		break;
	case COMMAND_ECHO:
		redis_echo(w);
		break;
	case COMMAND_SELECT:
		redis_select(w);
		break;
	case COMMAND_INFO:
		redis_info(w);
		break;
	case COMMAND_CLIENT:
		redis_client(w);
		break;
	case COMMAND_COMMAND:
		redis_command(w);
		break;
	case COMMAND_RESET:
		redis_reset(w->client);
		break;
	case COMMAND_QUIT:
		redis_quit(w->client);
		break;
	case COMMAND_COUNT:
		assert(!"a command");
	}
}

void command_handle(struct client *c, size_t argc, const struct slice *argv)
{
	struct request_words w = { c, argc, argv };
	enum command command = command_find(argv[0]);
	const struct command_spec *spec;

	c->last_command = command;
	if (command == COMMAND_COUNT) {
		unknown_command(c, argv[0]);
		return;
	}
	spec = &command_table[command];
	if (argc < (size_t)spec->args_min || (spec->args_max >= 0 && argc > (size_t)spec->args_max))
		usage_error(c, "wrong number of arguments for", command);
	else
		dispatch(command, &w);
}
