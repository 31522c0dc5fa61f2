/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong, and for how long. */
#include "anything.h"

#include <inttypes.h>
#include <stdio.h>

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

/* ---- somebody with a ZooKeeper shell, or with something against us ---- */

/* One of those that stand, of sessions, but for the hosts' own. */
static const struct znode *any_ephemeral(struct any *a, const char *below)
{
	size_t buckets = sizeof(a->zk.buckets) / sizeof(a->zk.buckets[0]),
	       first = rng_below(&a->rng, (uint32_t)buckets);
	const struct znode *n;

	for (size_t i = 0; i < buckets; i++)
		for (n = a->zk.buckets[(first + i) % buckets]; n; n = n->hash_next)
			if (n->view[FAKEZK_TRUTH].exists && n->session && strstr(n->path, below) &&
			    !strstr(n->path, "/.hosts/"))
				return n;
	return NULL;
}

enum { MAIL_MOST = 40 }; /* in a box: its host may be away */

/* As another daemon might write them, but for what chance put in. */
static void forge(struct any *a)
{
	static const char *const kinds[] = { "revoke", "force", "answer", "", "Force" };
	const struct any_host *to = &a->hosts[rng_below(&a->rng, (uint32_t)a->host_count)];
	const struct znode *letter = any_ephemeral(a, "/.mail/"), *claim = any_ephemeral(a, "/lb/");
	const struct znode *box;
	const char *id = letter ? letter->path + letter->name_at : "x",
		   *znode = claim ? claim->path + claim->name_at : "";
	int64_t session = to->broker && rng_percent(&a->rng, 80) ? to->broker->ensemble.session.id : 5;
	char path[64], data[600];
	int len;

	snprintf(path, sizeof(path), "/lb/.mail/%s", to->name);
	box = fakezk_find(&a->zk, slice_of(path), FAKEZK_TRUTH);
	if (!box || !box->view[FAKEZK_TRUTH].exists || box->view[FAKEZK_TRUTH].children > MAIL_MOST)
		return;
	snprintf(path, sizeof(path), "/lb/.mail/%s/%013u-0-%u", to->name, rng_below(&a->rng, 100),
		 rng_below(&a->rng, 1000));
	len = snprintf(data, sizeof(data),
		       "1\nkind=%s\nfrom=%s\nto=%016" PRIx64
		       "\nname=%s\nznode=%s\nreason=why\nuid=%d\nre=%s\nholders=%d\n",
		       kinds[rng_below(&a->rng, 5)], rng_percent(&a->rng, 80) ? a->hosts[0].name : "../x",
		       (uint64_t)session, any_names[rng_below(&a->rng, ANY_NAMES)], znode,
		       (int)rng_below(&a->rng, 3) - 1, id, (int)rng_below(&a->rng, 4) - 2);
	if (rng_percent(&a->rng, 20))
		len = (int)rng_below(&a->rng, (uint32_t)len);
	fakezk_operate(&a->zk, EFFECT_ZK_CREATE, slice_of(path), (struct slice){ data, (size_t)len });
}

static void delete_something(struct any *a)
{
	const struct znode *n = any_ephemeral(a, "/");
	char path[32];

	if (rng_percent(&a->rng, 50) && n) {
		fakezk_operate(&a->zk, EFFECT_ZK_DELETE, slice_of(n->path), (struct slice){ 0 });
		return;
	}
	snprintf(path, sizeof(path), "/lb/%s/h%u", rng_percent(&a->rng, 50) ? ".mail" : ".hosts",
		 rng_below(&a->rng, ANY_HOSTS));
	fakezk_operate(&a->zk, EFFECT_ZK_DELETE, slice_of(path), (struct slice){ 0 });
}

/* A waiting znode that is gone is missed half a minute later. */
static void meddle_due(void *any, uint64_t every)
{
	struct any *a = any;

	if (a->quiet)
		return;
	if (rng_percent(&a->rng, 60))
		forge(a);
	else
		delete_something(a);
	if (a->calm_at < a->sched.now + 35 * SECOND)
		a->calm_at = a->sched.now + 35 * SECOND;
	sched_at(&a->sched, a->sched.now + rng_between(&a->rng, 0, 2 * (int64_t)every), meddle_due, a, every);
}

void any_faults_begin(struct any *a)
{
	if (a->forces && !a->standalone && rng_percent(&a->rng, 60))
		sched_at(&a->sched, a->sched.now + SECOND, meddle_due, a,
			 (uint64_t)rng_between(&a->rng, 50, 3000) * MS);
	if (rng_percent(&a->rng, 70))
		sched_at(&a->sched, a->sched.now + SECOND, fault_due, a,
			 (uint64_t)rng_between(&a->rng, 100, 10000) * MS);
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
