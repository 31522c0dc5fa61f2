/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-way PORT US: a way to a server of this machine that takes US microseconds in each direction. It listens on a free
 * port of the loopback interface, which it prints. What arrives there passes on to PORT, and what that answers passes
 * back, each US microseconds after its arrival, by the kernel's own stamp: a late wake-up of this process delays nothing
 * that it can still deliver in time. For each line on its standard input it prints one line of JSON: how long the bytes
 * since the line before were on their way. It ends with its standard input.
 *
 * Each host has one of its own: one that many hosts share would be where they wait for each other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

/* LEAD_NS: to wake up takes about so long, so it is begun earlier; the rest of that time is spent looking at the clock. */
enum { ENDS_MAX = 64, PIECE_BYTES = 16384, LEAD_NS = 40000 };

/* Bytes on their way; none: the end of the stream. */
struct piece {
	struct piece *next;
	int64_t arrived_ns;
	size_t len, sent;
	char bytes[PIECE_BYTES];
};

/* One side of a connection, and what is on its way to it. */
struct end {
	struct end *other;
	struct piece *first, **last;
	int fd;
	bool ended; /* nothing more is read from it */
};

static struct end ends[ENDS_MAX];
static int end_count;
static int64_t way_ns;
static struct histogram delivered;

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "bench-way: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct end *add(int fd)
{
	struct end *e = &ends[end_count];

	if (end_count++ == ENDS_MAX) {
		fputs("bench-way: too many connections\n", stderr);
		exit(1);
	}
	*e = (struct end){ .fd = fd, .last = &e->first };
	return e;
}

static void prepare(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		die("a connection");
}

static void join(int listener, const struct sockaddr_in *server)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), up = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct end *one, *two;

	if (fd < 0 || up < 0 || connect(up, (const struct sockaddr *)server, sizeof(*server)) < 0)
		die("the server");
	prepare(fd);
	prepare(up);
	one = add(fd);
	two = add(up);
	one->other = two;
	two->other = one;
}

/* When the bytes came: the clock of the stamp may be set, so only its distance from now counts. */
static int64_t arrival_ns(struct msghdr *m)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC), age_ns;
	struct cmsghdr *c;
	struct timespec t;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		age_ns = clock_ns(CLOCK_REALTIME) - (t.tv_sec * 1000000000LL + t.tv_nsec);
		return age_ns > 0 && age_ns < 1000000000 ? now_ns - age_ns : now_ns;
	}
	return now_ns;
}

static void take(struct end *from)
{
	char control[CMSG_SPACE(sizeof(struct timespec))];
	struct piece *p = malloc(sizeof(*p));
	struct iovec part;
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	ssize_t n;

	if (!p)
		die("memory");
	part = (struct iovec){ p->bytes, sizeof(p->bytes) };
	n = recvmsg(from->fd, &m, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		free(p);
		return;
	}
	p->next = NULL;
	p->len = n > 0 ? (size_t)n : 0;
	p->sent = 0;
	p->arrived_ns = arrival_ns(&m);
	from->ended = n <= 0; /* a reset passes on as an end */
	*from->other->last = p;
	from->other->last = &p->next;
}

/* What is due; it returns false where the socket has no room for it. */
static bool deliver(struct end *to, int64_t now_ns)
{
	struct piece *p;

	while ((p = to->first) && p->arrived_ns + way_ns <= now_ns) {
		ssize_t n = p->len ? send(to->fd, p->bytes + p->sent, p->len - p->sent, MSG_NOSIGNAL) : 0;

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0 || !p->len)
			shutdown(to->fd, SHUT_WR);
		p->sent += n < 0 ? p->len - p->sent : (size_t)n;
		if (p->sent < p->len)
			return false;
		if (p->len)
			histogram_add(&delivered, clock_ns(CLOCK_MONOTONIC) - p->arrived_ns);
		to->first = p->next;
		if (!to->first)
			to->last = &to->first;
		free(p);
	}
	return true;
}

static void report(void)
{
	char line[64];

	if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
		exit(0);
	printf("{\"pieces\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", (unsigned long long)delivered.total,
	       histogram_percentile_ns(&delivered, 0.5) / 1e3, histogram_percentile_ns(&delivered, 0.99) / 1e3);
	memset(&delivered, 0, sizeof(delivered));
}

static void turn(int listener, const struct sockaddr_in *server)
{
	struct pollfd polled[ENDS_MAX + 2] = { { .fd = STDIN_FILENO, .events = POLLIN },
					       { .fd = listener, .events = POLLIN } };
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC), next_ns = INT64_MAX;
	struct timespec wait;
	int i, count = end_count;

	for (i = 0; i < count; i++) {
		struct end *e = &ends[i];
		bool room = deliver(e, now_ns);

		polled[2 + i] = (struct pollfd){ .fd = e->ended && room ? -1 : e->fd,
						 .events = (short)((e->ended ? 0 : POLLIN) | (room ? 0 : POLLOUT)) };
		if (room && e->first && e->first->arrived_ns + way_ns < next_ns)
			next_ns = e->first->arrived_ns + way_ns;
	}
	now_ns = clock_ns(CLOCK_MONOTONIC);
	next_ns = next_ns == INT64_MAX ? -1 : next_ns > now_ns + LEAD_NS ? next_ns - now_ns - LEAD_NS : 0;
	wait = (struct timespec){ next_ns / 1000000000, next_ns % 1000000000 };
	if (ppoll(polled, (nfds_t)count + 2, next_ns < 0 ? NULL : &wait, NULL) < 0 && errno != EINTR)
		die("ppoll");
	for (i = 0; i < count; i++) {
		if (polled[2 + i].revents & (POLLIN | POLLHUP | POLLERR) && !ends[i].ended)
			take(&ends[i]);
	}
	if (polled[1].revents)
		join(listener, server);
	if (polled[0].revents)
		report();
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
			   server = address;
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc != 3) {
		fputs("usage: bench-way PORT MICROSECONDS\n", stderr);
		return 64;
	}
	server.sin_port = htons((uint16_t)atoi(argv[1]));
	way_ns = atoll(argv[2]) * 1000;
	/* A wire waits for no core. Where that is not allowed, the delays that it prints show what came of it. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	prctl(PR_SET_TIMERSLACK, 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 16) < 0 || getsockname(listener, (struct sockaddr *)&address, &len) < 0)
		die("no port");
	printf("%d\n", ntohs(address.sin_port));
	for (;;)
		turn(listener, &server);
}
