/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/cmd_lock.h"
#include "core/command/info.h"

#include <assert.h>

#include "core/client/mlock.h"
#include "core/client/args.h"
#include "core/command/cmd_semaphore.h"
#include "core/hosts/query.h"
#include "core/session/budget.h"
#include "core/command/cmd_client.h"
#include "core/hosts/revoke.h"
#include "core/kind/semaphore.h"
#include "core/state.h"
#include "protocol/commands.h"
#include "protocol/name.h"

static const int64_t NS_PER_MS = 1000000;

enum { NAME_SHOWN_BYTES = 64 };

/* Whatever it is: its first bytes in quotes. */
static void refuse_name(struct client *c, const char *sentence, struct slice name)
{
	struct refusal no = refusal_of(ERROR_BADNAME, sentence, SLICE(""), "");

	if (name.len > NAME_SHOWN_BYTES) {
		bytes_quote(&no.sentence, (struct slice){ name.data, NAME_SHOWN_BYTES });
		bytes_text(&no.sentence, "...");
	} else {
		bytes_quote(&no.sentence, name);
	}
	refusal_reply(c, &no);
}

bool command_valid_name(struct client *c, struct slice name)
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

/* The lock of that name, NULL when this host knows none; false when it is no name, and that was answered. */
static bool find_lock(struct client *c, struct slice name, struct lock **ret)
{
	*ret = lock_find(c->locks, name);
	return *ret || command_valid_name(c, name); /* no lock was made of any other */
}

/* ---- locks ---- */

enum { OPTIONS_LOCK = OPTION_SHARED | OPTION_WAIT | OPTION_LEASE | OPTION_DATA | OPTION_REENTER };

/* The reply tells that the grant was lost, and so it is done with. `else_told` is what a lost session is told by. */
static void lost(struct client *c, struct grant *g, const char *else_told)
{
	enum loss loss = g->loss;

	client_lost_told(c, g);
	client_reply_error(c, ERROR_LOST, loss == LOSS_LEASE ? "the lease of the grant ran out" : else_told);
}

/* Clients of Redis share a connection among threads: one that does not say REENTER may be another than the holder. */
static void reenter(struct client *c, struct grant *g, const struct request_terms *terms, bool asked_for)
{
	struct refusal no;

	if (g->lost) {
		lost(c, g, "an earlier grant of this lock was lost; ask again");
		return;
	}
	if (!asked_for) {
		no = refusal_held(bytes_view(&g->lock->name));
		refusal_reply(c, &no);
		return;
	}
	/* An upgrade would wait for this very grant; and of two each would wait for the other. */
	if (!mode_covers(g->mode, terms->mode)) {
		client_reply_error(c, ERROR_DEADLOCK,
				   "this client holds the lock shared, and would wait for itself: let go first");
		return;
	}
	grant_reenter(g, terms->lease_ns, terms->data);
	if (!terms->queued) {
		client_reply_integer(c, g->token);
		return;
	}
	client_reply_status(c, "QUEUED");
	client_tell_granted(c, bytes_view(&g->lock->name), g->token);
}

/* Nothing of the lock is this client's yet. */
static void ask_for(struct client *c, struct slice name, const struct request_terms *terms)
{
	struct refusal no = { 0 };

	if (!request_ask(c, name, terms, &no))
		refusal_reply(c, &no);
	else if (terms->queued)
		client_reply_status(c, "QUEUED");
}

/* False when that was answered: the name is in use as another kind, here. `lock` is the one of that name, or NULL. */
static bool of_kind(struct client *c, struct slice name, const struct lock *lock, enum kind kind)
{
	if (semaphore_find(c->locks, name)) {
		client_reply_error(c, ERROR_MISMATCH, "that name is a semaphore's, not a lock's");
		return false;
	}
	if (!lock || lock_may_be(lock, kind))
		return true;
	client_reply_error(c, ERROR_MISMATCH, kind == KIND_LOCK ? "that name is an election" : "that name is a lock");
	return false;
}

/* LOCK and ENQUEUE. */
static void do_lock(const struct request_words *w, enum command command)
{
	struct client *c = w->client;
	struct request_terms terms = { .queued = command == COMMAND_ENQUEUE };
	struct options o;
	struct lock *lock;
	struct grant *g;

	if (!find_lock(c, w->argv[1], &lock) || !options_parse(w, command, 2, OPTIONS_LOCK, &o))
		return;
	if (!of_kind(c, w->argv[1], lock, KIND_LOCK))
		return;
	terms.mode = o.given & OPTION_SHARED ? MODE_SHARED : MODE_EXCLUSIVE;
	terms.wait_ns = c->half_closed ? 0 : o.wait_ns;
	terms.lease_ns = o.lease_ns;
	terms.data = o.data;
	g = lock ? grant_find(lock, c) : NULL;
	if (g)
		reenter(c, g, &terms, o.given & OPTION_REENTER);
	else if (lock && request_find(lock, c))
		client_reply_error(c, ERROR_ERR, "this client waits for that lock already: CANCEL takes its ENQUEUE back");
	else
		ask_for(c, w->argv[1], &terms);
}

static struct request *waits_for(struct client *c, struct slice name)
{
	const struct lock *lock = lock_find(c->locks, name);

	return lock ? request_find(lock, c) : NULL;
}

static void do_cancel(const struct request_words *w)
{
	struct client *c = w->client;
	struct request *r;

	if (!command_valid_name(c, w->argv[1]))
		return;
	r = waits_for(c, w->argv[1]);
	if (r) {
		request_end(r);
		c->locks->env->stats.cancelled_total++;
	}
	client_reply_integer(c, r != NULL);
}

/* Of a lock, or of permits. */
static struct grant *find_grant(struct client *c, struct slice name)
{
	struct lock *lock = lock_find(c->locks, name);
	struct grant *g = lock ? grant_find(lock, c) : NULL;

	return g ? g : permits_find(c, name);
}

static void not_held(struct client *c, struct slice name)
{
	struct refusal no = refusal_of(ERROR_NOTHELD, "this client does not hold it: ", name, "");

	refusal_reply(c, &no);
}

/* NULL when it is none, lost or another one's token was given, and that was answered. `undone` says the rest. */
static struct grant *valid_grant(const struct request_words *w, struct grant *g, int64_t token, const char *else_told,
				 const char *undone)
{
	struct client *c = w->client;

	if (!g)
		not_held(c, w->argv[1]);
	else if (token >= 0 && token != g->token)
		client_reply_error(c, ERROR_LOST, undone);
	else if (g->lost)
		lost(c, g, else_told);
	else
		return g;
	return NULL;
}

/* The valid grant of a lock of that kind that UNLOCK names; NULL when there is none, and that was answered. */
static struct grant *grant_of(const struct request_words *w, const struct lock *lock, enum kind kind, int64_t token,
			      const char *else_told, const char *undone)
{
	struct client *c = w->client;
	struct grant *g = lock ? grant_find(lock, c) : NULL;

	return of_kind(c, w->argv[1], lock, kind) ? valid_grant(w, g, token, else_told, undone) : NULL;
}

static struct grant *named_grant(const struct request_words *w, enum kind kind, int64_t token, const char *else_told,
				 const char *undone)
{
	return grant_of(w, lock_find(w->client->locks, w->argv[1]), kind, token, else_told, undone);
}

static void do_unlock(const struct request_words *w)
{
	struct client *c = w->client;
	struct options o;
	struct lock *lock;
	struct grant *g;
	int64_t depth;

	if (!find_lock(c, w->argv[1], &lock) || !options_parse(w, COMMAND_UNLOCK, 2, OPTION_TOKEN | OPTION_LAZY, &o))
		return;
	c->lazy = o.given & OPTION_LAZY;
	g = grant_of(w, lock, KIND_LOCK, o.token, "the grant was lost before it was released",
		     "that token is another grant's; nothing was released");
	if (!g)
		return;
	depth = --g->depth;
	if (!depth) {
		/* The next holder is told before this one: it has waited longer. */
		grant_end(g);
		broker_settle(c->locks->broker);
	}
	client_reply_integer(c, depth);
}

static void do_renew(const struct request_words *w)
{
	struct client *c = w->client;
	struct options o;
	struct grant *g;
	int64_t lease_ns;

	if (!command_valid_name(c, w->argv[1]) || !options_parse_lease(c, "RENEW", w->argv[2], &lease_ns) ||
	    !options_parse(w, COMMAND_RENEW, 3, OPTION_TOKEN, &o))
		return;
	if (semaphore_find(c->locks, w->argv[1]))
		g = valid_grant(w, permits_find(c, w->argv[1]), o.token, "the permits were lost before they were renewed",
				"permits have no token; nothing was renewed");
	else
		g = named_grant(w, KIND_LOCK, o.token, "the grant was lost before it was renewed",
				"that token is another grant's; nothing was renewed");
	if (!g)
		return;
	grant_renew(g, lease_ns);
	client_reply_integer(c, 1);
}

/* The claim keeps its znode, and with that its place among the hosts; readers of this host may join at once. */
static void do_downgrade(const struct request_words *w)
{
	struct client *c = w->client;
	struct grant *g;

	if (!command_valid_name(c, w->argv[1]))
		return;
	g = named_grant(w, KIND_LOCK, -1, "the grant was lost before it was downgraded", "");
	if (!g)
		return;
	g->mode = MODE_SHARED;
	lock_touch(g->lock);
	client_reply_integer(c, g->token);
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void do_valid(const struct request_words *w)
{
	struct client *c = w->client;
	struct options o;
	struct grant *g;
	int64_t left_ns = 0;

	if (!command_valid_name(c, w->argv[1]) || !options_parse(w, COMMAND_VALID, 2, OPTION_TOKEN, &o))
		return;
	g = find_grant(c, w->argv[1]);
	if (g && !g->lost && (o.token < 0 || o.token == g->token)) {
		int64_t until = session_safe_until(c->locks->ensemble);

		left_ns = min64(until == INT64_MAX ? INT64_MAX : until - c->locks->env->now_ns, grant_lease_rest_ns(g));
	}
	client_reply_integer(c, left_ns < 0 ? 0 : left_ns / NS_PER_MS);
}

static void do_query(const struct request_words *w, enum command command)
{
	if (command == COMMAND_HOSTS) {
		query_hosts(w->client);
		return;
	}
	if (!command_valid_name(w->client, w->argv[1]))
		return;
	if (w->argc == 2)
		query_lock(w->client, command, w->argv[1]);
	else if (slice_is(w->argv[2], "known"))
		query_known(w->client, w->argv[1]);
	else
		usage_error(w->client, "unknown word in", command);
}

static void do_revoke(const struct request_words *w)
{
	struct slice reason = w->argc == 3 ? w->argv[2] : SLICE("requested");

	if (!command_valid_name(w->client, w->argv[1]))
		return;
	if (!revoke_reason_valid(reason))
		client_reply_error(w->client, ERROR_ERR, "a reason is 1..128 bytes of UTF-8 without control characters");
	else
		revocation_new(w->client, COMMAND_REVOKE, w->argv[1], reason);
}

static void do_forceunlock(const struct request_words *w)
{
	struct client *c = w->client;

	if (!client_is_operator(c))
		client_reply_error(c, ERROR_DENIED, "locks are taken by force by root and the daemon's own user only");
	else if (command_valid_name(c, w->argv[1]))
		revocation_new(c, COMMAND_FORCEUNLOCK, w->argv[1], (struct slice){ 0 });
}

static void do_events(const struct request_words *w)
{
	struct options o;

	if (options_parse(w, COMMAND_EVENTS, 1, OPTION_WAIT, &o))
		client_events(w->client, o.wait_ns);
}

/* ---- elections ---- */

/* False when that was answered: the name is that of a lock or a semaphore. */
static bool may_elect(struct client *c, struct slice name)
{
	return of_kind(c, name, lock_find(c->locks, name), KIND_ELECTION);
}

static void do_campaign(const struct request_words *w)
{
	struct client *c = w->client;
	struct request_terms terms = { .kind = KIND_ELECTION, .mode = MODE_EXCLUSIVE };
	struct options o;
	struct grant *g;

	if (!command_valid_name(c, w->argv[1]) ||
	    !options_parse(w, COMMAND_CAMPAIGN, 2, OPTION_WAIT | OPTION_DATA | OPTION_ENQUEUE, &o))
		return;
	if (!(o.given & OPTION_DATA)) {
		syntax_error(c, COMMAND_CAMPAIGN);
		return;
	}
	if (!may_elect(c, w->argv[1]))
		return;
	terms.queued = o.given & OPTION_ENQUEUE;
	terms.wait_ns = c->half_closed ? 0 : o.wait_ns;
	terms.data = o.data;
	g = find_grant(c, w->argv[1]);
	if (g && g->lost)
		lost(c, g, "an earlier leadership was lost; ask again");
	else if (g)
		client_reply_error(c, ERROR_HELD, "this client leads already: RESIGN first");
	else if (waits_for(c, w->argv[1]))
		client_reply_error(c, ERROR_ERR, "this client campaigns for that already: RESIGN takes it back");
	else
		ask_for(c, w->argv[1], &terms);
}

static void do_resign(const struct request_words *w)
{
	struct client *c = w->client;
	struct request *r;
	struct grant *g;

	if (!command_valid_name(c, w->argv[1]) || !may_elect(c, w->argv[1]))
		return;
	r = waits_for(c, w->argv[1]);
	if (r) {
		c->locks->env->stats.cancelled_total++;
		request_end(r);
		client_reply_integer(c, 0);
		return;
	}
	g = named_grant(w, KIND_ELECTION, -1, "the leadership was lost before it was resigned", "");
	if (!g)
		return;
	grant_end(g);
	broker_settle(c->locks->broker);
	client_reply_integer(c, 1);
}

static void limit(struct client *c, const char *why)
{
	c->locks->env->stats.limits_total++;
	client_reply_error(c, ERROR_LIMIT, why);
}

static void observe(struct client *c, struct slice name)
{
	struct broker *b = c->locks->broker;
	struct lock *lock;
	const char *why;

	if (b->env.stopping) {
		client_reply_error(c, ERROR_DRAINING, "the daemon is stopping");
		return;
	}
	if (!client_may_observe(c, &why)) {
		limit(c, why);
		return;
	}
	lock = lock_make(&b->locks, name);
	if (!lock) {
		limit(c, "this daemon knows as many locks as it may (limits.locks)");
	} else if ((why = budget_refuses_observer(lock))) {
		limit(c, why);
	} else {
		lock_become(lock, KIND_ELECTION);
		client_reply_status(c, "OK");
		observe_begin(lock, c);
	}
}

static struct observer *find_observer(const struct client *c, struct slice name)
{
	const struct lock *lock = lock_find(c->locks, name);

	return lock ? observe_find(lock, c) : NULL;
}

static void do_observe(const struct request_words *w)
{
	struct client *c = w->client;

	if (!command_valid_name(c, w->argv[1]) || !may_elect(c, w->argv[1]))
		return;
	if (find_observer(c, w->argv[1]))
		client_reply_status(c, "OK");
	else
		observe(c, w->argv[1]);
}

static void do_unobserve(const struct request_words *w)
{
	struct client *c = w->client;
	struct observer *o;

	if (!command_valid_name(c, w->argv[1]))
		return;
	o = find_observer(c, w->argv[1]);
	if (o)
		observe_end(o);
	client_reply_integer(c, o != NULL);
}

static void do_election(const struct request_words *w, enum command command)
{
	struct client *c = w->client;

	if (command == COMMAND_CAMPAIGN)
		do_campaign(w);
	else if (command == COMMAND_RESIGN)
		do_resign(w);
	else if (command == COMMAND_OBSERVE)
		do_observe(w);
	else if (command == COMMAND_UNOBSERVE)
		do_unobserve(w);
	else if (command_valid_name(c, w->argv[1]) && may_elect(c, w->argv[1]))
		query_lock(c, command, w->argv[1]);
}

/* ---- dispatch ---- */

/* Those that stand in files of their own. */
static void (*const elsewhere[COMMAND_COUNT])(const struct request_words *w) = {
	[COMMAND_HELLO] = redis_hello,   [COMMAND_PING] = redis_ping,     [COMMAND_ECHO] = redis_echo,
	[COMMAND_SELECT] = redis_select, [COMMAND_INFO] = redis_info,     [COMMAND_CLIENT] = redis_client,
	[COMMAND_ACQUIRE] = permits_acquire, [COMMAND_RELEASE] = permits_release, [COMMAND_LIMIT] = permits_limit,
	[COMMAND_COMMAND] = redis_command, [COMMAND_RESET] = redis_reset, [COMMAND_QUIT] = redis_quit,
};

static void dispatch(enum command command, const struct request_words *w)
{
	switch (command) {
	case COMMAND_LOCK:
	case COMMAND_ENQUEUE:
		do_lock(w, command);
		break;
	case COMMAND_MLOCK:
		mlock_lock(w);
		break;
	case COMMAND_MUNLOCK:
		mlock_unlock(w);
		break;
	case COMMAND_CANCEL:
		do_cancel(w);
		break;
	case COMMAND_RENEW:
		do_renew(w);
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
	case COMMAND_CAMPAIGN:
	case COMMAND_RESIGN:
	case COMMAND_LEADER:
	case COMMAND_OBSERVE:
	case COMMAND_UNOBSERVE:
		do_election(w, command);
		break;
	case COMMAND_HOLDERS:
	case COMMAND_QUEUE:
	case COMMAND_WHY:
	case COMMAND_HOSTS:
		do_query(w, command);
		break;
	case COMMAND_REVOKE:
		do_revoke(w);
		break;
	case COMMAND_FORCEUNLOCK:
		do_forceunlock(w);
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
	case COMMAND_ACQUIRE:
	case COMMAND_RELEASE:
	case COMMAND_LIMIT:
	case COMMAND_HELLO:
	case COMMAND_PING:
	case COMMAND_ECHO:
	case COMMAND_SELECT:
	case COMMAND_INFO:
	case COMMAND_CLIENT:
	case COMMAND_COMMAND:
	case COMMAND_RESET:
	case COMMAND_QUIT:
		elsewhere[command](w);
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
