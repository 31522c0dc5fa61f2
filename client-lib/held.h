/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a handle holds, as far as it was told, and the daemon's session page: together they say how long a grant is
 * still safe without asking the daemon, which may hang. The daemon counts a lease from the grant, which is no earlier
 * than the request was sent: from there it is counted here. Not part of the public interface.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/session_page.h"
#include "protocol/slice.h"

/* No lease, or none yet. */
#define HELD_FOREVER INT64_MAX

struct held {
	char *name;       /* NUL-terminated, of name_len bytes; its memory is kept for the next one in this place */
	size_t name_len, name_room;
	int64_t token;    /* -1: not held, only waited for */
	uint64_t epoch;   /* of the page when it was granted */
	int64_t depth;    /* how often it was entered */
	int64_t until_ns; /* its lease does not end before; CLOCK_BOOTTIME */
	bool waits;       /* queued, and how that ended was not read yet */
	int64_t waits_until_ns; /* what is until_ns if it is granted */
};

struct holdings {
	const struct session_page *page; /* NULL: there is none of this daemon here; it must be asked */
	struct held *list;
	size_t count, cap;
};

/* Maps the page. An empty path, or a page that has another id or is none, leaves it unmapped. */
void holdings_map(struct holdings *h, struct slice path, struct slice id);
/* Granted, or entered again, with a lease that ends no earlier. True when the grant is a new one. */
bool holdings_add(struct holdings *h, struct slice name, int64_t token, int64_t until_ns);
/* Its lease was set anew. */
void holdings_renew(struct holdings *h, struct slice name, int64_t until_ns);
/* Queued; and how that ended: granted, or not. */
void holdings_wait(struct holdings *h, struct slice name, int64_t until_ns);
void holdings_granted(struct holdings *h, struct slice name, int64_t token);
void holdings_unwait(struct holdings *h, struct slice name);
/*
 * One level less, or the last one and it is gone. False, and nothing changed, when it is not known to be held and
 * valid: then only the daemon knows.
 */
bool holdings_leave(struct holdings *h, struct slice name, int64_t now_ns);
/* So many levels are left, says the daemon; 0: released. */
void holdings_left(struct holdings *h, struct slice name, int64_t depth);
/* Released, or lost: with a token, only that grant. -1: whichever. */
void holdings_remove(struct holdings *h, struct slice name, int64_t token);
/* Milliseconds from `now_ns` (CLOCK_BOOTTIME); 0: not held, void, or not proven any more. */
int64_t holdings_valid_ms(const struct holdings *h, const char *name, int64_t now_ns);
void holdings_free(struct holdings *h);
