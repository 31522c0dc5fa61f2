/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/job.h"

#include <ctype.h>
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
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"
#include "client-lib/cli/status.h"
#include "client-lib/cli/shown.h"
#include "client-lib/handle.h"
#include "client-lib/request.h"
#include "protocol/bytes.h"

/* The proof is checked at least this often. */
#define PROOF_MS 500
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

/* ---- the command ---- */

/* The subject of a sentence, such as "lock orders is": all that is held, or one lock. Returns `ret`. */
static const char *subject(const struct cli_job *job, const char *name, char *ret, size_t size)
{
	if (name || job->count == 1)
		snprintf(ret, size, "lock %s is", name ? name : job->names[0]);
	else
		snprintf(ret, size, "%zu locks are", job->count);
	return ret;
}

/* The loss of a lock before there is a command to be ended. */
static int not_started(struct cli_job *job, const char *name, const char *why)
{
	char what[1024];

	job->lost = true;
	cli_say("The %s lost: %s %s is not started.", subject(job, name, what, sizeof(what)), why, job->command[0]);
	return CLI_LOST;
}

/* One line for each lock: names contain no line ends. */
static int export_held(const struct cli_job *job)
{
	struct bytes names = { 0 }, tokens = { 0 };
	char number[24];

	for (size_t i = 0; i < job->count; i++) {
		if (i > 0) {
			bytes_text(&names, "\n");
			bytes_text(&tokens, "\n");
		}
		bytes_text(&names, job->names[i]);
		snprintf(number, sizeof(number), "%lld", job->tokens ? (long long)job->tokens[i] : 0);
		bytes_text(&tokens, number);
	}
	bytes_append(&names, "", 1);
	bytes_append(&tokens, "", 1);
	/* If there are no tokens, the environment may still have one of a lock around us. */
	if (job->tokens ? setenv("LOCKBROKER_TOKEN", tokens.data, 1) < 0 : unsetenv("LOCKBROKER_TOKEN") < 0)
		return -errno;
	return setenv("LOCKBROKER_NAME", names.data, 1) < 0 ? -errno : 0;
}

static int export(const struct cli_job *job)
{
	char number[24];

	if (export_held(job) < 0)
		return -errno;
	if (job->tokens && cli_nested_export(job->count, job->names, job->tokens) < 0)
		return -errno;
	if (job->owner && (*job->owner ? setenv("LOCKBROKER_OWNER", job->owner, 1) : unsetenv("LOCKBROKER_OWNER")) < 0)
		return -errno;
	if (job->closes)
		return unsetenv("LOCKBROKER_FD") < 0 ? -errno : 0;
	snprintf(number, sizeof(number), "%d", lb_fd(job->lb));
	return setenv("LOCKBROKER_FD", number, 1) < 0 ? -errno : 0;
}

/*
 * The proof is checked last, just before the command starts: we may have been stopped on the way. Only this program
 * ignores SIGPIPE: the command gets the disposition that it would have without us.
 */
static void become(struct cli_job *job, pid_t parent) __attribute__((noreturn));
static void become(struct cli_job *job, pid_t parent)
{
	/* Nobody will read events: under RESP2 the broker keeps them, and those that tell a state or repeat coalesce. */
	const char *keep[] = { "HELLO", "2" };
	struct sigaction ignored;
	int error = 0;

	if (job->closes ? prctl(PR_SET_PDEATHSIG, (long)SIGTERM) < 0 : fcntl(lb_fd(job->lb), F_SETFD, 0) < 0)
		error = errno;
	else if (export(job) < 0)
		error = ENOMEM;
	if (!error) {
		/* If the parent died before that request, no signal tells it. */
		if (job->closes && getppid() != parent)
			_exit(not_started(job, NULL, "lockbroker was killed."));
		if (cli_proof_left_ms(&job->proof) == 0)
			_exit(not_started(job, NULL, cli_proof_over(job->leased)));
		if (job->in_place)
			cli_proof_tell(&job->proof, 2, keep);
		sigaction(SIGPIPE, &job->pipe_action, &ignored);
		sigprocmask(SIG_SETMASK, &job->inherited, NULL);
		execvp(job->command[0], job->command);
		error = errno;
		sigaction(SIGPIPE, &ignored, NULL);
	}
	if (error == ENOENT && job->with_dashes)
		cli_say("Cannot run %s: %s. Options end at the first name, and the command begins behind it; -a names further "
			"locks: lockbroker lock -a %s %s CMD.", job->command[0], strerror(error), job->command[0], job->names[0]);
	else if (error == ENOENT && *job->command[0] == '-')
		cli_say("Cannot run %s: %s. Options end at the name: an option of lockbroker stands before %s.", job->command[0],
			strerror(error), job->names[0]);
	else
		cli_say("Cannot run %s: %s.", job->command[0], strerror(error));
	_exit(error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

/* From here on, signals are read; they no longer end this process, which would leave the command alone. */
static int catch_signals(struct cli_job *job)
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

static void signal_all(struct cli_job *job, int number)
{
	cli_tree_find(&job->tree, job->child);
	cli_tree_signal(&job->tree, number);
}

/* The loss of one lock (NULL: of all) ends the work under all of them. */
static void lost(struct cli_job *job, const char *name, const char *why)
{
	char what[1024];

	if (job->lost)
		return;
	if (!job->started) {
		job->status = not_started(job, name, why);
		return;
	}
	if (job->ended) {
		if (job->hold_until_ms == 0)
			return;
		cli_say("The %s lost: %s %s had ended before.", subject(job, name, what, sizeof(what)), why, job->command[0]);
		job->hold_until_ms = 0;
		return;
	}
	job->lost = true;
	cli_status("The %s lost; ending %s.", subject(job, name, what, sizeof(what)), job->command[0]);
	/*
	 * Processes that are being forked just now must get the signal, and processes that are forked later to clean up
	 * must not.
	 */
	cli_tree_stop(&job->tree, job->child);
	cli_tree_signal(&job->tree, SIGTERM);
	cli_tree_signal(&job->tree, SIGCONT);
	job->kill_at_ms = request_clock_ms() + job->grace_ms;
	cli_say("The %s lost: %s Ending %s%s.", subject(job, name, what, sizeof(what)), why,
		job->child ? "" : "the remaining processes of ", job->command[0]);
}

const char *cli_why_lost(const char *reason)
{
	static const struct {
		const char *reason, *why;
	} reasons[] = {
		{ "session", "the host's session has run out: ZooKeeper was unreachable for too long." },
		{ "deleted", "somebody deleted its znode." },
		{ "lease", "its lease has run out." },
		{ "limit", "its name is too long for the packets that the present ZooKeeper server takes." },
		{ "forced", "an operator took it by force." },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].why;
	return "the broker says so.";
}

const char *cli_why_ended(const struct lb *lb, enum lb_result result, char *ret, size_t size)
{
	const char *why = result == LB_CONNECTION && lb->ended ? "the connection to lockbrokerd has ended" : lb_error(lb);

	/* It stands behind a colon. */
	snprintf(ret, size, "%c%s%s", tolower((unsigned char)*why), *why ? why + 1 : "", cli_stop(why));
	return ret;
}

static void lost_with(struct cli_job *job, enum lb_result result)
{
	char why[1024];

	lost(job, NULL, cli_why_ended(job->lb, result, why, sizeof(why)));
}

static void heed_event(struct cli_job *job, const struct lb_event *event)
{
	char text[1024];

	switch (event->type) {
	case LB_EVENT_LOST:
		/* That the connection has ended is told once, for all of them. */
		if (strcmp(event->reason, "connection") != 0)
			lost(job, event->name, cli_why_lost(event->reason));
		break;
	case LB_EVENT_JEOPARDY:
		cli_say("ZooKeeper is unreachable; the %s safe for %.1f s more.", subject(job, NULL, text, sizeof(text)),
			(double)event->ms / 1e3);
		break;
	case LB_EVENT_SAFE:
		cli_say("ZooKeeper is back; the %s safe.", subject(job, NULL, text, sizeof(text)));
		break;
	case LB_EVENT_REVOKE:
		cli_say("Somebody asks for the lock %s: %s.", event->name, cli_shown(event->reason, text, sizeof(text)));
		job->asked_back = true;
		break;
	case LB_EVENT_GRANTED:
	case LB_EVENT_TIMEOUT:
	case LB_EVENT_FAILED:
	case LB_EVENT_LEADER:
	case LB_EVENT_UNOBSERVED:
	case LB_EVENT_OTHER:
		break;
	}
}

static void heed_events(struct cli_job *job)
{
	enum lb_result r = cli_proof_hear(&job->proof);
	struct lb_event event;

	/* Events that came before the end of the connection tell more than that end. */
	while (job->lb->events.len > 0 && lb_event(job->lb, 0, &event) == LB_OK)
		heed_event(job, &event);
	if (r != LB_OK)
		lost_with(job, r);
}

/*
 * A revoke takes nothing away: what the command does about it is its own business. It gets one signal for all that came.
 */
static void pass_on_revoke(struct cli_job *job)
{
	if (job->asked_back && job->on_revoke && job->child > 0)
		kill(job->child, job->on_revoke);
	job->asked_back = false;
}

/*
 * The terminal sends its signals to the whole foreground group: a command in our group already has them. Only its hang-up
 * goes to the leader of the session alone.
 */
static bool from_terminal(const struct cli_job *job, const struct signalfd_siginfo *info)
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
static bool child_has_ended(const struct cli_job *job)
{
	siginfo_t info = { 0 };

	return job->child == 0 || (waitid(P_PID, (id_t)job->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid);
}

/* If the command has ended, and we only wait for the processes that it left, these get the signals. */
static void forward_signals(struct cli_job *job)
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
		} else if (job->lost) {
			signal_all(job, (int)info.ssi_signo);
		} else if (would_end_us(info.ssi_signo)) {
			job->hold_until_ms = 0;
		}
	}
}

/* Among the dead children are orphans that became ours. */
static void reap(struct cli_job *job)
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

/* The daemon reports a loss. If it hangs, only the clock shows that the proof has run out. */
static void heed_proof(struct cli_job *job)
{
	enum lb_result r = cli_proof_ask(&job->proof, PROOF_MS);

	if (r != LB_OK)
		lost_with(job, r);
	else if (cli_proof_left_ms(&job->proof) == 0)
		lost(job, NULL, cli_proof_over(job->leased));
}

static int poll_timeout(const struct cli_job *job)
{
	int64_t now = request_clock_ms(), left = job->kill_at_ms - now, look = PROOF_MS - 1;

	if (job->child == 0)
		look = MIN(look, MAX(job->hold_until_ms - now, 0));
	if (job->kill_at_ms == INT64_MAX)
		return (int)MIN(cli_proof_left_ms(&job->proof), look) + 1;
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void kill_if_due(struct cli_job *job)
{
	int64_t now = request_clock_ms();

	if (now < job->kill_at_ms)
		return;
	signal_all(job, SIGKILL);
	job->kill_at_ms = now + KILL_AGAIN_MS;
	if (job->give_up_at_ms < INT64_MAX)
		return;
	cli_say("%s%s did not end within %.1f s: killing it.", job->child ? "" : "The remaining processes of ",
		job->command[0], (double)job->grace_ms / 1e3);
	job->give_up_at_ms = now + GIVE_UP_MS;
}

/* After a loss nobody may go on, so we stay until the last process has ended. */
static bool is_over(struct cli_job *job)
{
	if (job->child > 0)
		return false;
	if (!job->lost)
		return request_clock_ms() >= job->hold_until_ms;
	if (cli_tree_find(&job->tree, 0) == 0)
		return true;
	if (request_clock_ms() < job->give_up_at_ms)
		return false;
	cli_say("The remaining processes of %s cannot be killed.", job->command[0]);
	return true;
}

/* So that the command is shown as the holder when we are gone. A broker that does not know this word refuses it. */
static void tell_child(struct cli_job *job)
{
	char number[24];
	const char *words[] = { "CLIENT", "SETINFO", "CHILD", number };

	snprintf(number, sizeof(number), "%d", (int)job->child);
	cli_proof_tell(&job->proof, 4, words);
}

/* Looks for a loss before there is anything to be ended. */
static void look_before(struct cli_job *job)
{
	enum lb_result r = cli_proof_begin(&job->proof);

	if (r != LB_OK)
		lost_with(job, r);
	else
		heed_events(job);
	if (!job->lost)
		heed_proof(job);
}

static void show_held(const struct cli_job *job)
{
	char since[CLI_DURATION_MAX];

	cli_instant(time(NULL), since);
	if (job->leads)
		cli_status("Leads %s since %s, with token %lld.", job->names[0], since, (long long)job->tokens[0]);
	else if (!job->tokens)
		cli_status("Holds permits of %s since %s.", job->names[0], since);
	else if (job->count == 1)
		cli_status("Holds %s since %s, with token %lld.", job->names[0], since, (long long)job->tokens[0]);
	else
		cli_status("Holds %zu locks since %s.", job->count, since);
}

static int start(struct cli_job *job)
{
	pid_t self = getpid();
	int r = 0;

	/* This may wait for the broker; signals still have their usual effect meanwhile. */
	look_before(job);
	if (job->lost)
		return 0;
	if (job->in_place) {
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

static int watch(struct cli_job *job)
{
	for (;;) {
		struct pollfd p[] = { { .fd = job->signals, .events = POLLIN },
				      { .fd = lb_fd(job->lb), .events = POLLIN } };

		forward_signals(job);
		reap(job);
		/* A loss that can be seen when the command has just ended was there before it ended. */
		if (!job->lost)
			heed_events(job);
		if (!job->lost)
			heed_proof(job);
		job->ended |= job->child == 0;
		if (is_over(job))
			break;
		pass_on_revoke(job);
		kill_if_due(job);
		cli_say_unsaid();
		poll(p, job->lost ? 1 : 2, poll_timeout(job));
	}
	if (!job->lost)
		return job->status;
	/* Whatever was done without the lock, nobody may take it for a success, nor for a failure that the command chose. */
	cli_say("%s ended after that with the status %d; ours is %d.", job->command[0], job->status, CLI_LOST);
	return CLI_LOST;
}

int cli_job_run(struct cli_job *job)
{
	int r, status;

	job->signals = -1;
	job->kill_at_ms = job->give_up_at_ms = INT64_MAX;
	job->hold_until_ms = request_clock_ms() + job->min_hold_ms;
	job->proof = (struct cli_proof){ .lb = job->lb, .name = job->names[0] };
	r = start(job);
	if (r < 0)
		cli_say("Cannot start %s: %s.", job->command[0], strerror(-r));
	status = r < 0 ? CLI_OSERR : job->started ? watch(job) : job->status;
	if (job->signals >= 0)
		close(job->signals);
	cli_say_unsaid();
	return status;
}
