/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a handle holds, as far as it knows, and the daemon's session page. Together they tell for how long a grant is
 * still safe, without asking the daemon, which may hang. The daemon counts a lease from the grant; the library counts
 * it from the sending of the request, which is never later. Not part of the public interface.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/session_page.h"
#include "protocol/slice.h"

/* There is no lease, or none yet. */
#define HELD_FOREVER INT64_MAX

struct held {
	char *name;       /* NUL-terminated, of name_len bytes; the memory is kept for the next entry in this place */
	size_t name_len, name_room;
	int64_t token;    /* -1: not held, only waited for */
	uint64_t epoch;   /* that the page had when it was granted */
	int64_t depth;    /* how often it was acquired */
	int64_t until_ns; /* the lease does not end before; CLOCK_BOOTTIME */
	bool waits;       /* it is queued, and the event of its outcome was not read yet */
	int64_t waits_until_ns; /* what until_ns becomes if it is granted */
};

struct holdings {
	const struct session_page *page; /* NULL: there is no page of this daemon here, and the daemon must be asked */
	struct held *list;
	size_t count, cap;
};

/* Maps the page. It stays unmapped if the path is empty, or if the file has another id or is no page. */
void holdings_map(struct holdings *h, struct slice path, struct slice id);
/* Granted, or acquired again, with a lease that ends no earlier. True if the grant is new. */
bool holdings_add(struct holdings *h, struct slice name, int64_t token, int64_t until_ns);
/* The lease was restarted. */
void holdings_renew(struct holdings *h, struct slice name, int64_t until_ns);
/* The request was queued; and its outcome: granted, or not. */
void holdings_wait(struct holdings *h, struct slice name, int64_t until_ns);
void holdings_granted(struct holdings *h, struct slice name, int64_t token);
void holdings_unwait(struct holdings *h, struct slice name);
/*
 * Releases one level; after the last one the entry is gone. False, and nothing changed, if the lock is not known to be
 * held and valid: then only the daemon knows.
 */
bool holdings_leave(struct holdings *h, struct slice name, int64_t now_ns);
/* The daemon says that so many levels are left; 0: released. */
void holdings_left(struct holdings *h, struct slice name, int64_t depth);
/* Released, or lost. With a token, only the grant with that token; -1: any grant. */
void holdings_remove(struct holdings *h, struct slice name, int64_t token);
/* Milliseconds from `now_ns` (CLOCK_BOOTTIME); 0: not held, void, or no longer proven. */
int64_t holdings_valid_ms(const struct holdings *h, const char *name, int64_t now_ns);
void holdings_free(struct holdings *h);
