/* SPDX-License-Identifier: Apache-2.0 */
#include "core/piece.h"

#include "base/container.h"
#include "core/client/bid.h"
#include "core/client/deadlock.h"
#include "core/client/halt.h"
#include "core/client/mlock.h"
#include "core/command/command.h"
#include "core/command/list.h"
#include "core/hosts/answer.h"
#include "core/hosts/audit.h"
#include "core/hosts/census.h"
#include "core/hosts/errand.h"
#include "core/hosts/inquiry.h"
#include "core/hosts/release.h"
#include "core/hosts/revocation.h"
#include "core/kind/observe.h"
#include "core/lock/lifeline.h"
#include "core/lock/readers.h"
#include "core/lock/take_back.h"
#include "core/lock/user.h"
#include "core/state.h"

/* Continues with the client's end, or with its RESET. */
static void release_more(struct broker *b, struct client *c, int64_t *steps)
{
	if (!release_some(&b->hosts, c, b->env.conf->all_in_pieces ? *steps + 1 : WORK_TURN_STEPS, steps))
		return;
	work_drop(&b->env.works, &c->releasing);
	if (!c->resetting)
		return;
	command_reset_over(c);
	*steps = WORK_TURN_STEPS; /* one answer at a time waits until all is settled */
}

/* One in a turn, because all is settled between two of them. What it looks for may take longer than that. */
static int64_t mlock_more(struct broker *b, struct mlock *m)
{
	mlock_go_on(m);
	return WORK_TURN_STEPS + (int64_t)b->locks.searched / DEADLOCK_EDGES_A_STEP;
}

/* What a process has set ends with it, and perhaps its user, who stays until that is known. True: the user is gone. */
static bool cut_lifeline(struct broker *b, struct lifeline *l, int64_t *done)
{
	struct user *user = container_of(l->work.worker, struct user, worker);

	user->clients++;
	*done += bid_cut(l, WORK_TURN_STEPS - *done);
	return user_leave(&b->locks, user);
}

/* True: the user whose item it is has gone. */
static bool step(struct broker *b, struct work_item *w, int64_t *done)
{
	const int64_t left = WORK_TURN_STEPS - *done;

	switch (w->kind) {
	case WORK_LIST:
		*done += list_continue(container_of(w, struct list, work), left);
		break;
	case WORK_ANSWER:
		*done += answer_continue(container_of(w, struct answer, work), left);
		break;
	case WORK_CENSUS:
		*done += census_continue(container_of(w, struct census, work), left);
		break;
	case WORK_AUDIT:
		*done += audit_look(&b->hosts, left);
		break;
	case WORK_MLOCK:
		*done += mlock_more(b, container_of(w, struct mlock, work));
		break;
	case WORK_RELEASE:
		release_more(b, container_of(w, struct client, releasing), done);
		break;
	case WORK_REVOKE:
		*done += revocation_continue(container_of(w, struct revocation, work), left);
		break;
	case WORK_ERRAND:
		*done += errand_continue(container_of(w, struct errand, work), left);
		break;
	case WORK_OBSERVERS:
		*done += observe_look(container_of(w, struct observation, work), left);
		break;
	case WORK_BID:
		bid_go_on(container_of(w, struct bid, work));
		*done += BID_STEPS;
		break;
	case WORK_LIFELINE:
		return cut_lifeline(b, container_of(w, struct lifeline, work), done);
	case WORK_INQUIRY:
		command_again(&b->hosts, container_of(w, struct inquiry, work));
		*done = WORK_TURN_STEPS; /* one answer at a time waits until all is settled */
		break;
	case WORK_BATCH:
		batch_turn(container_of(w, struct batch, work));
		*done = WORK_TURN_STEPS;
		break;
	case WORK_DELEGATIONS:
		*done += delegated_continue(container_of(w, struct delegations, work), left);
		break;
	case WORK_HALT:
		*done += halt_continue(&b->locks, left);
		break;
	case WORK_LOCKS:
		*done += directory_touch_some(&b->directories, left);
		break;
	case WORK_LEADER:
		observe_tell(container_of(w, struct observer, work));
		*done += WORK_PUSH_STEPS;
		break;
	}
	return false;
}

void piece_do(struct broker *b)
{
	struct work_ring *works = &b->env.works;
	struct work_item *w = work_next(works);
	struct work_user *worker;
	int64_t done = 0;

	if (!w)
		return;
	worker = w->worker;
	while (done < WORK_TURN_STEPS && (w = TAILQ_FIRST(&worker->items)))
		if (step(b, w, &done))
			return;
	work_turn_over(works, worker, done);
}
