/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-pipeline SOCKET ping|set|lock CONNECTIONS DEPTH SECONDS: redis-benchmark's shape, for requests that it does not
 * know. Each connection sends DEPTH requests at once, waits for all their answers, and sends them again; one process
 * serves all. lock: LOCK and UNLOCK in turn, of a name of the connection's own. Prints requests per second.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1000, DEPTH_MAX = 64, REQUEST_MAX = 96, EVENTS = 64 };

struct connection {
	int fd, due; /* answers that are still to come */
	size_t len;
	char out[DEPTH_MAX * REQUEST_MAX];
};

static struct connection connections[CONNECTIONS_MAX];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	fprintf(stderr, "bench-pipeline: %s: %s\n", what, strerror(errno));
	exit(1);
}

static size_t write_request(char *at, const char *kind, int connection, int i)
{
	char name[32];

	snprintf(name, sizeof(name), "bench-pipe-%d", connection);
	if (strcmp(kind, "ping") == 0)
		return (size_t)snprintf(at, REQUEST_MAX, "*1\r\n$4\r\nPING\r\n");
	if (strcmp(kind, "set") == 0)
		return (size_t)snprintf(at, REQUEST_MAX, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$3\r\nxxx\r\n", strlen(name),
					name);
	return (size_t)snprintf(at, REQUEST_MAX, "*2\r\n$%d\r\n%s\r\n$%zu\r\n%s\r\n", i % 2 ? 6 : 4,
				i % 2 ? "UNLOCK" : "LOCK", strlen(name), name);
}

static void open_connection(struct connection *c, const char *path, const char *kind, int number, int depth)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int i;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		fail(path);
	for (i = 0; i < depth; i++)
		c->len += write_request(c->out + c->len, kind, number, i);
}

static void send_all(struct connection *c, int depth)
{
	if (send(c->fd, c->out, c->len, MSG_NOSIGNAL) != (ssize_t)c->len)
		fail("send");
	c->due = depth;
}

/* Every answer is one line; one that begins with a dash is an error. */
static int receive(struct connection *c)
{
	static char in[16384];
	ssize_t n = recv(c->fd, in, sizeof(in) - 1, MSG_DONTWAIT), i;
	int lines = 0;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		fail("recv");
	in[n] = '\0';
	for (i = 0; i < n; i++)
		lines += in[i] == '\n';
	if (memchr(in, '-', (size_t)n)) {
		fprintf(stderr, "bench-pipeline: an error among the answers: %s\n", strchr(in, '-'));
		exit(1);
	}
	c->due -= lines;
	return lines;
}

int main(int argc, char **argv)
{
	int count = argc > 5 ? atoi(argv[3]) : 0, depth = argc > 5 ? atoi(argv[4]) : 0, epoll = epoll_create1(0), i, n;
	struct epoll_event events[EVENTS];
	double begin, end, seen;
	long answers = 0;

	if (count < 1 || count > CONNECTIONS_MAX || depth < 1 || depth > DEPTH_MAX || depth % 2) {
		fprintf(stderr, "usage: bench-pipeline SOCKET ping|set|lock CONNECTIONS DEPTH SECONDS\n");
		return 64;
	}
	for (i = 0; i < count; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = &connections[i] };

		open_connection(&connections[i], argv[1], argv[2], i, depth);
		epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &e);
	}
	begin = now();
	end = begin + atof(argv[5]);
	for (i = 0; i < count; i++)
		send_all(&connections[i], depth);
	do {
		n = epoll_wait(epoll, events, EVENTS, 1000);
		for (i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			answers += receive(c);
			if (c->due == 0)
				send_all(c, depth);
		}
		seen = now();
	} while (seen < end);
	printf("%.0f\n", (double)answers / (seen - begin));
	return 0;
}
