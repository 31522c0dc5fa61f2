/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest thing that keeps ZooKeeper from serving this host: one sentence, for INFO.
 *
 *   kind        | means                                           | cleared by
 *   NONE        | nothing is known to be wrong                    |
 *   UNREACHABLE | a server did not answer, or has no address      | an answered write
 *   REFUSED     | what answered gives no usable session           | an answered write
 *   DENIED      | an operation was refused (by an ACL, say)       | one of its kind that succeeds
 *
 * The adapter logs the first three kinds, the core the last: once a minute for each kind of operation.
 */
#pragma once

#include <stdint.h>

#include "core/port/event.h"
#include "core/session/operation.h"
#include "protocol/bytes.h"

struct ensemble;

enum trouble_kind { TROUBLE_NONE, TROUBLE_UNREACHABLE, TROUBLE_REFUSED, TROUBLE_DENIED };

struct trouble {
	enum trouble_kind kind;
	struct bytes sentence;      /* empty when there is none */
	int64_t at_ns;              /* when it was last met with */
	enum operation_kind denied; /* DENIED */
	int64_t said_ns[OPERATION_KINDS]; /* when the log was told; 0: never */
};

void trouble_deinit(struct trouble *t);
/* EVENT_ZK_TROUBLE. */
void trouble_met(struct ensemble *zk, const struct event *event);
/* An operation was answered, definitely: with ZK_REFUSED it is a trouble, with ZK_OK it may have been one. */
void trouble_answered(struct ensemble *zk, const struct operation *op, const struct event *event);
/* A write was answered. */
void trouble_proved(struct ensemble *zk);
