/* SPDX-License-Identifier: Apache-2.0 */
/* What the ZooKeeper C client answers, in the words of the broker. */
#pragma once

#include <zookeeper/zookeeper.h>

#include "core/port/event.h"

struct zk_reply {
	struct slice *children;
	size_t cap;
};

void zk_reply_deinit(struct zk_reply *r);
/*
 * What a return code says about the operation. Only a code that the server gives before it does anything is a
 * refusal; whatever else is not known to be definite is of unknown outcome.
 */
enum zk_code zk_reply_code(int rc);
/* A refusal, for people. */
const char *zk_reply_sentence(int rc);
/* All zero for NULL. */
struct zk_stat zk_reply_stat(const struct Stat *stat);
/* Sets count and children; never NULL. They live until the next call. `names` may be NULL. */
void zk_reply_children(struct zk_reply *r, const struct String_vector *names, struct event *event);
