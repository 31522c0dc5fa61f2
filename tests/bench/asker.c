/* SPDX-License-Identifier: Apache-2.0 */
#include "asker.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct shared *shared;
const char *path;
int number, processes, connections;
char reply_line[ASKER_IN_BYTES];
char request[ASKER_REQUEST_BYTES];

void fail(const char *what)
{
	fprintf(stderr, "bench-neighbours: %s: %s\n", what, strerror(errno));
	exit(1);
}

int open_fd(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

bool send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return false;
		data += sent > 0 ? sent : 0;
		len -= sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

size_t put(char *out, const char *word, ...)
{
	const char *words[16];
	size_t count = 0, len;
	va_list list;

	va_start(list, word);
	for (; word; word = va_arg(list, const char *))
		words[count++] = word;
	va_end(list);
	len = (size_t)sprintf(out, "*%zu\r\n", count);
	for (size_t i = 0; i < count; i++)
		len += (size_t)sprintf(out + len, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
	return len;
}

/* The next line in reply_line; NULL: the connection is over. */
static char *read_line(struct link *l)
{
	size_t len = 0;

	for (;;) {
		for (; l->used < l->len; l->used++) {
			if (l->in[l->used] == '\n') {
				l->used++;
				reply_line[len > 0 ? len - 1 : 0] = '\0';
				return reply_line;
			}
			if (len < sizeof(reply_line) - 1)
				reply_line[len++] = l->in[l->used];
		}
		ssize_t got = recv(l->fd, l->in, sizeof(l->in), 0);

		if (got <= 0 && !(got < 0 && errno == EINTR))
			return NULL;
		l->used = 0;
		l->len = got > 0 ? (size_t)got : 0;
	}
}

static bool skip(struct link *l, size_t len)
{
	while (len) {
		size_t here = l->len - l->used < len ? l->len - l->used : len;

		l->used += here;
		len -= here;
		if (!len)
			break;
		ssize_t got = recv(l->fd, l->in, sizeof(l->in), 0);

		if (got <= 0)
			return false;
		l->used = 0;
		l->len = (size_t)got;
	}
	return true;
}

/* Reads a whole reply. Returns the character it begins with; 0: the connection is over. */
static char read_reply(struct link *l)
{
	char *line = read_line(l), type;
	long count;

	if (!line)
		return 0;
	type = line[0];
	count = atol(line + 1);
	if (type == '$' && count >= 0 && !skip(l, (size_t)count + 2))
		return 0;
	if (type == '*' || type == '%' || type == '>')
		for (long i = 0; i < (type == '%' ? 2 * count : count); i++)
			if (!read_reply(l))
				return 0;
	return type;
}

void note_refusal(void)
{
	int before = 0;

	atomic_fetch_add(&shared->refused, 1);
	if (atomic_compare_exchange_strong(&shared->told, &before, 1))
		snprintf(shared->sentence, sizeof(shared->sentence), "%.500s", reply_line);
}

char ask(struct link *l, const char *text, size_t len)
{
	char type;

	if (!send_all(l->fd, text, len))
		return 0;
	type = read_reply(l);
	atomic_fetch_add(&shared->asked, 1);
	if (type == '-')
		note_refusal();
	return type;
}
