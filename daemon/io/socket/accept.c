/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/accept.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/port/account_text.h"
#include "io/base/feed.h"
#include "io/base/peer.h"
#include "io/base/process.h"
#include "io/base/unit.h"
#include "io/base/watch.h"
#include "io/socket/conn_watch.h"
#include "io/socket/socket_pools.h"
#include "protocol/resp.h"

enum { ACCEPTS_PER_TURN = 64 };
/* Who comes, and who they are, is looked up for so long at a time. */
#define ACCEPT_NS (200 * INT64_C(1000))
#define ACCEPT_PAUSE_NS (100 * CLOCK_NS_PER_MS)

struct acceptor {
	struct conn_env *env;
	struct accept_calls calls;
	int listening, operators;
	struct watch *accepting, *accepting_operators, *pause;
	char unit_root[UNIT_CGROUP_MAX];
	size_t unit_root_len;
	struct peer_groups groups; /* of the connection that is looked at */
};

/*
 * The unit of the process that connected. Its number may be another process' by now: then, or if that cannot be excluded,
 * no unit is told.
 */
static struct slice accept_unit(const struct acceptor *a, int fd, pid_t pid, uint64_t start, char text[UNIT_CGROUP_MAX])
{
	const struct slice root = { a->unit_root, a->unit_root_len };
	int peer = peer_process(fd);
	struct slice unit = start ? unit_read(pid, root, text) : (struct slice){ 0 };
	char again[PROCESS_STAT_MAX];
	struct process process = { 0 };
	bool same = process_read(pid, again, &process) == 0 && process.start == start && !process.ended;

	return (peer == PEER_PROCESS_UNKNOWN || peer_process_lives(peer)) && same ? unit : (struct slice){ 0 };
}

void accept_groups(struct acceptor *a, int fd, gid_t gid, struct event_groups *ret)
{
	peer_groups(fd, gid, &a->groups);
	*ret = (struct event_groups){ a->groups.list, a->groups.count, a->groups.all };
}

/* `account`: whose share is used up; NULL: nobody's. */
static void accept_refuse(const struct account *account, int fd, struct slice sentence)
{
	const struct log_account who = account ? conn_log_account(account) : (struct log_account){ 0 };
	struct bytes text = { 0 };
	ssize_t sent;

	resp_error(&text, ERROR_LIMIT, sentence);
	sent = send(fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)sent;
	bytes_free(&text);
	log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_refused, account ? &who : NULL, LOG_FIELDS("why=%s", "clients"),
		   "refused a client: %.*s", (int)sentence.len, sentence.data);
}

/* False: its user has as many as it may, which it was told. */
static bool accept_admits(int fd, const struct account *account, bool privileged)
{
	struct bytes sentence = { 0 };

	if (account_may(account, SOCKET_CONNECTIONS, 1, privileged))
		return true;
	account_refusal(account, SOCKET_CONNECTIONS, privileged, &socket_pools_words[SOCKET_CONNECTIONS], &sentence);
	accept_refuse(account, fd, bytes_view(&sentence));
	bytes_free(&sentence);
	return false;
}

static void accept_one(struct acceptor *a, int fd, bool privileged)
{
	struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t len = sizeof(cred);
	char text[PROCESS_STAT_MAX], cgroup[UNIT_CGROUP_MAX];
	struct process process = { 0 };
	struct visitor v = { .fd = fd, .privileged = privileged };

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		log_warning(client_refused, LOG_FIELDS("why=%s error=%v", "credentials", strerror(errno)),
			    "refused a client whose credentials are unknown: %s", strerror(errno));
		close(fd);
		return;
	}
	/* A process that may not be read has no name, and is known by its number alone. */
	if (process_read(cred.pid, text, &process) == 0)
		v.comm = process.comm;
	v.pid = (uint32_t)cred.pid;
	v.uid = cred.uid;
	v.gid = cred.gid;
	v.start = process.start;
	v.unit = accept_unit(a, fd, cred.pid, process.start, cgroup);
	v.account = account_enter(&a->env->accounts, cred.uid, v.unit.data, v.unit.len);
	if (accept_admits(fd, v.account, privileged))
		a->calls.welcome(a->calls.arg, &v);
	else
		close(fd);
	account_leave(v.account); /* a connection that is welcome is charged to it */
}

static void accept_pause(struct acceptor *a, int error)
{
	log_error(accept_failed, LOG_FIELDS("error=%v", strerror(error)), "cannot accept clients: %s", strerror(error));
	watch_clear(a->accepting);
	watch_clear(a->accepting_operators);
	watch_set(a->pause, -1, 0, ACCEPT_PAUSE_NS);
}

void accept_begin(struct acceptor *a)
{
	watch_set(a->accepting, a->listening, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
	if (a->operators >= 0)
		watch_set(a->accepting_operators, a->operators, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
}

static void accept_resume(int fd, short what, void *arg)
{
	accept_begin(arg);
}

static void accept_all(int listening, short what, void *arg)
{
	struct acceptor *a = arg;
	int fd, i;

	feed_begin_share(a->env->feed, ACCEPT_NS);
	for (i = 0; i < ACCEPTS_PER_TURN && !feed_share_spent(a->env->feed); i++) {
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			if (!a->calls.is_full(a->calls.arg)) {
				accept_one(a, fd, listening == a->operators);
			} else {
				accept_refuse(NULL, fd, SLICE("the daemon has as many clients as it can have"));
				close(fd);
			}
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			accept_pause(a, errno);
		if (errno != EINTR && errno != ECONNABORTED)
			break;
	}
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
	a->listening = fd;
	a->operators = operators;
	a->accepting = watch_new(feed_base(env->feed), accept_all, a);
	a->accepting_operators = watch_new(feed_base(env->feed), accept_all, a);
	a->pause = watch_new(feed_base(env->feed), accept_resume, a);
	return a;
}

void accept_free(struct acceptor *a)
{
	if (!a)
		return;
	watch_free(a->accepting);
	watch_free(a->accepting_operators);
	watch_free(a->pause);
	mem_free(a);
}
