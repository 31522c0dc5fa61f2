/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker http becomes the program lockbroker-http, which alone needs libevent: it stands beside the command where both
 * were built, and in libexec/lockbroker where they are installed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/say.h"
#include "client-lib/socket_path.h"

/* The program takes no more of them. */
enum { HOSTS_MAX = 16 };

/* What it is started with, without the options that are ours. */
static char *words[2 * (HOSTS_MAX + 4) + 2] = { (char[]){ "http" } };
static int count = 1;

int cli_http_take(void *context, enum cli_option_id id, char *value)
{
	static char listen[] = "--listen", host[] = "--host", anywhere[] = "--anywhere", page[] = "--page";
	char *given;

	if (count + 2 >= (int)(sizeof(words) / sizeof(words[0])))
		return cli_usage("--host can be given at most %d times.", HOSTS_MAX);
	if (id == OPT_PAGE && value) {
		if (asprintf(&given, "%s=%s", page, value) < 0)
			return CLI_OSERR;
		words[count++] = given;
		return 0;
	}
	words[count++] = id == OPT_LISTEN ? listen : id == OPT_HOST ? host : id == OPT_PAGE ? page : anywhere;
	if (value)
		words[count++] = value;
	return 0;
}

int cli_http(const struct cli_words *w)
{
	static const char *const places[] = { "lockbroker-http", "../libexec/lockbroker/lockbroker-http" };
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
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		execv(path, words);
	}
	cli_say("Cannot run %s: %s. It comes with the package lockbrokerd.", path, strerror(errno));
	return CLI_NOT_FOUND;
}
