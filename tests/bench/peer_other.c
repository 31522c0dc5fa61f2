/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that other services, or the kernel, give to the processes of a host. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "line.h"
#include "load.h"

#define EXPIRES_S "30"

static int unexpected(const char *who, const char *line)
{
	fprintf(stderr, "bench: %s says %s\n", who, line ? line : "nothing");
	return -1;
}

/* ---- Redis: SET NX PX, polled; deleted by a script if it is still ours ---- */

static const char script[] =
	"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

struct redis {
	struct line line;
	struct line_request lock, unlock;
	char sha[41];
	char owner[24];
};

static const char *first_line(struct line *l, int more)
{
	static char first[128];
	const char *line = line_read(l);

	first[0] = '\0';
	strncat(first, line ? line : "", sizeof(first) - 1);
	while (line && more-- > 0)
		line = line_read(l);
	return line ? first : NULL;
}

static void *redis_open(const char *target)
{
	struct redis *r = calloc(1, sizeof(*r));
	const char *line;

	if (!r || line_connect(&r->line, target) || line_words(&r->line, "SCRIPT", "LOAD", script, NULL) ||
	    !first_line(&r->line, 0))
		return NULL;
	line = line_read(&r->line);
	if (!line || strlen(line) != 40)
		return NULL;
	memcpy(r->sha, line, 41);
	snprintf(r->owner, sizeof(r->owner), "%d", (int)getpid());
	return r;
}

static int redis_lock(void *session, const struct lock_name *name)
{
	struct redis *r = session;
	const char *line;

	for (;;) {
		if (line_same_words(&r->line, &r->lock, name->number, "SET", name->text, r->owner, "NX", "PX",
				    EXPIRES_S "000", NULL))
			return -1;
		line = line_read(&r->line);
		if (line && strcmp(line, "+OK") == 0)
			return 0;
		if (!line || strcmp(line, "$-1") != 0)
			return unexpected("Redis", line);
		poll_pause();
	}
}

static int redis_unlock(void *session, const struct lock_name *name)
{
	struct redis *r = session;
	const char *line;

	if (line_same_words(&r->line, &r->unlock, name->number, "EVALSHA", r->sha, "1", name->text, r->owner, NULL))
		return -1;
	line = line_read(&r->line);
	return line && strcmp(line, ":1") == 0 ? 0 : unexpected("Redis", line);
}

const struct peer peer_redis = { .word = "redis", .open = redis_open, .lock = redis_lock, .unlock = redis_unlock };

/* ---- Redis: the lock is an element of a list; who takes it holds it, and the waiters queue up in Redis ---- */

static int blpop_prepare(const char *target, const struct lock_name *names, int count)
{
	struct line *l = line_open(target);
	int i;

	for (i = 0; l && i < count; i++) {
		if (line_words(l, "DEL", names[i].text, NULL) || line_words(l, "RPUSH", names[i].text, "x", NULL) ||
		    !first_line(l, 1))
			return -1;
	}
	if (l)
		close(l->fd);
	free(l);
	return l ? 0 : -1;
}

static void *blpop_open(const char *target)
{
	struct redis *r = calloc(1, sizeof(*r));

	return r && line_connect(&r->line, target) == 0 ? r : NULL;
}

static int blpop_ask(void *session, const struct lock_name *name)
{
	struct redis *r = session;

	return line_same_words(&r->line, &r->lock, name->number, "BLPOP", name->text, "0", NULL);
}

static int blpop_granted(void *session, const struct lock_name *name)
{
	struct redis *r = session;
	const char *line = first_line(&r->line, 4);

	return line && strcmp(line, "*2") == 0 ? 0 : unexpected("Redis", line);
}

static int blpop_unlock(void *session, const struct lock_name *name)
{
	struct redis *r = session;
	const char *line;

	if (line_same_words(&r->line, &r->unlock, name->number, "RPUSH", name->text, "x", NULL))
		return -1;
	line = line_read(&r->line);
	return line && *line == ':' ? 0 : unexpected("Redis", line);
}

const struct peer peer_blpop = {
	.word = "blpop",
	.prepare = blpop_prepare,
	.open = blpop_open,
	.ask = blpop_ask,
	.granted = blpop_granted,
	.unlock = blpop_unlock,
};

/* ---- memcached: add, polled; delete ---- */

static int memcached_lock(void *session, const struct lock_name *name)
{
	const char *line;

	for (;;) {
		if (line_texts(session, "add ", name->text, " 0 " EXPIRES_S " 1\r\nx\r\n", NULL))
			return -1;
		line = line_read(session);
		if (line && strcmp(line, "STORED") == 0)
			return 0;
		if (!line || strcmp(line, "NOT_STORED") != 0)
			return unexpected("memcached", line);
		poll_pause();
	}
}

static int memcached_unlock(void *session, const struct lock_name *name)
{
	const char *line;

	if (line_texts(session, "delete ", name->text, "\r\n", NULL))
		return -1;
	line = line_read(session);
	return line && strcmp(line, "DELETED") == 0 ? 0 : unexpected("memcached", line);
}

const struct peer peer_memcached = {
	.word = "memcached",
	.open = line_open,
	.lock = memcached_lock,
	.unlock = memcached_unlock,
};

/* ---- PostgreSQL: session-level advisory locks by simple queries, over its socket, without a password ---- */

static void put32(char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)(value >> (24 - 8 * i));
}

static uint32_t get32(const char *at)
{
	const unsigned char *b = (const unsigned char *)at;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Until it is ready for the next query. */
static int postgres_hear(struct line *l)
{
	for (;;) {
		const char *head = line_bytes(l, 5), *body;
		char type = head ? *head : 0;
		size_t len = head ? get32(head + 1) - 4 : 0;

		body = head && len < LINE_BYTES_MAX ? line_bytes(l, len) : NULL;
		if (!body || type == 'E') {
			fprintf(stderr, "bench: PostgreSQL says no\n");
			return -1;
		}
		if (type == 'Z')
			return 0;
	}
}

static void *postgres_open(const char *target)
{
	static const char words[] = "user\0bench\0database\0postgres\0";
	char start[8 + sizeof(words)];
	struct line *l = line_open(target);

	put32(start, sizeof(start));
	put32(start + 4, 3 << 16);
	memcpy(start + 8, words, sizeof(words));
	return l && line_send(l, start, sizeof(start)) == 0 && postgres_hear(l) == 0 ? l : NULL;
}

static int postgres_ask(struct line *l, const char *function, uint32_t number)
{
	char query[128];
	int len = snprintf(query + 5, sizeof(query) - 5, "SELECT %s(%u)", function, number) + 1;

	query[0] = 'Q';
	put32(query + 1, (uint32_t)len + 4);
	return line_send(l, query, (size_t)len + 5);
}

static int postgres_lock(void *session, const struct lock_name *name)
{
	return postgres_ask(session, "pg_advisory_lock", name->number) ? -1 : postgres_hear(session);
}

static int postgres_unlock(void *session, const struct lock_name *name)
{
	return postgres_ask(session, "pg_advisory_unlock", name->number) ? -1 : postgres_hear(session);
}

const struct peer peer_postgres = {
	.word = "postgres",
	.open = postgres_open,
	.lock = postgres_lock,
	.unlock = postgres_unlock,
};

/* ---- flock(2) on a file; the target is a directory ---- */

struct files {
	int fd;
	const char *directory;
	char name[64]; /* of the open one */
};

static void *flock_open(const char *target)
{
	struct files *f = calloc(1, sizeof(*f));

	if (f)
		*f = (struct files){ .fd = -1, .directory = target };
	return f;
}

static int flock_take(void *session, const struct lock_name *name, int how)
{
	struct files *f = session;
	char path[512];

	if (strcmp(f->name, name->text) != 0) {
		if (f->fd >= 0)
			close(f->fd);
		snprintf(path, sizeof(path), "%s/%s", f->directory, name->text);
		snprintf(f->name, sizeof(f->name), "%s", name->text);
		f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	}
	if (f->fd < 0 || flock(f->fd, how) < 0) {
		perror("bench: flock");
		return -1;
	}
	return 0;
}

static int flock_lock(void *session, const struct lock_name *name)
{
	return flock_take(session, name, LOCK_EX);
}

static int flock_lock_shared(void *session, const struct lock_name *name)
{
	return flock_take(session, name, LOCK_SH);
}

static int flock_unlock(void *session, const struct lock_name *name)
{
	return flock(((struct files *)session)->fd, LOCK_UN);
}

const struct peer peer_flock = {
	.word = "flock",
	.open = flock_open,
	.lock = flock_lock,
	.lock_shared = flock_lock_shared,
	.unlock = flock_unlock,
};

/* ---- a mutex of pthreads in memory that processes share, robust: a file for each; the target is a directory ---- */

static pthread_mutex_t *mutex_map(const char *directory, const char *name)
{
	char path[512];
	void *at = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.mutex", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && ftruncate(fd, sizeof(pthread_mutex_t)) == 0)
		at = mmap(NULL, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		perror("bench: mutex");
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static int mutex_prepare(const char *target, const struct lock_name *names, int count)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < count; i++) {
		pthread_mutex_t *m = mutex_map(target, names[i].text);

		if (!m || pthread_mutex_init(m, &attributes) != 0)
			return -1;
		munmap(m, sizeof(*m));
	}
	return 0;
}

struct mutexes {
	const char *directory;
	char name[64]; /* of the mapped one */
	pthread_mutex_t *mutex;
};

static void *mutex_open(const char *target)
{
	struct mutexes *all = calloc(1, sizeof(*all));

	if (all)
		all->directory = target;
	return all;
}

static int mutex_lock(void *session, const struct lock_name *name)
{
	struct mutexes *all = session;

	if (strcmp(all->name, name->text) != 0) {
		if (all->mutex)
			munmap(all->mutex, sizeof(*all->mutex));
		all->mutex = mutex_map(all->directory, name->text);
		snprintf(all->name, sizeof(all->name), "%s", name->text);
	}
	return all->mutex && pthread_mutex_lock(all->mutex) == 0 ? 0 : -1;
}

static int mutex_unlock(void *session, const struct lock_name *name)
{
	return pthread_mutex_unlock(((struct mutexes *)session)->mutex) == 0 ? 0 : -1;
}

const struct peer peer_mutex = {
	.word = "mutex", .prepare = mutex_prepare, .open = mutex_open, .lock = mutex_lock, .unlock = mutex_unlock,
};
