/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking for a lock: whether a client may wait for it, and the sentence if it may not.
 */
#pragma once

#include <stdbool.h>

#include "core/lock/request.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

struct client;

/* Why it is not even asked. */
struct refusal {
	enum error_code code;
	struct bytes sentence;
};

/* The sentence is those three in a row. */
struct refusal refusal_of(enum error_code code, const char *before, struct slice name, const char *after);
/* The client holds that lock, and did not say that it may enter it again. */
struct refusal refusal_held(struct slice name);
/* Answers with it, and frees the sentence. */
void refusal_reply(struct client *c, struct refusal *no);

/* Queues one, of a client that neither holds that lock nor waits for it. False: refused, and why. */
bool ask_lock(struct client *client, struct slice name, const struct request_terms *terms, struct refusal *ret);
