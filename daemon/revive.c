/* SPDX-License-Identifier: Apache-2.0 */
#include "revive.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/salvage.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/peer.h"
#include "io/files/saved_left.h"
#include "io/handover/identity.h"
#include "io/socket/page_file.h"
#include "io/socket/server.h"

/* ---- whose connection it is ---- */

struct place {
	uint64_t cookie;
	uint32_t number;
};

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
}

static struct place *sort_places(const struct saved_left *left, size_t *ret_count)
{
	struct place *list = mem_new(left->conn_count * sizeof(*list) + 1);

	*ret_count = 0;
	for (size_t i = 0; i < left->conn_count; i++)
		if (left->conns[i].cookie)
			list[(*ret_count)++] = (struct place){ left->conns[i].cookie, (uint32_t)i };
	qsort(list, *ret_count, sizeof(*list), compare);
	return list;
}

static int option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

/* The descriptor that was kept is what the file says of it. */
static bool is_that(const struct saved_conn *c, int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return peer_cookie(fd) == c->cookie && option(fd, SO_DOMAIN) == AF_UNIX && option(fd, SO_TYPE) == SOCK_STREAM &&
	       option(fd, SO_ACCEPTCONN) == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       (uint32_t)who.pid == c->pid && who.uid == c->uid && who.gid == c->gid;
}

/* The page of a client says which delegated locks it holds, and the client goes on writing into it. */
static void take_page(struct revival *r, const struct place *p, struct keeper_kept *kept)
{
	if (page_file_is(kept->fd))
		r->pages[p->number] = kept;
}

static void take_connection(struct revival *r, const bool *may, const struct place *p, struct keeper_kept *kept)
{
	const struct saved_conn *c = &r->left->conns[p->number];

	/* Two descriptors of one connection: a shutdown would end both. */
	if (r->back[p->number] && is_that(c, kept->fd)) {
		close(kept->fd);
		kept->fd = -1;
		return;
	}
	if (!is_that(c, kept->fd)) {
		log_warning(
			cannot_use, LOG_FIELDS("what=%s", "connection"),
			"a connection that the keeper has kept is not the one that the file saved tells of: it is closed");
		return;
	}
	if (!c->kept || c->mark || !may[p->number])
		return;
	r->taken[p->number] = kept;
	r->back[p->number] = true;
}

/* The place of that connection in the file; NULL: the file has no such connection. */
static const struct place *place_of(const struct keeper_kept *kept, uint64_t cookie, const struct place *places,
				    size_t count)
{
	const struct place wanted = { .cookie = cookie };

	return kept->fd < 0 || kept->id & KEEPER_ROLE ? NULL : bsearch(&wanted, places, count, sizeof(*places), compare);
}

/* Without the page nobody could tell whether a process holds the locks that are delegated to it. */
static bool *those_that_may(const struct revival *r, const struct ledger_view *v)
{
	size_t count = r->left->conn_count;
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
	struct place *places = sort_places(r->left, &count);
	const struct place *p;
	bool *may;

	r->taken = mem_new((r->left->conn_count + 1) * sizeof(*r->taken));
	r->pages = mem_new((r->left->conn_count + 1) * sizeof(*r->pages));
	r->back = mem_new(r->left->conn_count + 1);
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

static const char *why_not(const struct daemon *d, const struct saved_left *left, char error[IDENTITY_ERROR_MAX])
{
	const struct identity self = daemon_identity(d);

	if (!left->file)
		return "its file saved is gone, or cannot be used";
	if (!left->here)
		return "its processes, connections or instants were of other namespaces";
	if (!left->memory.len)
		return "it had no room for its ledger";
	if (left->session.id && left->session.safe_until_ns - left->session.timeout_ns > clock_now_ns())
		return "its session is proven for longer than a proof can be";
	return identity_differs(left->identity, &self, error) ? error : NULL;
}

/* Of two lives' sessions only one can be the present one: the other is left to be ended. */
static void choose_session(struct saved_left *left, const struct ledger_view *v)
{
	size_t i = 0;

	if (!left->session.id || salvage_session(v, left->session.id))
		return;
	while (i < FORMERS_MAX && left->former[i].id)
		i++;
	if (i == FORMERS_MAX)
		memmove(left->former, left->former + 1, --i * sizeof(left->former[0]));
	left->former[i].id = left->session.id;
	left->former[i].not_before_ns = left->session.safe_until_ns;
	memcpy(left->former[i].password, left->session.password, ZK_PASSWORD_BYTES);
	left->session.id = 0;
}

static void list_formers(struct daemon *d, const struct saved_left *left)
{
	d->conf.broker.formers = d->formers;
	d->conf.broker.former_count = 0;
	for (size_t i = 0; i < FORMERS_MAX; i++)
		if (left->former[i].id)
			d->formers[d->conf.broker.former_count++] =
				(struct broker_former){ left->former[i].id, left->former[i].not_before_ns };
}

static bool make_broker(struct daemon *d, struct revival *r, const struct ledger_view *v, struct bytes *why)
{
	const struct saved_session *last = &r->left->session;
	struct bytes text = { 0 };
	struct salvage s = {
		.conf = daemon_use(d),
		.ledger = v,
		.session = last->id,
		.timeout_ns = last->timeout_ns,
		.safe_until_ns = last->id && last->safe_until_ns ? last->safe_until_ns : INT64_MIN,
		.back = r->back,
		.back_count = r->left->conn_count,
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
	struct ledger_view *v = ledger_view_new(r->left->memory.data, r->left->memory.len, why);
	bool done;

	if (!v)
		return false;
	choose_session(r->left, v);
	list_formers(d, r->left);
	take_all(r, v, &d->past);
	done = make_broker(d, r, v, why);
	ledger_view_free(v);
	return done;
}

void revive_free(struct revival *r)
{
	mem_free(r->taken);
	mem_free(r->pages);
	mem_free(r->back);
	*r = (struct revival){ 0 };
}

bool revive_broker(struct daemon *d, struct saved_left *left, struct revival *ret)
{
	char error[IDENTITY_ERROR_MAX];
	struct bytes why = { 0 };
	const char *what;

	if (!d->past.crashes)
		return false;
	if (d->past.crashes >= KEEPER_CRASHES_ANEW) {
		log_error(
			worker_crashes, LOG_FIELDS("crashes=%d", d->past.crashes),
			"%u processes crashed one after the other: this one starts without what they remembered; all locks are "
			"lost",
			d->past.crashes);
		return false;
	}
	ret->left = left;
	what = why_not(d, left, error);
	if (what)
		bytes_text(&why, what);
	if (!what && go_on(d, ret, &why)) {
		bytes_free(&why);
		return true;
	}
	log_error(saved_unused, LOG_FIELDS("error=%v", bytes_view(&why)),
		  "nothing of the process that crashed goes on: %.*s; its locks are lost", (int)why.len, why.data);
	bytes_free(&why);
	revive_free(ret);
	return false;
}

/* ---- the clients ---- */

/* As long as whoever lost its connection may believe to hold something. Standalone nothing is proven, and it was told. */
static int64_t ghosts_until(const struct daemon *d, const struct revival *r)
{
	return d->conf.broker.standalone ? clock_now_ns() + d->conf.broker.session_timeout_ns : r->left->session.safe_until_ns;
}

static void take_back_page(struct daemon *d, struct revival *r, uint32_t conn)
{
	if (!r->pages[conn])
		return;
	server_take_back_page(d->server, conn, r->pages[conn]->fd);
	r->pages[conn]->fd = -1;
}

void revive_clients(struct daemon *d, struct revival *r)
{
	const struct broker *b = feed_broker(d->feed);
	size_t left = broker_clients(b), ghosts = 0;
	int64_t until_ns = ghosts_until(d, r);

	for (uint32_t i = 0; left && i < r->left->conn_count; i++) {
		const struct saved_conn *was = &r->left->conns[i];

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
