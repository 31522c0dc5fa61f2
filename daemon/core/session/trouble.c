/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/trouble.h"

#include "core/state.h"

static const int64_t SAY_AGAIN_NS = 60000000000;

void trouble_deinit(struct trouble *t)
{
	bytes_free(&t->sentence);
}

static void clear(struct trouble *t)
{
	t->kind = TROUBLE_NONE;
	bytes_clear(&t->sentence);
}

static void begin(struct ensemble *zk, enum trouble_kind kind)
{
	struct trouble *t = &zk->trouble;

	clear(t);
	t->kind = kind;
	t->at_ns = zk->env->now_ns;
}

void trouble_met(struct ensemble *zk, const struct event *event)
{
	begin(zk, event->zk_trouble.refused ? TROUBLE_REFUSED : TROUBLE_UNREACHABLE);
	bytes_slice(&zk->trouble.sentence, event->zk_trouble.sentence);
}

static const char *what_was_denied(enum operation_kind kind)
{
	switch (kind) {
	case OPERATION_PATH:
		return "make the directories of all locks";
	case OPERATION_BEAT:
		return "announce this host";
	case OPERATION_DUPLICATE:
		return "read who announced this host's name";
	case OPERATION_DIR_MAKE:
		return "make";
	case OPERATION_DIR_GET:
		return "read";
	case OPERATION_DIR_END:
		return "delete";
	case OPERATION_JOIN:
		return "create a znode in";
	case OPERATION_LIST:
		return "list";
	case OPERATION_LOOK_OWN:
	case OPERATION_LOOK_PRED:
	case OPERATION_WATCH_PRED:
	case OPERATION_WATCH_OWN:
	case OPERATION_ADOPT:
		return "read a znode of";
	case OPERATION_LEAVE:
		return "delete a znode of";
	case OPERATION_HOLDER:
		return "describe a holder in";
	case OPERATION_PROCLAIM:
		return "write who leads in";
	case OPERATION_OBSERVE_LIST:
	case OPERATION_OBSERVE_GET:
		return "show who leads in";
	case OPERATION_SEMAPHORE_GET:
		return "read the limit of";
	case OPERATION_SEMAPHORE_WRITE:
		return "make a semaphore";
	case OPERATION_LIMIT_GET:
	case OPERATION_LIMIT_SET:
		return "read or set a limit";
	case OPERATION_QUERY_LIST:
	case OPERATION_QUERY_GET:
		return "say what was asked about other hosts";
	case OPERATION_AUDIT_ROOT:
	case OPERATION_AUDIT_DATA:
	case OPERATION_AUDIT_LIST:
		return "show a directory to an audit";
	case OPERATION_AUDIT_DELETE:
		return "delete a stray";
	case OPERATION_INBOX_LIST:
	case OPERATION_INBOX_GET:
	case OPERATION_INBOX_DELETE:
		return "let this host read its mail";
	case OPERATION_LETTER_POST:
	case OPERATION_LETTER_WITHDRAW:
		return "pass a letter to another host";
	case OPERATION_REVOCATION_DELETE:
		return "delete the znode of a holder that does not answer";
	}
	return "";
}

static void say(struct ensemble *zk, enum operation_kind kind)
{
	struct trouble *t = &zk->trouble;
	size_t text;

	if (t->said_ns[kind] && zk->env->now_ns - t->said_ns[kind] < SAY_AGAIN_NS)
		return;
	t->said_ns[kind] = zk->env->now_ns;
	text = effects_begin(zk->env->out);
	bytes_slice(&zk->env->out->arena, bytes_view(&t->sentence));
	effects_log(zk->env->out, EFFECT_LEVEL_ERROR, text);
}

static void denied(struct ensemble *zk, const struct operation *op, struct slice reason)
{
	struct bytes *out = &zk->trouble.sentence;

	begin(zk, TROUBLE_DENIED);
	zk->trouble.denied = op->kind;
	bytes_text(out, "ZooKeeper refuses to ");
	bytes_text(out, what_was_denied(op->kind));
	if (op->lock) {
		bytes_char(out, ' ');
		bytes_slice(out, bytes_view(&op->lock->directory.path));
	}
	bytes_text(out, ": ");
	bytes_slice(out, reason);
	say(zk, op->kind);
}

/* Making parents that exist may be refused where everything else is allowed. */
static bool cures(enum operation_kind kind, enum operation_kind trouble)
{
	return kind == trouble || (kind == OPERATION_BEAT && trouble == OPERATION_PATH);
}

void trouble_answered(struct ensemble *zk, const struct operation *op, const struct event *event)
{
	struct trouble *t = &zk->trouble;

	if (event->zk_answered.code == ZK_REFUSED) {
		denied(zk, op, event->zk_answered.data);
	} else if (event->zk_answered.code == ZK_OK && t->kind == TROUBLE_DENIED && cures(op->kind, t->denied)) {
		t->said_ns[t->denied] = 0;
		clear(t);
	}
}

void trouble_proved(struct ensemble *zk)
{
	if (zk->trouble.kind == TROUBLE_UNREACHABLE || zk->trouble.kind == TROUBLE_REFUSED)
		clear(&zk->trouble);
}
