/* SPDX-License-Identifier: Apache-2.0 */
#include "removed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/file.h"
#include "io/base/keeper.h"
#include "io/base/watch.h"
#include "io/files/life.h"
#include "io/files/page.h"
#include "io/files/pidfile.h"
#include "io/files/saved.h"
#include "io/files/tokens.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"

#define LOOK_NS (4 * CLOCK_NS_PER_S)

enum { PATH_TEXT_MAX = 4096 + 64 };

enum item { PIDFILE, SAVED, PAGE, CLIENTS_LOCK, CLIENTS, OPERATORS_LOCK, OPERATORS, TOKENS, LIFE, ITEMS };

struct removed {
	struct daemon *d;
	struct watch *timer;
	int dir_fd; /* of daemon.rundir, locked; -1: not */
	bool lost[ITEMS];
	char error[LISTEN_ERROR_MAX]; /* of the item that is looked at */
};

static int fail(struct removed *r, int rc, const char *text)
{
	snprintf(r->error, sizeof(r->error), "%s", text);
	return rc;
}

/* The keeper has the one before. */
static void keep(const struct daemon *d, uint64_t id, int fd)
{
	keeper_drop(d->keeper, id);
	keeper_keep(d->keeper, id, fd);
}

/* ---- the run directory ---- */

/* Where the daemon may not make it, systemd has made it. */
static int no_rundir(struct removed *r, int rc)
{
	if (getenv("RUNTIME_DIRECTORY") && access(r->d->conf.rundir, F_OK) < 0)
		return fail(r, rc, "systemd makes its directory: systemctl restart lockbrokerd.service");
	return fail(r, rc, strerror(-rc));
}

static int pidfile_again(struct removed *r, struct daemon_socket *none)
{
	struct daemon *d = r->d;
	pid_t other = 0;
	int fd = pidfile_open(d->conf.rundir, keeper_pid(d->keeper), &other);

	if (fd == -EBUSY) {
		snprintf(r->error, sizeof(r->error), "another lockbrokerd (pid %ld) has it locked: end one of the two",
			 (long)other);
		return fd;
	}
	if (fd == -EPERM)
		return fail(r, fd, "its directory must belong to the daemon's user or root, and not be writable by others");
	if (fd < 0)
		return no_rundir(r, fd);
	if (dup3(fd, d->pid_fd, O_CLOEXEC) < 0)
		fail(r, -errno, strerror(errno));
	else
		keep(d, KEEPER_PIDFILE, d->pid_fd);
	close(fd);
	return 0;
}

static void hold_rundir(struct removed *r)
{
	struct stat is, was;

	if (r->dir_fd >= 0 && fstat(r->dir_fd, &was) == 0 && stat(r->d->conf.rundir, &is) == 0 && is.st_dev == was.st_dev &&
	    is.st_ino == was.st_ino)
		return;
	file_close(&r->dir_fd);
	r->dir_fd = open(r->d->conf.rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Who cleans up just now has it locked: the next look comes soon. */
	if (r->dir_fd >= 0 && (fstat(r->dir_fd, &is) < 0 || is.st_mode & S_ISVTX || flock(r->dir_fd, LOCK_SH | LOCK_NB) < 0)) {
		file_close(&r->dir_fd);
	}
}

static bool pidfile_is_missing(const struct daemon *d, const struct daemon_socket *none)
{
	return !pidfile_is(d->conf.rundir, d->pid_fd);
}

static bool file_saved_is_missing(const struct daemon *d, const struct daemon_socket *none)
{
	return saved_is_missing(d->saved, d->conf.rundir);
}

static int file_saved_again(struct removed *r, struct daemon_socket *none)
{
	return saved_again(r->d->saved, r->d->conf.rundir);
}

static bool session_is_missing(const struct daemon *d, const struct daemon_socket *none)
{
	return page_is_missing(d->page, d->conf.rundir);
}

static int session_again(struct removed *r, struct daemon_socket *none)
{
	return page_again(r->d->page, r->d->conf.rundir);
}

/* ---- sockets ---- */

static bool lock_is_missing(const struct daemon *d, const struct daemon_socket *s)
{
	return listen_lock_is_missing(&s->listener);
}

static int lock_again(struct removed *r, struct daemon_socket *s)
{
	int rc = listen_lock_again(&s->listener, s->address.key, r->error);

	if (rc == 0)
		keep(r->d, s->lock_role, s->listener.lock_fd);
	return rc;
}

static bool socket_is_missing(const struct daemon *d, const struct daemon_socket *s)
{
	return listen_is_missing(&s->listener);
}

static int socket_again(struct removed *r, struct daemon_socket *s)
{
	struct listener next;
	int rc;

	if (!s->listener.path)
		return fail(r, -ENOENT, "systemd has made it: systemctl restart lockbrokerd.socket lockbrokerd.service");
	if (listen_check_dir(&s->address, r->error) < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "sockets", r->error), "%s", r->error);
	rc = listen_open(&next, &s->address, s->listener.lock_fd, r->error);
	if (rc < 0)
		return rc;
	server_listen(r->d->server, s == &r->d->operators, next.fd);
	keep(r->d, s->role, next.fd);
	free(s->listener.path);
	s->listener = next;
	return 0;
}

/* ---- the state directory ---- */

static bool tokens_is_missing(const struct daemon *d, const struct daemon_socket *none)
{
	return d->tokens && tokens_are_missing(d->tokens, d->conf.statedir);
}

static int tokens_file_again(struct removed *r, struct daemon_socket *none)
{
	return tokens_again(r->d->tokens, r->d->conf.statedir);
}

static bool life_file_is_missing(const struct daemon *d, const struct daemon_socket *none)
{
	return life_is_missing(d->life);
}

static int life_file_again(struct removed *r, struct daemon_socket *none)
{
	return life_again(r->d->life);
}

/* ---- all of them ---- */

enum location { RUNDIR, STATEDIR, SOCKET, OPERATOR_SOCKET };

/* A lock comes before what it is for. */
static const struct {
	const char *name;
	enum location location;
	enum item lock; /* if that is lost, so is this; itself: none */
	bool (*is_missing)(const struct daemon *d, const struct daemon_socket *s); /* `s`: of the last two locations */
	int (*again)(struct removed *r, struct daemon_socket *s);
} items[ITEMS] = {
	[PIDFILE] = { "/lockbrokerd.pid", RUNDIR, PIDFILE, pidfile_is_missing, pidfile_again },
	[SAVED] = { "/saved", RUNDIR, PIDFILE, file_saved_is_missing, file_saved_again },
	[PAGE] = { "/session", RUNDIR, PIDFILE, session_is_missing, session_again },
	[CLIENTS_LOCK] = { ".lock", SOCKET, CLIENTS_LOCK, lock_is_missing, lock_again },
	[CLIENTS] = { "", SOCKET, CLIENTS_LOCK, socket_is_missing, socket_again },
	[OPERATORS_LOCK] = { ".lock", OPERATOR_SOCKET, OPERATORS_LOCK, lock_is_missing, lock_again },
	[OPERATORS] = { "", OPERATOR_SOCKET, OPERATORS_LOCK, socket_is_missing, socket_again },
	[TOKENS] = { "/tokens", STATEDIR, TOKENS, tokens_is_missing, tokens_file_again },
	[LIFE] = { "/life", STATEDIR, TOKENS, life_file_is_missing, life_file_again },
};

static const char *location_of(const struct daemon *d, enum location location, const struct daemon_socket *s)
{
	if (location == RUNDIR)
		return d->conf.rundir;
	if (location == STATEDIR)
		return d->conf.statedir;
	return s->listener.path ? s->listener.path : s->address.path;
}

/* Returns whether it is lost. */
static bool look_at(struct removed *r, size_t i)
{
	struct daemon_socket *s = items[i].location == OPERATOR_SOCKET ? &r->d->operators : &r->d->clients;
	char path[PATH_TEXT_MAX];
	int rc;

	if (!items[i].is_missing(r->d, s))
		return false;
	snprintf(path, sizeof(path), "%s%s", location_of(r->d, items[i].location, s), items[i].name);
	r->error[0] = '\0';
	rc = items[i].lock != i && r->lost[items[i].lock] ? fail(r, -EBUSY, "its lock file is not this daemon's") :
							   items[i].again(r, s);
	if (rc == 0) {
		log_warning(removed, LOG_FIELDS("path=%v", path), "somebody has removed %s: it was made again", path);
		return false;
	}
	if (!r->error[0])
		fail(r, rc, strerror(-rc));
	if (!r->lost[i])
		log_error(removed, LOG_FIELDS("path=%v error=%v", path, r->error),
			  "somebody has removed %s, and it cannot be made again: %s", path, r->error);
	return true;
}

void removed_look(struct removed *r)
{
	if (!r)
		return;
	r->d->files_lost = 0;
	for (size_t i = 0; i < ITEMS; i++) {
		r->lost[i] = look_at(r, i);
		r->d->files_lost += r->lost[i];
	}
	hold_rundir(r);
}

static void fired(int fd, short what, void *arg)
{
	struct removed *r = arg;

	removed_look(r);
	watch_set(r->timer, -1, 0, LOOK_NS);
}

struct removed *removed_new(struct daemon *d)
{
	struct removed *r = mem_new(sizeof(*r));

	r->d = d;
	r->dir_fd = -1;
	r->timer = watch_new(feed_base(d->feed), fired, r);
	fired(-1, 0, r);
	return r;
}

void removed_free(struct removed *r)
{
	if (!r)
		return;
	watch_free(r->timer);
	file_close(&r->dir_fd);
	mem_free(r);
}
