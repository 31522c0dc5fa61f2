/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Every command, in one list: word, least and greatest number of words (the command's own included, -1 = no bound),
 * flags as Redis's COMMAND shows them, summary. The broker dispatches by it, COMMAND answers from it, PROTOCOL.md
 * is checked against it.
 */
#pragma once

#include <stdbool.h>

#include "slice.h"

#define PROTOCOL_COMMANDS(X) \
	X(LOCK, 2, 13, "write blocking", \
	  "Take a lock: LOCK name [SHARED] [WAIT ms] [LEASE ms] [DATA text] [REENTER] [SLOT n] [FRESH]") \
	X(UNLOCK, 2, 5, "write fast", "Release one level of a lock: UNLOCK name [TOKEN t] [LAZY]") \
	X(DELEGATE, 1, 1, "fast", "Ask for the page by which locks are delegated: DELEGATE") \
	X(MLOCK, 3, 72, "write blocking", \
	  "Take several locks, all or none: MLOCK n name ... [SHARED] [WAIT ms] [LEASE ms] [REENTER]") \
	X(MUNLOCK, 3, 66, "write fast", "Release several locks, all or none: MUNLOCK n name ...") \
	X(DOWNGRADE, 2, 2, "write fast", "Turn an exclusive grant into a shared one: DOWNGRADE name") \
	X(RENEW, 3, 5, "write fast", "Restart a grant's lease, it ends ms from now: RENEW name ms [TOKEN t]") \
	X(ENQUEUE, 2, 10, "write fast", \
	  "Queue for a lock without waiting: ENQUEUE name [SHARED] [WAIT ms] [LEASE ms] [DATA text] [REENTER]") \
	X(CANCEL, 2, 2, "write fast", "Withdraw an ENQUEUE: CANCEL name") \
	X(ACQUIRE, 4, 10, "write blocking", \
	  "Take permits of a semaphore: ACQUIRE name LIMIT n [COUNT k] [WAIT ms] [LEASE ms]") \
	X(RELEASE, 2, 4, "write fast", "Give permits back: RELEASE name [COUNT k]") \
	X(LIMIT, 2, 3, "readonly", "Tell the limit of a semaphore, or (operators) change it: LIMIT name [n]") \
	X(VALID, 2, 4, "readonly fast", "Milliseconds the grant is still proven safe: VALID name [TOKEN t]") \
	X(CAMPAIGN, 4, 7, "write blocking", "Become the leader: CAMPAIGN name DATA text [WAIT ms] [ENQUEUE]") \
	X(RESIGN, 2, 2, "write fast", "Give up the leadership, or withdraw a CAMPAIGN: RESIGN name") \
	X(LEADER, 2, 2, "readonly", "Show the leader, on any host, and its data: LEADER name") \
	X(OBSERVE, 2, 2, "readonly fast", "Report the leader, now and with each change: OBSERVE name") \
	X(UNOBSERVE, 2, 2, "readonly fast", "Stop observing an election: UNOBSERVE name") \
	X(SET, 3, 8, "write", \
	  "Take a lock as in Redis, or extend it: SET name value NX|XX|IFEQ value [PX ms|EX s|PXAT ms|EXAT s]") \
	X(SETNX, 3, 3, "write", "Take a lock as in Redis, until this process ends: SETNX name value") \
	X(GET, 2, 2, "readonly", "The value under which a lock is held: GET name") \
	X(EXISTS, 2, 65, "readonly", "How many of these locks are held, on any host: EXISTS name ..., 1..64 names") \
	X(TTL, 2, 2, "readonly", "Seconds until the lease of a lock ends: TTL name") \
	X(PTTL, 2, 2, "readonly", "Milliseconds until the lease of a lock ends: PTTL name") \
	X(DEL, 2, 65, "write", "Release locks that this process has set: DEL name ..., 1..64 names") \
	X(UNLINK, 2, 65, "write", "Release locks that this process has set: UNLINK name ..., 1..64 names") \
	X(DELIFEQ, 3, 3, "write", "Release a lock that is held under a value, as in Valkey: DELIFEQ name value") \
	X(DELEX, 2, 4, "write", "Release a lock that is held under a value, as in Redis: DELEX name IFEQ value") \
	X(EXPIRE, 3, 3, "write", "Extend a lock that this process has set: EXPIRE name s") \
	X(PEXPIRE, 3, 3, "write", "Extend a lock that this process has set: PEXPIRE name ms") \
	X(TOKEN, 3, 3, "readonly", "The token of a lock that is held under a value: TOKEN name value") \
	X(EVAL, 3, -1, "write", "Run a script of a lock library: EVAL script number-of-keys name ... argument ...") \
	X(EVALSHA, 3, -1, "write", "Run a script that is known by its SHA-1: EVALSHA sha1 keys name ... argument ...") \
	X(SCRIPT, 2, -1, "readonly", \
	  "Make a script known, or ask which are: SCRIPT LOAD script | SCRIPT EXISTS sha1 ...") \
	X(HOLDERS, 2, 3, "readonly", "Show the holders of a lock, on any host: HOLDERS name [KNOWN]") \
	X(QUEUE, 2, 2, "readonly", "Show the queue of a lock, in order: QUEUE name") \
	X(WHY, 2, 2, "readonly", "Why a lock is not granted yet, in a sentence and in numbers: WHY name") \
	X(REVOKE, 2, 3, "write", "Ask the holders of a lock, on any host, to release it: REVOKE name [reason]") \
	X(FORCEUNLOCK, 2, 2, "write admin", "Take a lock from its holders, for operators: FORCEUNLOCK name") \
	X(HOSTS, 1, 1, "readonly", "The hosts that share locks through this ensemble: HOSTS") \
	X(LOCKS, 1, 7, "readonly", \
	  "Locks of this host, or of all: LOCKS [pattern [ALL [AFTER name] | ORDER order] [COUNT n]]") \
	X(EVENTS, 1, 3, "readonly blocking", "The next event of this client: EVENTS [WAIT ms]") \
	X(AUDIT, 1, 1, "write blocking", "Look into every lock directory, delete this host's strays: AUDIT") \
	X(RESTART, 1, 1, "write blocking admin", \
	  "Hand over to a new process of the installed daemon, for operators: RESTART") \
	X(RELOAD, 1, 1, "admin blocking", "Read the configuration again, for operators: RELOAD") \
	X(CONFIG, 2, -1, "readonly admin", "Show the configuration in use, for operators: CONFIG GET pattern [pattern ...]") \
	X(ACCOUNTS, 1, 1, "readonly admin", "Show the use of shared resources by each user, for operators: ACCOUNTS") \
	X(ACCESS, 3, 7, "readonly admin", \
	  "Show the rights of a user on a lock, and why, for operators: ACCESS uid name [GROUPS g,...] [UNIT unit]") \
	X(DRAIN, 1, 2, "write admin", "Grant nothing any longer, for operators: DRAIN [OFF|STATE]") \
	X(LOG, 1, 2, "readonly admin", "Show the latest events, for operators: LOG [records]") \
	X(HELLO, 1, -1, "fast", "Choose the protocol: HELLO [2|3 [AUTH user password] [SETNAME name]]") \
	X(PING, 1, 2, "fast", "PING [message]") \
	X(ECHO, 2, 2, "fast", "ECHO message") \
	X(SELECT, 2, 2, "fast", "SELECT 0") \
	X(INFO, 1, -1, "readonly", "State and counters: INFO [section ...]") \
	X(METRICS, 1, 1, "readonly", "State and counters, as Prometheus reads them: METRICS") \
	X(CLIENT, 2, -1, "readonly", "CLIENT ID|SETNAME|GETNAME|SETINFO|LIST|UNBLOCK|NO-EVICT") \
	X(COMMAND, 1, -1, "readonly", "COMMAND [COUNT|DOCS|INFO]") \
	X(RESET, 1, 1, "fast", "Release everything and start again") \
	X(QUIT, 1, 1, "fast", "Close the connection")

enum command {
#define X(word, least, most, flags, summary) COMMAND_##word,
	PROTOCOL_COMMANDS(X)
#undef X
	COMMAND_COUNT
};

struct command_spec {
	const char *word;       /* upper-case letters */
	size_t len;             /* of the word */
	int args_min, args_max; /* counting the command's own word; max -1 = no bound */
	const char *flags;      /* separated by spaces */
	const char *summary;
};

extern const struct command_spec command_table[COMMAND_COUNT];

/* The command of that word, in any case; COMMAND_COUNT when there is none. */
enum command command_find(struct slice word);
/* The answer to that request (of `argc` words) grows with the locks, clients or actions of others. */
bool command_shows_much(size_t argc, const struct slice *argv);
