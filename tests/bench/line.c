#include "line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int failed(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	return -1;
}

int line_connect(struct line *l, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	l->len = l->used = 0;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return failed(path);
	return 0;
}

int line_send(struct line *l, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = send(l->fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed("send");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int line_sendf(struct line *l, const char *format, ...)
{
	char text[1024];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return line_send(l, text, (size_t)len);
}

static int fill(struct line *l)
{
	ssize_t n;

	if (l->used > 0) {
		memmove(l->in, l->in + l->used, l->len - l->used);
		l->len -= l->used;
		l->used = 0;
	}
	do {
		n = recv(l->fd, l->in + l->len, sizeof(l->in) - l->len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return failed("recv");
	if (n == 0) {
		fprintf(stderr, "bench: the service closed the connection, or said too much\n");
		return -1;
	}
	l->len += (size_t)n;
	return 0;
}

const char *line_bytes(struct line *l, size_t len)
{
	const char *at;

	while (l->len - l->used < len) {
		if (fill(l))
			return NULL;
	}
	at = l->in + l->used;
	l->used += len;
	return at;
}

const char *line_read(struct line *l)
{
	char *end, *at;

	for (;;) {
		at = l->in + l->used;
		end = memchr(at, '\n', l->len - l->used);
		if (end)
			break;
		if (fill(l))
			return NULL;
	}
	*end = '\0';
	if (end > at && end[-1] == '\r')
		end[-1] = '\0';
	l->used = (size_t)(end + 1 - l->in);
	return at;
}
