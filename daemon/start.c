/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/salvage.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/peer.h"
#include "io/base/process.h"
#include "io/base/socket.h"
#include "io/files/life.h"
#include "io/files/page.h"
#include "io/files/pidfile.h"
#include "io/files/saved.h"
#include "io/files/saved_previous.h"
#include "io/files/tokens.h"
#include "io/handover/identity.h"
#include "io/fdstore.h"
#include "io/socket/page_file.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"
#include "io/zookeeper/zookeeper.h"
#include "parts.h"

/*
 * The start after a kill: the keeper has the connections that the killed process had given it, the file `saved` says who
 * they are and has the ledger, and the broker is made of that (core/salvage.h).
 *
 *   a connection                               | becomes of it
 *   is as the file says, and is not marked,    | goes on under its number, with its page if that is there
 *     its client misses nothing, and there is  |
 *     the page by which locks are delegated to |
 *     it, if any are                           |
 *   anything else                              | is shut down. If its client holds something, that is a ghost's (server.h)
 *
 * Until the new file has its name, the old one counts: another kill leaves what this one did.
 */

/* What is gone on with. Zero-initialised: nothing. */
struct revival {
	struct saved_previous *previous; /* NULL: nothing */
	/* By number: what is taken back of what the keeper has. */
	struct keeper_copy **taken, **pages;
	bool *back;
};

/* ---- whose connection it is ---- */

struct cookie_number {
	uint64_t cookie;
	uint32_t number;
};

static int compare(const void *a, const void *b)
{
	const struct cookie_number *x = a, *y = b;

	return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
}

static struct cookie_number *sort_places(const struct saved_previous *previous, size_t *ret_count)
{
	struct cookie_number *list = mem_new(previous->conn_count * sizeof(*list) + 1);

	*ret_count = 0;
	for (size_t i = 0; i < previous->conn_count; i++)
		if (previous->conns[i].cookie)
			list[(*ret_count)++] = (struct cookie_number){ previous->conns[i].cookie, (uint32_t)i };
	qsort(list, *ret_count, sizeof(*list), compare);
	return list;
}

/* The descriptor that was kept is what the file says of it. */
static bool is_that(const struct saved_conn *c, int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return peer_cookie(fd) == c->cookie && socket_is_stream(fd, false) &&
	       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && (uint32_t)who.pid == c->pid &&
	       who.uid == c->uid && who.gid == c->gid;
}

/* The page of a client says which delegated locks it holds, and the client goes on writing into it. */
static void take_page(struct revival *r, const struct cookie_number *p, struct keeper_copy *kept)
{
	if (page_file_is(kept->fd))
		r->pages[p->number] = kept;
}

static void take_connection(struct revival *r, const bool *may, const struct cookie_number *p, struct keeper_copy *kept)
{
	const struct saved_conn *c = &r->previous->conns[p->number];

	/* Two descriptors of one connection: a shutdown would end both. */
	if (r->back[p->number] && is_that(c, kept->fd)) {
		close(kept->fd);
		kept->fd = -1;
		return;
	}
	if (!is_that(c, kept->fd)) {
		log_warning(
			cannot_use, LOG_FIELDS("what=%s", "connection"),
			"a connection that the keeper has kept differs from the connection in the file saved: it is closed");
		return;
	}
	if (!c->kept || c->busy || !may[p->number])
		return;
	r->taken[p->number] = kept;
	r->back[p->number] = true;
}

/* The place of that connection in the file; NULL: the file has no such connection. */
static const struct cookie_number *place_of(const struct keeper_copy *kept, uint64_t cookie,
					    const struct cookie_number *places, size_t count)
{
	const struct cookie_number wanted = { .cookie = cookie };

	return kept->fd < 0 || kept->id & KEEPER_ROLE ? NULL : bsearch(&wanted, places, count, sizeof(*places), compare);
}

/* Without the page nobody could tell whether a process holds the locks that are delegated to it. */
static bool *those_that_may(const struct revival *r, const struct ledger_view *v)
{
	size_t count = r->previous->conn_count;
	bool *may = mem_new(count + 1), *needs = mem_new(count + 1);

	salvage_may_continue(v, may, count);
	salvage_needs_page(v, needs, count);
	for (size_t i = 0; i < count; i++)
		may[i] = may[i] && (r->pages[i] || !needs[i]);
	mem_free(needs);
	return may;
}

static void take_all(struct revival *r, const struct ledger_view *v, struct keeper_past *past)
{
	size_t count;
	struct cookie_number *places = sort_places(r->previous, &count);
	const struct cookie_number *p;
	bool *may;

	r->taken = mem_new((r->previous->conn_count + 1) * sizeof(*r->taken));
	r->pages = mem_new((r->previous->conn_count + 1) * sizeof(*r->pages));
	r->back = mem_new(r->previous->conn_count + 1);
	for (size_t i = 0; i < past->count; i++) {
		p = place_of(&past->kept[i], past->kept[i].id ^ KEEPER_PAGE, places, count);
		if (p)
			take_page(r, p, &past->kept[i]);
	}
	may = those_that_may(r, v);
	for (size_t i = 0; i < past->count; i++) {
		p = place_of(&past->kept[i], past->kept[i].id, places, count);
		if (p)
			take_connection(r, may, p, &past->kept[i]);
	}
	mem_free(may);
	mem_free(places);
}

/* ---- the broker ---- */

static const char *why_not(const struct daemon *d, const struct saved_previous *previous, char error[IDENTITY_ERROR_MAX])
{
	const struct identity self = daemon_identity(d);

	if (!previous->file)
		return "its file saved is gone, or cannot be used";
	if (!previous->here)
		return "its processes, connections or instants were of other namespaces";
	if (!previous->memory.len)
		return "it had no room for its ledger";
	if (previous->session.id && previous->session.safe_until_ns - previous->session.timeout_ns > clock_now_ns())
		return "its session is proven for longer than a proof can be";
	return identity_differs(previous->identity, &self, error) ? error : NULL;
}

/* Of two lives' sessions only one can be the present one: the other is left to be ended. */
static void choose_session(struct saved_previous *previous, const struct ledger_view *v)
{
	struct saved_former *to = saved_former_find(previous->former, 0);

	if (!previous->session.id || salvage_session(v, previous->session.id))
		return;
	if (!to) {
		to = &previous->former[FORMERS_MAX - 1];
		memmove(previous->former, previous->former + 1, (FORMERS_MAX - 1) * sizeof(*to));
	}
	to->id = previous->session.id;
	to->not_before_ns = previous->session.safe_until_ns;
	memcpy(to->password, previous->session.password, ZK_PASSWORD_BYTES);
	previous->session.id = 0;
}

static void list_formers(struct daemon *d, const struct saved_previous *previous)
{
	d->conf.broker.formers = d->formers;
	d->conf.broker.former_count = 0;
	for (size_t i = 0; i < FORMERS_MAX; i++)
		if (previous->former[i].id)
			d->formers[d->conf.broker.former_count++] =
				(struct broker_former){ previous->former[i].id, previous->former[i].not_before_ns };
}

static bool make_broker(struct daemon *d, struct revival *r, const struct ledger_view *v, struct bytes *why)
{
	const struct saved_session *last = &r->previous->session;
	struct bytes text = { 0 };
	struct salvage s = {
		.conf = daemon_use(d),
		.ledger = v,
		.session = last->id,
		.timeout_ns = last->timeout_ns,
		.safe_until_ns = last->id && last->safe_until_ns ? last->safe_until_ns : INT64_MIN,
		.back = r->back,
		.back_count = r->previous->conn_count,
		.now_ns = clock_now_ns(),
	};
	bool done;

	if (getrandom(&s.seed, sizeof(s.seed), 0) != (ssize_t)sizeof(s.seed)) {
		bytes_text(why, "the kernel has no random numbers");
		return false;
	}
	done = salvage(&s, &text, why) && feed_restore(&d->feed, s.conf, bytes_view(&text), why) == 0;
	bytes_free(&text);
	return done;
}

static bool go_on(struct daemon *d, struct revival *r, struct bytes *why)
{
	struct ledger_view *v = ledger_view_new(r->previous->memory.data, r->previous->memory.len, why);
	bool done;

	if (!v)
		return false;
	choose_session(r->previous, v);
	list_formers(d, r->previous);
	take_all(r, v, &d->past);
	done = make_broker(d, r, v, why);
	ledger_view_free(v);
	return done;
}

static void revive_free(struct revival *r)
{
	mem_free(r->taken);
	mem_free(r->pages);
	mem_free(r->back);
	*r = (struct revival){ 0 };
}

/*
 * Makes d->feed of what was left. False: there is nothing to go on from, and if there should be, the reason was logged: then
 * this process starts as usual. `previous` stays the caller's, and has to outlive the revival; its sessions are those that
 * d->saved is to have.
 */
static bool revive_broker(struct daemon *d, struct saved_previous *previous, struct revival *ret)
{
	char error[IDENTITY_ERROR_MAX];
	struct bytes why = { 0 };
	const char *what;

	if (!d->past.crashes)
		return false;
	if (d->past.crashes >= KEEPER_CRASHES_ANEW) {
		log_error(
			worker_crashes, LOG_FIELDS("crashes=%d", d->past.crashes),
			"%u processes crashed one after the other: this process starts without their state; all locks are lost",
			d->past.crashes);
		return false;
	}
	ret->previous = previous;
	what = why_not(d, previous, error);
	if (what)
		bytes_text(&why, what);
	if (!what && go_on(d, ret, &why)) {
		bytes_free(&why);
		return true;
	}
	log_error(saved_unused, LOG_FIELDS("error=%v", bytes_view(&why)),
		  "the state of the process that crashed cannot be used: %.*s; its locks are lost", (int)why.len,
		  why.data);
	bytes_free(&why);
	revive_free(ret);
	return false;
}

/* ---- the clients ---- */

/* As long as whoever lost its connection may believe to hold something. Standalone nothing is proven, and it was told. */
static int64_t ghosts_until(const struct daemon *d, const struct revival *r)
{
	return d->conf.broker.standalone ? clock_now_ns() + d->conf.broker.session_timeout_ns
					 : r->previous->session.safe_until_ns;
}

static void take_back_page(struct daemon *d, struct revival *r, uint32_t conn)
{
	if (!r->pages[conn])
		return;
	server_take_back_page(d->server, conn, r->pages[conn]->fd);
	r->pages[conn]->fd = -1;
}

/* When d->server is made: its connections and ghosts. What is not taken back is shut down. */
static void revive_clients(struct daemon *d, struct revival *r)
{
	const struct broker *b = feed_broker(d->feed);
	size_t left = broker_clients(b), ghosts = 0;
	int64_t until_ns = ghosts_until(d, r);

	for (uint32_t i = 0; left && i < r->previous->conn_count; i++) {
		const struct saved_conn *was = &r->previous->conns[i];

		if (!broker_has_client(b, i))
			continue;
		left--;
		if (r->back[i]) {
			server_take_back(d->server, i, was, r->taken[i]->fd, broker_held_since(b, i) != INT64_MAX);
			r->taken[i]->fd = -1;
			take_back_page(d, r, i);
		} else {
			server_add_ghost(d->server, i, was, until_ns);
			ghosts++;
		}
	}
	server_taken_back(d->server);
	server_give_pages(d->server);
	log_warning(
		goes_on,
		LOG_FIELDS("connections=%d ghosts=%d version=%v", server_count(d->server) - ghosts, ghosts,
			   LOCKBROKERD_VERSION),
		"lockbrokerd " LOCKBROKERD_VERSION
		" goes on after a crash; connections that were kept: %zu; that were closed, and whose locks stay held "
		"for now: %zu",
		server_count(d->server) - ghosts, ghosts);
}

/* How long a process may take to end whose files the next one needs, and how often that looks. */
#define EXIT_NS (5 * CLOCK_NS_PER_S)
#define EXIT_LOOK_NS (10 * CLOCK_NS_PER_MS)

/* A descriptor that the keeper has of the process before this one; -1: none. */
static struct keeper_copy *role(struct daemon *d, uint64_t id)
{
	static struct keeper_copy none = { .fd = -1 };

	for (size_t i = 0; i < d->past.count; i++)
		if (d->past.kept[i].id == id)
			return &d->past.kept[i];
	return &none;
}

/* A socket of the process before this one: whoever connects meanwhile waits there. */
static void listen_on(struct daemon *d, struct daemon_socket *s, struct listener *passed)
{
	struct keeper_copy *socket = role(d, s->role), *lock = role(d, s->lock_role);

	if (socket->fd < 0 || !listen_take_back(&s->listener, s->address.path, socket->fd, lock->fd)) {
		s->listener = *passed;
		return;
	}
	listen_close(passed);
	socket->fd = lock->fd = -1;
}

/* Where a service begins, there is no lock to be lost yet. A process that goes on with others' locks does so. */
static int check_dir(const struct daemon *d, const struct daemon_socket *s, char text[LISTEN_ERROR_MAX])
{
	int rc = s->listener.fd >= 0 && !s->listener.path ? 0 : listen_check_dir(&s->address, text);

	if (rc < 0 && d->past.crashes) {
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "sockets", text), "%s", text);
		rc = 0;
	}
	return rc;
}

/* Opens that socket, unless it was passed. If somebody has removed the socket, the keeper still has its lock file. */
static int listen_at(struct daemon *d, struct daemon_socket *s)
{
	struct listener *l = &s->listener;
	struct keeper_copy *lock = role(d, s->lock_role);
	char text[LISTEN_ERROR_MAX];
	int rc = check_dir(d, s, text);

	if (rc == 0 && l->fd < 0)
		rc = listen_open(l, &s->address, lock->fd, text);
	if (lock->fd >= 0 && l->lock_fd == lock->fd)
		lock->fd = -1;
	if (rc < 0)
		log_error(cannot_start, LOG_FIELDS("what=%s error=%v", "sockets", text), "%s", text);
	else if (listen_differs(l, &s->address, text))
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "sockets", text), "%s", text);
	return rc;
}

static int start_listening(struct daemon *d)
{
	struct listener clients, operators;
	char text[LISTEN_ERROR_MAX];

	if (listen_passed(&clients, &operators, text) < 0) {
		log_error(cannot_start, LOG_FIELDS("what=%s error=%v", "sockets", text), "%s", text);
		return -EINVAL;
	}
	listen_on(d, &d->clients, &clients);
	listen_on(d, &d->operators, &operators);
	return listen_at(d, &d->clients) < 0 ? -1 : listen_at(d, &d->operators);
}

/* The number below which tokens may have been given out; negative: it is unknown. */
static int64_t open_tokens(struct daemon *d)
{
	int64_t limit;
	int rc = tokens_open(&d->tokens, d->conf.statedir, &limit);

	if (rc == -EBUSY)
		log_error(cannot_start,
			  LOG_FIELDS("what=%s path=%v error=%v", "tokens", d->conf.statedir, strerror(-rc)),
			  "another standalone lockbrokerd uses daemon.statedir = %s; each daemon needs its own",
			  d->conf.statedir);
	else if (rc == -EBADMSG)
		log_error(
			cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "tokens", d->conf.statedir, strerror(-rc)),
			"%s/tokens is not one line of digits, so it is unknown which tokens were given out; restore the file, "
			"or remove it if no resource remembers a token",
			d->conf.statedir);
	else if (rc < 0)
		log_error(cannot_start,
			  LOG_FIELDS("what=%s path=%v error=%v", "tokens", d->conf.statedir, strerror(-rc)),
			  "daemon.statedir = %s: %s", d->conf.statedir, strerror(-rc));
	return rc < 0 ? rc : limit;
}

static bool has_ended(pid_t pid)
{
	char text[PROCESS_STAT_MAX];
	struct process process = { 0 };

	return pid > 0 && (process_read(pid, text, &process) == -ENOENT || process.ended);
}

/* False: it is too late to wait any longer. */
static bool wait_a_moment(int64_t until_ns)
{
	const struct timespec moment = { .tv_nsec = EXIT_LOOK_NS };

	nanosleep(&moment, NULL);
	return clock_now_ns() < until_ns;
}

/* If the main process of the service before this one was killed, its worker ends at once, but not in an instant. */
static int lock_pidfile(struct daemon *d, pid_t *ret_other)
{
	int64_t until_ns = clock_now_ns() + EXIT_NS;
	int rc = pidfile_open(d->conf.rundir, keeper_pid(d->keeper), ret_other);

	if (rc == -EBUSY && has_ended(*ret_other))
		log_info(
			start_waits, LOG_FIELDS("what=%s pid=%d", "worker", *ret_other),
			"the main process of the earlier lockbrokerd (pid %ld) has ended, and its worker has not ended yet: "
			"waiting for its end",
			(long)*ret_other);
	while (rc == -EBUSY && has_ended(*ret_other) && wait_a_moment(until_ns))
		rc = pidfile_open(d->conf.rundir, keeper_pid(d->keeper), ret_other);
	/* It closes one file after the other. */
	while (rc >= 0 && saved_previous_is_ending(d->conf.rundir) && wait_a_moment(until_ns))
		;
	return rc;
}

static int open_pidfile(struct daemon *d)
{
	struct keeper_copy *kept = role(d, KEEPER_PIDFILE);
	pid_t other = 0;
	int rc;

	if (kept->fd >= 0 && pidfile_is(d->conf.rundir, kept->fd)) {
		d->pid_fd = kept->fd;
		kept->fd = -1;
		return pidfile_write(d->pid_fd, keeper_pid(d->keeper));
	}
	rc = lock_pidfile(d, &other);
	if (rc == -EBUSY)
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "rundir", d->conf.rundir, strerror(-rc)),
			  "another lockbrokerd (pid %ld) uses daemon.rundir = %s; each daemon needs its own",
			  (long)other, d->conf.rundir);
	else if (rc == -EPERM)
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "rundir", d->conf.rundir, strerror(-rc)),
			  "daemon.rundir = %s: must belong to the daemon's user or root, and not be writable by others "
			  "(chmod go-w)",
			  d->conf.rundir);
	else if (rc < 0)
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "rundir", d->conf.rundir, strerror(-rc)),
			  "daemon.rundir = %s: %s", d->conf.rundir, strerror(-rc));
	d->pid_fd = rc;
	return rc;
}

/* `moved`: what the earlier page's readers hold goes on. */
static int open_page(struct daemon *d, bool moved)
{
	int rc = page_open(&d->page, d->conf.rundir, d->page_id, moved);

	if (rc < 0)
		log_error(cannot_start,
			  LOG_FIELDS("what=%s path=%v error=%v", "session_page", d->conf.rundir, strerror(-rc)),
			  "%s: %s", d->page_path, strerror(-rc));
	return rc;
}

/* After the page, and with the lock of daemon.statedir. */
static int open_life(struct daemon *d, bool revived)
{
	const struct life_conf conf = { .statedir = d->conf.statedir,
					.boot_id = d->boot_id,
					.page = d->page_id_text,
					.ended = page_ended(d->page),
					.goes_on = revived };
	int64_t now_ns = clock_now_ns();
	int rc = life_open(&d->life, &conf, now_ns);

	if (rc < 0)
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "life", d->conf.statedir, strerror(-rc)),
			  "daemon.statedir = %s: life: %s", d->conf.statedir, strerror(-rc));
	else if (life_wait_ns(d->life) > now_ns)
		log_info(
			start_waits, LOG_FIELDS("what=%s", "life"),
			"the earlier daemon was killed with its keeper, and its session page is gone: nothing is granted for "
			"a second, because clients may believe for that long that they hold a lock");
	return rc;
}

/* What this daemon leaves. If it goes on with what another one left, that one's file counts until the clients are there. */
static int open_saved(struct daemon *d, struct saved_previous *previous, bool revived)
{
	const struct saved_conf conf = daemon_saved_conf(d);
	int rc = revived ? saved_continue(&d->saved, &conf, previous, -1) : saved_open(&d->saved, &conf, previous);

	if (rc < 0) {
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "saved", d->conf.rundir, strerror(-rc)),
			  "%s/saved: %s", d->conf.rundir, strerror(-rc));
		return rc;
	}
	d->conf.broker.formers = d->formers;
	d->conf.broker.former_count = saved_formers(d->saved, d->formers);
	return 0;
}

static int read_previous(struct daemon *d, struct saved_previous **ret)
{
	const struct saved_conf conf = daemon_saved_conf(d);
	int rc = saved_previous_read(ret, &conf);

	if (rc == -EBUSY) {
		fdstore_drop(&d->notify);
		rc = saved_previous_read(ret, &conf);
	}
	if (rc == -EBUSY)
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "saved", d->conf.rundir, strerror(-rc)),
			  "another lockbrokerd uses %s/saved", d->conf.rundir);
	else if (rc < 0)
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "saved", d->conf.rundir, strerror(-rc)),
			  "%s/saved: %s", d->conf.rundir, strerror(-rc));
	return rc;
}

/* False: everything was said. */
static bool open_files(struct daemon *d, struct saved_previous *previous, bool revived, int64_t *ret_tokens)
{
	if (open_page(d, revived) < 0 || open_saved(d, previous, revived) < 0)
		return false;
	*ret_tokens = d->conf.broker.standalone ? open_tokens(d) : 0;
	if (*ret_tokens >= 0 && d->conf.broker.standalone && open_life(d, revived) < 0)
		return false;
	return *ret_tokens >= 0 && start_listening(d) >= 0;
}

static int new_broker(struct daemon *d)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return -errno;
	return feed_new(&d->feed, daemon_use(d), seed);
}

/* The clients of the process before this one; then the file that tells of them may be another. */
static int take_clients(struct daemon *d, struct revival *r)
{
	revive_clients(d, r);
	if (d->zookeeper)
		zookeeper_continue(d->zookeeper, broker_session_timeout(feed_broker(d->feed)));
	daemon_publish_saved(d);
	return 0;
}

static int run(struct daemon *d, const struct conf_source *source, struct revival *r, int64_t tokens_limit)
{
	const struct event begin = { .type = EVENT_TIME };
	int rc = r->previous ? 0 : new_broker(d);

	if (rc == 0)
		rc = parts_make(d, source);
	if (rc == 0 && r->previous)
		rc = take_clients(d, r);
	if (rc < 0) {
		log_error(cannot_start, LOG_FIELDS("error=%v", strerror(-rc)), "the daemon cannot start: %s",
			  strerror(-rc));
		return rc;
	}
	keeper_refuse(d->keeper, &d->past, server_turn_away, d->server);
	parts_keep_roles(d);
	if (d->conf.broker.standalone && life_wait_ns(d->life) > clock_now_ns())
		tokens_hold(d->tokens, life_wait_ns(d->life) - clock_now_ns());
	if (d->conf.broker.standalone)
		parts_tokens(d, tokens_limit);
	server_begin(d->server);
	feed_event(d->feed, &begin);
	log_info(serves,
		 LOG_FIELDS("socket=%v host=%v standalone=%d version=%v", d->clients.listener.path ? d->clients.listener.path : "",
			    d->conf.broker.host, d->conf.broker.standalone, LOCKBROKERD_VERSION),
		 "lockbrokerd " LOCKBROKERD_VERSION " serves %s as host %s%s",
		 d->clients.listener.path ? d->clients.listener.path : "the socket it was passed", d->conf.broker.host,
		 d->conf.broker.standalone ? ", standalone: its locks are for this host alone" : "");
	return 0;
}

static int begin(struct daemon *d, const struct conf_source *source)
{
	struct saved_previous *previous = NULL;
	struct revival r = { 0 };
	int64_t tokens_limit = 0;
	bool begun;

	if (getrandom(d->page_id, sizeof(d->page_id), 0) < 0)
		return -errno;
	session_page_id_text(d->page_id, d->page_id_text);
	if (open_pidfile(d) < 0 || read_previous(d, &previous) < 0)
		return -1;
	revive_broker(d, previous, &r);
	begun = open_files(d, previous, r.previous, &tokens_limit) && run(d, source, &r, tokens_limit) == 0;
	revive_free(&r);
	saved_previous_free(previous);
	return begun ? 0 : -1;
}

int start(struct daemon *d, const struct conf_source *source)
{
	if (begin(d, source) == 0)
		return parts_serve(d);
	parts_free(d, false, EXIT_FAILURE);
	life_free(d->life);
	return EXIT_FAILURE;
}
