/* SPDX-License-Identifier: Apache-2.0 */
/* A meddler with a ZooKeeper shell, careless or hostile. */
#include "anything.h"

#include <inttypes.h>
#include <stdio.h>

/* One of those that stand, of sessions, but for the hosts' own. */
static const struct znode *any_ephemeral(struct world *w, const char *below)
{
	size_t buckets = sizeof(w->zk.buckets) / sizeof(w->zk.buckets[0]),
	       first = rng_below(&w->rng, (uint32_t)buckets);
	const struct znode *n;

	for (size_t i = 0; i < buckets; i++)
		for (n = w->zk.buckets[(first + i) % buckets]; n; n = n->hash_next)
			if (n->view[FAKEZK_TRUTH].exists && n->session && strstr(n->path, below) &&
			    !strstr(n->path, "/.hosts/"))
				return n;
	return NULL;
}

enum { MAIL_MOST = 40 }; /* in a box: its host may be away */

/* As another daemon might write them, but for what chance put in. */
static void forge(struct world *w)
{
	static const char *const kinds[] = { "revoke", "force", "answer", "", "Force" };
	const struct host *to = &w->hosts[rng_below(&w->rng, (uint32_t)w->host_count)];
	const struct znode *letter = any_ephemeral(w, "/.mail/"), *claim = any_ephemeral(w, "/locks/");
	const struct znode *box;
	const char *id = letter ? letter->path + letter->name_at : "x",
		   *znode = claim ? claim->path + claim->name_at : "";
	int64_t session = to->broker && rng_percent(&w->rng, 80) ? to->broker->ensemble.session.id : 5;
	char path[64], data[600];
	int len;

	snprintf(path, sizeof(path), "/locks/.mail/%s", to->name);
	box = fakezk_find(&w->zk, slice_of(path), FAKEZK_TRUTH);
	if (!box || !box->view[FAKEZK_TRUTH].exists || box->view[FAKEZK_TRUTH].children > MAIL_MOST)
		return;
	snprintf(path, sizeof(path), "/locks/.mail/%s/%013u-0-%u", to->name, rng_below(&w->rng, 100),
		 rng_below(&w->rng, 1000));
	len = snprintf(data, sizeof(data),
		       "1\nkind=%s\nfrom=%s\nto=%016" PRIx64
		       "\nname=%s\nznode=%s\nreason=why\nuid=%d\nre=%s\nholders=%d\n",
		       kinds[rng_below(&w->rng, 5)], rng_percent(&w->rng, 80) ? w->hosts[0].name : "../x",
		       (uint64_t)session, any_names[rng_below(&w->rng, ANY_NAMES)], znode,
		       (int)rng_below(&w->rng, 3) - 1, id, (int)rng_below(&w->rng, 4) - 2);
	if (rng_percent(&w->rng, 20))
		len = (int)rng_below(&w->rng, (uint32_t)len);
	fakezk_operate(&w->zk, EFFECT_ZK_CREATE, slice_of(path), (struct slice){ data, (size_t)len });
}

static void delete_something(struct world *w)
{
	const struct znode *n = any_ephemeral(w, "/");
	char path[32];

	if (rng_percent(&w->rng, 50) && n) {
		fakezk_operate(&w->zk, EFFECT_ZK_DELETE, slice_of(n->path), (struct slice){ 0 });
		return;
	}
	snprintf(path, sizeof(path), "/locks/%s/h%u", rng_percent(&w->rng, 50) ? ".mail" : ".hosts",
		 rng_below(&w->rng, HOSTS_MAX));
	fakezk_operate(&w->zk, EFFECT_ZK_DELETE, slice_of(path), (struct slice){ 0 });
}

/* A waiting znode that is gone is missed half a minute later. */
static void meddle_due(void *world, uint64_t every)
{
	struct world *w = world;

	if (w->quiet)
		return;
	if (rng_percent(&w->rng, 60))
		forge(w);
	else
		delete_something(w);
	if (w->last_fault < w->sched.now + 35 * SECOND)
		w->last_fault = w->sched.now + 35 * SECOND;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 0, 2 * (int64_t)every), meddle_due, w, every);
}

void any_meddle(struct world *w)
{
	sched_at(&w->sched, w->sched.now + SECOND, meddle_due, w, (uint64_t)rng_between(&w->rng, 50, 3000) * MS);
}
