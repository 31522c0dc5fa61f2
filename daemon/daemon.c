/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/flight.h"
#include "base/log.h"
#include "base/mem.h"
#include "command_line.h"
#include "io/base/file.h"
#include "io/conf/conf_access.h"
#include "io/conf/conf_value.h"
#include "io/crash.h"
#include "io/handover/channel.h"
#include "io/handover/handover.h"
#include "io/socket/socket_pools.h"

static void add(FILE *out, const char *prefix, const struct conf_key *key, const void *base)
{
	fprintf(out, "%s%s%s.%s%c", key->section, prefix ? ":" : "", prefix ? prefix : "", key->name, '\0');
	/* A file has a long list of servers in several lines. */
	if (conf_value_is_number(key))
		conf_value_print(key, base, out);
	else
		fputs(*conf_value_text(key, base), out);
	fputc('\0', out);
}

static size_t write_all(FILE *out, const struct conf *conf)
{
	const struct conf_key *key;
	size_t count = 0;

	for (key = conf_keys(); key->name; key++, count++)
		add(out, NULL, key, conf);
	for (size_t i = 0; i < conf->broker.prefix_count; i++)
		for (key = conf_prefix_keys(); key->name; key++, count++)
			add(out, conf->broker.prefixes[i].prefix, key, &conf->broker.prefixes[i]);
	return count;
}

/* Also of one that was made before: that is freed. `clients`: limits.clients, of which the host may allow fewer. */
static void settings_make(struct settings *s, const struct conf *conf, size_t clients)
{
	struct conf shown = *conf; /* the same strings */
	FILE *out;
	size_t size;
	char *next;

	settings_free(s);
	shown.broker.limits.clients = clients;
	out = open_memstream(&s->text, &size);
	if (!out)
		abort();
	s->count = write_all(out, &shown);
	if (fclose(out) != 0)
		abort();
	s->list = mem_new((s->count + 1) * sizeof(*s->list));
	next = s->text;
	for (size_t i = 0; i < s->count; i++) {
		s->list[i].name = next;
		next += strlen(next) + 1;
		s->list[i].value = next;
		next += strlen(next) + 1;
	}
}

void settings_free(struct settings *s)
{
	free(s->text);
	mem_free(s->list);
	*s = (struct settings){ 0 };
}

/* Distinguishes this boot of the host from others; "unknown" if the kernel does not tell it. */
static void read_boot_id(char *boot_id, size_t size)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	snprintf(boot_id, size, "unknown");
	if (f && fgets(boot_id, (int)size, f))
		boot_id[strcspn(boot_id, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* How many files this process may have open from now on. */
static rlim_t raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return RLIM_INFINITY;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "files", strerror(errno)),
			    "cannot raise the limit of open files: %s", strerror(errno));
	return limit.rlim_cur;
}

/*
 * Clients are turned away before descriptors run out: the daemon itself needs some to connect to ZooKeeper again.
 */
static void fit_clients(size_t *clients, rlim_t files)
{
	size_t fit;

	if (files == RLIM_INFINITY || files >= *clients + SOCKET_SPARE_FILES)
		return;
	fit = files > 2 * SOCKET_SPARE_FILES ? (size_t)files - SOCKET_SPARE_FILES : (size_t)files / 2;
	if (fit >= *clients)
		return;
	log_warning(
		descriptors, LOG_FIELDS("limit=%d wanted=%d clients=%d", files, *clients, fit),
		"limits.clients = %zu needs more open files than the %llu that this process may have: it serves %zu "
		"clients; raise LimitNOFILE= (ulimit -n) to serve all",
		*clients, (unsigned long long)files, fit);
	*clients = fit;
}

/* Who gets no page locks by messages, so this is not worth a warning. */
static void fit_pages(struct daemon *d, rlim_t files)
{
	d->pages_max = socket_pools_pages(d->clients_max, files);
	if (d->pages_max == d->clients_max || !d->conf.broker.delegation)
		return;
	log_info(
		descriptors, LOG_FIELDS("limit=%d wanted=%d pages=%d", files, d->clients_max, d->pages_max),
		"this process may have %llu open files, so it has pages of delegations for %zu of %zu clients; the others "
		"lock by messages; raise LimitNOFILE= (ulimit -n) to have pages for all",
		(unsigned long long)files, d->pages_max, d->clients_max);
}

bool daemon_follows_crash(const struct daemon *d)
{
	return d->past.crashes > 0 && d->past.crashes < KEEPER_CRASHES_ANEW;
}

/* After a crash the one that was in use: znodes belong to it, and the file may have lines for the next start by now. */
static int read_secret(struct daemon *d)
{
	char path[SECRET_PATH_MAX];
	int rc;

	if (d->secret_fd >= 0 && daemon_follows_crash(d) && secret_read(&d->secret, d->secret_fd) == 0)
		return 0;
	rc = secret_open(&d->secret, d->conf.auth_file);
	if (rc == 0)
		return 0;
	secret_path(d->conf.auth_file, path);
	if (rc == -EPERM)
		log_error(
			cannot_start, LOG_FIELDS("what=%s path=%v", "auth_file", path),
			"zookeeper.auth_file = %s: must belong to the daemon's user or root and be readable by nobody else "
			"(chmod 600)",
			path);
	else if (rc == -EBADMSG)
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v", "auth_file", path),
			  "zookeeper.auth_file = %s: must be lines of user:password, at most %d, and %d bytes", path,
			  SECRET_LINES_MAX, SECRET_BYTES_MAX - 1);
	else
		log_error(cannot_start, LOG_FIELDS("what=%s path=%v error=%v", "auth_file", path, strerror(-rc)),
			  "zookeeper.auth_file = %s: cannot be read: %s; make it, or leave the key empty", path,
			  strerror(-rc));
	return rc;
}

/* After a crash the sockets are there, most often: a group that cannot be looked up now must not end the service then. */
static int find_group(const struct daemon *d, const char *key, const char *group, struct listen_address *address,
		      char error[LISTEN_ERROR_MAX])
{
	int rc = listen_group(key, group, &address->gid, error);

	if (rc == 0 || !daemon_follows_crash(d))
		return rc;
	address->mode &= 0700;
	log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "sockets", error),
		    "%s; if the daemon has to make the socket again, only the daemon's own user may connect to it", error);
	return 0;
}

static int place_sockets(struct daemon *d, char error[LISTEN_ERROR_MAX])
{
	bool opened = d->conf.operator_group[0];
	int rc;

	if (d->conf.operator_socket[0])
		snprintf(d->operator_path, sizeof(d->operator_path), "%s", d->conf.operator_socket);
	else
		snprintf(d->operator_path, sizeof(d->operator_path), "%s/operator.sock", d->conf.rundir);
	d->clients.address =
		(struct listen_address){ "daemon.socket", d->conf.socket, (mode_t)d->conf.socket_mode, LISTEN_NO_GROUP };
	d->operators.address =
		(struct listen_address){ "daemon.operator_socket", d->operator_path, opened ? 0660 : 0600, LISTEN_NO_GROUP };
	if (strcmp(d->clients.address.path, d->operators.address.path) == 0) {
		snprintf(error, LISTEN_ERROR_MAX, "daemon.operator_socket = %.200s: is daemon.socket, too; set another path",
			 d->operator_path);
		return -EINVAL;
	}
	rc = find_group(d, "daemon.socket_group", d->conf.socket_group, &d->clients.address, error);
	if (!d->conf.socket_group[0])
		d->clients.address.gid = listen_usual_group();
	return rc < 0 ? rc : find_group(d, "daemon.operator_group", d->conf.operator_group, &d->operators.address, error);
}

struct identity daemon_identity(const struct daemon *d)
{
	return (struct identity){ &d->conf, d->secret, d->conf.broker.standalone };
}

void daemon_warn(const struct conf *conf)
{
	char sentence[CONF_SENTENCE_MAX];

	if (conf->outdated)
		log_warning(conf_outdated, LOG_NO_FIELDS, "%s", conf_outdated);
	if (conf_access_leaves(conf, sentence))
		log_warning(rule_leaves, LOG_NO_FIELDS, "%s", sentence);
}

int daemon_read_named(struct daemon *d)
{
	char error[LISTEN_ERROR_MAX];
	int rc = place_sockets(d, error), secret;

	if (rc < 0)
		log_error(cannot_start, LOG_FIELDS("what=%s error=%v", "sockets", error), "%s", error);
	secret = read_secret(d);
	if (rc == 0)
		rc = secret;
	if (rc < 0)
		takeover_refuse(d->takeover,
				"a socket's path or group, or zookeeper.auth_file, cannot be used: the log says why");
	return rc;
}

struct server_conf daemon_server_conf(const struct daemon *d)
{
	const struct broker_limits *limits = &d->used[d->turn].limits;

	return (struct server_conf){
		.clients = limits->clients,
		.pages = limits->clients < d->pages_max ? limits->clients : d->pages_max,
		.user_share = limits->user_share,
		.by_unit = limits->by_unit,
		.by_unit_count = limits->by_unit_count,
		.request_bytes = limits->request_bytes,
		.request_args = limits->request_args,
		.output_bytes = limits->output_bytes,
		.saved = d->saved,
		.life = d->life,
		.keeper = d->keeper,
	};
}

struct saved_conf daemon_saved_conf(const struct daemon *d)
{
	return (struct saved_conf){
		.rundir = d->conf.rundir,
		.boot_id = d->boot_id,
		.host = d->conf.broker.host,
		.identity = bytes_view(&d->identity),
		.standalone = d->conf.broker.standalone,
		.clients = d->clients_max,
		.may_take = !d->takeover,
		.now_ns = clock_now_ns(),
	};
}

void daemon_publish_saved(const struct daemon *d)
{
	int rc = saved_publish(d->saved);

	if (rc == 0)
		return;
	saved_spoil_earlier(d->saved);
	log_error(saved_failed, LOG_FIELDS("path=%v error=%v", d->conf.rundir, strerror(-rc)),
		  "%s/saved cannot be written: %s; if this process is killed, the next one will know nothing of it",
		  d->conf.rundir, strerror(-rc));
}

static int conf_file(const struct daemon *d, int *ret)
{
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	int rc = -ENOMEM;

	if (out) {
		conf_keep(&d->conf, out);
		rc = fclose(out) == 0 ? sealed_make((struct slice){ text, size }, ret) : -errno;
	}
	free(text);
	return rc;
}

void daemon_keep_conf(struct daemon *d)
{
	int fd = -1, rc = conf_file(d, &fd);

	if (rc < 0) {
		log_warning(not_kept, LOG_FIELDS("what=%s error=%v", "configuration", strerror(-rc)),
			    "the configuration in use cannot be kept for the next process: %s", strerror(-rc));
		return;
	}
	if (d->conf_fd >= 0) {
		keeper_drop(d->keeper, KEEPER_CONF);
		close(d->conf_fd);
	}
	d->conf_fd = fd;
	keeper_keep(d->keeper, KEEPER_CONF, fd);
}

void daemon_keep_secret(struct daemon *d)
{
	int rc;

	keeper_drop(d->keeper, KEEPER_SECRET);
	file_close(&d->secret_fd);
	if (!d->keeper || !d->secret)
		return;
	rc = sealed_make(secret_text(d->secret), &d->secret_fd);
	if (rc < 0)
		log_warning(not_kept, LOG_FIELDS("what=%s error=%v", "secret", strerror(-rc)),
			    "the secret in use cannot be kept for the next process: %s", strerror(-rc));
	else
		keeper_keep(d->keeper, KEEPER_SECRET, d->secret_fd);
}

const struct broker_conf *daemon_use(struct daemon *d)
{
	struct settings *settings = &d->settings[d->turn];
	struct broker_conf *used = &d->used[d->turn];

	*used = d->conf.broker;
	used->log_grants = d->conf.log_grants == CONF_AUTO_AUTO ? log_form() == LOG_FORM_JOURNAL : d->conf.log_grants;
	if (used->limits.clients > d->clients_max)
		used->limits.clients = d->clients_max;
	settings_make(settings, &d->conf, used->limits.clients);
	used->settings = settings->list;
	used->setting_count = settings->count;
	return used;
}

/* First of all, so that it has recorded whatever comes. */
static void begin_flight(struct daemon *d)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	d->flight = flight_new((size_t)d->conf.ledger_file_bytes,
			       wall.tv_sec * CLOCK_NS_PER_S + wall.tv_nsec - clock_now_ns());
	log_record(d->flight);
	crash_begin(d->flight);
}

/* What the broker uses that no key says, as far as it is known before there are files and sockets. */
static void prepare_broker(struct daemon *d, bool standalone)
{
	struct broker_conf *b = &d->conf.broker;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	b->standalone = standalone;
	b->version = LOCKBROKERD_VERSION;
	b->started_s = now.tv_sec;
	b->started_ms = (int)(now.tv_nsec / CLOCK_NS_PER_MS);
	b->pid = (uint32_t)getpid();
	b->flight = d->flight;
	b->boot_id = d->boot_id;
	b->files_lost = &d->files_lost;
	b->operator_socket = d->operator_path;
	b->session_page = d->page_path;
	b->session_page_id = d->page_id_text;
}

static void prepare(struct daemon *d, const struct options *options)
{
	rlim_t files;

	log_setup((enum log_level)d->conf.broker.log_level, options->foreground ? LOG_FORM_HUMAN : log_form_detect());
	begin_flight(d);
	if (options->unused)
		log_error(conf_refused, LOG_FIELDS("error=%v", options->unused),
			  "the configuration is not used: %s; the one before goes on; correct it, and reload",
			  options->unused);
	daemon_warn(&d->conf);
	read_boot_id(d->boot_id, sizeof(d->boot_id));
	snprintf(d->page_path, sizeof(d->page_path), "%s/session", d->conf.rundir);
	prepare_broker(d, options->source.standalone);
	files = raise_files();
	d->clients_max = d->conf.broker.limits.clients;
	fit_clients(&d->clients_max, files);
	fit_pages(d, files);
	if (notify_open(&d->notify) < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s", "notify"),
			    "cannot use NOTIFY_SOCKET: the daemon cannot report its state to the service manager");
	d->notify.keeper = d->keeper;
}

/*
 * Two draws that have nothing to do with each other: who sees a pause before a new try must learn nothing about the keys.
 * Each process draws its own, also one that goes on with the state of another.
 */
static int draw_random(struct daemon *d)
{
	struct broker_conf *b = &d->conf.broker;
	unsigned int pauses;

	if (getrandom(b->hash_key, sizeof(b->hash_key), 0) == (ssize_t)sizeof(b->hash_key) &&
	    getrandom(&pauses, sizeof(pauses), 0) == (ssize_t)sizeof(pauses)) {
		srandom(pauses);
		return 0;
	}
	log_error(cannot_start, LOG_FIELDS("what=%s", "random"), "the kernel has no random numbers");
	return -EAGAIN;
}

int daemon_prepare(struct daemon *d, const struct options *options)
{
	struct identity self;
	int rc;

	prepare(d, options);
	rc = draw_random(d);
	if (rc == 0)
		rc = daemon_read_named(d);
	self = daemon_identity(d);
	if (rc == 0)
		identity_pack(&d->identity, &self);
	return rc;
}
