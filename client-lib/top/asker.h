/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A connection to the daemon that never blocks. Questions are sent in their order, and are answered in that order.
 *
 *   state     | means                              | event -> next state
 *   away      | there is no connection: `why`      | asker_connect(), which a lasting one calls by itself each
 *             |                                    |   ASKER_PAUSE_MS, and somebody listens -> connected
 *   connected | questions are sent, answers come   | the daemon ends it, or sends bytes that are no answer -> away:
 *             |                                    |   the questions without an answer are forgotten
 *
 * A daemon that hands over, or crashes and takes its connections back, is not noticed here.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-lib/lockbroker.h"
#include "protocol/bytes.h"
#include "protocol/resp.h"

enum { ASKER_QUESTIONS_MAX = 128, ASKER_PAUSE_MS = 500 };

/* An answer that stays as it is when later ones come. */
struct kept {
	struct bytes text;
	struct resp_value *values; /* NULL: there is none */
};

/* NULL: there is none. */
const struct lb_reply *kept_reply(const struct kept *k);
void kept_free(struct kept *k);

/* The answer, valid until the function returns unless it is kept: NULL, and a sentence, if it is an error. */
struct answer {
	int question;   /* as it was asked */
	uint64_t about; /* likewise */
	const struct lb_reply *reply;
	struct slice error; /* without the code */
	/* Private. */
	struct slice bytes;
	size_t count;
};

void answer_keep(const struct answer *a, struct kept *k);

struct asker {
	const char *path;
	void (*answered)(void *of, const struct answer *a);
	void *of;
	bool lasting;
	int fd;           /* -1: away */
	char why[512];    /* away: a sentence */
	int64_t asked_ms; /* since when the oldest question has waited for its answer */
	size_t count;     /* of questions without an answer */
	/* Private. */
	int64_t next_ms;
	struct bytes in, out;
	struct resp_replies replies;
	struct {
		int question;
		uint64_t about;
	} open[ASKER_QUESTIONS_MAX]; /* without an answer, the oldest first */
};

/* Both outlive it. Nothing is connected yet. */
void asker_init(struct asker *a, const char *path, void (*answered)(void *of, const struct answer *a), void *of);
void asker_deinit(struct asker *a);
/* Connects at once, or not: then `why` says why. */
void asker_connect(struct asker *a);
/* False: there is no connection, or no room for one question more. */
bool asker_ask(struct asker *a, int question, uint64_t about, size_t argc, const struct slice *argv);
/* The events to wait for, and when to call asker_serve() even without one; the clock is wire_now_ms(). */
struct pollfd asker_poll(const struct asker *a);
int64_t asker_due_ms(const struct asker *a);
void asker_serve(struct asker *a, short happened, int64_t now_ms);
