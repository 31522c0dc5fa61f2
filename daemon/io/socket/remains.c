/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/remains.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/charge.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/queue.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/socket/page_file.h"
#include "io/socket/disposer.h"
#include "protocol/bytes_format.h"

enum { NAMED = 3 };

void remains_propose(struct remains_tally *t, uint32_t pid)
{
	size_t free_at = REMAINS_TOP;

	for (size_t i = 0; i < REMAINS_TOP; i++) {
		if (t->top[i].votes && t->top[i].pid == pid) {
			t->top[i].votes++;
			return;
		}
		if (!t->top[i].votes)
			free_at = i;
	}
	if (free_at < REMAINS_TOP) {
		t->top[free_at].pid = pid;
		t->top[free_at].votes = 1;
		return;
	}
	for (size_t i = 0; i < REMAINS_TOP; i++)
		t->top[i].votes--;
}

void remains_count(struct remains_tally *t, uint32_t pid, uint32_t bytes)
{
	t->count++;
	t->bytes += bytes;
	for (size_t i = 0; i < REMAINS_TOP; i++)
		if (t->top[i].votes && t->top[i].pid == pid)
			t->top[i].count++;
}

/* The place of the one who has most of those that were not named yet; REMAINS_TOP: there is none. */
static size_t next(const struct remains_tally *t, const bool *named)
{
	size_t most = REMAINS_TOP;

	for (size_t i = 0; i < REMAINS_TOP; i++)
		if (!named[i] && t->top[i].count && (most == REMAINS_TOP || t->top[i].count > t->top[most].count))
			most = i;
	return most;
}

static void name(const struct remains_tally *t, struct bytes *out)
{
	bool named[REMAINS_TOP] = { false };
	size_t left = t->count;

	bytes_format(out, "%d (", t->count);
	for (size_t i = 0, at; i < NAMED && (at = next(t, named)) < REMAINS_TOP; i++) {
		named[at] = true;
		left -= t->top[at].count;
		bytes_format(out, "%sprocess %d: %d", i ? ", " : "", t->top[at].pid, t->top[at].count);
	}
	if (left)
		bytes_format(out, "%sothers: %d", left < t->count ? ", " : "", left);
	bytes_char(out, ')');
}

void remains_answers_text(const struct remains_tally *t, struct bytes *out)
{
	if (!t->count)
		return;
	bytes_format(out, "connections that have ended with unread answers (%d bytes): ", t->bytes);
	name(t, out);
}

/* `late`: how many more pages nobody has open any longer. */
static void remains_pages_text(const struct remains_tally *t, size_t late, struct bytes *out)
{
	if (t->count) {
		bytes_text(out, "pages of ended connections that are still open: ");
		name(t, out);
	}
	if (late)
		bytes_format(out, "%spages that are closed, and count for a while yet: %d", t->count ? "; " : "", late);
}

enum kind { ANSWERS, REFUSAL, PAGE, KINDS };

TAILQ_HEAD(remain_list, remain);
TAILQ_HEAD(owner_list, owner);

struct remain {
	struct owner *owner;
	enum kind kind;
	int fd;
	uint32_t pid, bytes;
	TAILQ_ENTRY(remain) all; /* remains->all; the one whose latest look is longest ago is first, as in: */
	TAILQ_ENTRY(remain) own; /* owner->lists[kind] */
};

struct owner {
	struct map_node node; /* remains->owners */
	struct account *account;
	struct remain_list lists[KINDS];
	size_t counts[KINDS], late;
	bool is_changed;              /* since its text was written */
	int64_t told_ns;              /* when that was */
	TAILQ_ENTRY(owner) link;      /* remains->changed, while is_changed */
	TAILQ_ENTRY(owner) late_link; /* remains->late, while any is */
};

struct remains {
	struct feed *feed;
	struct disposer *disposer;
	struct map owners;
	struct remain_list all;
	struct owner_list changed, late;
	size_t refusals;
	int64_t spent_ns; /* for the late ones: as if the latest one went back then, at the regular pace */
};

static const enum socket_pool pools[KINDS] = { SOCKET_CONNECTIONS, SOCKET_POOLS, SOCKET_PAGES };

struct remains *remains_new(struct feed *feed, struct disposer *disposer)
{
	struct remains *r = mem_new(sizeof(*r));

	r->feed = feed;
	r->disposer = disposer;
	r->spent_ns = INT64_MIN;
	map_init(&r->owners, 0, 0); /* nobody can choose addresses that collide */
	TAILQ_INIT(&r->all);
	TAILQ_INIT(&r->changed);
	TAILQ_INIT(&r->late);
	return r;
}

/* ---- accounts ---- */

static struct owner *find(const struct remains *r, const struct account *account, uint64_t hash)
{
	struct owner *o;

	MAP_FOREACH(o, &r->owners, hash, node)
		if (o->account == account)
			return o;
	return NULL;
}

static struct owner *find_of(const struct remains *r, const struct account *account)
{
	return find(r, account, map_hash(&r->owners, &account, sizeof(account)));
}

static struct owner *find_or_make(struct remains *r, struct account *account)
{
	uint64_t hash = map_hash(&r->owners, &account, sizeof(account));
	struct owner *o = find(r, account, hash);

	if (o)
		return o;
	o = mem_new(sizeof(*o));
	o->account = account;
	account->references++;
	for (int kind = 0; kind < KINDS; kind++)
		TAILQ_INIT(&o->lists[kind]);
	map_add(&r->owners, &o->node, hash);
	return o;
}

static void tally(const struct remain_list *list, struct remains_tally *ret)
{
	const struct remain *one;

	TAILQ_FOREACH(one, list, own)
		remains_propose(ret, one->pid);
	TAILQ_FOREACH(one, list, own)
		remains_count(ret, one->pid, one->bytes);
}

static void tell(struct owner *o, int64_t now_ns)
{
	struct remains_tally answers = { .count = 0 }, pages = { .count = 0 };
	struct bytes text = { 0 };

	tally(&o->lists[ANSWERS], &answers);
	remains_answers_text(&answers, &text);
	account_keeps(o->account, SOCKET_CONNECTIONS, bytes_view(&text).data, text.len);
	bytes_clear(&text);
	tally(&o->lists[PAGE], &pages);
	remains_pages_text(&pages, o->late, &text);
	account_keeps(o->account, SOCKET_PAGES, bytes_view(&text).data, text.len);
	bytes_free(&text);
	o->told_ns = now_ns;
}

static void changed(struct remains *r, struct owner *o)
{
	if (o->is_changed)
		return;
	o->is_changed = true;
	TAILQ_INSERT_TAIL(&r->changed, o, link);
}

static void tell_changed(struct remains *r, struct owner *o, int64_t now_ns)
{
	TAILQ_REMOVE(&r->changed, o, link);
	o->is_changed = false;
	tell(o, now_ns);
}

/* Frees it if nothing of it is kept any longer. */
static void leave(struct remains *r, struct owner *o)
{
	if (o->late || o->counts[ANSWERS] || o->counts[REFUSAL] || o->counts[PAGE])
		return;
	if (o->is_changed)
		TAILQ_REMOVE(&r->changed, o, link);
	account_keeps(o->account, SOCKET_CONNECTIONS, NULL, 0);
	account_keeps(o->account, SOCKET_PAGES, NULL, 0);
	map_remove(&r->owners, &o->node);
	account_leave(o->account);
	mem_free(o);
}

/* ---- pages that nobody has open ---- */

/* One may go back now. */
static bool late_may_go(struct remains *r)
{
	int64_t now_ns = feed_now(r->feed), least_ns = now_ns - REMAINS_LATE_BURST * REMAINS_LATE_NS;

	if (r->spent_ns < least_ns)
		r->spent_ns = least_ns;
	if (r->spent_ns + REMAINS_LATE_NS > now_ns)
		return false;
	r->spent_ns += REMAINS_LATE_NS;
	return true;
}

static void add_late(struct remains *r, struct owner *o)
{
	charge_add(o->account, SOCKET_PAGES, 1);
	if (!o->late++)
		TAILQ_INSERT_TAIL(&r->late, o, late_link);
	changed(r, o);
}

/* Its account is the last in line for the next one. */
static void end_late(struct remains *r, struct owner *o)
{
	TAILQ_REMOVE(&r->late, o, late_link);
	charge_remove(o->account, SOCKET_PAGES, 1);
	if (--o->late)
		TAILQ_INSERT_TAIL(&r->late, o, late_link);
	changed(r, o);
	leave(r, o);
}

/* ---- what is kept ---- */

static bool has_unread(int fd, uint32_t *ret_bytes)
{
	int bytes = 0;

	if (ioctl(fd, SIOCOUTQ, &bytes) < 0 || bytes <= 0)
		return false;
	*ret_bytes = (uint32_t)bytes;
	return true;
}

static bool is_kept(struct remain *one)
{
	if (one->kind == PAGE)
		return !page_file_is_alone(one->fd);
	return has_unread(one->fd, &one->bytes);
}

static struct remain *add(struct remains *r, struct account *account, enum kind kind, int fd, uint32_t pid)
{
	struct remain *one = mem_new(sizeof(*one));
	struct owner *o = find_or_make(r, account);

	*one = (struct remain){ .owner = o, .kind = kind, .fd = fd, .pid = pid };
	if (kind == REFUSAL)
		r->refusals++;
	else
		charge_add(account, pools[kind], 1);
	o->counts[kind]++;
	TAILQ_INSERT_TAIL(&o->lists[kind], one, own);
	TAILQ_INSERT_TAIL(&r->all, one, all);
	changed(r, o);
	return one;
}

/* Nobody keeps it any longer, or the daemon ends; its owner stays. */
static void end(struct remains *r, struct remain *one)
{
	struct owner *o = one->owner;

	TAILQ_REMOVE(&r->all, one, all);
	TAILQ_REMOVE(&o->lists[one->kind], one, own);
	o->counts[one->kind]--;
	changed(r, o);
	if (one->kind == PAGE)
		close(one->fd);
	else
		disposer_take(r->disposer, one->fd, o->account);
	if (one->kind == REFUSAL)
		r->refusals--;
	else
		charge_remove(o->account, pools[one->kind], 1);
	mem_free(one);
}

/* False: it is kept still. */
static bool look(struct remains *r, struct remain *one)
{
	struct owner *o = one->owner;
	bool was_page = one->kind == PAGE;

	if (is_kept(one)) {
		TAILQ_REMOVE(&r->all, one, all);
		TAILQ_INSERT_TAIL(&r->all, one, all);
		TAILQ_REMOVE(&o->lists[one->kind], one, own);
		TAILQ_INSERT_TAIL(&o->lists[one->kind], one, own);
		return false;
	}
	end(r, one);
	if (was_page && !late_may_go(r))
		add_late(r, o);
	return true;
}

static uint32_t process_of(int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ? 0 : (uint32_t)cred.pid;
}

bool remains_keep_answers(struct remains *r, struct account *account, int fd)
{
	uint32_t bytes;

	if (!has_unread(fd, &bytes))
		return false;
	add(r, account, ANSWERS, fd, process_of(fd))->bytes = bytes;
	/* The keeper, or the process of a hand-over, may have the socket, too: then close() would not end the connection. */
	shutdown(fd, SHUT_RDWR);
	return true;
}

void remains_take_page(struct remains *r, struct account *account, int fd, int page)
{
	if (page_file_is_shared(page)) {
		close(page);
		return;
	}
	look(r, add(r, account, PAGE, page, process_of(fd)));
	leave(r, find_of(r, account));
}

/* ---- what is refused ---- */

/* One more of that kind may be charged to the account. */
static bool has_room(const struct remains *r, const struct account *account, enum kind kind, bool privileged)
{
	const struct owner *o;

	if (kind != REFUSAL)
		return account_may(account, pools[kind], 1, privileged);
	o = find_of(r, account);
	return r->refusals < SOCKET_REFUSALS_MAX && (!o || o->counts[REFUSAL] < REMAINS_REFUSALS);
}

/* If there is none, looks at up to so many of that account, those whose latest look is longest ago. */
static bool make_room(struct remains *r, struct account *account, enum kind kind, bool privileged)
{
	bool room = has_room(r, account, kind, privileged);
	struct owner *o = room ? NULL : find_of(r, account);
	size_t left;

	if (!o)
		return room;
	left = o->counts[kind] < REMAINS_LOOK_MAX ? o->counts[kind] : REMAINS_LOOK_MAX;
	while (!room && left--)
		if (look(r, TAILQ_FIRST(&o->lists[kind])))
			room = has_room(r, account, kind, privileged);
	if (!room && o->is_changed && (!o->told_ns || feed_seen(r->feed) - o->told_ns >= CLOCK_NS_PER_S))
		tell_changed(r, o, feed_seen(r->feed));
	leave(r, o);
	return room;
}

bool remains_admit(struct remains *r, struct account *account, enum socket_pool pool, bool privileged)
{
	return make_room(r, account, pool == SOCKET_PAGES ? PAGE : ANSWERS, privileged);
}

bool remains_may_tell(struct remains *r, struct account *account)
{
	return make_room(r, account, REFUSAL, false);
}

void remains_take_refusal(struct remains *r, struct account *account, int fd)
{
	shutdown(fd, SHUT_RDWR);
	add(r, account, REFUSAL, fd, 0);
}

/* ---- once a second ---- */

static void tell_all(struct remains *r, int64_t until_ns)
{
	struct owner *o;

	while ((o = TAILQ_FIRST(&r->changed)) && feed_now(r->feed) < until_ns)
		tell_changed(r, o, feed_seen(r->feed));
}

/* Where there are so many that looking at them takes all the time, the texts are those of the look before. */
void remains_look(struct remains *r, int64_t until_ns)
{
	const struct remain *last = TAILQ_LAST(&r->all, remain_list);
	struct remain *one;
	struct owner *o;
	bool more = last;
	int64_t now_ns = feed_now(r->feed);

	tell_all(r, now_ns + (until_ns - now_ns) / 2);
	while (more && feed_now(r->feed) < until_ns) {
		one = TAILQ_FIRST(&r->all);
		more = one != last;
		o = one->owner;
		if (look(r, one))
			leave(r, o);
	}
	while ((o = TAILQ_FIRST(&r->late)) && late_may_go(r))
		end_late(r, o);
	tell_all(r, until_ns);
}

bool remains_is_empty(const struct remains *r)
{
	return !r->owners.count;
}

void remains_free(struct remains *r)
{
	struct remain *one;
	struct owner *o;

	if (!r)
		return;
	while ((one = TAILQ_FIRST(&r->all))) {
		o = one->owner;
		end(r, one);
		leave(r, o);
	}
	while ((o = TAILQ_FIRST(&r->late)))
		end_late(r, o);
	map_deinit(&r->owners);
	mem_free(r);
}

/* ---- a hand-over ---- */

static const char *const records[KINDS] = { [ANSWERS] = "unread", [PAGE] = "page_left" };

void remains_pack(const struct remains *r, struct parcel *p)
{
	const struct remain *one;
	struct entry_writer w;

	TAILQ_FOREACH(one, &r->all, all) {
		if (!records[one->kind])
			continue;
		w = entry_begin(&p->text, records[one->kind]);
		parcel_fd(p, &w, "fd", one->fd);
		entry_number(&w, "uid", one->owner->account->uid);
		entry_text(&w, "unit", slice_of(one->owner->account->unit));
		entry_number(&w, "pid", one->pid);
		entry_end(&w);
	}
}

bool remains_unpack(struct remains *r, struct accounts *accounts, struct parcel *p, const struct entry *e)
{
	struct slice unit = parcel_get_text(e, "unit");
	struct account *account;
	enum kind kind = ANSWERS;
	int fd;

	while (kind < KINDS && (!records[kind] || !slice_eq(e->word, slice_of(records[kind]))))
		kind++;
	if (kind == KINDS)
		return true;
	fd = parcel_take_fd(p, e, "fd");
	if (fd < 0)
		return false;
	account = account_enter(accounts, (uint32_t)parcel_get_number(e, "uid"), unit.data, unit.len);
	add(r, account, kind, fd, (uint32_t)parcel_get_number(e, "pid"));
	account_leave(account);
	return true;
}
