/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/charge.h"

#include <string.h>

#include "core/claim/directories.h"
#include "core/session/budget.h"

/* This covers the header, the ACL and the data besides the host's name, which are at most a holder (holder.h). */
enum { REQUEST_SLACK = 512 };

const char charge_too_long[] = "that name is too long for the packets this ZooKeeper server takes";
static const char too_many_watches[] = "this host's session has as many watches as ZooKeeper can take";

static size_t znode_path(const struct directory *d)
{
	return d->path.len + CONTENDER_NAME_MAX;
}

bool charge_fits(const struct directory *d, size_t text)
{
	return budget_takes_request(&d->directories->ensemble->budget,
				    znode_path(d) + strlen(d->directories->env->conf->host) + REQUEST_SLACK + text);
}

bool charge_is_oversize(const struct directory *d)
{
	return !charge_fits(d, d->data_bytes);
}

const char *charge_refuses(const struct directory *d, size_t count)
{
	const struct budget *b = &d->directories->ensemble->budget;
	size_t watches = count * (znode_path(d) + BUDGET_WATCH_OVERHEAD);

	if (charge_is_oversize(d))
		return charge_too_long;
	if (!budget_takes_paths(b, count * znode_path(d)))
		return "this host's session already has as many znodes as one ZooKeeper session may (limits.session_path_bytes)";
	if (!directory_watches(d))
		watches += d->path.len + BUDGET_WATCH_OVERHEAD;
	return budget_takes_watches(b, watches) ? NULL : too_many_watches;
}

static size_t claim_watches(const struct claim *c)
{
	size_t bytes = 0, directory = c->directory->path.len + 1;

	if (c->pred_watch)
		bytes += directory + c->pred.len + BUDGET_WATCH_OVERHEAD;
	if (c->own_watch)
		bytes += directory + strlen(c->name) + BUDGET_WATCH_OVERHEAD;
	return bytes;
}

/* The other half is kept for claims that join, and for the directories. */
bool charge_fits_own(const struct claim *c)
{
	const struct budget *b = &c->directory->directories->ensemble->budget;
	size_t own = c->directory->path.len + 1 + strlen(c->name) + BUDGET_WATCH_OVERHEAD;

	return b->watch_bytes + own <= budget_max(b) / 2;
}

/* An observed directory has a watch on itself and one on its first contender, whose name is as long as one of ours. */
static size_t observed_watches(const struct directory *d)
{
	return d->path.len + BUDGET_WATCH_OVERHEAD + znode_path(d) + BUDGET_WATCH_OVERHEAD;
}

const char *charge_refuses_observer(const struct directory *d)
{
	if (d->directories->env->conf->standalone || d->observed)
		return NULL;
	if (charge_is_oversize(d))
		return charge_too_long;
	return budget_takes_watches(&d->directories->ensemble->budget, observed_watches(d)) ? NULL : too_many_watches;
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
	size_t *sum = &d->directories->ensemble->budget.watch_bytes, bytes = charge_watches(d);

	if (bytes == d->watch_bytes)
		return;
	budget_give_back(sum, d->watch_bytes);
	budget_charge(sum, d->watch_bytes = bytes);
}
