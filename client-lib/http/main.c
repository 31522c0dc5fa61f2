/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* lockbroker-http serves /metrics and /healthz: a client of the daemon, in a process of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-lib/cli/process_one.h"
#include "client-lib/http/visitors.h"

/* As those of the lockbroker command. */
enum { STATUS_USAGE = 64, STATUS_OSERR = 71 };
enum { HOSTS_MAX = 16 };

static const char socket_default[] = "/run/lockbroker/lockbroker.sock";

static int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(int status, const char *format, ...)
{
	va_list args;

	fputs("lockbroker http: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\n", stderr);
	return status;
}

struct address {
	struct sockaddr_storage sa;
	int len;
	char text[INET6_ADDRSTRLEN];
	bool loopback, any;
};

/* False: it is no address and port. */
static bool read_address(const char *text, struct address *a)
{
	const struct sockaddr_in *v4 = (const void *)&a->sa;
	const struct sockaddr_in6 *v6 = (const void *)&a->sa;
	const char *colon = strrchr(text, ':');

	a->len = sizeof(a->sa);
	if (!colon || !colon[1] || evutil_parse_sockaddr_port(text, (struct sockaddr *)&a->sa, &a->len) < 0)
		return false;
	if (a->sa.ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, a->text, sizeof(a->text));
		a->loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
		a->any = v4->sin_addr.s_addr == htonl(INADDR_ANY);
	} else {
		if (text[0] != '[') /* the last part of an address is no port */
			return false;
		inet_ntop(AF_INET6, &v6->sin6_addr, a->text, sizeof(a->text));
		a->loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
		a->any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
	}
	return true;
}

/* The socket, or -errno. */
static int listen_on(const struct address *a)
{
	int one = 1, fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
	    bind(fd, (const struct sockaddr *)&a->sa, (socklen_t)a->len) == 0 && listen(fd, VISITORS_MAX) == 0)
		return fd;
	one = errno;
	close(fd);
	return -one;
}

/* Port 0 is one that the kernel chooses. */
static unsigned int port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { .v6 = { 0 } };
	socklen_t len = sizeof(at);

	if (getsockname(fd, &at.any, &len))
		return 0;
	return ntohs(at.any.sa_family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
}

static int serve(const struct address *a, struct visitors_conf *conf)
{
	struct event_base *base;
	int fd = listen_on(a);

	if (fd < 0)
		return fail(STATUS_OSERR, "cannot listen on %s: %s.", a->text, strerror(-fd));
	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	if (!base)
		return fail(STATUS_OSERR, "libevent cannot be used here.");
	visitors_new(base, fd, conf);
	printf("lockbroker http: serves /metrics and /healthz on %s port %u\n", a->text, port_of(fd));
	fflush(stdout);
	event_base_dispatch(base);
	return fail(STATUS_OSERR, "the loop has ended.");
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "listen", required_argument, NULL, 'l' },
						 { "host", required_argument, NULL, 'h' },
						 { "anywhere", no_argument, NULL, 'a' },
						 { 0 } };
	static const char usage[] =
		"it needs --listen ADDRESS:PORT, and takes --host NAME and --anywhere. Try `lockbroker http --help`.";
	const char *hosts[HOSTS_MAX + 1] = { NULL };
	struct address address = { .len = 0 };
	struct visitors_conf conf = { .hosts = hosts };
	bool anywhere = false;
	size_t count = 0;
	int option;

	process_one_ends_by_signals();
	conf.socket = getenv("LOCKBROKER_SOCKET");
	if (!conf.socket || !*conf.socket)
		conf.socket = socket_default;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 'l' && !read_address(optarg, &address))
			return fail(STATUS_USAGE, "%s is no address and port, such as 127.0.0.1:9764 or [::1]:9764.",
				    optarg);
		if (option == 'h' && count == HOSTS_MAX)
			return fail(STATUS_USAGE, "--host can be given at most %d times.", HOSTS_MAX);
		if (option == 'h')
			hosts[count++] = optarg;
		if (option == 'a')
			anywhere = true;
		if (option == '?')
			return fail(STATUS_USAGE, "%s", usage);
	}
	if (!address.len || optind < argc)
		return fail(STATUS_USAGE, "%s", usage);
	if (!address.loopback && !anywhere)
		return fail(STATUS_USAGE, "other hosts could connect to %s: say --anywhere if that is meant.",
			    address.text);
	conf.address = address.text;
	conf.any_address = address.any;
	conf.loopback = address.loopback || address.any;
	return serve(&address, &conf);
}
