/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers to a client mean for the model of what it holds. */
#include "world.h"

#include <stdlib.h>

static bool reply_integer(struct slice reply, int64_t *value)
{
	if (reply.len < 4 || reply.data[0] != ':')
		return false;
	*value = strtoll(reply.data + 1, NULL, 10);
	return true;
}

bool answer_begins(struct slice reply, const char *text)
{
	size_t len = strlen(text);

	return reply.len >= len && memcmp(reply.data, text, len) == 0;
}

void answer_bad(struct caller *c, const struct ask *a, struct slice reply, const char *why)
{
	world_fail(c->host->w, a->lock, "host %d client %u: %s %s: %s: %.*s", c->host->index, c->conn,
		   command_table[a->command].word, c->host->w->lock_name[a->lock], why, (int)reply.len, reply.data);
}

bool holding_unsure(const struct holding *g)
{
	return g->meddled || g->vague;
}

static int64_t lease_end(const struct world *w, const struct ask *a)
{
	return a->lease_ms ? w->sched.now + a->lease_ms * MS : INT64_MAX;
}

struct holding holding_granted(const struct caller *c, const struct ask *a, int64_t token)
{
	struct world *w = c->host->w;

	entitled_granted(c->host, a->lock, token);
	return (struct holding){ .held = true, .shared = a->shared, .depth = 1, .token = token, .since = w->sched.now,
				 .lease_until = lease_end(w, a), .meddled = check_is_meddled(w, token) };
}

/* The later of the two ends counts, and none is later than any. */
void holding_reentered(struct caller *c, const struct ask *a)
{
	struct holding *g = &c->holding[a->lock];
	int64_t end = lease_end(c->host->w, a);

	if (!a->reenter)
		world_fail(c->host->w, a->lock, "host %d client %u: it entered %s again, and had not asked for that",
			   c->host->index, c->conn, c->host->w->lock_name[a->lock]);
	g->depth++;
	if (end > g->lease_until)
		g->lease_until = end;
	c->host->w->stats->reentries++;
}

void held_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	const struct holding *g = &c->holding[a->lock];

	c->host->w->stats->held_told++;
	if (!g->held || (g->lost && !holding_unsure(g)))
		answer_bad(c, a, reply, "it does not hold that, or was not told of the loss");
	if (a->reenter && !c->host->w->election[a->lock])
		answer_bad(c, a, reply, "it had asked to enter it again");
	if (a->asked_at != c->host->w->sched.now)
		answer_bad(c, a, reply, "not at once");
}

/* -LOST: told by this. */
static void loss_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];

	if (!g->held || (!g->lost && !holding_unsure(g)))
		answer_bad(c, a, reply, "nothing was lost");
	*g = (struct holding){ 0 };
}

/* -DEADLOCK */
static void upgrade_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	const struct holding *g = &c->holding[a->lock];

	if (a->command == COMMAND_LOCK && answer_begins(reply, "-DEADLOCK this client waits for ")) {
		deadlock_answered(c, a, reply);
		return;
	}
	if (!g->held || g->lost || !g->shared || a->shared || !a->reenter)
		answer_bad(c, a, reply, "it does not wait for itself");
}

/* -ERR: who waits for that name asks again; -HELD: who leads does; and only then. */
static bool refused_rightly(const struct caller *c, const struct ask *a, struct slice reply)
{
	const struct holding *g = &c->holding[a->lock];

	if (c->host->w->election[a->lock] && g->held && (!g->lost || holding_unsure(g)))
		return answer_begins(reply, "-HELD") || (holding_unsure(g) && answer_begins(reply, "-LOST"));
	return c->wait[a->lock].on == answer_begins(reply, "-ERR");
}

static void lock_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];
	struct world *w = c->host->w;
	int64_t token;

	if (!refused_rightly(c, a, reply))
		answer_bad(c, a, reply, "one request for each name");
	if (reply.len && reply.data[0] != ':')
		c->host->read_at_step[a->lock] = 0; /* who stood behind it was not at the front */
	if (answer_begins(reply, "-HELD")) {
		held_answered(c, a, reply);
	} else if (answer_begins(reply, "-DEADLOCK")) {
		upgrade_answered(c, a, reply);
	} else if (reply_integer(reply, &token)) {
		if (g->held && !g->lost && token == g->token) {
			if (g->shared && !a->shared)
				answer_bad(c, a, reply, "an upgrade");
			holding_reentered(c, a);
			return;
		}
		if (g->held)
			answer_bad(c, a, reply, g->lost ? "granted before the loss was told" : "another token than the grant's");
		check_grant(c, a, token);
		*g = holding_granted(c, a, token);
		delegations_granted(c, a);
		c->done = c->done || w->quiet;
	} else if (answer_begins(reply, "-LOST")) {
		loss_answered(c, a, reply);
	} else if (g->held && !holding_unsure(g) && !answer_begins(reply, "-LIMIT") &&
		   !answer_begins(reply, "-ERR")) {
		answer_bad(c, a, reply, "no re-entry");
	} else if (!answer_begins(reply, "$-1") && !answer_begins(reply, "_") && !answer_begins(reply, "-LIMIT") &&
		   !answer_begins(reply, "-UNAVAILABLE") && !answer_begins(reply, "-DRAINING") &&
		   !answer_begins(reply, "-MISMATCH") && !answer_begins(reply, "-ERR")) {
		answer_bad(c, a, reply, "unexpected");
	} else if (answer_begins(reply, "$-1") || answer_begins(reply, "_")) {
		tries_answered(c, a);
	}
}

static void enqueue_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];

	c->enqueues_sent[a->lock]--;
	if (!refused_rightly(c, a, reply))
		answer_bad(c, a, reply, "one request for each name");
	if (answer_begins(reply, "-HELD")) {
		held_answered(c, a, reply);
	} else if (answer_begins(reply, "+QUEUED")) {
		if (g->held && (g->lost || !a->reenter))
			answer_bad(c, a, reply, "queued before the loss was told, or what it holds");
		c->wait[a->lock] = (struct wait){ .on = true, .blind = c->protocol == 2, .ask = *a };
		if (a->wait_ms == 0 || c->half_closed)
			c->wait[a->lock].over_at = c->host->w->sched.now;
		c->host->w->stats->queued++;
		if (g->held && c->protocol == 2)
			told_late(g);
	} else if (answer_begins(reply, "-DEADLOCK")) {
		upgrade_answered(c, a, reply);
	} else if (answer_begins(reply, "-LOST")) {
		loss_answered(c, a, reply);
	} else if (!answer_begins(reply, "-LIMIT") && !answer_begins(reply, "-DRAINING") &&
		   !answer_begins(reply, "-ERR")) {
		answer_bad(c, a, reply, "unexpected");
	} else if (g->held && !holding_unsure(g) && !answer_begins(reply, "-ERR")) {
		answer_bad(c, a, reply, "no re-entry");
	}
}

static void cancel_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct wait *wait = &c->wait[a->lock];
	int64_t done;

	if (!reply_integer(reply, &done) || done < 0 || done > 1)
		answer_bad(c, a, reply, "unexpected");
	if (done ? !wait->on : wait->on && !wait->blind)
		answer_bad(c, a, reply, done ? "nothing waited" : "it waits, and was told nothing else");
	if (done) {
		wait->on = false;
		c->host->read_at_step[a->lock] = 0; /* who stood behind it was not at the front */
	}
	c->host->w->stats->cancels += (uint64_t)done;
}

/* What UNLOCK and RENEW have in common when nothing was done. */
static void refused(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];

	if (answer_begins(reply, "-LOST")) {
		if (g->held && a->token && a->token != g->token)
			return; /* another grant's token: nothing is told about this one */
		loss_answered(c, a, reply);
	} else if (answer_begins(reply, "-NOTHELD")) {
		if (g->held)
			answer_bad(c, a, reply, "it does hold it, or was not told of the loss");
	} else {
		answer_bad(c, a, reply, "unexpected");
	}
}

static void unlock_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];
	int64_t depth;

	if (delegations_returned(c, a, reply))
		return;
	if (!reply_integer(reply, &depth)) {
		refused(c, a, reply);
		return;
	}
	if (c->host->w->election[a->lock]) {
		elections_resigned(c, a, depth);
		return;
	}
	if (!g->held || g->lost || depth != g->depth - 1 || (a->token && a->token != g->token))
		answer_bad(c, a, reply, "it does not hold that");
	g->depth--;
	if (depth == 0)
		*g = (struct holding){ 0 };
}

static void renew_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];
	int64_t one;

	if (!reply_integer(reply, &one)) {
		refused(c, a, reply);
		return;
	}
	if (one != 1 || !g->held || g->lost || (a->token && a->token != g->token))
		answer_bad(c, a, reply, "it does not hold that");
	g->lease_until = lease_end(c->host->w, a);
	g->vague = false;
	c->host->w->stats->renewals++;
}

static void downgrade_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];
	int64_t token;

	if (reply_integer(reply, &token)) {
		if (!g->held || g->lost || token != g->token)
			answer_bad(c, a, reply, "it does not hold that, or the token has changed");
		if (!g->shared)
			g->since = c->host->w->sched.now;
		g->shared = true;
	} else {
		refused(c, a, reply);
	}
}

static void valid_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[a->lock];
	int64_t ms, left = INT64_MAX;

	if (!reply_integer(reply, &ms))
		answer_bad(c, a, reply, "unexpected");
	if (!c->host->conf.standalone)
		left = host_proven_ns(c->host);
	if (g->held && g->lease_until != INT64_MAX && g->lease_until - c->host->w->sched.now < left)
		left = g->lease_until - c->host->w->sched.now;
	left /= MS;
	if (ms > 0 && (!g->held || g->lost))
		answer_bad(c, a, reply, "nothing valid is held");
	if (ms > 0 && ms > left)
		answer_bad(c, a, reply, "longer than proven or leased");
	if (ms <= 0 && g->held && !g->lost && !holding_unsure(g) && left > 1)
		answer_bad(c, a, reply, "the grant is valid");
}

static void hello_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	const char *id = memmem(reply.data, reply.len, "\r\nid\r\n:", 7);

	if (!id)
		world_fail(c->host->w, -1, "HELLO: %.*s", (int)reply.len, reply.data);
	c->id = (uint64_t)strtoll(id + 7, NULL, 10);
	c->protocol = (int)a->token;
	c->hellos_sent--;
	for (int i = 0; i < LOCKS_MAX && c->protocol == 2; i++)
		c->wait[i].blind = true;
}

static void question_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (a->all)
		scan_check(c, a, reply);
	if (a->command == COMMAND_HOLDERS || a->command == COMMAND_WHY)
		delegations_told(c, a, reply);
	if (a->command == COMMAND_LEADER || a->command == COMMAND_OBSERVE || a->command == COMMAND_UNOBSERVE) {
		elections_answered(c, a, reply);
		return;
	}
	if (a->command != COMMAND_WHY && answer_begins(reply, "-UNAVAILABLE"))
		return;
	if (reply.len == 0 || (reply.data[0] != '*' && reply.data[0] != '%'))
		answer_bad(c, a, reply, "it always has an answer");
}

static void revocation_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	bool denied = a->command == COMMAND_FORCEUNLOCK && !caller_is_operator(c);
	const struct world *w = c->host->w;
	int64_t holders;

	if (denied != answer_begins(reply, "-DENIED"))
		answer_bad(c, a, reply, "an operator may, and nobody else");
	if (answer_begins(reply, "-ERR") && !w->foreign_count && !w->mix->operator_every_ms && !w->replaced_count)
		answer_bad(c, a, reply, "there is nobody who cannot be asked");
	if (denied || answer_begins(reply, "-UNAVAILABLE") || answer_begins(reply, "-LIMIT") ||
	    (a->command == COMMAND_REVOKE && answer_begins(reply, "-ERR")))
		return;
	if (!reply_integer(reply, &holders) || holders < 0)
		answer_bad(c, a, reply, "unexpected");
}

static void audit_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct world *w = c->host->w;

	if (answer_begins(reply, "-UNAVAILABLE") || answer_begins(reply, "-DRAINING") || answer_begins(reply, "$-1") ||
	    answer_begins(reply, "_"))
		return;
	if (!memmem(reply.data, reply.len, "\r\nexamples\r\n", 12))
		answer_bad(c, a, reply, "unexpected");
	if (!memmem(reply.data, reply.len, "\r\nundeleted\r\n:0\r\n", 17) ||
	    !memmem(reply.data, reply.len, "\r\nrefused\r\n:0\r\n", 15))
		return;
	check_audited(c, a);
	/* Late enough to have seen the last orphan. */
	if (c->auditor && w->quiet && a->asked_at - w->timeout / 2 > w->quiet_at)
		c->done = true;
}

static void client_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (a->owner >= 0)
		deadlock_owner_answered(c, a, reply);
}

static void reset_answered(struct caller *c)
{
	caller_let_go(c);
	c->protocol = 2;
	c->id = 0;
	c->owner = 0;
}

static void queued_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (a->command == COMMAND_ENQUEUE)
		enqueue_answered(c, a, reply);
	else
		cancel_answered(c, a, reply);
}

static void answered(struct caller *c, const struct ask *a, struct slice reply)
{
	switch (a->command) {
	case COMMAND_LOCK:
		lock_answered(c, a, reply);
		break;
	case COMMAND_MLOCK:
	case COMMAND_MUNLOCK:
		several_answered(c, a, reply);
		break;
	case COMMAND_ENQUEUE:
	case COMMAND_CANCEL:
		queued_answered(c, a, reply);
		break;
	case COMMAND_UNLOCK:
		unlock_answered(c, a, reply);
		break;
	case COMMAND_RENEW:
		renew_answered(c, a, reply);
		break;
	case COMMAND_DOWNGRADE:
		downgrade_answered(c, a, reply);
		break;
	case COMMAND_VALID:
		valid_answered(c, a, reply);
		break;
	case COMMAND_EVENTS:
		told_event(c, reply);
		break;
	case COMMAND_HELLO:
		hello_answered(c, a, reply);
		break;
	case COMMAND_RESET:
		reset_answered(c);
		break;
	case COMMAND_HOLDERS:
	case COMMAND_QUEUE:
	case COMMAND_WHY:
	case COMMAND_HOSTS:
	case COMMAND_LEADER:
	case COMMAND_OBSERVE:
	case COMMAND_UNOBSERVE:
	case COMMAND_LOCKS:
		question_answered(c, a, reply);
		break;
	case COMMAND_REVOKE:
	case COMMAND_FORCEUNLOCK:
		revocation_answered(c, a, reply);
		break;
	case COMMAND_CLIENT:
		client_answered(c, a, reply);
		break;
	case COMMAND_CAMPAIGN:
	case COMMAND_RESIGN:
	case COMMAND_AUDIT:
	case COMMAND_DELEGATE:
	case COMMAND_PING:
	case COMMAND_INFO ... COMMAND_METRICS:
	case COMMAND_QUIT:
	case COMMAND_RESTART:
	case COMMAND_RELOAD ... COMMAND_LOG: /* and CONFIG, ACCESS */
	case COMMAND_ECHO:
	case COMMAND_SELECT:
	case COMMAND_COMMAND:
	case COMMAND_ACQUIRE:
	case COMMAND_RELEASE:
	case COMMAND_LIMIT:
	case COMMAND_SET ... COMMAND_SCRIPT: /* TOKEN, EVAL and EVALSHA, too */
	case COMMAND_COUNT:
		break;
	}
}

void answer_taken(struct caller *c, const struct ask *a, struct slice reply)
{
	if (a->command == COMMAND_AUDIT) {
		audit_answered(c, a, reply);
		return;
	}
	c->host->wanted_at[a->lock] = c->host->moved_at[a->lock] = c->host->w->sched.now;
	answered(c, a, reply);
}
