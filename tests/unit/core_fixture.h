/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives a broker by hand: events in, effects out, one virtual clock. Replies are kept per connection and compared
 * as text; operations sent to ZooKeeper are kept in order, to be looked at and answered one by one.
 */
#pragma once

#include "tests/unit/unit.h"

#include "base/account.h"
#include "core/broker.h"
#include "core/port/ledger.h"

enum { FIXTURE_CONNS = 1152, FIXTURE_OPS = 512, FIXTURE_CHILDREN = 300, FIXTURE_MEMORY_BYTES = 64 * LEDGER_CHUNK_BYTES };

struct fixture_op {
	struct effect effect;
	char path[256], data[1024];
};

#define DENIED_HOW ": use the operators' socket /run/operator.sock (lockbroker does so by itself for root)"

struct fixture {
	struct broker_conf conf;
	struct broker *broker;
	struct effects effects;
	int64_t now_ns;
	struct bytes replies[FIXTURE_CONNS], pushes[FIXTURE_CONNS];
	bool lazy[FIXTURE_CONNS]; /* the latest reply */
	bool report[FIXTURE_CONNS]; /* the latest push */
	int closed[FIXTURE_CONNS];
	struct fixture_op ops[FIXTURE_OPS]; /* sent, not answered: [first_op, end_op) */
	size_t first_op, end_op;
	int restarts; /* asked for */
	int reloads;
	uint32_t page_asked; /* the latest connection that wants a page, and 1; 0: none yet */
	bool page_sent[FIXTURE_CONNS]; /* with a reply */
	int opens, drops, stopped; /* stopped: 1 holding something, 2 holding nothing */
	struct bytes log;
	bool refused;
	bool plain; /* its clients are no operators */
	bool holds[FIXTURE_CONNS]; /* as told by EFFECT_HOLDER */
	bool bearers;              /* the same, of those without a connection */
	int64_t ended[FIXTURE_CONNS]; /* formers, in order */
	size_t ended_count;
	struct effect lifelines[FIXTURE_CONNS]; /* EFFECT_LIFELINE, in order */
	size_t lifeline_count, lifelines_over;
	int64_t added; /* the former given up last */
	int64_t tokens;
	int64_t handshake_ns; /* how long it takes */
	bool mail;            /* the lists of the mailbox are kept, to be answered; else it is empty at once */
	uint64_t mail_op;
	struct ledger *ledger; /* that the broker keeps */
	void *memory;
	size_t events;
	char words[640];
	char znode[128]; /* its name, for a test that has one of its own */
};

#define MS INT64_C(1000000)

/* Sessions: of the fixture's host, alpha, and of another one. */
#define SESSION INT64_C(0x1000abcdef012345)
#define BETA INT64_C(0x2000abcdef012345)

/* What stands in a directory of locks. */
#define LOCK_DATA "1\nkind=lock\nflavour=rw\n"

/* The total of a pool of which so much is not reserved. */
static inline size_t fixture_total(size_t open)
{
	size_t total = open;

	while (total - total / ACCOUNT_RESERVE_PART < open)
		total++;
	return total;
}

/* A ZooKeeper fixture: T = 12 s, tick 2 s, linger off, handoff_max 64. */
struct fixture *fixture_new(bool standalone);
/*
 * For cmocka: starts it, with that many connections, in a session whose start is answered unless standalone, and makes
 * it the state of the test. Returns 0, and so does the other one, which frees that state.
 */
int fixture_setup(struct fixture *f, uint32_t conns, void **state);
int fixture_teardown(void **state);
/* In a program's list of tests, by how each is set up. */
#define TEST_IN(name, setup) TEST_WITH(name, setup, fixture_teardown)
#undef TEST
#define TEST(name) TEST_IN(name, setup)
#define ALONE(name) TEST_IN(name, setup_standalone)
void fixture_start(struct fixture *f);
/* The broker keeps another ledger from now on. */
void fixture_record(struct fixture *f);
void fixture_free(struct fixture *f);
/* The next process goes on with its state, which it can write down again as it was. */
void fixture_hand_over(struct fixture *f);
void fixture_event(struct fixture *f, const struct event *event);
/* Time passes in steps of the broker's own deadlines. */
void fixture_pass(struct fixture *f, int64_t ms);
/* A piece of the work that is left, which there has to be; all of it, however much. */
void fixture_piece(struct fixture *f);
void fixture_pieces(struct fixture *f);
/* Whether clients are operators, those that there are and those that connect; at first they are. */
void fixture_operators(struct fixture *f, bool are);
/* Another client, of that systemd unit, who came through the operators' socket or not. */
void fixture_connect_as(struct fixture *f, uint32_t conn, uint32_t uid, struct slice unit, bool privileged);
void fixture_is_from(struct fixture *f, uint32_t conn, const char *unit, bool privileged);
void fixture_connect(struct fixture *f, uint32_t conn);
/* From now on it speaks RESP3. */
void fixture_resp3(struct fixture *f, uint32_t conn);
/* Words are split at spaces. */
void fixture_ask(struct fixture *f, uint32_t conn, const char *words);
void fixture_simple(struct fixture *f, enum event_type type, uint32_t conn);
/* What conn got since the last call, replies and pushes; CR LF shown as a space. */
void fixture_expect(struct fixture *f, uint32_t conn, const char *reply);
void fixture_expect_push(struct fixture *f, uint32_t conn, const char *push);
/* Asks and expects at once. */
void fixture_say(struct fixture *f, uint32_t conn, const char *words, const char *reply);
/* Whether conn got that since the last call; it stays. */
bool fixture_has(const struct fixture *f, uint32_t conn, const char *part);

/* Whether the log has had that text since the last call. */
bool fixture_logged(struct fixture *f, const char *text);

/* ZooKeeper's side. */
void fixture_zk_connected(struct fixture *f, int64_t session);
/* Connected again: only the heartbeat is answered, what recovery asks stays open. */
void fixture_reconnected(struct fixture *f);
/* The same, and before that the connection is lost. */
void fixture_reconnect(struct fixture *f);
/* An operation is open; the oldest of them, which there must be. */
bool fixture_is_open(const struct fixture *f);
const struct fixture_op *fixture_oldest(const struct fixture *f);
/* The same; fails the test when its type or the end of its path differ. */
const struct fixture_op *fixture_op(struct fixture *f, enum effect_type type, const char *path_end);
void fixture_no_op(struct fixture *f);
void fixture_answer(struct fixture *f, enum zk_code code);
/* Answers OK to the heartbeats that are the oldest. */
void fixture_answer_beats(struct fixture *f);
/* ... to one, which is the oldest, as a transaction with that number. */
void fixture_answer_beat(struct fixture *f, int64_t zxid);
/* Answers the oldest, a create: made with this number at the end and this czxid. */
void fixture_answer_made(struct fixture *f, uint32_t seq, int64_t czxid, char *name, size_t size);
void fixture_answer_get(struct fixture *f, int64_t czxid, int64_t owner, const char *data);
/* ... which a waiting claim sent to know of its own znode: refused, so that the list goes on to decide. */
void fixture_refuse_own(struct fixture *f);
/* Answers the oldest operation, which has to be a write without effect (presence_write()). */
void fixture_answer_write(struct fixture *f, enum zk_code code);
/* ... of the host's own znode, as another session last wrote it. */
void fixture_answer_duplicate(struct fixture *f, int64_t owner, int64_t mzxid, const char *data);
void fixture_answer_list(struct fixture *f, int64_t czxid, size_t count, const char *const *children);
/* So many names that begin so and end with their numbers, of so many digits; valid until the next call. */
const char *const *fixture_numbered(const char *begin, int digits, int count);
void fixture_watch(struct fixture *f, enum zk_watch type, const char *path);
/* ... of the contender of that name for lock a. */
void fixture_watch_contender(struct fixture *f, enum zk_watch type, const char *name);
/* Answers writes with OK and everything of the session's start, until nothing is open. */
void fixture_answer_session(struct fixture *f);
/* LOCK a, up to its create, which stays open. The create is for f->znode, which gets the number 5. */
void fixture_ask_to_create(struct fixture *f, uint32_t conn);
/* LOCK of a name that is new to the broker, up to its znode, f->znode, which has number 5 and czxid 77. */
void fixture_join(struct fixture *f, uint32_t conn, const char *words);
/* LOCK up to HELD: dir get, create, list. Returns the znode's name. */
void fixture_lock_held(struct fixture *f, uint32_t conn, const char *lock, uint32_t seq, int64_t czxid, char *name,
		       size_t size);
/* Lock a is held by 0, on number 5; nothing is open. */
void fixture_held(struct fixture *f, char name[128]);

/* Checks the oldest operation as fixture_op() does, and answers it: with that code, or as fixture_answer_get() and so on. */
void fixture_serve(struct fixture *f, enum effect_type type, const char *path_end, enum zk_code code);
void fixture_serve_get(struct fixture *f, const char *path_end, int64_t czxid, int64_t owner, const char *data);
void fixture_serve_list(struct fixture *f, const char *path_end, size_t count, const char *const *children);
void fixture_serve_made(struct fixture *f, const char *path_end, uint32_t seq, int64_t czxid, char name[128]);
/* A create, and the list of its directory behind it: nothing else is there. */
void fixture_serve_alone(struct fixture *f, const char *path_end, uint32_t seq, int64_t czxid, char name[128]);

/* What conn got since the last call begins with that, or has it somewhere; as fixture_say(). */
void fixture_expect_begin(struct fixture *f, uint32_t conn, const char *begin);
void fixture_expect_part(struct fixture *f, uint32_t conn, const char *part);
void fixture_say_begin(struct fixture *f, uint32_t conn, const char *words, const char *begin);
void fixture_say_part(struct fixture *f, uint32_t conn, const char *words, const char *part);
/* A client of that process; one without a start could not be looked at. */
void fixture_connect_process(struct fixture *f, uint32_t conn, uint32_t uid, uint32_t pid, uint64_t started);
/* 0 and 1 are of one process, 2 of a later process with the same number, 3 of another user, 4 is not known. */
void fixture_connect_processes(struct fixture *f);
/* The next process goes on from that snapshot. */
void fixture_restore(struct fixture *f, struct slice text);
/* A hand-over that was planned: the next process has the state, and no connection yet. */
void fixture_next_process(struct fixture *f);
/* SET by connection 0 up to OK, on number 5: f->znode; nothing is open. */
void fixture_set_held(struct fixture *f, const char *words);
/* Words with numbers or names in them, until the next call. */
__attribute__((format(printf, 2, 3))) const char *fixture_words(struct fixture *f, const char *format, ...);
