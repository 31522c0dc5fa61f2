/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-neighbours SOCKET ATTACK PROCESSES CONNECTIONS SECONDS: what one user's attack costs another user.
 *
 * PROCESSES of one user (uid ATTACKER) do the attack with CONNECTIONS all together, until the end. A bystander (uid
 * BYSTANDER) holds one lock all the time, takes and releases another one again and again, and now and then takes many
 * with a long MLOCK. The attack "spin" never asks the daemon for anything: it is what all others are compared with. Has to
 * be run by root. Prints one line of JSON: the bystander's pairs and how long they took, what it was refused or lost, what
 * the attackers did, and the first sentence that refused one of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

enum {
	ATTACKER = 64001,
	BYSTANDER = 64002,
	PROCESSES_MAX = 200,
	IN_BYTES = 1 << 16,
	NAMES_HELD = 200,     /* of ever-new ones, at a time */
	LOCKS_SHOWN = 8000,   /* held while others list them */
	MLOCK_EVERY = 64,     /* pairs */
	MLOCK_NAMES = 60,     /* of MANY_BYTES: a request that is long */
	MANY_BYTES = 205,
	QUEUED_MAX = 2500,    /* a longer queue cannot be shown */
	READY_SECONDS = 60,
};

struct shared {
	atomic_long asked, refused, connected, ready;
	atomic_int told;
	char sentence[512];
};

struct link {
	int fd;
	size_t len, used;
	char in[IN_BYTES];
};

static struct shared *shared;
static const char *path;
static int number, processes, connections;
static struct link main_link;
static char reply_line[IN_BYTES];

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "bench-neighbours: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_fd(void)
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

static bool send_all(int fd, const char *data, size_t len)
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

/* Words up to NULL, as one request. */
static size_t put(char *out, const char *word, ...)
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

static void note_refusal(void)
{
	int before = 0;

	atomic_fetch_add(&shared->refused, 1);
	if (atomic_compare_exchange_strong(&shared->told, &before, 1))
		snprintf(shared->sentence, sizeof(shared->sentence), "%.500s", reply_line);
}

/* Asks, and waits for the answer. Its first character; 0: the connection is over. */
static char ask(struct link *l, const char *text, size_t len)
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

#define ASK(l, ...) (ask((l), request, put(request, __VA_ARGS__, NULL)))
static char request[1 << 17];

/* ---- the attacker ---- */

static void ready(void)
{
	atomic_fetch_add(&shared->ready, 1);
}

static void __attribute__((noreturn)) stay(void)
{
	for (;;)
		pause();
}

/* A connection that goes on after it was refused is none: it says so and tries again a little later. */
static void connect_main(void)
{
	main_link.used = main_link.len = 0;
	while ((main_link.fd = open_fd()) < 0)
		usleep(1000);
	atomic_fetch_add(&shared->connected, 1);
}

static void reconnect(void)
{
	close(main_link.fd);
	usleep(1000);
	connect_main();
}

/* This process's share of all connections. `fds` is the caller's. Those that are refused say why at once. */
static int open_all(int **ret)
{
	int count = connections / processes, opened = 0;
	int *fds = malloc(sizeof(*fds) * (size_t)(count + 1));

	for (int i = 0; i < count; i++) {
		int fd = open_fd();

		if (fd < 0)
			break;
		fds[opened++] = fd;
		atomic_fetch_add(&shared->connected, 1);
	}
	*ret = fds;
	return opened;
}

/* Takes what there is to read from all of them, and notes refusals. */
static void drain(const int *fds, int count)
{
	char text[4096];

	for (int i = 0; i < count; i++) {
		ssize_t got = recv(fds[i], text, sizeof(text) - 1, MSG_DONTWAIT);

		if (got <= 0 || text[0] != '-')
			continue;
		text[got] = '\0';
		snprintf(reply_line, sizeof(reply_line), "%.*s", (int)strcspn(text, "\r"), text);
		note_refusal();
	}
}

static void attack_spin(void)
{
	volatile unsigned long n = 0;

	ready();
	for (;;)
		n++;
}

static void attack_idle(void)
{
	int *fds, count = open_all(&fds);

	usleep(100000);
	drain(fds, count);
	ready();
	stay();
}

static void attack_unfinished(void)
{
	int *fds, count = open_all(&fds);
	size_t len = (size_t)sprintf(request, "*2\r\n$4\r\nECHO\r\n$60000\r\n");

	memset(request + len, 'x', 50000);
	for (int i = 0; i < count; i++)
		send(fds[i], request, len + 50000, MSG_NOSIGNAL | MSG_DONTWAIT);
	usleep(100000);
	drain(fds, count);
	ready();
	for (;;) {
		drain(fds, count);
		usleep(10000);
	}
}

/* Names of 512 bytes, granted one after the other; nobody reads what is told of it. */
static void attack_unread(void)
{
	int *fds, count = open_all(&fds);
	char name[600];

	ready();
	for (unsigned long turn = 0;; turn++) {
		for (int i = 0; i < count; i++) {
			size_t len;

			snprintf(name, sizeof(name), "%d/%d/%lu/%0480d", number, i, turn, 0);
			len = put(request, "ENQUEUE", name, NULL);
			if (send(fds[i], request, len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
				atomic_fetch_add(&shared->asked, 1);
		}
		if (turn > 2000)
			usleep(10000);
	}
}

static void attack_held(void)
{
	char name[32];

	connect_main();
	ready();
	for (unsigned long i = 0;; i++) {
		snprintf(name, sizeof(name), "h%d/%lu", number, i);
		if (!ASK(&main_link, "LOCK", name))
			reconnect();
	}
}

static void attack_names(void)
{
	char name[64];

	connect_main();
	ready();
	for (unsigned long i = 0;; i++) {
		snprintf(name, sizeof(name), "n%d/%lu", number, i);
		if (!ASK(&main_link, "LOCK", name)) {
			reconnect();
			continue;
		}
		if (i >= NAMES_HELD / (unsigned long)processes) {
			snprintf(name, sizeof(name), "n%d/%lu", number, i - NAMES_HELD / (unsigned long)processes);
			ASK(&main_link, "UNLOCK", name);
		}
	}
}

static void __attribute__((noreturn)) take_all(const int *fds, int count)
{
	struct epoll_event events[64];
	int set = epoll_create1(EPOLL_CLOEXEC);

	for (int i = 0; i < count; i++)
		epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){ .events = EPOLLIN, .data.fd = fds[i] });
	for (;;) {
		int n = epoll_wait(set, events, 64, -1);

		for (int i = 0; i < n; i++)
			if (recv(events[i].data.fd, request, sizeof(request), MSG_DONTWAIT) == 0)
				epoll_ctl(set, EPOLL_CTL_DEL, events[i].data.fd, NULL);
	}
}

static void attack_observers(void)
{
	int *fds, count;

	if (number == 0) {
		connect_main();
		ready();
		for (;;)
			if (!ASK(&main_link, "CAMPAIGN", "e", "DATA", "me") || !ASK(&main_link, "RESIGN", "e"))
				reconnect();
	}
	count = open_all(&fds);
	for (int i = 0; i < count; i++) {
		size_t len = put(request, "HELLO", "3", NULL);

		len += put(request + len, "OBSERVE", "e", NULL);
		send_all(fds[i], request, len);
	}
	ready();
	take_all(fds, count);
}

/* The first process has many locks, and all show them. */
static void hold_many(int count)
{
	char name[64];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "shown/%08d/of-many", (i * 7919) % count);
		if (ASK(&main_link, "LOCK", name) != ':')
			break;
	}
}

static void attack_locks(void)
{
	connect_main();
	if (number == 0)
		hold_many(LOCKS_SHOWN);
	ready();
	for (;;)
		if (!ASK(&main_link, "LOCKS"))
			reconnect();
}

static void attack_clients(void)
{
	int *fds;

	open_all(&fds);
	connect_main();
	ready();
	for (;;)
		if (!ASK(&main_link, "CLIENT", "LIST"))
			reconnect();
}

static void attack_queue(void)
{
	int *fds, count;

	connect_main();
	if (number == 0)
		ASK(&main_link, "LOCK", "long");
	connections = connections < QUEUED_MAX ? connections : QUEUED_MAX;
	count = open_all(&fds);
	for (int i = 0; i < count; i++)
		send_all(fds[i], request, put(request, "ENQUEUE", "long", NULL));
	ready();
	for (;;)
		if (!ASK(&main_link, "QUEUE", "long") || !ASK(&main_link, "WHY", "long"))
			reconnect();
}

/* All connections share one lock and wait for another one; who wants the first one waits for all of them. */
static void attack_deadlock(void)
{
	int *fds, count;
	char name[32];

	connect_main();
	snprintf(name, sizeof(name), "own/%d", number);
	ASK(&main_link, "LOCK", name);
	count = open_all(&fds);
	for (int i = 0; i < count; i++) {
		size_t len = put(request, "LOCK", "shared", "SHARED", NULL);

		len += put(request + len, "LOCK", "own/0", "WAIT", "100000", NULL);
		send_all(fds[i], request, len);
	}
	ready();
	for (;;)
		if (!ASK(&main_link, "LOCK", "shared", "WAIT", "1")) {
			reconnect();
			ASK(&main_link, "LOCK", name);
		}
}

static const struct {
	const char *name;
	void (*run)(void);
} attacks[] = {
	{ "spin", attack_spin },       { "idle", attack_idle },           { "unfinished", attack_unfinished },
	{ "unread", attack_unread },   { "held", attack_held },           { "names", attack_names },
	{ "observers", attack_observers }, { "locks", attack_locks },     { "queue", attack_queue },
	{ "clients", attack_clients }, { "deadlock", attack_deadlock },
};

static void (*find_attack(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		if (strcmp(attacks[i].name, name) == 0)
			return attacks[i].run;
	fprintf(stderr, "bench-neighbours: no such attack: %s\n", name);
	exit(2);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
		fail("setuid");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- the bystander ---- */

struct outcome {
	struct histogram times;
	long pairs, refused, lost;
};

static struct outcome outcome;
static struct link bystander;

static void want(char got, char wanted)
{
	if (got == wanted)
		return;
	outcome.refused++;
	fprintf(stderr, "bench-neighbours: the bystander was told: %s\n", got ? reply_line : "(the connection is over)");
	if (!got)
		exit(1);
}

static void take_many(void)
{
	size_t len = (size_t)sprintf(request, "*%d\r\n$5\r\nMLOCK\r\n$2\r\n%02d\r\n", 2 + MLOCK_NAMES, MLOCK_NAMES);

	for (int i = 0; i < MLOCK_NAMES; i++)
		len += (size_t)sprintf(request + len, "$%d\r\nmany/%0200d\r\n", MANY_BYTES, i);
	want(ask(&bystander, request, len), '*');
	len = (size_t)sprintf(request, "*%d\r\n$7\r\nMUNLOCK\r\n$2\r\n%02d\r\n", 2 + MLOCK_NAMES, MLOCK_NAMES);
	for (int i = 0; i < MLOCK_NAMES; i++)
		len += (size_t)sprintf(request + len, "$%d\r\nmany/%0200d\r\n", MANY_BYTES, i);
	want(ask(&bystander, request, len), '*');
}

static void take_pairs(double seconds)
{
	int64_t end_ns = now_ns() + (int64_t)(seconds * 1e9), begun_ns;

	while ((begun_ns = now_ns()) < end_ns) {
		want(ASK(&bystander, "LOCK", "pair"), ':');
		want(ASK(&bystander, "UNLOCK", "pair"), ':');
		histogram_add(&outcome.times, now_ns() - begun_ns);
		if (++outcome.pairs % MLOCK_EVERY == 1)
			take_many();
	}
}

static void hold_one(void)
{
	if ((bystander.fd = open_fd()) < 0)
		fail(path);
	want(ASK(&bystander, "LOCK", "kept"), ':');
}

static void check_held(void)
{
	if (ASK(&bystander, "VALID", "kept") != ':' || strcmp(reply_line, ":0") == 0)
		outcome.lost++;
}

static void tell(void)
{
	printf("{\"pairs\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"longest_us\": %.1f, \"refused\": %ld, \"lost\": %ld, "
	       "\"attackers_asked\": %ld, \"attackers_refused\": %ld, \"attackers_connected\": %ld, \"sentence\": \"",
	       outcome.pairs, histogram_percentile_ns(&outcome.times, 0.5) / 1e3,
	       histogram_percentile_ns(&outcome.times, 0.99) / 1e3, (double)outcome.times.longest_ns / 1e3, outcome.refused,
	       outcome.lost, atomic_load(&shared->asked), atomic_load(&shared->refused), atomic_load(&shared->connected));
	for (const char *at = shared->sentence; *at; at++)
		if (*at >= ' ' && *at != '"' && *at != '\\')
			putchar(*at);
	printf("\"}\n");
}

int main(int argc, char **argv)
{
	pid_t pids[PROCESSES_MAX];
	void (*attack)(void);

	if (argc != 6) {
		fprintf(stderr, "usage: bench-neighbours SOCKET ATTACK PROCESSES CONNECTIONS SECONDS\n");
		return 2;
	}
	path = argv[1];
	attack = find_attack(argv[2]);
	processes = atoi(argv[3]);
	connections = atoi(argv[4]);
	if (processes < 1 || processes > PROCESSES_MAX)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("mmap");
	/* They are one session, as a service or a login is, and the bystander is another one: the kernel's scheduler looks. */
	setsid();
	for (number = 0; number < processes; number++) {
		pids[number] = fork();
		if (pids[number] < 0)
			fail("fork");
		if (pids[number] == 0) {
			become(ATTACKER);
			attack();
		}
	}
	/* The attackers' ends are this process's: it is somebody else in another one. */
	pid_t pid = fork();

	if (pid == 0) {
		int64_t until_ns = now_ns() + (int64_t)READY_SECONDS * 1000000000;

		setsid();
		become(BYSTANDER);
		hold_one();
		while (atomic_load(&shared->ready) < processes && now_ns() < until_ns)
			usleep(1000);
		atomic_store(&shared->asked, 0);
		take_pairs(atof(argv[5]));
		check_held();
		tell();
		exit(outcome.pairs ? 0 : 1);
	}
	int status = 1;

	waitpid(pid, &status, 0);
	for (int i = 0; i < processes; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
