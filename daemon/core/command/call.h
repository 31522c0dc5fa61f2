/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on its way through the command table (command.c): what every command needs was looked up and parsed before.
 * Each command gives one reply, now or later.
 */
#pragma once

#include "core/client/args.h"
#include "core/hosts/hosts.h"

struct call {
	struct request_words words;
	struct hosts *hosts;
	struct client *client;
	struct slice name;      /* NAMED: the first argument, a valid name */
	struct lock *lock;      /* ... and the lock of that name; NULL when this host knows none */
	struct options options; /* the rest, where the table says which it takes */
};

/* Answers that the call's name is another kind's here, and returns false; else it is of that kind, or may become so. */
bool call_is_kind(const struct call *call, enum kind kind);
/* The client's request for the lock of that name; NULL. */
struct request *call_request(const struct call *call);
/* The client's valid grant of a lock of that kind; NULL when there is none, and that was answered. */
struct grant *call_grant(const struct call *call, enum kind kind, const char *else_told, const char *undone);
/* The same of a grant that was found; `g` may be NULL. `undone` says what another grant's token leaves undone. */
struct grant *call_valid(const struct call *call, struct grant *g, const char *else_told, const char *undone);
/* Answers that it was lost, which the client knows by that; `else_told` is what a lost session is told by. */
void call_reply_lost(struct client *c, struct grant *g, const char *else_told);
/* Queues a request, or answers why not. Nothing of the lock is this client's yet. */
void call_ask(const struct call *call, const struct request_terms *terms);
void call_refuse_limit(struct client *c, const char *why);

void cmd_lock(struct call *call); /* and ENQUEUE */
void cmd_unlock(struct call *call);
void cmd_mlock(struct call *call);
void cmd_munlock(struct call *call);
void cmd_downgrade(struct call *call);
void cmd_renew(struct call *call);
void cmd_cancel(struct call *call);
void cmd_valid(struct call *call);

void cmd_campaign(struct call *call);
void cmd_resign(struct call *call);
void cmd_leader(struct call *call);
void cmd_observe(struct call *call);
void cmd_unobserve(struct call *call);

void cmd_acquire(struct call *call);
void cmd_release(struct call *call);
void cmd_limit(struct call *call);

void cmd_holders(struct call *call);
void cmd_ask(struct call *call); /* QUEUE and WHY */
void cmd_hosts(struct call *call);
void cmd_revoke(struct call *call);
void cmd_forceunlock(struct call *call);
void cmd_audit(struct call *call);

void cmd_locks(struct call *call);
void cmd_info(struct call *call);
void cmd_events(struct call *call);
void cmd_client(struct call *call);
void cmd_command(struct call *call);
void cmd_hello(struct call *call);
void cmd_ping(struct call *call);
void cmd_echo(struct call *call);
void cmd_select(struct call *call);
void cmd_reset(struct call *call);
void cmd_quit(struct call *call);
