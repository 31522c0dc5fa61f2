/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/nested.h"
#include "client-lib/cli/proof.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"
#include "client-lib/cli/status.h"
#include "client-lib/cli/tree.h"
#include "client-lib/request.h"
#include "protocol/bytes_format.h"

/*
 * A program that forks while it is killed has to be killed more than once; one that cannot be killed is given up after
 * a while.
 */
#define KILL_AGAIN_MS 50
#define GIVE_UP_MS 2000

/* And all real-time signals. */
static const int forwarded[] = {
	SIGTERM, SIGINT,  SIGHUP, SIGQUIT,  SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
	SIGPOLL, SIGPWR, SIGWINCH, SIGURG,  SIGXCPU, SIGXFSZ, SIGSTKFLT,
};

struct job {
	const struct cli_order *order;
	const char *program;          /* its command, for sentences */
	const int64_t *tokens;        /* of the locks; NULL: there are none */
	struct sigaction pipe_action; /* of SIGPIPE, for the command; we ignore it */
	sigset_t inherited;           /* signal mask, for the command */
	bool started;                 /* there is, or was, a command */
	struct cli_proof proof;
	int signals;                  /* signalfd */
	pid_t child;                  /* 0 when the command has ended, with `status` */
	int status;
	bool ended;                   /* the command has, and it was seen what became of the lock until then */
	bool told_to_end;             /* by a signal */
	int64_t hold_until_ms;
	int64_t kill_at_ms, give_up_at_ms; /* INT64_MAX: not set */
	struct cli_tree tree;
};

/* ---- the command ---- */

/* The subject of a sentence, such as "lock orders is": all that is held, or one lock. Returns `ret`. */
static const char *subject(const struct job *job, const char *name, char *ret, size_t size)
{
	if (name || job->order->count == 1)
		snprintf(ret, size, "lock %s is", name ? name : job->order->names[0]);
	else
		snprintf(ret, size, "%zu locks are", job->order->count);
	return ret;
}

/* The loss of a lock before there is a command to be ended. */
static int not_started(struct job *job, const char *name, const char *why)
{
	char what[1024];

	job->proof.lost = true;
	cli_say("The %s lost: %s %s is not started.", subject(job, name, what, sizeof(what)), why, job->program);
	return CLI_LOST;
}

/* One line for each lock: names contain no line ends. */
static int export_held(const struct job *job)
{
	struct bytes names = { 0 }, tokens = { 0 };

	for (size_t i = 0; i < job->order->count; i++) {
		bytes_format(&names, "%s%s", i > 0 ? "\n" : "", job->order->names[i]);
		bytes_format(&tokens, "%s%d", i > 0 ? "\n" : "", job->tokens ? job->tokens[i] : 0);
	}
	bytes_char(&names, '\0');
	bytes_char(&tokens, '\0');
	/* If there are no tokens, the environment may still have one of a lock around us. */
	if (job->tokens ? setenv("LOCKBROKER_TOKEN", tokens.data, 1) < 0 : unsetenv("LOCKBROKER_TOKEN") < 0)
		return -errno;
	return setenv("LOCKBROKER_NAME", names.data, 1) < 0 ? -errno : 0;
}

static int export(const struct job *job)
{
	const struct cli_order *o = job->order;
	char number[24];

	if (export_held(job) < 0)
		return -errno;
	if (job->tokens && cli_nested_export(o->count, o->names, job->tokens) < 0)
		return -errno;
	if (o->owner && (*o->owner ? setenv("LOCKBROKER_OWNER", o->owner, 1) : unsetenv("LOCKBROKER_OWNER")) < 0)
		return -errno;
	if (o->closes)
		return unsetenv("LOCKBROKER_FD") < 0 ? -errno : 0;
	snprintf(number, sizeof(number), "%d", lb_fd(job->proof.lb));
	return setenv("LOCKBROKER_FD", number, 1) < 0 ? -errno : 0;
}

/*
 * The proof is checked last, just before the command starts: we may have been stopped on the way. Only this program
 * ignores SIGPIPE: the command gets the disposition that it would have without us.
 */
static void become(struct job *job, pid_t parent) __attribute__((noreturn));
static void become(struct job *job, pid_t parent)
{
	/* Nobody will read events: under RESP2 the broker keeps them, and those that tell a state or repeat coalesce. */
	const char *keep[] = { "HELLO", "2" };
	const struct cli_order *o = job->order;
	struct sigaction ignored;
	int error = 0;

	if (o->closes ? prctl(PR_SET_PDEATHSIG, (long)SIGTERM) < 0 : fcntl(lb_fd(job->proof.lb), F_SETFD, 0) < 0)
		error = errno;
	else if (export(job) < 0)
		error = ENOMEM;
	if (!error) {
		/* If the parent died before that request, no signal tells it. */
		if (o->closes && getppid() != parent)
			_exit(not_started(job, NULL, "lockbroker was killed."));
		if (cli_proof_left_ms(&job->proof) == 0)
			_exit(not_started(job, NULL, cli_proof_over(&job->proof)));
		if (o->in_place)
			cli_proof_tell(&job->proof, 2, keep);
		sigaction(SIGPIPE, &job->pipe_action, &ignored);
		sigprocmask(SIG_SETMASK, &job->inherited, NULL);
		execvp(o->command[0], o->command);
		error = errno;
		sigaction(SIGPIPE, &ignored, NULL);
	}
	if (error == ENOENT && o->with_dashes)
		cli_say("Cannot run %s: %s. Options end at the first name, and the command begins behind it; -a names further "
			"locks: lockbroker lock -a %s %s CMD.", o->command[0], strerror(error), o->command[0], o->names[0]);
	else if (error == ENOENT && *o->command[0] == '-')
		cli_say("Cannot run %s: %s. Options end at the name: an option of lockbroker stands before %s.", o->command[0],
			strerror(error), o->names[0]);
	else
		cli_say("Cannot run %s: %s.", o->command[0], strerror(error));
	_exit(error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

/* From here on, signals are read; they no longer end this process, which would leave the command alone. */
static int catch_signals(struct job *job)
{
	sigset_t set, speaking;
	size_t i;
	int number;

	sigemptyset(&speaking);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	for (number = SIGRTMIN; number <= SIGRTMAX; number++)
		sigaddset(&set, number);
	/* The process that started us may ignore this signal, and then we could not wait for any child. */
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_BLOCK, &set, &job->inherited) < 0)
		return -errno;
	/* A terminal must not stop us because we write to it from the background. */
	sigaddset(&speaking, SIGTTOU);
	sigprocmask(SIG_BLOCK, &speaking, NULL);
	job->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return job->signals < 0 ? -errno : 0;
}

/* ---- while it runs ---- */

static void signal_all(struct job *job, int number)
{
	cli_tree_find(&job->tree, job->child);
	cli_tree_signal(&job->tree, number);
}

/* The loss of one lock (NULL: of all) ends the work under all of them. */
static void lost(void *context, const char *name, const char *why)
{
	struct job *job = context;
	char what[1024];

	if (job->proof.lost)
		return;
	if (!job->started) {
		job->status = not_started(job, name, why);
		return;
	}
	if (job->ended) {
		if (job->hold_until_ms == 0)
			return;
		cli_say("The %s lost: %s %s had ended before.", subject(job, name, what, sizeof(what)), why,
			job->program);
		job->hold_until_ms = 0;
		return;
	}
	job->proof.lost = true;
	cli_status("The %s lost; ending %s.", subject(job, name, what, sizeof(what)), job->program);
	/*
	 * Processes that are being forked just now must get the signal, and processes that are forked later to clean up
	 * must not.
	 */
	cli_tree_stop(&job->tree, job->child);
	cli_tree_signal(&job->tree, SIGTERM);
	cli_tree_signal(&job->tree, SIGCONT);
	job->kill_at_ms = request_clock_ms() + job->order->grace_ms;
	cli_say("The %s lost: %s Ending %s%s.", subject(job, name, what, sizeof(what)), why,
		job->child ? "" : "the remaining processes of ", job->program);
}

/*
 * A revoke takes nothing away: what the command does about it is its own business. It gets one signal for all that came.
 */
static void pass_on_revoke(struct job *job)
{
	if (job->proof.asked_back && job->order->on_revoke && job->child > 0)
		kill(job->child, job->order->on_revoke);
	job->proof.asked_back = false;
}

/*
 * The terminal sends its signals to the whole foreground group: a command in our group already has them. Only its hang-up
 * goes to the leader of the session alone.
 */
static bool from_terminal(const struct job *job, const struct signalfd_siginfo *info)
{
	if (info->ssi_signo == SIGHUP && getsid(0) == getpid())
		return false;
	return info->ssi_code == SI_KERNEL &&
	       (info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT || info->ssi_signo == SIGHUP ||
		info->ssi_signo == SIGWINCH) &&
	       getpgid(job->child) == getpgrp();
}

/* Such a signal ends the hold: at once if nothing runs any longer that could get it. */
static bool would_end_us(uint32_t number)
{
	return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/* The command has ended, perhaps since the last time that dead children were looked for: it would lose a signal. */
static bool child_has_ended(const struct job *job)
{
	siginfo_t info = { 0 };

	return job->child == 0 || (waitid(P_PID, (id_t)job->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid);
}

/* If the command has ended, and we only wait for the processes that it left, these get the signals. */
static void forward_signals(struct job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		bool ended = child_has_ended(job);

		if (info.ssi_signo == SIGCHLD)
			continue;
		job->told_to_end |= would_end_us(info.ssi_signo);
		if (!ended && from_terminal(job, &info))
			continue;
		if (!ended) {
			if (info.ssi_code == SI_QUEUE)
				sigqueue(job->child, (int)info.ssi_signo,
						 (union sigval){ .sival_ptr = (void *)(uintptr_t)info.ssi_ptr });
			else
				kill(job->child, (int)info.ssi_signo);
		} else if (job->proof.lost) {
			signal_all(job, (int)info.ssi_signo);
		} else if (would_end_us(info.ssi_signo)) {
			job->hold_until_ms = 0;
		}
	}
}

/* Among the dead children are orphans that became ours. */
static void reap(struct job *job)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		cli_tree_reaped(&job->tree, pid);
		if (pid != job->child)
			continue;
		job->child = 0;
		job->status = WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
		/* A command that was ended has not done its work; one that ends with 0 nevertheless says that it has. */
		if (job->told_to_end && job->status != 0)
			job->hold_until_ms = 0;
	}
}

static int poll_timeout(const struct job *job)
{
	int64_t now = request_clock_ms(), left = job->kill_at_ms - now, look = CLI_PROOF_MS - 1;

	if (job->child == 0)
		look = MIN(look, MAX(job->hold_until_ms - now, 0));
	if (job->kill_at_ms == INT64_MAX)
		return (int)MIN(cli_proof_left_ms(&job->proof), look) + 1;
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void kill_if_due(struct job *job)
{
	int64_t now = request_clock_ms();

	if (now < job->kill_at_ms)
		return;
	signal_all(job, SIGKILL);
	job->kill_at_ms = now + KILL_AGAIN_MS;
	if (job->give_up_at_ms < INT64_MAX)
		return;
	cli_say("%s%s did not end within %.1f s: killing it.", job->child ? "" : "The remaining processes of ",
		job->program, (double)job->order->grace_ms / 1e3);
	job->give_up_at_ms = now + GIVE_UP_MS;
}

/* After a loss nobody may go on, so we stay until the last process has ended. */
static bool is_over(struct job *job)
{
	if (job->child > 0)
		return false;
	if (!job->proof.lost)
		return request_clock_ms() >= job->hold_until_ms;
	if (cli_tree_find(&job->tree, 0) == 0)
		return true;
	if (request_clock_ms() < job->give_up_at_ms)
		return false;
	cli_say("The remaining processes of %s cannot be killed.", job->program);
	return true;
}

/* So that the command is shown as the holder when we are gone. A broker that does not know this word refuses it. */
static void tell_child(struct job *job)
{
	char number[24];
	const char *words[] = { "CLIENT", "SETINFO", "CHILD", number };

	snprintf(number, sizeof(number), "%d", (int)job->child);
	cli_proof_tell(&job->proof, 4, words);
}

static void show_held(const struct job *job)
{
	char since[CLI_DURATION_MAX];

	cli_instant(time(NULL), since);
	if (job->order->held == HELD_LEADERSHIP)
		cli_status("Leads %s since %s, with token %lld.", job->order->names[0], since,
			   (long long)job->tokens[0]);
	else if (!job->tokens)
		cli_status("Holds permits of %s since %s.", job->order->names[0], since);
	else if (job->order->count == 1)
		cli_status("Holds %s since %s, with token %lld.", job->order->names[0], since,
			   (long long)job->tokens[0]);
	else
		cli_status("Holds %zu locks since %s.", job->order->count, since);
}

static int start(struct job *job)
{
	pid_t self = getpid();
	int r = 0;

	/* This may wait for the broker; signals still have their usual effect meanwhile. */
	cli_proof_begin(&job->proof);
	if (job->proof.lost)
		return 0;
	if (job->order->in_place) {
		sigprocmask(SIG_BLOCK, NULL, &job->inherited);
		become(job, self);
	}
	r = cli_tree_begin(&job->tree);
	if (r == 0)
		r = catch_signals(job);
	if (r < 0)
		return r;
	job->child = fork();
	if (job->child < 0)
		return -errno;
	if (job->child == 0)
		become(job, self);
	job->started = true;
	tell_child(job);
	show_held(job);
	return 0;
}

static int watch(struct job *job)
{
	for (;;) {
		struct pollfd p[] = { { .fd = job->signals, .events = POLLIN },
				      { .fd = lb_fd(job->proof.lb), .events = POLLIN } };

		forward_signals(job);
		reap(job);
		/* A loss that can be seen when the command has just ended was there before it ended. */
		if (!job->proof.lost)
			cli_proof_heed(&job->proof);
		job->ended |= job->child == 0;
		if (is_over(job))
			break;
		pass_on_revoke(job);
		kill_if_due(job);
		cli_say_unsaid();
		poll(p, job->proof.lost ? 1 : 2, poll_timeout(job));
	}
	if (!job->proof.lost)
		return job->status;
	/* Whatever was done without the lock, nobody may take it for a success, nor for a failure that the command chose. */
	cli_say("%s ended after that with the status %d; ours is %d.", job->program, job->status, CLI_LOST);
	return CLI_LOST;
}

int cli_job_run(const struct cli_order *order, struct lb *lb, const int64_t *tokens,
		const struct sigaction *pipe_action)
{
	struct job job = {
		.order = order,
		.program = order->command[0],
		.tokens = order->held == HELD_PERMITS ? NULL : tokens,
		.pipe_action = *pipe_action,
		.signals = -1,
		.kill_at_ms = INT64_MAX,
		.give_up_at_ms = INT64_MAX,
		.hold_until_ms = request_clock_ms() + order->min_hold_ms,
	};
	char held[1024] = "the ";
	int r, status;

	subject(&job, NULL, held + strlen(held), sizeof(held) - strlen(held));
	job.proof = (struct cli_proof){ .lb = lb, .order = order, .held = held, .lose = lost, .context = &job };
	if (order->verbose)
		cli_say("Running %s.", job.program);
	r = start(&job);
	if (r < 0)
		cli_say("Cannot start %s: %s.", job.program, strerror(-r));
	status = r < 0 ? CLI_OSERR : job.started ? watch(&job) : job.status;
	if (job.signals >= 0)
		close(job.signals);
	cli_say_unsaid();
	return status;
}
