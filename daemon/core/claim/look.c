/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/look.h"

#include "core/claim/claim.h"
#include "core/claim/directories.h"

static const int64_t LONG_WAIT_NS = 30000000000;

void look_later(struct claim *c)
{
	struct directories *all = c->directory->directories;

	c->look_ns = all->env->now_ns + LONG_WAIT_NS - random_below(&all->env->random, LONG_WAIT_NS / 3);
}

static bool must_list(const struct claim *c, bool fits)
{
	const struct directory *d = c->directory;

	if (c->looks + 1 >= LOOKS_MAX || d->part || d->state != DIRECTORY_FITS)
		return true;
	return !c->pred.len || directory_is_ours(d, bytes_view(&c->pred)) || !fits;
}

static void list(struct claim *c)
{
	c->looks = 0;
	directory_list(c->directory, false);
}

bool look_continue(struct claim *c, bool fits)
{
	if (!c->listed || c->directory->directories->env->now_ns < c->look_ns || !turn_may(c->directory, TURN_LOOK))
		return false;
	look_later(c);
	if (must_list(c, fits)) {
		list(c);
		return true;
	}
	c->looks++;
	claim_read(c, OPERATION_LOOK_OWN, slice_of(c->name));
	claim_read(c, OPERATION_LOOK_PRED, bytes_view(&c->pred));
	return false;
}

static bool is_as_it_was(const struct claim *c, const struct operation *op, const struct event *event)
{
	int64_t session = c->directory->directories->ensemble->session.id;

	if (event->zk_answered.code != ZK_OK)
		return false;
	return op->kind == OPERATION_LOOK_PRED ||
	       (event->zk_answered.stat.owner == session && event->zk_answered.stat.czxid == c->czxid);
}

void look_answered(struct claim *c, const struct operation *op, const struct event *event)
{
	if (c && c->state == CLAIM_WAITING && event->zk_answered.code < ZK_BUSY && !is_as_it_was(c, op, event))
		list(c);
}
