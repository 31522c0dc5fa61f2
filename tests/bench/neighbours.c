/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-neighbours SOCKET ATTACK PROCESSES CONNECTIONS SECONDS users|app|units [busy]: what an attack costs other accounts.
 *
 * PROCESSES do the attack (attacks.c) with CONNECTIONS all together, until the end. A bystander holds one lock all the time,
 * takes and releases another one once in a millisecond, and now and then takes many with a long MLOCK. They are two users,
 * or one (app), or root in the two units whose cgroups NEIGHBOURS_ATTACKER and NEIGHBOURS_BYSTANDER name. The attack "spin"
 * never asks the daemon for anything: it is what all others are compared with. NEIGHBOURS_APART names the socket of another
 * daemon, which only the bystander asks: what it waits there only the kernel costs it. Has to be run by root. Prints one
 * line of JSON: the bystander's pairs and how long they took, what it was refused or lost, what the attackers did, and the
 * first sentence that refused one of them. Where all are one user (app), a request of the bystander for which there is no
 * room may end its connection; it asks for nothing more then.
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "asker.h"
#include "attacks.h"
#include "histogram.h"

enum who { USERS, APP, UNITS };
enum {
	ATTACKER = 64001,
	BYSTANDER = 64002,
	PROCESSES_MAX = 200,
	MLOCK_EVERY = 64, /* pairs */
	MLOCK_NAMES = 60, /* of MANY_BYTES: a request that is long */
	MANY_BYTES = 205,
	EVERY_NS = 1000000,
	READY_SECONDS = 60,
};

static bool find_who(const char *word, enum who *ret)
{
	static const char *const words[] = { [USERS] = "users", [APP] = "app", [UNITS] = "units" };

	for (*ret = USERS; *ret <= UNITS; ++*ret)
		if (strcmp(word, words[*ret]) == 0)
			return true;
	return false;
}

static void enter_unit(const char *variable)
{
	const char *cgroup = getenv(variable);
	char file[4096];
	FILE *f;

	snprintf(file, sizeof(file), "%s/cgroup.procs", cgroup ? cgroup : "");
	f = fopen(file, "w");
	if (!f || fprintf(f, "0\n") < 0 || fclose(f) != 0)
		fail(file);
}

/* Whose the connections of this process are from now on. */
static void become(enum who who, bool attacks)
{
	uid_t uid = attacks || who == APP ? ATTACKER : BYSTANDER;

	if (who == UNITS)
		enter_unit(attacks ? "NEIGHBOURS_ATTACKER" : "NEIGHBOURS_BYSTANDER");
	else if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
		fail("setuid");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

struct outcome {
	struct histogram times;
	long pairs, refused, lost;
};

static struct outcome outcome;
static struct link bystander;
static bool its_own; /* the attackers are the bystander's own user */
static bool ended;   /* and have cost it its connection */
static char kept;    /* the answer to the request for the lock that it holds all the time */

static void want(char got, char wanted)
{
	if (got == wanted || ended)
		return;
	outcome.refused++;
	fprintf(stderr, "bench-neighbours: the bystander was told: %s\n",
		got ? reply_line : "(the connection is over)");
	ended = !got;
	if (ended && !its_own)
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

static void wait_until(int64_t due_ns)
{
	const struct timespec due = { due_ns / 1000000000, due_ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) /* a pace */
		;
}

/*
 * It asks once in EVERY_NS, and counts from when it wanted to: what it waits for the processor is what others cost it, too.
 * `busy`: without a pause, and from when it did ask. Then each wait for the processor is one of the pairs, and they are
 * the rarer the faster the others are: a spin looks better than it is.
 */
static void take_pairs(double seconds, bool busy)
{
	int64_t due_ns = now_ns(), end_ns = due_ns + (int64_t)(seconds * 1e9), begun_ns;

	while ((begun_ns = now_ns()) < end_ns && !ended) {
		if (!busy) {
			begun_ns = due_ns = begun_ns > due_ns + EVERY_NS ? begun_ns : due_ns + EVERY_NS;
			wait_until(due_ns);
		}
		want(ASK(&bystander, "LOCK", "pair"), ':');
		want(ASK(&bystander, "UNLOCK", "pair"), ':');
		histogram_add(&outcome.times, now_ns() - begun_ns);
		if (++outcome.pairs % MLOCK_EVERY == 1)
			take_many();
	}
}

static void hold_one(void)
{
	const char *apart = getenv("NEIGHBOURS_APART");

	if (apart)
		path = apart;
	if ((bystander.fd = open_fd()) < 0)
		fail(path);
	kept = ASK(&bystander, "LOCK", "kept");
	want(kept, ':');
}

static void check_held(void)
{
	if (kept == ':' && !ended && (ASK(&bystander, "VALID", "kept") != ':' || strcmp(reply_line, ":0") == 0))
		outcome.lost++;
}

static void tell(void)
{
	printf("{\"pairs\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"longest_us\": %.1f, \"refused\": %ld, \"lost\": %ld, "
	       "\"attackers_asked\": %ld, \"attackers_refused\": %ld, \"attackers_connected\": %ld, \"sentence\": \"",
	       outcome.pairs, histogram_percentile_ns(&outcome.times, 0.5) / 1e3,
	       histogram_percentile_ns(&outcome.times, 0.99) / 1e3, (double)outcome.times.longest_ns / 1e3,
	       outcome.refused, outcome.lost, atomic_load(&shared->asked), atomic_load(&shared->refused),
	       atomic_load(&shared->connected));
	for (const char *at = shared->sentence; *at; at++)
		if (*at >= ' ' && *at != '"' && *at != '\\')
			putchar(*at);
	printf("\"}\n");
}

int main(int argc, char **argv)
{
	pid_t pids[PROCESSES_MAX];
	void (*attack)(void);
	enum who who;

	if (argc < 7 || argc > 8 || !find_who(argv[6], &who)) {
		fprintf(stderr,
			"usage: bench-neighbours SOCKET ATTACK PROCESSES CONNECTIONS SECONDS users|app|units [busy]\n");
		return 2;
	}
	path = argv[1];
	its_own = who == APP;
	attack = attack_find(argv[2]);
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
			become(who, true);
			attack();
		}
	}
	/* The attackers' ends are this process's: it is somebody else in another one. */
	pid_t pid = fork();

	if (pid == 0) {
		int64_t until_ns = now_ns() + (int64_t)READY_SECONDS * 1000000000;

		setsid();
		become(who, false);
		hold_one();
		while (atomic_load(&shared->ready) < processes && now_ns() < until_ns)
			usleep(1000); /* another process says so in shared memory, which wakes nobody */
		atomic_store(&shared->asked, 0);
		take_pairs(atof(argv[5]), argc > 7);
		check_held();
		tell();
		exit(outcome.pairs || ended ? 0 : 1);
	}
	int status = 1;

	waitpid(pid, &status, 0);
	for (int i = 0; i < processes; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
