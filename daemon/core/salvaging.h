/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What salvage.c has found out of a ledger, and its text: the entries of a snapshot (snapshot.h). Everything here points
 * into the ledger and belongs to salvage().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lock/bearer.h"
#include "core/lock/grant.h"
#include "core/port/effect.h"
#include "core/port/ledger_view.h"
#include "core/salvage.h"
#include "core/znode/kind.h"

struct broker;

struct of_lock {
	size_t lock;   /* where it is in its list */
	uint32_t mark; /* its place among all of its type, from 1; of a grant that is left out: 0 */
};

/* A grant, and what becomes of it. */
struct held {
	struct of_lock of;
	const struct ledger_grant *grant;
	size_t client; /* where it is in its list */
	bool lost;
	enum loss loss;
};

struct noted {
	struct of_lock of;
	const struct ledger_claim *claim;
};

struct watching {
	struct of_lock of;
	const struct ledger_observer *observer;
	size_t client;
};

struct salvaging_place {
	const struct ledger_lock *lock;
	struct held *held; /* its grants, the oldest first */
	const struct noted *claims;
	const struct watching *watching;
	size_t held_count, claim_count, watching_count;
	const struct ledger_claim *kept; /* what its grants rest on, unless it is a semaphore */
	bool holds;                      /* some of them are valid */
};

struct salvaging {
	const struct salvage *s;
	const struct ledger_view *v;
	struct broker *b; /* has what is the broker's own */
	struct bytes *out, *why;
	struct held *held;
	struct noted *claims;
	struct watching *watching;
	struct salvaging_place *places;
	bool *holds; /* by client: it has a valid grant */
	struct bearer bearer; /* of each client that is one; its value is in the text of its record */
	size_t held_count, claim_count, watching_count;
	bool standalone;
};

static inline bool salvaging_refuse(struct salvaging *w, const char *what)
{
	bytes_text(w->why, what);
	return false;
}

static inline const struct ledger_client *salvaging_client(const struct ledger_view *v, size_t i)
{
	return ledger_view_client(v->of[LEDGER_CLIENT].list[i]);
}

/* It has no connection that could be lost. */
static inline bool salvaging_is_bearer(const struct ledger_client *c)
{
	return c->conn == EFFECT_NO_CONN;
}

static inline bool salvaging_semaphore(const struct salvaging_place *p)
{
	return p->lock->kind == KIND_SEMAPHORE;
}

bool salvaging_may_continue(const struct ledger_client *c);
bool salvaging_is_back(const struct salvaging *w, const struct ledger_client *c);
/* Appends all entries, between the first and the last one of a snapshot. False: *why says why. */
bool salvaging_write(struct salvaging *w);
