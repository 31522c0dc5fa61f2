/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* lockbroker-http serves /metrics and /healthz, and the page: a client of the daemon, in a process of its own. */
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
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client-lib/cli/process_one.h"
#include "client-lib/http/metrics.h"
#include "client-lib/http/page.h"
#include "client-lib/socket_path.h"

/* As those of the lockbroker command. */
enum { STATUS_USAGE = 64, STATUS_OSERR = 71 };
enum { HOSTS_MAX = 16 };

static const char page_default[] = "127.0.0.1:9765";

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
	int len; /* 0: none was given */
	char text[INET6_ADDRSTRLEN];
	unsigned int port;
	const char *path; /* of a Unix socket; NULL: it is none */
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
		a->port = ntohs(v4->sin_port);
		a->loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
		a->any = v4->sin_addr.s_addr == htonl(INADDR_ANY);
	} else {
		if (text[0] != '[') /* the last part of an address is no port */
			return false;
		inet_ntop(AF_INET6, &v6->sin6_addr, a->text, sizeof(a->text));
		a->port = ntohs(v6->sin6_port);
		a->loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
		a->any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
	}
	return true;
}

/* Where the page is served: of a Unix socket "unix:PATH". */
static bool read_page_address(const char *text, struct address *a)
{
	struct sockaddr_un *un = (void *)&a->sa;

	if (strncmp(text, "unix:", 5) != 0)
		return read_address(text, a);
	a->path = text + 5;
	if (!*a->path || strlen(a->path) >= sizeof(un->sun_path))
		return false;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, a->path, strlen(a->path) + 1);
	a->len = sizeof(*un);
	a->loopback = true;
	return true;
}

/* A socket there to which nobody listens any longer is in nobody's use. */
static void remove_stale(const struct address *a)
{
	struct stat st;
	int fd;

	if (lstat(a->path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)&a->sa, (socklen_t)a->len) < 0 && errno == ECONNREFUSED)
		unlink(a->path);
	close(fd);
}

/* The socket, or -errno. */
static int listen_on(const struct address *a)
{
	int one = 1, fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (a->path)
		remove_stale(a);
	/* A Unix socket is for its owner and the group: who may connect, may read. */
	umask(0117);
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

/* What was asked for. */
struct serving {
	struct address metrics, page;
	struct visitors_conf metrics_conf, page_conf;
	const char *socket; /* of the daemon */
};

static void say_page(const struct address *a, int fd)
{
	const char *bracket = a->sa.ss_family == AF_INET6 ? "[" : "";

	if (a->path)
		printf("lockbroker http: serves the page on unix:%s\n", a->path);
	else
		printf("lockbroker http: serves the page on http://%s%s%s:%u/\n", bracket, a->text, *bracket ? "]" : "",
		       port_of(fd));
}

/* The socket; negative: it was said that it cannot be. */
static int listen_or_say(const struct address *a)
{
	int fd = listen_on(a);

	if (fd < 0 && a->path)
		fail(STATUS_OSERR, "cannot listen on %s: %s.", a->path, strerror(-fd));
	if (fd < 0 && !a->path)
		fail(STATUS_OSERR, "cannot listen on %s, port %u: %s.", a->text, a->port, strerror(-fd));
	return fd;
}

static void take_address(struct visitors_conf *conf, const struct address *a)
{
	conf->address = a->path ? NULL : a->text;
	conf->any_address = a->any;
	conf->loopback = a->loopback || a->any;
}

static int serve(struct serving *s)
{
	struct event_base *base;
	int metrics = -1, page = -1;

	if (s->metrics.len && (metrics = listen_or_say(&s->metrics)) < 0)
		return STATUS_OSERR;
	if (s->page.len && (page = listen_or_say(&s->page)) < 0)
		return STATUS_OSERR;
	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	if (!base)
		return fail(STATUS_OSERR, "libevent cannot be used here.");
	if (metrics >= 0) {
		take_address(&s->metrics_conf, &s->metrics);
		metrics_new(base, metrics, s->socket, &s->metrics_conf);
		printf("lockbroker http: serves /metrics and /healthz on %s port %u\n", s->metrics.text,
		       port_of(metrics));
	}
	if (page >= 0) {
		take_address(&s->page_conf, &s->page);
		page_new(base, page, s->socket, &s->page_conf);
		say_page(&s->page, page);
	}
	fflush(stdout);
	event_base_dispatch(base);
	return fail(STATUS_OSERR, "the loop has ended.");
}

static int check(const struct serving *s, bool anywhere)
{
	if (s->metrics.len && !s->metrics.loopback && !anywhere)
		return fail(STATUS_USAGE, "other hosts could connect to %s: say --anywhere if that is meant.",
			    s->metrics.text);
	if (s->page.len && !s->page.loopback)
		return fail(STATUS_USAGE,
			    "other hosts could connect to %s, and the page has no login: serve it on "
			    "127.0.0.1 or a Unix socket, and put a proxy with a login before it.",
			    s->page.text);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "listen", required_argument, NULL, 'l' },
						 { "page", optional_argument, NULL, 'p' },
						 { "host", required_argument, NULL, 'h' },
						 { "anywhere", no_argument, NULL, 'a' },
						 { 0 } };
	static const char usage[] =
		"it needs --listen ADDRESS:PORT or --page[=ADDRESS:PORT], and takes --host NAME and "
		"--anywhere. Try `lockbroker http --help`.";
	const char *hosts[HOSTS_MAX + 1] = { NULL }, *wanted;
	struct serving s = { .socket = getenv("LOCKBROKER_SOCKET") };
	bool anywhere = false;
	size_t count = 0;
	int option;

	process_one_ends_by_signals();
	s.metrics_conf.hosts = s.page_conf.hosts = hosts;
	if (!s.socket || !*s.socket)
		s.socket = SOCKET_PATH_DEFAULT;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 'l' && !read_address(optarg, &s.metrics))
			return fail(STATUS_USAGE, "%s is no address and port, such as 127.0.0.1:9764 or [::1]:9764.",
				    optarg);
		wanted = optarg ? optarg : page_default;
		if (option == 'p' && !read_page_address(wanted, &s.page))
			return fail(STATUS_USAGE,
				    "%s is no address and port, such as 127.0.0.1:9765, and no unix:PATH.", wanted);
		if (option == 'h' && count == HOSTS_MAX)
			return fail(STATUS_USAGE, "--host can be given at most %d times.", HOSTS_MAX);
		if (option == 'h')
			hosts[count++] = optarg;
		if (option == 'a')
			anywhere = true;
		if (option == '?')
			return fail(STATUS_USAGE, "%s", usage);
	}
	if ((!s.metrics.len && !s.page.len) || optind < argc)
		return fail(STATUS_USAGE, "%s", usage);
	option = check(&s, anywhere);
	return option ? option : serve(&s);
}
