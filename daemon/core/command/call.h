/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands, and their common functions. Each command gives one reply, now or later.
 */
#pragma once

#include "core/client/args.h"
#include "core/hosts/hosts.h"

/* False: the call's name is of another kind here, and that was answered. Else it is of that kind, or may become so. */
bool call_is_kind(const struct call *call, enum kind kind);
/* The client's request for the lock of that name; NULL. */
struct request *call_request(const struct call *call);
/* The client's valid grant of a lock of that kind; NULL: there is none, and that was answered. `undone`: the action that
 * was not done if the token is another grant's. */
struct grant *call_grant(const struct call *call, enum kind kind, const char *else_told, const char *undone);
/* Answers that the grant was lost, and ends it; `else_told` is the sentence unless its lease ran out. */
void call_reply_lost(struct client *c, struct grant *g, const char *else_told);
/* Queues a request for a lock of that kind, or enters the lock again, or answers why not. */
void call_ask(const struct call *call, enum kind kind);

enum {
	OPTIONS_LOCK = OPTION_SHARED | OPTION_WAIT | OPTION_LEASE | OPTION_DATA | OPTION_REENTER,
	OPTIONS_ACQUIRE = OPTION_LIMIT | OPTION_COUNT | OPTION_WAIT | OPTION_LEASE,
	OPTIONS_CAMPAIGN = OPTION_WAIT | OPTION_DATA | OPTION_ENQUEUE,
};

/*
 * A command's first argument. PLAIN: it is not the name of a lock. LOOKS: it is the name of a lock that the command only
 * reads; delegations stay. OWN: the command changes only its own client's share of the lock; the delegation of that client
 * is taken back first. A request for a lock takes delegations back in ask_lock(), after the rules of access have allowed
 * it. A request for another kind (a semaphore, an election) fails with MISMATCH, and takes no delegation back.
 */
enum named { PLAIN, LOOKS, OWN };

/* Each command: its function, its first argument, the number of the word at which its options begin (0: the function parses
 * its words itself), and those options. */
#define COMMAND_ROWS(X) \
	X(LOCK, cmd_lock, OWN, 2, OPTIONS_LOCK | OPTION_SLOT | OPTION_FRESH) \
	X(UNLOCK, cmd_unlock, OWN, 2, OPTION_TOKEN | OPTION_LAZY) \
	X(DELEGATE, cmd_delegate, PLAIN, 0, 0) \
	X(MLOCK, mlock_lock, PLAIN, 0, 0) \
	X(MUNLOCK, mlock_unlock, PLAIN, 0, 0) \
	X(DOWNGRADE, cmd_downgrade, OWN, 2, 0) \
	X(RENEW, cmd_renew, OWN, 0, 0) \
	X(ENQUEUE, cmd_lock, OWN, 2, OPTIONS_LOCK) \
	X(CANCEL, cmd_cancel, OWN, 2, 0) \
	X(ACQUIRE, cmd_acquire, OWN, 2, OPTIONS_ACQUIRE) \
	X(RELEASE, cmd_release, OWN, 2, OPTION_COUNT) \
	X(LIMIT, cmd_limit, OWN, 0, 0) \
	X(VALID, cmd_valid, LOOKS, 2, OPTION_TOKEN) \
	X(CAMPAIGN, cmd_campaign, OWN, 2, OPTIONS_CAMPAIGN) \
	X(RESIGN, cmd_resign, OWN, 2, 0) \
	X(LEADER, cmd_leader, OWN, 2, 0) \
	X(OBSERVE, cmd_observe, OWN, 2, 0) \
	X(UNOBSERVE, cmd_unobserve, OWN, 2, 0) \
	X(SET, cmd_set, LOOKS, 0, 0) \
	X(SETNX, cmd_setnx, LOOKS, 0, 0) \
	X(GET, cmd_get, LOOKS, 0, 0) \
	X(EXISTS, cmd_exists, PLAIN, 0, 0) \
	X(TTL, cmd_ttl, LOOKS, 0, 0) \
	X(PTTL, cmd_ttl, LOOKS, 0, 0) \
	X(DEL, cmd_del, PLAIN, 0, 0) \
	X(UNLINK, cmd_del, PLAIN, 0, 0) \
	X(DELIFEQ, cmd_delifeq, LOOKS, 0, 0) \
	X(DELEX, cmd_delex, LOOKS, 0, 0) \
	X(EXPIRE, cmd_expire, LOOKS, 0, 0) \
	X(PEXPIRE, cmd_expire, LOOKS, 0, 0) \
	X(TOKEN, cmd_token, LOOKS, 0, 0) \
	X(EVAL, cmd_eval, PLAIN, 0, 0) \
	X(EVALSHA, cmd_evalsha, PLAIN, 0, 0) \
	X(SCRIPT, cmd_script, PLAIN, 0, 0) \
	X(HOLDERS, cmd_holders, LOOKS, 0, 0) \
	X(QUEUE, cmd_ask, LOOKS, 2, 0) \
	X(WHY, cmd_ask, LOOKS, 2, 0) \
	X(REVOKE, cmd_revoke, LOOKS, 0, 0) \
	X(FORCEUNLOCK, cmd_forceunlock, PLAIN, 0, 0) \
	X(HOSTS, cmd_hosts, PLAIN, 0, 0) \
	X(LOCKS, cmd_locks, PLAIN, 2, OPTION_ALL | OPTION_AFTER | OPTION_COUNT | OPTION_ORDER) \
	X(EVENTS, cmd_events, PLAIN, 1, OPTION_WAIT) \
	X(AUDIT, cmd_audit, PLAIN, 0, 0) \
	X(RESTART, cmd_restart, PLAIN, 0, 0) \
	X(RELOAD, cmd_reload, PLAIN, 0, 0) \
	X(CONFIG, cmd_config, PLAIN, 0, 0) \
	X(ACCOUNTS, cmd_accounts, PLAIN, 0, 0) \
	X(ACCESS, cmd_access, PLAIN, 0, 0) \
	X(DRAIN, cmd_drain, PLAIN, 0, 0) \
	X(LOG, cmd_log, PLAIN, 0, 0) \
	X(HELLO, cmd_hello, PLAIN, 0, 0) \
	X(PING, cmd_ping, PLAIN, 0, 0) \
	X(ECHO, cmd_echo, PLAIN, 0, 0) \
	X(SELECT, cmd_select, PLAIN, 0, 0) \
	X(INFO, cmd_info, PLAIN, 0, 0) \
	X(METRICS, cmd_metrics, PLAIN, 0, 0) \
	X(CLIENT, cmd_client, PLAIN, 0, 0) \
	X(COMMAND, cmd_command, PLAIN, 0, 0) \
	X(RESET, cmd_reset, PLAIN, 0, 0) \
	X(QUIT, cmd_quit, PLAIN, 0, 0)

#define X(command, run, named, from, options) void run(struct client *c, struct call *call);
COMMAND_ROWS(X)
#undef X
