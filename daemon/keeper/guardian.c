/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "io/base/keeper.h"
#include "io/handover/program.h"
#include "keeper/crashes.h"
#include "keeper/custody.h"
#include "keeper/exchange.h"
#include "keeper/legacy.h"
#include "keeper/rights.h"
#include "keeper/vigil.h"
#include "protocol/number.h"

#define RETRY_NS (200 * CLOCK_NS_PER_MS)
#define NEVER INT64_MAX

enum { OWN_FDS = 32, PASSED_FIRST = 3, GOING_ON = -1, WAIT_MS_MAX = 1000000, HOW_MAX = 128 };

struct guardian {
	const struct program *program;
	enum log_form form;
	struct exchange exchange; /* with the worker */
	struct crashes crashes;
	struct vigil vigil;
	struct log_rate ignored;
	int signals; /* signalfd */
	int stop;    /* the latest signal to stop; 0: none */
	pid_t group; /* of all processes that the worker was and has started; 0: all are reaped */
	pid_t worker;
	bool ended; /* the worker was reaped: */
	int status;
	int64_t retry_ns; /* when a worker that could not be started is to be tried again */
};

/* ---- the worker begins ---- */

static int start_worker(struct guardian *g, bool first)
{
	struct program_gift gift = { .variable = KEEPER_VARIABLE, .passed = first, .session = true };
	char error[PROGRAM_ERROR_MAX];
	int64_t now_ns = vigil_now_ns();
	int fd, rc = keeper_message_pair(&fd, &gift.fd);

	g->retry_ns = NEVER;
	if (rc < 0) {
		log_error("cannot make a socket pair for the worker: %s", strerror(-rc));
		return rc;
	}
	rc = program_start(g->program, &gift, &g->worker, error);
	close(gift.fd);
	if (rc < 0) {
		log_error("%s", error);
		close(fd);
		return rc;
	}
	g->group = g->worker;
	g->ended = false;
	exchange_begin(&g->exchange, fd, crashes_recent(&g->crashes, now_ns));
	/* Whatever the one before had begun, this one was not told. */
	if (g->stop)
		exchange_signal(&g->exchange, g->stop, 0);
	vigil_begin(&g->vigil, now_ns);
	return 0;
}

/* The worker has them now. */
static void close_passed(const struct program *p)
{
	int count = program_passed(p);

	for (int i = 0; i < count; i++)
		close(PASSED_FIRST + i);
}

/* ---- the worker ends ---- */

/* False: the keeper gives up. */
static bool survive_crash(struct guardian *g)
{
	unsigned int count = crashes_add(&g->crashes, vigil_now_ns());
	size_t ended;

	if (count >= CRASHES_MAX) {
		log_error("the worker has crashed %u times within a minute: the service ends", count);
		return false;
	}
	if (count < KEEPER_CRASHES_ANEW)
		return true;
	ended = custody_end_connections(g->exchange.custody);
	log_error(
		"the worker has crashed %u times within a minute: another one starts without what they remembered; %zu kept "
		"connections are closed",
		count, ended);
	return true;
}

/* GOING_ON or the exit status. What it lacks may be there soon: memory, a file that an upgrade replaces. */
static int start_again(struct guardian *g)
{
	if (!survive_crash(g))
		return EXIT_FAILURE;
	if (start_worker(g, false) < 0)
		g->retry_ns = vigil_now_ns() + RETRY_NS;
	return GOING_ON;
}

/* GOING_ON or the exit status. */
static int worker_ended(struct guardian *g)
{
	int status = g->status;
	char how[HOW_MAX];

	if (g->ended && WIFEXITED(status) && WEXITSTATUS(status) != KEEPER_HANDED_OVER)
		return WEXITSTATUS(status);
	if (g->ended && WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was killed by signal %d (%s%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(how, sizeof(how), "was taken over from, and its successor has ended");
	log_error("the worker (process %ld) %s: another one starts; %zu descriptors were kept", (long)g->worker, how,
		  custody_count(g->exchange.custody));
	return start_again(g);
}

/* ---- what the worker says ---- */

static void replace(struct guardian *g);

static void heed(struct guardian *g)
{
	struct exchange_heard heard = g->exchange.heard;

	g->exchange.heard = (struct exchange_heard){ 0 };
	if (heard.sender && heard.sender != g->worker) {
		g->worker = heard.sender;
		g->ended = false;
	}
	if (heard.here)
		vigil_ready(&g->vigil);
	if (heard.alive)
		vigil_alive(&g->vigil, vigil_now_ns(), heard.within_us);
	if (heard.again)
		replace(g);
}

/* Whatever else the worker was or has started goes with it: the next one must be the only one. */
static void converse(struct guardian *g)
{
	bool lives = g->exchange.fd < 0 || exchange_turn(&g->exchange);

	heed(g);
	if (lives)
		return;
	vigil_end(&g->vigil);
	kill(-g->group, SIGKILL);
}

/*
 * Every process whose parent has ended is a child of this one. GOING_ON or the exit status. Before anyone is reaped its end
 * of the channel is looked at: as long as there is one of them, nobody else can have the number of their group.
 */
static int reap(struct guardian *g)
{
	for (;;) {
		siginfo_t info = { 0 };
		int status = 0;

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
			break; /* none is left */
		if (info.si_pid == 0)
			return GOING_ON;
		converse(g);
		if (waitpid(info.si_pid, &status, 0) == g->worker) {
			g->ended = true;
			g->status = status;
		}
	}
	if (g->exchange.fd >= 0 || g->group == 0)
		return GOING_ON;
	g->group = 0;
	return worker_ended(g);
}

/* ---- signals ---- */

static void fill(sigset_t *set)
{
	static const int others[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,
				      SIGABRT, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU };

	sigfillset(set);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		sigdelset(set, others[i]);
}

static void take_signal(struct guardian *g, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	switch (number) {
	case SIGTERM:
	case SIGINT:
	case SIGQUIT:
		g->stop = number;
		exchange_signal(&g->exchange, number, (pid_t)info->ssi_pid);
		break;
	case SIGHUP:
	case SIGUSR1:
	case SIGUSR2:
		exchange_signal(&g->exchange, number, (pid_t)info->ssi_pid);
		break;
	case SIGCHLD: /* it has only woken the loop */
	case SIGPIPE:
	case SIGURG:
	case SIGWINCH:
		break;
	default:
		log_rated(&g->ignored, LOG_LEVEL_WARNING,
			  "signal %d (%s) from pid %u, uid %u: ignored; SIGTERM stops the daemon, SIGHUP reloads",
			  number, strsignal(number), info->ssi_pid, info->ssi_uid);
	}
}

static void take_signals(struct guardian *g)
{
	struct signalfd_siginfo info;

	while (read(g->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		take_signal(g, &info);
}

/* ---- the loop ---- */

/* A process that is stopped does not end by any other signal than SIGKILL. */
static void end_worker(const struct guardian *g)
{
	log_error("the worker (process %ld) has not said for too long that it lives: it hangs, and is ended",
		  (long)g->worker);
	kill(-g->group, SIGABRT);
	kill(-g->group, SIGCONT);
}

/* GOING_ON or the exit status. */
static int look_at_clock(struct guardian *g)
{
	int64_t now_ns = vigil_now_ns();

	switch (vigil_look(&g->vigil, now_ns)) {
	case VIGIL_NOTHING:
		break;
	case VIGIL_ABORT:
		end_worker(g);
		break;
	case VIGIL_KILL:
		kill(-g->group, SIGKILL);
		break;
	}
	return now_ns < g->retry_ns ? GOING_ON : start_again(g);
}

static void wait_for_something(struct guardian *g)
{
	struct pollfd fds[] = { { .fd = g->signals, .events = POLLIN }, { .fd = g->exchange.fd } };
	int64_t next_ns = min64(vigil_deadline(&g->vigil), g->retry_ns), left_ns = next_ns - vigil_now_ns();
	int timeout_ms = -1;

	fds[1].events = g->exchange.fd < 0 || exchange_tell(&g->exchange) ? POLLIN : POLLOUT;
	if (next_ns != NEVER)
		timeout_ms = (int)min64(max64(left_ns, 0) / CLOCK_NS_PER_MS + 1, WAIT_MS_MAX);
	poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
}

static int serve(struct guardian *g)
{
	int status = GOING_ON;

	while (status == GOING_ON) {
		wait_for_something(g);
		take_signals(g);
		converse(g);
		status = reap(g);
		if (status == GOING_ON)
			status = look_at_clock(g);
	}
	return status;
}

/* As many as it may have: what the worker serves is all kept here. */
static size_t room_for_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > OWN_FDS ? (size_t)limit.rlim_cur - OWN_FDS : 0;
}

static int prepare(struct guardian *g, const struct program *program, enum log_form form)
{
	sigset_t set;
	int rc;

	*g = (struct guardian){ .program = program, .form = form, .signals = -1, .retry_ns = NEVER };
	g->exchange = (struct exchange){ .custody = custody_new(room_for_descriptors()), .fd = -1 };
	vigil_open(&g->vigil);
	/* Whoever started this process may ignore it; then nobody could be reaped. */
	signal(SIGCHLD, SIG_DFL);
	fill(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	g->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) {
		rc = -errno;
		log_error("the keeper cannot begin: %s", strerror(-rc));
		return rc;
	}
	rc = rights_give_up();
	if (rc < 0)
		log_warning("the keeper cannot give up its capabilities: %s", strerror(-rc));
	return 0;
}

static int finish(struct guardian *g, int status)
{
	custody_free(g->exchange.custody);
	vigil_close(&g->vigil);
	if (g->signals >= 0)
		close(g->signals);
	return status;
}

int guardian_run(const struct program *program, enum log_form form)
{
	struct guardian g;

	if (prepare(&g, program, form) < 0 || start_worker(&g, true) < 0)
		return finish(&g, EXIT_FAILURE);
	close_passed(program);
	return finish(&g, serve(&g));
}

/* ---- another program in the place of this one ---- */

static void inherit(const struct guardian *g, bool yes)
{
	custody_inherit(g->exchange.custody, yes);
	fcntl(g->exchange.fd, F_SETFD, yes ? 0 : FD_CLOEXEC);
}

/* Returns if nothing comes of it. */
static void replace(struct guardian *g)
{
	const struct legacy l = {
		.log_level = (int)log_level(),
		.log_form = (int)g->form,
		.channel = g->exchange.fd,
		.group = g->group,
		.worker = g->worker,
		.stop = g->stop,
		.signals = g->exchange.signals,
		.within_us = g->vigil.within_ns / 1000,
		.crashes = g->crashes,
	};
	struct program_gift gift = { .variable = PROGRAM_KEEPING_VARIABLE };
	char error[PROGRAM_ERROR_MAX];

	if (g->exchange.fd < 0 || program_is_installed(g->program))
		return;
	gift.fd = legacy_make(&l, g->exchange.custody);
	if (gift.fd < 0) {
		log_warning("the keeper goes on as the program that it is: %s", strerror(-gift.fd));
		return;
	}
	inherit(g, true);
	program_replace(g->program, &gift, error);
	inherit(g, false);
	close(gift.fd);
	log_warning("the keeper goes on as the program that it is: %s", error);
}

static int go_on(struct guardian *g, int legacy_fd)
{
	struct legacy l;
	int rc = legacy_read(legacy_fd, &l, g->exchange.custody);

	if (rc < 0) {
		log_error("the keeper cannot go on from the one before it: %s", strerror(-rc));
		return EXIT_FAILURE;
	}
	log_setup((enum log_level)l.log_level, (enum log_form)l.log_form);
	g->form = (enum log_form)l.log_form;
	g->group = l.group;
	g->worker = l.worker;
	g->stop = l.stop;
	g->crashes = l.crashes;
	g->exchange.signals = l.signals;
	exchange_go_on(&g->exchange, l.channel);
	vigil_alive(&g->vigil, vigil_now_ns(), (uint64_t)l.within_us);
	log_info("lockbrokerd " LOCKBROKERD_VERSION " is the keeper now, of %zu descriptors",
		 custody_count(g->exchange.custody));
	return serve(g);
}

int guardian_resume(const struct program *program)
{
	const char *text = getenv(PROGRAM_KEEPING_VARIABLE);
	struct guardian g;
	int64_t fd = -1;

	if (!text || !number_parse(slice_of(text), &fd) || fd <= STDERR_FILENO || fd > INT32_MAX)
		return -1;
	unsetenv(PROGRAM_KEEPING_VARIABLE);
	if (prepare(&g, program, log_form_detect()) < 0)
		return finish(&g, EXIT_FAILURE);
	return finish(&g, go_on(&g, (int)fd));
}
