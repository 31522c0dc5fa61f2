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

int cli_http(const char *socket, int argc, char **argv)
{
	static const char *const places[] = { "lockbroker-http", "../libexec/lockbroker/lockbroker-http" };
	char self[4096], path[sizeof(self) + 64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[len < 0 ? 0 : len] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return CLI_OSERR;
	slash[1] = '\0';
	if (socket && setenv("LOCKBROKER_SOCKET", socket, 1) < 0)
		return CLI_OSERR;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		execv(path, argv);
	}
	cli_say("Cannot run %s: %s. It comes with the package lockbrokerd.", path, strerror(errno));
	return CLI_NOT_FOUND;
}
