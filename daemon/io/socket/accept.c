/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/accept.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/unit_name.h"
#include "core/port/account_text.h"
#include "io/base/feed.h"
#include "io/base/peer.h"
#include "io/base/process.h"
#include "io/base/watch.h"
#include "io/socket/disposer.h"
#include "io/socket/intake.h"
#include "io/socket/remains.h"
#include "io/socket/socket_pools.h"
#include "protocol/resp.h"

/* Who comes, and who they are, is looked up for so many at a time, and so long if nobody else is to be served. */
enum { ACCEPTS_PER_TURN = 16, OPERATORS = 1, REPLACED = 2, DOORS = 4 };
#define ACCEPT_NS (200 * INT64_C(1000))
#define ACCEPT_PAUSE_NS (100 * CLOCK_NS_PER_MS)

struct door {
	struct acceptor *acceptor;
	int fd; /* -1: there is none */
	bool privileged;
	struct watch *watch;
	struct party_member member;
};

struct acceptor {
	struct conn_env *env;
	struct accept_calls calls;
	struct door doors[DOORS]; /* of everybody, and of operators; then those that were replaced */
	struct watch *pause;
	char unit_root[UNIT_CGROUP_MAX];
	size_t unit_root_len;
	struct peer_groups groups; /* of the connection that is looked at */
};

/*
 * The unit of the process that connected. Its number may be another process' by now: then, or if that cannot be excluded,
 * the unit is unknown; and *start is not of that one.
 */
static struct slice accept_unit(const struct acceptor *a, int fd, pid_t pid, uint64_t *start, char text[UNIT_CGROUP_MAX])
{
	const struct slice root = { a->unit_root, a->unit_root_len };
	int peer = peer_process(fd);
	struct slice unit = unit_read(*start ? pid : 0, root, text);
	char again[PROCESS_STAT_MAX];
	struct process process = { 0 };
	bool same = process_read(pid, again, &process) == 0 && process.start == *start && !process.ended;

	same = (peer == PEER_PROCESS_UNKNOWN || peer_process_lives(peer)) && same;
	if (!same)
		*start = 0;
	return same ? unit : SLICE(UNIT_UNKNOWN);
}

void accept_groups(struct acceptor *a, int fd, gid_t gid, struct event_groups *ret)
{
	peer_groups(fd, gid, &a->groups);
	*ret = (struct event_groups){ a->groups.list, a->groups.count, a->groups.all };
}

/* Owns the connection; `account`: whose share is used up; `nobody`: nobody's. */
static void accept_refuse(const struct acceptor *a, struct account *account, int fd, struct slice sentence)
{
	const bool is_user = account != &a->env->accounts.nobody;
	const struct log_account who = conn_log_account(account);
	struct bytes text = { 0 };

	log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_refused, is_user ? &who : NULL, LOG_FIELDS("why=%s", "clients"),
		   "refused a client: %.*s", (int)sentence.len, sentence.data);
	resp_error(&text, ERROR_LIMIT, sentence);
	/* What was sent is kept until it is read. */
	if (remains_may_tell(a->env->remains, account) &&
	    send(fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		remains_take_refusal(a->env->remains, account, fd);
	else
		disposer_take(a->env->disposer, fd, account);
	bytes_free(&text);
}

/* False: its user has as many as it may; the connection was refused. */
static bool accept_admits(const struct acceptor *a, int fd, struct account *account, bool privileged)
{
	struct bytes sentence = { 0 };

	if (remains_admit(a->env->remains, account, SOCKET_CONNECTIONS, privileged))
		return true;
	account_refusal(account, SOCKET_CONNECTIONS, privileged, &socket_pools_words[SOCKET_CONNECTIONS], &sentence);
	accept_refuse(a, account, fd, bytes_view(&sentence));
	bytes_free(&sentence);
	return false;
}

/* What is sent and not read is the daemon's memory, too: it would be 208 KiB for each connection. */
static void accept_bound(int fd)
{
	const int bytes = CONN_KERNEL_BYTES;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* What may be read of the process takes long: nobody is worth that who is refused anyway. */
static void accept_known(struct acceptor *a, struct visitor *v)
{
	char text[PROCESS_STAT_MAX], cgroup[UNIT_CGROUP_MAX];
	struct process process = { 0 };

	/* A process that may not be read has no name, and is known by its number alone. */
	if (process_read((pid_t)v->pid, text, &process) == 0)
		v->comm = process.comm;
	v->start = process.start;
	v->unit = accept_unit(a, v->fd, (pid_t)v->pid, &v->start, cgroup);
	if (!v->account) {
		v->account = account_enter(&a->env->accounts, v->uid, v->unit.data, v->unit.len);
		if (!accept_admits(a, v->fd, v->account, v->privileged))
			return;
	}
	accept_bound(v->fd);
	a->calls.welcome(a->calls.arg, v);
}

/* The connection is charged to `nobody`: its user is unknown, or does not matter. */
static void accept_turn_away(const struct acceptor *a, int fd)
{
	disposer_take(a->env->disposer, fd, &a->env->accounts.nobody);
}

static void accept_one(struct acceptor *a, int fd, bool privileged)
{
	int64_t begun_ns = feed_now(a->env->feed);
	struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t len = sizeof(cred);
	struct visitor v = { .fd = fd, .privileged = privileged };

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		log_warning(client_refused, LOG_FIELDS("why=%s error=%v", "credentials", strerror(errno)),
			    "refused a client whose credentials are unknown: %s", strerror(errno));
		accept_turn_away(a, fd);
		return;
	}
	v.pid = (uint32_t)cred.pid;
	v.uid = cred.uid;
	v.gid = cred.gid;
	if (!accounts_has_units(&a->env->accounts, cred.uid))
		v.account = account_enter(&a->env->accounts, cred.uid, "", 0);
	if (!v.account || accept_admits(a, fd, v.account, privileged))
		accept_known(a, &v);
	/* It is also the time of whose the connection is: those that it has are served later for it. */
	parties_charge_owner(&a->env->parties, v.account, feed_now(a->env->feed) - begun_ns);
	account_leave(v.account); /* a connection that is welcome is charged to it */
}

static void accept_pause(struct acceptor *a, int error)
{
	log_error(accept_failed, LOG_FIELDS("error=%v", strerror(error)), "cannot accept clients: %s", strerror(error));
	for (int i = 0; i < DOORS; i++)
		if (a->doors[i].fd >= 0)
			watch_clear(a->doors[i].watch);
	watch_set(a->pause, -1, 0, ACCEPT_PAUSE_NS);
}

void accept_begin(struct acceptor *a)
{
	for (int i = 0; i < DOORS; i++)
		if (a->doors[i].fd >= 0)
			watch_set(a->doors[i].watch, a->doors[i].fd, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
}

static void accept_resume(int fd, short what, void *arg)
{
	accept_begin(arg);
}

/* Somebody stands there: reported again and again, until all have come in. */
static void accept_ready(int fd, short what, void *arg)
{
	struct door *d = arg;

	party_add(&d->acceptor->env->parties, &d->member);
}

/* It came, asked for nothing, and went: a crowd of such ones is no reason to keep others waiting. */
static bool accept_is_gone(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* False: nobody stands there any longer. */
static bool accept_next(struct door *d)
{
	struct acceptor *a = d->acceptor;
	int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		int error = errno;

		if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
			accept_pause(a, error);
		return error == EINTR || error == ECONNABORTED;
	}
	(void)intake_is_open(fd); /* prepares the socket for intake_read() */
	if (accept_is_gone(fd)) {
		accept_turn_away(a, fd);
	} else if (!a->calls.is_full(a->calls.arg)) {
		accept_one(a, fd, d->privileged);
	} else {
		accept_refuse(a, &a->env->accounts.nobody, fd, SLICE("the daemon has as many clients as it can have"));
	}
	return true;
}

__attribute__((noinline)) void accept_serve(struct party_member *member)
{
	struct door *d = container_of(member, struct door, member);
	struct conn_env *env = d->acceptor->env;
	int64_t until_ns = feed_now(env->feed) + (parties_have_work(&env->parties) ? PARTY_TURN_NS : ACCEPT_NS);

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		if (!accept_next(d))
			return;
		if (feed_now(env->feed) >= until_ns)
			break;
	}
	party_add(&env->parties, member);
}

static void accept_open(struct acceptor *a, struct door *d, int fd, bool privileged)
{
	d->acceptor = a;
	d->fd = fd;
	d->privileged = privileged;
	if (fd >= 0)
		intake_close(fd);
	d->watch = watch_new(feed_base(a->env->feed), accept_ready, d);
	d->member.is_door = true;
	party_enter(&a->env->parties, &d->member, d);
}

static void accept_shut(struct acceptor *a, struct door *d)
{
	watch_free(d->watch);
	party_leave(&a->env->parties, &d->member);
	*d = (struct door){ .fd = -1 };
}

void accept_replace(struct acceptor *a, bool operators, int fd)
{
	struct door *d = &a->doors[operators ? OPERATORS : 0], *before = d + REPLACED;
	int former = before->fd;

	if (former >= 0) {
		accept_shut(a, before);
		close(former);
	}
	accept_open(a, before, d->fd, operators);
	watch_clear(d->watch);
	intake_close(fd);
	d->fd = fd;
	accept_begin(a);
}

struct acceptor *accept_new(struct conn_env *env, int fd, int operators, const struct accept_calls *calls)
{
	struct acceptor *a = mem_new(sizeof(*a));
	char text[UNIT_CGROUP_MAX];
	struct slice root = unit_root(text);

	a->unit_root_len = root.len;
	if (root.len)
		memcpy(a->unit_root, root.data, root.len);
	a->env = env;
	a->calls = *calls;
	accept_open(a, &a->doors[0], fd, false);
	accept_open(a, &a->doors[OPERATORS], operators, true);
	for (int i = REPLACED; i < DOORS; i++)
		a->doors[i].fd = -1;
	a->pause = watch_new(feed_base(env->feed), accept_resume, a);
	return a;
}

void accept_free(struct acceptor *a)
{
	if (!a)
		return;
	for (int i = 0; i < DOORS; i++)
		if (i < REPLACED || a->doors[i].fd >= 0)
			accept_shut(a, &a->doors[i]);
	watch_free(a->pause);
	mem_free(a);
}
