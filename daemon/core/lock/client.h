/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client is one connection, whose end releases all that it holds, or a bearer (bearer.h). It gets events: notification.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/queue.h"
#include "core/lock/lock.h"
#include "core/lock/notification.h"
#include "core/lock/user.h"
#include "core/port/access.h"
#include "core/port/effect.h"
#include "protocol/bytes.h"
#include "protocol/commands.h"

TAILQ_HEAD(client_list, client);
TAILQ_HEAD(observer_list, observer); /* observe.h */

struct client {
	struct locks *locks;
	TAILQ_ENTRY(client) link; /* broker->clients, oldest first */
	TAILQ_ENTRY(client) closing_link, audit_link, told_link; /* closing; `auditing`; `told` */
	uint32_t conn, pid, uid;
	uint32_t child;           /* the process that it named; 0: none */
	uint64_t started;         /* its process, as the adapter counts: with `pid` no other is meant; 0: not known */
	struct bytes unit;        /* its systemd unit (base/unit_name.h) */
	bool privileged;          /* it came through the operators' socket, and may use the reserve of accounts */
	bool groups_known;        /* all of them */
	int version;              /* RESP 2 or 3 */
	uint32_t *groups;
	size_t group_count;
	uint32_t ruled, ruled_by; /* the verbs of rules that concern it, 1 << enum rule_verb; the env->rules that is of */
	uint64_t id;
	struct map_node id_node;  /* locks->ids */
	struct account *account;
	struct user *user;
	int64_t connected_ns;
	struct bytes comm, name, lib_name, lib_version;
	struct bytes child_comm;
	bool child_known, child_ended, peer_ended; /* as the adapter has seen */
	struct bearer *bearer;    /* it has no connection; NULL: it has one */
	struct mlock *mlock;      /* the MLOCK that waits */
	struct bid *bid;          /* its SET, or a bearer's, that is not answered yet (client/bid.h) */
	struct lookup *lookup;  /* questions to other hosts before its request is carried out (hosts/lookup.h) */
	struct query *query;      /* its question to other hosts, or its request */
	struct observer_list observers;
	/* A search for a deadlock goes along thousands of members of a group: the fields that it reads are together. */
	TAILQ_ENTRY(client) group_link;
	struct group *group;      /* NULL: it belongs to none */
	struct request *request;  /* `blocking` while that waits, one of `requests`; NULL */
	struct request *blocking; /* its LOCK: at most one, in the same memory as the one before; NULL before the first */
	/* The fields that each pair of LOCK and UNLOCK writes are together, too. */
	bool half_closed, asking; /* a request is not answered yet */
	bool lazy, answered;      /* the client does not wait for that answer; it is sent once all is settled: `answer` */
	bool ghost;               /* after a kill: it has no connection, and keeps its grants until it is gone (salvage.h) */
	bool closing, closed;     /* nothing is sent to it any longer; it holds nothing any longer */
	bool told_jeopardy, is_holder; /* as it was last notified; it holds a valid grant, as the adapter was last notified */
	enum command last_command; /* COMMAND_COUNT: unknown, or none yet */
	struct span answer;
	struct request_list requests;
	struct grant_list grants; /* lost ones included */
	size_t request_count, grant_count, counted, lost_count, observer_count; /* counted: grants, against the limits */
	struct notification_list notifications; /* not read yet */
	size_t notification_count; /* without losses and leaders, which the grants and the observers bound */
	struct notification *session_notification; /* NULL: none waits */
	size_t revoke_bytes;      /* pushed, and perhaps not read yet */
	bool events_waiting;      /* EVENTS waits */
	struct timer events_timer;
	struct ledger_client *record; /* in the ledger; NULL: none */
	bool recorded;            /* it was in a ledger: it is kept, and is in the next process's ledger, too */
	struct client_list *auditing; /* the list in which its AUDIT waits; NULL: none does */
	bool reloading, delegating, resetting; /* RELOAD, DELEGATE, RESET: for */
	bool searching;           /* an older version handed it over, and had a search for a deadlock under way for it */
	struct work_item releasing; /* it ends, and has something yet (hosts/release.h) */
	struct delegations *delegations; /* NULL: it has no page for them (delegated.h) */
	struct list *list;        /* its LOCKS or CLIENT LIST, not answered yet (command/list.h); NULL */
};

/* ---- how it begins and ends, whether it has a connection (connection.h) or is a bearer ---- */

/* One of that user and unit more, the youngest of all. It has nothing yet, and is of no account. */
struct client *client_new(struct locks *locks, uint32_t uid, struct slice unit);
/* The memory for its LOCK. */
struct request *client_blocking(struct client *c);
/* From now on it is known by that id, and belongs to its account. */
void client_enter(struct client *c, uint64_t id);
/* The same, with an id that nobody ever had. */
void client_enter_new(struct client *c);
/* It has nothing any longer. */
void client_free(struct client *c);

/* ---- the known facts about it, and its rights ---- */

/* It named a process. That is shown once the connecting one has ended, if the adapter finds that the user owns it. */
void client_set_child(struct client *c, uint32_t pid);
/* Asks the adapter to look at the process that the client named. */
void client_watch_child(const struct client *c);
/* The process that is shown: the connected one or the one it named, while it lives; else 0 and "inherited". */
uint32_t client_shown(const struct client *c, struct slice *ret_comm);
void client_close(struct client *c); /* before this event ends, all that it has is released and the connection closed */
struct client *client_by_id(const struct locks *locks, uint64_t id); /* NULL when there is none */
/* Of the process that connected. A snapshot does not have them: the adapter reads them again from the connection. */
void client_set_groups(struct client *c, const struct event_groups *groups);
/* A rule may say whether it may do that with a lock: else there is the default. And as access_may() has it. */
bool client_ruled(struct client *c, enum rule_verb verb);
bool client_may(const struct client *c, enum rule_verb verb, struct slice name, const struct rule **ret_rule);
bool client_is_own(const struct client *c, const struct client *other); /* both are of one account */
/* The client may see all about participants of the account: it is its own, or it may look. NULL: elsewhere. */
bool client_may_look(const struct client *c, struct slice name, const struct account *account);
bool client_is_operator(const struct client *c); /* it came through the operators' socket, as any user */

/* ---- its bounds: its own limits, and its account's shares (port/pools.h) ---- */

/* False, with `why`: a limit of the client is reached, or its account's share. `queued`: an event will tell the end. */
bool client_may_ask(const struct client *c, bool queued, const char **why);
bool client_may_be_told(const struct client *c, const char **why); /* one event more, which it may leave unread */
bool client_may_observe(const struct client *c, const char **why);
/* The limit that leaves no room for one more grant: the client's own, or its account's. */
enum client_lack { CLIENT_LACKS_NOTHING, CLIENT_LACKS_ITS_GRANTS, CLIENT_LACKS_GRANTS };
enum client_lack client_lacks(const struct client *c);
