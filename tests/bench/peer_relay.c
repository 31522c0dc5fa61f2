/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ZooKeeper recipe behind a local socket: each process of the load has another one that does the recipe for it, and
 * asks that. The least that any broker adds to the recipe when a lock crosses hosts: two processes more on the way,
 * from the one that lets go and to the one that gets it, and nothing else.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "line.h"
#include "load.h"

struct relay_message {
	bool wants; /* the lock; else it lets go */
	struct lock_name name;
};

struct relay {
	struct line line;
	pid_t other;
};

static int prepare(const char *target, const struct lock_name *names, int count)
{
	return peer_recipe.prepare(target, names, count);
}

/* The other process: until its asker ends. */
static int serve(int fd, const char *target)
{
	struct relay_message m;
	void *session;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	session = peer_recipe.open(target);
	if (!session || send(fd, "+", 1, MSG_NOSIGNAL) < 0)
		return 1;
	while (recv(fd, &m, sizeof(m), MSG_WAITALL) == sizeof(m)) {
		if (m.wants ? peer_recipe.lock(session, &m.name) : peer_recipe.unlock(session, &m.name))
			return 1;
		if (send(fd, "+", 1, MSG_NOSIGNAL) < 0)
			return 1;
	}
	peer_recipe.close(session);
	return 0;
}

static int hear(struct relay *r)
{
	return line_bytes(&r->line, 1) ? 0 : -1;
}

static void *relay_open(const char *target)
{
	struct relay *r = calloc(1, sizeof(*r));
	int ends[2];

	if (!r || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		perror("bench: socketpair");
		return NULL;
	}
	r->other = fork();
	if (r->other < 0) {
		perror("bench: fork");
		return NULL;
	}
	if (r->other == 0) {
		close(ends[0]);
		_exit(serve(ends[1], target));
	}
	close(ends[1]);
	r->line.fd = ends[0];
	return hear(r) ? NULL : r;
}

static int ask(struct relay *r, bool wants, const struct lock_name *name)
{
	struct relay_message m = { .wants = wants, .name = *name };

	return line_send(&r->line, &m, sizeof(m)) || hear(r) ? -1 : 0;
}

static int relay_lock(void *session, const struct lock_name *name)
{
	return ask(session, true, name);
}

static int relay_unlock(void *session, const struct lock_name *name)
{
	return ask(session, false, name);
}

static void relay_close(void *session)
{
	struct relay *r = session;

	close(r->line.fd);
	waitpid(r->other, NULL, 0);
}

const struct peer peer_relay = {
	.word = "relay",
	.prepare = prepare,
	.open = relay_open,
	.lock = relay_lock,
	.unlock = relay_unlock,
	.close = relay_close,
};
