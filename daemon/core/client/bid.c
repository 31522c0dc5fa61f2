/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/bid.h"

#include <assert.h>

#include "base/mem.h"
#include "base/minmax.h"
#include "core/client/ask.h"
#include "core/client/reply.h"
#include "core/lock/bearer.h"
#include "core/lock/lock_snapshot.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "protocol/limits.h"
#include "protocol/name.h"

static int by_name(const void *a, const void *b)
{
	return slice_order(*(const struct slice *)a, *(const struct slice *)b);
}

static size_t bytes_of(size_t count, const struct slice *names)
{
	size_t bytes = sizeof(struct bid) + BEARER_VALUE_MAX + count * sizeof(struct bid_part);

	for (size_t i = 0; i < count; i++)
		bytes += names[i].len;
	return bytes;
}

size_t bid_memory(const struct bid *b)
{
	size_t bytes = bytes_of(0, NULL) + b->count * sizeof(struct bid_part);

	for (size_t i = 0; i < b->count; i++)
		bytes += b->parts[i].name.len;
	return bytes;
}

static struct bid *new (struct client *c, size_t count, struct slice value)
{
	struct bid *b = mem_new(sizeof(*b) + count * sizeof(b->parts[0]));

	b->client = c;
	b->work.kind = WORK_BID;
	b->wait.work = &b->work;
	b->count = count;
	bytes_reserve(&b->value, BEARER_VALUE_MAX);
	bytes_slice(&b->value, value);
	c->bid = b;
	return b;
}

/* ---- its ends ---- */

/* Each of its bearers is on its own from now on. */
static void dissolve(struct bid *b)
{
	struct client *c = b->client;

	for (size_t i = 0; i < b->count; i++) {
		if (b->parts[i].bearer)
			b->parts[i].bearer->bid = NULL;
		bytes_free(&b->parts[i].name);
	}
	work_drop(&c->locks->env->works, &b->work);
	lifeline_wait_end(&b->wait);
	charge_give_back(&b->charge, POOL_MEMORY);
	bearer_wipe(&b->value);
	c->bid = NULL;
	mem_free(b);
}

void bid_free(struct bid *b)
{
	for (size_t i = 0; i < b->count; i++) {
		if (b->parts[i].bearer)
			place_end(b->parts[i].bearer);
		b->parts[i].bearer = NULL;
	}
	dissolve(b);
}

static void write(struct client *c, const struct bid_answer *answer)
{
	struct bytes *out = reply_out(c);

	switch (answer->kind) {
	case BID_OK:
		resp_status(out, "OK");
		break;
	case BID_NIL:
		resp_nil(out, c->version);
		break;
	case BID_NUMBER:
	case BID_TOKEN:
		resp_integer(out, answer->number);
		break;
	case BID_OK_TEXT:
		resp_bulk(out, SLICE("OK"));
		break;
	}
}

void bid_reply(struct client *c, const struct bid_answer *answer)
{
	write(c, answer);
	reply_end(c);
}

void bid_reply_settled(struct client *c, const struct bid_answer *answer)
{
	write(c, answer);
	reply_end_settled(c);
}

void bid_end_wait(struct bid *b)
{
	struct bid_answer taken = b->taken;
	struct client *c = b->client;

	bid_free(b);
	bid_reply(c, &taken);
}

static void refuse(struct bid *b, struct refusal *no)
{
	struct client *c = b->client;

	refusal_name(no, bytes_view(&b->parts[b->at].name));
	bid_free(b);
	refusal_reply(c, no);
}

static void finish(struct bid *b)
{
	struct bid_answer granted = b->granted;
	struct client *c = b->client;

	if (granted.kind == BID_TOKEN)
		granted.number = TAILQ_FIRST(&b->parts[0].bearer->grants)->token;
	for (size_t i = 0; b->count > 1 && i < b->count; i++)
		grant_renew(TAILQ_FIRST(&b->parts[i].bearer->grants), b->lease_ns);
	dissolve(b);
	bid_reply(c, &granted);
}

/* ---- its steps ---- */

static void step(struct bid *b)
{
	const struct request_terms terms = { .kind = KIND_LOCK, .mode = MODE_EXCLUSIVE, .lease_ns = b->lease_ns };
	struct bid_part *part = &b->parts[b->at];
	struct client *bearer = bearer_new(b->client, bytes_view(&b->value));
	struct refusal no = { 0 };

	part->bearer = bearer;
	bearer->bid = b;
	if (b->wait.lifeline) {
		lifeline_tie(bearer);
		lifeline_wait_end(&b->wait);
	}
	if (!ask_lock(bearer, bytes_view(&part->name), &terms, &no))
		refuse(b, &no);
}

static void refuse_ended(struct bid *b)
{
	struct refusal no = refusal_of(ERROR_ERR, "the process that has connected has ended, and without PX or another time "
						  "a lock is held until then at most");

	refuse(b, &no);
}

/* As far as is known of its process. */
static void begin_tied(struct bid *b)
{
	struct lifeline *l = b->wait.lifeline;
	struct refusal no;

	switch (l->state) {
	case LIFELINE_NEW:
	case LIFELINE_ASKED:
		break;
	case LIFELINE_WATCHED:
		step(b);
		break;
	case LIFELINE_ENDED:
		refuse_ended(b);
		break;
	case LIFELINE_REFUSED:
		no = refusal_of(ERROR_LIMIT, "%s; or give a time with PX", bytes_view(&l->why));
		refuse(b, &no);
		break;
	}
}

int64_t bid_cut(struct lifeline *l, int64_t most)
{
	int64_t steps = 0;
	bool more = true;

	/* With the last of them it may be freed. */
	while (more && steps < most) {
		struct client *bearer = lifeline_first(l);

		more = TAILQ_NEXT(bearer->bearer, link) != NULL;
		if (bearer->bid) {
			refuse_ended(bearer->bid);
		} else {
			bearer->closed = true; /* it gives nothing back: its process has ended */
			place_end(bearer);
		}
		steps += BID_STEPS;
	}
	return steps;
}

void bid_granted(struct client *bearer)
{
	struct bid *b = bearer->bid;

	if (!b)
		place_granted(bearer);
	else if (b->lost)
		bid_end_wait(b);
	else if (b->at + 1 < b->count)
		work_add(&b->client->locks->env->works, &b->client->user->worker, &b->work);
	else
		finish(b);
}

void bid_go_on(struct bid *b)
{
	work_drop(&b->client->locks->env->works, &b->work);
	if (b->wait.lifeline) {
		begin_tied(b);
		return;
	}
	b->at++;
	if (b->lost)
		bid_end_wait(b);
	else
		step(b);
}

/* The lock is kept for the value: it is granted. False: it is not, and the session may be unproven. */
static bool take_kept(struct bid *b, struct client *place)
{
	struct bid_part *part = &b->parts[0];

	if (!place_is_kept(place) || !session_grants(place->locks->ensemble))
		return false;
	/* What was kept has a lease; without one it is tied first. */
	if (!b->lease_ns && part->bearer->bearer->lifeline->state != LIFELINE_WATCHED)
		return false;
	place_take(place, b->client);
	if (!b->lease_ns)
		bearer_tie(place);
	bearer_rest(part->bearer);
	part->bearer = place;
	place->bid = b;
	if (b->lease_ns)
		grant_renew(TAILQ_FIRST(&place->grants), b->lease_ns);
	else
		grant_extend(TAILQ_FIRST(&place->grants), 0);
	return true;
}

/* The value has a place, or gets one if it asked before. True: its turn had come, and it has the lock. */
static bool find_place(struct bid *b)
{
	struct lock *lock = lock_find(b->client->locks, bytes_view(&b->parts[0].name));
	struct client *bearer = b->parts[0].bearer, *place = place_find(lock, b->client, bytes_view(&b->value));

	if (place && take_kept(b, place))
		return true;
	if (place && !place_is_kept(place)) {
		place_renew(place);
	} else if (!place && place_attempt(lock, b->client, bytes_view(&b->value)) && place_begin(bearer, lock)) {
		bearer_untie(bearer); /* nobody's process waits */
		bearer->bid = NULL;
		b->parts[0].bearer = NULL;
	}
	return false;
}

void bid_timed_out(struct client *bearer)
{
	struct bid *b = bearer->bid;

	if (!b)
		bearer_rest(bearer);
	else if (b->count == 1 && find_place(b))
		finish(b);
	else
		bid_end_wait(b);
}

void bid_failed(struct client *bearer, struct refusal *no)
{
	if (bearer->bid) {
		refuse(bearer->bid, no);
		return;
	}
	bytes_free(&no->sentence);
	bearer_rest(bearer);
}

void bid_lost(struct grant *g)
{
	struct client *bearer = g->client;
	struct bid *b = bearer->bid;

	for (size_t i = 0; b && i < b->count; i++)
		if (b->parts[i].bearer == bearer) {
			b->parts[i].bearer = NULL;
			b->lost = true;
		}
	bearer->bid = NULL;
	grant_end(g);
	bearer_rest(bearer);
}

/* True: a rule denies one of them. */
static bool denies_any(const struct bid *b, struct refusal *ret)
{
	const struct request_terms terms = { .kind = KIND_LOCK, .mode = MODE_EXCLUSIVE };

	for (size_t i = 0; i < b->count; i++)
		if (!ask_permits(b->client, bytes_view(&b->parts[i].name), &terms, ret))
			return true;
	return false;
}

static bool admits(struct client *c, const struct bid_terms *terms)
{
	size_t bearers = terms->count * bearer_memory(terms->value) + (terms->lease_ns ? 0 : sizeof(struct lifeline));

	return reply_affords(c, POOL_MEMORY, bytes_of(terms->count, terms->names) + bearers);
}

void bid_begin(struct client *c, const struct bid_terms *terms)
{
	struct slice names[LIMIT_NAMES_MAX];
	struct refusal no = { 0 };
	struct bid *b;

	assert(terms->count >= 1 && terms->count <= LIMIT_NAMES_MAX);
	assert(terms->lease_ns > 0 || terms->count == 1);
	if (!admits(c, terms))
		return;
	memcpy(names, terms->names, terms->count * sizeof(names[0]));
	qsort(names, terms->count, sizeof(names[0]), by_name);
	b = new (c, terms->count, terms->value);
	b->count = 0;
	for (size_t i = 0; i < terms->count; i++)
		if (i == 0 || !slice_eq(names[i - 1], names[i]))
			bytes_slice(&b->parts[b->count++].name, names[i]);
	b->lease_ns = terms->lease_ns;
	b->granted = terms->granted;
	b->taken = terms->taken;
	charge_force(&b->charge, c->account, POOL_MEMORY, bid_memory(b));
	if (denies_any(b, &no)) {
		refuse(b, &no);
	} else if (b->lease_ns) {
		step(b);
	} else {
		lifeline_wait(c, &b->wait);
		begin_tied(b);
	}
}

/* ---- in a snapshot ---- */

static const struct field fields[] = {
	FIELD_NUMBER(struct bid, "lease", lease_ns, 0, LIMIT_MS_MAX * 1000000),
	FIELD_NUMBER(struct bid, "granted", granted.kind, BID_OK, BID_TOKEN),
	FIELD_ANY(struct bid, "granted number", granted.number),
	FIELD_NUMBER(struct bid, "taken", taken.kind, BID_OK, BID_OK_TEXT),
	FIELD_ANY(struct bid, "taken number", taken.number),
	FIELD_FLAG(struct bid, "lost", lost),
	FIELD_NUMBER(struct bid, "at", at, 0, LIMIT_NAMES_MAX - 1),
	FIELD_TEXT(struct bid, "value", value, BEARER_VALUE_MAX),
};

void bid_snapshot(const struct bid *b, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "bid");

	entry_number(&w, "client", b->client->conn);
	entry_fields(&w, FIELDS(fields), b);
	entry_number(&w, "told", b->wait.lifeline && b->work.worker);
	entry_list(&w, "parts", 2 * b->count);
	for (size_t i = 0; i < b->count; i++) {
		resp_bulk(out, bytes_view(&b->parts[i].name));
		resp_integer(out, b->parts[i].bearer ? bearer_number(b->parts[i].bearer) : 0);
	}
	entry_end(&w);
}

/* Its bearers hold those before `at`, unless one was lost, and the one at `at` holds or asks. */
static bool part_restore(struct bid *b, size_t i, const struct resp_value *v)
{
	struct bid_part *part = &b->parts[i];
	struct client *bearer = NULL;
	const struct lock *lock;

	if (v[0].type != RESP_BULK || v[1].type != RESP_INTEGER || !name_valid(v[0].text))
		return false;
	bytes_slice(&part->name, v[0].text);
	if (i && slice_order(bytes_view(&part[-1].name), v[0].text) >= 0)
		return false;
	if (v[1].integer > 0)
		bearer = bearer_numbered(b->client->locks, v[1].integer);
	if (i > b->at || !bearer)
		return !bearer && !v[1].integer && (i > b->at || b->lost || !b->lease_ns);
	if (!bearer->bearer || bearer->bid || bearer_has_place(bearer) || !client_is_own(bearer, b->client) ||
	    !slice_eq(bytes_view(&bearer->bearer->value), bytes_view(&b->value)))
		return false;
	lock = bearer->request       ? bearer->request->lock
	       : bearer->grant_count ? TAILQ_FIRST(&bearer->grants)->lock
				     : NULL;
	if (!lock || !slice_eq(bytes_view(&lock->name), v[0].text) || (bearer->request && i < b->at))
		return false;
	part->bearer = bearer;
	bearer->bid = b;
	return true;
}

bool bid_restore(struct locks *locks, const struct entry *e)
{
	struct client *c = lock_restore_client(locks, e);
	const struct resp_value *parts = entry_get_list(e, "parts");
	const struct client *last;
	struct bid *b;
	bool told;

	if (!c)
		return false;
	if (!parts || parts->integer % 2 || parts->integer < 2 || parts->integer > 2 * LIMIT_NAMES_MAX || c->bid ||
	    c->bearer || !c->asking || (int64_t)parts->span != parts->integer + 1)
		return entry_refuse(e, "the names are not those");
	b = new (c, (size_t)parts->integer / 2, (struct slice){ 0 });
	if (!entry_get_fields(e, FIELDS(fields), b) || !entry_get_flag(e, "told", &told))
		return false;
	for (size_t i = 0; i < b->count; i++)
		if (!part_restore(b, i, parts + 1 + 2 * i))
			return entry_refuse(e, "the held locks do not match the request");
	charge_force(&b->charge, c->account, POOL_MEMORY, bid_memory(b));
	if (b->at >= b->count || (!b->lease_ns && (b->count > 1 || !lifeline_may_be(c))) || !b->value.len)
		return entry_refuse(e, "the fields do not fit each other");
	last = b->parts[b->at].bearer;
	if (last && last->request)
		return true;
	if (!last && !b->lease_ns) {
		lifeline_wait(c, &b->wait);
		if (told)
			work_add(&locks->env->works, &c->user->worker, &b->work);
		return true;
	}
	work_add(&locks->env->works, &c->user->worker, &b->work);
	return b->at + 1 < b->count || entry_refuse(e, "all is held already");
}

/* ---- what is done to a grant under a value ---- */

void bid_release(struct grant *g)
{
	struct client *bearer = g->client;

	grant_end(g);
	bearer_rest(bearer);
}

void bid_extend(struct grant *g, int64_t lease_ns, bool add)
{
	int64_t left_ns = add && g->lease.place ? grant_lease_rest_ns(g) : 0;

	/* First: one that is found with neither a lease nor a process would have no end. */
	grant_renew(g, min64(lease_ns + left_ns, LIMIT_MS_MAX * NS_PER_MS));
	bearer_untie(g->client);
}
