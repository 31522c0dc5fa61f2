/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-load: see `usage`. Prints one line of JSON: pairs of lock and unlock, the times from asking to having, and
 * what shared memory proves of the order. That every grant excluded all others is checked in every load of one lock,
 * best with --hold; its order only with --order, because that puts the asking itself into a row:
 *
 * A ticket is drawn and the request sent as one step, so that a smaller ticket was sent first. The holder then counts,
 * for everybody who still waits with a smaller ticket than his own, that he was overtaken. In the order of asking
 * nobody is, but for what the service's own host reads in one go; who polls is overtaken without bound.
 */
#include "load.h"

#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "histogram.h"

enum { TARGETS_MAX = 16, PROCESSES_MAX = 1024, LOST_AFTER_S = 60, BARE_PAIRS = 64, BARE_LOOK_NS = 50000 };

static const char usage[] =
	"usage: bench-load --peer WORD --target ADDRESS... [--processes N] [--seconds S] [--warm S] [--pause US]\n"
	"                  [--names own|one|new] [--hold US] [--order] [--shared] [--bare] [--prefix TEXT]\n"
	"Process i uses the target i modulo their number. --names: a lock each, one for all, or one never seen before for\n"
	"each pair. --warm: so long before it counts. --pause: between two pairs. --hold: while it is held.\n"
	"--order: see the source. --shared: all read, nobody writes. --bare: pairs only, no times: of what costs less than\n"
	"reading the clock; with a lock each, or --shared.\n";

static const struct peer *const peers[] = {
	&peer_null,      &peer_null_silent, &peer_lockbroker, &peer_library, &peer_redis, &peer_blpop,
	&peer_memcached, &peer_postgres,    &peer_flock,      &peer_mutex,   &peer_recipe, &peer_herd,
	&peer_create,    &peer_relay,       &peer_etcd,
};

enum names { NAMES_OWN, NAMES_ONE, NAMES_NEW };

struct options {
	const struct peer *peer;
	const char *targets[TARGETS_MAX];
	int target_count, processes, pause_us, hold_us;
	enum names names;
	double seconds, warm_s;
	bool order, shared, bare;
	const char *prefix;
};

struct result {
	uint64_t pairs;
	struct histogram waits; /* of each, unless they are bare */
	uint64_t overtaken_max;
	_Atomic uint64_t ticket;    /* 0: waits for nothing */
	_Atomic uint64_t overtaken; /* since it has that ticket; written by holders */
	bool failed;
};

struct shared {
	_Atomic int ready;
	_Atomic int64_t begin_ns, end_ns; /* 0: not yet */
	_Alignas(64) _Atomic int holder;  /* its number + 1; 0: nobody */
	int last_holder;
	int64_t released_ns; /* when the last holder began to let go */
	uint64_t overlaps;
	_Atomic int readers, readers_max; /* who have it at this moment; the most that had it at the same time */
	struct histogram hand_offs; /* from there to the next holder's having it, where that is another process */
	_Alignas(64) atomic_flag sending;
	uint64_t tickets;
	_Alignas(64) struct result results[];
};

static void pause_us(int us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000L };

	if (us > 0)
		nanosleep(&t, NULL); /* a pace */
}

void poll_pause(void)
{
	static unsigned seed;

	if (!seed)
		seed = (unsigned)getpid();
	pause_us(100 + rand_r(&seed) % 901);
}

/* ---- one process ---- */

struct worker {
	const struct options *o;
	struct shared *shared;
	struct result *result;
	void *session;
	int id;
	uint32_t count;
	struct lock_name name;
};

static void name_it(const struct options *o, int id, uint32_t n, struct lock_name *ret)
{
	switch (o->names) {
	case NAMES_OWN:
		ret->number = (uint32_t)id;
		snprintf(ret->text, sizeof(ret->text), "bench-%s-own-%d", o->prefix, id);
		break;
	case NAMES_ONE:
		ret->number = PROCESSES_MAX;
		snprintf(ret->text, sizeof(ret->text), "bench-%s-one", o->prefix);
		break;
	case NAMES_NEW:
		ret->number = n;
		snprintf(ret->text, sizeof(ret->text), "bench-%s-new-%d-%d-%u", o->prefix, (int)getppid(), id, n);
		break;
	}
}

static int ask_in_turn(struct worker *w)
{
	struct shared *s = w->shared;
	int r;

	while (atomic_flag_test_and_set(&s->sending))
		sched_yield();
	atomic_store(&w->result->overtaken, 0);
	atomic_store(&w->result->ticket, ++s->tickets);
	r = w->o->peer->ask(w->session, &w->name);
	atomic_flag_clear(&s->sending);
	return r;
}

static int acquire(struct worker *w)
{
	const struct peer *p = w->o->peer;

	if (w->o->shared)
		return p->lock_shared(w->session, &w->name);
	if (p->lock)
		return p->lock(w->session, &w->name);
	if (w->o->order ? ask_in_turn(w) : p->ask(w->session, &w->name))
		return -1;
	return p->granted(w->session, &w->name);
}

/* The holder, and nobody else, does this. */
static void check_order(struct worker *w)
{
	uint64_t mine = atomic_load(&w->result->ticket), overtaken = atomic_load(&w->result->overtaken);
	int i;

	for (i = 0; i < w->o->processes; i++) {
		struct result *other = &w->shared->results[i];
		uint64_t ticket = atomic_load(&other->ticket);

		if (ticket && ticket < mine)
			atomic_fetch_add(&other->overtaken, 1);
	}
	atomic_store(&w->result->ticket, 0);
	if (overtaken > w->result->overtaken_max)
		w->result->overtaken_max = overtaken;
}

/* Readers exclude nobody; that they have it together shows that they read. */
static void while_read(struct worker *w)
{
	struct shared *s = w->shared;
	int readers = atomic_fetch_add(&s->readers, 1) + 1, most = atomic_load(&s->readers_max);

	while (readers > most && !atomic_compare_exchange_weak(&s->readers_max, &most, readers))
		;
	pause_us(w->o->hold_us);
	atomic_fetch_sub(&s->readers, 1);
}

static void while_held(struct worker *w, bool counts, int64_t got_ns)
{
	struct shared *s = w->shared;

	if (w->o->names != NAMES_ONE)
		return;
	if (w->o->shared) {
		while_read(w);
		return;
	}
	if (atomic_exchange(&s->holder, w->id + 1))
		s->overlaps++;
	if (counts && s->last_holder != w->id)
		histogram_add(&s->hand_offs, got_ns - s->released_ns);
	s->last_holder = w->id;
	if (w->o->order)
		check_order(w);
	pause_us(w->o->hold_us);
	s->released_ns = now_ns();
	atomic_store(&s->holder, 0);
}

static int work(struct worker *w)
{
	const struct peer *p = w->o->peer;
	int64_t begin = atomic_load(&w->shared->begin_ns), end = atomic_load(&w->shared->end_ns), asked, got;

	/* Processes that pause do not stay in step. */
	pause_us((int)((int64_t)w->o->pause_us * w->id / w->o->processes));
	for (asked = now_ns(); asked < end; asked = now_ns()) {
		bool counts;

		if (w->o->names == NAMES_NEW)
			name_it(w->o, w->id, w->count++, &w->name);
		if (acquire(w))
			return -1;
		got = now_ns();
		counts = got >= begin && got <= end;
		while_held(w, counts, got);
		if (p->unlock(w->session, &w->name))
			return -1;
		if (counts) {
			w->result->pairs++;
			histogram_add(&w->result->waits, got - asked);
		}
		pause_us(w->o->pause_us);
	}
	return 0;
}

static int pairs(struct worker *w, int count)
{
	for (int i = 0; i < count; i++)
		if (acquire(w) || w->o->peer->unlock(w->session, &w->name))
			return -1;
	return 0;
}

/* Reads the clock once for many pairs, as long as pairs are fast. */
static int work_bare(struct worker *w)
{
	int64_t begin = atomic_load(&w->shared->begin_ns), end = atomic_load(&w->shared->end_ns), now, after;
	int count = 1;

	for (now = now_ns(); now < end; now = after) {
		if (pairs(w, count))
			return -1;
		after = now_ns();
		if (now >= begin)
			w->result->pairs += (uint64_t)count;
		if (after - now > BARE_LOOK_NS && count > 1)
			count /= 2;
		else if (after - now < BARE_LOOK_NS / 2 && count < BARE_PAIRS)
			count *= 2;
	}
	return 0;
}

/* `begin` is a pipe that ends when all are to begin: however many they are, they use no processor until then. */
static int run_worker(const struct options *o, struct shared *shared, int id, const int begin[2])
{
	struct worker w = { .o = o, .shared = shared, .result = &shared->results[id], .id = id };
	char none;

	close(begin[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm((unsigned)(o->seconds + o->warm_s) + LOST_AFTER_S);
	name_it(o, id, w.count++, &w.name);
	w.session = o->peer->open(o->targets[id % o->target_count]);
	/* The first lock is not measured: it may take longer than the whole load, and without times that would not show. */
	w.result->failed = !w.session || (o->bare && pairs(&w, 1));
	atomic_fetch_add(&shared->ready, 1);
	if (read(begin[0], &none, 1) != 0)
		w.result->failed = true;
	if (!w.result->failed && (o->bare ? work_bare : work)(&w))
		w.result->failed = true;
	if (w.session && o->peer->close)
		o->peer->close(w.session);
	return w.result->failed;
}

/* ---- all of them ---- */

static int prepare(const struct options *o)
{
	static struct lock_name names[PROCESSES_MAX];
	int count = o->names == NAMES_OWN ? o->processes : 1, i;

	for (i = 0; i < count; i++)
		name_it(o, i, 0, &names[i]);
	return o->peer->prepare ? o->peer->prepare(o->targets[0], names, count) : 0;
}

/* The measured time begins when all processes are connected and, with --bare, have had their lock once. */
static int run(const struct options *o, struct shared *shared)
{
	int i, status, failed = 0, pipes[2];
	int64_t begin;

	if (pipe(pipes)) {
		perror("bench-load: pipe");
		return 1;
	}
	for (i = 0; i < o->processes; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("bench-load: fork");
			return 1;
		}
		if (pid == 0)
			_exit(run_worker(o, shared, i, pipes));
	}
	while (atomic_load(&shared->ready) < o->processes && waitpid(-1, &status, WNOHANG) == 0)
		pause_us(1000);
	begin = now_ns() + (int64_t)(o->warm_s * 1e9);
	atomic_store(&shared->begin_ns, begin);
	atomic_store(&shared->end_ns, begin + (int64_t)(o->seconds * 1e9));
	close(pipes[1]);
	while (wait(&status) > 0)
		failed |= status;
	return failed;
}

static int report(const struct options *o, const struct shared *shared)
{
	static struct histogram all;
	uint64_t overtaken = 0, all_pairs = 0;
	int i, k;

	for (i = 0; i < o->processes; i++) {
		all_pairs += shared->results[i].pairs;
		histogram_merge(&all, &shared->results[i].waits);
		if (shared->results[i].overtaken_max > overtaken)
			overtaken = shared->results[i].overtaken_max;
	}
	printf("{\"pairs\": %" PRIu64 ", \"seconds\": %g, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, "
	       "\"longest_us\": %.1f, \"hand_offs\": %" PRIu64 ", \"hand_off_us\": %.2f, \"overlaps\": %" PRIu64 ", ",
	       all_pairs, o->seconds, histogram_percentile_ns(&all, 0.5) / 1e3,
	       histogram_percentile_ns(&all, 0.99) / 1e3, histogram_percentile_ns(&all, 0.999) / 1e3,
	       (double)all.longest_ns / 1e3, shared->hand_offs.total,
	       histogram_percentile_ns(&shared->hand_offs, 0.5) / 1e3, shared->overlaps);
	if (o->order)
		printf("\"overtaken\": %" PRIu64 ", ", overtaken);
	if (o->shared)
		printf("\"readers\": %d, ", shared->readers_max);
	printf("\"by_target\": [");
	for (k = 0; k < o->target_count; k++) {
		uint64_t pairs = 0;

		for (i = k; i < o->processes; i += o->target_count)
			pairs += shared->results[i].pairs;
		printf("%s%" PRIu64, k ? ", " : "", pairs);
	}
	printf("]}\n");
	return shared->overlaps > 0;
}

static const struct option words[] = {
	{ "peer", required_argument, NULL, 'p' },
	{ "target", required_argument, NULL, 't' },
	{ "processes", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 's' },
	{ "warm", required_argument, NULL, 'w' },
	{ "pause", required_argument, NULL, 'u' },
	{ "names", required_argument, NULL, 'l' },
	{ "order", no_argument, NULL, 'o' },
	{ "shared", no_argument, NULL, 'r' },
	{ "bare", no_argument, NULL, 'b' },
	{ "prefix", required_argument, NULL, 'x' },
	{ "hold", required_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const struct peer *peer_of(const char *word)
{
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
		if (strcmp(peers[i]->word, word) == 0)
			return peers[i];
	return NULL;
}

static bool set(struct options *o, int which, const char *value)
{
	switch (which) {
	case 'p':
		o->peer = peer_of(value);
		return o->peer != NULL;
	case 't':
		o->targets[o->target_count++ % TARGETS_MAX] = value;
		return o->target_count <= TARGETS_MAX;
	case 'n':
		o->processes = atoi(value);
		return o->processes > 0 && o->processes <= PROCESSES_MAX;
	case 's':
		o->seconds = atof(value);
		return o->seconds > 0;
	case 'w':
		o->warm_s = atof(value);
		return true;
	case 'u':
		o->pause_us = atoi(value);
		return true;
	case 'h':
		o->hold_us = atoi(value);
		return true;
	case 'l':
		o->names = strcmp(value, "own") == 0 ? NAMES_OWN : strcmp(value, "one") == 0 ? NAMES_ONE : NAMES_NEW;
		return true;
	case 'o':
		o->order = true;
		return true;
	case 'r':
		o->shared = true;
		return true;
	case 'b':
		o->bare = true;
		return true;
	case 'x':
		o->prefix = value;
		return true;
	}
	return false;
}

/* Whether the load can be done by that peer, and would show something. */
static bool fits(const struct options *o)
{
	if (o->order && (!o->peer->ask || o->names != NAMES_ONE))
		return false;
	if (o->shared && !o->peer->lock_shared)
		return false;
	return !o->bare || o->names == NAMES_OWN || (o->names == NAMES_ONE && o->shared);
}

int main(int argc, char **argv)
{
	struct options o = { .processes = 1, .seconds = 1 };
	struct shared *shared;
	int which;

	while ((which = getopt_long(argc, argv, "", words, NULL)) != -1) {
		if (!set(&o, which, optarg)) {
			fputs(usage, stderr);
			return 64;
		}
	}
	if (!o.peer || !o.target_count || optind != argc || !fits(&o)) {
		fputs(usage, stderr);
		return 64;
	}
	/* Services that serve several peers must not take one's names for another's. */
	if (!o.prefix)
		o.prefix = o.peer->word;
	shared = mmap(NULL, sizeof(*shared) + sizeof(struct result) * (size_t)o.processes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("bench-load: mmap");
		return 1;
	}
	shared->last_holder = -1;
	signal(SIGPIPE, SIG_IGN);
	if (prepare(&o) || run(&o, shared)) {
		fprintf(stderr, "bench-load: %s failed\n", o.peer->word);
		return 1;
	}
	return report(&o, shared);
}
