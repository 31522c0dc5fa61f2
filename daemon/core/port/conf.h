/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker is configured with. The caller owns it; it outlives the broker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/effect.h"

/* How the contenders of a directory are named (flavour.h). SLOTS is no lock's: what a semaphore counts (semaphore.h). */
enum flavour { FLAVOUR_RW, FLAVOUR_MUTEX, FLAVOUR_KAZOO, FLAVOUR_SLOTS };

struct broker_limits {
	size_t clients, clients_per_uid, locks, requests_per_lock, requests_per_client, requests_per_uid;
	size_t grants_per_client, grants_per_uid;
	size_t events_per_client; /* buffered for EVENTS; one past it closes the connection */
	size_t request_bytes, request_args, output_bytes; /* the adapter's; for INFO */
	size_t session_path_bytes; /* ephemeral paths, and watched paths, of one session: each at most this */
};

/* A session that an earlier daemon of this host left. */
struct broker_former {
	int64_t session;
	int64_t not_before_ns; /* it may not be ended earlier, unless EVENT_FORMER_FREE; in the past: at once */
};

/* Locks whose names begin so have another flavour, or another place. */
struct broker_prefix {
	const char *prefix; /* not empty */
	enum flavour flavour;
	const char *path; /* as `root`; NULL: below the root like any other */
};

struct broker_conf {
	bool standalone;          /* tier 2 is answered locally */
	const char *root;         /* "/lockbroker": absolute, no trailing slash, never "/" */
	const char *host;         /* this host's name among the hosts */
	const char *version;
	const char *session_page; /* its path, for clients; "": there is none */
	const char *session_page_id; /* as session_page_id_text() has it */
	const char *boot_id;      /* of this boot of the host; with pid and start it names the daemon */
	uint32_t pid;
	uint32_t uid;             /* of this daemon: its clients of that user, and root's, are operators */
	int64_t started_s;        /* seconds since 1970 */
	int64_t session_timeout_ns; /* asked for; for INFO and the checks of the numbers */
	int64_t tick_ns;          /* the servers' tickTime */
	int64_t linger_ns;        /* 0: off */
	int64_t handoff_max;      /* further grants on a znode somebody else waits for */
	int64_t handoff_ns;
	int64_t try_ns;           /* what nobody says is held is taken by then (try.h); 0: at once */
	bool deadlock_detection;  /* of what waits inside the host */
	bool log_grants;          /* a line for each grant, release and loss ... */
	enum effect_level log_grants_level; /* ... at that level */
	int64_t grant_min_ns;     /* a grant must be proven for longer than this */
	int64_t stop_timeout_ns;
	const struct broker_former *formers; /* the oldest first; at most FORMERS_MAX */
	size_t former_count;
	struct broker_limits limits;
	const struct broker_prefix *prefixes;
	size_t prefix_count;
};
