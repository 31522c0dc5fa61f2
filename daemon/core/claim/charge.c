/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/charge.h"

#include <string.h>

#include "core/claim/directories.h"

/* This covers the header, the ACL and the data besides the host's name, which are at most a holder (holder.h). */
enum { REQUEST_SLACK = 512 };

const char charge_too_long[] = "that name is too long for the packets this ZooKeeper server takes";

size_t charge_path(const struct directory *d)
{
	return d->path.len + CONTENDER_NAME_MAX;
}

bool charge_fits(const struct directory *d, size_t text)
{
	return budget_takes_request(&d->directories->ensemble->budget,
				    charge_path(d) + strlen(d->directories->env->conf->host) + REQUEST_SLACK + text);
}

bool charge_is_oversize(const struct directory *d)
{
	return !charge_fits(d, d->data_bytes);
}

const char *charge_refuses(const struct directory *d, size_t count)
{
	struct env *env = d->directories->env;
	size_t watches = count * (charge_path(d) + BUDGET_WATCH_OVERHEAD);

	if (charge_is_oversize(d))
		return charge_too_long;
	if (!account_may(d->payer, POOL_PATHS, count * charge_path(d), d->privileged))
		return pools_refusal(env, d->payer, POOL_PATHS, d->privileged);
	if (!directory_watches(d))
		watches += d->path.len + BUDGET_WATCH_OVERHEAD;
	if (!account_may(d->payer, POOL_WATCHES, watches, d->privileged))
		return pools_refusal(env, d->payer, POOL_WATCHES, d->privileged);
	return NULL;
}

static size_t claim_watches(const struct claim *c)
{
	size_t bytes = 0, directory = c->directory->path.len + 1;

	if (c->pred_watch)
		bytes += directory + c->pred.len + BUDGET_WATCH_OVERHEAD;
	if (c->second.watched)
		bytes += directory + c->second.ahead.len + BUDGET_WATCH_OVERHEAD;
	if (c->own_watch != CLAIM_UNSET)
		bytes += directory + strlen(c->name) + BUDGET_WATCH_OVERHEAD;
	return bytes;
}

/* The other half is kept for claims that join, and for the directories. */
bool charge_fits_own(const struct claim *c)
{
	const struct budget *b = &c->directory->directories->ensemble->budget;
	size_t own = c->directory->path.len + 1 + strlen(c->name) + BUDGET_WATCH_OVERHEAD;

	return c->directory->directories->env->accounts.pools[POOL_WATCHES].used + own <= budget_max(b) / 2;
}

/* An observed directory has a watch on itself and one on its first contender, whose name is as long as one of ours. */
static size_t observed_watches(const struct directory *d)
{
	return d->path.len + BUDGET_WATCH_OVERHEAD + charge_path(d) + BUDGET_WATCH_OVERHEAD;
}

const char *charge_refuses_observer(const struct directory *d, bool privileged)
{
	struct env *env = d->directories->env;

	if (env->conf->standalone || d->observed)
		return NULL;
	if (charge_is_oversize(d))
		return charge_too_long;
	if (!account_may(d->payer, POOL_WATCHES, observed_watches(d), privileged))
		return pools_refusal(env, d->payer, POOL_WATCHES, privileged);
	return NULL;
}

size_t charge_watches(const struct directory *d)
{
	size_t bytes = 0;
	const struct claim *c;

	if (d->directories->env->conf->standalone)
		return 0;
	if (d->observed)
		bytes += observed_watches(d);
	else if (directory_watches(d))
		bytes += d->path.len + BUDGET_WATCH_OVERHEAD;
	CLAIM_FOREACH(c, d)
		bytes += claim_watches(c);
	return bytes + d->extra_watch_bytes;
}

void charge_recount(struct directory *d)
{
	size_t bytes = charge_watches(d);

	if (bytes != d->watches.amount)
		charge_set(&d->watches, d->payer, POOL_WATCHES, bytes);
}

void charge_to(struct directory *d, struct account *payer)
{
	struct claim *c;

	d->payer = payer;
	CLAIM_FOREACH(c, d)
		if (d->flavour != FLAVOUR_SLOTS)
			charge_set(&c->path, payer, POOL_PATHS, c->path.amount);
	charge_set(&d->watches, payer, POOL_WATCHES, d->watches.amount);
	names_follow(d);
}
