/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client-lib/cli/shown.h"

enum { STATUS_BYTES_MAX = 1024 };

static char shown[STATUS_BYTES_MAX];

bool cli_status_is_shown(void)
{
	const char *socket = getenv("NOTIFY_SOCKET"), *pid = getenv("SYSTEMD_EXEC_PID");

	return socket && *socket && pid && strtol(pid, NULL, 10) == getpid();
}

/* An abstract name begins with '@', which stands for the NUL in front of it. */
static void send_to_manager(const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = strlen(path);
	int fd;

	if (len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void cli_status(const char *format, ...)
{
	char line[STATUS_BYTES_MAX], visible[STATUS_BYTES_MAX], message[STATUS_BYTES_MAX + sizeof("STATUS=")];
	va_list args;

	if (!cli_status_is_shown())
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	cli_shown(line, visible, sizeof(visible));
	if (strcmp(visible, shown) == 0)
		return;
	memcpy(shown, visible, sizeof(shown));
	snprintf(message, sizeof(message), "STATUS=%s", visible);
	send_to_manager(message);
}
