/* SPDX-License-Identifier: Apache-2.0 */
#include "io/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/base/watch.h"

struct signals {
	int fd;
	struct watch *watch;
	signals_heed *heed;
	void *arg;
};

static bool is_order(int number)
{
	return number == SIGTERM || number == SIGINT || number == SIGQUIT || number == SIGHUP || number == SIGUSR1 ||
	       number == SIGUSR2;
}

static void signals_fired(int fd, short what, void *arg)
{
	struct signalfd_siginfo info;
	struct signals *s = arg;
	int number;

	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	number = (int)info.ssi_signo;
	if (is_order(number))
		s->heed(s->arg, number, (pid_t)info.ssi_pid);
	else
		log_warning(signal_ignored, LOG_FIELDS("signal=%d pid=%d uid=%d", number, info.ssi_pid, info.ssi_uid),
			    "signal %d (%s) from pid %u, uid %u: ignored; SIGTERM stops the daemon, SIGHUP reloads",
			    number, strsignal(number), info.ssi_pid, info.ssi_uid);
}

static void fill(sigset_t *set)
{
	static const int others[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS, SIGABRT, SIGPIPE,
				      SIGCHLD, SIGIO,   SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH };
	size_t i;

	sigfillset(set);
	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		sigdelset(set, others[i]);
}

int signals_new(struct signals **ret, struct watch_base *base, signals_heed *heed, void *arg)
{
	struct signals *s;
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN); /* of a lease that somebody breaks (io/socket/page_file.h) */
	/* If the process that started us ignores it, nobody could be waited for. */
	signal(SIGCHLD, SIG_DFL);
	fill(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	s = mem_new(sizeof(*s));
	*s = (struct signals){ .fd = fd, .heed = heed, .arg = arg };
	s->watch = watch_new(base, signals_fired, s);
	watch_set(s->watch, fd, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
	*ret = s;
	return 0;
}

void signals_free(struct signals *s)
{
	if (!s)
		return;
	watch_free(s->watch);
	close(s->fd);
	mem_free(s);
}
