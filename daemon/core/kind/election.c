/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/election.h"

#include "core/znode/holder.h"
#include "core/lock/locks.h"

/* What ZooKeeper refused (an ACL, say) is not tried again at once. */
static const int64_t REFUSED_PAUSE_NS = 1000000000;

bool election_proclaims(const struct lock *lock)
{
	return lock->kind == KIND_ELECTION && !lock->locks->env->conf->standalone;
}

bool election_began(const struct request *r, const struct claim *c)
{
	return r->proclamation.token && r->proclamation.token >> 10 == c->czxid;
}

bool election_done(const struct request *r, const struct claim *c)
{
	return election_began(r, c) && r->proclamation.state == PROCLAMATION_DONE;
}

void election_send(struct request *r, struct claim *c, int64_t token)
{
	struct bytes data = { 0 };

	holder_leader(r, token, &data);
	r->proclamation.state = PROCLAMATION_SENT;
	r->proclamation.token = token;
	r->proclamation.op = claim_write(c, OPERATION_PROCLAIM, bytes_view(&data));
	bytes_free(&data);
}

/* NULL: it gave up meanwhile, or was proclaimed anew on another claim. */
static struct request *proclaimed(const struct lock *lock, uint64_t number)
{
	struct request *r = TAILQ_FIRST(&lock->requests);

	return r && r->proclamation.state == PROCLAMATION_SENT && r->proclamation.op == number ? r : NULL;
}

void election_answered(struct lock *lock, uint64_t number, const struct event *event)
{
	struct request *r = proclaimed(lock, number);

	if (!r)
		return;
	r->proclamation.state = PROCLAMATION_AGAIN;
	switch (event->zk_answered.code) {
	case ZK_OK:
		r->proclamation.state = PROCLAMATION_DONE;
		break;
	case ZK_NONODE:
		/* Until the list has told what became of the znode nothing more is written to it. */
		r->proclamation.state = PROCLAMATION_SENT;
		directory_list(lock, false);
		break;
	case ZK_UNKNOWN:
		break;
	case ZK_NODEEXISTS:
	case ZK_NOTEMPTY:
	case ZK_BADVERSION:
	case ZK_REFUSED:
		lock_pause(lock, REFUSED_PAUSE_NS);
		request_fail(r, ERROR_UNAVAILABLE, "ZooKeeper refuses to write the leader's data");
		break;
	}
}
