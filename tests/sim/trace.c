/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder of a replay: it keeps the newest lines in memory, or prints all of them. */
#include "world.h"
#include "base/hold_record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TRACE_LINES = 4096, TRACE_WIDTH = 200, TRACE_SHOWN = 40 };

struct trace {
	struct {
		int lock;
		char text[TRACE_WIDTH];
	} line[TRACE_LINES];
	uint64_t count;
};

struct trace *trace_new(void)
{
	return calloc(1, sizeof(struct trace));
}

void trace_line(struct world *w, int lock, const char *format, ...)
{
	struct trace *t = w->trace;
	char *text = t->line[t->count % TRACE_LINES].text;
	int len = snprintf(text, TRACE_WIDTH, "%11.3f ms  ", (double)w->sched.now / 1e6);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, (size_t)(TRACE_WIDTH - len), format, args);
	va_end(args);
	t->line[t->count % TRACE_LINES].lock = lock;
	t->count++;
	for (; *text; text++)
		if (*text == '\r' || *text == '\n')
			*text = ' ';
	if (w->trace_all)
		puts(t->line[(t->count - 1) % TRACE_LINES].text);
}

void trace_print(struct world *w, int lock)
{
	struct trace *t = w->trace;
	uint64_t at = t->count, first = t->count > TRACE_LINES ? t->count - TRACE_LINES : 0;
	int shown = 0;

	while (at > first && shown < TRACE_SHOWN) {
		int about = t->line[--at % TRACE_LINES].lock;

		shown += about == lock || about < 0 || lock < 0;
	}
	for (; at < t->count; at++) {
		int about = t->line[at % TRACE_LINES].lock;
		const char *text = t->line[at % TRACE_LINES].text;

		/* Also called after a crash: nothing but write(). */
		if (about == lock || about < 0 || lock < 0)
			if (write(STDOUT_FILENO, text, strlen(text)) < 0 || write(STDOUT_FILENO, "\n", 1) < 0)
				return;
	}
}

static int lock_in(const struct world *w, struct slice path)
{
	size_t len = path.len;
	int lock = world_lock_of(w, path.data, len);

	while (lock < 0 && len) {
		len--;
		if (path.data[len] == '/')
			lock = world_lock_of(w, path.data, len);
	}
	return lock;
}

static void trace_asked(struct host *h, const struct event *e)
{
	char text[120] = "";
	size_t i, len = 0;
	int lock = -1;

	for (i = 0; i < e->asked.argc && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %.*s", (int)e->asked.argv[i].len,
					e->asked.argv[i].data);
	for (i = 0; e->asked.argc > 1 && i < (size_t)h->w->lock_count; i++)
		if (slice_eq(e->asked.argv[1], slice_of(h->w->lock_name[i])))
			lock = (int)i;
	trace_line(h->w, lock, "host %d <- client %u:%s", h->index, e->conn, text);
}

static void trace_answered(struct host *h, const struct event *e)
{
	static const char *const codes[] = { "OK", "NONODE", "NODEEXISTS", "NOTEMPTY", "BADVERSION", "REFUSED", "BUSY",
					     "UNKNOWN" };
	char text[400] = "";
	size_t i, len = 0;

	for (i = 0; i < e->zk_answered.count && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " ..%.*s",
					(int)(e->zk_answered.children[i].len > 34 ? e->zk_answered.children[i].len - 34 : 3),
					e->zk_answered.children[i].data +
					(e->zk_answered.children[i].len > 34 ? 34 : 0));
	trace_line(h->w, lock_in(h->w, e->zk_answered.path), "host %d <- zk: op %" PRIu64 " %s %.*s%s", h->index,
		   e->zk_answered.op, codes[e->zk_answered.code], (int)e->zk_answered.path.len, e->zk_answered.path.data, text);
}

static const char *const watches[] = { "CREATED", "DELETED", "CHANGED", "CHILDREN" };

void trace_event(struct host *h, const struct event *e)
{
	switch (e->type) {
	case EVENT_CLIENT_PROCESS:
	case EVENT_CLIENT_PAGE:
	case EVENT_CLIENT_GROUPS:
	case EVENT_LIFELINE: case EVENT_ZK_LACKS: /* it was told, what changes is */
		break;
	case EVENT_TIME:
		trace_line(h->w, LOCKS_MAX, "host %d <- time", h->index);
		break;
	case EVENT_CLIENT_CONNECTED:
		trace_line(h->w, LOCKS_MAX, "host %d <- client %u connects", h->index, e->conn);
		break;
	case EVENT_CLIENT_ASKED:
		trace_asked(h, e);
		break;
	case EVENT_CLIENT_HALF_CLOSED:
		trace_line(h->w, -1, "host %d <- client %u half-closes", h->index, e->conn);
		break;
	case EVENT_CLIENT_WRITTEN:
		trace_line(h->w, -1, "host %d <- client %u was written to", h->index, e->conn);
		break;
	case EVENT_CLIENT_LEAVES:
		trace_line(h->w, -1, "host %d <- client %u leaves", h->index, e->conn);
		break;
	case EVENT_CLIENT_GONE:
		trace_line(h->w, -1, "host %d <- client %u gone", h->index, e->conn);
		break;
	case EVENT_ZK_CONNECTED:
		trace_line(h->w, -1, "host %d <- zk: connected, session %" PRIx64 ", server %d", h->index,
			   (uint64_t)e->zk_connected.session, h->zk->conn ? h->zk->conn->server->index : -1);
		break;
	case EVENT_ZK_SUSPENDED:
		trace_line(h->w, -1, "host %d <- zk: suspended", h->index);
		break;
	case EVENT_ZK_EXPIRED:
		trace_line(h->w, -1, "host %d <- zk: expired", h->index);
		break;
	case EVENT_ZK_ANSWERED:
		trace_answered(h, e);
		break;
	case EVENT_ZK_WATCH:
		trace_line(h->w, lock_in(h->w, e->zk_watch.path), "host %d <- zk: %s %.*s", h->index, watches[e->zk_watch.type],
			   (int)e->zk_watch.path.len, e->zk_watch.path.data);
		break;
	case EVENT_ZK_TROUBLE:
		trace_line(h->w, -1, "host %d <- zk: trouble: %.*s", h->index, (int)e->zk_trouble.sentence.len,
			   e->zk_trouble.sentence.data);
		break;
	case EVENT_ZK_PACKET:
		trace_line(h->w, -1, "host %d <- zk: packets of %" PRId64, h->index, e->zk_packet.bytes);
		break;
	case EVENT_TOKENS:
		trace_line(h->w, -1, "host %d <- tokens below %" PRId64, h->index, e->tokens.limit);
		break;
	case EVENT_FORMER_FREE:
	case EVENT_FORMER_OVER:
		trace_line(h->w, -1, "host %d <- leftover %" PRIx64 " %s", h->index, (uint64_t)e->former.session,
			   e->type == EVENT_FORMER_FREE ? "has no holder any more" : "is over");
		break;
	case EVENT_CONF:
		trace_line(h->w, -1, "host %d <- another configuration", h->index);
		break;
	case EVENT_RESTART_OVER:
		trace_line(h->w, -1, "host %d <- restart over", h->index);
		break;
	case EVENT_STOP:
		trace_line(h->w, -1, "host %d <- stop", h->index);
		break;
	}
}

static void trace_hold(struct host *h, const struct effect *e)
{
	static const char *const events[] = {
#define X(name, burst, every_ms) #name,
		LOG_EVENTS(X)
#undef X
	};
	struct hold_record hold = hold_record_read(effects_slice(&h->effects, e->data));

	trace_line(h->w, -1, "host %d -> hold: %s %.*s, client %" PRIu64 ", token %" PRId64 "%s%s", h->index,
		   events[e->log.event], (int)hold.name.len, hold.name.data, hold.client, hold.token, hold.why ? ", " : "",
		   hold.why ? hold.why : "");
}

void trace_effect(struct host *h, const struct effect *e)
{
	static const char *const words[] = {
		[EFFECT_REPLY] = "reply",	[EFFECT_PUSH] = "push",		[EFFECT_CLOSE] = "close",
		[EFFECT_ZK_OPEN] = "OPEN",	[EFFECT_ZK_DROP] = "DROP",	[EFFECT_ZK_CREATE] = "CREATE",
		[EFFECT_ZK_LIST] = "LIST",	[EFFECT_ZK_GET] = "GET",	[EFFECT_ZK_DELETE] = "DELETE",
		[EFFECT_ZK_SET] = "SET",	[EFFECT_TOKENS] = "TOKENS",	[EFFECT_RESTART] = "RESTART",
		[EFFECT_RELOAD] = "RELOAD",	[EFFECT_PAGE] = "PAGE",
		[EFFECT_LOG] = "log",		[EFFECT_STOPPED] = "STOPPED",
		[EFFECT_HOLD] = "hold",
	};
	struct slice text = effects_slice(&h->effects, e->text), data;
	int lock = -1;

	switch (e->type) {
	case EFFECT_REPLY:
	case EFFECT_PUSH:
	case EFFECT_CLOSE:
		if (e->conn < (uint32_t)h->client_count && h->clients[e->conn].asking)
			lock = h->clients[e->conn].current.lock;
		trace_line(h->w, lock, "host %d -> client %u: %s %.*s", h->index, e->conn, words[e->type], (int)text.len,
			   text.data);
		break;
	case EFFECT_PROCESS:
		break;
	case EFFECT_LIFELINE:
		trace_line(h->w, -1, "host %d -> process %u of %" PRIu64 ": watch it as %" PRIu64, h->index, e->pid,
			   e->lifeline.started, e->lifeline.number);
		break;
	case EFFECT_LIFELINE_OVER:
		trace_line(h->w, -1, "host %d -> process %" PRIu64 ": watch it no longer", h->index, e->lifeline.number);
		break;
	case EFFECT_HOLDER:
		trace_line(h->w, -1, "host %d -> client %u %s", h->index, e->conn,
			   e->holds ? "holds something" : "holds nothing");
		break;
	case EFFECT_FORMER_ADD:
		trace_line(h->w, -1, "host %d -> leftover %" PRIx64 ": ADD", h->index, (uint64_t)e->session);
		break;
	case EFFECT_FORMER_END:
		trace_line(h->w, -1, "host %d -> leftover %" PRIx64 ": END", h->index, (uint64_t)e->session);
		break;
	case EFFECT_ZK_OPEN:
	case EFFECT_ZK_DROP:
	case EFFECT_TOKENS:
	case EFFECT_RESTART:
	case EFFECT_RELOAD:
	case EFFECT_PAGE:
	case EFFECT_STOPPED:
	case EFFECT_LOG:
		trace_line(h->w, -1, "host %d -> %s %.*s", h->index, words[e->type], (int)text.len, text.data);
		break;
	case EFFECT_HOLD:
		trace_hold(h, e);
		break;
	case EFFECT_ZK_CREATE:
	case EFFECT_ZK_LIST:
	case EFFECT_ZK_GET:
	case EFFECT_ZK_DELETE:
	case EFFECT_ZK_SET:
		data = effects_slice(&h->effects, e->data);
		trace_line(h->w, lock_in(h->w, text), "host %d -> zk: op %" PRIu64 " %s%s %.*s%s%.*s", h->index, e->op,
			   words[e->type], e->watch ? " and watch" : "", (int)text.len, text.data, data.len ? " " : "",
			   (int)data.len, data.data);
		break;
	}
}
