/*
 * lockbroker lock: run a command while holding a lock. lockbroker sem: the same with permits of a semaphore; lockbroker
 * campaign: while leading an election.
 *
 * The connection is the owner of the lock, and the command inherits its descriptor: the lock is held until the last
 * of the processes that have it ends, even if this one is killed. Nothing is ever unlocked by a request.
 *
 *     take the lock -> fork, exec -> watch: signals are forwarded, events of the connection are heeded
 *                                    LOST or connection gone -> TERM, grace, KILL: to the command and to all that
 *                                        descend from it; over when the last of them has ended
 *                                    command ended -> its exit status, and what it left in the background goes on
 */
#include "cli.h"
#include "cli_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A lock that is lost may be granted to another host a third of the session timeout (15 s) later: before that. */
#define GRACE_MS 3000
#define SECONDS_MAX 1e9
/* How often the proof is looked at. */
#define PROOF_MS 500
/* What forks while it is killed takes more than once. What may not be killed is left alone after a while. */
#define KILL_AGAIN_MS 50
#define GIVE_UP_MS 2000

struct lock_job {
	struct lb *lb;
	const char *name;
	char **command;
	const char *data; /* NULL: none */
	bool campaign;    /* a leadership is wanted, not a lock */
	bool shared;
	int64_t limit, count; /* of permits; limit 0: a lock is wanted */
	int64_t wait_ms, grace_ms;
	int64_t token;
	sigset_t inherited; /* signal mask, for the command */
	int signals;        /* signalfd */
	pid_t child;        /* 0 when the command has ended, with `status` */
	int status;
	int on_revoke;      /* the signal; 0: none */
	bool lost;
	int64_t kill_at_ms, give_up_at_ms; /* INT64_MAX: not set */
	struct cli_tree tree;
};

static const int forwarded[] = {
	SIGTERM, SIGINT,  SIGHUP, SIGQUIT,  SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
	SIGPIPE, SIGPOLL, SIGPWR, SIGWINCH, SIGURG,  SIGXCPU, SIGXFSZ, SIGSTKFLT,
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what was asked for ---- */

static int parse_seconds(const char *text, int64_t *ret_ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0))
		return -EINVAL;
	*ret_ms = (int64_t)((seconds > SECONDS_MAX ? SECONDS_MAX : seconds) * 1000 + 0.999);
	return 0;
}

/* TERM, SIGTERM or 15; none. */
static int parse_signal(const char *text, int *ret)
{
	const char *word = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text || *end) {
		for (number = NSIG - 1; number > 0; number--) {
			const char *name = sigabbrev_np((int)number);

			if (name && strcasecmp(name, word) == 0)
				break;
		}
		if (number == 0 && strcasecmp(text, "none") != 0)
			return -EINVAL;
	}
	if (number < 0 || number >= NSIG)
		return -EINVAL;
	*ret = (int)number;
	return 0;
}

static int parse_permits(const char *text, int64_t *ret)
{
	char *end;
	long long value = strtoll(text, &end, 10);

	if (end == text || *end || value < 1 || value > 1000000)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* What belongs to permits alone, or to locks alone. */
static int parse_kind(struct lock_job *job, bool semaphore, int c)
{
	if (strchr("sxd", c) && semaphore)
		return cli_usage("sem has no option -%c.", c);
	if (strchr("lc", c) && !semaphore)
		return cli_usage("lock has no option -%c.", c);
	if (c == 'l' && parse_permits(optarg, &job->limit) < 0)
		return cli_usage("-l wants a number of permits, not \"%s\".", optarg);
	if (c == 'c' && parse_permits(optarg, &job->count) < 0)
		return cli_usage("-c wants a number of permits, not \"%s\".", optarg);
	return CLI_OK;
}

static int parse_options(struct lock_job *job, int argc, char **argv)
{
	static const struct option options[] = {
		{ "shared", no_argument, NULL, 's' },
		{ "exclusive", no_argument, NULL, 'x' },
		{ "on-revoke", required_argument, NULL, 'r' },
		{ 0 },
	};
	const char *verb = argv[0];
	bool semaphore = strcmp(verb, "sem") == 0;
	int c, status;

	/* 0 makes getopt forget the command line it is in the middle of. */
	optind = 0;
	opterr = 0;
	job->campaign = strcmp(verb, "campaign") == 0;
	while ((c = getopt_long(argc, argv, job->campaign ? "+:nw:k:r:" : "+:sxnw:k:d:r:l:c:",
				job->campaign ? options + 2 : options, NULL)) != -1) { /* it is always exclusive */
		status = parse_kind(job, semaphore, c);
		if (status != CLI_OK)
			return status;
		switch (c) {
		case 's':
			job->shared = true;
			break;
		case 'x':
			job->shared = false;
			break;
		case 'n':
			job->wait_ms = 0;
			break;
		case 'w':
			if (parse_seconds(optarg, &job->wait_ms) < 0)
				return cli_usage("-w wants seconds, not \"%s\".", optarg);
			break;
		case 'k':
			if (parse_seconds(optarg, &job->grace_ms) < 0)
				return cli_usage("-k wants seconds, not \"%s\".", optarg);
			break;
		case 'r':
			if (parse_signal(optarg, &job->on_revoke) < 0)
				return cli_usage("-r wants a signal, not \"%s\".", optarg);
			break;
		case 'd':
			job->data = optarg;
			break;
		case ':':
			return cli_usage("-%c wants a %s.", optopt,
					 optopt == 'd' ? "text" : optopt == 'r' ? "signal" :
					 strchr("lc", optopt) ? "number" : "number of seconds");
		case '?':
			if (optopt == 0 || strncmp(argv[optind - 1], "--", 2) == 0)
				return cli_usage("%s has no option %s.", verb, argv[optind - 1]);
			return cli_usage("%s has no option -%c.", verb, optopt);
		}
	}
	job->name = argv[optind++];
	if (!job->name)
		return cli_usage("%s wants a NAME.", verb);
	if (semaphore && !job->limit)
		return cli_usage("sem wants -l N: how many permits there are.");
	if (job->campaign && !(job->data = argv[optind++]))
		return cli_usage("campaign wants DATA for everybody to read.");
	job->command = argv + optind;
	if (*job->command && strcmp(*job->command, "--") == 0)
		job->command++;
	if (!*job->command)
		return cli_usage("%s wants a command to run: %s %s%s -- CMD [ARG...].", verb, verb, job->name,
				 job->campaign ? " DATA" : "");
	return CLI_OK;
}

/* ---- the command ---- */

static int export(const struct lock_job *job)
{
	char number[24];

	snprintf(number, sizeof(number), "%lld", (long long)job->token);
	if ((!job->limit && setenv("LOCKBROKER_TOKEN", number, 1) < 0) || setenv("LOCKBROKER_NAME", job->name, 1) < 0)
		return -errno;
	snprintf(number, sizeof(number), "%d", lb_fd(job->lb));
	return setenv("LOCKBROKER_FD", number, 1) < 0 ? -errno : 0;
}

static void become(struct lock_job *job) __attribute__((noreturn));
static void become(struct lock_job *job)
{
	int error = 0;

	if (fcntl(lb_fd(job->lb), F_SETFD, 0) < 0)
		error = errno;
	else if (export(job) < 0)
		error = ENOMEM;
	if (!error) {
		sigprocmask(SIG_SETMASK, &job->inherited, NULL);
		execvp(job->command[0], job->command);
		error = errno;
	}
	cli_say("Cannot run %s: %s.", job->command[0], strerror(error));
	_exit(error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

/* From here on a signal is a thing to be read, not an end that would leave the command alone. */
static int catch_signals(struct lock_job *job)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	/* Who started us may have ignored it, and then nobody could be waited for. */
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_BLOCK, &set, &job->inherited) < 0)
		return -errno;
	job->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return job->signals < 0 ? -errno : 0;
}

static int start(struct lock_job *job)
{
	int r = catch_signals(job);

	if (r == 0)
		r = cli_tree_begin(&job->tree);
	if (r < 0)
		return r;
	job->child = fork();
	if (job->child < 0)
		return -errno;
	if (job->child == 0)
		become(job);
	return 0;
}

/* ---- while it runs ---- */

static void signal_all(struct lock_job *job, int number)
{
	cli_tree_find(&job->tree, job->child);
	cli_tree_signal(&job->tree, number);
}

static void lost(struct lock_job *job, const char *why)
{
	if (job->lost)
		return;
	job->lost = true;
	cli_say("The lock %s is lost: %s Ending %s.", job->name, why, job->command[0]);
	signal_all(job, SIGTERM);
	/* Who is stopped could not heed it. */
	cli_tree_signal(&job->tree, SIGCONT);
	job->kill_at_ms = now_ms() + job->grace_ms;
}

/* Nothing is taken away by it: what the command does about it is its own affair. */
static void asked_back(struct lock_job *job, const struct lb_event *event)
{
	char reason[1024];

	cli_say("The lock %s is asked back: %s.", event->name, cli_shown(event->reason, reason, sizeof(reason)));
	if (job->on_revoke && job->child > 0 && strcmp(event->name, job->name) == 0)
		kill(job->child, job->on_revoke);
}

static void heed_event(struct lock_job *job, const struct lb_event *event)
{
	switch (event->type) {
	case LB_EVENT_LOST:
		if (strcmp(event->name, job->name) == 0)
			lost(job, strcmp(event->reason, "forced") == 0 ? "an operator took it by force." : "the broker says so.");
		break;
	case LB_EVENT_JEOPARDY:
		cli_say("ZooKeeper is out of reach; the lock %s is safe for %.1f s more.", job->name,
			(double)event->ms / 1e3);
		break;
	case LB_EVENT_SAFE:
		cli_say("ZooKeeper is back; the lock %s is safe.", job->name);
		break;
	case LB_EVENT_REVOKE:
		asked_back(job, event);
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

static void heed_events(struct lock_job *job)
{
	struct lb_event event;
	enum lb_result r;

	while ((r = lb_event(job->lb, 0, &event)) == LB_OK)
		heed_event(job, &event);
	if (r != LB_NONE)
		lost(job, lb_error(job->lb));
}

/* What the terminal sends goes to the whole foreground group: the command has it already, if it is in ours. */
static bool from_terminal(const struct lock_job *job, const struct signalfd_siginfo *info)
{
	return info->ssi_code == SI_KERNEL &&
	       (info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT || info->ssi_signo == SIGHUP ||
		info->ssi_signo == SIGWINCH) &&
	       getpgid(job->child) == getpgrp();
}

/* When the command has ended, and we only wait for what it left, that is who gets them. */
static void forward_signals(struct lock_job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (job->child == 0)
			signal_all(job, (int)info.ssi_signo);
		else if (!from_terminal(job, &info))
			kill(job->child, (int)info.ssi_signo);
	}
}

/* Among the dead are orphans that became our children. */
static void reap(struct lock_job *job)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		cli_tree_reaped(&job->tree, pid);
		if (pid != job->child)
			continue;
		job->child = 0;
		job->status = WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
	}
}

/* The daemon tells of a loss, unless it hangs: then nobody but the clock does. */
static void heed_proof(struct lock_job *job)
{
	int64_t ms;

	if (lb_valid(job->lb, job->name, &ms) != LB_OK)
		lost(job, lb_error(job->lb));
	else if (ms == 0)
		lost(job, "nothing proves any more that it is held.");
}

static int poll_timeout(const struct lock_job *job)
{
	int64_t left = job->kill_at_ms - now_ms();

	if (job->kill_at_ms == INT64_MAX)
		return PROOF_MS;
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void kill_if_due(struct lock_job *job)
{
	int64_t now = now_ms();

	if (now < job->kill_at_ms)
		return;
	if (job->give_up_at_ms == INT64_MAX) {
		cli_say("%s%s did not end within %.1f s: killing it.", job->child ? "" : "What is left of ",
			job->command[0], (double)job->grace_ms / 1e3);
		job->give_up_at_ms = now + GIVE_UP_MS;
	}
	signal_all(job, SIGKILL);
	job->kill_at_ms = now + KILL_AGAIN_MS;
}

/* After a loss nobody may go on, so we are there until the last one has ended. */
static bool is_over(struct lock_job *job)
{
	if (job->child > 0)
		return false;
	if (!job->lost || cli_tree_find(&job->tree, 0) == 0)
		return true;
	if (now_ms() < job->give_up_at_ms)
		return false;
	cli_say("What is left of %s cannot be killed.", job->command[0]);
	return true;
}

static int watch(struct lock_job *job)
{
	for (;;) {
		struct pollfd p[] = { { .fd = job->signals, .events = POLLIN },
				      { .fd = lb_fd(job->lb), .events = POLLIN } };

		/* The command's end is looked for before the loss that its end may bring. */
		forward_signals(job);
		reap(job);
		if (is_over(job))
			break;
		if (!job->lost)
			heed_events(job);
		if (!job->lost)
			heed_proof(job);
		kill_if_due(job);
		poll(p, job->lost ? 1 : 2, poll_timeout(job));
	}
	/* What was done without the lock is no success. */
	return job->lost && job->status == CLI_OK ? CLI_UNAVAILABLE : job->status;
}

/* ---- all of it ---- */

/* So that who looks sees more than "lockbroker". The broker refuses names it does not like, and that is all right. */
static void introduce(struct lock_job *job)
{
	const char *slash = strrchr(job->command[0], '/');
	const char *words[] = { "CLIENT", "SETNAME", slash ? slash + 1 : job->command[0] };

	lb_command(job->lb, 3, words, NULL);
}

static enum lb_result take(struct lock_job *job)
{
	struct lb_options options = LB_OPTIONS;

	if (job->campaign)
		return lb_campaign(job->lb, job->name, job->data, job->wait_ms, &job->token);
	if (job->limit)
		return lb_acquire(job->lb, job->name, job->limit, job->count, job->wait_ms, NULL);
	options.timeout_ms = job->wait_ms;
	options.shared = job->shared;
	options.data = job->data;
	return lb_lock_with(job->lb, job->name, &options, &job->token);
}

static int take_and_run(struct lock_job *job)
{
	enum lb_result r;
	int status;

	introduce(job);
	r = take(job);
	if (r != LB_OK) {
		cli_say("%s", lb_error(job->lb));
		return cli_exit_of(r);
	}
	status = start(job);
	if (status < 0) {
		cli_say("Cannot start %s: %s.", job->command[0], strerror(-status));
		return CLI_OSERR;
	}
	return watch(job);
}

int cli_lock(const char *socket, int argc, char **argv)
{
	struct lock_job job = {
		.count = 1, .wait_ms = -1, .grace_ms = GRACE_MS, .signals = -1, .kill_at_ms = INT64_MAX, .give_up_at_ms = INT64_MAX
	};
	int status = parse_options(&job, argc, argv);
	enum lb_result r;

	if (status != CLI_OK)
		return status;
	r = lb_open(socket, &job.lb);
	if (r == LB_OK) {
		status = take_and_run(&job);
	} else {
		cli_say("%s", lb_error(job.lb));
		status = cli_exit_of(r);
	}
	if (job.signals >= 0)
		close(job.signals);
	lb_close(job.lb);
	return status;
}
