/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of the broker. The caller owns it, and keeps it until the broker has ended, or has taken another one by
 * EVENT_CONF, which differs only in fields that are marked "may change". Objects beyond a limit that became smaller stay;
 * new ones are refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/access.h"
#include "core/port/effect.h"

struct accounts;
struct pool_words;

/* How the contenders of a directory are named (flavour.h). A semaphore's slots have SLOTS (semaphore.h). */
enum flavour { FLAVOUR_RW, FLAVOUR_MUTEX, FLAVOUR_KAZOO, FLAVOUR_SLOTS };

/* May change, but for `session_path_bytes`. */
struct broker_limits {
	/* Of all clients together; one user has a share (base/account.h). */
	size_t clients, locks, requests, grants, observers, memory_bytes, new_names, lasting_directories;
	size_t new_names_per_s;  /* so many are given back each second; 0: new names are not limited */
	unsigned int user_share; /* percent, 1..100 */
	const uint32_t *by_unit; /* users that have an account for each systemd unit, as root has */
	size_t by_unit_count;
	size_t requests_per_lock, requests_per_client, grants_per_client;
	size_t events_per_client; /* buffered for EVENTS; one more closes the connection */
	size_t request_bytes, request_args, output_bytes; /* the adapter's; for INFO */
	size_t session_path_bytes; /* one session's ephemeral paths together, and so its watched paths */
};

/* A session that an earlier daemon of this host left. */
struct broker_former {
	int64_t session;
	int64_t not_before_ns; /* it must not be ended earlier, unless EVENT_FORMER_FREE comes */
};

/* Locks whose names begin with `prefix` have another flavour or another place. */
struct broker_prefix {
	const char *prefix; /* not empty */
	enum flavour flavour;
	const char *path; /* absolute like `root`; "": below the root like any other lock */
	int64_t remove_idle_ns; /* KAZOO: a directory that nobody has used for so long is removed; 0: never */
};

/* A key of the configuration and its value, for CONFIG GET. */
struct broker_setting {
	const char *name, *value;
};

struct flight_ring;

struct broker_conf {
	struct flight_ring *flight;    /* the flight recorder; NULL: there is none */
	bool standalone;          /* tier 2 is answered locally */
	const char *root;         /* "/lockbroker": absolute, no trailing slash, never "/" */
	const char *host;         /* this host's name among the hosts */
	const char *version;
	const char *session_page; /* its path, for clients; "": there is none */
	const char *session_page_id; /* as session_page_id_text() has it */
	const char *boot_id;      /* of this boot of the host; with pid and start it names the daemon */
	uint32_t pid;
	const char *operator_socket; /* its path, for sentences */
	const unsigned int *files_lost; /* files of the daemon that were removed for good; the adapter's; NULL: not known */
	uint64_t hash_key[2];     /* of all tables whose keys others choose: a secret, new for each process */
	const struct accounts *sockets; /* the use by connections (ACCOUNTS), and its pools' names; NULL: not known */
	const struct pool_words *sockets_words;
	int64_t started_s;        /* seconds since 1970 */
	int started_ms;           /* ... and milliseconds, below 1000 */
	int64_t session_timeout_ns; /* asked for; for INFO and the checks of the numbers */
	int64_t tick_ns;          /* the servers' tickTime */
	/* From here to `stop_timeout_ns`: may change. */
	int64_t linger_ns;        /* 0: off */
	int64_t handoff_max;      /* further grants on a znode that another contender waits for */
	int64_t handoff_ns;
	int64_t try_ns;           /* after this a lock counts as taken even if nobody says so (sighting.h); 0: at once */
	bool all_in_pieces;       /* for tests: nothing that could be done later is done at once (work.h) */
	bool delegation;          /* to clients that ask for it (core/lock/delegated.h) */
	bool deadlock_detection;  /* among the waits inside the host */
	enum effect_level log_level; /* the least important level that the log keeps: other lines are not made */
	bool log_grants;          /* holds are of level info; otherwise of level debug */
	int64_t long_wait_ns;     /* a wait is logged when it passes this, and when it ends; 0: none is */
	int64_t grant_min_ns;     /* a grant must be proven for longer than this */
	int64_t stop_timeout_ns;
	struct access_rules access; /* may change */
	const struct broker_former *formers; /* the oldest first; at most FORMERS_MAX */
	size_t former_count;
	struct broker_limits limits;
	const struct broker_setting *settings; /* may change; never a secret: the configuration has none */
	size_t setting_count;
	const struct broker_prefix *prefixes;
	size_t prefix_count;
};
