/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The known data about locks. Of each lock: the data of this host, which each list of its own renews, and the data that
 * ZooKeeper has shown of other hosts, with its age. At most SIGHTINGS_MAX locks are kept; further ones are not, until
 * others have gone. Of a lock that nobody has or wants only the changes stay, as long as there is room for them:
 * SIGHTINGS_CHANGES_MAX of one lock, and SIGHTINGS_CHANGES_ALL_MAX of all; the oldest change goes first.
 *
 * Instants are of the monotonic clock, in ms, except for the instants of changes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

enum {
	SIGHTINGS_MAX = 20000,
	SIGHTINGS_CHANGES_MAX = 100,
	SIGHTINGS_CHANGES_ALL_MAX = 20000,
	SIGHTINGS_FAR_MS = 15 * 60 * 1000, /* for how long data from ZooKeeper is kept if it is not asked again */
};

/* A client that holds a lock, or waits for it. Texts are empty if there is none. */
struct sighting_client {
	bool here, shared;
	int64_t pid, uid, token; /* 0: not known; no uid is known without a pid */
	int64_t since_ms;        /* INT64_MIN: not known */
	const char *host, *command, *text;
	char texts[];
};

struct sighting_change {
	TAILQ_ENTRY(sighting_change) of_lock, of_all;
	struct sighting *sighting;
	int64_t at_ms; /* since 1970 */
	char text[];
};

TAILQ_HEAD(sighting_changes, sighting_change);

struct sighting {
	struct slice name; /* comes first: the tree compares it */
	/* As a list of this host said. */
	bool here;      /* a client of this host has it or wants it, or the host is about to give it up */
	uint64_t named; /* by which list that was said last, and when */
	int64_t named_ms;
	int64_t first_ms; /* when it was one of the first of an order last; INT64_MIN: it was not */
	char state[12];
	int64_t holders, waiters, delegated;
	int64_t waits_since_ms;        /* INT64_MIN: nobody waits, or it is not known for how long */
	int64_t grants, grants_ms;     /* the counter, and when it was read; negative: it was not */
	double grants_per_s;           /* negative: not known */
	struct sighting_client *first; /* its first holder; NULL: there is none, or it is not known */
	/* As ZooKeeper has shown. */
	int64_t far_ms, asked_ms;           /* when; INT64_MIN: it has not. When it was asked last. */
	int64_t far_holders, hosts_waiting; /* holders on other hosts; negative: not known */
	struct sighting_client *far_first;
	char kind[12]; /* empty: not known */
	/* Its changes. */
	struct sighting_changes changes;
	size_t change_count;
	int64_t shown_ms; /* when it was shown to somebody last; INT64_MIN: it was not */
	char bytes[];     /* of the name */
};

struct sightings {
	void *tree; /* of tsearch(3), by names */
	size_t count;
	bool truncated; /* there were more than it keeps */
	uint64_t list;  /* the number of the latest list */
	/* When the lists were asked for that are taken now: they end nothing that ZooKeeper's answers have shown since. */
	int64_t asked_ms;
	struct sighting_changes changes;
	size_t change_count;
};

void sightings_init(struct sightings *all);
/* NULL: it is not known. */
struct sighting *sightings_find(const struct sightings *all, struct slice name);
/* Somebody has or wants it. */
bool sighting_is_used(const struct sighting *s);
bool sighting_begins(const struct sighting *s, struct slice prefix);
/* Calls it for each one, in byte order of the names. It may change a sighting, and not their number. */
void sightings_walk(const struct sightings *all, void (*visit)(void *of, struct sighting *s), void *of);

/* Takes a row of LOCKS without ALL. NULL: there are too many. */
struct sighting *sightings_take_here(struct sightings *all, const struct lb_reply *row, int64_t now_ms);
/* The lists from `since` on had all locks of this host whose names begin so, up to `until` (empty: to the last). */
void sightings_end_here(struct sightings *all, uint64_t since, struct slice prefix, struct slice until);
/* The lists from `since` on had all locks that are waited for: nobody waits for a lock that only an earlier list named. */
void sightings_end_waits(struct sightings *all, uint64_t since);
/* Takes a row of LOCKS ... ALL. */
void sightings_take_far(struct sightings *all, const struct lb_reply *row, int64_t now_ms);
/* Takes the answer to WHY. */
void sightings_take_why(struct sightings *all, struct sighting *s, const struct lb_reply *why, int64_t now_ms);
/*
 * Behind `after` (empty: from the first name on) up to `until` (empty: to the last), ZooKeeper has shown no others
 * since then, nor are there others of this host, unless the latest list has them.
 */
void sightings_end_far(struct sightings *all, int64_t since_ms, struct slice after, struct slice until);
/* Forgets old data from ZooKeeper (SIGHTINGS_FAR_MS), and locks that nobody has or wants and that have no changes. */
void sightings_sweep(struct sightings *all, int64_t now_ms);

/* A row of HOLDERS or QUEUE; NULL: there is none. To be freed by free(). */
struct sighting_client *sighting_client_new(const struct lb_reply *row, int64_t now_ms);
