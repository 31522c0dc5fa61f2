/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/server.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/cold.h"
#include "base/container.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/files/life.h"
#include "io/files/saved.h"
#include "io/socket/accept.h"
#include "io/socket/conn.h"
#include "io/socket/conn_page.h"
#include "io/socket/disposer.h"
#include "io/socket/kin.h"
#include "io/socket/remains.h"
#include "io/socket/socket_pools.h"

/*
 * Connections that the keeper (base/keeper.h) was asked to hold a copy of, and that it has not answered for. Its answers
 * come in about the order of the questions; a connection may have ended by then, and its number be another's.
 */
struct question {
	uint64_t id;
	uint32_t conn;
};

struct server {
	struct feed *feed;
	size_t numbers_max;
	struct life *life; /* NULL: pages are given out at once */
	struct saved *saved;
	struct kin *kin;
	struct keeper *keeper;
	bool same_keeper; /* as that of the process that handed over */
	struct question *asked; /* the keeper; not answered yet, the oldest first */
	size_t asked_count, asked_cap;
	int64_t look_ns;         /* the next look at all connections */
	int64_t due_ns;          /* a turn that ends before has nothing to do for it: look_ns while `looking` is set */
	struct watch *looking;   /* wakes the loop for it */
	size_t ghosts, ghost;    /* how many there are; the number to be looked at next */
	struct conn_env env;
	struct acceptor *acceptor;
	struct conn **conns; /* by number */
	uint32_t *free_numbers;
	size_t conns_cap, free_count, count;
};

static struct conn *server_conn(const struct server *s, uint32_t number)
{
	assert(number < s->conns_cap && s->conns[number]);
	return s->conns[number];
}

/* Asks the keeper for the connection of that number, or for its page (KEEPER_PAGE). False: not now. */
static bool kept_ask(struct server *s, uint32_t conn, uint64_t what, int fd)
{
	uint64_t id = s->keeper && s->saved ? saved_conn(s->saved, conn)->cookie : 0;

	if (!id || !keeper_keep(s->keeper, what | id, fd))
		return false;
	s->asked = mem_room(s->asked, s->asked_count, &s->asked_cap, sizeof(*s->asked));
	s->asked[s->asked_count++] = (struct question){ what | id, conn };
	return true;
}

/* The keeper has answered about a connection, or about its page. False: that connection has ended. */
static bool kept_answered(struct server *s, uint64_t id, uint32_t *ret_conn)
{
	size_t at = 0;

	while (at < s->asked_count && s->asked[at].id != id)
		at++;
	if (at == s->asked_count)
		return false;
	*ret_conn = s->asked[at].conn;
	memmove(s->asked + at, s->asked + at + 1, (--s->asked_count - at) * sizeof(*s->asked));
	return true;
}

/* The connection ends that the keeper was asked for, or its page: to be called before saved_gone(). */
static void kept_drop(struct server *s, uint32_t conn, uint64_t what)
{
	uint64_t id = what | saved_conn(s->saved, conn)->cookie;
	uint32_t asked;

	kept_answered(s, id, &asked);
	keeper_drop(s->keeper, id);
}

enum {
	SERVER_NUMBERS_MAX = 1 << 21, /* more than limits.clients can be */
	SERVER_LOOK_EVERY = 16, /* connections are served between two looks at the clock, if one user has them all */
};
/*
 * Then ZooKeeper's socket and the timers are looked at, and who has become readable: small beside what a request takes that
 * crosses the network, large beside what a look costs. When there are connections of others, who may be kept waiting, it is
 * a turn of a party, and so is what one connection has of it.
 */
#define SERVER_TURN_NS (500 * INT64_C(1000))
#define SERVER_SHARE_NS (100 * INT64_C(1000))
#define SERVER_LOOK_NS CLOCK_NS_PER_S
/* A look goes over all connections, so holders that come of age one after the other share one. */
#define SERVER_LOOK_MIN_NS (250 * CLOCK_NS_PER_MS)
/* How long one look at ghosts, and one at what is kept of ended connections, may take while clients wait. */
#define SERVER_GHOSTS_NS (2 * CLOCK_NS_PER_MS)
/* Who has held something for so long is worth two more messages. */
#define SERVER_KEEP_NS CLOCK_NS_PER_S

/* Numbers are given out again last in, first out. */
/* Makes room for more connection numbers. */
static void server_grow(struct server *s)
{
	size_t cap = s->conns_cap ? 2 * s->conns_cap : 64, i;

	s->conns = mem_resize(s->conns, cap * sizeof(*s->conns));
	s->free_numbers = mem_resize(s->free_numbers, cap * sizeof(*s->free_numbers));
	for (i = cap; i > s->conns_cap; i--) {
		s->conns[i - 1] = NULL;
		s->free_numbers[s->free_count++] = (uint32_t)(i - 1);
	}
	s->conns_cap = cap;
}

/* ---- who connected ---- */

static void server_tell_groups(struct server *s, const struct conn *c)
{
	struct event event = { .type = EVENT_CLIENT_GROUPS, .conn = c->number };
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (c->fd < 0 || getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return;
	accept_groups(s->acceptor, c->fd, cred.gid, &event.groups);
	feed_event(s->feed, &event);
}

static bool server_is_full(void *arg)
{
	const struct server *s = arg;

	return s->count >= s->numbers_max;
}

static void server_welcome(void *arg, const struct visitor *v)
{
	const struct saved_conn who = { .pid = v->pid, .uid = v->uid, .gid = v->gid, .start = v->start };
	struct server *s = arg;
	struct event event = { .type = EVENT_CLIENT_CONNECTED };
	uint32_t number;

	if (s->free_count == 0)
		server_grow(s);
	number = s->free_numbers[--s->free_count];
	s->conns[number] = conn_new(&s->env, v->fd, number);
	s->conns[number]->privileged = v->privileged;
	conn_enter(s->conns[number], v->account);
	s->count++;
	event.conn = number;
	event.connected.pid = v->pid;
	event.connected.uid = v->uid;
	event.connected.gid = v->gid;
	event.connected.started = v->start;
	event.connected.comm = v->comm;
	event.connected.unit = v->unit;
	event.connected.privileged = v->privileged;
	accept_groups(s->acceptor, v->fd, v->gid, &event.connected.groups);
	saved_connected(s->saved, number, &who, v->fd);
	feed_event(s->feed, &event);
}

void server_limits(struct server *s, const struct server_conf *conf)
{
	size_t output = 2 * conf->output_bytes;

	accounts_set_share(&s->env.accounts, conf->user_share);
	accounts_set_by_unit(&s->env.accounts, conf->by_unit, conf->by_unit_count);
	accounts_set_total(&s->env.accounts, SOCKET_CONNECTIONS, conf->clients);
	accounts_set_total(&s->env.accounts, SOCKET_PAGES, conf->pages);
	accounts_set_total(&s->env.accounts, SOCKET_INPUT, CONN_UNPARSED_MAX);
	/* One reply of the longest kind always has room. */
	accounts_set_total(&s->env.accounts, SOCKET_OUTPUT, output > CONN_UNWRITTEN_MAX ? output : CONN_UNWRITTEN_MAX);
	s->env.request_bytes = conf->request_bytes;
	s->env.request_args = conf->request_args;
	s->env.output_bytes = conf->output_bytes;
}

struct accounts *server_accounts(struct server *s)
{
	return &s->env.accounts;
}

struct remains *server_remains(struct server *s)
{
	return s->env.remains;
}

/* The keeper has the connection: from now on the next process can go on with it, unless `saved` says that it is busy. */
static void server_kept(struct server *s, struct conn *c)
{
	c->given = c->asked = true;
	c->busy = saved_keep(s->saved, c->number, conn_is_busy(c));
}

/* It is asked again at the next look: somebody else may have gone by then. */
static void server_refused(struct conn *c, bool page)
{
	if (page)
		c->page->asked = false;
	else
		c->asked = false;
	log_warning(keeper_full, LOG_NO_FIELDS,
		    "the keeper has no room for a connection: if the daemon is killed now, its locks are lost");
}

static void server_answered(void *arg, uint64_t id, bool kept)
{
	struct server *s = arg;
	uint32_t number;

	if (!kept_answered(s, id, &number))
		return;
	if (!kept)
		server_refused(s->conns[number], id & KEEPER_PAGE);
	else if (!(id & KEEPER_PAGE))
		server_kept(s, s->conns[number]);
}

/* `looking` has fired, and the latest event may be long ago: with the clock read anew, the end of this turn looks. */
static void server_woken(int fd, short what, void *arg)
{
	struct server *s = arg;

	feed_now(s->feed);
}

/* Requests are held back until there is room: by whom? */
static void server_impatient(int fd, short what, void *arg)
{
	struct server *s = arg;
	int64_t now_ns = feed_now(s->feed);

	for (size_t i = 0; i < s->conns_cap; i++)
		if (s->conns[i])
			conn_lose_patience(s->conns[i], now_ns);
	if (s->env.parties.held)
		watch_set(s->env.patience, -1, 0, SERVER_LOOK_NS);
}

struct server *server_new(struct feed *feed, int fd, int operators, const struct server_conf *conf)
{
	struct server *s = mem_new(sizeof(*s));
	const struct accept_calls calls = { server_is_full, server_welcome, s };
	uint64_t keys[2] = { 0 };

	if (getrandom(keys, sizeof(keys), 0) < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "random", strerror(errno)),
			    "there are no random bytes: %s", strerror(errno));
	s->feed = feed;
	s->numbers_max = conf->saved ? saved_clients(conf->saved) : SERVER_NUMBERS_MAX;
	s->saved = conf->saved;
	s->life = conf->life;
	s->env.feed = feed;
	accounts_init(&s->env.accounts, SOCKET_POOLS, keys[0], keys[1]);
	server_limits(s, conf);
	s->env.scratch = mem_new(CONN_READ_BYTES);
	parties_init(&s->env.parties);
	TAILQ_INIT(&s->env.dirty);
	TAILQ_INIT(&s->env.pages);
	s->env.disposer = disposer_new(feed_base(feed));
	s->env.remains = remains_new(feed, s->env.disposer);
	s->env.patience = watch_new(feed_base(feed), server_impatient, s);
	s->kin = kin_new(feed);
	s->looking = watch_new(feed_base(feed), server_woken, s);
	s->due_ns = conf->saved ? INT64_MIN : INT64_MAX;
	s->keeper = conf->keeper;
	keeper_on_kept(conf->keeper, server_answered, s);
	s->acceptor = accept_new(&s->env, fd, operators, &calls);
	return s;
}

/* Who the connection of an earlier process is. */
static void server_enter(struct server *s, struct conn *c)
{
	struct client_origin origin = feed_origin(s->feed, c->number);
	struct account *account = account_enter(&s->env.accounts, origin.uid, origin.unit.data, origin.unit.len);

	c->privileged = origin.privileged;
	conn_enter(c, account);
	if (conn_is_ghost(c))
		c->account = &s->env.accounts.nobody;
	account_leave(account);
}

/* Also for a server that keeps nothing for another process. */
static void server_will_look(struct server *s)
{
	if (s->due_ns == INT64_MAX)
		s->due_ns = INT64_MIN;
}

void server_listen(struct server *s, bool operators, int fd)
{
	accept_replace(s->acceptor, operators, fd);
}

void server_begin(struct server *s)
{
	accept_begin(s->acceptor);
	if (!remains_is_empty(s->env.remains))
		server_will_look(s);
	for (size_t i = 0; i < s->conns_cap; i++) {
		if (!s->conns[i])
			continue;
		server_enter(s, s->conns[i]);
		server_tell_groups(s, s->conns[i]);
		conn_begin(s->conns[i]);
	}
}

bool server_is_clean(const struct server *s)
{
	return s->env.dead == 0;
}

bool server_has(const struct server *s, uint32_t number)
{
	return number < s->conns_cap && s->conns[number];
}

size_t server_count(const struct server *s)
{
	return s->count;
}

void server_free(struct server *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->conns_cap; i++)
		if (s->conns[i])
			conn_free(s->conns[i]);
	remains_free(s->env.remains);
	disposer_free(s->env.disposer);
	accept_free(s->acceptor);
	parties_deinit(&s->env.parties);
	kin_free(s->kin);
	watch_free(s->looking);
	watch_free(s->env.patience);
	mem_free(s->asked);
	mem_free(s->conns);
	mem_free(s->free_numbers);
	mem_free(s->env.scratch);
	bytes_free(&s->env.spare);
	accounts_deinit(&s->env.accounts);
	mem_free(s);
}

void server_reply(struct server *s, uint32_t number, struct slice text, bool lazy)
{
	conn_reply(server_conn(s, number), text, lazy);
}

void server_reply_whole(struct server *s, uint32_t number, struct bytes *text, size_t at)
{
	conn_reply_whole(server_conn(s, number), text, at);
}

void server_page(struct server *s, uint32_t number)
{
	conn_page_ask(server_conn(s, number));
}

void server_reply_page(struct server *s, uint32_t number, struct slice text)
{
	conn_reply_page(server_conn(s, number), text);
}

void server_push(struct server *s, uint32_t number, struct slice text, bool report)
{
	conn_push(server_conn(s, number), text, report);
}

void server_close(struct server *s, uint32_t number)
{
	conn_close(server_conn(s, number));
}

void server_process(struct server *s, uint32_t number, uint32_t pid)
{
	const struct conn *c = server_conn(s, number);

	if (c->fd >= 0)
		kin_named(s->kin, number, c->fd, (pid_t)pid);
}

/* What its client keeps stays charged. */
static void server_leave_remains(struct server *s, struct conn *c)
{
	int page = c->page ? conn_page_leave(c->page) : -1;

	if (page >= 0)
		remains_take_page(s->env.remains, c->account, c->fd, page);
	if (c->fd >= 0 && remains_keep_answers(s->env.remains, c->account, c->fd))
		c->fd = -1;
	if (!remains_is_empty(s->env.remains))
		server_will_look(s);
}

static __attribute__((noinline)) void server_reap(struct server *s, struct conn *c)
{
	conn_tell(c, EVENT_CLIENT_GONE);
	if (c->page) {
		conn_page_void(c->page);
		if (s->keeper && s->saved)
			kept_drop(s, c->number, KEEPER_PAGE);
	}
	if (c->given)
		kept_drop(s, c->number, 0);
	saved_gone(s->saved, c->number);
	s->ghosts -= conn_is_ghost(c);
	server_leave_remains(s, c);
	kin_gone(s->kin, c->number);
	s->conns[c->number] = NULL;
	s->free_numbers[s->free_count++] = c->number;
	s->count--;
	conn_free(c);
}

void server_clean(struct server *s)
{
	for (size_t i = 0; s->env.dead && i < s->conns_cap; i++)
		if (s->conns[i] && s->conns[i]->dead)
			server_reap(s, s->conns[i]);
}

void server_come_to_rest(struct server *s)
{
	do {
		server_clean(s);
		server_settle(s);
	} while (!server_is_clean(s));
}

/* `begun_ns`: now; 0: the clock was not read. */
static void server_serve(struct server *s, struct party_member *member, int64_t begun_ns)
{
	struct conn *c = container_of(member, struct conn, member);

	if (member->is_door) {
		accept_serve(member);
		return;
	}
	s->env.one = parties_is_one(&s->env.parties);
	if (s->env.one)
		feed_begin_share(s->feed, 0, SERVER_SHARE_NS);
	else
		feed_begin_share(s->feed, begun_ns, PARTY_TURN_NS); /* what it takes to read is a part of it */
	if (!c->dead) {
		conn_serve(c);
	} else if (feed_owns_much(s->feed, c->number)) {
		conn_tell(c, EVENT_CLIENT_LEAVES);
		party_add(&s->env.parties, &c->member);
	} else {
		server_reap(s, c);
	}
}

/*
 * Where there is more than one user each connection's time is measured, also that of one that makes no event: somebody else
 * may have asked meanwhile. Many connections of one user cost few looks at the clock beside those that come with each event:
 * just so many that the turn ends without events, too.
 */
static __attribute__((noinline)) void server_serve_all(struct server *s)
{
	struct parties *parties = &s->env.parties;
	int64_t begun_ns = feed_now(s->feed), now_ns;
	bool one = parties_is_one(parties);
	int64_t until_ns = begun_ns + (one ? SERVER_TURN_NS : PARTY_TURN_NS);
	struct party_member *member;
	unsigned int count = 0;

	while (feed_seen(s->feed) < until_ns && (member = parties_next(parties))) {
		server_serve(s, member, begun_ns);
		if (one && !parties_contended(parties) && ++count % SERVER_LOOK_EVERY)
			continue;
		now_ns = feed_now(s->feed);
		parties_charge(parties, now_ns - begun_ns);
		begun_ns = now_ns;
	}
}

/* Most often one client has asked, and nobody else: that costs no look at the clock. */
void server_continue(struct server *s)
{
	struct parties *parties = &s->env.parties;

	if (parties->only)
		server_serve(s, parties_next(parties), 0);
	if (parties_have_work(parties))
		server_serve_all(s);
}

/* Whose process has surely ended, or cannot believe to hold anything any longer. */
static void server_look_at_ghosts(struct server *s)
{
	int64_t now_ns = feed_now(s->feed), until_ns = now_ns + SERVER_GHOSTS_NS;
	struct conn *c;

	for (size_t i = 0; s->ghosts && i < s->conns_cap && feed_now(s->feed) < until_ns; i++) {
		c = s->conns[s->ghost++ % s->conns_cap];
		if (c && conn_is_ghost(c) && (now_ns >= c->until_ns || !saved_conn_lives(s->saved, c->number)))
			conn_close(c);
	}
}

/* The next process needs the page to go on with delegated locks. False: the keeper cannot take it now. */
static bool server_keeps_page(struct server *s, struct conn *c)
{
	struct conn_page *page = c->page;

	if (page && !page->asked)
		page->asked = page->shared && kept_ask(s, c->number, KEEPER_PAGE, page->fd);
	return !page || page->asked;
}

/* Has the keeper hold the connections of those that have held something for a while. Returns when some may be next. */
static int64_t server_look_at_holders(struct server *s, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;

	for (size_t i = 0; s->keeper && i < s->conns_cap; i++) {
		struct conn *c = s->conns[i];
		int64_t since_ns;

		if (!c || c->dead || c->closing)
			continue;
		/* As long as it waits, the connection is busy. */
		if (c->busy)
			conn_hurry(c);
		if (c->asked) {
			if (!server_keeps_page(s, c))
				next_ns = min64(next_ns, now_ns + SERVER_LOOK_NS);
			continue;
		}
		since_ns = feed_held_since(s->feed, c->number);
		if (since_ns == INT64_MAX)
			continue;
		if (now_ns - since_ns < SERVER_KEEP_NS) {
			next_ns = min64(next_ns, since_ns + SERVER_KEEP_NS);
			continue;
		}
		if (!kept_ask(s, c->number, 0, c->fd)) {
			next_ns = min64(next_ns, now_ns + SERVER_LOOK_NS);
			continue;
		}
		c->asked = c->given = true;
		if (!server_keeps_page(s, c))
			next_ns = min64(next_ns, now_ns + SERVER_LOOK_NS);
		/* A standalone broker does not tell it. */
		saved_holder(s->saved, c->number, true);
	}
	return next_ns;
}

static void server_set_look(struct server *s)
{
	watch_set_by(s->looking, s->look_ns);
	s->due_ns = s->look_ns;
}

/*
 * Everything that a look about every second is enough for; more often while holders come of age. A turn that nothing follows
 * leads to one look.
 */
static __attribute__((noinline)) void server_look(struct server *s)
{
	int64_t now_ns = feed_seen(s->feed), next_ns;

	if (now_ns < s->look_ns) {
		server_set_look(s);
		return;
	}
	watch_clear(s->looking);
	s->due_ns = INT64_MIN;
	next_ns = server_look_at_holders(s, now_ns);
	s->look_ns = min64(max64(next_ns, now_ns + SERVER_LOOK_MIN_NS), now_ns + SERVER_LOOK_NS);
	saved_look(s->saved);
	if (s->ghosts)
		server_look_at_ghosts(s);
	remains_look(s->env.remains, now_ns + SERVER_GHOSTS_NS);
	if (next_ns < INT64_MAX || s->ghosts || !remains_is_empty(s->env.remains))
		server_set_look(s);
}

void server_settle(struct server *s)
{
	if (feed_seen(s->feed) >= s->due_ns)
		server_look(s);
	if (!TAILQ_EMPTY(&s->env.pages) && life_begins(s->life, feed_seen(s->feed)))
		conn_page_make_all(&s->env);
	conn_flush_all(&s->env);
	if (parties_have_work(&s->env.parties))
		feed_hurry(s->feed);
}

/* What the next process cannot learn from the connection itself. */
static const struct field place_fields[] = {
	FIELD_ANY(struct saved_conn, "pid", pid),
	FIELD_ANY(struct saved_conn, "uid", uid),
	FIELD_ANY(struct saved_conn, "gid", gid),
	FIELD_ANY(struct saved_conn, "start", start),
	FIELD_ANY(struct saved_conn, "peer", peer),
	FIELD_FLAG(struct saved_conn, "holds", holds),
	FIELD_FLAG(struct saved_conn, "kept", kept),
};

static bool server_unpack_place(struct server *s, struct conn *c, const struct entry *e)
{
	struct saved_conn who = { .until_ns = c->until_ns };

	if (!entry_get_fields(e, FIELDS(place_fields), &who))
		return false;
	saved_connected(s->saved, c->number, &who, c->fd);
	saved_holder(s->saved, c->number, who.holds);
	c->given = s->same_keeper && parcel_get_number(e, "given");
	if (s->same_keeper && who.kept)
		server_kept(s, c);
	return true;
}

void server_pack(const struct server *s, struct parcel *p)
{
	for (size_t i = 0; i < s->conns_cap; i++) {
		struct entry_writer w;

		if (!s->conns[i])
			continue;
		w = entry_begin(&p->text, "conn");
		conn_pack(s->conns[i], p, &w);
		if (s->saved)
			entry_fields(&w, FIELDS(place_fields), saved_conn(s->saved, (uint32_t)i));
		entry_number(&w, "given", s->conns[i]->given);
		entry_end(&w);
	}
	remains_pack(s->env.remains, p);
}

static void server_place(struct server *s, uint32_t number, struct conn *c)
{
	while (number >= s->conns_cap)
		server_grow(s);
	assert(!s->conns[number]);
	s->conns[number] = c;
	s->count++;
	s->ghosts += conn_is_ghost(c);
}

static int server_unpack_one(struct server *s, struct parcel *p, const struct entry *e)
{
	int64_t number = parcel_get_number(e, "number");
	struct conn *c;

	if (number < 0 || (uint64_t)number >= s->numbers_max || server_has(s, (uint32_t)number))
		return -EBADMSG;
	c = conn_unpack(&s->env, p, e);
	if (!c)
		return -EBADMSG;
	server_place(s, (uint32_t)number, c);
	return server_unpack_place(s, c, e) ? 0 : -EBADMSG;
}

/* The numbers that are left; the lowest is given out first. */
void server_taken_back(struct server *s)
{
	s->free_count = 0;
	for (size_t i = s->conns_cap; i > 0; i--)
		if (!s->conns[i - 1])
			s->free_numbers[s->free_count++] = (uint32_t)(i - 1);
}

int server_unpack(struct server *s, struct parcel *p)
{
	struct entry e;
	int rc = 0;

	s->same_keeper = s->keeper && parcel_find(p, "keeper", &e);
	parcel_rewind(p);
	while (rc == 0 && parcel_next(p, &e))
		if (slice_is(e.word, "conn"))
			rc = server_unpack_one(s, p, &e);
		else if (!remains_unpack(s->env.remains, &s->env.accounts, p, &e))
			rc = -EBADMSG;
	if (rc == 0 && p->why.len)
		rc = -EBADMSG;
	server_taken_back(s);
	return rc;
}

void server_take_back(struct server *s, uint32_t number, const struct saved_conn *was, int fd, bool holds)
{
	struct conn *c = conn_new(&s->env, fd, number);

	server_place(s, number, c);
	saved_connected(s->saved, number, was, fd);
	saved_holder(s->saved, number, holds);
	server_kept(s, c);
}

void server_add_ghost(struct server *s, uint32_t number, const struct saved_conn *was, int64_t until_ns)
{
	struct saved_conn who = *was;

	/* It may have been one before this kill, too. */
	if (!who.until_ns)
		who.until_ns = until_ns;
	server_place(s, number, conn_ghost(&s->env, number, who.until_ns));
	saved_connected(s->saved, number, &who, -1);
	saved_holder(s->saved, number, true);
}

void server_take_back_page(struct server *s, uint32_t number, int fd)
{
	struct conn *c = server_conn(s, number);

	c->page = conn_page_take(c, fd);
	/* As with any other memory. */
	if (!c->page)
		abort();
}

void server_give_pages(struct server *s)
{
	for (size_t i = 0; i < s->conns_cap; i++)
		if (s->conns[i] && s->conns[i]->page)
			feed_give_page(s->feed, (uint32_t)i, s->conns[i]->page->shared);
}

void server_turn_away(void *server, int fd)
{
	struct server *s = server;

	disposer_take(s->env.disposer, fd, &s->env.accounts.nobody);
}
