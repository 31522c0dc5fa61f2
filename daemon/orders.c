/* SPDX-License-Identifier: Apache-2.0 */
#include "orders.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/conf/conf_access.h"
#include "io/conf/conf_file.h"
#include "io/handover/handover.h"
#include "io/fdstore.h"
#include "io/hold_log.h"
#include "io/notify.h"
#include "io/reload.h"
#include "io/socket/server.h"
#include "io/zookeeper/resolve.h"
#include "io/zookeeper/zookeeper.h"
#include "removed.h"

/* A service manager does not take longer to signal all processes of a service. */
#define ALL_SIGNALLED_NS CLOCK_NS_PER_S
/* How long a stop may take beside the time that holders have: the session is closed, files are written. */
enum { STOP_REST_MS = 10000 };

/* ---- the configuration is read again ---- */

static void tell(void *arg, bool waits, const char *sentence)
{
	struct bytes *told = arg;

	log_event(waits ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, LOG_EVENT_conf_changed, LOG_FIELDS("waits=%d", waits),
		  "%s", sentence);
	bytes_format(told, "%s\n", sentence);
}

/* The tables of connections are as large as they were made at the start. */
static void tell_clients(const struct daemon *d, struct bytes *told)
{
	char sentence[CONF_SENTENCE_MAX];

	if (d->conf.broker.limits.clients <= d->clients_max)
		return;
	snprintf(sentence, sizeof(sentence),
		 "limits.clients = %zu needs a restart; until then %zu clients are served, as many as at the start",
		 d->conf.broker.limits.clients, d->clients_max);
	tell(told, true, sentence);
}

/* Addresses are looked up before anything changes: servers that nobody knows are an error like any other. */
int orders_look(void *arg, const struct conf *read, char *error)
{
	struct daemon *d = arg;

	resolved_free(&d->found);
	if (d->conf.broker.standalone || strcmp(read->servers, d->conf.servers) == 0)
		return 0;
	resolve_servers(read->servers, &d->found);
	if (d->found.servers)
		return 0;
	snprintf(error, CONF_ERROR_MAX, "zookeeper.servers = %.300s: cannot look up %.600s", read->servers, d->found.failed);
	return -EINVAL;
}

static void change(struct daemon *d, struct bytes *told)
{
	struct server_conf server_conf;

	d->turn = !d->turn;
	daemon_use(d);
	tell_clients(d, told);
	server_conf = daemon_server_conf(d);
	server_limits(d->server, &server_conf);
	log_set_level((enum log_level)d->conf.broker.log_level);
	hold_log_set(d->hold_log, d->used[d->turn].log_grants, d->conf.grants_mb_per_day);
	daemon_keep_conf(d);
	if (d->found.servers)
		zookeeper_set_servers(d->zookeeper, d->conf.servers, &d->found);
}

/* The session is authenticated, and what was made belongs to somebody: that goes on with what was read at the start. */
static void look_at_secret(struct daemon *d, const struct conf *read, struct bytes *told)
{
	const struct secret *now;
	char path[SECRET_PATH_MAX], sentence[SECRET_PATH_MAX + 256];
	int rc = reload_secret(d->reload, &now);

	if (strcmp(read->auth_file, d->conf.auth_file) != 0 || (rc == 0 && secret_same(now, d->secret)))
		return;
	secret_path(read->auth_file, path);
	if (rc < 0)
		snprintf(sentence, sizeof(sentence),
			 "zookeeper.auth_file = %s cannot be used: %s; the next start would fail", path, strerror(-rc));
	else
		snprintf(sentence, sizeof(sentence),
			 "zookeeper.auth_file: %s has other lines than at the start, which needs a restart", path);
	tell(told, true, sentence);
}

/* Each error is logged; the answer is one line. */
static void refuse(const char *error, struct bytes *told)
{
	char line[CONF_SENTENCE_MAX];

	for (const char *p = error; *p; p += strspn(p, "\n")) {
		int len = (int)strcspn(p, "\n");

		log_error(conf_refused, LOG_FIELDS("error=%v", ((struct slice){ p, (size_t)len })),
			  "the configuration is not changed: %.*s", len, p);
		p += len;
	}
	conf_error_line(error, line);
	bytes_text(told, line);
}

void orders_reloaded(void *arg, struct conf *read, const char *error)
{
	struct event event = { .type = EVENT_CONF };
	char unfit[CONF_ERROR_MAX], leaves[CONF_SENTENCE_MAX];
	struct daemon *d = arg;
	struct bytes told = { 0 };

	assert(read || error);
	if (read)
		error = conf_take(&d->conf, read, d->conf.broker.standalone, tell, &told, unfit) < 0 ? unfit : NULL;
	if (error) {
		refuse(error, &told);
	} else {
		if (read->outdated)
			tell(&told, true, conf_outdated);
		if (conf_access_leaves(&d->conf, leaves)) {
			log_warning(rule_leaves, LOG_NO_FIELDS, "%s", leaves);
			bytes_format(&told, "%s\n", leaves);
		}
		look_at_secret(d, read, &told);
		change(d, &told);
		removed_look(d->removed);
		handover_reread(d->handover);
		log_info(conf_read, LOG_FIELDS("changed=%d", told.len > 0), "the configuration was read again%s",
			 told.len > 0 ? "" : ": nothing has changed");
		event.conf.now = &d->used[d->turn];
	}
	event.conf.text = bytes_view(&told);
	feed_event(d->feed, &event);
	bytes_free(&told);
}

/* ---- signals ---- */

static void say(enum log_level level, const char *order, int number, const char *what)
{
	log_event(level, LOG_EVENT_order, LOG_FIELDS("order=%s signal=%d", order, number), "received a signal (%s): %s",
		  strsignal(number), what);
}

static void reload(struct daemon *d, int number)
{
	if (d->stopping) {
		say(LOG_LEVEL_WARNING, "reload", number,
		    "the daemon is stopping, and does not read its configuration again");
		return;
	}
	say(LOG_LEVEL_INFO, "reload", number, "reading the configuration again");
	reload_ask(d->reload);
}

/*
 * Whoever signals all processes of the service has signalled this one, too, and means one stop, also if it reaches this one
 * twice: directly, and through another process. Anybody else wants another one, which ends the daemon at once.
 */
static bool is_the_same(struct daemon *d, int number, pid_t sender, bool directly)
{
	bool same = d->told.number == number && d->told.sender == sender && d->told.directly != directly &&
		    clock_now_ns() < d->told.until_ns;

	d->told.number = number;
	d->told.sender = sender;
	d->told.directly = directly;
	d->told.until_ns = clock_now_ns() + ALL_SIGNALLED_NS;
	if (same)
		d->told.number = 0;
	return same;
}

static void stop(struct daemon *d, int number, pid_t sender, bool directly)
{
	const struct event event = { .type = EVENT_STOP };

	if (is_the_same(d, number, sender, directly)) {
		say(LOG_LEVEL_INFO, "stop", number, "stopping already");
		return;
	}
	if (d->stopping) {
		log_warning(order, LOG_FIELDS("order=%s signal=%d", "end", number),
			    "received a second signal (%s): ending at once", strsignal(number));
		log_exit(EXIT_FAILURE);
	}
	if (fdstore_delays(d->keep, number))
		return;
	say(LOG_LEVEL_INFO, "stop", number, "stopping");
	d->stopping = true;
	reload_mute(d->reload);
	notify_stopping(&d->notify, d->conf.broker.stop_timeout_ns / CLOCK_NS_PER_MS + STOP_REST_MS);
	handover_stop(d->handover);
	feed_event(d->feed, &event);
}

/* The service is stopped, and started after that. */
static void keep(struct daemon *d, int number)
{
	if (d->stopping) {
		say(LOG_LEVEL_WARNING, "keep", number, "the daemon is stopping already, and keeps nothing");
		keeper_stays(d->keeper);
		return;
	}
	say(LOG_LEVEL_INFO, "keep", number, "keeping everything for the next start of the service");
	fdstore_ask(d->keep);
}

static void heed(struct daemon *d, int number, pid_t sender, bool directly)
{
	if (number == SIGHUP) {
		reload(d, number);
	} else if (number == SIGUSR1) {
		keep(d, number);
	} else if (number == SIGUSR2) {
		say(LOG_LEVEL_INFO, "restart", number, "handing over to a new process");
		handover_ask(d->handover);
	} else {
		stop(d, number, sender, directly);
	}
}

void orders_heard(void *arg, int number, pid_t sender)
{
	heed(arg, number, sender, true);
}

void orders_signalled(void *arg, int number, pid_t sender)
{
	heed(arg, number, sender, false);
}

/*
 * The process that handed over has exited, and has told the service manager who is the daemon now: what this one said before
 * may not have counted.
 */
void orders_alone(void *arg)
{
	struct daemon *d = arg;

	if (!d->keeper)
		notify_send(&d->notify, "READY=1\nWATCHDOG=1");
}

void orders_passed(void *arg, int number, pid_t sender)
{
	const struct daemon *d = arg;

	if (number == SIGHUP || number == SIGUSR1 || !d->stopping)
		heed(arg, number, sender, false);
}
