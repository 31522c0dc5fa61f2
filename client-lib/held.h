/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The locks that a handle holds, as far as it knows, and the daemon's session page. Together they show for how long a
 * grant is still safe, without asking the daemon, which may hang. The daemon counts a lease from the grant; the library
 * counts it from the sending of the request, which is never later. A loss by the end of a connection is kept until a
 * call has reported it. Not part of the public interface.
 *
 *     of a name       from -> to
 *     held            granted -> released, lost (an answer), lost with the connection, or:
 *     gone            an event said that it is lost -> a call on that name reported it, or it was granted again; or lost
 *     waits           queued -> granted, timed out, failed, cancelled; or failed with the connection
 *     observed        observed -> not observed any longer; or ended with the connection
 *     lost            the connection of a grant, or of one that was gone, ended -> a call on that name returned LB_LOST
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/bytes.h"
#include "protocol/session_page.h"
#include "protocol/slice.h"

/* There is no lease, or none yet. */
#define HELD_FOREVER INT64_MAX

struct held {
	char *name;       /* NUL-terminated, of name_len bytes; the memory is kept for the next entry in this place */
	size_t name_len, name_room;
	int64_t token;    /* -1: not held, only waited for */
	uint64_t epoch;   /* the epoch of the page when it was granted; HELD_NO_EPOCH: the epoch that is read next */
	int64_t depth;    /* how often it was acquired */
	int64_t until_ns; /* the lease does not end before; CLOCK_BOOTTIME */
	bool waits;       /* it is queued, and the event of its outcome was not read yet */
	bool observed;    /* as an election */
	bool gone;        /* lost, which the daemon remembers until a call has said so */
	bool lost;        /* the same, or it was held, when its connection ended: the daemon does not know it any longer */
	int64_t waits_until_ns; /* the later value of until_ns if it is granted */
};

/* Of a grant that was made when the page could not be read, or had moved. No session has that epoch. */
#define HELD_NO_EPOCH UINT64_MAX

struct holdings {
	const struct session_page *page; /* NULL: there is no page of this daemon here, and the daemon must be asked */
	struct session_view seen;        /* its latest valid content: its writer may be killed while it writes */
	struct held *list;
	size_t count, cap;
	size_t lost_count;
};

/*
 * Maps the page in place of one that was mapped before. There is none if the path is empty, or if the file has another
 * id or is no page.
 */
void holdings_map(struct holdings *h, struct slice path, struct slice id);
/* The daemon was killed, and now has another page: this page is right for a while, and is not written any longer. */
bool holdings_moved(struct holdings *h);
/* The page says, or will say, nothing of that lock: the daemon must be asked. */
bool holdings_unproven(struct holdings *h, const char *name, int64_t now_ns);
/* Granted, or acquired again, with a lease that ends no earlier. True if the grant is new. */
bool holdings_add(struct holdings *h, struct slice name, int64_t token, int64_t until_ns);
/* Taken as delegated, in a session of that epoch. */
void holdings_delegated(struct holdings *h, struct slice name, int64_t token, uint64_t epoch);
/* The grant with that token is held, and was acquired once. */
bool holdings_once(const struct holdings *h, struct slice name, int64_t token);
/* The lease was restarted. */
void holdings_renew(struct holdings *h, struct slice name, int64_t until_ns);
/* The request was queued; and its outcome: granted, or not. */
void holdings_wait(struct holdings *h, struct slice name, int64_t until_ns);
void holdings_granted(struct holdings *h, struct slice name, int64_t token);
void holdings_unwait(struct holdings *h, struct slice name);
/* Releases one level of a lock that is held; after the last one the entry is gone. */
void holdings_leave(struct holdings *h, struct slice name);
/* The daemon says that so many levels are left; 0: released. */
void holdings_left(struct holdings *h, struct slice name, int64_t depth);
/* Released, or lost. With a token, only the grant with that token; -1: any grant. */
void holdings_remove(struct holdings *h, struct slice name, int64_t token);
/* An event said that the grant with that token is lost. */
void holdings_gone(struct holdings *h, struct slice name, int64_t token);
/* A call said of the lock that it is lost, or not held. */
void holdings_told(struct holdings *h, struct slice name);
/* The election is observed from now on, or no longer. */
void holdings_observe(struct holdings *h, struct slice name, bool on);
/*
 * The connection ended: all locks are lost, and nothing waits or is observed any longer; the page will be the page of
 * the next connection. Appends an event for each lock, wait and election, as the daemon would send it.
 */
void holdings_disconnect(struct holdings *h, struct bytes *events);
/* True, once, if the lock was held when its connection ended, or was lost before and no call had reported that. */
bool holdings_take_lost(struct holdings *h, struct slice name);
/* Milliseconds from `now_ns` (CLOCK_BOOTTIME); 0: not held, void, or no longer proven. */
int64_t holdings_valid_ms(struct holdings *h, const char *name, int64_t now_ns);
void holdings_free(struct holdings *h);
