/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-taken: see `usage`. Prints one line of JSON: the times until the second process has the lock.
 *
 * The first process has the lock again and again, as often as the daemon wants before it delegates it, so that it keeps
 * the lock at the end of this, if it may. Then it waits, not holding it, for the second one to ask; or it holds it until
 * that one has asked, and lets go: that time begins with its unlock.
 */
#include <getopt.h>
#include <inttypes.h>
#include <lockbroker.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "histogram.h"

enum { PAIRS = 100, PAUSE_US = 100, QUEUED_US = 1000, LOST_AFTER_S = 60 };

static const char usage[] = "usage: bench-taken --target SOCKET [--rounds N] [--delegation] [--held]\n"
			    "--delegation: the first process may keep the lock. --held: it holds it, and lets go.\n";

struct options {
	const char *target;
	int rounds;
	bool delegation, held;
};

/* Whose turn it is. */
enum turn { TURN_FIRST, TURN_SECOND, TURN_ASKING };

struct shared {
	_Atomic int turn;
	_Atomic int64_t released_ns;
	struct histogram times;
};

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL); /* a pace */
}

static void wait_for(struct shared *s, enum turn turn)
{
	while (atomic_load(&s->turn) != (int)turn)
		pause_us(PAUSE_US);
}

static void must(struct lb *lb, enum lb_result r)
{
	if (r == LB_OK)
		return;
	fprintf(stderr, "bench-taken: %s\n", lb_error(lb));
	exit(1);
}

static struct lb *opened(const struct options *o, bool delegation)
{
	struct lb *lb;
	enum lb_result r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LOST_AFTER_S);
	r = lb_open(o->target, &lb);
	must(lb, r);
	lb_set_delegation(lb, delegation);
	return lb;
}

static int first(const struct options *o, struct shared *s)
{
	struct lb *lb = opened(o, o->delegation);

	for (int round = 0; round < o->rounds; round++) {
		wait_for(s, TURN_FIRST);
		for (int i = 0; i < PAIRS; i++) {
			must(lb, lb_lock(lb, "bench-taken", NULL));
			must(lb, lb_unlock(lb, "bench-taken"));
		}
		if (o->held)
			must(lb, lb_lock(lb, "bench-taken", NULL));
		atomic_store(&s->turn, TURN_SECOND);
		if (o->held) {
			wait_for(s, TURN_ASKING);
			pause_us(QUEUED_US); /* so that it waits there */
			atomic_store(&s->released_ns, now_ns());
			must(lb, lb_unlock(lb, "bench-taken"));
		}
	}
	lb_close(lb);
	return 0;
}

static int second(const struct options *o, struct shared *s)
{
	struct lb *lb = opened(o, false);
	int64_t asked_ns, got_ns;

	for (int round = 0; round < o->rounds; round++) {
		wait_for(s, TURN_SECOND);
		atomic_store(&s->turn, TURN_ASKING);
		asked_ns = now_ns();
		must(lb, lb_lock(lb, "bench-taken", NULL));
		got_ns = now_ns();
		histogram_add(&s->times, got_ns - (o->held ? atomic_load(&s->released_ns) : asked_ns));
		must(lb, lb_unlock(lb, "bench-taken"));
		atomic_store(&s->turn, TURN_FIRST);
	}
	lb_close(lb);
	return 0;
}

static int run(const struct options *o, struct shared *s)
{
	int (*const sides[])(const struct options *o, struct shared *s) = { first, second };
	int status, failed = 0;

	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("bench-taken: fork");
			return 1;
		}
		if (pid == 0)
			_exit(sides[i](o, s));
	}
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}

static const struct option words[] = {
	{ "target", required_argument, NULL, 't' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "delegation", no_argument, NULL, 'd' },
	{ "held", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
	struct options o = { .rounds = 100 };
	struct shared *s;
	int which;

	while ((which = getopt_long(argc, argv, "", words, NULL)) != -1) {
		if (which == 't')
			o.target = optarg;
		else if (which == 'r')
			o.rounds = atoi(optarg);
		else if (which == 'd')
			o.delegation = true;
		else if (which == 'h')
			o.held = true;
		else
			o.target = NULL;
	}
	if (!o.target || optind != argc || o.rounds < 1) {
		fputs(usage, stderr);
		return 64;
	}
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED) {
		perror("bench-taken: mmap");
		return 1;
	}
	if (run(&o, s))
		return 1;
	printf("{\"rounds\": %" PRIu64 ", \"p50_us\": %.2f, \"p99_us\": %.2f}\n", s->times.total,
	       histogram_percentile_ns(&s->times, 0.5) / 1e3, histogram_percentile_ns(&s->times, 0.99) / 1e3);
	return 0;
}
