/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* lockbroker-top shows the locks of this host on a terminal: a client of the daemon, and the only one that needs ncurses. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "client-lib/socket_path.h"
#include "client-lib/top/top.h"
#include "client-lib/wire.h"

/* As those of the lockbroker command. */
enum { STATUS_USAGE = 64, STATUS_OSERR = 71 };

/* Times on the screen go on while nothing is answered. */
enum { DRAW_MS = 1000, ESCAPE_MS = 25 };

/* If the terminal takes no output, not even the output that restores its screen, the program ends after this time. */
enum { END_SECONDS = 5 };

static int fail(int status, const char *sentence)
{
	fprintf(stderr, "lockbroker top: %s\n", sentence);
	return status;
}

/* ---- the terminal ---- */

/* NULL: it can be drawn on; else a sentence. */
static const char *begin_screen(void)
{
	const char *why = NULL;
	int found;

	if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
		return "the kind of terminal that TERM names is not known here; set TERM to one that is.";
	if (!cursor_address || !*cursor_address)
		why = "the terminal that TERM names has no cursor that can be moved; `lockbroker ls --watch` works there.";
	del_curterm(cur_term);
	if (why)
		return why;
	if (!newterm(NULL, stdout, stdin))
		return "the terminal cannot be drawn on.";
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	return NULL;
}

static void fit_screen(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
}

/* ---- signals ---- */

static struct termios before;
static volatile sig_atomic_t ends;

static void end_soon(int signal)
{
	ends = 1;
	alarm(END_SECONDS);
}

static void end_now(int signal)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	_exit(0);
}

/* Those that end the program. */
static sigset_t enders(void)
{
	static const int list[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		signal(list[i], end_soon);
		sigaddset(&set, list[i]);
	}
	return set;
}

/* Those, and a change of the terminal's size; -1: errno says why not. */
static int listen_to_signals(const sigset_t *end)
{
	sigset_t set = *end;

	signal(SIGALRM, end_now);
	sigaddset(&set, SIGWINCH);
	if (tcgetattr(STDIN_FILENO, &before) < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The terminal may take its output slowly, or not at all: while it does, signals that end the program are handled. */
static void draw(struct top *t, int64_t now_ms, const sigset_t *end)
{
	sigprocmask(SIG_UNBLOCK, end, NULL);
	top_draw(t, now_ms);
	sigprocmask(SIG_BLOCK, end, NULL);
}

/* False: one came that ends the program. */
static bool take_signals(int fd)
{
	struct signalfd_siginfo s;

	while (read(fd, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo != SIGWINCH)
			return false;
		fit_screen();
	}
	return true;
}

/* ---- the loop ---- */

enum { AT_KEYS, AT_SIGNALS, AT_LOCAL, AT_FAR, AT_OPERATORS, PLACES };

static int wait_ms(int64_t due_ms, int64_t now_ms)
{
	return due_ms <= now_ms ? 0 : due_ms - now_ms > DRAW_MS ? DRAW_MS : (int)(due_ms - now_ms);
}

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void loop(struct top *t, int signals, const sigset_t *end)
{
	struct asker *const askers[] = { &t->local, &t->far, &t->operators };

	for (;;) {
		struct pollfd at[PLACES] = { { .fd = STDIN_FILENO, .events = POLLIN },
					     { .fd = signals, .events = POLLIN } };
		int64_t now_ms = wire_now_ms(), due_ms;

		for (size_t i = 0; i < 3; i++)
			asker_serve(askers[i], 0, now_ms);
		due_ms = top_ask(t, now_ms);
		/* What was asked is sent at once. */
		for (size_t i = 0; i < 3; i++) {
			asker_serve(askers[i], 0, now_ms);
			at[AT_LOCAL + i] = asker_poll(askers[i]);
			due_ms = earliest(due_ms, asker_due_ms(askers[i]));
		}
		draw(t, now_ms, end);
		if (ends)
			return;
		if (poll(at, PLACES, wait_ms(due_ms, now_ms)) < 0 && errno != EINTR)
			return;
		now_ms = wire_now_ms();
		for (size_t i = 0; i < 3; i++)
			if (at[AT_LOCAL + i].revents)
				asker_serve(askers[i], at[AT_LOCAL + i].revents, now_ms);
		if (at[AT_SIGNALS].revents && !take_signals(signals))
			return;
		if ((at[AT_KEYS].revents & POLLIN && !top_keys(t)) ||
		    at[AT_KEYS].revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
	}
}

int main(int argc, char **argv)
{
	const char *socket = getenv("LOCKBROKER_SOCKET"), *why;
	sigset_t end;
	struct top t;
	int signals;

	if (argc > 2)
		return fail(STATUS_USAGE,
			    "it takes the path of the operators' socket only. Try `lockbroker top --help`.");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return fail(STATUS_USAGE, "it needs a terminal; `lockbroker ls` prints the locks without one.");
	if (!socket || !*socket)
		socket = SOCKET_PATH_DEFAULT;
	setlocale(LC_CTYPE, "C.UTF-8");
	end = enders();
	signals = listen_to_signals(&end);
	if (signals < 0)
		return fail(STATUS_OSERR, strerror(errno));
	why = begin_screen();
	if (why)
		return fail(STATUS_USAGE, why);
	top_init(&t, socket, argc == 2 ? argv[1] : socket);
	loop(&t, signals, &end);
	alarm(END_SECONDS);
	endwin();
	top_deinit(&t);
	return 0;
}
