/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A connection to the daemon that lasts, and questions on it. It never blocks: a question waits for its answer in
 * the order in which it was asked, and all of them end without one when the connection ends, or when the daemon is
 * silent for `patience_s`. The next question connects again.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

struct broker;

/* NULL: there is no answer. An error of the daemon's is one: see broker_error(). It lives as long as the call. */
typedef void (*broker_answered)(void *of, const struct lb_reply *reply);

enum { BROKER_WORDS_MAX = 10, BROKER_OPEN_MAX = 128 };

/*
 * The path outlives it. `greets`: each connection begins with HELLO, and has a name; without that, an answer is a text of at
 * most 1 MB.
 */
struct broker *broker_new(struct event_base *base, const char *path, int patience_s, bool greets);
/*
 * Asks; the words need not outlive the call. `answered` is called later, and never from within this call. False: the
 * daemon cannot be reached now, or BROKER_OPEN_MAX questions are open; nothing was asked.
 */
bool broker_ask(struct broker *b, broker_answered answered, void *of, size_t count, const struct slice *words);
/* Ends the connection, until the next question. `answered` may do so when it has used the answer. */
void broker_leave(struct broker *b);
/* How many questions have no answer yet. */
size_t broker_open(const struct broker *b);
/* Why the daemon could not be reached, or stopped to answer, last; a sentence. */
const char *broker_trouble(const struct broker *b);
/* The sentence of an error, with its code; empty: the reply is none. */
struct slice broker_error(const struct lb_reply *reply);
