/* What goes wrong, and for how long. */
#include "anything.h"

static void fault(struct any *a, struct any_host *h, int64_t lasts)
{
	switch (rng_below(&a->rng, a->standalone ? 3 : 8)) {
	case 0:
		any_host_die(h, rng_percent(&a->rng, 50));
		break;
	case 1:
		h->stopped_until = a->sched.now + lasts;
		break;
	case 2:
		if (rng_percent(&a->rng, 30) && h->broker)
			any_handle(h, &(struct event){ .type = EVENT_STOP });
		break;
	case 3:
		h->zk->reachable_at = a->sched.now + lasts;
		zhandle_drop(h->zk, true);
		break;
	case 4:
		fakezk_elect(&a->zk, lasts / 4, rng_percent(&a->rng, 50) ? lasts : 0);
		break;
	case 5:
		fakezk_server_down(&a->zk, &a->zk.server[rng_below(&a->rng, FAKEZK_SERVERS)], lasts);
		break;
	case 6:
		a->zk.refuses_until = a->sched.now + lasts;
		break;
	default:
		zhandle_drop(h->zk, rng_percent(&a->rng, 50));
	}
}

static void fault_due(void *any, uint64_t every)
{
	struct any *a = any;
	int64_t lasts = rng_between(&a->rng, MS, rng_percent(&a->rng, 30) ? a->timeout * 3 / 2 : a->timeout / 5);
	struct any_host *h = &a->hosts[rng_below(&a->rng, (uint32_t)a->host_count)];

	if (a->quiet)
		return;
	if (h->stopped_until <= a->sched.now)
		fault(a, h, lasts);
	if (a->calm_at < a->sched.now + lasts + a->timeout * 2)
		a->calm_at = a->sched.now + lasts + a->timeout * 2;
	sched_at(&a->sched, a->sched.now + rng_between(&a->rng, 0, 2 * (int64_t)every), fault_due, a, every);
}

void any_faults_begin(struct any *a)
{
	sched_at(&a->sched, a->sched.now + SECOND, fault_due, a, (uint64_t)rng_between(&a->rng, 100, 10000) * MS);
}

/* Ends them all. */
void any_faults_end(struct any *a)
{
	fakezk_heal(&a->zk);
	a->zk.refuses_until = 0;
	for (int i = 0; i < a->host_count; i++) {
		if (a->hosts[i].stopped_until > a->sched.now)
			a->hosts[i].stopped_until = a->sched.now;
		if (a->hosts[i].zk)
			a->hosts[i].zk->reachable_at = 0;
	}
}
