/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/operators.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client-lib/handle.h"

/* Requests, and commands that are called otherwise; LIMIT is one if it has a number. */
static const char *const verbs[] = { "FORCEUNLOCK", "REVOKE", "RELOAD", "CONFIG", "RESTART", "AUDIT", "ACCESS", "LOG",
				     "ACCOUNTS", "DRAIN", "force-unlock", NULL };

bool operators_only(int argc, char *const *words)
{
	for (int i = 0; argc > 0 && verbs[i]; i++)
		if (strcasecmp(words[0], verbs[i]) == 0)
			return true;
	return argc > 2 && strcasecmp(words[0], "LIMIT") == 0;
}

/* Beside the socket of everybody. */
static void path_beside(const char *socket, char path[OPERATORS_PATH_MAX])
{
	const char *slash = strrchr(socket, '/');

	snprintf(path, OPERATORS_PATH_MAX, "%.*soperator.sock", slash ? (int)(slash - socket) + 1 : 0, socket);
}

const char *operators_socket(const char *socket, char path[OPERATORS_PATH_MAX])
{
	const char *named = secure_getenv("LOCKBROKER_OPERATOR_SOCKET"), *usual = secure_getenv("LOCKBROKER_SOCKET");

	if (socket)
		return socket;
	if (named && *named)
		snprintf(path, OPERATORS_PATH_MAX, "%s", named);
	else
		path_beside(usual && *usual ? usual : HANDLE_SOCKET_DEFAULT, path);
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0 ? path : NULL;
}
