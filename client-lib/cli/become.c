/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A command that needs a library of its own is a program of its own, which the command becomes: lockbroker http, which alone
 * needs libevent, and lockbroker top, which alone needs ncurses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/operators.h"
#include "client-lib/cli/say.h"
#include "client-lib/socket_path.h"

/*
 * Becomes that program, with the words, NULL behind the last one, and with the socket of `w` in LOCKBROKER_SOCKET. The
 * program stands beside the command where both were built, and in libexec/lockbroker where they are installed. Returns the
 * exit status if that cannot be done, after it said why, and `comes_with`, a sentence.
 */
static int become(const struct cli_words *w, const char *program, char *const *words, const char *comes_with)
{
	static const char *const places[] = { "", "../libexec/lockbroker/" };
	char self[4096], path[sizeof(self) + 64];
	struct socket_path socket;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[len < 0 ? 0 : len] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return CLI_OSERR;
	slash[1] = '\0';
	if (!socket_path_find(w->socket, &socket)) {
		cli_say("%s", socket.text);
		return CLI_UNAVAILABLE;
	}
	if (setenv("LOCKBROKER_SOCKET", socket.text, 1) < 0)
		return CLI_OSERR;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s%s", self, places[i], program);
		execv(path, words);
	}
	cli_say("Cannot run %s: %s. %s", path, strerror(errno), comes_with);
	return CLI_NOT_FOUND;
}

/* ---- http ---- */

/* The program takes no more of them. */
enum { HOSTS_MAX = 16 };

/* The arguments that lockbroker-http is started with. Options of the command itself, as --socket, are not among them. */
static char *http_words[2 * (HOSTS_MAX + 4) + 2] = { (char[]){ "http" } };
static int http_count = 1;

int cli_http_take(void *context, enum cli_option_id id, char *value)
{
	static char listen[] = "--listen", host[] = "--host", anywhere[] = "--anywhere", page[] = "--page";
	char *given;

	if (http_count + 2 >= (int)(sizeof(http_words) / sizeof(http_words[0])))
		return cli_usage("--host can be given at most %d times.", HOSTS_MAX);
	if (id == OPT_PAGE && value) {
		if (asprintf(&given, "%s=%s", page, value) < 0)
			return CLI_OSERR;
		http_words[http_count++] = given;
		return 0;
	}
	http_words[http_count++] = id == OPT_LISTEN ? listen : id == OPT_HOST ? host : id == OPT_PAGE ? page : anywhere;
	if (value)
		http_words[http_count++] = value;
	return 0;
}

int cli_http(const struct cli_words *w)
{
	return become(w, "lockbroker-http", http_words, "It comes with the package lockbrokerd.");
}

/* ---- top ---- */

int cli_top(const struct cli_words *w)
{
	char operators[OPERATORS_PATH_MAX];
	const char *found = operators_socket(w->socket, operators);
	char *words[] = { (char[]){ "top" }, found == operators ? operators : NULL, NULL };

	return become(w, "lockbroker-top", words,
		      "It comes with the package lockbroker, and is not built where there is no ncurses.");
}
