/*
 * The host's ZooKeeper session and what is proven about it.
 *
 *   t_k        = send time of the latest write answered within T/6 (taken before the call)
 *   safe_until = t_k + 2/3 T
 *
 *   state     | means                                        | left by
 *   NONE      | nothing proven yet (no session, or a new one) | first proof -> SAFE
 *   SAFE      | connected and now - t_k <= T/3                | disconnected or older -> JEOPARDY
 *   JEOPARDY  | otherwise, while now < safe_until              | proof -> SAFE; now >= safe_until, expired -> LOST
 *   LOST      | every grant is void                           | a proof of the same session -> SAFE; new session -> NONE
 *
 * Why 2/3 T is enough. The ensemble expires a session no earlier than T after the last touch its leader saw;
 * touches are relayed up to half a tick late, and T >= 5 ticks. An answered write went through the leader after
 * t_k, but does not touch the session there by itself; that the writes before and after it were answered within
 * T/6, and came at most T/6 apart, bounds how old the leader's last touch can be. So the heartbeat goes on while
 * idle, a late answer proves nothing, a silent server is dropped, and after a standstill (or a handshake that took
 * longer than T/6) nothing is believed until a write sent one tick later was answered.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "core/event.h"
#include "protocol/bytes.h"

struct broker;

enum session_state { SESSION_NONE, SESSION_SAFE, SESSION_JEOPARDY, SESSION_LOST };

struct session {
	enum session_state state;
	bool connected;
	bool proving;    /* a write of this connection was answered: what it lists can be believed */
	bool announced;  /* the host's own znode is ours */
	bool rival_told; /* somebody else's was reported */
	bool stalled;    /* the loop stood still; nothing is granted until a later write is answered */
	int64_t id;      /* 0: none */
	int64_t timeout_ns; /* T, negotiated */
	int64_t proven_ns;  /* t_k; INT64_MIN: none */
	int64_t write_ns;   /* the last write sent */
	int64_t stalled_until_ns; /* a write sent before proves nothing */
	int64_t contact_ns; /* last connected, or since when a new session is asked for */
	struct bytes server;
	struct timer timer;
};

void session_init(struct broker *b);
void session_deinit(struct broker *b);
const char *session_state_word(enum session_state state);
/* Asks for a new session; forgets the old one and all its claims. */
void session_open(struct broker *b);
void session_connected(struct broker *b, const struct event *event);
void session_suspended(struct broker *b);
void session_expired(struct broker *b);
/* A write sent at `sent_ns` was answered now. */
void session_proved(struct broker *b, int64_t sent_ns);
/* The answer of PATH, BEAT and RIVAL operations. */
void session_answered(struct broker *b, int kind, const struct event *event);
/* Applies what time alone changes: standstill, JEOPARDY, LOST. Before anything else of an event. */
void session_pass(struct broker *b, int64_t before_ns);
/* Heartbeat, silent server, giving up a dead handle. When session.timer is due. */
void session_tick(struct broker *b);
/* INT64_MAX in standalone mode; INT64_MIN when nothing is proven. */
int64_t session_safe_until(const struct broker *b);
/* Proven for long enough to grant? */
bool session_grants(const struct broker *b);
/* Creates of all parents: when a session begins, and when a parent turned out to be missing. */
void session_make_parents(struct broker *b);
