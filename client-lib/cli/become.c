/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/become.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/cli/say.h"
#include "client-lib/socket_path.h"

int cli_become(const struct cli_words *w, const char *program, char *const *words, const char *comes_with)
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
