/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a request that follow its fixed ones: options in any order, each at most once. A new option is a
 * line in the table of args.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lock/client.h"
#include "protocol/commands.h"
#include "protocol/slice.h"

struct hosts;

/* Bits, for the options that a command takes and for the given ones. */
enum option {
	OPTION_WAIT = 1 << 0,
	OPTION_LEASE = 1 << 1,
	OPTION_DATA = 1 << 2,
	OPTION_TOKEN = 1 << 3,
	OPTION_SHARED = 1 << 4,
	OPTION_LIMIT = 1 << 5,
	OPTION_COUNT = 1 << 6,
	OPTION_ENQUEUE = 1 << 7,
	OPTION_LAZY = 1 << 8,
	OPTION_REENTER = 1 << 9,
	OPTION_ALL = 1 << 10,
	OPTION_AFTER = 1 << 11,
	OPTION_SLOT = 1 << 12,
	OPTION_FRESH = 1 << 13,
	OPTION_ORDER = 1 << 14,
};

/* In which order LOCKS shows how many of the locks of this host; none: all, by their names. */
enum order { ORDER_NONE, ORDER_WAIT, ORDER_WAITERS, ORDER_GRANTS, ORDER_NAME };

struct options {
	unsigned int given;
	int64_t wait_ns;   /* -1: not given, for ever; 0: a try */
	int64_t lease_ns;  /* 0: not given, none */
	int64_t token;     /* -1: not given */
	int64_t limit;     /* 0: not given */
	int64_t count;     /* 1: not given */
	int64_t slot;      /* 0: not given */
	struct slice data; /* empty: not given; borrowed */
	struct slice after; /* a name; the same */
	enum order order;
};

/* A request on its way through the command table (command/call.h), which has looked up and parsed the common parts. */
struct call {
	struct client *client;
	enum command command;
	size_t argc;
	const struct slice *argv; /* the words as they came, the command's own first */
	struct hosts *hosts;      /* nothing in client/ looks at it */
	struct slice name;        /* NAMED: the first argument, a valid name */
	struct lock *lock;        /* ... and the lock of that name; NULL when this host knows none */
	struct grant *grant;      /* ... and the client's grant of it, lost or not; NULL */
	struct options options;   /* the other arguments, where the table lists the options */
};

/* Parses the words from `from` on, which may be `taken` options. False: they were answered with an error. */
bool args_parse_options(struct call *call, size_t from, unsigned int taken);
/* The length of a lease, for which `what` is the word; a semaphore's limit; a lock's name. False likewise. */
bool args_parse_lease(struct client *c, const char *what, struct slice word, int64_t *ret_ns);
bool args_parse_limit(struct client *c, struct slice word, int64_t *ret);
bool args_valid_name(struct client *c, struct slice name);
/* Redis shows the names of commands in lower case. */
void args_command_word(struct bytes *out, enum command command);
/* -ERR `what` '<name>' command; `usage` */
void args_usage_error(const struct call *call, const char *what);
void args_syntax_error(const struct call *call);
/* -ERR unknown `what` '<word>'`rest` */
void args_unknown_word(struct client *c, const char *what, struct slice word, const char *rest);
