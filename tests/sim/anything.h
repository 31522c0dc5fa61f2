/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mixes "anything": clients send any request, well-formed or not, for names of any kind, and hang up at any time.
 * Unlike other mixes these have no model of the right answers (the world has no locks and no callers then). The checks
 * look inside the brokers after every event (anything_checks.c):
 *
 *   - no invariant of a broker is broken (broker_check), and nothing crashes: worth running with SAN=address,undefined
 *   - while a client holds a lock exclusively, no other client has a valid grant of it on any host
 *   - a grant's token is larger than that of every earlier one of its name that it conflicts with
 *   - a grant is of the kind of its lock's directory
 *   - nobody waits for itself, as far as deadlock detection looks
 *   - each request gets one reply; one that asks ZooKeeper or other hosts gets it in bounded time once all is well
 *   - an MLOCK that was not granted leaves nothing behind
 *   - a lock that is held under a value stays so until its lease or the process that it is tied to ends, unless something
 *     takes it (anything_values.c)
 *   - values that are refused again and again are served in order, and cost at most a second (anything_places.c)
 *   - what is done under a value on another host is done once, and told as it is (anything_letters.c)
 *   - no client is told that a lock is free while it is held all the time (anything_letters.c)
 *   - a client that waits for a lock that nobody holds is granted it once all is well
 *   - an observer learns of leaders in order, of none twice, and in the end of the present one
 *   - directories are made no faster than limits.new_names_per_s allows, and no more lasting ones than
 *     limits.lasting_directories allows
 *   - rules of access are kept, and sessions are secrets (anything_rules.c)
 *   - whatever clients write into their pages (anything_pages.c), all of this holds
 *   - nobody passes a latch at which too few have arrived, and everybody passes an open one (anything_latch.c)
 *   - a long wait is logged once when it becomes one and once when it ends, and no shorter one is (anything_waits.c)
 *   - nothing is left when all have hung up
 */
#pragma once

#include "base/hold_record.h"
#include "base/log_event.h"
#include "core/state.h"
#include "protocol/name.h"
#include "world.h"

enum { ANY_PEERS = 6, ANY_NAMES = 6, ANY_GONE = 512, ANY_REPLY = 256, ANY_RULES = 4, ANY_LETTERS = 64, ANY_LINES = 64 };
enum { ANY_TRIES = 4096, ANY_WAITS = 128 };

/* What an observer was told of an election. */
struct any_told {
	bool told;
	int64_t token, highest;
};

/* What a rule was made of (anything_rules.c). */
struct any_rule {
	bool allows;
	int who, pattern;
	unsigned int verbs;
};

struct any_rules {
	struct any_rule made[ANY_RULES];
	struct rule list[ANY_RULES];
	size_t count;
	unsigned int verbs;
};

/* The value that a request shows; empty: none. */
struct any_shown {
	char text[512];
	size_t len;
	uint32_t uid;
	int only;      /* the one name that it releases or extends, and nothing else; -1 */
	bool releases; /* ... or else extends */
	bool adds;     /* to the time that is left */
	int64_t token; /* of the grant of that name under that value, when it was asked; 0: there was none */
	bool done;     /* another host has released or extended it for this request */
	bool takes;    /* it takes one lock, if that is free */
	int about;     /* the name of the lock whose holder it asks for; -1 */
	int64_t held;  /* the token of any grant of that name when it asked; 0: there was none */
};

/* A letter about a value. */
struct any_letter {
	char id[64];
	struct any_shown shown;
	int name;
	bool releases, extends;
	bool open; /* not answered */
	int64_t at;
};

struct any_peer {
	struct host *host;
	uint32_t conn;
	bool on, asking, half, closing, going;
	uint64_t life;
	int version;
	enum command command; /* asked last */
	int64_t asked_at;
	unsigned int held; /* when it asked: a bit for each name */
	int name;          /* that it asked about; -1 */
	bool groups_known;
	int verb;          /* what it asked for is that; -1: no rule is about it */
	int ruled;         /* the number of the rules then: an MLOCK may meet others while it waits */
	unsigned int denied; /* a bit for each name that it asked about and may not */
	const struct rule *denies; /* the rule for the first of them; NULL: the default */
	struct any_told told[ANY_NAMES];
	size_t revoke_bytes;   /* pushed since it was last known to read */
	struct any_shown shown; /* by what it asked last */
	bool replied;          /* in this event, or its request was cut off */
	char reply[ANY_REPLY]; /* its beginning */
	bool arrives; /* at the latch, in this event */
	bool has_page;
	uint64_t page_turn; /* the latest page that was asked for */
	struct delegation_page page;
};

/* The process of a client: the number of its connection tells its own. */
struct any_process {
	bool lives;
	uint64_t started;
};

/* A process that the broker wants to be watched. */
struct any_line {
	uint64_t life; /* 0: none */
	uint64_t number, started;
	uint32_t pid;
	bool must, is_told;
	enum process_is told;
};

/* A lock that is held under a value, as it was seen last. */
struct any_value {
	int64_t token; /* 0: none */
	int64_t due;   /* the end of its lease; 0: it has none, and is tied to: */
	uint32_t pid;
	uint64_t started;
	char text[512];
	size_t len;
	uint32_t uid;
};

/* Of a lock, as it was seen last (anything_places.c). */
enum { ANY_LINE_MAX = 16 };

struct any_place {
	uint64_t kept; /* the bearer that has it kept; 0: none */
	int64_t due;
	uint64_t last; /* the latest client */
	uint64_t has;  /* the bearer that holds the lock; 0: none */
	uint64_t line[ANY_LINE_MAX]; /* whose requests wait, in their order: the first ones; */
	bool is_place[ANY_LINE_MAX]; /* ... by a place */
	int line_count;
};

/* The latch of a host, as it was seen last (anything_latch.c). */
struct any_latch {
	int64_t arrivals; /* at most so many since it was closed */
	int64_t busy_at;  /* when it was last closed, or nobody waited for it */
};

/* A wait that the log says is long. */
struct any_wait {
	uint64_t client;
	char name[NAME_BYTES_MAX];
	size_t len;
	int64_t asked_ns;
};

struct any_host {
	struct any_peer peers[ANY_PEERS];
	int peer_count;
	struct any_rules rules[2]; /* those that count are of `turn` */
	int turn, ruled; /* ruled: how often they have changed */
	int64_t named_ns, named_at; /* the time for which so many new names would do, at that instant (check_named()) */
	int64_t begun, over; /* grants: that there were, or have begun since, and ends of these by its log */
	struct any_wait waits[ANY_WAITS];
	int wait_count;
	int said;           /* of what goes on, in this event */
	int64_t left_until; /* by then all is said that an event left over */
	int64_t seen[ANY_PEERS][ANY_NAMES]; /* tokens of the grants they have */
	int64_t borne[ANY_NAMES];           /* the token of the bearer's grant, if there is one */
	struct any_value values[ANY_NAMES];
	struct any_place places[ANY_NAMES];
	uint8_t tries[ANY_TRIES];           /* requests for a lock, 2 at most, by a hash of user, name and value */
	struct any_process processes[ANY_PEERS];
	struct any_line lines[ANY_LINES];
	enum command asked;          /* the latest request */
	struct any_shown shown;      /* by that */
	struct any_latch latch;
	int64_t right_at[ANY_NAMES]; /* when what it knows of the leader was last right, or known to nobody here */
};

/* Of one name, on all hosts. */
struct any_name {
	int64_t highest, highest_writer; /* tokens */
	int64_t busy_at;                 /* when it was last held, or nobody waited for it */
	int64_t leader;                  /* its token, when it was last looked at */
	int64_t held_at[KINDS_MAX];          /* since when it has been held as that kind; 0: it is not */
};

struct any {
	bool rules;  /* there are rules of access */
	bool forces; /* znodes are deleted behind their hosts */
	struct any_host hosts[HOSTS_MAX];
	struct any_name names[ANY_NAMES];
	const struct lock *locks[HOSTS_MAX][ANY_NAMES]; /* at the latest look; NULL: there was none */
	/* Znodes that were deleted, the latest; with FORCEUNLOCK they may be in use. */
	int64_t gone[ANY_GONE];
	size_t gone_count;
	struct any_letter letters[ANY_LETTERS]; /* the latest */
	size_t letter_count;
};

extern const char *const any_names[ANY_NAMES];

struct any_host *any_of(const struct host *h);
/* The connection of the process with that number. */
uint32_t any_conn_of(const struct host *h, int64_t pid);
/* Which of the names; -1. */
int any_name_of(struct slice name);

/* anything_meddler.c: somebody with a ZooKeeper shell, or with something against us */
void any_meddle(struct world *w);

/* anything_asks.c: up to `max` words of a request, of bytes that stay valid until the next call */
size_t any_words(struct any_peer *p, struct slice *words, size_t max);

/* anything_checks.c */
void any_check_asking(struct any_peer *p, const struct slice *words, size_t count);
void any_check_reply(struct any_peer *p, struct slice reply);
void any_check_push(struct any_peer *p, struct slice push);
/* Grants of locks, and permits, that its broker has made and that are valid. */
int64_t any_count_grants(const struct host *h);
void any_forget_log(struct host *h);
/* What FORCEUNLOCK deleted may be in use until its daemon has been told: that grant does not count. */
bool any_is_void(const struct world *w, const struct grant *g);
/* Its grants are valid. */
bool any_is_proven(const struct host *h);

/* anything_latch.c */
/* Words about the latch, in a world that has one; 0: about something else. */
size_t latches_words(struct any_peer *p, struct slice *words);
void latches_check(struct host *h);

/* anything_waits.c */
void waits_logged(struct host *h, enum log_event event, const struct hold_record *hold);
void waits_forget(struct host *h);
void waits_check(struct host *h); /* after each event */

/* anything_values.c */
/* The next request is one about values. */
bool values_turn(struct world *w);
bool values_says_nx(const struct slice *words, size_t count);
void values_asking(struct any_peer *p, const struct slice *words, size_t count);
void values_check(struct host *h);
/* Its process has ended, and the next one knows nothing of it. */
void values_forget(struct host *h);

/* anything_places.c */
void places_check(struct host *h);
void places_asking(struct any_peer *p, const struct slice *words, size_t count);
void places_replied(const struct any_peer *p, struct slice reply);

/* anything_letters.c */
void letters_asking(struct any_peer *p, int name);
void letters_replied(const struct any_peer *p, struct slice reply);
/* A letter may be among what its broker creates. */
void letters_created(struct host *h, struct slice path, struct slice data);
/* One that is not long under way may release or extend that. */
bool letters_ask(const struct host *h, int name, const struct any_value *v, bool releases);

/* anything_processes.c */
/* The instant at which the process of that client started, which is another one than before if that has ended. */
uint64_t any_process_begin(struct host *h, uint32_t conn);
void any_process_end(struct host *h, uint32_t conn);
bool any_process_lives(const struct host *h, uint32_t pid, uint64_t started);
/* EFFECT_LIFELINE and EFFECT_LIFELINE_OVER. */
void lines_effect(struct host *h, const struct effect *e);
/* Another adapter is there. */
void lines_forget(struct host *h);

/* anything_pages.c */
/* Locks may be delegated in this world. */
bool pages_on(const struct world *w);
/* EFFECT_PAGE. */
void pages_make(struct host *h, uint32_t conn);
/* Another process has the pages. */
void pages_resume(struct host *h);
/* The words of a request: DELEGATE in its place, or a slot that it offers as well. */
size_t pages_words(struct any_peer *p, struct slice *words, size_t count, size_t max);
/* The client does something with its page. */
bool pages_turn(struct any_peer *p);

/* anything_rules.c */
void any_rules_init(struct host *h);
void any_rules_free(struct host *h);
void any_rules_connect(struct any_peer *p, struct event *e);
void any_rules_asking(struct any_peer *p, const struct slice *words, size_t count);
void any_rules_reply(struct any_peer *p, struct slice reply);
/* An observer is told of that election's leader. */
void any_rules_told(struct any_peer *p, int name, struct slice data);
void any_rules_logged(struct host *h, struct slice text);
