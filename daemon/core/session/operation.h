/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations sent to ZooKeeper and not answered yet. They are answered in the order of sending within a
 * connection, so they form a queue; an answer names its operation by a number that is never used twice.
 * When the connection ends every open operation is of unknown outcome, at once and here: what the adapter
 * still says about them later is dropped by its number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/effect.h"
#include "core/port/event.h"
#include "core/session/operation_kind.h"
#include "core/session/proof.h"
#include "core/session/window.h"

struct ensemble;
struct directory;

struct operation {
	enum operation_kind kind;
	bool done;
	bool watch; /* LIST, INBOX_LIST, OBSERVE_*: it sets a watch */
	struct directory *directory; /* where it is asked, and kept alive by that; NULL: none. This floor does not look at it */
	uint64_t claim;              /* number of the claim, which may be gone by now; 0: none. AUDIT_*: of the sweep */
	uint64_t query; /* number of the query or letter, which may be gone by now; INBOX_*: of the list */
	uint64_t part;  /* REVOCATION_DELETE: which of its targets */
	struct flight flight;
	struct proof_write write; /* of a write */
};

struct operations {
	struct operation *ring;
	size_t cap;          /* a power of two */
	uint64_t first, end; /* open operations have first <= number < end; numbers start at 1 */
	int64_t answered_ns; /* when the latest answer came */
	struct window window;
	int64_t list_bytes; /* what the list of a directory that is not known may be */
};

/* What is to be sent, besides the data (operation_data()). The slices are copied. */
struct operation_request {
	struct operation op; /* kind, directory, claim, flags; the rest is filled in */
	struct slice path;
	struct slice child; /* the name of a znode below `path`; empty: that is the path itself */
	int64_t list_bytes; /* EFFECT_ZK_LIST: what the answer was the last time; 0: not known */
	enum zk_create create;
	bool exact; /* EFFECT_ZK_SET: only of that version */
	int32_t version;
};

/* Where the data of the operation that is sent next are written. */
struct bytes *operation_data(const struct ensemble *zk);
/* Sends it and returns its number. Only while connected. */
uint64_t operation_send(struct ensemble *zk, enum effect_type type, const struct operation_request *request);
/* When the oldest open one was sent; INT64_MAX: nothing is open. */
int64_t operation_oldest_ns(const struct ensemble *zk);
/*
 * The server has been silent since: the later of the latest answer and the sending of the oldest open operation. Pings,
 * watch events and the handshake answer nothing. INT64_MAX: nothing is open.
 */
int64_t operation_silent_since(const struct ensemble *zk);
/* NULL: it is not open. */
const struct operation *operation_find(struct ensemble *zk, uint64_t number);
/* It is answered now: what that says of the connection. Returns the bytes of a list. */
int64_t operation_measure(struct ensemble *zk, const struct operation *op, const struct event *event);
/* Off the queue, before its answer is acted on: what that sends is queued behind. */
struct operation operation_take(struct ensemble *zk, uint64_t number);
void operation_deinit(struct operations *o);
