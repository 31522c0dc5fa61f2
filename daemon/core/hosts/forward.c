/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/bid.h"
#include "core/hosts/forward.h"

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/hosts/participant.h"
#include "core/lock/bearer.h"
#include "core/znode/record.h"
#include "protocol/limits.h"
#include "protocol/name.h"

/* ---- who asks ---- */

static void orphan(struct forward *f)
{
	if (f->letter)
		letter_abandon(f->letter);
}

void forward_end(struct lookup *i)
{
	struct forward *f = i->forward;

	if (f) {
		orphan(f);
		heap_unset(&f->hosts->env->timers, &f->timer);
		TAILQ_REMOVE(&f->hosts->forwards, f, link);
		bytes_free(&f->id);
		mem_free(f);
		i->forward = NULL;
	}
	lookup_free(i);
}

static const char *done(const struct forward *f)
{
	return f->act == FORWARD_EXTEND ? "extended" : "released";
}

/* The client is answered, and with that its lookup is over. */
static void fail(struct forward *f, bool may_be_done, const char *why)
{
	struct lookup *i = f->lookup;
	struct slice name = bytes_view(&f->fact->name), host = bytes_view(&f->fact->host);

	if (may_be_done && f->act != FORWARD_LOOK)
		reply_error(i->client, ERROR_UNAVAILABLE,
			    "%s is held by host %s, %s: it may have been %s or not, so ask again", name, host, why, done(f));
	else
		reply_error(i->client, ERROR_UNAVAILABLE, "%s is held by host %s, %s: nothing was done there, so ask again",
			    name, host, why);
	forward_end(i);
}

static bool admits(const struct hosts *h, struct client *c, const struct lookup_fact *fact)
{
	if (!letter_host_valid(bytes_view(&fact->host))) {
		reply_error(c, ERROR_UNAVAILABLE, "%s is held %s, and has to be released or extended there",
			    bytes_view(&fact->name), bytes_view(&fact->said));
		return false;
	}
	if (!h->ensemble->session.connected) {
		reply_error(c, ERROR_UNAVAILABLE,
			    "there is no connection to ZooKeeper, so the host that holds it cannot be asked");
		return false;
	}
	_Static_assert(LETTER_REVOKES_MAX == 176, "the sentence names it");
	return reply_affords(c, POOL_LETTERS, 1) &&
	       (outbox_room(h, LETTER_VALUE, c, 1) ||
		reply_limit(c, "no room for another letter: 176 are under way, or limits.session_path_bytes is reached; "
			       "try again in a few seconds"));
}

static void write_letter(const struct hosts *h, const struct client *c, const struct lookup_fact *fact,
			 const struct forward_terms *terms)
{
	struct bytes *data = operation_data(h->ensemble);
	char hash[SHA256_HEX_CHARS + 1];
	struct bytes salt = { 0 };

	bytes_format(&salt, "%x-%x", h->ensemble->session.id, h->outbox_last + 1);
	bearer_hash(bytes_view(&salt), terms->value, hash);
	record_begin(data);
	bytes_format(data, "kind=%s\nfrom=%s\n", letter_kind_word(LETTER_VALUE), h->env->conf->host);
	bytes_format(data, "to=%x\nname=%s\n", fact->session, bytes_view(&fact->name));
	bytes_format(data, "act=%s\nuid=%d\nsalt=%s\nsha256=%s\n", forward_act_word(terms->act), (int64_t)c->uid,
		     bytes_view(&salt), hash);
	bytes_free(&salt);
	if (terms->act == FORWARD_EXTEND)
		bytes_format(data, "ms=%d\nadd=%d\nleased=%d\n", terms->lease_ns / NS_PER_MS, (int64_t)terms->add,
			     (int64_t)terms->leased);
}

static void ask(struct hosts *h, struct lookup *i, struct lookup_fact *fact, const struct forward_terms *terms)
{
	struct forward *f = i->forward;

	if (!f) {
		f = i->forward = mem_new(sizeof(*f));
		f->hosts = h;
		f->lookup = i;
		f->timer.kind = TIMER_FORWARD;
		TAILQ_INSERT_TAIL(&h->forwards, f, link);
	}
	f->state = FORWARD_ASKED;
	f->fact = fact;
	f->act = terms->act;
	write_letter(h, i->client, fact, terms);
	f->letter = outbox_post(h, bytes_view(&fact->host), i->client->account);
	f->letter->forward = f;
	heap_set(&h->env->timers, &f->letter->timer, h->env->now_ns + LETTER_PATIENCE_NS);
	bytes_clear(&f->id);
	bytes_slice(&f->id, letter_id(f->letter));
	i->asks = true;
}

/* What was done shows how it was found, too: then a hand-over has forgotten the look before it. */
static enum forward_found known(const struct lookup_fact *fact, enum forward_act act)
{
	enum forward_found found = fact->found[act];

	for (int other = 0; act == FORWARD_LOOK && found == FORWARD_UNASKED && other < FORWARD_ACTS; other++)
		found = fact->found[other];
	return found;
}

/*
 * The host that was asked did not hold the lock then. Nobody held it if the list that named the host was fresh, or if the
 * host was the holder after the request came. Otherwise another host may hold it by now.
 */
static bool is_gone(const struct lookup_fact *fact)
{
	return fact->fresh || fact->found[FORWARD_LOOK] == FORWARD_OURS || fact->found[FORWARD_LOOK] == FORWARD_THEIRS;
}

enum forward_found forward_look(struct call *call, struct slice name, const struct forward_terms *terms)
{
	struct lookup *i = call->client->lookup;
	struct lookup_fact *fact = lookup_find(i, name);
	enum forward_found found = known(fact, terms->act);

	if (found == FORWARD_FREE && !is_gone(fact)) {
		lookup_ask(call, name, true);
		return FORWARD_UNASKED;
	}
	if (found == FORWARD_UNASKED && admits(call->hosts, call->client, fact))
		ask(call->hosts, i, fact, terms);
	return found;
}

void forward_letter(struct forward *f, enum letter_fate fate)
{
	struct env *env = f->hosts->env;

	switch (fate) {
	case LETTER_STANDS:
		break;
	case LETTER_NO_BOX:
		fail(f, false, "which has no mailbox");
		break;
	case LETTER_FAILED:
		fail(f, true, "which could not be asked");
		break;
	case LETTER_WITHDRAWN:
		fail(f, false, "which does not answer");
		break;
	case LETTER_TAKEN:
		f->letter = NULL;
		f->state = FORWARD_TAKEN;
		heap_set(&env->timers, &f->timer, env->now_ns + LETTER_PATIENCE_NS);
		break;
	}
}

void forward_due(struct forward *f)
{
	fail(f, true, "which does not answer");
}

void forward_suspended(struct hosts *h)
{
	struct forward *f, *after;

	TAILQ_FOREACH_SAFE(f, &h->forwards, link, after)
		if (f->state != FORWARD_ANSWERED)
			fail(f, true, "and the connection to ZooKeeper was lost");
}

static struct forward *find_asked(const struct hosts *h, struct slice id)
{
	struct forward *f;

	TAILQ_FOREACH(f, &h->forwards, link)
		if (f->state != FORWARD_ANSWERED && slice_eq(bytes_view(&f->id), id))
			return f;
	return NULL;
}

bool forward_answered(struct hosts *h, struct slice id, struct slice data)
{
	struct slice word = record_get(data, "found");
	enum forward_found found = forward_found_of(word);
	struct forward *f = find_asked(h, id);

	if (found == FORWARD_UNASKED && !slice_eq(word, slice_of(forward_found_word(FORWARD_UNASKED))))
		return false;
	if (!f)
		return true;
	orphan(f);
	f->letter = NULL;
	heap_unset(&h->env->timers, &f->timer);
	if (found == FORWARD_UNASKED) {
		fail(f, false, participant_number(data, "late", 0) ? "which had lost its connection to ZooKeeper"
								   : "whose session is over");
		return true;
	}
	f->state = FORWARD_ANSWERED;
	f->fact->found[f->act] = found;
	lookup_ready(f->lookup);
	return true;
}

/* ---- who is asked ---- */

/* Nobody waits for it any longer than for the letter that it answers, and what it takes is free again then. */
static void answer(struct hosts *h, struct slice data, struct slice id, enum forward_found found, bool late,
		   struct account *payer)
{
	struct bytes *out = operation_data(h->ensemble);
	struct letter *l;

	record_begin(out);
	bytes_format(out, "kind=%s\nfrom=%s\n", letter_kind_word(LETTER_ANSWER), h->env->conf->host);
	bytes_format(out, "re=%s\nfound=%s\n%s", id, forward_found_word(found), late ? "late=1\n" : "");
	l = outbox_post(h, record_get(data, "from"), payer);
	heap_set(&h->env->timers, &l->timer, h->env->now_ns + LETTER_PATIENCE_NS);
}

static struct grant *meant(const struct hosts *h, struct slice data)
{
	int64_t uid = participant_number(data, "uid", -1);

	return uid >= 0 ? bearer_grant_by_hash(lock_find(h->locks, record_get(data, "name")), uid, record_get(data, "salt"),
					       record_get(data, "sha256"))
			: NULL;
}

static bool is_set(struct slice data, const char *key)
{
	return participant_number(data, key, 0) != 0;
}

static enum forward_found extend(struct grant *g, struct slice data, int64_t lease_ns)
{
	if (is_set(data, "leased") && !g->lease.place)
		return FORWARD_THEIRS;
	bid_extend(g, lease_ns, is_set(data, "add"));
	return FORWARD_OURS;
}

static enum forward_found act(struct hosts *h, enum forward_act act, struct slice data, struct grant *g, int64_t lease_ns)
{
	if (!g) {
		const struct lock *lock = lock_find(h->locks, record_get(data, "name"));

		return lock && delegated_holder(lock) ? FORWARD_THEIRS : FORWARD_FREE;
	}
	if (act == FORWARD_RELEASE)
		bid_release(g);
	else if (act == FORWARD_EXTEND)
		return extend(g, data, lease_ns);
	return FORWARD_OURS;
}

void forward_received(struct hosts *h, struct slice id, struct slice data, bool late)
{
	enum forward_act what = forward_act_of(record_get(data, "act"));
	int64_t ms = participant_number(data, "ms", 0);
	struct grant *g = meant(h, data);
	/* Whose lock it is pays for the answer: a user who has much done here leaves room for others, and for operators. */
	struct account *payer = g ? g->client->account : NULL;

	if (!letter_host_valid(record_get(data, "from")) || !name_valid(record_get(data, "name")) ||
	    what == FORWARD_ACTS || (what == FORWARD_EXTEND && (ms < 1 || ms > LIMIT_MS_MAX)))
		h->env->stats.mail_ignored_total++;
	else if (!outbox_room(h, LETTER_VALUE, g ? g->client : NULL, 1))
		h->env->stats.limits_total++;
	else if ((late && what != FORWARD_LOOK) || !letter_task_is_for_us(h, data))
		answer(h, data, id, FORWARD_UNASKED, late, payer);
	else
		answer(h, data, id, act(h, what, data, g, ms * NS_PER_MS), false, payer);
}
