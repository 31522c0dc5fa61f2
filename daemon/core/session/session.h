/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's ZooKeeper session and its proof.
 *
 *   state     | means                                          | left by
 *   NONE      | nothing proven yet (no session, or a new one)  | proof -> SAFE
 *   SAFE      | connected, or moving to another process, and   | disconnected or nearer -> JEOPARDY
 *             | safe_until at least T/3 away                   |
 *   JEOPARDY  | otherwise, while now < safe_until              | proof -> SAFE; now >= safe_until, expired -> LOST
 *   LOST      | every grant is void                            | proof of the same session -> SAFE; new one -> NONE
 *
 * proof.h has the rule of the proof. A heartbeat is written every T/8 when nothing else is. A silent server is dropped
 * after T/6, so that another one can prove the session. It is silent if it answers none of the open operations
 * (operation_silent_since); an answer that takes long is no silence.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "core/port/effect.h"
#include "core/port/event.h"
#include "core/session/operation.h"
#include "core/session/proof.h"
#include "protocol/bytes.h"
#include "protocol/session_page.h"

enum session_change {
	SESSION_CHANGED = 1, /* `state` is another one */
	SESSION_GRANTS = 2,  /* proven for long enough to grant, as it was not before */
	SESSION_DROPPED = 4, /* the server is silent: its connection is being dropped */
	SESSION_OVER = 8,    /* no server could be reached for so long that it must have expired */
};

struct session {
	enum session_state state;
	bool connected;
	bool moving;     /* not connected since a hand-over, which ended the connection in order to make another one */
	bool proving;    /* a write of this connection was answered: its lists can be believed */
	bool announced;  /* the host's own znode is ours */
	bool had_one;    /* this is not the first */
	bool was_announced; /* ever, under whichever session */
	bool fruitless;  /* the last connection ended without a proof: that was logged once */
	bool opening;    /* in this event another one was asked for */
	int64_t id;      /* 0: none */
	uint64_t epoch;  /* counts the losses: grants of an earlier one are void */
	int64_t timeout_ns; /* T, negotiated */
	struct proof proof;
	int64_t write_ns;   /* the last write sent that may still prove something, or did */
	int64_t announced_ns; /* the last heartbeat sent: others can see that we live */
	int64_t proved_ns;  /* when the last one was answered that did */
	int64_t beat_ns;    /* the last one that did, or a heartbeat */
	int64_t contact_ns; /* last connected, or since when a new session is asked for */
	int short_lives;    /* connections in a row that ended as soon as they were made */
	int64_t shared_ns;  /* when that is to be said (again) */
	int64_t silent_ns;  /* since when there was no connection */
	int64_t complain_ns; /* when that is to be said (again) */
	struct bytes server;
	struct timer timer;
};

/* All of the ensemble. */
void session_init(struct ensemble *zk);
void session_deinit(struct ensemble *zk);
const char *session_state_word(enum session_state state);
/*
 * The consequences of a change for locks, clients and messages are not this floor's: these functions return the changes, a
 * set of enum session_change.
 */
void session_open(struct ensemble *zk); /* asks for a new session; the old one, if there is one, becomes a former */
/* There is a connection, perhaps of another session. Behind it session_review(). */
void session_connected(struct ensemble *zk, const struct event *event);
/*
 * The connection ends: the level at which to log it. Then session_disconnect(); once all know, session_suspended().
 * `planned`: a hand-over ends it. That is no jeopardy until the proof is as old as one that is.
 */
enum effect_level session_ending(struct ensemble *zk, bool planned);
void session_disconnect(struct ensemble *zk);
unsigned int session_suspended(struct ensemble *zk, enum effect_level level);
unsigned int session_review(struct ensemble *zk); /* the state as it is by now */
unsigned int session_lose(struct ensemble *zk); /* whatever was proven, nothing is any longer */
bool session_expired(struct ensemble *zk); /* false: there is none */
unsigned int session_proved(struct ensemble *zk, const struct operation *op); /* a write was answered now */
/* A write was answered without having gone through the leader: it was no heartbeat. */
void session_refused(struct ensemble *zk, const struct operation *op);
/* Applies changes that time alone makes: standstill, JEOPARDY, LOST. Before anything else of an event. */
unsigned int session_pass(struct ensemble *zk, int64_t before_ns);
/* Heartbeat, silent server, giving up a dead handle. When session.timer is due. */
unsigned int session_tick(struct ensemble *zk);
/* INT64_MAX in standalone mode; INT64_MIN when nothing is proven. */
int64_t session_safe_until(const struct ensemble *zk);
void session_view(const struct ensemble *zk, struct session_view *ret);
bool session_grants(const struct ensemble *zk); /* proven for long enough to grant? */
/* There is a connection; or one is made after a hand-over, and questions wait for it. */
bool session_reaches(const struct ensemble *zk);
