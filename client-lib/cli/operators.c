/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/operators.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/handle.h"
#include "client-lib/socket_path.h"

/* LIMIT is one if it has a number. */
static const char *const verbs[] = { "FORCEUNLOCK", "REVOKE", "RELOAD", "CONFIG", "RESTART", "AUDIT", "ACCESS", "LOG",
				     "ACCOUNTS", "DRAIN", NULL };

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

static bool may_be_opened(const char *path)
{
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0;
}

enum { SERVER_MAX = 512 };

/*
 * Who serves there, as the broker says; "": nobody, or it does not say so. Of a listener the kernel knows who made it only,
 * which is the service manager where that passes sockets, and the numbers of processes of two containers may be the same.
 */
static void read_server(const char *socket, char ret[SERVER_MAX])
{
	struct lb *lb;

	*ret = '\0';
	if (handle_open_now(socket, &lb) == LB_OK) {
		struct slice info = reply_text(cli_reply(lb, "INFO", "server")), host = reply_line(info, "\nhost:"),
			     pid = reply_line(info, "\nprocess_id:"), started = reply_line(info, "\nstarted:");

		if (pid.len > 0)
			snprintf(ret, SERVER_MAX, "%.*s %.*s %.*s", (int)pid.len, pid.data, (int)started.len, started.data,
				 (int)host.len, host.data);
	}
	lb_close(lb);
}

static bool is_of_the_same(const char *path, const char *socket)
{
	char server[SERVER_MAX], other[SERVER_MAX];

	read_server(path, server);
	if (!*server)
		return false;
	read_server(socket, other);
	return strcmp(server, other) == 0;
}

const char *operators_socket(const char *socket, char path[OPERATORS_PATH_MAX])
{
	const char *named = secure_getenv("LOCKBROKER_OPERATOR_SOCKET");
	struct socket_path found;

	/* Where that is not known, who opens it says so. */
	if (!socket_path_find(socket, &found))
		return socket;
	if (socket) {
		path_beside(found.text, path);
		if (strcmp(path, found.text) == 0 || !may_be_opened(path))
			return socket;
		/* Another daemon's may stand beside it. */
		return is_of_the_same(path, socket) ? path : socket;
	}
	if (named && *named)
		snprintf(path, OPERATORS_PATH_MAX, "%s", named);
	else
		path_beside(found.text, path);
	return may_be_opened(path) ? path : NULL;
}
