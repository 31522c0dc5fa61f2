/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

void *line_open(const char *path)
{
	struct line *l = malloc(sizeof(*l));

	return l && line_connect(l, path) == 0 ? l : NULL;
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

static inline void put(struct line_request *r, const char *text, size_t len)
{
	if (len > sizeof(r->text) - r->len)
		abort();
	memcpy(r->text + r->len, text, len);
	r->len += len;
}

/* A line of RESP that is a type and a number below 1,000. */
static inline void put_number(struct line_request *r, char type, size_t number)
{
	char *at = r->text + r->len;

	if (sizeof(r->text) - r->len < 6)
		abort();
	*at++ = type;
	if (number >= 100)
		*at++ = (char)('0' + number / 100 % 10);
	if (number >= 10)
		*at++ = (char)('0' + number / 10 % 10);
	*at++ = (char)('0' + number % 10);
	*at++ = '\r';
	*at++ = '\n';
	r->len = (size_t)(at - r->text);
}

int line_texts(struct line *l, const char *text, ...)
{
	struct line_request r;
	va_list more;

	r.len = 0;
	va_start(more, text);
	for (; text; text = va_arg(more, const char *))
		put(&r, text, strlen(text));
	va_end(more);
	return line_send(l, r.text, r.len);
}

static void put_words(struct line_request *r, const char *word, va_list more)
{
	const char *counted;
	size_t count = 1;
	va_list again;

	va_copy(again, more);
	for (counted = va_arg(again, const char *); counted; counted = va_arg(again, const char *))
		count++;
	va_end(again);
	r->len = 0;
	put_number(r, '*', count);
	for (; word; word = va_arg(more, const char *)) {
		size_t len = strlen(word);

		put_number(r, '$', len);
		put(r, word, len);
		put(r, "\r\n", 2);
	}
}

int line_words(struct line *l, const char *word, ...)
{
	struct line_request r;
	va_list more;

	va_start(more, word);
	put_words(&r, word, more);
	va_end(more);
	return line_send(l, r.text, r.len);
}

int line_same_words(struct line *l, struct line_request *r, uint32_t number, const char *word, ...)
{
	va_list more;

	if (r->len == 0 || r->number != number) {
		va_start(more, word);
		put_words(r, word, more);
		va_end(more);
		r->number = number;
	}
	return line_send(l, r->text, r->len);
}

/* Waits in poll(): in recv() it would be woken up also when the service reads what was sent. */
static int fill(struct line *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	ssize_t n;

	if (l->used > 0) {
		memmove(l->in, l->in + l->used, l->len - l->used);
		l->len -= l->used;
		l->used = 0;
	}
	do {
		poll(&p, 1, -1);
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
