/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/mlock.h"

#include <assert.h>

#include "base/mem.h"
#include "core/client/ask.h"
#include "core/client/deadlock.h"
#include "core/client/reply.h"
#include "core/lock/locks.h"
#include "core/lock/take_back.h"
#include "protocol/number.h"

/* ---- what was asked for ---- */

/* The number of names and the names: 0 when that was answered with an error. */
static size_t parse_names(const struct call *call)
{
	struct client *c = call->client;
	int64_t count;

	if (!number_parse(call->argv[1], &count) || count < 1 || count > LIMIT_NAMES_MAX || (size_t)count > call->argc - 2) {
		args_usage_error(call, "wrong number of names in");
		return 0;
	}
	for (size_t i = 0; i < (size_t)count; i++) {
		if (!args_valid_name(c, call->argv[2 + i]))
			return 0;
		for (size_t j = 0; j < i; j++)
			if (slice_eq(call->argv[2 + i], call->argv[2 + j])) {
				reply_error(c, ERROR_ERR, "a name is given twice: %s", call->argv[2 + i]);
				return 0;
			}
	}
	return (size_t)count;
}

int mlock_by_name(const void *a, const void *b)
{
	const struct mlock_part *x = a, *y = b;

	return slice_order(bytes_view(&x->name), bytes_view(&y->name));
}

static size_t bytes_of(size_t count, const struct slice *names)
{
	return sizeof(struct mlock) + count * sizeof(struct mlock_part) + slice_sum(count, names);
}

size_t mlock_memory(const struct mlock *m)
{
	size_t bytes = bytes_of(0, NULL);

	for (size_t i = 0; i < m->count; i++)
		bytes += sizeof(struct mlock_part) + m->parts[i].name.len;
	return bytes;
}

static struct mlock *mlock_new(struct client *c, size_t count, const struct slice *names, const struct options *o)
{
	struct mlock *m = mem_new(sizeof(*m) + count * sizeof(m->parts[0]));
	int64_t wait_ns = c->half_closed ? 0 : o->wait_ns;

	m->client = c;
	m->work.kind = WORK_MLOCK;
	m->mode = o->given & OPTION_SHARED ? MODE_SHARED : MODE_EXCLUSIVE;
	m->until_ns = wait_ns < 0 ? INT64_MAX : c->locks->env->now_ns + wait_ns;
	m->lease_ns = o->lease_ns;
	m->reenter = o->given & OPTION_REENTER;
	m->count = count;
	for (size_t i = 0; i < count; i++) {
		bytes_slice(&m->parts[i].name, names[i]);
		m->parts[i].place = i;
	}
	qsort(m->parts, count, sizeof(m->parts[0]), mlock_by_name);
	charge_force(&m->charge, c->account, POOL_MEMORY, mlock_memory(m));
	c->mlock = m;
	return m;
}

/* It does not go on, neither now nor later. */
static void rest(struct mlock *m)
{
	struct locks *locks = m->client->locks;

	if (m->work.worker)
		work_drop(&locks->env->works, &m->work);
	else if (m->state != MLOCK_TAKING)
		TAILQ_REMOVE(&locks->mlocks, m, link);
	m->state = MLOCK_TAKING;
}

void mlock_free(struct mlock *m)
{
	rest(m);
	m->client->mlock = NULL;
	charge_give_back(&m->charge, POOL_MEMORY);
	for (size_t i = 0; i < m->count; i++)
		bytes_free(&m->parts[i].name);
	mem_free(m);
}

void mlock_resume(struct mlock *m)
{
	struct client *c = m->client;

	m->state = MLOCK_NEXT;
	work_add(&c->locks->env->works, &c->user->worker, &m->work);
}

/* It goes on in this event, or later. */
static void set_next(struct mlock *m)
{
	struct locks *locks = m->client->locks;

	if (locks->mlock_steps == MLOCK_STEPS_AT_ONCE || locks->env->conf->all_in_pieces) {
		mlock_resume(m);
		return;
	}
	locks->mlock_steps++;
	m->state = MLOCK_NEXT;
	TAILQ_INSERT_TAIL(&locks->mlocks, m, link);
}

static void set_again(struct mlock *m)
{
	rest(m);
	m->state = MLOCK_AGAIN;
	TAILQ_INSERT_TAIL(&m->client->locks->mlocks, m, link);
}

static struct grant *grant_of(const struct client *c, struct slice name)
{
	struct lock *lock = lock_find(c->locks, name);

	if (lock)
		delegated_take_back_own(lock, c);
	return lock && !lock->slots ? grant_find(lock, c) : NULL;
}

/* ---- its ends ---- */

/* Releases every lock that it took, and withdraws its request. */
static void let_go(struct mlock *m)
{
	struct client *c = m->client;

	if (c->request)
		request_end(c->request);
	for (size_t i = 0; i < m->count; i++) {
		struct grant *g = m->parts[i].held ? NULL : grant_of(c, bytes_view(&m->parts[i].name));

		if (g)
			grant_end(g);
	}
}

static void end(struct mlock *m)
{
	let_go(m);
	mlock_free(m);
}

static void refuse(struct mlock *m, struct refusal *no)
{
	struct client *c = m->client;

	end(m);
	refusal_reply(c, no);
}

void mlock_failed(struct mlock *m, struct refusal *no)
{
	refusal_name(no, bytes_view(&m->parts[m->at].name));
	refuse(m, no);
}

void mlock_timed_out(struct mlock *m)
{
	struct client *c = m->client;

	end(m);
	reply_nil_array(c);
}

static void write_integers(struct client *c, size_t count, const int64_t *values)
{
	resp_array(reply_out(c), count);
	for (size_t i = 0; i < count; i++)
		resp_integer(reply_out(c), values[i]);
}

static void finish(struct mlock *m)
{
	struct client *c = m->client;
	int64_t tokens[LIMIT_NAMES_MAX];

	for (size_t i = 0; i < m->count; i++) {
		struct grant *g = grant_of(c, bytes_view(&m->parts[i].name));

		assert(g && !g->lost);
		if (m->parts[i].held)
			grant_reenter(g, m->lease_ns, (struct slice){ 0 });
		else if (m->lease_ns)
			grant_renew(g, m->lease_ns);
		tokens[m->parts[i].place] = g->token;
	}
	write_integers(c, m->count, tokens);
	reply_end(c);
	mlock_free(m);
}

/* ---- its steps ---- */

/* True: a loss was not reported, and goes before all else. */
static bool lost_any(struct mlock *m, struct refusal *ret)
{
	struct client *c = m->client;

	/* All are looked up before any is released. */
	for (size_t i = 0; i < m->count; i++)
		m->parts[i].held = grant_of(c, bytes_view(&m->parts[i].name)) != NULL;
	for (size_t i = 0; i < m->count; i++) {
		struct grant *g = grant_of(c, bytes_view(&m->parts[i].name));

		if (!g || !g->lost)
			continue;
		*ret = refusal_lost(g, NULL);
		return true;
	}
	return false;
}

/* True: a rule denies one of them. That is asked before it waits for another one. */
static bool denies_any(const struct mlock *m, struct refusal *ret)
{
	struct request_terms terms = { .mode = m->mode };

	for (size_t i = 0; i < m->count; i++)
		if (!m->parts[i].held && !ask_permits(m->client, bytes_view(&m->parts[i].name), &terms, ret))
			return true;
	return false;
}

/* True: what the client has of one of them, or waits for, forbids to ask for it. */
static bool forbids_any(const struct mlock *m, struct refusal *ret)
{
	struct request_terms terms = { .mode = m->mode };
	struct client *c = m->client;

	for (size_t i = 0; i < m->count; i++) {
		struct lock *lock = lock_find(c->locks, bytes_view(&m->parts[i].name));

		if (lock && !ask_may(lock, c, grant_find(lock, c), &terms, m->reenter, ret))
			return true;
	}
	return false;
}

static void step(struct mlock *m)
{
	struct client *c = m->client;
	struct request_terms terms = { .mode = m->mode, .wait_ns = -1 };
	struct refusal no = { 0 };

	rest(m);
	while (m->at < m->count && m->parts[m->at].held)
		m->at++;
	if (m->at == m->count) {
		finish(m);
		return;
	}
	if (m->until_ns != INT64_MAX)
		terms.wait_ns = m->until_ns > c->locks->env->now_ns ? m->until_ns - c->locks->env->now_ns : 0;
	if (ask_lock(c, bytes_view(&m->parts[m->at].name), &terms, &no))
		return;
	mlock_failed(m, &no);
}

/* Nothing is taken yet. One that begins again was permitted when it was asked for (ask_lock()). */
static void begin(struct mlock *m, bool again)
{
	struct refusal no;

	m->at = 0;
	if (lost_any(m, &no) || (!again && denies_any(m, &no)) || forbids_any(m, &no))
		refuse(m, &no);
	else
		step(m);
}

enum { OPTIONS_MLOCK = OPTION_SHARED | OPTION_WAIT | OPTION_LEASE | OPTION_REENTER };

void mlock_lock(struct client *c, struct call *call)
{
	size_t count = parse_names(call);

	if (!count || !args_parse_options(call, 2 + count, OPTIONS_MLOCK))
		return;
	if (reply_affords(c, POOL_MEMORY, bytes_of(count, call->argv + 2)))
		begin(mlock_new(c, count, call->argv + 2, &call->options), false);
}

void mlock_granted(struct mlock *m)
{
	if (m->state == MLOCK_TAKING)
		set_next(m);
}

bool mlock_lost(struct mlock *m, const struct grant *g)
{
	for (size_t i = 0; i < m->count; i++)
		if (slice_eq(bytes_view(&m->parts[i].name), bytes_view(&g->lock->name))) {
			set_again(m);
			return !m->parts[i].held;
		}
	return false;
}

void mlock_hurry(struct mlock *m)
{
	m->until_ns = m->client->locks->env->now_ns;
}

void mlock_continue(struct locks *locks)
{
	struct mlock *m = TAILQ_FIRST(&locks->mlocks);

	if (!m)
		return;
	if (m->state == MLOCK_AGAIN) {
		locks->env->stats.multi_again_total++;
		let_go(m);
		begin(m, true);
	} else if (locks->searched >= DEADLOCK_EDGES_AT_ONCE) {
		rest(m);
		mlock_resume(m);
	} else {
		mlock_go_on(m);
	}
}

void mlock_go_on(struct mlock *m)
{
	m->at++;
	step(m);
}

/* ---- releasing ---- */

void mlock_unlock(struct client *c, struct call *call)
{
	size_t count = parse_names(call);
	int64_t depths[LIMIT_NAMES_MAX];
	struct grant *g;

	if (!count || !args_parse_options(call, 2 + count, 0))
		return;
	for (size_t i = 0; i < count; i++) {
		g = grant_of(c, call->argv[2 + i]);
		if (g && g->lock->rule->kind != KIND_LOCK) {
			reply_error(c, ERROR_MISMATCH, "this name is in use as %s; nothing was released: %s",
				    kind_noun(g->lock->rule->kind), call->argv[2 + i]);
			return;
		}
		if (g && !g->lost)
			continue;
		if (g)
			grant_end(g);
		reply_error(c, g ? ERROR_LOST : ERROR_NOTHELD, "%s; nothing was released: %s",
			    g ? "the grant was lost" : "this client does not hold it", call->argv[2 + i]);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		g = grant_of(c, call->argv[2 + i]);
		depths[i] = g->depth - 1;
		if (depths[i])
			grant_set_depth(g, depths[i]);
		else
			grant_end(g);
	}
	write_integers(c, count, depths);
	reply_end_settled(c);
}
