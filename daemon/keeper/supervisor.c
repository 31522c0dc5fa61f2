/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "io/base/keeper.h"
#include "io/base/memory_limit.h"
#include "io/handover/program.h"
#include "keeper/crashes.h"
#include "keeper/descriptors.h"
#include "keeper/exchange.h"
#include "keeper/reexec.h"
#include "keeper/watchdogs.h"
#include "protocol/number.h"

/*
 * What the keeper gives up. It needs no right at all: it moves descriptors, closes them, and sends signals to processes of
 * its own user. But the worker has its rights from it: under NoNewPrivileges=, which the unit sets, a program has at most
 * those that are permitted to the process which runs it. So they stay permitted there, and none is in effect: no system
 * call of the keeper succeeds that an ordinary process of its user could not make. Without it, root's programs have their
 * rights from the bounding set, and none is even permitted.
 *
 * For the same reason it keeps its user, and sets neither no_new_privs nor a seccomp filter: all of these would be the
 * worker's, too, for good.
 */

/* 0 or -errno. */
static int rights_give_up(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	bool regains = geteuid() == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 &&
		       prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) == 0;
	uint32_t given_up = 0;

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		given_up |= data[i].effective;
		data[i].effective = 0;
		if (!regains)
			continue;
		given_up |= data[i].permitted;
		data[i].permitted = 0;
	}
	/* The unit's system call filter does not let even this be asked for. */
	if (!given_up)
		return 0;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

#define RETRY_NS (200 * CLOCK_NS_PER_MS)
#define NEVER INT64_MAX

enum { OWN_FDS = 32, PASSED_FIRST = 3, GOING_ON = -1, WAIT_MS_MAX = 1000000, HOW_MAX = 128 };

struct supervisor {
	const struct program *program;
	enum log_form form;
	struct exchange exchange; /* with the worker */
	struct crashes crashes;
	struct watchdogs watchdogs;
	int signals; /* signalfd */
	int stop;    /* the latest signal to stop; 0: none */
	bool keep;   /* it is to leave everything for the next start, as SIGUSR1 says, until a worker could not */
	pid_t group; /* of all processes that the worker was and has started; 0: all are reaped */
	pid_t worker;
	bool outdated; /* the worker may run a later program than this process */
	bool ended;    /* the worker was reaped: */
	int status;
	int64_t limit_kills; /* of workers before (memory_limit.h) */
	int64_t retry_ns;    /* when another worker is to be started; NEVER: one is there */
};

/* ---- the worker begins ---- */

static int start_worker(struct supervisor *s, bool first)
{
	/* The one that has crashed may have left what no other program understands, and another one may be installed by now. */
	struct program_gift gift = {
		.variable = KEEPER_VARIABLE, .passed = first, .session = true, .same = !first && !s->outdated
	};
	char error[PROGRAM_ERROR_MAX];
	int64_t now_ns = watchdogs_now_ns();
	int fd, rc = keeper_message_pair(&fd, &gift.fd);

	s->retry_ns = NEVER;
	if (rc < 0) {
		log_error(cannot_use, LOG_FIELDS("what=%s error=%v", "socketpair", strerror(-rc)),
			  "cannot make a socket pair for the worker: %s", strerror(-rc));
		return rc;
	}
	rc = program_start(s->program, &gift, &s->worker, error);
	close(gift.fd);
	if (rc < 0) {
		log_error(cannot_use, LOG_FIELDS("what=%s error=%v", "worker", error), "%s", error);
		close(fd);
		return rc;
	}
	s->group = s->worker;
	s->ended = false;
	exchange_begin(&s->exchange, fd, crashes_recent(&s->crashes, now_ns));
	/* Whatever the one before had begun, this one was not told. */
	if (s->stop && s->keep)
		exchange_signal(&s->exchange, SIGUSR1, 0);
	if (s->stop)
		exchange_signal(&s->exchange, s->stop, 0);
	watchdogs_begin(&s->watchdogs, now_ns);
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

/* One that is to stop and cannot is not tried for ever. False: the keeper gives up. */
static bool survive_crash(struct supervisor *s)
{
	unsigned int count = crashes_add(&s->crashes, watchdogs_now_ns());
	size_t ended;

	if (count >= CRASHES_MAX && s->stop) {
		log_error(worker_crashes, LOG_FIELDS("crashes=%d", count),
			  "the worker has crashed %u times within a minute and is to stop: the service ends", count);
		return false;
	}
	if (count < KEEPER_CRASHES_ANEW)
		return true;
	ended = descriptors_end_connections(s->exchange.descriptors);
	if (s->crashes.pause_ns)
		log_error(worker_crashes,
			  LOG_FIELDS("crashes=%d connections=%d pause_s=%d", count, ended, s->crashes.pause_ns / CLOCK_NS_PER_S),
			  "the worker crashes again and again: another one starts in %d s, without the state of the earlier ones; "
			  "%zu kept connections are closed",
			  (int)(s->crashes.pause_ns / CLOCK_NS_PER_S), ended);
	else
		log_error(worker_crashes, LOG_FIELDS("crashes=%d connections=%d pause_s=0", count, ended),
			  "the worker has crashed %u times within a minute: another one starts without their state; "
			  "%zu kept connections are closed",
			  count, ended);
	return true;
}

/* Another one starts when the clock is looked at, not before `least_ns`. GOING_ON or the exit status. */
static int start_again(struct supervisor *s, int64_t least_ns)
{
	if (!survive_crash(s))
		return EXIT_FAILURE;
	s->retry_ns = watchdogs_now_ns() + max64(s->crashes.pause_ns, least_ns);
	return GOING_ON;
}

/* The worker has no time to say so: it is ended between two instructions. */
static void say_why(struct supervisor *s)
{
	const char *most = *s->exchange.most ? s->exchange.most : "nobody that is known";
	int64_t kills = memory_limit_kills("");

	if (kills > s->limit_kills && WIFSIGNALED(s->status) && WTERMSIG(s->status) == SIGKILL)
		log_error(out_of_memory, LOG_FIELDS("most=%v", most),
			  "the kernel has killed a process of the service because it had no memory left: raise MemoryMax= of "
			  "the unit, or lower limits.* in the configuration (lockbrokerd(8), ACCOUNTS); most was charged to %s",
			  most);
	s->limit_kills = kills;
}

/* GOING_ON or the exit status. */
static int worker_ended(struct supervisor *s)
{
	int status = s->status;
	char how[HOW_MAX];

	if (s->ended && WIFEXITED(status) && WEXITSTATUS(status) != KEEPER_HANDED_OVER)
		return WEXITSTATUS(status);
	if (s->ended && WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was killed by signal %d (%s%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(how, sizeof(how), "was taken over from, and its successor has ended");
	log_error(worker_ended,
		  LOG_FIELDS("pid=%d descriptors=%d", s->worker, descriptors_count(s->exchange.descriptors)),
		  "the worker (process %ld) %s: another one starts; %zu descriptors were kept", (long)s->worker, how,
		  descriptors_count(s->exchange.descriptors));
	if (s->ended)
		say_why(s);
	return start_again(s, 0);
}

/* ---- what the worker says ---- */

static void replace(struct supervisor *s);

static void heed(struct supervisor *s)
{
	struct exchange_heard heard = s->exchange.heard;

	s->exchange.heard = (struct exchange_heard){ 0 };
	if (heard.sender && heard.sender != s->worker) {
		s->worker = heard.sender;
		s->ended = false;
	}
	if (heard.here)
		watchdogs_ready(&s->watchdogs);
	if (heard.alive)
		watchdogs_alive(&s->watchdogs, watchdogs_now_ns(), heard.within_us);
	if (heard.stays)
		s->keep = false;
	if (heard.again)
		replace(s);
}

/* Whatever else the worker was or has started goes with it: the next one must be the only one. */
static void converse(struct supervisor *s)
{
	bool lives = s->exchange.fd < 0 || exchange_turn(&s->exchange);

	heed(s);
	if (lives)
		return;
	watchdogs_end(&s->watchdogs);
	kill(-s->group, SIGKILL);
}

/*
 * Every process whose parent has ended is a child of this one. GOING_ON or the exit status. Before anyone is reaped its end
 * of the channel is looked at: as long as there is one of them, nobody else can have the number of their group.
 */
static int reap(struct supervisor *s)
{
	for (;;) {
		siginfo_t info = { 0 };
		int status = 0;

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
			break; /* none is left */
		if (info.si_pid == 0)
			return GOING_ON;
		converse(s);
		if (waitpid(info.si_pid, &status, 0) == s->worker) {
			s->ended = true;
			s->status = status;
		}
	}
	if (s->exchange.fd >= 0 || s->group == 0)
		return GOING_ON;
	s->group = 0;
	return worker_ended(s);
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

static void take_signal(struct supervisor *s, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	switch (number) {
	case SIGTERM:
	case SIGINT:
	case SIGQUIT:
		s->stop = number;
		exchange_signal(&s->exchange, number, (pid_t)info->ssi_pid);
		break;
	case SIGUSR1:
		s->keep = true;
		exchange_signal(&s->exchange, number, (pid_t)info->ssi_pid);
		break;
	case SIGHUP:
	case SIGUSR2:
		exchange_signal(&s->exchange, number, (pid_t)info->ssi_pid);
		break;
	case SIGCHLD: /* it has only woken the loop */
	case SIGPIPE:
	case SIGURG:
	case SIGWINCH:
		break;
	default:
		log_warning(signal_ignored, LOG_FIELDS("signal=%d pid=%d uid=%d", number, info->ssi_pid, info->ssi_uid),
			    "signal %d (%s) from pid %u, uid %u: ignored; SIGTERM stops the daemon, SIGHUP reloads",
			    number, strsignal(number), info->ssi_pid, info->ssi_uid);
	}
}

static void take_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		take_signal(s, &info);
}

/* ---- the loop ---- */

/* A process that is stopped does not end by any other signal than SIGKILL. */
static void end_worker(const struct supervisor *s)
{
	log_error(worker_hangs, LOG_FIELDS("pid=%d", s->worker),
		  "the worker (process %ld) has not said for too long that it lives: it hangs, and is ended",
		  (long)s->worker);
	kill(-s->group, SIGABRT);
	kill(-s->group, SIGCONT);
}

/* GOING_ON or the exit status. */
static int look_at_clock(struct supervisor *s)
{
	int64_t now_ns = watchdogs_now_ns();

	switch (watchdogs_look(&s->watchdogs, now_ns)) {
	case WATCHDOGS_NOTHING:
		break;
	case WATCHDOGS_ABORT:
		end_worker(s);
		break;
	case WATCHDOGS_KILL:
		kill(-s->group, SIGKILL);
		break;
	}
	/* A stop does not wait: only a worker can end what it has begun. */
	if (s->retry_ns == NEVER || (now_ns < s->retry_ns && !s->stop))
		return GOING_ON;
	/* What it lacks may be there soon: memory, a file that an upgrade replaces. */
	return start_worker(s, false) < 0 ? start_again(s, RETRY_NS) : GOING_ON;
}

static void wait_for_something(struct supervisor *s)
{
	struct pollfd fds[] = { { .fd = s->signals, .events = POLLIN }, { .fd = s->exchange.fd } };
	int64_t now_ns = watchdogs_now_ns(), next_ns = min64(watchdogs_deadline(&s->watchdogs), s->retry_ns), left_ns;
	int timeout_ms = -1;

	log_go_on();
	if (log_due_ns())
		next_ns = min64(next_ns, now_ns + log_due_ns());
	left_ns = next_ns - now_ns;

	fds[1].events = s->exchange.fd < 0 || exchange_tell(&s->exchange) ? POLLIN : POLLOUT;
	if (next_ns != NEVER)
		timeout_ms = (int)min64(max64(left_ns, 0) / CLOCK_NS_PER_MS + 1, WAIT_MS_MAX);
	poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
}

static int serve(struct supervisor *s)
{
	int status = GOING_ON;

	while (status == GOING_ON) {
		wait_for_something(s);
		take_signals(s);
		converse(s);
		status = reap(s);
		if (status == GOING_ON)
			status = look_at_clock(s);
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

static int prepare(struct supervisor *s, const struct program *program, enum log_form form)
{
	sigset_t set;
	int rc;

	*s = (struct supervisor){ .program = program, .form = form, .signals = -1, .retry_ns = NEVER };
	s->exchange = (struct exchange){ .descriptors = descriptors_new(room_for_descriptors()), .fd = -1 };
	s->limit_kills = memory_limit_kills("");
	program_title(program, "keeper");
	watchdogs_open(&s->watchdogs);
	s->exchange.manager = &s->watchdogs.notify;
	/* Whoever started this process may ignore it; then nobody could be reaped. */
	signal(SIGCHLD, SIG_DFL);
	fill(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) {
		rc = -errno;
		log_error(cannot_start, LOG_FIELDS("what=%s error=%v", "keeper", strerror(-rc)),
			  "the keeper cannot begin: %s", strerror(-rc));
		return rc;
	}
	rc = rights_give_up();
	if (rc < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "rights", strerror(-rc)),
			    "the keeper cannot give up its capabilities: %s", strerror(-rc));
	return 0;
}

static int finish(struct supervisor *s, int status)
{
	descriptors_free(s->exchange.descriptors);
	watchdogs_close(&s->watchdogs);
	if (s->signals >= 0)
		close(s->signals);
	return status;
}

int supervisor_run(const struct program *program, enum log_form form)
{
	struct supervisor s;

	if (prepare(&s, program, form) < 0 || start_worker(&s, true) < 0)
		return finish(&s, EXIT_FAILURE);
	close_passed(program);
	return finish(&s, serve(&s));
}

/* ---- another program in the place of this one ---- */

static void inherit(const struct supervisor *s, bool yes)
{
	descriptors_inherit(s->exchange.descriptors, yes);
	fcntl(s->exchange.fd, F_SETFD, yes ? 0 : FD_CLOEXEC);
}

/* Returns if nothing comes of it. */
static void replace(struct supervisor *s)
{
	const struct reexec l = {
		.log_level = (int)log_level(),
		.log_form = (int)s->form,
		.channel = s->exchange.fd,
		.group = s->group,
		.worker = s->worker,
		.stop = s->stop,
		.keep = s->keep,
		.signals = s->exchange.signals,
		.within_us = s->watchdogs.within_ns / 1000,
		.crashes = s->crashes,
		.core = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1,
	};
	struct program_gift gift = { .variable = PROGRAM_KEEPING_VARIABLE };
	char error[PROGRAM_ERROR_MAX];

	if (s->exchange.fd < 0 || program_is_installed(s->program))
		return;
	s->outdated = true;
	gift.fd = reexec_make(&l, s->exchange.descriptors);
	if (gift.fd < 0) {
		log_warning(keeper_stays, LOG_FIELDS("error=%v", strerror(-gift.fd)),
			    "the keeper cannot start the new program, and goes on as the old one: %s", strerror(-gift.fd));
		return;
	}
	inherit(s, true);
	program_replace(s->program, &gift, error);
	inherit(s, false);
	close(gift.fd);
	log_warning(keeper_stays, LOG_FIELDS("error=%v", error),
		    "the keeper cannot start the new program, and goes on as the old one: %s", error);
}

static int go_on(struct supervisor *s, int reexec_fd)
{
	struct reexec l;
	int rc = reexec_read(reexec_fd, &l, s->exchange.descriptors);

	if (rc < 0) {
		log_error(cannot_start, LOG_FIELDS("what=%s error=%v", "keeper", strerror(-rc)),
			  "the keeper cannot go on from the one before it: %s", strerror(-rc));
		return EXIT_FAILURE;
	}
	prctl(PR_SET_DUMPABLE, l.core, 0, 0, 0);
	log_setup((enum log_level)l.log_level, (enum log_form)l.log_form);
	s->form = (enum log_form)l.log_form;
	s->group = l.group;
	s->worker = l.worker;
	s->stop = l.stop;
	s->keep = l.keep;
	s->crashes = l.crashes;
	s->exchange.signals = l.signals;
	exchange_go_on(&s->exchange, l.channel);
	watchdogs_alive(&s->watchdogs, watchdogs_now_ns(), (uint64_t)l.within_us);
	log_info(keeper_begins,
		 LOG_FIELDS("descriptors=%d version=%v", descriptors_count(s->exchange.descriptors),
			    LOCKBROKERD_VERSION),
		 "lockbrokerd " LOCKBROKERD_VERSION " is the keeper now, of %zu descriptors",
		 descriptors_count(s->exchange.descriptors));
	return serve(s);
}

int supervisor_resume(const struct program *program)
{
	const char *text = getenv(PROGRAM_KEEPING_VARIABLE);
	struct supervisor s;
	int64_t fd = -1;

	if (!text || !number_parse(slice_of(text), &fd) || fd <= STDERR_FILENO || fd > INT32_MAX)
		return -1;
	unsetenv(PROGRAM_KEEPING_VARIABLE);
	if (prepare(&s, program, log_form_detect()) < 0)
		return finish(&s, EXIT_FAILURE);
	return finish(&s, go_on(&s, (int)fd));
}
