/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/lookup.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/hosts/participant.h"
#include "core/lock/lock_snapshot.h"
#include "core/port/entry.h"
#include "protocol/name.h"

/* ---- what a forward asks for, and finds ---- */

static const char *const acts[FORWARD_ACTS] = {
	[FORWARD_LOOK] = "look",
	[FORWARD_RELEASE] = "release",
	[FORWARD_EXTEND] = "extend",
};

static const char *const founds[] = {
	[FORWARD_UNASKED] = "moved", /* in a letter: the session that was asked is over */
	[FORWARD_OURS] = "ours",
	[FORWARD_FREE] = "free",
	[FORWARD_THEIRS] = "theirs",
};

const char *forward_act_word(enum forward_act act)
{
	return acts[act];
}

const char *forward_found_word(enum forward_found found)
{
	return founds[found];
}

enum forward_act forward_act_of(struct slice word)
{
	enum forward_act act = FORWARD_LOOK;

	while (act < FORWARD_ACTS && !slice_eq(word, slice_of(acts[act])))
		act++;
	return act;
}

enum forward_found forward_found_of(struct slice word)
{
	for (enum forward_found found = FORWARD_OURS; found <= FORWARD_THEIRS; found++)
		if (slice_eq(word, slice_of(founds[found])))
			return found;
	return FORWARD_UNASKED;
}

/* ---- the words of the request ---- */

static size_t bytes_of(size_t argc, const struct slice *argv)
{
	return sizeof(struct lookup) + argc * sizeof(struct slice) + slice_sum(argc, argv);
}

size_t lookup_memory(const struct lookup *i)
{
	return bytes_of(i->argc, i->argv);
}

static struct lookup *new (struct client *c, size_t argc, const struct slice *argv)
{
	struct lookup *i = mem_new(sizeof(*i));
	size_t at = 0;

	i->client = c;
	i->work.kind = WORK_LOOKUP;
	i->argc = argc;
	i->argv = mem_new_array(argc, sizeof(i->argv[0]));
	for (size_t n = 0; n < argc; n++)
		at += argv[n].len;
	bytes_reserve(&i->text, at + 1);
	for (size_t n = 0; n < argc; n++)
		bytes_slice(&i->text, argv[n]);
	at = 0;
	for (size_t n = 0; n < argc; at += argv[n++].len)
		i->argv[n] = (struct slice){ i->text.data + at, argv[n].len };
	charge_force(&i->charge, c->account, POOL_MEMORY, lookup_memory(i));
	c->lookup = i;
	return i;
}

void lookup_free(struct lookup *i)
{
	work_drop(&i->client->locks->env->works, &i->work);
	assert(!i->forward);
	charge_give_back(&i->charge, POOL_MEMORY);
	for (size_t n = 0; n < i->fact_count; n++) {
		bytes_free(&i->facts[n].name);
		bytes_free(&i->facts[n].host);
		bytes_free(&i->facts[n].said);
	}
	mem_wipe(i->text.data, i->text.cap);
	bytes_free(&i->text);
	mem_free(i->argv);
	i->client->lookup = NULL;
	mem_free(i);
}

void lookup_ready(struct lookup *i)
{
	struct client *c = i->client;

	work_add(&c->locks->env->works, &c->user->worker, &i->work);
}

/* ---- the facts ---- */

static struct lookup_fact *find(struct lookup *i, struct slice name)
{
	for (size_t n = 0; i && n < i->fact_count; n++)
		if (slice_eq(bytes_view(&i->facts[n].name), name))
			return &i->facts[n];
	return NULL;
}

struct lookup_fact *lookup_find(struct lookup *i, struct slice name)
{
	struct lookup_fact *fact = find(i, name);

	assert(fact);
	return fact;
}

static bool is_done(const struct lookup_fact *fact, int act)
{
	return act != FORWARD_LOOK && fact->found[act] != FORWARD_UNASKED;
}

const struct lookup_fact *lookup_done(struct lookup *i, struct slice name)
{
	struct lookup_fact *fact = find(i, name);

	for (int act = 0; fact && act < FORWARD_ACTS; act++)
		if (is_done(fact, act))
			return fact;
	return NULL;
}

static bool admits(const struct call *call)
{
	struct client *c = call->client;

	if (c->lookup)
		return c->lookup->fact_count < LOOKUP_FACTS_MAX ||
		       reply_limit(c, "one request may be about 64 locks at most");
	return reply_affords(c, POOL_MEMORY, bytes_of(call->argc, call->argv));
}

static void told(struct query *q);

void lookup_ask(struct call *call, struct slice name, bool fresh)
{
	struct client *c = call->client;
	struct query *q = query_new(call->hosts, c, COMMAND_HOLDERS, name);

	c->lookup->asks = true;
	q->fresh = fresh;
	if (query_begin(q))
		told(q);
}

const struct lookup_fact *lookup_look(struct call *call, struct slice name)
{
	struct client *c = call->client;
	const struct lookup_fact *known = find(c->lookup, name);

	if (known || !admits(call))
		return known;
	if (!c->lookup)
		new (c, call->argc, call->argv);
	lookup_ask(call, name, false);
	return NULL;
}

/* The first that holds it elsewhere. Permits that wait for room are none. */
static const struct query_child *holder(const struct query *q)
{
	size_t count = q->part == QUERY_LOCK ? query_entitled(q) : q->count;

	for (size_t i = 0; i < count; i++)
		if (query_is_elsewhere(&q->children[i]) &&
		    (q->part == QUERY_LOCK || query_is_held(q, &q->children[i], i)))
			return &q->children[i];
	return NULL;
}

/* Results of forwards stay valid while the same session holds the lock. */
static void holds(struct lookup_fact *fact, const struct query *q, const struct query_child *child)
{
	struct participant p = participant_elsewhere(q->hosts, child);

	participant_veil(&p, q->client, bytes_view(&q->name));
	bytes_set(&fact->host, p.host);
	bytes_clear(&fact->said);
	participant_say(&fact->said, &p);
	if (fact->session != child->owner)
		memset(fact->found, 0, sizeof(fact->found));
	fact->session = child->owner;
}

static void told(struct query *q)
{
	struct lookup *i = q->client->lookup;
	struct lookup_fact *fact = find(i, bytes_view(&q->name));
	const struct query_child *child = holder(q);

	if (!fact)
		fact = &i->facts[i->fact_count++];
	bytes_set(&fact->name, bytes_view(&q->name));
	fact->held = child != NULL;
	fact->unknown = !child && (q->partial || q->refused) && !q->hosts->env->conf->standalone;
	fact->fresh = q->fresh;
	if (child)
		holds(fact, q, child);
	query_free(q);
	lookup_ready(i);
}

void lookup_answered(struct query *q)
{
	if (q->fresh || q->partial || q->refused || holder(q))
		told(q);
	else
		query_refresh(q);
}

/* ---- in a snapshot ---- */

/* A snapshot has what was done, so that it is not done twice. Facts that were only looked up are looked up again. */
static void write_done(const struct lookup *i, struct entry_writer *w)
{
	size_t count = 0;

	for (size_t n = 0; n < i->fact_count; n++)
		for (int act = 0; act < FORWARD_ACTS; act++)
			count += is_done(&i->facts[n], act);
	if (count)
		entry_list(w, "done", 3 * count);
	for (size_t n = 0; n < i->fact_count; n++)
		for (int act = 0; act < FORWARD_ACTS; act++)
			if (is_done(&i->facts[n], act)) {
				resp_bulk(w->out, bytes_view(&i->facts[n].name));
				resp_bulk(w->out, slice_of(forward_act_word(act)));
				resp_bulk(w->out, slice_of(forward_found_word(i->facts[n].found[act])));
			}
}

void lookup_snapshot(const struct lookup *i, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "inquiry");

	entry_number(&w, "client", i->client->conn);
	if (i->client->query)
		entry_text(&w, "asks", bytes_view(&i->client->query->name));
	entry_list(&w, "words", i->argc);
	for (size_t n = 0; n < i->argc; n++)
		resp_bulk(out, i->argv[n]);
	write_done(i, &w);
	entry_end(&w);
}

static bool read_one_done(struct lookup *i, const struct resp_value *triple)
{
	struct lookup_fact *fact = &i->facts[i->fact_count];
	enum forward_found found = forward_found_of(triple[2].text);
	enum forward_act act = forward_act_of(triple[1].text);

	if (!name_valid(triple[0].text) || find(i, triple[0].text) || act == FORWARD_ACTS || found == FORWARD_UNASKED)
		return false;
	i->fact_count++;
	bytes_slice(&fact->name, triple[0].text);
	fact->held = true;
	fact->found[act] = found;
	return true;
}

static bool read_done(struct lookup *i, const struct entry *e)
{
	const struct resp_value *list = entry_get_list(e, "done");
	int64_t values = list ? list->integer : 0;

	if (values < 0 || values % 3 || values / 3 > LOOKUP_FACTS_MAX || (list && (int64_t)list->span != values + 1))
		return entry_refuse(e, "the list of facts is no list");
	for (int64_t n = 1; n <= values; n++)
		if (list[n].type != RESP_BULK)
			return entry_refuse(e, "a fact is no word");
	for (int64_t n = 1; n <= values; n += 3)
		if (!read_one_done(i, list + n))
			return entry_refuse(e, "a fact is not possible");
	return true;
}

bool lookup_restore(struct hosts *h, const struct entry *e)
{
	struct client *c = lock_restore_client(h->locks, e);
	const struct resp_value *words = entry_get_list(e, "words");
	struct slice *argv, asks;
	size_t argc;

	if (!c || !entry_get_text(e, "asks", NAME_BYTES_MAX, &asks))
		return false;
	if (!words || words->integer < 1 || (int64_t)words->span != words->integer + 1 || c->lookup || c->query ||
	    c->bearer || !c->asking || (asks.len && !name_valid(asks)))
		return entry_refuse(e, "the words are no request");
	argc = (size_t)words->integer;
	for (size_t n = 0; n < argc; n++)
		if (words[1 + n].type != RESP_BULK)
			return entry_refuse(e, "a word is none");
	argv = mem_new_array(argc, sizeof(argv[0]));
	for (size_t n = 0; n < argc; n++)
		argv[n] = words[1 + n].text;
	new (c, argc, argv);
	mem_free(argv);
	if (!read_done(c->lookup, e))
		return false;
	if (asks.len && c->lookup->fact_count == LOOKUP_FACTS_MAX && !find(c->lookup, asks))
		return entry_refuse(e, "there is no room for its question");
	if (!asks.len) {
		lookup_ready(c->lookup);
		return true;
	}
	c->lookup->asks = true;
	query_new(h, c, COMMAND_HOLDERS, asks);
	query_go_last(c->query);
	return true;
}
