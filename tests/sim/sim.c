/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator. sim --seeds N [--first S] runs N worlds; sim --seed S replays one, with the last lines of what
 * happened when it fails, and all of them with --trace. Exit status 1 when an invariant was broken.
 */
#include "world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* For the signal handler alone: which world was running when the core gave up. */
static struct world *volatile running;

enum { HANGS_AFTER = 20 /* seconds of the processor for one seed: on a busy machine each takes longer */ };

static void put(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

static void crashed(int signal)
{
	char line[80], *at = line + sizeof(line) - 1;
	uint64_t seed = running ? running->seed : 0;

	*at = '\0';
	do
		*--at = (char)('0' + seed % 10);
	while (seed /= 10);
	put(signal == SIGPROF ? "\nthe core does not come back" : "\nthe core gave up (an assertion or a crash)");
	put(": replay with make sim SEED=");
	put(at);
	put(" MIX='");
	put(running ? running->mix->name : "");
	put("'\n");
	if (running && running->tracing)
		trace_print(running, -1);
	_exit(1);
}

struct options {
	uint64_t seeds, first, seed;
	double seconds;     /* 0: no limit */
	const char *mix;    /* NULL: the seed chooses */
	bool trace, keep_going;
	const char *record;
};

/* Runs one seed; false: it failed. */
static bool run_seed(const struct options *o, uint64_t seed, struct tally *stats, struct trace *trace)
{
	struct world *w = calloc(1, sizeof(*w));
	int lock;

	if (!w)
		abort();
	running = w;
	w->trace = trace;
	w->tracing = trace != NULL;
	w->trace_all = o->trace;
	world_init(w, seed, o->mix, stats);
	lock = setjmp(w->failed);
	if (lock == 0) {
		world_run(w);
	} else if (trace) {
		if (!o->trace)
			trace_print(w, lock - 2);
		printf("\nseed %" PRIu64 " (%s; %d hosts, T %" PRId64 " ms, tick %" PRId64 " ms) failed at %.3f ms, "
		       "step %" PRIu64 ":\n  %s\nreplay: make sim SEED=%" PRIu64 " MIX='%s'    (all of it: TRACE=1)\n",
		       seed, w->mix->name, w->host_count, w->timeout / MS, w->tick / MS, (double)w->sched.now / 1e6,
		       w->sched.steps, w->failure, seed, w->mix->name);
	}
	world_deinit(w);
	running = NULL;
	free(w);
	return lock == 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void summary(const struct tally *s, double took)
{
	static const char *const names[] = {
#define X(name) #name,
		FAULTS(X)
#undef X
	};
	int i;

	printf("%" PRIu64 " seeds, %" PRIu64 " steps in %.1f s (%.0f steps/s): %" PRIu64 " requests, %" PRIu64 " grants, %"
	       PRIu64 " hand-offs, %" PRIu64 " re-entries, %" PRIu64 " losses, %" PRIu64 " sessions expired, %" PRIu64
	       " foreign grants, %" PRIu64 " acts of operators, %" PRIu64 " times taken by force, %" PRIu64
	       " by deleting\nfaults:", s->seeds, s->steps, took, (double)s->steps / took,
	       s->requests, s->grants, s->handoffs, s->reentries, s->losses, s->expiries, s->foreign_grants, s->operations,
	       s->forced, s->force_deleted);
	for (i = 0; i < FAULT_COUNT; i++)
		printf(" %s %" PRIu64, names[i], s->faults[i]);
	printf("; hand-overs %" PRIu64 ", kills %" PRIu64, s->snapshots, s->kills);
	if (s->restores)
		printf(", restores %" PRIu64, s->restores);
	if (s->delegated || s->left)
		printf("; delegated %" PRIu64 ", taken again %" PRIu64 " (shared %" PRIu64 "), left %" PRIu64 ", seen held %" PRIu64,
		       s->delegated, s->taken, s->read_again, s->left, s->looked);
	printf("\nqueued: %" PRIu64 " waits, %" PRIu64 " granted, %" PRIu64 " cancelled, %" PRIu64 " timed out, %" PRIu64
	       " failed, %" PRIu64 " told that it is held; leases: %" PRIu64 " ran out, %" PRIu64 " renewed; deadlocks: %" PRIu64
	       "; MLOCKs: %" PRIu64 " and MUNLOCKs, %" PRIu64 " granted; %" PRIu64 " waits in the log",
	       s->queued, s->queued_grants, s->cancels, s->timeouts, s->failures, s->held_told, s->leases_ended, s->renewals,
	       s->deadlocks, s->several, s->several_granted, s->long_waits);
	printf("\nclosest: a session expired %" PRId64 "/1000 of T after safe_until; most: %" PRId64
	       " hand-offs on one znode; %" PRIu64 " followed without a gap; %" PRIu64
	       " joined readers; %" PRIu64 " holders looked for in lists of all hosts\n", s->margin_permille, s->counter_max,
	       s->followed, s->joined, s->scans);
}

static int replay(const struct options *o, uint64_t seed)
{
	struct trace *trace = trace_new();
	struct tally stats = { .margin_permille = 1000, .snapshot_file = o->record };
	bool ok;

	if (!trace)
		return 1;
	ok = run_seed(o, seed, &stats, trace);
	if (ok)
		printf("seed %" PRIu64 " passes: %" PRIu64 " steps, %" PRIu64 " grants\n", seed, stats.steps, stats.grants);
	free(trace);
	return ok ? 0 : 1;
}

/* SIGPROF comes after that; 0: it does not. */
static void patience(int seconds_used)
{
	setitimer(ITIMER_PROF, &(struct itimerval){ .it_value.tv_sec = seconds_used }, NULL);
}

static int run_many(const struct options *o)
{
	struct tally stats = { .margin_permille = 1000, .snapshot_file = o->record };
	double began = seconds();
	uint64_t seed, failed = 0;

	for (seed = o->first; seed < o->first + o->seeds; seed++) {
		if (o->seconds > 0 && seconds() - began > o->seconds)
			break;
		patience(HANGS_AFTER);
		if (run_seed(o, seed, &stats, NULL))
			continue;
		failed++;
		replay(o, seed);
		fflush(stdout);
		if (!o->keep_going)
			break;
	}
	patience(0);
	summary(&stats, seconds() - began);
	if (failed)
		printf("%" PRIu64 " failed\n", failed);
	return failed ? 1 : 0;
}

static bool options_parse(struct options *o, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(word, "--mixes") == 0 || strcmp(word, "--other-mixes") == 0) {
			world_mixes(word[2] == 'o');
			exit(0);
		}
		if (strcmp(word, "--trace") == 0 || strcmp(word, "--keep-going") == 0) {
			*(word[2] == 't' ? &o->trace : &o->keep_going) = true;
			continue;
		}
		if (!value)
			return false;
		i++;
		if (strcmp(word, "--seeds") == 0)
			o->seeds = strtoull(value, NULL, 10);
		else if (strcmp(word, "--first") == 0)
			o->first = strtoull(value, NULL, 10);
		else if (strcmp(word, "--seed") == 0)
			o->seed = strtoull(value, NULL, 10);
		else if (strcmp(word, "--seconds") == 0)
			o->seconds = strtod(value, NULL);
		else if (strcmp(word, "--record") == 0)
			o->record = value;
		else if (strcmp(word, "--mix") == 0 && world_has_mix(value))
			o->mix = value;
		else
			return false;
	}
	return o->seeds > 0;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF };
	struct options o = { .seeds = 300, .first = 1 };
	size_t i;

	if (!options_parse(&o, argc, argv)) {
		fprintf(stderr, "usage: sim [--seeds N] [--first S] [--seconds S] [--mix NAME] [--keep-going] [--record SNAPSHOT]\n"
			"       sim --seed S [--mix NAME] [--trace]\n       sim --mixes|--other-mixes\n");
		return 2;
	}
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], crashed);
	return o.seed ? replay(&o, o.seed) : run_many(&o);
}
