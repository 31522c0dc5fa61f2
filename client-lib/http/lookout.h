/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sources of the page's data, and how often the daemon is asked for them, for any number of viewers:
 *
 *     data            | asked                                  | while nobody looks
 *     ----------------|----------------------------------------|-------------------
 *     METRICS, INFO   | each second                            | every 5 s
 *     the first locks | each second: LOOKOUT_FIRST by the      | every 5 s
 *       of this host  |   longest wait, and by the orders that |
 *                     |   viewers have asked for in 5 s        |
 *     locks that      | each second, if there are more: by     | not asked
 *       viewers look  |   their names, LOOKOUT_SHOWN_QUESTIONS |
 *       at            |   at a time (lookout_shown.h)          |
 *     all locks of    | if there are more, every 2 ms for each | not asked
 *       this host     |   of them: 16 s for 8,000. Behind      |
 *                     |   limits.output_bytes (some 8,000) the |
 *                     |   pages of all locks have to do        |
 *     data in         | LOOKOUT_PACKETS a second in all: locks | not asked
 *       ZooKeeper     |   that viewers have opened, in turn, a |
 *                     |   part of it at most; then locks that  |
 *                     |   this host waits for, every 2 s; the  |
 *                     |   hosts, every 60 ms for each of them, |
 *                     |   5 s at least; then pages of all      |
 *                     |   locks                                |
 *
 * Somebody looks while there is a stream, and for LOOKOUT_LOOKS_MS after a question for JSON. The first viewer is
 * answered when a poll has ended that began then. A packet is one that the daemon sends to ZooKeeper for a question;
 * their number is estimated from its answer. If a question cost more packets than were left, the next second has fewer.
 *
 * The daemon is away when it cannot be reached or has not answered for LOOKOUT_AWAY_MS. The known data stays; each
 * second it is tried again.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/http/broker.h"
#include "client-lib/http/plots.h"
#include "client-lib/http/sightings.h"
#include "protocol/bytes.h"
#include "protocol/name.h"

enum {
	LOOKOUT_FIRST = 300,
	LOOKOUT_SHOWN_MS = 3000, /* so long after it was shown, somebody looks at a lock */
	LOOKOUT_SHOWN_QUESTIONS = 8,
	LOOKOUT_SHOWN_WALKED = 200000, /* locks that the daemon walks over for them: fewer questions where it has many */
	LOOKOUT_SHOWN_GROUP = 300, /* locks that one of them is about */
	LOOKOUT_SHOWN_COUNT = 1000, /* with further locks, which were not known; the most that the daemon shows */
	LOOKOUT_PAGE = 500, /* of all locks, standalone */
	LOOKOUT_WHOLE_MS_A_LOCK = 2,
	LOOKOUT_TOO_LONG_MS = 60000,
	LOOKOUT_PACKETS = 50,
	LOOKOUT_OPENED_PACKETS = 30, /* of these, for locks that viewers have opened */
	LOOKOUT_WAITED_PACKETS = 30, /* of these, for locks that this host waits for */
	LOOKOUT_REST_PACKETS = 10,   /* of these, kept for the hosts and the pages of all locks */
	LOOKOUT_LOOKS_MS = 5000,
	LOOKOUT_AWAY_MS = 3000,
	LOOKOUT_WAITED_MS = 2000,
	LOOKOUT_HOSTS_MS = 5000,
	LOOKOUT_HOSTS_MS_A_HOST = 60,
	LOOKOUT_HOSTS_MAX = 1000,
	LOOKOUT_OPENED_MAX = 32,
	LOOKOUT_OPENED_MS = 1000,   /* an answer about an opened lock is used for this long */
	LOOKOUT_PATIENCE_MS = 5000, /* a viewer who has waited this long for one gets the data that is known */
};

#define LOOKOUT_SHOWN_COUNT_TEXT "1000"

enum lookout_order { LOOKOUT_WAIT, LOOKOUT_WAITERS, LOOKOUT_GRANTS, LOOKOUT_NAME, LOOKOUT_ORDERS };

struct lookout_host {
	char *name, *version;
	int64_t started_s;
	bool self;
};

/* The latest answer to INFO; durations as of `at_ms`. */
struct lookout_session {
	int64_t at_ms; /* 0: there was none */
	char version[64], host[256], state[16], why[256], server[128], trouble[512];
	int64_t safe_for_ms, timeout_ms;
	bool connected, standalone;
};

/* A lock that viewers have opened. */
struct lookout_opened {
	struct bytes name;           /* empty: the place is free */
	int64_t wanted_ms;           /* when somebody asked for it last */
	int64_t waits_ms;            /* since when somebody waits for an answer; 0: nobody does */
	int64_t answered_ms;         /* the time of the data below; 0: no answer yet */
	bool asking, refused;        /* refused: the name cannot be asked for */
	char trouble[256];           /* empty: the last answers were whole */
	char *why, *holders, *queue; /* JSON; NULL: not known */
	int64_t holder_count, queue_count, queue_here_count; /* their JSON may lack some */
};

struct lookout_conf {
	const char *socket; /* of the daemon */
	/* A poll has ended, or could not begin: once a second while somebody looks. */
	void (*seen)(void *of);
	/* The viewers that wait for this lock have to be answered. */
	void (*answered)(void *of, int opened);
	/* Whether there are streams. */
	bool (*looks)(void *of);
	void *of;
};

struct lookout {
	struct event_base *base;
	const struct lookout_conf *conf;
	struct event *second;
	struct broker *near, *far; /* for questions about this host only, and for questions that may ask ZooKeeper */
	uint64_t seconds;
	int64_t looked_ms; /* INT64_MIN: nobody has looked yet */
	/* The poll. */
	bool polling, failed, plot_due;
	bool late, again; /* somebody waits for the end of the poll; and it is to be followed by another one */
	int64_t polled_ms; /* when the present or latest one began */
	int64_t wanted_ms[LOOKOUT_ORDERS];
	int64_t whole_ms;  /* when the whole list is asked for next */
	int64_t near_ms;   /* when the last whole list of this host's ended; 0: none yet */
	size_t near_count; /* locks of this host that the daemon counts */
	struct bytes shown[LOOKOUT_SHOWN_QUESTIONS], shown_after; /* prefixes that are asked for, and the last name */
	unsigned int shown_asked, shown_answered;
	/* ZooKeeper. */
	int64_t packets_left, opened_left, waited_left, page_ms;
	int64_t hosts_ms, hosts_taken_ms; /* when HOSTS was asked, and when it was answered; 0: not yet */
	double packets_a_name;
	struct bytes far_after, asked_name;
	int64_t asked_count;
	int asked_opened;
	/* The known data. */
	struct lookout_session session;
	struct plots plots;
	struct plots_reading reading;
	int64_t reading_ms;
	struct plots_step latest; /* between the last two readings */
	struct sightings sightings;
	struct lookout_host *hosts;
	size_t host_count;
	struct lookout_opened opened[LOOKOUT_OPENED_MAX];
};

/* The configuration outlives it. */
struct lookout *lookout_new(struct event_base *base, const struct lookout_conf *conf);
int64_t lookout_now_ms(void);
/* Somebody looks. True: that is the first one, who waits until lookout_conf.seen is called. */
bool lookout_look(struct lookout *l);
/* Somebody wants the locks in that order. */
void lookout_want(struct lookout *l, enum lookout_order order);
/*
 * Its number, from 0; if its answer is older than LOOKOUT_OPENED_MS it is asked for, and lookout_conf.answered is
 * called then. Negative: so many others are open.
 */
int lookout_open(struct lookout *l, struct slice name);
/* Why the daemon is away; NULL: it is not. */
const char *lookout_away(const struct lookout *l);
