/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/process.h"
#include "io/files/life.h"
#include "io/files/page.h"
#include "io/files/pidfile.h"
#include "io/files/saved.h"
#include "io/files/saved_left.h"
#include "io/files/tokens.h"
#include "io/keep.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"
#include "io/zookeeper/zookeeper.h"
#include "parts.h"
#include "revive.h"

/* How long a process may take to end whose files the next one needs, and how often that looks. */
#define EXIT_NS (5 * CLOCK_NS_PER_S)
#define EXIT_LOOK_NS (10 * CLOCK_NS_PER_MS)

/* A descriptor that the keeper has of the process before this one; -1: none. */
static struct keeper_kept *role(struct daemon *d, uint64_t id)
{
	static struct keeper_kept none = { .fd = -1 };

	for (size_t i = 0; i < d->past.count; i++)
		if (d->past.kept[i].id == id)
			return &d->past.kept[i];
	return &none;
}

/* A socket of the process before this one: whoever connects meanwhile waits there. */
static bool listen_on(struct daemon *d, struct listener *l, const struct listen_place *place, uint64_t id, uint64_t lock_id)
{
	struct keeper_kept *socket = role(d, id), *lock = role(d, lock_id);

	if (socket->fd < 0 || !listen_take_back(l, place->path, socket->fd, lock->fd))
		return false;
	socket->fd = lock->fd = -1;
	return true;
}

/* Where a service begins, there is no lock to be lost yet. A process that goes on with others' locks does so. */
static int check_dir(const struct daemon *d, const struct listener *l, const struct listen_place *place,
		     char text[LISTEN_ERROR_MAX])
{
	int rc = l->fd >= 0 && !l->path ? 0 : listen_check_dir(place, text);

	if (rc < 0 && d->past.crashes) {
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "sockets", text), "%s", text);
		rc = 0;
	}
	return rc;
}

/* Opens that socket, unless it was passed. If somebody has removed the socket, the keeper still has its lock file. */
static int listen_at(struct daemon *d, struct listener *l, const struct listen_place *place, uint64_t lock_id)
{
	struct keeper_kept *lock = role(d, lock_id);
	char text[LISTEN_ERROR_MAX];
	int rc = check_dir(d, l, place, text);

	if (rc == 0 && l->fd < 0)
		rc = listen_open(l, place, lock->fd, text);
	if (lock->fd >= 0 && l->lock_fd == lock->fd)
		lock->fd = -1;
	if (rc < 0)
		log_error(cannot_start, LOG_FIELDS("what=%s error=%v", "sockets", text), "%s", text);
	else if (listen_differs(l, place, text))
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
	if (listen_on(d, &d->listener, &d->place, KEEPER_LISTENER, KEEPER_LISTENER_LOCK))
		listen_close(&clients);
	else
		d->listener = clients;
	if (listen_on(d, &d->operators, &d->operator_place, KEEPER_OPERATORS, KEEPER_OPERATORS_LOCK))
		listen_close(&operators);
	else
		d->operators = operators;
	return listen_at(d, &d->listener, &d->place, KEEPER_LISTENER_LOCK) < 0
		       ? -1
		       : listen_at(d, &d->operators, &d->operator_place, KEEPER_OPERATORS_LOCK);
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
		log_info(start_waits, LOG_FIELDS("what=%s pid=%d", "worker", *ret_other),
			 "the main process of the lockbrokerd before this one (pid %ld) has ended, and its worker has not yet: "
			 "waiting for that",
			 (long)*ret_other);
	while (rc == -EBUSY && has_ended(*ret_other) && wait_a_moment(until_ns))
		rc = pidfile_open(d->conf.rundir, keeper_pid(d->keeper), ret_other);
	/* It closes one file after the other. */
	while (rc >= 0 && saved_left_is_ending(d->conf.rundir) && wait_a_moment(until_ns))
		;
	return rc;
}

static int open_pidfile(struct daemon *d)
{
	struct keeper_kept *kept = role(d, KEEPER_PIDFILE);
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
		log_info(start_waits, LOG_FIELDS("what=%s", "life"),
			 "the daemon before this one was killed with its keeper, and its session page is gone: nothing is "
			 "granted for a second, because its clients may believe for so long that they hold a lock");
	return rc;
}

/* What this daemon leaves. If it goes on with what another one left, that one's file counts until the clients are there. */
static int open_saved(struct daemon *d, struct saved_left *left, bool revived)
{
	const struct saved_conf conf = daemon_saved_conf(d);
	int rc = revived ? saved_continue(&d->saved, &conf, left) : saved_open(&d->saved, &conf, left);

	if (rc < 0) {
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "saved", d->conf.rundir, strerror(-rc)),
			  "%s/saved: %s", d->conf.rundir, strerror(-rc));
		return rc;
	}
	d->conf.broker.formers = d->formers;
	d->conf.broker.former_count = saved_formers(d->saved, d->formers);
	return 0;
}

static int read_left(struct daemon *d, struct saved_left **ret)
{
	const struct saved_conf conf = daemon_saved_conf(d);
	int rc = saved_left_read(ret, &conf);

	if (rc == -EBUSY) {
		keep_drop(&d->notify);
		rc = saved_left_read(ret, &conf);
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
static bool open_files(struct daemon *d, struct saved_left *left, bool revived, int64_t *ret_tokens)
{
	if (open_page(d, revived) < 0 || open_saved(d, left, revived) < 0)
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
	int rc = r->left ? 0 : new_broker(d);

	if (rc == 0)
		rc = parts_make(d, source);
	if (rc == 0 && r->left)
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
		 LOG_FIELDS("socket=%v host=%v standalone=%d version=%v", d->listener.path ? d->listener.path : "",
			    d->conf.broker.host, d->conf.broker.standalone, LOCKBROKERD_VERSION),
		 "lockbrokerd " LOCKBROKERD_VERSION " serves %s as host %s%s",
		 d->listener.path ? d->listener.path : "the socket it was passed", d->conf.broker.host,
		 d->conf.broker.standalone ? ", standalone: its locks are for this host alone" : "");
	return 0;
}

static int begin(struct daemon *d, const struct conf_source *source)
{
	struct saved_left *left = NULL;
	struct revival r = { 0 };
	int64_t tokens_limit = 0;
	bool begun;

	if (getrandom(d->page_id, sizeof(d->page_id), 0) < 0)
		return -errno;
	session_page_id_text(d->page_id, d->page_id_text);
	if (open_pidfile(d) < 0 || read_left(d, &left) < 0)
		return -1;
	revive_broker(d, left, &r);
	begun = open_files(d, left, r.left, &tokens_limit) && run(d, source, &r, tokens_limit) == 0;
	revive_free(&r);
	saved_left_free(left);
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
