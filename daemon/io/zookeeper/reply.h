/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the answers of the ZooKeeper C client for the broker. */
#pragma once

#include <zookeeper/zookeeper.h>

#include "core/port/event.h"

struct zk_reply {
	struct slice *children;
	size_t cap;
	char sentence[256]; /* about a refusal */
};

void zk_reply_deinit(struct zk_reply *r);
/*
 * What a return code says about the operation. A code is a refusal only if the server returns it before it does
 * anything; any other code that is not definite means that the outcome is unknown. One table classes each of them.
 */
enum zk_code zk_reply_code(int rc);
/* Sets the cause and the data of a refusal, whether for good or for the moment; they are valid until the next call. */
void zk_reply_refused(struct zk_reply *r, int rc, struct event *event);
/* All zero for NULL. */
struct zk_stat zk_reply_stat(const struct Stat *stat);
/* Sets count and children (never NULL), which are valid until the next call. `names` may be NULL. */
void zk_reply_children(struct zk_reply *r, const struct String_vector *names, struct event *event);
