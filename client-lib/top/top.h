/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The state of lockbroker-top. Each second it asks the daemon for the first locks in the chosen order, and for details of
 * the lock that is open. Of the other locks it asks nothing for which the daemon has to ask ZooKeeper.
 *
 *   question        | asked                     | on the connection
 *   INFO, LOCKS     | each second               | `local`: answered at once
 *   HOLDERS KNOWN   | with them, for locks that | `local`
 *                   |   only another host holds |
 *   METRICS         | each 5 s                  | `local`
 *   HOSTS           | each 10 s                 | `far`: may take as long as ZooKeeper
 *   WHY, QUEUE      | each second, while a lock | `far`
 *                   |   is open                 |
 *   REVOKE          | when it is confirmed      | `operators`, which is connected only for that
 *
 * While the view is stopped, nothing is asked. A question waits until the one before it on its connection is answered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/top/asker.h"
#include "protocol/name.h"
#include "protocol/slice.h"

enum top_order { TOP_WAIT, TOP_WAITERS, TOP_RATE, TOP_NAME, TOP_ORDERS };

enum {
	TOP_EVERY_MS = 1000,
	TOP_RATE_MS = 500,    /* a rate is over no less */
	TOP_ROWS = 200,       /* locks that are asked for; in the order of rates TOP_ROWS_RATE */
	TOP_ROWS_RATE = 1000, /* locks that were granted most often, of which the busiest are shown */
	TOP_KNOWN_MAX = 32,   /* locks of which the holder on another host is asked for */
	TOP_FILTER_MAX = 128,
	TOP_NAME_MAX = NAME_BYTES_MAX + 1,
};

/* The input for which the last line of the screen asks. */
enum top_prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_RELEASE };

struct top_row {
	const struct lb_reply *lock; /* of `locks` */
	double rate;                 /* grants a second; below 0: not known yet */
};

struct top {
	struct asker local, far, operators;
	bool asks_operators; /* REVOKE is under way */
	/* The latest answers. */
	struct kept info, locks, before, hosts, why, queue;
	int64_t locks_ms, before_ms, info_ms; /* when; 0: never */
	struct top_known {
		char name[TOP_NAME_MAX];
		struct kept holders;
	} known[TOP_KNOWN_MAX];
	size_t known_count;
	struct top_row *rows;
	size_t row_count;
	double grants_rate, round_trip_ms; /* below 0: not known */
	long long grants_total, started;
	double round_trips, round_trip_s, round_trips_since; /* as METRICS counted them last */
	/* The view. */
	enum top_order order;
	char filter[TOP_FILTER_MAX], filter_before[TOP_FILTER_MAX];
	enum top_prompt prompt;
	bool stopped, helps, open;
	char selected[TOP_NAME_MAX]; /* ""; the first row */
	char opened[TOP_NAME_MAX];
	char releasing[TOP_NAME_MAX]; /* PROMPT_RELEASE */
	uint64_t opening;             /* counts: an answer about another lock comes too late */
	size_t offset, detail_offset; /* the first row that is shown, and the first line of the open lock */
	char message[1024];           /* on the last line, until a key is pressed; "": none */
	/* When the next questions are due. */
	int64_t poll_ms, metrics_ms, hosts_ms, detail_ms;
};

void top_init(struct top *t, const char *socket, const char *operators);
void top_deinit(struct top *t);

/* ---- questions (questions.c) ---- */

/* Asks what is due. Returns the instant at which it is to be called next. */
int64_t top_ask(struct top *t, int64_t now_ms);
/* Something else is to be shown: it is asked for at once. */
void top_hurry(struct top *t);
/* Asks the holders of `releasing` to release it. */
void top_revoke(struct top *t);
/* The first holder of a lock, on this host or elsewhere; NULL: none is known. */
const struct lb_reply *top_holder(const struct top *t, const struct top_row *row);
/* The row that is selected, if there are any. */
size_t top_selected(const struct top *t);
/* A name of the broker's; one that is too long, as no broker sends, is cut. */
void top_set_name(char name[TOP_NAME_MAX], struct slice text);
/* The name of the lock that is open, or else is selected; "": none. Returns `ret`. */
const char *top_name(const struct top *t, char ret[TOP_NAME_MAX]);

/* ---- the screen (screen.c) ---- */

/* Draws all of it. */
void top_draw(struct top *t, int64_t now_ms);
/* The number of rows, and of lines of the open lock, that the screen has room for. */
size_t top_page(void);

/* ---- keys (keys.c) ---- */

/* Reads the keys that were pressed. False: the program is to end. */
bool top_keys(struct top *t);
