/* SPDX-License-Identifier: Apache-2.0 */
#include "core/snapshot.h"

#include <assert.h>

#include "base/mem.h"
#include "core/check.h"
#include "core/claim/charge.h"
#include "core/claim/directory_snapshot.h"
#include "core/client/bid.h"
#include "core/client/client_snapshot.h"
#include "core/client/halt.h"
#include "core/connection.h"
#include "core/hosts/letter_snapshot.h"
#include "core/kind/observe.h"
#include "core/kind/payer.h"
#include "core/lock/bearer.h"
#include "core/lock/lock_snapshot.h"
#include "core/port/entry.h"
#include "core/session/ensemble_snapshot.h"
#include "core/state.h"

enum {
	TEXT_MAX = 4096,
	BESIDE = 64, /* bytes beside each struct: its text, its places in tables, the allocator's */
};

/* ---- marks ---- */

struct marked_list {
	struct marked {
		uint32_t mark;
		void *what;
	} *list;
	size_t count, cap;
	void **sorted; /* by mark; the first mark is 1 */
};

struct marks {
	struct marked_list grants, requests, observers;
	bool sorted; /* sort_marks() has run */
};

/* Of all grants, requests and observers; before a snapshot is written. */
static void set_marks(const struct locks *locks)
{
	uint32_t grants = 0, requests = 0, observers = 0;
	struct observer *o;
	struct request *r;
	struct client *c;
	struct grant *g;

	TAILQ_FOREACH(c, &locks->clients, link) {
		TAILQ_FOREACH(g, &c->grants, client_link)
			g->mark = ++grants;
		TAILQ_FOREACH(r, &c->requests, client_link)
			r->mark = ++requests;
		TAILQ_FOREACH(o, &c->observers, client_link)
			o->mark = ++observers;
	}
}

/* Appends what was read with that mark; returns `what`. */
static void *note_mark(struct marked_list *all, uint32_t mark, void *what)
{
	if (all->count == all->cap) {
		all->cap = all->cap ? all->cap * 2 : 64;
		all->list = mem_resize(all->list, all->cap * sizeof(*all->list));
	}
	all->list[all->count++] = (struct marked){ mark, what };
	return what;
}

static bool sort_list(struct marked_list *all)
{
	all->sorted = mem_new_array(all->count + 1, sizeof(void *));
	for (size_t i = 0; i < all->count; i++) {
		const struct marked *m = &all->list[i];

		if (m->mark < 1 || m->mark > all->count || all->sorted[m->mark - 1])
			return false;
		all->sorted[m->mark - 1] = m->what;
	}
	return true;
}

/* All are noted: puts the clients' lists in order, the first time. False: the marks are not 1, 2, ..., each once. */
static bool sort_marks(struct marks *m)
{
	if (m->sorted)
		return true;
	m->sorted = true;
	if (!sort_list(&m->grants) || !sort_list(&m->requests) || !sort_list(&m->observers))
		return false;
	for (size_t i = 0; i < m->grants.count; i++) {
		struct grant *g = m->grants.sorted[i];

		TAILQ_REMOVE(&g->client->grants, g, client_link);
		TAILQ_INSERT_TAIL(&g->client->grants, g, client_link);
	}
	for (size_t i = 0; i < m->requests.count; i++) {
		struct request *r = m->requests.sorted[i];

		TAILQ_REMOVE(&r->client->requests, r, client_link);
		TAILQ_INSERT_TAIL(&r->client->requests, r, client_link);
	}
	for (size_t i = 0; i < m->observers.count; i++) {
		struct observer *o = m->observers.sorted[i];

		TAILQ_REMOVE(&o->client->observers, o, client_link);
		TAILQ_INSERT_TAIL(&o->client->observers, o, client_link);
	}
	return true;
}

static void forget(struct marked_list *all)
{
	mem_free(all->list);
	mem_free(all->sorted);
}

static void forget_marks(struct marks *m)
{
	forget(&m->grants);
	forget(&m->requests);
	forget(&m->observers);
}

/* ---- the parts that are the broker's own ---- */

static const struct field broker_fields[] = {
	FIELD_INSTANT(struct broker, "now", env.now_ns),     FIELD_ANY(struct broker, "random", env.random.state),
	FIELD_FLAG(struct broker, "stopping", env.stopping), FIELD_FLAG(struct broker, "started", started),
	FIELD_FLAG(struct broker, "draining", env.draining), FIELD_FLAG(struct broker, "stopped", stopped),
	FIELD_FLAG(struct broker, "refused", refused),       FIELD_FLAG(struct broker, "halting", locks.halting.on),
	FIELD_ANY(struct broker, "knock key", locks.attempted.key[0]),
	FIELD_ANY(struct broker, "knock key 2", locks.attempted.key[1]),
};

/* clang-format off */
static const struct field stats_fields[] = {
	FIELD_ANY(struct stats, "since", since_s),
#define X(name, text) FIELD_ANY(struct stats, #name, name),
	BROKER_STATS(X)
#undef X
};

_Static_assert(HISTOGRAM_CLASSES == 16, "each has a field");
static const struct field histogram_fields[] = {
#define X(i) FIELD_ANY(struct histogram, #i, counts[i])
	X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15),
#undef X
	FIELD_ANY(struct histogram, "sum", sum_ns),
};
/* clang-format on */

static const struct {
	const char *name;
	size_t at; /* in struct stats */
} histograms[] = {
#define X(name, text) { #name, offsetof(struct stats, name) },
	BROKER_HISTOGRAMS(X)
#undef X
};

/* What is never used twice. */
static const struct field last_fields[] = {
	FIELD_NUMBER(struct broker, "client", locks.last_client, 0, INT64_MAX - 1),
	FIELD_NUMBER(struct broker, "claim", directories.last_claim, 0, INT64_MAX - 1),
	FIELD_NUMBER(struct broker, "nonce", directories.last_nonce, 0, INT64_MAX - 1),
	FIELD_NUMBER(struct broker, "token", directories.token_next, 0, INT64_C(1) << 52),
	FIELD_NUMBER(struct broker, "token limit", directories.token_limit, 0, INT64_C(1) << 52),
	FIELD_NUMBER(struct broker, "letter", hosts.outbox_last, 0, INT64_MAX - 1),
	FIELD_NUMBER(struct broker, "query", hosts.last_query, 0, INT64_MAX - 1),
	FIELD_NUMBER(struct broker, "sweep", hosts.audit.sweep, 0, INT64_MAX - 1),
};

/* ---- writing ---- */

/* What decides where locks live. */
static void write_prefixes(const struct broker_conf *conf, struct bytes *out)
{
	for (size_t i = 0; i < conf->prefix_count; i++) {
		const struct broker_prefix *p = &conf->prefixes[i];

		bytes_format(out, "%q %s %q\n", p->prefix, flavour_word(p->flavour), p->path);
	}
}

/* What tells where locks live. */
static void write_place(const struct broker_conf *conf, struct entry_writer *w)
{
	struct bytes prefixes = { 0 };

	entry_number(w, "standalone", conf->standalone);
	entry_text(w, "root", slice_of(conf->root));
	entry_text(w, "host", slice_of(conf->host));
	write_prefixes(conf, &prefixes);
	entry_text(w, "prefixes", bytes_view(&prefixes));
	bytes_free(&prefixes);
}

uint64_t snapshot_place(const struct broker_conf *conf)
{
	struct bytes text = { 0 };
	struct entry_writer w = entry_begin(&text, "place");
	uint64_t place;

	write_place(conf, &w);
	place = seal_checksum(bytes_view(&text));
	bytes_free(&text);
	return place;
}

/* One that has counted nothing is left out, as anything that is as it begins. */
static void write_histogram(const char *name, const void *histogram, struct bytes *out)
{
	static const struct histogram nothing;
	struct entry_writer w;

	if (memcmp(histogram, &nothing, sizeof(nothing)) == 0)
		return;
	w = entry_begin(out, "histogram");
	entry_text(&w, "name", slice_of(name));
	entry_fields(&w, FIELDS(histogram_fields), histogram);
	entry_end(&w);
}

static void write_broker(const struct broker *b, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "broker");

	entry_fields(&w, FIELDS(broker_fields), b);
	entry_due(&w, "stop", &b->stop_timer);
	write_place(b->env.conf, &w);
	entry_end(&w);
	w = entry_begin(out, "stats");
	entry_fields(&w, FIELDS(stats_fields), &b->env.stats);
	entry_end(&w);
	for (size_t i = 0; i < sizeof(histograms) / sizeof(histograms[0]); i++)
		write_histogram(histograms[i].name, (const char *)&b->env.stats + histograms[i].at, out);
}

void snapshot_begin(const struct broker *b, struct bytes *out)
{
	write_broker(b, out);
	ensemble_snapshot(&b->ensemble, out);
	lasting_snapshot(&b->directories, out);
}

void snapshot_end(const struct broker *b, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "last");

	entry_fields(&w, FIELDS(last_fields), b);
	entry_end(&w);
}

static void write_all(const struct broker *b, struct bytes *out)
{
	const struct client *c;
	const struct lock *lock;

	snapshot_begin(b, out);
	TAILQ_FOREACH(c, &b->locks.clients, link)
		(c->bearer ? bearer_snapshot : connection_snapshot)(c, NULL, out);
	TAILQ_FOREACH(lock, &b->locks.used, link)
		lock_snapshot(lock, out);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		lock_snapshot(lock, out);
	TAILQ_FOREACH(c, &b->locks.clients, link)
		client_snapshot(c, out);
	place_snapshot_notes(&b->locks, out);
	letters_snapshot(&b->hosts, out);
	snapshot_end(b, out);
}

void broker_snapshot(const struct broker *b, struct bytes *ret)
{
	size_t begin = seal_begin(ret);

	assert(TAILQ_EMPTY(&b->locks.closing) && TAILQ_EMPTY(&b->locks.outcomes) && TAILQ_EMPTY(&b->locks.mlocks));
	set_marks(&b->locks);
	write_all(b, ret);
	seal_end(ret, begin);
}

size_t snapshot_memory(const struct broker *b)
{
	const struct locks *l = &b->locks;

	return l->names.count * (sizeof(struct lock) + BESIDE) + l->client_count * (sizeof(struct client) + BESIDE) +
	       l->grant_count * (sizeof(struct grant) + BESIDE) + l->request_count * (sizeof(struct request) + BESIDE) +
	       b->directories.claim_count * (sizeof(struct claim) + BESIDE) + b->env.accounts.pools[POOL_MEMORY].used;
}

/* ---- reading: an entry ---- */

struct restoring {
	struct broker *b;
	struct lock *lock; /* that the next entries are about */
	struct directory *directory;
	struct marks marks;
	bool whole; /* the last entry is read */
};

static bool sort(struct restoring *r, const struct entry *e)
{
	return sort_marks(&r->marks) || entry_refuse(e, "the marks are wrong before the first");
}

/* What needs nothing but that part of the broker. */
#define READ(noun, part) \
	static bool read_##noun(struct restoring *r, const struct entry *e) \
	{ \
		return noun##_restore(&r->b->part, e); \
	}

READ(lasting, directories)
READ(session, ensemble)
READ(former, ensemble)
READ(rival, ensemble)
READ(bearer, locks)
READ(lookup, hosts)
READ(query, hosts)
READ(audit, hosts)
READ(letter, hosts)

/* What has a mark, and is of the lock. */
#define READ_MARKED(noun) \
	static bool read_##noun(struct restoring *r, const struct entry *e) \
	{ \
		struct noun *is = noun##_restore(r->lock, e); \
\
		return is && note_mark(&r->marks.noun##s, is->mark, is); \
	}

READ_MARKED(request)
READ_MARKED(grant)
READ_MARKED(observer)

static bool read_stats(struct restoring *r, const struct entry *e)
{
	return entry_get_fields(e, FIELDS(stats_fields), &r->b->env.stats);
}

/* One that only another version knows is skipped. */
static bool read_histogram(struct restoring *r, const struct entry *e)
{
	struct slice name;

	if (!entry_get_text(e, "name", TEXT_MAX, &name))
		return false;
	for (size_t i = 0; i < sizeof(histograms) / sizeof(histograms[0]); i++)
		if (slice_eq(name, slice_of(histograms[i].name)))
			return entry_get_fields(e, FIELDS(histogram_fields), (char *)&r->b->env.stats + histograms[i].at);
	return true;
}

static bool read_client(struct restoring *r, const struct entry *e)
{
	return connection_restore(r->b, e);
}

static bool read_attempt(struct restoring *r, const struct entry *e)
{
	return place_restore_note(&r->b->locks, e);
}

static bool read_lock(struct restoring *r, const struct entry *e)
{
	r->lock = lock_restore(&r->b->locks, e);
	r->directory = r->lock ? &r->lock->directory : NULL;
	return r->lock != NULL;
}

static bool read_slots(struct restoring *r, const struct entry *e)
{
	r->directory = r->lock->slots;
	return r->directory ? directory_restore(r->directory, e) : entry_refuse(e, "the lock is no semaphore");
}

static bool read_claim(struct restoring *r, const struct entry *e)
{
	if (!r->directory || r->lock->idle)
		return entry_refuse(e, "there is no directory");
	return claim_restore(r->directory, e);
}

static bool read_notification(struct restoring *r, const struct entry *e)
{
	struct client_marks marks;

	if (!sort(r, e))
		return false;
	marks = (struct client_marks){ (struct grant *const *)r->marks.grants.sorted, r->marks.grants.count,
				       (struct observer *const *)r->marks.observers.sorted, r->marks.observers.count };
	return notification_restore(&r->b->locks, &marks, e);
}

static bool read_mlock(struct restoring *r, const struct entry *e)
{
	return sort(r, e) && mlock_restore(&r->b->locks, e);
}

static bool read_bid(struct restoring *r, const struct entry *e)
{
	return sort(r, e) && bid_restore(&r->b->locks, e);
}

static bool read_last(struct restoring *r, const struct entry *e)
{
	r->whole = true;
	if (!sort(r, e))
		return false;
	for (size_t i = 0; i < r->marks.observers.count; i++)
		observe_resume(r->marks.observers.sorted[i]);
	return entry_get_fields(e, FIELDS(last_fields), r->b);
}

/* Of the words those behind a lock are about that, and those of its kind, too. Words of later versions are skipped. */
static bool read_entry(struct restoring *r, const struct entry *e)
{
	static const struct {
		const char *word;
		bool of_lock;
		bool (*read)(struct restoring *r, const struct entry *e);
	} readers[] = {
		{ "claim", true, read_claim },      { "lock", false, read_lock },
		{ "grant", true, read_grant },      { "request", true, read_request },
		{ "client", false, read_client },   { "observer", true, read_observer },
		{ "slots", true, read_slots },      { "notification", false, read_notification },
		{ "mlock", false, read_mlock },     { "query", false, read_query },
		{ "letter", false, read_letter },   { "stats", false, read_stats },
		{ "session", false, read_session }, { "former", false, read_former },
		{ "rival", false, read_rival },     { "last", false, read_last },
		{ "audit", false, read_audit },     { "histogram", false, read_histogram },
		{ "bearer", false, read_bearer },   { "bid", false, read_bid },
		{ "inquiry", false, read_lookup }, { "knock", false, read_attempt },
		{ "lasting", false, read_lasting },
	};

	if (r->whole)
		return entry_refuse(e, "it is behind the last one, the beginning");
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		if (!slice_eq(e->word, slice_of(readers[i].word)))
			continue;
		if (readers[i].of_lock && (!r->lock || r->marks.sorted))
			return entry_refuse(e, "there is no lock");
		return readers[i].read(r, e);
	}
	return !r->lock || r->marks.sorted || !r->lock->rule->restore || r->lock->rule->restore(r->lock, e);
}

/* ---- reading: the whole ---- */

/* The locks of that entry live where this configuration says. */
static bool is_same_place(const struct broker_conf *conf, const struct entry *e)
{
	struct slice root, host, prefixes;
	struct bytes mine = { 0 };
	bool standalone, same;

	if (!entry_get_flag(e, "standalone", &standalone) || !entry_get_text(e, "root", TEXT_MAX, &root) ||
	    !entry_get_text(e, "host", TEXT_MAX, &host) || !entry_get_text(e, "prefixes", SIZE_MAX, &prefixes))
		return false;
	write_prefixes(conf, &mine);
	same = standalone == conf->standalone && slice_eq(root, slice_of(conf->root)) &&
	       slice_eq(host, slice_of(conf->host)) && slice_eq(prefixes, bytes_view(&mine));
	bytes_free(&mine);
	return same || entry_refuse(e, "the configuration has another host, root, prefix or mode than that");
}

/* The first entry says whose state it is, and begins the new broker. */
static struct broker *begin(const struct broker_conf *conf, const struct entry *e, int64_t now_ns)
{
	struct broker *b;

	if (!slice_eq(e->word, SLICE("broker"))) {
		entry_refuse(e, "something else comes before the first");
		return NULL;
	}
	if (!is_same_place(conf, e))
		return NULL;
	b = broker_new(conf, 0, now_ns);
	b->ensemble.formers.count = 0;
	b->locks.restoring = b->restored = true;
	if (entry_get_fields(e, FIELDS(broker_fields), b) && entry_get_due(e, "stop", &b->env.timers, &b->stop_timer)) {
		if (b->env.now_ns <= now_ns && b->env.now_ns >= 0)
			return b;
		entry_refuse(e, "this clock has not come to the instant");
	}
	broker_free(b);
	return NULL;
}

/* What follows from the rest, and is not written. */
static void derive(struct broker *b)
{
	struct directory *d;
	struct lock *lock;

	while ((d = TAILQ_FIRST(&b->directories.touched)))
		directory_untouch(d);
	b->locks.restoring = false;
	budget_limits(&b->env, &b->ensemble.budget);
	TAILQ_FOREACH(lock, &b->locks.used, link) {
		payer_settle(lock);
		batch_resume(lock);
		LOCK_DIRECTORIES(d, lock)
	charge_recount(d);
	}
	halt_resume(&b->locks);
}

/* Numbers that are never used twice are behind those that are used. */
static bool is_consistent(const struct broker *b, struct bytes *why)
{
	const char *wrong = broker_wrong(b);
	const struct directory *d;
	const struct lock *lock;
	const struct client *c;
	const struct claim *k;

	if (wrong) {
		bytes_format(why, "it contradicts itself: %s", wrong);
		return false;
	}
	TAILQ_FOREACH(c, &b->locks.clients, link)
		if (c->id > b->locks.last_client)
			wrong = "client";
	TAILQ_FOREACH(lock, &b->locks.used, link)
		LOCK_DIRECTORIES(d, lock)
	CLAIM_FOREACH(k, d)
		if (k->number > b->directories.last_claim || (k->nonce & ~CONTENDER_TRY) > b->directories.last_nonce)
			wrong = "claim";
	if (wrong)
		bytes_format(why, "it contradicts itself: the last %s is not the last", wrong);
	return !wrong;
}

/* False: *why says why. */
static bool read_all(struct restoring *r, struct entry_reader *reader, const struct broker_conf *conf, int64_t now_ns)
{
	struct entry e;

	if (!entry_next(reader, &e))
		return false;
	r->b = begin(conf, &e, now_ns);
	while (r->b && entry_next(reader, &e))
		if (!read_entry(r, &e))
			return false;
	if (!r->b || reader->why->len)
		return false;
	if (!r->whole)
		return entry_refuse(&(struct entry){ .word = SLICE("last"), .why = reader->why }, "it lacks the end");
	derive(r->b);
	return is_consistent(r->b, reader->why);
}

struct broker *broker_restore(const struct broker_conf *conf, struct slice text, int64_t now_ns, struct bytes *why)
{
	struct restoring r = { 0 };
	struct entry_reader reader;
	struct slice body;
	bool good;

	bytes_clear(why);
	body = seal_open(text, why);
	if (!body.data)
		return NULL;
	entry_reader_init(&reader, body, why);
	good = read_all(&r, &reader, conf, now_ns);
	entry_reader_deinit(&reader);
	forget_marks(&r.marks);
	if (good)
		return r.b;
	if (!why->len)
		bytes_text(why, "it is garbled");
	broker_free(r.b);
	return NULL;
}
