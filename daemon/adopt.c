/* SPDX-License-Identifier: Apache-2.0 */
#include "adopt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/files/life.h"
#include "io/files/page.h"
#include "io/files/pidfile.h"
#include "io/files/saved.h"
#include "io/files/saved_previous.h"
#include "io/files/tokens.h"
#include "io/handover/handover.h"
#include "io/handover/identity.h"
#include "io/handover/program.h"
#include "io/fdstore.h"
#include "io/notify.h"
#include "io/reload.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"
#include "io/zookeeper/resolve.h"
#include "io/zookeeper/zookeeper.h"
#include "orders.h"
#include "parts.h"

/* A file of its own, which gets its name when this process serves. */
static int continue_saved(struct daemon *d, struct parcel *p, int ahead, struct bytes *why)
{
	const struct saved_conf conf = daemon_saved_conf(d);
	struct saved_previous *previous;
	int rc = saved_previous_unpack(&previous, p);

	if (rc == 0) {
		rc = saved_continue(&d->saved, &conf, previous, ahead);
		saved_previous_free(previous);
		if (rc == -ENOSPC)
			bytes_text(why, "daemon.rundir has no room for a new one");
		else if (rc < 0)
			bytes_format(why, "cannot make a new one in %s: %s", slice_of(d->conf.rundir),
				     slice_of(strerror(-rc)));
	}
	return rc;
}

static int continue_life(struct daemon *d)
{
	return life_continue(&d->life, &(struct life_conf){ .statedir = d->conf.statedir,
							    .boot_id = d->boot_id,
							    .page = d->page_id_text,
							    .ended = "" });
}

static void check_dir(const struct daemon_socket *s)
{
	char text[LISTEN_ERROR_MAX];

	if (s->listener.path && listen_check_dir(&s->address, text) < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "sockets", text), "%s", text);
}

/* The files and the socket. NULL, or what cannot be taken over. */
static const char *adopt_files(struct daemon *d, struct parcel *p, int ahead, struct bytes *why)
{
	char text[LISTEN_ERROR_MAX];
	struct entry e;
	int rc;

	if (d->takeover)
		d->keeper = d->notify.keeper = keeper_unpack(p);
	parcel_find(p, "process", &e);
	d->pid_fd = parcel_take_fd(p, &e, "pid_fd");
	if (d->pid_fd < 0)
		return "lockbrokerd.pid";
	if (page_unpack(&d->page, p, d->page_id) < 0)
		return "the session page";
	session_page_id_text(d->page_id, d->page_id_text);
	if (listen_unpack(&d->clients.listener, "listener", p) < 0)
		return "the listening socket";
	rc = listen_unpack(&d->operators.listener, "operators", p);
	/* A daemon of an earlier version has none. */
	if (rc == -ENOENT)
		rc = listen_open(&d->operators.listener, &d->operators.address, -1, text);
	if (rc < 0)
		return "the operators' socket";
	check_dir(&d->clients);
	check_dir(&d->operators);
	if (d->conf.broker.standalone && tokens_unpack(&d->tokens, p, d->conf.statedir) < 0)
		return "the tokens file";
	if (d->conf.broker.standalone && continue_life(d) < 0)
		return "the file life";
	return continue_saved(d, p, ahead, why) < 0 ? "the file saved" : NULL;
}

/* Each client that the broker knows has its connection, and each connection its client. */
static bool all_are_there(const struct daemon *d)
{
	const struct broker *b = feed_broker(d->feed);
	size_t count = broker_clients(b);

	if (server_count(d->server) != count)
		return false;
	for (uint32_t conn = 0; count; conn++) {
		if (broker_has_client(b, conn) != server_has(d->server, conn))
			return false;
		count -= broker_has_client(b, conn);
	}
	return true;
}

/* NULL, or what cannot be taken over. */
static const char *adopt_parts(struct daemon *d, const struct conf_source *source, struct parcel *p, struct bytes *why)
{
	if (feed_restore(&d->feed, daemon_use(d), parcel_snapshot(p), why) < 0)
		return "the snapshot";
	if (parts_make(d, source) < 0)
		return "the loop";
	if (server_unpack(d->server, p) < 0 || !all_are_there(d))
		return "the connections";
	server_give_pages(d->server);
	if (!d->zookeeper)
		return NULL;
	return zookeeper_unpack(d->zookeeper, p, broker_session_timeout(feed_broker(d->feed))) < 0 ? "the session"
												   : NULL;
}

/* `ahead`: see saved_continue(). */
static bool adopt(struct daemon *d, const struct conf_source *source, struct parcel *p, int ahead)
{
	struct bytes why = { 0 };
	const char *what = adopt_files(d, p, ahead, &why);
	char sentence[512];

	if (!what)
		what = adopt_parts(d, source, p, &why);
	if (!what)
		return true;
	snprintf(sentence, sizeof(sentence), "the new process cannot take over %s%s%.*s", what, why.len ? ": " : "",
		 (int)why.len, why.len ? why.data : "");
	log_error(hand_over_failed, LOG_FIELDS("error=%v", sentence), "%s", sentence);
	takeover_refuse(d->takeover, sentence);
	bytes_free(&why);
	return false;
}

/* The other process never serves again. */
static int run_on(struct daemon *d, struct resolved *names, int64_t frozen_ns, bool reread)
{
	struct event over = { .type = EVENT_RESTART_OVER, .restart = { .done = true } };

	if (pidfile_write(d->pid_fd, keeper_pid(d->keeper)) < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s path=%v", "pidfile", d->conf.rundir),
			    "cannot write the number of this process into %s/lockbrokerd.pid", d->conf.rundir);
	daemon_publish_saved(d);
	/* The service was stopped in between: the keeper is another one, too. */
	if (!d->takeover)
		keeper_refuse(d->keeper, &d->past, server_turn_away, d->server);
	parts_keep_roles(d);
	/* What runs here can run there. */
	if (d->takeover && program_is_installed(d->program))
		keeper_again(d->keeper);
	if (d->takeover)
		takeover_watch(d->takeover, feed_base(d->feed),
			       &(struct takeover_calls){ .over = orders_alone, .passed = orders_passed, .arg = d });
	over.restart.paused_ns = feed_now(d->feed) - frozen_ns;
	feed_event(d->feed, &over);
	server_begin(d->server);
	if (d->zookeeper)
		zookeeper_prepared(d->zookeeper, names);
	log_info(taken_over,
		 LOG_FIELDS("connections=%d paused_us=%d version=%v", server_count(d->server),
			    over.restart.paused_ns / 1000, LOCKBROKERD_VERSION),
		 "lockbrokerd " LOCKBROKERD_VERSION " has taken over %zu connections; nobody was served for %" PRId64
		 " us",
		 server_count(d->server), over.restart.paused_ns / 1000);
	if (reread)
		reload_ask(d->reload);
	return parts_serve(d);
}

int adopt_handed_over(struct daemon *d, const struct conf_source *source)
{
	const struct identity self = daemon_identity(d);
	struct resolved names = { 0 };
	int64_t frozen_ns;
	struct entry e;
	struct parcel *p;
	bool reread;
	int ahead;

	if (!takeover_meet(d->takeover, &self))
		log_exit(EXIT_FAILURE);
	if (!d->conf.broker.standalone)
		resolve_servers(d->conf.servers, &names);
	if (!d->conf.broker.standalone && !names.servers) {
		takeover_refuse(d->takeover, names.failed);
		log_exit(EXIT_FAILURE);
	}
	ahead = saved_ahead(d->conf.rundir);
	p = takeover_receive(d->takeover);
	if (!p || !adopt(d, source, p, ahead))
		log_exit(EXIT_FAILURE);
	parcel_find(p, "process", &e);
	frozen_ns = parcel_get_number(&e, "frozen_ns");
	reread = parcel_get_number(&e, "reread");
	if (!takeover_accept(d->takeover))
		log_exit(EXIT_FAILURE);
	return run_on(d, &names, frozen_ns, reread);
}

bool adopt_is_kept(struct daemon *d, struct parcel *p)
{
	const struct identity self = daemon_identity(d);
	char error[IDENTITY_ERROR_MAX];

	if (!fdstore_take(&d->notify, p))
		return false;
	if (!saved_previous_is_latest(p, d->conf.rundir))
		snprintf(error, sizeof(error), "it has served after that, or another process has");
	else if (!identity_differs(bytes_view(&p->text), &self, error))
		return true;
	log_warning(saved_unused, LOG_FIELDS("error=%v", error),
		    "the connections and locks that the earlier process left are not used: %s", error);
	parcel_discard(p);
	return false;
}

int adopt_kept(struct daemon *d, const struct conf_source *source, struct parcel *p)
{
	struct resolved names = { 0 };
	char text[LISTEN_ERROR_MAX];
	struct entry e;
	struct listener clients, operators; /* of systemd's: they are among what was kept */
	int64_t frozen_ns;

	if (listen_passed(&clients, &operators, text) == 0) {
		listen_close(&clients);
		listen_close(&operators);
	}
	if (!d->conf.broker.standalone)
		resolve_servers(d->conf.servers, &names);
	if (!adopt(d, source, p, -1))
		log_exit(EXIT_FAILURE);
	parcel_find(p, "process", &e);
	frozen_ns = parcel_get_number(&e, "frozen_ns");
	parcel_discard(p);
	return run_on(d, &names, frozen_ns, false);
}
