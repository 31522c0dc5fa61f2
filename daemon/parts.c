/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/flight.h"
#include "base/log.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/file.h"
#include "io/base/keeper.h"
#include "io/base/worker.h"
#include "io/crash.h"
#include "io/files/life.h"
#include "io/files/page.h"
#include "io/files/saved.h"
#include "io/files/tokens.h"
#include "io/handover/handover.h"
#include "io/handover/program.h"
#include "io/fdstore.h"
#include "io/hold_log.h"
#include "io/loop.h"
#include "io/memory_watch.h"
#include "io/ledger_file.h"
#include "io/reload.h"
#include "io/signals.h"
#include "io/socket/lifelines.h"
#include "io/socket/socket_pools.h"
#include "io/watchdog.h"
#include "io/zookeeper/former.h"
#include "io/zookeeper/zookeeper.h"
#include "command_line.h"
#include "orders.h"
#include "removed.h"

/* How long the worker may take to end: it closes the session. */
#define FAREWELL_NS (2 * CLOCK_NS_PER_S)

void parts_tokens(void *arg, int64_t limit)
{
	const struct event event = { .type = EVENT_TOKENS, .tokens = { .limit = limit } };
	struct daemon *d = arg;

	feed_event(d->feed, &event);
}

static void start_zookeeper(struct daemon *d)
{
	const struct broker_conf *b = &d->conf.broker;
	const int timeout_ms = (int)(b->session_timeout_ns / CLOCK_NS_PER_MS);
	const int tick_ms = (int)(b->tick_ns / CLOCK_NS_PER_MS);
	const struct zookeeper_conf conf = {
		.servers = d->conf.servers,
		/* Servers grant 2 to 20 ticks, and 5 is the least that can be relied on. */
		.handle = {
			.timeout_ms = timeout_ms,
			.timeout_min_ms = 5 * tick_ms,
			.timeout_max_ms = timeout_ms > 20 * tick_ms ? timeout_ms : 20 * tick_ms,
			.secret = d->secret,
		},
		.packet_bytes = b->limits.session_path_bytes,
		.saved = d->saved,
	};

	d->zookeeper = zookeeper_new(d->feed, d->worker, d->resolver, &conf);
	d->former = zk_former_new(d->feed, d->worker, d->zookeeper, &conf);
}

int parts_make(struct daemon *d, const struct conf_source *source)
{
	const struct reload_conf reload_conf = { .source = source, .look = orders_look, .done = orders_reloaded, .arg = d };
	const struct server_conf server_conf = daemon_server_conf(d);
	int rc = signals_new(&d->signals, feed_base(d->feed), orders_heard, d);

	if (rc == 0)
		rc = worker_new(&d->worker, feed_base(d->feed));
	if (rc == 0)
		rc = worker_new(&d->reader, feed_base(d->feed));
	if (rc == 0)
		rc = worker_new(&d->resolver, feed_base(d->feed));
	if (rc < 0)
		return rc;
	d->reload = reload_new(feed_base(d->feed), d->reader, &d->notify, &reload_conf);
	d->server = server_new(d->feed, d->clients.listener.fd, d->operators.listener.fd, &server_conf);
	d->conf.broker.sockets = server_accounts(d->server);
	d->conf.broker.sockets_words = socket_pools_words;
	daemon_use(d); /* the broker is there, and finds them where it has the rest */
	d->lifelines = lifelines_new(d->feed, server_accounts(d->server), server_remains(d->server));
	saved_bearers(d->saved, broker_has_bearers(feed_broker(d->feed)));
	if (d->conf.broker.standalone)
		tokens_start(d->tokens, feed_base(d->feed), d->worker, parts_tokens, d);
	else
		start_zookeeper(d);
	d->ledger_file = ledger_file_new(d->feed, d->saved);
	if (!d->ledger_file)
		log_error(saved_failed, LOG_FIELDS("path=%v error=%v", d->conf.rundir, strerror(errno)),
			  "%s/saved has no room: %s; if the daemon is killed, all locks are lost", d->conf.rundir,
			  strerror(errno));
	d->handover = handover_new(&(struct handover_parts){ .program = d->program,
							     .conf = &d->conf,
							     .secret = d->secret,
							     .feed = d->feed,
							     .server = d->server,
							     .listener = &d->clients.listener,
							     .operators = &d->operators.listener,
							     .page = d->page,
							     .pid_fd = d->pid_fd,
							     .standalone = d->conf.broker.standalone,
							     .keeper = d->keeper,
							     .followed = d->keeper || d->notify.fd >= 0,
							     .tokens = d->tokens,
							     .saved = d->saved,
							     .zookeeper = d->zookeeper });
	d->memory = memory_watch_new(d->feed, server_accounts(d->server), d->reader, d->keeper);
	d->keep = fdstore_new(&d->notify, d->handover, &d->conf_fd);
	d->hold_log = hold_log_new(d->conf.broker.hash_key, d->conf.broker.host, d->used[d->turn].log_grants,
				   d->conf.grants_mb_per_day);
	d->loop = loop_new(d->feed, &(struct loop_adapters){ .server = d->server,
							     .lifelines = d->lifelines,
							     .reload = d->reload,
							     .keep = d->keep,
							     .notify = &d->notify,
							     .page = d->page,
							     .handover = d->handover,
							     .hold_log = d->hold_log,
							     .tokens = d->tokens,
							     .zookeeper = d->zookeeper,
							     .former = d->former,
							     .saved = d->saved,
							     .keeper = d->keeper,
							     .memory = d->memory,
							     .ledger_file = d->ledger_file });
	return 0;
}

static void keep_socket(const struct daemon *d, const struct daemon_socket *s)
{
	keeper_keep(d->keeper, s->role, s->listener.fd);
	if (s->listener.lock_fd >= 0)
		keeper_keep(d->keeper, s->lock_role, s->listener.lock_fd);
}

void parts_keep_roles(struct daemon *d)
{
	daemon_keep_conf(d);
	daemon_keep_secret(d);
	keeper_keep(d->keeper, KEEPER_PIDFILE, d->pid_fd);
	keep_socket(d, &d->clients);
	keep_socket(d, &d->operators);
	keeper_settle(d->keeper); /* before it hears that this process serves */
}

static void say_stopped(void)
{
	log_tell_held(true);
	log_info(stopped, LOG_NO_FIELDS, "stopped");
}

void parts_free(struct daemon *d, bool close_session, int status)
{
	bool hangs;

	zk_former_stop(d->former);
	if (d->zookeeper)
		zookeeper_stop(d->zookeeper, close_session);
	listen_close(&d->clients.listener);
	listen_close(&d->operators.listener);
	lifelines_free(d->lifelines);
	server_free(d->server);
	notify_close(&d->notify);
	if (d->worker && worker_stop(d->worker, FAREWELL_NS) < 0)
		log_exit(status);
	if (d->zookeeper && zookeeper_session_ended(d->zookeeper))
		saved_session_ended(d->saved);
	/* What these two read and look up nobody needs any longer. */
	hangs = d->reader && worker_stop(d->reader, 0) < 0;
	hangs |= d->resolver && worker_stop(d->resolver, 0) < 0;
	if (hangs) {
		say_stopped();
		log_exit(status);
	}
	memory_watch_free(d->memory);
	watchdog_free(d->watchdog);
	reload_free(d->reload);
	resolved_free(&d->found);
	zk_former_free(d->former);
	zookeeper_free(d->zookeeper);
	secret_close(d->secret);
	tokens_free(d->tokens);
	signals_free(d->signals);
	fdstore_free(d->keep);
	handover_free(d->handover);
	loop_free(d->loop);
	hold_log_free(d->hold_log);
	ledger_file_free(d->ledger_file);
	feed_free(d->feed);
	settings_free(&d->settings[0]);
	settings_free(&d->settings[1]);
	page_close(d->page);
	saved_close(d->saved);
	file_close(&d->pid_fd);
	file_close(&d->conf_fd);
	file_close(&d->secret_fd);
	crash_end();
	log_record(NULL);
	flight_free(d->flight);
	d->flight = NULL;
}

/* Until the daemon stops, or another process serves. */
int parts_serve(struct daemon *d)
{
	struct loop_end end;
	int status;

	/* With a keeper, which is the main process, it is that one who says so. */
	if (d->keeper)
		program_title(d->program, "worker");
	else
		notify_send(&d->notify, "READY=1");
	keeper_attach(d->keeper, feed_base(d->feed), orders_signalled, d);
	d->watchdog = watchdog_new(d->feed, &d->notify, d->keeper, d->conf.broker.session_timeout_ns);
	d->removed = removed_new(d);
	end = loop_run(d->loop);
	status = end.refused ? EXIT_USAGE : EXIT_SUCCESS;
	if (end.handed_over) {
		if (handover_successor(d->handover) && !d->keeper)
			notify_main_pid(&d->notify, handover_successor(d->handover));
		hold_log_tell(d->hold_log, clock_now_ns(), true);
		log_tell_held(true);
		handover_exit(d->handover);
	}
	watchdog_end(d->watchdog);
	removed_free(d->removed);
	d->removed = NULL;
	hold_log_tell(d->hold_log, clock_now_ns(), true);
	parts_free(d, end.close_session, status);
	life_over(d->life, clock_now_ns());
	life_free(d->life);
	say_stopped();
	return status;
}
