/* SPDX-License-Identifier: Apache-2.0 */
/* See anything.h. anything --seeds N [--first S]; anything --seed S replays one, with all that happened. */
#include "anything.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 12, HANGS_AFTER = 30 };

const char *const any_names[ANY_NAMES] = { "a", "b", "m/x", "k/y", "s", "\xc3\xb6/." };

static const struct broker_prefix prefixes[] = { { "m/", FLAVOUR_MUTEX, "/app/locks" }, { "k/", FLAVOUR_KAZOO, NULL } };

static uint64_t volatile running;

void any_fail(struct any *a, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(a->failure, sizeof(a->failure), format, args);
	va_end(args);
	longjmp(a->failed, 1);
}

int any_name_of(struct slice name)
{
	for (int i = 0; i < ANY_NAMES; i++)
		if (slice_eq(name, slice_of(any_names[i])))
			return i;
	return -1;
}

int64_t any_host_now(const struct any_host *h)
{
	return h->any->sched.now + h->offset;
}

static void trace(struct any *a, const char *what, const struct any_host *h, uint32_t conn, struct slice text)
{
	if (!a->tracing)
		return;
	printf("%11.3f ms  host %d client %u %s ", (double)a->sched.now / 1e6, h->index, conn, what);
	for (size_t i = 0; i < text.len && i < 150; i++)
		putchar(text.data[i] >= ' ' ? text.data[i] : ' ');
	putchar('\n');
}

/* ---- a host ---- */

static void gone_due(void *peer, uint64_t life)
{
	struct any_peer *p = peer;
	struct any_host *h = p->host;

	if (p->life != life || !p->on || !h->broker)
		return;
	if (h->stopped_until > h->any->sched.now) {
		sched_at(&h->any->sched, h->stopped_until, gone_due, p, life);
		return;
	}
	p->on = p->asking = p->closing = p->half = false;
	p->life++;
	trace(h->any, "is gone", h, p->conn, SLICE(""));
	/* Deadlines come before the event: what is for it is on its way to nobody. */
	p->going = true;
	any_handle(h, &(struct event){ .type = EVENT_CLIENT_GONE, .conn = p->conn });
	p->going = false;
}

static void tokens_due(void *host, uint64_t life)
{
	struct any_host *h = host;
	struct event e = { .type = EVENT_TOKENS, .tokens.limit = h->tokens };

	if (life == h->life && h->broker)
		any_handle(h, &e);
}

static void open_due(void *host, uint64_t life)
{
	struct any_host *h = host;

	if (life == h->life && h->broker)
		zhandle_open(h->zk);
}

static void drop_due(void *host, uint64_t life)
{
	struct any_host *h = host;

	if (life == h->life && h->broker)
		zhandle_drop(h->zk, rng_percent(&h->any->rng, 50));
}

static void start(struct any_host *h);

static void again(void *host, uint64_t life)
{
	struct any_host *h = host;

	if (life == h->life && !h->broker)
		start(h);
}

void any_host_die(struct any_host *h, bool end_session)
{
	struct any *a = h->any;

	if (!h->broker)
		return;
	broker_free(h->broker);
	h->broker = NULL;
	h->life++;
	for (int i = 0; i < h->peer_count; i++) {
		h->peers[i].on = h->peers[i].asking = h->peers[i].closing = h->peers[i].half = false;
		h->peers[i].life++;
	}
	if (h->zk)
		zhandle_close(h->zk, end_session);
	sched_at(&a->sched, a->sched.now + rng_between(&a->rng, 10 * MS, 2 * SECOND), again, h, h->life);
}

static void stopped_due(void *host, uint64_t end_session)
{
	struct any_host *h = host;

	if (h->broker && h->broker->stopped)
		any_host_die(h, end_session);
}

static void written_due(void *peer, uint64_t life)
{
	struct any_peer *p = peer;

	if (p->life != life || !p->on || !p->host->broker)
		return;
	p->revoke_bytes = 0;
	any_handle(p->host, &(struct event){ .type = EVENT_CLIENT_WRITTEN, .conn = p->conn });
	if (p->on && client_is_unresponsive(p->host->broker->locks.conns[p->conn]))
		any_fail(p->host->any, "host %d client %u: it reads, and is not asked to let go", p->host->index, p->conn);
}

/* Some read late. A daemon that stops tells all at once, and HELLO what was kept. */
static void revoked(struct any_peer *p, const struct effect *e, struct slice text)
{
	struct any *a = p->host->any;

	if (!p->host->broker->env.stopping && p->command != COMMAND_HELLO &&
	    p->revoke_bytes > p->host->conf.limits.output_bytes / 4)
		any_fail(a, "host %d client %u: asked to let go, and %zu bytes of that are unread", p->host->index, p->conn,
			 p->revoke_bytes);
	p->revoke_bytes += text.len;
	if (e->report)
		sched_at(&a->sched, a->sched.now + rng_between(&a->rng, 0, 5 * SECOND), written_due, p, p->life);
}

static void carry_out_for_client(struct any_host *h, const struct effect *e, struct slice text)
{
	struct any_peer *p = &h->peers[e->conn];

	if (e->conn < (uint32_t)h->peer_count && p->going && e->type != EFFECT_CLOSE)
		return;
	if (e->conn >= (uint32_t)h->peer_count || !p->on)
		any_fail(h->any, "host %d: an effect names connection %u, which is not there", h->index, e->conn);
	if (e->type == EFFECT_CLOSE) {
		p->closing = true;
		sched_at(&h->any->sched, h->any->sched.now + rng_between(&h->any->rng, 0, MS), gone_due, p, p->life);
		return;
	}
	trace(h->any, e->type == EFFECT_REPLY ? "is answered" : "is told", h, e->conn, text);
	if (e->type == EFFECT_REPLY)
		any_check_reply(p, text);
	else
		any_check_push(p, text);
	if (e->type == EFFECT_PUSH && memmem(text.data, text.len, "$6\r\nrevoke\r\n", 12))
		revoked(p, e, text);
}

static void carry_out(struct any_host *h, const struct effect *e)
{
	struct slice text = effects_slice(&h->effects, e->text);
	struct sched *s = &h->any->sched;

	switch (e->type) {
	case EFFECT_REPLY:
	case EFFECT_PUSH:
	case EFFECT_CLOSE:
		carry_out_for_client(h, e, text);
		break;
	case EFFECT_ZK_OPEN:
		sched_at(s, s->now, open_due, h, h->life);
		break;
	case EFFECT_ZK_DROP:
		sched_at(s, s->now, drop_due, h, h->life);
		break;
	case EFFECT_ZK_CREATE:
	case EFFECT_ZK_LIST:
	case EFFECT_ZK_GET:
	case EFFECT_ZK_DELETE:
	case EFFECT_ZK_SET:
		zhandle_send(h->zk, e, text, effects_slice(&h->effects, e->data));
		break;
	case EFFECT_TOKENS:
		h->tokens = e->limit;
		sched_at(s, s->now + rng_between(&h->any->rng, 0, 5 * MS), tokens_due, h, h->life);
		break;
	case EFFECT_STOPPED:
		sched_at(s, s->now, stopped_due, h, e->close_session);
		break;
	case EFFECT_LOG:
		trace(h->any, "log", h, 0, text);
		any_logged(h, e, text);
		break;
	case EFFECT_HOLDER:
	case EFFECT_PROCESS:
	case EFFECT_FORMER_ADD:
	case EFFECT_FORMER_END:
		break;
	}
}

static void timer_due(void *host, uint64_t life)
{
	struct any_host *h = host;

	if (life != h->timer_life || !h->broker)
		return;
	if (h->stopped_until > h->any->sched.now) {
		sched_at(&h->any->sched, h->stopped_until, timer_due, h, life);
		return;
	}
	h->timer_at = INT64_MAX;
	any_handle(h, &(struct event){ .type = EVENT_TIME });
}

void any_handle(struct any_host *h, const struct event *e)
{
	struct any *a = h->any;
	int64_t due;

	a->steps++;
	broker_handle(h->broker, any_host_now(h), e, &h->effects);
	for (size_t i = 0; i < h->effects.count; i++)
		carry_out(h, &h->effects.list[i]);
	effects_clear(&h->effects);
	any_check(h);
	due = broker_deadline(h->broker);
	if (due == h->timer_at)
		return;
	h->timer_at = due;
	h->timer_life++;
	if (due != INT64_MAX)
		sched_at(&a->sched, due - h->offset + rng_between(&a->rng, 0, rng_percent(&a->rng, 80) ? MS : 100 * MS),
			 timer_due, h, h->timer_life);
}

static void notified(void *host, const struct event *e)
{
	struct any_host *h = host;
	struct event mine = *e;

	if (mine.type == EVENT_ZK_CONNECTED)
		mine.zk_connected.asked_ns += h->offset;
	if (h->broker)
		any_handle(h, &mine);
}

static void start(struct any_host *h)
{
	h->logged = 0;
	h->broker = broker_new(&h->conf, rng_next(&h->any->rng), any_host_now(h));
	h->life++;
	h->timer_at = INT64_MAX;
	h->timer_life++;
	if (h->conf.standalone)
		tokens_due(h, h->life);
	any_handle(h, &(struct event){ .type = EVENT_TIME });
}

/* ---- clients ---- */

static void ask(struct any_peer *p)
{
	struct any_host *h = p->host;
	struct slice words[WORDS_MAX];
	struct event e = { .type = EVENT_CLIENT_ASKED, .conn = p->conn, .asked.argv = words };

	e.asked.argc = any_words(p, words, WORDS_MAX);
	for (size_t i = 0; i < e.asked.argc; i++)
		trace(h->any, i ? "..." : "asks", h, p->conn, words[i]);
	p->asking = true;
	p->command = command_find(words[0]);
	p->asked_at = h->any->sched.now;
	h->any->requests++;
	any_check_asking(p);
	any_handle(h, &e);
	if (p->half && p->asking && p->on)
		any_handle(h, &(struct event){ .type = EVENT_CLIENT_HALF_CLOSED, .conn = p->conn });
}

static void connect_peer(struct any_peer *p)
{
	struct event e = { .type = EVENT_CLIENT_CONNECTED, .conn = p->conn };

	*p = (struct any_peer){ .host = p->host, .conn = p->conn, .on = true, .version = 2, .life = p->life };
	e.connected.pid = 1000 + p->conn;
	e.connected.uid = p->conn % 3;
	e.connected.comm = SLICE("any");
	any_handle(p->host, &e);
}

/* What comes now comes in the same turn as what should have happened before. */
static bool is_late(const struct any_host *h)
{
	return h->timer_at <= any_host_now(h);
}

static void act(struct any_peer *p)
{
	struct any *a = p->host->any;

	if (!p->on) {
		if (!a->leaving)
			connect_peer(p);
	} else if (a->leaving || rng_percent(&a->rng, is_late(p->host) ? 20 : 2)) {
		gone_due(p, p->life);
	} else if (rng_below(&a->rng, 200) == 0) {
		p->half = true;
		if (p->asking)
			any_handle(p->host, &(struct event){ .type = EVENT_CLIENT_HALF_CLOSED, .conn = p->conn });
	} else if (!p->asking && !p->closing) {
		ask(p);
	}
}

static void act_due(void *any, uint64_t argument)
{
	struct any *a = any;
	struct any_host *h = &a->hosts[rng_below(&a->rng, (uint32_t)a->host_count)];

	(void)argument;
	if (h->broker && h->stopped_until <= a->sched.now)
		act(&h->peers[rng_below(&a->rng, (uint32_t)h->peer_count)]);
	sched_at(&a->sched, a->sched.now + rng_between(&a->rng, 0, (a->quiet ? 200 : 30) * MS / a->host_count), act_due,
		 a, 0);
}

static void reap_due(void *any, uint64_t argument)
{
	struct any *a = any;

	fakezk_reap(&a->zk);
	sched_at(&a->sched, a->sched.now + rng_between(&a->rng, 1, 3000) * MS, reap_due, a, argument);
}

static void deleted(void *any, struct znode *n, enum zk_cause cause)
{
	struct any *a = any;

	(void)cause;
	a->gone[a->gone_count++ % ANY_GONE] = n->czxid;
}

static void unheeded(void *any, struct znode *n)
{
	(void)any;
	(void)n;
}

static void expired(void *any, struct zsession *s)
{
	(void)any;
	(void)s;
}

/* ---- a run ---- */

static struct broker_limits limits(struct any *a)
{
	bool few = rng_percent(&a->rng, 30);

	return (struct broker_limits){
		.clients = 100,
		.clients_per_uid = few ? 2 : 100,
		.locks = few ? 4 : 100,
		.requests_per_lock = few ? 3 : 100,
		.requests_per_client = few ? 3 : 100,
		.requests_per_uid = few ? 5 : 100,
		.grants_per_client = few ? 4 : 100,
		.grants_per_uid = few ? 6 : 100,
		.events_per_client = rng_percent(&a->rng, 30) ? 1 + rng_below(&a->rng, 4) : 100,
		.output_bytes = rng_percent(&a->rng, 30) ? 400 : 1 << 20,
		.session_path_bytes = few ? 1200 : 100000,
	};
}

static void host_init(struct any *a, struct any_host *h, int index)
{
	static const int64_t handoffs[] = { 0, 1, 64 }, lingers[] = { 0, 100 * MS, 10 * SECOND };

	h->any = a;
	h->index = index;
	snprintf(h->name, sizeof(h->name), "h%d", index);
	h->offset = rng_between(&a->rng, 0, 1000) * SECOND;
	h->conf = (struct broker_conf){
		.standalone = a->standalone,
		.root = "/lb",
		.host = h->name,
		.version = "any",
		.boot_id = "any",
		.session_page = "",
		.session_page_id = "",
		.pid = 1,
		.uid = 1,
		.prefixes = prefixes,
		.prefix_count = 2,
		.session_timeout_ns = a->timeout,
		.tick_ns = a->tick,
		.linger_ns = lingers[rng_below(&a->rng, 3)],
		.handoff_max = handoffs[rng_below(&a->rng, 3)],
		.handoff_ns = 100 * MS,
		.try_ns = 100 * MS,
		.deadlock_detection = rng_percent(&a->rng, 80),
		.log_grants = a->seed % 2 == 0,
		.log_grants_level = EFFECT_LEVEL_DEBUG,
		.grant_min_ns = rng_percent(&a->rng, 50) ? 0 : 200 * MS,
		.stop_timeout_ns = 2 * SECOND,
		.limits = limits(a),
	};
	if (!a->standalone)
		h->zk = zhandle_new(&a->zk, a->timeout, notified, h, &h->stopped_until);
	h->peer_count = (int)rng_between(&a->rng, 2, ANY_PEERS);
	for (int i = 0; i < h->peer_count; i++)
		h->peers[i] = (struct any_peer){ .host = h, .conn = (uint32_t)i };
	start(h);
}

static void run_for(struct any *a, int64_t ns)
{
	int64_t until = a->sched.now + ns;

	while (sched_step(&a->sched, until))
		;
	a->sched.now = until;
}

static void run(struct any *a)
{
	for (int i = 0; i < a->host_count; i++)
		host_init(a, &a->hosts[i], i);
	act_due(a, 0);
	reap_due(a, 0);
	any_faults_begin(a);
	run_for(a, rng_between(&a->rng, 10, 60) * SECOND);
	a->quiet = true;
	any_faults_end(a);
	run_for(a, 60 * SECOND + 4 * a->timeout);
	a->leaving = true;
	run_for(a, 60 * SECOND + 4 * a->timeout);
	any_check_end(a);
}

static void init(struct any *a, uint64_t seed)
{
	static const int64_t ticks[] = { 400 * MS, SECOND, 2 * SECOND };

	a->seed = seed;
	a->rng.state = seed * 0x2545f4914f6cdd1du + 7;
	a->tick = ticks[rng_below(&a->rng, 3)];
	a->timeout = a->tick * rng_between(&a->rng, 5, 9);
	a->standalone = rng_percent(&a->rng, 15);
	a->forces = rng_percent(&a->rng, 30);
	a->host_count = a->standalone ? 1 : (int)rng_between(&a->rng, 1, ANY_HOSTS);
	sched_init(&a->sched);
	fakezk_init(&a->zk, &a->sched, rng_next(&a->rng), a->tick);
	a->zk.hooks = (struct fakezk_hooks){ a, unheeded, deleted, expired };
	a->zk.delay_max = rng_percent(&a->rng, 70) ? 2 * MS : 50 * MS;
	a->zk.lag_max = rng_percent(&a->rng, 70) ? 2 * MS : 50 * MS;
	fakezk_operate(&a->zk, EFFECT_ZK_CREATE, SLICE("/app"), (struct slice){ 0 });
	fakezk_operate(&a->zk, EFFECT_ZK_CREATE, SLICE("/app/locks"), (struct slice){ 0 });
}

static void deinit(struct any *a)
{
	a->zk.hooks = (struct fakezk_hooks){ 0 };
	for (int i = 0; i < a->host_count; i++) {
		broker_free(a->hosts[i].broker);
		if (a->hosts[i].zk)
			zhandle_free(a->hosts[i].zk);
		effects_free(&a->hosts[i].effects);
	}
	fakezk_deinit(&a->zk);
	sched_deinit(&a->sched);
}

static bool run_seed(uint64_t seed, bool tracing, struct any *totals)
{
	struct any *a = calloc(1, sizeof(*a));
	bool failed;

	if (!a)
		abort();
	running = seed;
	alarm(HANGS_AFTER);
	a->tracing = tracing;
	init(a, seed);
	failed = setjmp(a->failed);
	if (!failed)
		run(a);
	else
		printf("seed %" PRIu64 " (%d hosts%s, T %" PRId64
		       " ms) failed at %.3f ms:\n  %s\nreplay: anything --seed %" PRIu64 "\n",
		       seed, a->host_count, a->standalone ? ", standalone" : "", a->timeout / MS,
		       (double)a->sched.now / 1e6, a->failure, seed);
	totals->steps += a->steps;
	totals->requests += a->requests;
	totals->grants += a->grants;
	totals->deadlocks += a->deadlocks;
	deinit(a);
	free(a);
	return !failed;
}

static void crashed(int signal)
{
	char line[80];
	int len = snprintf(line, sizeof(line), "\nthe core %s: anything --seed %" PRIu64 "\n",
			   signal == SIGALRM ? "does not come back" : "gave up", running);

	_exit(write(STDOUT_FILENO, line, (size_t)len) < 0 ? 2 : 1);
}

struct options {
	uint64_t seeds, first;
	double seconds; /* 0: no limit */
	bool one, keep_going;
};

static bool options_parse(struct options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--keep-going") == 0) {
			o->keep_going = true;
			continue;
		}
		if (!value)
			return false;
		o->one = o->one || strcmp(argv[i], "--seed") == 0;
		if (strcmp(argv[i], "--seeds") == 0)
			o->seeds = strtoull(value, NULL, 10);
		else if (strcmp(argv[i], "--first") == 0 || strcmp(argv[i], "--seed") == 0)
			o->first = strtoull(value, NULL, 10);
		else if (strcmp(argv[i], "--seconds") == 0)
			o->seconds = strtod(value, NULL);
		else
			return false;
		i++;
	}
	o->seeds = o->one ? 1 : o->seeds;
	return o->seeds > 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM };
	struct options o = { .seeds = 200, .first = 1 };
	uint64_t seed, failed = 0;
	struct any totals = { 0 };
	double began = seconds();

	if (!options_parse(&o, argc, argv)) {
		fprintf(stderr,
			"usage: anything [--seeds N] [--first S] [--seconds S] [--keep-going]\n       anything --seed S\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], crashed);
	for (seed = o.first; seed < o.first + o.seeds && (!failed || o.keep_going); seed++) {
		if (o.seconds > 0 && seconds() - began > o.seconds)
			break;
		failed += !run_seed(seed, o.one, &totals);
	}
	printf("%" PRIu64 " seeds, %" PRIu64 " steps in %.1f s: %" PRIu64 " requests, %" PRIu64 " grants, %" PRIu64
	       " circles; %" PRIu64 " failed\n",
	       seed - o.first, totals.steps, seconds() - began, totals.requests, totals.grants, totals.deadlocks,
	       failed);
	return failed ? 1 : 0;
}
