/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks in ZooKeeper without a broker: a session for each process, by the C client that the daemon uses too.
 *
 * recipe: the recipe of the ZooKeeper documentation; who waits watches the znode before its own.
 * herd: the naive one; who waits watches the directory, so that each release wakes all.
 * create: no lock at all. One create and one delete, each waited for: what the network and the servers take.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include "load.h"

enum { SESSION_MS = 15000, PATH_MAX_BYTES = 256 };

#define ROOT "/bench-direct"

struct session {
	zhandle_t *zh;
	bool answered, connected, woken;
	int rc;
	char own[PATH_MAX_BYTES];    /* path of the znode that was made */
	char before[PATH_MAX_BYTES]; /* path of the one before it; empty: it is the first */
};

/* The path of the znode without its last part. */
static const char *last_part(const char *path)
{
	return strrchr(path, '/') + 1;
}

static void watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
	struct session *s = (void *)(uintptr_t)zoo_get_context(zh);

	if (type == ZOO_SESSION_EVENT)
		s->connected = state == ZOO_CONNECTED_STATE;
	else
		s->woken = true;
}

static void turn(struct session *s)
{
	struct timeval t;
	struct pollfd p;
	int events = 0, interest = 0;

	zookeeper_interest(s->zh, &p.fd, &interest, &t);
	p.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) | (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
	poll(&p, p.fd >= 0, (int)(t.tv_sec * 1000 + (t.tv_usec + 999) / 1000));
	events |= p.fd >= 0 && p.revents & (POLLIN | POLLHUP | POLLERR) ? ZOOKEEPER_READ : 0;
	events |= p.fd >= 0 && p.revents & POLLOUT ? ZOOKEEPER_WRITE : 0;
	zookeeper_process(s->zh, events);
}

/* Waits for the answer to what was just asked with result `rc`. */
static int answer(struct session *s, int rc)
{
	while (rc == ZOK && !s->answered)
		turn(s);
	s->answered = false;
	return rc == ZOK ? s->rc : rc;
}

static int failed(const char *what, int rc)
{
	fprintf(stderr, "bench: ZooKeeper, %s: %s\n", what, zerror(rc));
	return -1;
}

static void made(int rc, const char *path, const void *data)
{
	struct session *s = (void *)(uintptr_t)data;

	s->rc = rc;
	s->answered = true;
	if (rc == ZOK)
		snprintf(s->own, sizeof(s->own), "%s", path);
}

static void done(int rc, const void *data)
{
	struct session *s = (void *)(uintptr_t)data;

	s->rc = rc;
	s->answered = true;
}

static void found(int rc, const struct Stat *stat, const void *data)
{
	done(rc, data);
}

/* By number, whatever stands before it. */
static void listed(int rc, const struct String_vector *children, const void *data)
{
	struct session *s = (void *)(uintptr_t)data;
	const char *own = last_part(s->own), *before = NULL;
	int i;

	done(rc, data);
	for (i = 0; rc == ZOK && i < children->count; i++) {
		const char *name = children->data[i], *number = name + strlen(name) - 10;

		if (strcmp(number, own + strlen(own) - 10) < 0 &&
		    (!before || strcmp(number, before + strlen(before) - 10) > 0))
			before = name;
	}
	s->before[0] = '\0';
	if (before)
		snprintf(s->before, sizeof(s->before), "%.*s%s", (int)(own - s->own), s->own, before);
}

static struct session *connect_to(const char *target)
{
	struct session *s = calloc(1, sizeof(*s));

	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	s->zh = zookeeper_init(target, watcher, SESSION_MS, NULL, s, 0);
	if (!s->zh)
		return NULL;
	/* Else each turn asks for the servers' addresses anew. */
	zoo_set_servers_resolution_delay(s->zh, -1);
	while (!s->connected)
		turn(s);
	return s;
}

static void *session_open(const char *target)
{
	return connect_to(target);
}

static void session_close(void *session)
{
	zookeeper_close(((struct session *)session)->zh);
}

static int make_directory(struct session *s, const char *path)
{
	int rc = answer(s, zoo_acreate(s->zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, made, s));

	return rc == ZOK || rc == ZNODEEXISTS ? 0 : failed(path, rc);
}

/* The directories are there before it begins, as in a program that has been running for a while. */
static int prepare(const char *target, const struct lock_name *names, int count)
{
	struct session *s = connect_to(target);
	char path[PATH_MAX_BYTES];
	int i;

	if (!s || make_directory(s, ROOT))
		return -1;
	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), ROOT "/%s", names[i].text);
		if (make_directory(s, path))
			return -1;
	}
	session_close(s);
	free(s);
	return 0;
}

static int join(struct session *s, const struct lock_name *name)
{
	char path[PATH_MAX_BYTES];
	int rc;

	snprintf(path, sizeof(path), ROOT "/%s/lock-", name->text);
	rc = answer(s, zoo_acreate(s->zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, made, s));
	return rc == ZOK ? 0 : failed("create", rc);
}

static int look(struct session *s, const struct lock_name *name, watcher_fn watch)
{
	char path[PATH_MAX_BYTES];
	int rc;

	snprintf(path, sizeof(path), ROOT "/%s", name->text);
	rc = answer(s, zoo_awget_children(s->zh, path, watch, s, listed, s));
	return rc == ZOK ? 0 : failed("list", rc);
}

static void wait_for_watch(struct session *s)
{
	while (!s->woken)
		turn(s);
	s->woken = false;
}

static int recipe_lock(void *session, const struct lock_name *name)
{
	struct session *s = session;
	int rc;

	if (join(s, name))
		return -1;
	for (;;) {
		if (look(s, name, NULL))
			return -1;
		if (!*s->before)
			return 0;
		s->woken = false;
		rc = answer(s, zoo_awexists(s->zh, s->before, watcher, s, found, s));
		if (rc == ZOK)
			wait_for_watch(s);
		else if (rc != ZNONODE)
			return failed("exists", rc);
	}
}

static int herd_lock(void *session, const struct lock_name *name)
{
	struct session *s = session;

	if (join(s, name))
		return -1;
	for (;;) {
		s->woken = false;
		if (look(s, name, watcher))
			return -1;
		if (!*s->before)
			return 0;
		wait_for_watch(s);
	}
}

static int create_lock(void *session, const struct lock_name *name)
{
	return join(session, name);
}

static int session_unlock(void *session, const struct lock_name *name)
{
	struct session *s = session;
	int rc = answer(s, zoo_adelete(s->zh, s->own, -1, done, s));

	return rc == ZOK ? 0 : failed("delete", rc);
}

const struct peer peer_recipe = {
	.word = "recipe",
	.prepare = prepare,
	.open = session_open,
	.lock = recipe_lock,
	.unlock = session_unlock,
	.close = session_close,
};

const struct peer peer_herd = {
	.word = "herd",
	.prepare = prepare,
	.open = session_open,
	.lock = herd_lock,
	.unlock = session_unlock,
	.close = session_close,
};

const struct peer peer_create = {
	.word = "create",
	.prepare = prepare,
	.open = session_open,
	.lock = create_lock,
	.unlock = session_unlock,
	.close = session_close,
};
