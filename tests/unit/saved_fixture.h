/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for each test, and daemons of which one after the other has its file there: `s` is that of the latest one. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/log.h"
#include "core/session/former.h"
#include "io/base/process.h"
#include "io/files/saved.h"
#include "io/files/saved_previous.h"

#define SECOND INT64_C(1000000000)
#define NOW (1000 * SECOND)

enum { CLIENTS = 8 };

static char dir[64], path[96];
static struct saved *s;

static struct saved_conf conf = { .rundir = dir, .boot_id = "boot", .host = "alpha", .clients = CLIENTS, .now_ns = NOW };

static inline int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "%s/test_saved.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/saved", dir);
	conf.boot_id = "boot";
	conf.host = "alpha";
	conf.clients = CLIENTS;
	log_setup(LOG_LEVEL_ERROR, LOG_FORM_PLAIN); /* it warns of every spoiled file */
	return 0;
}

static inline void daemon_ends(void)
{
	saved_close(s);
	s = NULL;
}

static inline int remove_dir(void **state)
{
	daemon_ends();
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, make_dir, remove_dir)

static inline struct saved_previous *read_left(void)
{
	struct saved_previous *left = NULL;

	assert_int_equal(saved_previous_read(&left, &conf), 0);
	return left;
}

/* After the one before, if there is one. */
static inline void daemon_begins(void)
{
	struct saved_previous *left;

	daemon_ends();
	left = read_left();
	assert_int_equal(saved_open(&s, &conf, left), 0);
	saved_previous_free(left);
}

static inline void connected(uint32_t conn, pid_t pid, uint64_t start, int fd)
{
	saved_connected(s, conn, &(struct saved_conn){ .pid = (uint32_t)pid, .start = start }, fd);
}

static inline void session_is(int64_t id, int64_t safe_for_ns)
{
	struct zk_identity identity = { .session = id };

	snprintf(identity.password, sizeof(identity.password), "secret of %d", (int)id);
	saved_session(s, &identity, 15 * SECOND);
	saved_safe_until(s, NOW + safe_for_ns);
}

/* A daemon of that session with a holder, killed. Returns the holder's end of the connection. */
static inline int daemon_is_killed(int64_t id, pid_t pid, uint64_t start, bool looked)
{
	int ends[2];

	daemon_begins();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	session_is(id, 10 * SECOND);
	connected(3, pid, start, ends[0]);
	saved_holder(s, 3, true);
	if (looked)
		saved_look(s);
	daemon_ends();
	close(ends[0]);
	return ends[1];
}

/* ... and the connection with it. */
static inline void daemon_dies(int64_t id, pid_t pid, uint64_t start)
{
	close(daemon_is_killed(id, pid, start, true));
}

static inline uint64_t own_start(void)
{
	char text[PROCESS_STAT_MAX];
	struct process process;

	assert_int_equal(process_read(getpid(), text, &process), 0);
	return process.start;
}

static inline void left_is(size_t at, int64_t session, int64_t not_before_ns)
{
	struct broker_former list[FORMERS_MAX];
	struct zk_identity identity;
	char password[ZK_PASSWORD_BYTES] = { 0 };

	assert_true(saved_formers(s, list) > at);
	assert_int_equal(list[at].session, session);
	assert_int_equal(list[at].not_before_ns, not_before_ns);
	assert_true(saved_identity(s, session, &identity));
	snprintf(password, sizeof(password), "secret of %d", (int)session);
	assert_memory_equal(identity.password, password, sizeof(password));
}

static inline size_t left_count(void)
{
	struct broker_former list[FORMERS_MAX];

	return saved_formers(s, list);
}
