/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/past.h"

#include "base/minmax.h"
#include "core/session/ensemble.h"

enum {
	EPOCH_SHIFT = 32, /* the upper half of a zxid counts the leaders */
	SINGLE_AHEAD = 1 << 17,
};

/* Between two lines of the log about it. */
static const int64_t COMPLAIN_NS = 600000000000;

static void store(const struct ensemble *zk)
{
	ledger_zxids(zk->env->ledger, zk->past.floor, zk->past.seen, zk->past.own);
}

static void see(struct ensemble *zk, int64_t zxid)
{
	int64_t *highest = past_looked(zk) ? &zk->past.seen : &zk->past.fresh;

	*highest = max64(*highest, zxid);
	store(zk);
}

static void demand(struct ensemble *zk, int64_t floor)
{
	zk->past.floor = max64(zk->past.floor, floor);
	store(zk);
}

/* Returns a number that no transaction since our last heartbeat exceeds, even if another leader was elected meanwhile. */
static int64_t above_others(int64_t seen)
{
	int64_t epoch = seen >> EPOCH_SHIFT;

	if (!epoch) /* a single server counts no leaders */
		return seen + SINGLE_AHEAD;
	return epoch < INT32_MAX - 1 ? ((epoch + 2) << EPOCH_SHIFT) - 1 : INT64_MAX;
}

static void complain(struct ensemble *zk, int64_t zxid)
{
	struct past *p = &zk->past;

	if (zk->env->now_ns < p->complain_ns)
		return;
	p->complain_ns = zk->env->now_ns + COMPLAIN_NS;
	effects_say(
		zk->env->out, EFFECT_LEVEL_ERROR, zookeeper_restored, EFFECT_FIELDS("transaction=%x above=%x", zxid, p->floor),
		"ZooKeeper has gone back to transaction 0x%x: an older state of it was restored, and tokens would repeat, so "
		"nothing is granted until its transactions are above 0x%x; raise acceptedEpoch and currentEpoch of its servers "
		"to %d or more (a single server gets there by itself), or, if nobody compares tokens, stop and start the "
		"daemons (lockbrokerd(8), RESTORED ENSEMBLE)",
		zxid, p->floor, (p->floor >> EPOCH_SHIFT) + 1);
}

/* The next write shows whether the numbers suffice: operators may have raised them before the servers started. */
static void gone_back(struct ensemble *zk)
{
	demand(zk, above_others(max64(zk->past.seen, zk->past.floor)));
	zk->past.complain_ns = 0; /* no line of the log has named this number */
}

void past_connected(struct ensemble *zk)
{
	zk->past.looked = false;
	zk->past.fresh = 0;
}

void past_session(struct ensemble *zk)
{
	demand(zk, zk->past.seen);
}

void past_answered(struct ensemble *zk, bool write, const struct zk_stat *stat)
{
	int64_t own = write ? stat->mzxid : 0;

	if (own && own <= zk->past.seen && zk->past.floor <= zk->past.seen) {
		gone_back(zk);
		zk->past.own = 0; /* of a write before the restore: it would show the same restore again */
	}
	if (own && own <= zk->past.floor)
		complain(zk, own);
	see(zk, max64(stat->czxid, max64(stat->mzxid, stat->pzxid)));
}

void past_own(struct ensemble *zk, int64_t mzxid)
{
	if (!mzxid)
		return;
	if (mzxid < zk->past.own)
		gone_back(zk);
	zk->past.own = mzxid;
	store(zk);
}

void past_look(struct ensemble *zk)
{
	zk->past.looked = true;
	see(zk, zk->past.fresh);
	zk->past.fresh = 0;
}

bool past_looked(const struct ensemble *zk)
{
	return zk->past.looked || !zk->past.own;
}

bool past_may_end(const struct ensemble *zk)
{
	return !zk->past.own || (zk->session.connected && zk->past.looked);
}

bool past_allows(struct ensemble *zk, int64_t zxid)
{
	if (zxid > zk->past.floor)
		return true;
	complain(zk, zxid);
	return false;
}
