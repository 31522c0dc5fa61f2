/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects are the actions that the broker asks for, in order. The caller owns the struct, carries the effects out after
 * each broker_handle() (or after several) and clears it. Bytes lie in one arena and are named by offset, because the arena
 * moves while it grows.
 *
 * The sentence and the fields of a line for the log are written as bytes_format() takes them; text of somebody else's
 * stands in a sentence as %q or %n, and in fields as %v.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log_event.h"
#include "protocol/bytes.h"
#include "protocol/bytes_format.h"

enum effect_level { EFFECT_LEVEL_ERROR, EFFECT_LEVEL_WARNING, EFFECT_LEVEL_INFO, EFFECT_LEVEL_DEBUG };

/* The event of a line of the log, and its cause. */
struct effect_log {
	uint8_t event; /* enum log_event */
	bool caused;   /* by somebody: the last `unit_len` bytes of `data` are the unit, and no fields */
	uint16_t unit_len;
	uint32_t uid;
};

enum effect_type {
	EFFECT_REPLY,     /* the one answer to the request that `conn` asked */
	EFFECT_PUSH,      /* to `conn`, never an answer: an event (RESP3), or why it is refused before its first request */
	EFFECT_CLOSE,     /* write all output that is queued for `conn`, then close it and say EVENT_CLIENT_GONE */
	EFFECT_ZK_OPEN,   /* a new session: forget the old handle (never waits), then connect with no session id */
	EFFECT_ZK_DROP,   /* drop the connection, keep the session, try the next server */
	EFFECT_ZK_CREATE,
	EFFECT_ZK_LIST,   /* get_children2 */
	EFFECT_ZK_GET,
	EFFECT_ZK_DELETE, /* any version */
	EFFECT_ZK_SET,    /* any version, or `exact`: the given version, else ZK_BADVERSION */
	EFFECT_TOKENS,    /* standalone: reserve claim numbers below `limit` durably, then say EVENT_TOKENS */
	EFFECT_HOLDER,    /* not standalone: from now on `conn` has a valid grant (`holds`) or none; its reply follows */
	EFFECT_PROCESS,   /* `conn` named its process `pid` (0: none): say EVENT_CLIENT_PROCESS, and again at changes */
	/*
	 * Watch the process `pid` that started then, of the user and the unit (`text`), as `lifeline.number`: say
	 * EVENT_LIFELINE. `holds`: something is tied to it, so that it must not be refused.
	 */
	EFFECT_LIFELINE,
	EFFECT_LIFELINE_OVER, /* watch `lifeline.number` no longer, whatever is known of it */
	EFFECT_PAGE,       /* make a page of delegations for `conn`, which has none, then say EVENT_CLIENT_PAGE */
	EFFECT_FORMER_ADD, /* `session`, the present one, is given up and will be ended: a successor must still know it */
	EFFECT_FORMER_END, /* end `session`, which was left or given up, then say EVENT_FORMER_OVER */
	EFFECT_RESTART,    /* hand over to a new process, or say EVENT_RESTART_OVER with the reason why not */
	EFFECT_RELOAD,     /* read the configuration again, from its beginning, then say EVENT_CONF */
	EFFECT_LOG,        /* `text` is a sentence for the log, at `level`, `data` its fields; about `log` */
	EFFECT_HOLD,       /* a hold or a wait, for the log; about `log`, `data` is a struct hold_record (base/hold_record.h) */
	EFFECT_STOPPED,    /* the broker has stopped; `close_session`: nothing is held, the session may end at once */
};

#define EFFECT_NO_CONN UINT32_MAX /* HOLDER: somebody without a connection */

enum zk_create { ZK_PERSISTENT, ZK_CONTAINER, ZK_EPHEMERAL, ZK_EPHEMERAL_SEQUENTIAL };

struct span {
	size_t at, len;
};

/* In an order without gaps, and small: each effect is cleared when it is added. */
struct effect {
	enum effect_type type : 8;
	enum zk_create create : 8; /* ZK_CREATE */
	enum effect_level level : 8; /* LOG */
	bool exact : 1;     /* ZK_SET: only if it is of `version` */
	bool more : 1;      /* ZK_*: another one of these effects follows; they may go out together */
	bool watch : 1;     /* ZK_LIST: children watch; ZK_GET: data watch (also reports DELETED) */
	bool close_session : 1; /* STOPPED */
	bool refused : 1;   /* STOPPED: nobody asked for it, and a restart would not help */
	bool holds : 1;     /* HOLDER, LIFELINE */
	bool privileged : 1; /* LIFELINE: an operator asks for it */
	bool report : 1;    /* PUSH: say EVENT_CLIENT_WRITTEN once it is written */
	bool page : 1;      /* REPLY: the descriptor of the page goes with its first byte */
	bool lazy : 1;      /* REPLY: it may wait until more is written to `conn` */
	uint32_t conn;      /* REPLY, PUSH, CLOSE, HOLDER, PROCESS, PAGE */
	union { uint32_t pid; int32_t version; }; /* PROCESS, LIFELINE; ZK_SET */
	union {
		uint64_t op;           /* ZK_*: comes back in the answer */
		int64_t limit;         /* TOKENS */
		int64_t session;       /* FORMER_* */
		struct effect_log log; /* LOG, HOLD */
		struct { uint64_t number, started; uint32_t uid; } lifeline; /* LIFELINE, _OVER */
	};
	struct span text; /* REPLY, PUSH, LOG: the bytes; ZK_*: the path; LIFELINE: the unit */
	struct span data; /* ZK_CREATE, ZK_SET: the data; LOG: the fields */
};

struct effects {
	struct effect *list;
	size_t count, cap;
	struct bytes arena;
	size_t taken; /* bytes of it that have become a span */
};

static inline struct slice effects_slice(const struct effects *e, struct span s)
{
	return (struct slice){ s.len ? e->arena.data + s.at : NULL, s.len };
}

struct effect *effects_add(struct effects *e, enum effect_type type); /* valid until the next one is added */
struct span effects_take(struct effects *e); /* the bytes written to e->arena since the last call */
enum { EFFECT_LONG_BYTES = 16384 };          /* so much is worth not being copied: */
/* The text of the last effect becomes the caller's, in `ret` from text.at on. False: it is not most of the arena. */
bool effects_give(struct effects *e, const struct effect *last, struct bytes *ret);
/* Forgets the effects and keeps the memory. */
void effects_clear(struct effects *e);
void effects_free(struct effects *e);

/* ---- lines for the log: a sentence for people, and fields for tools (base/log.h has their form) ---- */

/* The fields of a line for the log: as bytes_format() takes them, "key=%v other=%d". */
#define EFFECT_FIELDS(format, ...) (format), BYTES_ARGUMENTS(__VA_ARGS__)
#define EFFECT_NO_FIELDS "", NULL, 0
/* A line for the log whose sentence are the bytes that effects_take() would take. */
struct effect *effects_log(struct effects *e, enum effect_level level, enum log_event event, const char *fields,
			   const struct bytes_value *values, size_t count);
/* A line for the log: its event, EFFECT_FIELDS() or EFFECT_NO_FIELDS, and a sentence (bytes_format.h). */
#define effects_say(e, level, event, fields, format, ...) \
	effects_say_values(e, level, LOG_EVENT_##event, fields, format, BYTES_ARGUMENTS(__VA_ARGS__))
struct effect *effects_say_values(struct effects *e, enum effect_level level, enum log_event event, const char *fields,
				  const struct bytes_value *field_values, size_t field_count, const char *format,
				  const struct bytes_value *values, size_t count);
/* The user and unit that have caused that line, the last effect. */
void effects_caused(struct effects *e, struct effect *line, uint32_t uid, struct slice unit);
