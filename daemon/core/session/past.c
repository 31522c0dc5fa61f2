/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/past.h"

#include "core/session/ensemble.h"

enum { EPOCH_SHIFT = 32 }; /* the upper half of a zxid counts the leaders */

/* Between two lines of the log about it. */
static const int64_t COMPLAIN_NS = 600000000000;

static void see(struct ensemble *zk, int64_t zxid)
{
	if (zxid <= zk->past.seen)
		return;
	zk->past.seen = zxid;
	ledger_zxid(zk->env->ledger, zxid);
}

static void complain(struct ensemble *zk, int64_t zxid)
{
	struct past *p = &zk->past;

	if (zk->env->now_ns < p->complain_ns)
		return;
	p->complain_ns = zk->env->now_ns + COMPLAIN_NS;
	effects_say(
		zk->env->out, EFFECT_LEVEL_ERROR, zookeeper_restored,
		EFFECT_FIELDS("transaction=%x seen=%x", zxid, p->floor),
		"ZooKeeper has gone back to transaction 0x%x, and this host has seen 0x%x: an older state of it was restored, "
		"and tokens would repeat, so nothing is granted; raise acceptedEpoch and currentEpoch of its servers to %d "
		"or more, or, if nobody compares tokens, stop and start the daemons (lockbrokerd(8), RESTORED ENSEMBLE)",
		zxid, p->floor, (p->floor >> EPOCH_SHIFT) + 1);
}

void past_session(struct ensemble *zk)
{
	zk->past.floor = zk->past.seen;
}

void past_beat(struct ensemble *zk, int64_t zxid)
{
	if (!zxid)
		return;
	if (zxid <= zk->past.seen) {
		zk->past.floor = zk->past.seen;
		complain(zk, zxid);
	}
	see(zk, zxid);
}

bool past_allows(struct ensemble *zk, int64_t zxid)
{
	if (zxid <= zk->past.floor) {
		complain(zk, zxid);
		return false;
	}
	see(zk, zxid);
	return true;
}
