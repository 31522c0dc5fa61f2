/* SPDX-License-Identifier: Apache-2.0 */
/* lockbrokerd: reads the command line and the configuration, wires the parts together, runs the loop. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/conf_reload.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker_conf.h"
#include "core/session/former.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/base/worker.h"
#include "io/files/page.h"
#include "io/files/pidfile.h"
#include "io/files/saved.h"
#include "io/files/tokens.h"
#include "io/handover/handover.h"
#include "io/handover/identity.h"
#include "io/handover/program.h"
#include "io/handover/takeover.h"
#include "io/keep.h"
#include "io/loop.h"
#include "io/notify.h"
#include "io/reload.h"
#include "io/signals.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"
#include "io/watchdog.h"
#include "io/zookeeper/former.h"
#include "io/zookeeper/resolve.h"
#include "io/zookeeper/secret.h"
#include "io/zookeeper/zookeeper.h"

#define CONF_FILE LOCKBROKER_SYSCONFDIR "/lockbroker.conf"
/* How long the worker may take to end: it closes the session, or is looking up a name. */
#define FAREWELL_NS (2 * CLOCK_NS_PER_S)

enum {
	EXIT_USAGE = 2, /* also when only another configuration can help, so that starting again is useless */
	SPARE_FDS = 64,
};

struct options {
	struct conf_source source;
	char **overrides;
	bool foreground, print_config;
	struct takeover *takeover; /* NULL: this process is started as usual */
};

struct daemon {
	struct conf conf;
	struct broker_conf broker;     /* as at the start */
	struct broker_conf changed[2]; /* in turn: that in use, and that before it */
	bool turn;
	size_t clients_max;            /* for which tables were made */
	struct broker_prefix prefixes[CONF_PREFIXES_MAX];
	char boot_id[64];
	int pid_fd; /* locked while the daemon runs */
	char secret[SECRET_BYTES_MAX];
	gid_t socket_gid;
	struct page *page;
	struct saved *saved; /* NULL in standalone mode, as is `former` */
	struct zk_former *former;
	struct broker_former formers[FORMERS_MAX];
	char page_path[CONF_ERROR_MAX];
	uint8_t page_id[SESSION_PAGE_ID_BYTES];
	char page_id_text[SESSION_PAGE_ID_CHARS + 1];
	struct listener listener;
	struct notify notify;
	struct feed *feed;
	struct loop *loop;
	struct worker *worker;
	struct server *server;
	struct zookeeper *zookeeper;
	struct tokens *tokens;
	struct signals *signals;
	struct reload *reload;
	struct watchdog *watchdog;
	struct program *program;
	struct takeover *takeover; /* NULL: no process handed over to this one */
	struct handover *handover;
	struct keep *keep;
	bool stopping;
	bool passed_on; /* the process before this one has passed on that it was asked to stop */
};

static const char help[] =
	"Usage: lockbrokerd [OPTION]...\n"
	"Locks for the processes of this host, over a Unix socket; between hosts by one ZooKeeper session.\n"
	"\n"
	"  -c, --config FILE              read FILE (" CONF_FILE " if it exists)\n"
	"  -o, --option SECTION.KEY=VALUE set a key, whatever the file says; may be given several times\n"
	"      --standalone               locks for this host alone, without ZooKeeper\n"
	"      --foreground               write the time in every line of the log, for people to read\n"
	"                                 (the daemon never goes into the background by itself)\n"
	"      --print-config             print the configuration that would be used, and exit\n"
	"      --version                  print the version, and exit\n"
	"  -h, --help                     print this, and exit\n"
	"\n"
	"SIGTERM, SIGINT and SIGQUIT stop the daemon: it ends when all locks are released, at the latest after\n"
	"daemon.stop_timeout_ms; a second signal ends it at once. SIGHUP has it read its configuration again;\n"
	"SIGUSR2 hands everything over to a new process of the installed program, as `lockbroker restart` does; SIGUSR1\n"
	"leaves everything to the service manager for the next start. Other signals are logged and ignored. Exit status:\n"
	"0 stopped as asked, 1 failed, 2 bad options or configuration, or another daemon uses the host's name.\n";

static int usage_error(const struct options *options, const char *sentence)
{
	fprintf(stderr, "lockbrokerd: %s\n", sentence);
	takeover_refuse(options->takeover, sentence);
	return EXIT_USAGE;
}

/* -1: go on; otherwise the exit status. */
static int read_config(struct conf *conf, const struct options *options)
{
	char error[CONF_ERROR_MAX];

	if (conf_load(conf, &options->source, error) < 0)
		return usage_error(options, error);
	if (!options->print_config)
		return -1;
	conf_print(conf, stdout);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* -1: go on; otherwise the exit status. */
static int parse_options(int argc, char **argv, struct options *options, struct conf *conf)
{
	static const struct option names[] = {
		{ "config", required_argument, NULL, 'c' }, { "option", required_argument, NULL, 'o' },
		{ "standalone", no_argument, NULL, 's' },   { "foreground", no_argument, NULL, 'f' },
		{ "print-config", no_argument, NULL, 'p' }, { "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },         { 0 },
	};
	int status = -1, c;

	options->overrides = mem_new((size_t)argc * sizeof(*options->overrides) + 1);
	options->source = (struct conf_source){ .default_file = CONF_FILE, .overrides = options->overrides };
	while (status < 0 && (c = getopt_long(argc, argv, "c:o:h", names, NULL)) >= 0) {
		switch (c) {
		case 'c':
			options->source.file = optarg;
			break;
		case 'o':
			options->overrides[options->source.override_count++] = optarg;
			break;
		case 's':
			options->source.standalone = true;
			break;
		case 'f':
			options->foreground = true;
			break;
		case 'p':
			options->print_config = true;
			break;
		case 'v':
			puts("lockbrokerd " LOCKBROKERD_VERSION);
			status = EXIT_SUCCESS;
			break;
		case 'h':
			fputs(help, stdout);
			status = EXIT_SUCCESS;
			break;
		default:
			status = usage_error(options, "try --help");
			break;
		}
	}
	if (status < 0 && optind < argc)
		status = usage_error(options, "there are words that are no options: try --help");
	if (status < 0)
		status = read_config(conf, options);
	return status;
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

/*
 * Clients are turned away before descriptors run out: the daemon itself needs some to connect to ZooKeeper again.
 */
static void fit_clients(size_t *clients)
{
	struct rlimit limit;
	size_t fit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("cannot raise the limit of open files: %s", strerror(errno));
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= *clients + SPARE_FDS)
		return;
	fit = limit.rlim_cur > 2 * SPARE_FDS ? (size_t)limit.rlim_cur - SPARE_FDS : (size_t)limit.rlim_cur / 2;
	log_warning("limits.clients = %zu needs more open files than the %llu that this process may have: it serves %zu "
		    "clients; raise LimitNOFILE= (ulimit -n) to serve all",
		    *clients, (unsigned long long)limit.rlim_cur, fit);
	*clients = fit;
}

static struct server_conf server_conf_of(const struct daemon *d, const struct broker_limits *limits)
{
	return (struct server_conf){
		.clients = limits->clients,
		.request_bytes = limits->request_bytes,
		.request_args = limits->request_args,
		.output_bytes = limits->output_bytes,
		.saved = d->saved,
	};
}

/* ---- the configuration is read again ---- */

static void daemon_tell(void *arg, bool waits, const char *sentence)
{
	struct bytes *told = arg;

	log_line(waits ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s", sentence);
	bytes_format(told, "%s\n", sentence);
}

/* The tables of connections are as large as they were made at the start. */
static void daemon_fit(struct daemon *d, struct broker_limits *limits, struct bytes *told)
{
	char sentence[CONF_ERROR_MAX];

	if (limits->clients <= d->clients_max)
		return;
	snprintf(sentence, sizeof(sentence),
		 "limits.clients = %zu needs a restart; until then %zu clients are served, as many as at the start",
		 limits->clients, d->clients_max);
	limits->clients = d->clients_max;
	daemon_tell(told, true, sentence);
}

static void daemon_change(struct daemon *d, struct bytes *told)
{
	struct server_conf server_conf;
	struct broker_conf *now;

	d->turn = !d->turn;
	now = &d->changed[d->turn];
	*now = d->broker;
	broker_conf_change(now, &d->conf);
	daemon_fit(d, &now->limits, told);
	server_conf = server_conf_of(d, &now->limits);
	server_limits(d->server, &server_conf);
	log_set_level((enum log_level)d->conf.log_level);
}

static void daemon_reloaded(void *arg, const struct conf *read, const char *error)
{
	struct event event = { .type = EVENT_CONF };
	char unfit[CONF_ERROR_MAX];
	struct daemon *d = arg;
	struct bytes told = { 0 };

	if (read && conf_take(&d->conf, read, d->broker.standalone, daemon_tell, &told, unfit) < 0)
		error = unfit;
	else if (read)
		error = NULL;
	if (error) {
		log_error("the configuration is not changed: %s", error);
		bytes_text(&told, error);
	} else {
		daemon_change(d, &told);
		handover_reread(d->handover);
		log_info("the configuration was read again%s", told.len > 0 ? "" : ": nothing has changed");
		event.conf.now = &d->changed[d->turn];
	}
	event.conf.text = bytes_view(&told);
	feed_event(d->feed, &event);
	bytes_free(&told);
}

static void daemon_reload(void *arg, int number)
{
	struct daemon *d = arg;

	if (d->stopping) {
		log_warning("received a signal (%s): the daemon is stopping, and does not read its configuration again",
			    strsignal(number));
		return;
	}
	log_info("received a signal (%s): reading the configuration again", strsignal(number));
	reload_ask(d->reload);
}

/* ---- signals ---- */

static void daemon_stop(void *arg, int number)
{
	const struct event event = { .type = EVENT_STOP };
	struct daemon *d = arg;

	if (d->passed_on) {
		d->passed_on = false;
		log_info("received a signal (%s): stopping already", strsignal(number));
		return;
	}
	if (d->stopping) {
		log_warning("received a second signal (%s): ending at once", strsignal(number));
		_exit(EXIT_FAILURE);
	}
	if (keep_delays(d->keep, number))
		return;
	log_info("received a signal (%s): stopping", strsignal(number));
	d->stopping = true;
	reload_mute(d->reload);
	notify_send(&d->notify, "STOPPING=1");
	handover_stop(d->handover);
	feed_event(d->feed, &event);
}

static void daemon_restart(void *arg, int number)
{
	struct daemon *d = arg;

	log_info("received a signal (%s): handing over to a new process", strsignal(number));
	handover_ask(d->handover);
}

/* The service is stopped, and started after that. */
static void daemon_keep(void *arg, int number)
{
	struct daemon *d = arg;

	if (d->stopping) {
		log_warning("received a signal (%s): the daemon is stopping already, and keeps nothing", strsignal(number));
		return;
	}
	log_info("received a signal (%s): keeping everything for the next start of the service", strsignal(number));
	keep_ask(d->keep);
}

/*
 * The process that handed over has exited, and has told the service manager who is the daemon now: what this one said before
 * may not have counted.
 */
static void daemon_alone(void *arg, bool stop)
{
	struct daemon *d = arg;

	notify_send(&d->notify, "READY=1\nWATCHDOG=1");
	if (!stop || d->stopping)
		return;
	daemon_stop(d, SIGTERM);
	/* Whoever signals all processes of the service has signalled this one, too. */
	d->passed_on = true;
}

static void tokens_reserved(void *arg, int64_t limit)
{
	const struct event event = { .type = EVENT_TOKENS, .tokens = { .limit = limit } };
	struct daemon *d = arg;

	feed_event(d->feed, &event);
}

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

static int read_secret(struct daemon *d)
{
	const char *path = d->conf.auth_file;
	int rc = *path ? secret_read(path, d->secret) : 0;

	if (rc == -EPERM)
		log_error("zookeeper.auth_file = %s: must belong to the daemon's user or root and be readable by nobody else "
			  "(chmod 600)",
			  path);
	else if (rc == -EBADMSG)
		log_error("zookeeper.auth_file = %s: must be one line, user:password", path);
	else if (rc < 0)
		log_error("zookeeper.auth_file = %s: cannot be read: %s; make it, or leave the key empty", path,
			  strerror(-rc));
	return rc;
}

/* Reads what the configuration only names: a group, a secret. */
static int read_named(struct daemon *d)
{
	char error[LISTEN_ERROR_MAX];
	int rc = listen_group(d->conf.socket_group, &d->socket_gid, error);

	if (rc < 0)
		log_error("%s", error);
	if (rc == 0)
		rc = read_secret(d);
	if (rc < 0)
		takeover_refuse(d->takeover, "daemon.socket_group or zookeeper.auth_file cannot be used: the log says why");
	return rc;
}

static int open_rundir(struct daemon *d)
{
	pid_t other = 0;
	int rc = pidfile_open(d->conf.rundir, &other);

	if (rc == -EBUSY)
		log_error("another lockbrokerd (pid %ld) uses daemon.rundir = %s; each daemon needs its own", (long)other,
			  d->conf.rundir);
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
		rc = page_open(&d->page, d->conf.rundir, d->page_id);
	if (rc < 0)
		log_error("%s: %s", d->page_path, strerror(-rc));
	return rc;
}

/* Reads what an earlier daemon left; this daemon leaves the same there. */
static int open_saved(struct daemon *d)
{
	const struct saved_conf saved_conf = {
		.rundir = d->conf.rundir,
		.boot_id = d->boot_id,
		.host = d->conf.host,
		.clients = d->clients_max,
		.now_ns = clock_now_ns(),
	};
	int rc;

	if (d->broker.standalone)
		return 0;
	rc = saved_open(&d->saved, &saved_conf);
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

static void start_zookeeper(struct daemon *d)
{
	const int timeout_ms = (int)d->conf.session_timeout_ms, tick_ms = (int)d->conf.tick_ms;
	const struct zookeeper_conf conf = {
		.servers = d->conf.servers,
		/* Servers grant 2 to 20 ticks, and 5 is the least that can be relied on. */
		.handle = {
			.timeout_ms = timeout_ms,
			.timeout_min_ms = 5 * tick_ms,
			.timeout_max_ms = timeout_ms > 20 * tick_ms ? timeout_ms : 20 * tick_ms,
			.secret = d->secret[0] ? d->secret : NULL,
		},
		.packet_bytes = d->conf.session_path_bytes,
		.saved = d->saved,
	};

	d->zookeeper = zookeeper_new(d->feed, d->worker, &conf);
	d->former = zk_former_new(d->feed, d->worker, d->zookeeper, &conf);
}

/* All that works on the feed. Nothing is received or sent before the loop runs. */
static int make_parts(struct daemon *d, const struct conf_source *source)
{
	const struct signals_calls calls = {
		.stop = daemon_stop, .reload = daemon_reload, .restart = daemon_restart, .keep = daemon_keep, .arg = d
	};
	const struct reload_conf reload_conf = { .source = source, .done = daemon_reloaded, .arg = d };
	const struct server_conf server_conf = server_conf_of(d, &d->broker.limits);
	int rc = signals_new(&d->signals, feed_base(d->feed), &calls);

	if (rc == 0)
		rc = worker_new(&d->worker, feed_base(d->feed));
	if (rc < 0)
		return rc;
	d->reload = reload_new(d->worker, &d->notify, &reload_conf);
	d->server = server_new(d->feed, d->listener.fd, &server_conf);
	if (d->broker.standalone)
		tokens_start(d->tokens, feed_base(d->feed), d->worker, tokens_reserved, d);
	else
		start_zookeeper(d);
	d->handover = handover_new(&(struct handover_parts){ .program = d->program,
							     .conf = &d->conf,
							     .feed = d->feed,
							     .server = d->server,
							     .listener = &d->listener,
							     .page = d->page,
							     .pid_fd = d->pid_fd,
							     .standalone = d->broker.standalone,
							     .followed = d->notify.fd >= 0,
							     .tokens = d->tokens,
							     .saved = d->saved,
							     .zookeeper = d->zookeeper });
	d->keep = keep_new(&d->notify, d->handover);
	d->loop = loop_new(d->feed, &(struct loop_adapters){ .server = d->server,
							     .reload = d->reload,
							     .keep = d->keep,
							     .notify = &d->notify,
							     .page = d->page,
							     .handover = d->handover,
							     .tokens = d->tokens,
							     .zookeeper = d->zookeeper,
							     .former = d->former,
							     .saved = d->saved });
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
	return rc < 0 ? rc : make_parts(d, source);
}

/* Frees what was made, in reverse order. If the worker hangs, its memory is left to the end of the process. */
static void stop_parts(struct daemon *d, bool close_session, int status)
{
	zk_former_stop(d->former);
	if (d->zookeeper)
		zookeeper_stop(d->zookeeper, close_session);
	listen_close(&d->listener);
	server_free(d->server);
	notify_close(&d->notify);
	if (d->worker && worker_stop(d->worker, FAREWELL_NS) < 0)
		_exit(status);
	if (d->zookeeper && zookeeper_session_ended(d->zookeeper))
		saved_session_ended(d->saved);
	watchdog_free(d->watchdog);
	reload_free(d->reload);
	zk_former_free(d->former);
	zookeeper_free(d->zookeeper);
	tokens_free(d->tokens);
	signals_free(d->signals);
	keep_free(d->keep);
	handover_free(d->handover);
	loop_free(d->loop);
	feed_free(d->feed);
	page_close(d->page);
	saved_close(d->saved);
	if (d->pid_fd >= 0)
		close(d->pid_fd);
}

/* Until the daemon stops, or another process serves. */
static int serve(struct daemon *d)
{
	struct loop_end end;
	int status;

	d->watchdog = watchdog_new(feed_base(d->feed), &d->notify, d->broker.session_timeout_ns);
	end = loop_run(d->loop);
	status = end.refused ? EXIT_USAGE : EXIT_SUCCESS;
	if (end.handed_over) {
		if (handover_successor(d->handover))
			notify_main_pid(&d->notify, handover_successor(d->handover));
		handover_exit(d->handover);
	}
	stop_parts(d, end.close_session, status);
	log_info("stopped");
	return status;
}

static int run(struct daemon *d, const struct conf_source *source, int64_t tokens_limit)
{
	const struct event begin = { .type = EVENT_TIME };
	int rc = start_parts(d, source);

	if (rc < 0) {
		log_error("the daemon cannot start: %s", strerror(-rc));
		stop_parts(d, false, EXIT_FAILURE);
		return EXIT_FAILURE;
	}
	if (d->broker.standalone)
		tokens_reserved(d, tokens_limit);
	server_begin(d->server);
	feed_event(d->feed, &begin);
	log_info("lockbrokerd " LOCKBROKERD_VERSION " serves %s as host %s%s",
		 d->listener.path ? d->listener.path : "the socket it was passed", d->conf.host,
		 d->broker.standalone ? ", standalone: its locks are for this host alone" : "");
	notify_send(&d->notify, "READY=1");
	return serve(d);
}

/* ---- taking over from another process ---- */

/* The table of holders has as many places as when it was made. */
static void fit_saved(struct daemon *d)
{
	d->clients_max = saved_clients(d->saved);
	if (d->broker.limits.clients <= d->clients_max)
		return;
	log_warning("limits.clients = %zu counts when the daemon is stopped and started; until then it is %zu",
		    d->broker.limits.clients, d->clients_max);
	d->broker.limits.clients = d->clients_max;
}

/* The files and the socket. NULL, or what cannot be taken over. */
static const char *adopt_files(struct daemon *d, struct parcel *p)
{
	struct parcel_record r;

	parcel_find(p, "process", &r);
	d->pid_fd = parcel_take_fd(p, &r, "pid_fd");
	if (d->pid_fd < 0)
		return "lockbrokerd.pid";
	if (page_unpack(&d->page, p, d->page_id) < 0)
		return "the session page";
	session_page_id_text(d->page_id, d->page_id_text);
	if (listen_unpack(&d->listener, p) < 0)
		return "the listening socket";
	if (d->broker.standalone)
		return tokens_unpack(&d->tokens, p, d->conf.statedir) < 0 ? "the tokens file" : NULL;
	if (saved_unpack(&d->saved, p) < 0)
		return "the file saved";
	fit_saved(d);
	return NULL;
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
	struct parcel_record r;

	parcel_find(p, "process", &r);
	if (feed_restore(&d->feed, &d->broker, parcel_get_text(&r, "broker"), why) < 0)
		return "the snapshot";
	if (make_parts(d, source) < 0)
		return "the loop";
	if (server_unpack(d->server, p) < 0 || !all_are_there(d))
		return "the connections";
	if (!d->zookeeper)
		return NULL;
	return zookeeper_unpack(d->zookeeper, p, d->conf.session_timeout_ms * CLOCK_NS_PER_MS) < 0 ? "the session" : NULL;
}

static bool adopt(struct daemon *d, const struct conf_source *source, struct parcel *p)
{
	const char *what = adopt_files(d, p);
	struct bytes why = { 0 };
	char sentence[512];

	if (!what)
		what = adopt_parts(d, source, p, &why);
	if (!what)
		return true;
	snprintf(sentence, sizeof(sentence), "the new process cannot take over %s%s%.*s", what, why.len ? ": " : "",
		 (int)why.len, why.len ? why.data : "");
	log_error("%s", sentence);
	takeover_refuse(d->takeover, sentence);
	bytes_free(&why);
	return false;
}

/* The other process never serves again. */
static int run_on(struct daemon *d, struct resolved *names, int64_t frozen_ns, bool reread)
{
	struct event over = { .type = EVENT_RESTART_OVER, .restart = { .done = true } };

	if (pidfile_write(d->pid_fd) < 0)
		log_warning("cannot write the number of this process into %s/lockbrokerd.pid", d->conf.rundir);
	if (d->saved)
		saved_take_over(d->saved);
	if (d->takeover)
		takeover_watch(d->takeover, feed_base(d->feed), daemon_alone, d);
	else
		notify_send(&d->notify, "READY=1");
	over.restart.paused_ns = feed_now(d->feed) - frozen_ns;
	feed_event(d->feed, &over);
	server_begin(d->server);
	if (d->zookeeper)
		zookeeper_prepared(d->zookeeper, names);
	log_info("lockbrokerd " LOCKBROKERD_VERSION " has taken over %zu connections; nobody was served for %" PRId64 " us",
		 server_count(d->server), over.restart.paused_ns / 1000);
	if (reread)
		reload_ask(d->reload);
	return serve(d);
}

/* Until the other process has committed, nothing that it passed on is touched: this one may only vanish. */
static int take_over(struct daemon *d, const struct conf_source *source)
{
	struct resolved names = { 0 };
	int64_t frozen_ns;
	struct parcel_record r;
	struct parcel *p;
	bool reread;

	if (!takeover_meet(d->takeover, &d->conf, d->broker.standalone))
		_exit(EXIT_FAILURE);
	if (!d->broker.standalone)
		resolve_servers(d->conf.servers, &names);
	if (!d->broker.standalone && !names.servers) {
		takeover_refuse(d->takeover, names.failed);
		_exit(EXIT_FAILURE);
	}
	p = takeover_receive(d->takeover);
	if (!p || !adopt(d, source, p))
		_exit(EXIT_FAILURE);
	parcel_find(p, "process", &r);
	frozen_ns = parcel_get_int(&r, "frozen_ns");
	reread = parcel_get_int(&r, "reread");
	if (!takeover_accept(d->takeover))
		_exit(EXIT_FAILURE);
	return run_on(d, &names, frozen_ns, reread);
}

/* What the process before this one left is of this daemon. */
static bool take_kept(struct daemon *d, struct parcel *p)
{
	char error[IDENTITY_ERROR_MAX];

	if (!keep_take(&d->notify, p))
		return false;
	if (!identity_differs(p, &d->conf, d->broker.standalone, error))
		return true;
	log_warning("what the process before this one left is not used: %s", error);
	parcel_discard(p);
	return false;
}

/* There is no way back: if it cannot be used, the service manager starts the daemon once more, without it. */
static int run_kept(struct daemon *d, const struct conf_source *source, struct parcel *p)
{
	struct resolved names = { 0 };
	char text[LISTEN_ERROR_MAX];
	struct parcel_record r;
	struct listener again; /* of systemd's: it is among what was kept */
	int64_t frozen_ns;

	if (listen_passed(&again, text) > 0)
		listen_close(&again);
	if (!d->broker.standalone)
		resolve_servers(d->conf.servers, &names);
	if (!adopt(d, source, p))
		_exit(EXIT_FAILURE);
	parcel_find(p, "process", &r);
	frozen_ns = parcel_get_int(&r, "frozen_ns");
	parcel_discard(p);
	return run_on(d, &names, frozen_ns, false);
}

/* If a standard descriptor is closed, one of ours could take its place and receive what is meant for the log. */
static void guard_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct daemon d = { .listener = { .fd = -1, .lock_fd = -1 }, .notify = { .fd = -1 }, .pid_fd = -1 };
	struct options options = { 0 };
	struct parcel kept = { 0 };
	int64_t tokens_limit = 0;
	int status;

	d.program = program_new(argc, argv);
	d.takeover = options.takeover = takeover_new();
	guard_standard();
	status = parse_options(argc, argv, &options, &d.conf);
	if (status < 0) {
		log_setup((enum log_level)d.conf.log_level, options.foreground ? LOG_FORM_HUMAN : log_form_detect());
		read_boot_id(d.boot_id, sizeof(d.boot_id));
		snprintf(d.page_path, sizeof(d.page_path), "%s/session", d.conf.rundir);
		broker_conf_fill(&d.broker, &d.conf, options.source.standalone);
		broker_conf_prefixes(&d.broker, &d.conf, d.prefixes);
		fit_clients(&d.broker.limits.clients);
		d.clients_max = d.broker.limits.clients;
		d.broker.boot_id = d.boot_id;
		d.broker.session_page = d.page_path;
		d.broker.session_page_id = d.page_id_text;
		if (notify_open(&d.notify) < 0)
			log_warning("cannot use NOTIFY_SOCKET: the service manager is not told the daemon's state");
		status = read_named(&d) < 0 ? EXIT_USAGE : EXIT_FAILURE;
		if (status == EXIT_FAILURE && d.takeover)
			status = take_over(&d, &options.source);
		else if (status == EXIT_FAILURE && take_kept(&d, &kept))
			status = run_kept(&d, &options.source, &kept);
		else if (status == EXIT_USAGE || open_rundir(&d) < 0 || open_saved(&d) < 0 ||
		    (options.source.standalone && (tokens_limit = open_tokens(&d)) < 0) ||
		    start_listening(&d) < 0)
			stop_parts(&d, false, status);
		else
			status = run(&d, &options.source, tokens_limit);
	}
	takeover_free(d.takeover);
	program_free(d.program);
	conf_free(&d.conf);
	mem_free(options.overrides);
	return status;
}
