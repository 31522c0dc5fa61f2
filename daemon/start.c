/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/files/page.h"
#include "io/files/pidfile.h"
#include "io/files/saved.h"
#include "io/files/saved_left.h"
#include "io/files/tokens.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"
#include "parts.h"

static int start_listening(struct daemon *d)
{
	const mode_t mode = (mode_t)d->conf.socket_mode;
	char text[LISTEN_ERROR_MAX];
	int rc = listen_passed(&d->listener, text);

	if (rc == 0)
		rc = listen_open(&d->listener, d->conf.socket, mode, d->socket_gid, text);
	if (rc < 0)
		log_error("%s", text);
	else if (listen_differs(&d->listener, mode, d->socket_gid, text))
		log_warning("%s", text);
	return rc;
}

/* The number below which tokens may have been given out; negative: it is unknown. */
static int64_t open_tokens(struct daemon *d)
{
	int64_t limit;
	int rc = tokens_open(&d->tokens, d->conf.statedir, &limit);

	if (rc == -EBUSY)
		log_error("another standalone lockbrokerd uses daemon.statedir = %s; each daemon needs its own",
			  d->conf.statedir);
	else if (rc == -EBADMSG)
		log_error(
			"%s/tokens is not one line of digits, so it is unknown which tokens were given out; restore the file, "
			"or remove it if no resource remembers a token",
			d->conf.statedir);
	else if (rc < 0)
		log_error("daemon.statedir = %s: %s", d->conf.statedir, strerror(-rc));
	return rc < 0 ? rc : limit;
}

static int open_rundir(struct daemon *d)
{
	pid_t other = 0;
	int rc = pidfile_open(d->conf.rundir, keeper_pid(d->keeper), &other);

	if (rc == -EBUSY)
		log_error("another lockbrokerd (pid %ld) uses daemon.rundir = %s; each daemon needs its own",
			  (long)other, d->conf.rundir);
	else if (rc == -EPERM)
		log_error("daemon.rundir = %s: must belong to the daemon's user or root, and not be writable by others "
			  "(chmod go-w)",
			  d->conf.rundir);
	else if (rc < 0)
		log_error("daemon.rundir = %s: %s", d->conf.rundir, strerror(-rc));
	d->pid_fd = rc;
	if (rc < 0)
		return rc;
	rc = getrandom(d->page_id, sizeof(d->page_id), 0) < 0 ? -errno : 0;
	session_page_id_text(d->page_id, d->page_id_text);
	if (rc == 0)
		rc = page_open(&d->page, d->conf.rundir, d->page_id, false);
	if (rc < 0)
		log_error("%s: %s", d->page_path, strerror(-rc));
	return rc;
}

/* Reads what an earlier daemon left; this daemon leaves the same there. */
static int open_saved(struct daemon *d)
{
	const struct saved_conf saved_conf = daemon_saved_conf(d);
	struct saved_left *left = NULL;
	int rc = saved_left_read(&left, &saved_conf);

	if (rc == 0)
		rc = saved_open(&d->saved, &saved_conf, left);
	if (rc == -EBUSY)
		log_error("another lockbrokerd uses %s/saved", d->conf.rundir);
	else if (rc < 0)
		log_error("%s/saved: %s", d->conf.rundir, strerror(-rc));
	if (rc < 0)
		return rc;
	d->broker.formers = d->formers;
	d->broker.former_count = saved_formers(d->saved, d->formers);
	return 0;
}

static int start_parts(struct daemon *d, const struct conf_source *source)
{
	uint64_t seed;
	int rc;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return -errno;
	srandom((unsigned int)seed);
	rc = feed_new(&d->feed, &d->broker, seed);
	return rc < 0 ? rc : parts_make(d, source);
}

static int run(struct daemon *d, const struct conf_source *source, int64_t tokens_limit)
{
	const struct event begin = { .type = EVENT_TIME };
	int rc = start_parts(d, source);

	if (rc < 0) {
		log_error("the daemon cannot start: %s", strerror(-rc));
		parts_free(d, false, EXIT_FAILURE);
		return EXIT_FAILURE;
	}
	if (d->broker.standalone)
		parts_tokens(d, tokens_limit);
	server_begin(d->server);
	feed_event(d->feed, &begin);
	log_info("lockbrokerd " LOCKBROKERD_VERSION " serves %s as host %s%s",
		 d->listener.path ? d->listener.path : "the socket it was passed", d->conf.host,
		 d->broker.standalone ? ", standalone: its locks are for this host alone" : "");
	return parts_serve(d);
}

int start(struct daemon *d, const struct conf_source *source)
{
	int64_t tokens_limit = 0;

	if (open_rundir(d) < 0 || open_saved(d) < 0 || (d->broker.standalone && (tokens_limit = open_tokens(d)) < 0) ||
	    start_listening(d) < 0) {
		parts_free(d, false, EXIT_FAILURE);
		return EXIT_FAILURE;
	}
	return run(d, source, tokens_limit);
}
