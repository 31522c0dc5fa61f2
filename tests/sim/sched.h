/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time. A task is a function to be called at an instant; tasks of one instant run in the order in which they
 * were added. A pipe is one direction of a connection: messages come out in the order they went in, none before its
 * delay; it can be held (a stall), given a budget of messages (a trickle) and gated by a stopped process. One of a
 * given bandwidth hands over a message when all that went in before and its own bytes have passed. Messages are
 * recycled with the memory of their text, so that a run allocates next to nothing per step.
 */
#pragma once

#include "core/port/event.h"
#include "core/port/effect.h"
#include "protocol/bytes.h"

#define MS ((int64_t)1000000)
#define SECOND (1000 * MS)

struct message {
	struct message *next;
	int64_t due;
	int kind;
	enum effect_type request;
	enum zk_create create;
	enum zk_code code;
	bool watch, answered, exact;
	int32_t version;
	uint64_t op;
	int64_t zxid;
	void *subject; /* what it is about: a connection, a session */
	struct zk_stat stat;
	size_t path_len, data_len, count;
	struct bytes text; /* path, then data; children and touched sessions stand in the data */
};

struct task {
	int64_t at;
	uint64_t order;
	void (*run)(void *object, uint64_t argument);
	void *object;
	uint64_t argument;
};

struct sched {
	int64_t now;
	struct task *heap;
	size_t count, cap;
	uint64_t order;
	uint64_t steps; /* events handed to a broker and actions of the fake ZooKeeper */
	struct message *spare;
};

struct pipe {
	struct sched *sched;
	struct message *head, **tail;
	int64_t last;
	int64_t bytes_s; /* its bandwidth; 0: without bound */
	int64_t passed;  /* when the last byte that went in will have */
	int64_t bytes;   /* that went in, ever */
	int budget;      /* messages that may still come out; -1: any number, 0: held */
	bool armed;
	const int64_t *gate;                             /* nothing comes out before that instant; NULL: no gate */
	void (*deliver)(void *owner, struct message *m); /* owns m from then on */
	void *owner;
};

void sched_init(struct sched *s);
void sched_deinit(struct sched *s);
void sched_at(struct sched *s, int64_t at, void (*run)(void *, uint64_t), void *object, uint64_t argument);
/* Runs the next task if it is due until `until`, and advances the time to it. False: nothing is due. */
bool sched_step(struct sched *s, int64_t until);

struct message *message_new(struct sched *s, int kind);
void message_free(struct sched *s, struct message *m);
void message_text(struct message *m, struct slice path, struct slice data);
static inline struct slice message_path(const struct message *m)
{
	return (struct slice){ m->text.data, m->path_len };
}
static inline struct slice message_data(const struct message *m)
{
	return (struct slice){ m->path_len ? m->text.data + m->path_len : m->text.data, m->data_len };
}

void pipe_init(struct pipe *p, struct sched *s, void (*deliver)(void *, struct message *), void *owner);
void pipe_push(struct pipe *p, struct message *m, int64_t delay);
void pipe_hold(struct pipe *p);
void pipe_release(struct pipe *p);
/* Lets `messages` more come out, then holds again. */
void pipe_trickle(struct pipe *p, int messages);
void pipe_clear(struct pipe *p);
/* The next message, before its time; NULL: none. */
struct message *pipe_take(struct pipe *p);
/* Only the next `messages` stay. */
void pipe_cut(struct pipe *p, int messages);
int pipe_length(const struct pipe *p);
