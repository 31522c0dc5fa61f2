# SPDX-License-Identifier: Apache-2.0
"""The rules that look superfluous, and the core without each: (name, [(old, new), ...], seeds[, mix]).

The old text stands once in the core and in the fake ZooKeeper, wherever that is; where it would stand in two files,
the name of its file goes before it.

The bound of seeds is what it may take the simulator to notice, with room to spare. The list in a long wait is a second
line of defence against lost wake-ups: those mutants break both.
"""

from mutants_accounts import ACCOUNTS
from mutants_scan import SCAN
from mutants_delegations import DELEGATIONS
from mutants_kills import KILLS
from mutants_kinds import KINDS
from mutants_places import PLACES
from mutants_processes import PROCESSES
from mutants_proofs import PROOFS
from mutants_readers import READERS
from mutants_restores import RESTORES
from mutants_rules import RULES
from mutants_scripts import SCRIPTS
from mutants_second import SECOND
from mutants_servers import SERVERS
from mutants_snapshots import SNAPSHOTS

MUTANTS = [
    ("a server is silent when the oldest operation is old, whatever it answers", [
        ("\treturn sent_ns > answered_ns ? sent_ns : answered_ns;", "\treturn sent_ns;")], 1000),
    ("all is sent at once, whatever is open", [
        ("\tif (!window_has_room(&all->ensemble->operations.window))\n\t\treturn false;\n", "")], 200, "load"),
    ("the window grows to more than twice what was open", [
        ("\tif (took_ns <= span_ns / 2)\n\t\treturn 2 * answered;\n", "\ttook_ns++;\n")], 1000, "load"),
    ("reads are sent behind an old operation", [
        ("return turn == TURN_DELETE || oldest_ns == INT64_MAX ||", "return true;")], 1000),
    ("a delete that waits is overtaken by a join", [
        ("turn.c", "\tif (turn != TURN_DELETE && d->waits[TURN_DELETE])\n\t\treturn false; /* its turn for that is one for this, too */\n", ""),
        ("claims.c", "\tclaim_send_deletes(d);\n", ""),
        ("lock.c", "\tclaim_send_deletes(d);\n", "")], 1000, "load"),
    ("a list that had to wait is forgotten", [
        ("claims.c", "\tdirectory_list_wanted(d);\n", "")], 1000, "load"),
    ("all looks come in one event", [
        ("c->look_ns = all->env->now_ns + LONG_WAIT_NS - random_below(&all->env->random, LONG_WAIT_NS / 3);",
         "c->look_ns = (all->env->now_ns / LONG_WAIT_NS + 1) * LONG_WAIT_NS;")], 300, "load"),
    ("a look is always a list", [
        ("\tif (must_list(c, fits)) {", "\tif (true) {")], 300, "load"),
    ("recovery begins anew each time", [
        ("\tqsort(all, count, sizeof(struct directory *), by_age);\n", "")], 300, "load"),
    ("a held claim is asked for after a reconnection, and the answer is not looked at", [
        ("} else if (c->state == CLAIM_HELD || code != ZK_REFUSED) {",
         "} else if (c->state == CLAIM_WAITING && code != ZK_REFUSED) {")], 5000),
    ("a list that is left for later is forgotten", [
        ("list.c", "\t\twork_add(&env->works, &c->user->worker, &l->work);", "\t\t;")], 100),
    ("an answer about holders that is left for later is forgotten", [
        ("answer.c", "\t\twork_add(&env->works, worker, &a->work);", "\t\t;")], 100),
    ("an answer about holders is forgotten at a hand-over", [
        ("\tanswer_leave(q);\n\treturn true;", "\treturn true;")], 3000, "anything"),
    ("who waits no longer is where a queue goes on", [
        ("\tif (!TAILQ_EMPTY(&lock->locks->walks))\n\t\twalk_leave_request(lock->locks, r);\n", "")], 40000, "anything standalone"),
    ("who holds no longer is where holders go on", [
        ("\tif (!TAILQ_EMPTY(&lock->locks->walks))\n\t\twalk_leave_grant(lock->locks, g);\n", "")], 3000, "anything"),
    ("who is to be asked for a lock later is forgotten", [
        ("revocation.c", "\twork_add(&d->query->hosts->env->works, &d->query->client->user->worker, &d->work);\n", "")], 1000),
    ("a lock that is taken later is not told as lost before it is answered", [
        ("revoke.c", "\tif (r->forced)\n\t\ttell_outcomes(r->locks); /* before the answer and the log line */\n", "")], 3000),
    ("a lock that is being taken is forgotten at a hand-over", [
        ("\t\trevocation_resume(h, c, command, bytes_view(&read.name), reason, taken);", "\t\t;")], 5000, "snapshots, standalone"),
    ("what an audit left for later is forgotten", [
        ("\tif (a->state == AUDIT_NAMES)\n\t\tleave_for_later(h);\n", "")], 3000, "anything"),
    ("a lock that a new connection leaves for later is forgotten", [
        ("\twork_add(&all->env->works, &all->worker, &all->work);\n", "\t;\n")], 1000),
    ("a lock left for later by a new connection is forgotten at a hand-over", [
        ("\tif (later)\n\t\tdirectory_touch_later(d);\n", "\t(void)later;\n")], 1000, "snapshots"),
    ("an MLOCK that is left for later is forgotten", [
        ("mlock.c", "\twork_add(&c->locks->env->works, &c->user->worker, &m->work);\n", "\t;\n")], 300),
    ("an MLOCK that is to go on is forgotten at a hand-over", [
        ("\tif (next)\n\t\tmlock_resume(m);\n", "")], 3000, "snapshots"),
    ("a RESET that is left for later is forgotten", [
        ("release.c", "\twork_add(&h->env->works, &c->user->worker, &c->releasing);\n", "")], 100),
    ("who is to be told of a leader later is not told", [
        ("\t\twork_add(&env->works, &o->client->user->worker, &o->work);\n\t} else if", "\t\t;\n\t} else if")], 300),
    ("whom a new leader concerns is not looked for later", [
        ("\tif (o->left)\n\t\tlook_later(o);\n\treturn done;", "\to->left = 0;\n\treturn done;")], 300),
    ("who is still to be told of a leader is forgotten at a hand-over", [
        ("\t\tobserve_resume(r->marks.observers.sorted[i]);", "\t\t;")], 1000, "snapshots, anything standalone"),
    ("a watch event is an answer", [
        ("broker.c", "\tcase EVENT_ZK_WATCH:\n", "\tcase EVENT_ZK_WATCH:\n\t\tb->ensemble.operations.answered_ns = b->env.now_ns;\n")], 1000),
    ("watches are counted before they are set", [
        ("\t\tif (!b->env.conf->standalone)\n\t\t\tcharge_recount(d);", ""),
        ("\t\tlock_settle(d);\n", "\t\tcharge_recount(d);\n\t\tlock_settle(d);\n")], 100),
    ("who is behind a wait that ran out is not looked at again", [
        ("lock->expired_count && end_expired(lock));", "lock->expired_count && end_expired(lock) && false);")], 1000),
    ("what joined and is held at once is not looked at again", [
        ("give_back(lock) || join(lock);", "give_back(lock) || (join(lock) && false);")], 100, "standalone"),
    ("a lock that a watch event changed is not settled", [
        ("\t\td->lock->rule->watched(d->lock, &child);\n\tdirectory_touch(d);", "\t\td->lock->rule->watched(d->lock, &child);"),
        ("\t\to->state = OBSERVE_IDLE;\n\tdirectory_touch(&lock->directory);", "\t\to->state = OBSERVE_IDLE;")], 1000),
    ("no list again when the predecessor is gone at the get", [
        ("\tif (code == ZK_NONODE) {\n\t\tpred_gone(c);", "\tif (code == ZK_NONODE) {\n\t\t;")], 300),
    ("granted at DELETED without listing again", [
        ("\t\t\tpred_gone(c);\n\t\telse", "\t\t\tc->state = CLAIM_HELD;\n\t\telse")], 300),
    ("one uuid for all claims of a session", [
        ("c->nonce = ++all->last_nonce;", "c->nonce = all->last_nonce;")], 3000),
    ("CHANGED of the predecessor is not re-armed", [
        ("\t\telse\n\t\t\tc->pred_watch = false;", "\t\telse\n\t\t\tc->pred_watch = true;")], 1000),
    ("CHANGED of the own znode is not re-armed", [
        ("\t\tc->own_watch = CLAIM_UNSET; /* used up;", "\t\t; /* used up;")], 3000),
    ("a left znode is adopted", [
        (
         "\tc = claim_new(d, mode);\n\tc->tries = tries;\n\tc->watches = watches;\n\tdirectory_check(d);",
         "\tif ((c = TAILQ_FIRST(&d->leaving)) && c->named) {\n\t\tTAILQ_REMOVE(&d->leaving, c, link);\n"
         "\t\tc->state = CLAIM_WAITING;\n\t\tdirectory_list(d, false);\n"
         "\t\tall->turns.breath = false;\n\t\treturn c;\n\t}\n"
         "\tc = claim_new(d, mode);\n\tc->tries = tries;\n\tc->watches = watches;\n\tdirectory_check(d);")], 300),
    ("a cancelled create is adopted, and its delete goes on", [
        (
         "\tc = claim_new(d, mode);\n\tc->tries = tries;\n\tc->watches = watches;\n\tdirectory_check(d);",
         "\tTAILQ_FOREACH(c, &d->leaving, link)\n\t\tif (!c->named) {\n"
         "\t\t\tTAILQ_REMOVE(&d->leaving, c, link);\n\t\t\tc->state = CLAIM_JOINING;\n"
         "\t\t\tc->join_tries = 100;\n\t\t\tdirectory_list(d, false);\n"
         "\t\t\tall->turns.breath = false;\n\t\t\treturn c;\n\t\t}\n"
         "\tc = claim_new(d, mode);\n\tc->tries = tries;\n\tc->watches = watches;\n\tdirectory_check(d);"),
        (
         "\tif (c->state == CLAIM_LEAVING) {\n\t\tclaim_send_delete(c);\n\t\treturn;\n\t}",
         "\tif (c->join_tries == 100)\n"
         "\t\tc->leave_op = send(c, EFFECT_ZK_DELETE, OPERATION_LEAVE);\n"
         "\tif (c->state == CLAIM_LEAVING) {\n\t\tclaim_send_delete(c);\n\t\treturn;\n\t}")], 3000),
    ("a list is trusted before a write was answered", [
        ("recovery begins with that answer. */\n\tpresence_beat(zk);\n", "proven. */\n\ts->proving = true;\n")], 20000),
    ("the counter of hand-offs begins anew at a reconnection", [
        (
         "\tc->leave_op = 0;\n\tclaim_forget_pred(c);",
         "\tc->leave_op = 0;\n\tc->handoffs = 0;\n\tclaim_forget_pred(c);")], 300),
    ("the token forgets the hand-offs", [
        ("token = (c->czxid << 10) | c->handoffs;", "token = c->czxid << 10;")], 100),
    ("a claim goes back only when a grant has ended", [
        (
         "\tif (!holders(lock) && give_back_held(lock, c))",
         "\tif (!holders(lock) && c->granted && give_back_held(lock, c))")], 5000),
    ("a next that nobody wants stays behind a claim that lingers", [
        (
         "\tif (!holders(lock) && give_back_held(lock, c))\n\t\treturn true;",
         "\tif (!holders(lock))\n\t\treturn give_back_held(lock, c);")], 3000, "readers"),
    ("a grant that lacked only the proof is not tried again", [
        ("\treturn changes | (!granted && session_grants(zk) ? SESSION_GRANTS : 0);", "\treturn changes;")], 1000),
    ("the entitlement of next is forgotten", [
        ("\tif (!ahead.any) {\n", "\tif (!ahead.any) {\n\t\tif (c == c->directory->next)\n\t\t\treturn;\n"),
        ("\tCLAIM_FOREACH(c, d)\n\t\tclaim_watched(", "\tCLAIM_FOREACH(c, d)\n\t\tif (c != d->next)\n\t\t\tclaim_watched("),
        ("LONG_WAIT_NS = 30000000000;", "LONG_WAIT_NS = 1000000000000000;")], 1500, "storm"),
    ("the hand-offs run past their ten bits", [
        (
         "\tif (c->handoffs >= CLAIM_HANDOFFS_MAX && mode_conflicts(c->granted_mode, mode))\n\t\treturn false;\n",
         "")], 1000, "storm"),
    ("next is granted past who stands between", [
        (
         "\tc->state = CLAIM_WAITING;\n\tnote(c, FLIGHT_claim_waiting);\n\tif (c->seq >= CONTENDER_WRAP_NEAR &&",
         "\tc->state = TAILQ_EMPTY(&c->directory->leaving) ? CLAIM_WAITING : CLAIM_HELD;\n"
         "\tnote(c, FLIGHT_claim_waiting);\n\tif (c->seq >= CONTENDER_WRAP_NEAR &&")], 300),
    ("the spent one is still held", [
        ("\tc->spent = c->withheld = true;\n", "\tc->spent = c->withheld = true;\n\td->claim->czxid = c->czxid;\n")],
     300, "spent"),
    ("a spent znode is forgotten", [
        ("\tif (!d->claim || d->claim->rivals || d->watch == WATCH_CONTENDED)\n\t\tclaim_release(d);\n", ""),
        ("\tclaim_release(d);\n\tdetach(c);\n", "\tdetach(c);\n")], 300, "spent"),
    ("a spent znode counts for good as on its way", [
        ("\tall->turns.breath = true;\n\tclaim_release(d);\n", "\tall->turns.breath = true;\n")], 300, "spent"),
    ("takes over although it was not right behind", [
        (" || claim_before(next) != c)", ")"),
        ("lock->rule->follows && nobody_waits(lock);", "lock->rule->follows;")], 1000, "spent, operator"),
    ("a claim is followed while somebody holds it", [
        ("c->state != CLAIM_HELD || holders(lock) || c->handoffs < CLAIM_HANDOFFS_MAX)",
         "c->state != CLAIM_HELD || c->handoffs < CLAIM_HANDOFFS_MAX)")], 300, "spent, operator"),
    ("a claim is followed before its tokens are used up", [
        ("holders(lock) || c->handoffs < CLAIM_HANDOFFS_MAX)",
         "holders(lock) || c->handoffs < CLAIM_NEXT_FROM)")], 300, "spent, operator"),
    ("the spent one goes when the next but one has come", [
        ("\tall->turns.breath = true;\n\tclaim_release(d);\n", "\tall->turns.breath = true;\n"),
        ("\tdirectory_check(d);\n\tsend_join(c);\n", "\tdirectory_check(d);\n\tsend_join(c);\n\tclaim_release(d);\n")], 1000, "spent, operator"),
    ("lingers although a list has shown who waits", [
        ("!lock->rule->lingers || c->rivals", "!lock->rule->lingers")], 300),
    ("who may not be seen is nobody that could be asked", [
        ("\tif (q->refused) {", "\tif (false) {")], 100, "refused"),
    ("a list sent before the delete tells what stands behind our own", [
        ("\tif (c->directory->wanted || c->directory->list_op > deleted)", "\tif (c->directory->list_op)"),
        ("LONG_WAIT_NS = 30000000000;", "LONG_WAIT_NS = 1000000000000000;")], 300),
    ("what waits behind our own is not listed when that goes", [
        ("\telse\n\t\tpred_gone(c);\n", "\telse\n\t\tclaim_forget_pred(c);\n"),
        ("LONG_WAIT_NS = 30000000000;", "LONG_WAIT_NS = 1000000000000000;")], 1000),
    ("the delete after a wait that ran out is forgotten", [
        (
         "\t\tif (head && !is_outdated(c, head->mode))\n\t\t\treturn false;",
         "\t\tif (head ? !is_outdated(c, head->mode) : c->state == CLAIM_WAITING)\n\t\t\treturn false;")], 1000),
    ("hand-offs without a bound", [
        ("\tif (c->contended >= locks->env->conf->handoff_max)\n\t\treturn false;\n", "")], 300),
    ("the first grant counts as a hand-off", [
        ("\tif (!c->granted)\n\t\treturn true;\n", "")], 300),
    ("nobody is known to wait, so nobody waits", [
        ("\treturn lock->directory.watch == WATCH_UNCONTENDED;", "\treturn lock->directory.watch != WATCH_CONTENDED;")], 1000),
    ("znodes under deletion do not count to the two", [
        (" || lock->directory.claim_count - claim_spent_count(&lock->directory) >= LOCK_ZNODES_MAX)", ")")], 300),
    ("the children watch is not armed again", [
        (
         "\tif (is_armed(d))\n"
         "\t\td->watch = d->watch_op ? WATCH_NONE : WATCH_FIRED;\n",
         "")], 1000),
    ("a vanished znode is not looked for in lists", [
        (
         "\tif (!own && (c->state == CLAIM_WAITING || c->state == CLAIM_HELD))\n",
         "\tif (!own && c->state == CLAIM_HELD)\n\t\treturn;\n\tif (!own && c->state == CLAIM_WAITING)\n")], 1000),
    ("a waiting claim is not looked for in lists", [
        ("\tif (!own && (c->state == CLAIM_WAITING || c->state == CLAIM_HELD))\n",
         "\tif (!own && c->state == CLAIM_WAITING && fits)\n\t\texamine_waiting(c, event);\n"
         "\telse if (!own && c->state == CLAIM_HELD)\n")], 1000),
    ("NONODE is no success for a delete", [
        ("\tif (code == ZK_OK || code == ZK_NONODE) {\n\t\tfollow_all(c, deleted);",
         "\tif (code == ZK_NONODE)\n\t\treturn;\n\tif (code == ZK_OK) {\n\t\tfollow_all(c, deleted);")], 1000),
    ("a delete of unknown outcome is not sent again", [
        ("\tc->leave_op = 0;\n\tclaim_forget_pred(c);", "\tclaim_forget_pred(c);"),
        ("\tc->leave_op = 0;\n\tif (code == ZK_OK", "\tif (code == ZK_OK")], 300),
    ("a create of unknown outcome counts as none", [
        ("\t} else if (c->state == CLAIM_JOINING) {\n\t\tc->state = CLAIM_UNSURE;", "\t} else {\n\t\tclaim_free(c);")], 3000),
    ("a list older than the create counts", [
        ("\tif (c->join_op > number || c->state", "\tif (c->state")], 10000),
    ("the youngest request first", [
        ("TAILQ_INSERT_TAIL(r->aside ? &r->lock->aside : &r->lock->requests, r, link);",
         "TAILQ_INSERT_HEAD(r->aside ? &r->lock->aside : &r->lock->requests, r, link);")], 100),
    ("granted without enough proof", [
        ("mode_covers(c->mode, r->mode) && session_grants(lock->locks->ensemble) &&", "mode_covers(c->mode, r->mode) &&")], 300),
    ("the grants outlive the proof", [
        ("\tif (zk->env->now_ns >= s->proof.safe_until_ns)\n\t\treturn enter(zk, SESSION_LOST);\n", ""),
        (
         "\tif (s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY)\n"
         "\t\tdue = min64(due, s->proof.safe_until_ns);\n",
         "")], 300),
    ("claims outlive their session", [
        ("\tTAILQ_FOREACH(lock, &b->locks.used, link)\n\t\tLOCK_DIRECTORIES(d, lock) {\n\t\t\tclaim_free_all(d);\n\t\t\tdirectory_touch(d);\n\t\t}\n", "")], 3000),
    ("the client library forgets the last zxid it has seen", [
        ("\tconn_leave(h, lose_up);\n\th->state = ZHANDLE_WAITING;",
         "\tconn_leave(h, lose_up);\n\th->zxid = 0;\n\th->state = ZHANDLE_WAITING;")], 3000),
    ("what an earlier daemon left is ended whoever lives", [
        ("\t\tif (zk->env->now_ns >= f->not_before_ns && past_may_end(zk))\n", "\t\tif (past_may_end(zk))\n")], 2000),
    ("what this daemon gives up is ended whoever was told", [
        ("former_add(zk, s->id, s->proof.told_ns);", "former_add(zk, s->id, INT64_MIN);")], 2000),
    ("a session that is given up is left to its timeout", [
        ("\tif (s->id)\n\t\tformer_add(zk, s->id, s->proof.told_ns);\n", "")], 5000),
    ("a session is given up when another one has replaced it", [
        ("session.c", "\tif (s->id)\n\t\tformer_add(zk, s->id, s->proof.told_ns);\n", "\tlate = s->id;\n"),
        ("session.c", "void session_open(", "static int64_t late;\nvoid session_open("),
        ("session.c", "\tif (fresh)\n\t\tbegin_session(zk, id);\n",
         "\tif (fresh)\n\t\tbegin_session(zk, id);\n\tif (late)\n\t\tformer_add(zk, late, zk->env->now_ns);\n\tlate = 0;\n")], 1000),
    ("what an earlier daemon left is taken for a rival", [
        ("\tif (former_find(zk, stat->owner)) {\n\t\tduplicate_forget(zk);\n\t} else if", "\tif"),
        ("} else if (stat->mzxid != p->mzxid) {", "} else {")], 2000),
    ("two writes of another session make a duplicate", [
        ("enum { DUPLICATE_WRITES = 3 };", "enum { DUPLICATE_WRITES = 2 };")], 40000, "late"),
    ("a holder is not in the table", [
        ("\tgrants_changed(client);\n\tlocks->env->stats", "\tlocks->env->stats")], 100),
    ("the loss is not told", [
        ("\toutcome_add(&locks->outcomes, &g->outcome, OUTCOME_LOST, g->client);\n", "")], 100),
    ("the end of a lease is not told", [
        (
         "\toutcome_add(&locks->outcomes, &g->outcome, OUTCOME_LOST, g->client);\n",
         "\tif (loss != LOSS_LEASE)\n\t\toutcome_add(&locks->outcomes, &g->outcome, OUTCOME_LOST, g->client);\n")], 100),
    ("the token after the end of a lease is not larger", [
        (
         "\tif (mode_conflicts(c->granted_mode, mode))\n\t\tc->handoffs++;",
         "\tif (mode_conflicts(c->granted_mode, mode) && (TAILQ_EMPTY(&lock->lost) ||\n"
         "\t    TAILQ_LAST(&lock->lost, grant_list)->loss != LOSS_LEASE))\n\t\tc->handoffs++;")], 100),
    ("a lease ends when somebody else wants the lock", [
        ("broker.c",
         "\t\tgrant_lose(container_of(t, struct grant, lease), LOSS_LEASE);\n",
         "\t\tif (container_of(t, struct grant, lease)->lock->request_count)\n"
         "\t\t\tgrant_lose(container_of(t, struct grant, lease), LOSS_LEASE);\n")], 100),
    ("a re-entry shortens the lease", [
        ("\telse if (lease_ns > grant_lease_rest_ns(g))\n", "\telse\n")], 100),
    ("a re-entry without a lease keeps that of before", [
        ("\tif (!lease_ns)\n\t\theap_unset(&g->lock->locks->env->timers, &g->lease);\n\telse if (lease_ns >",
         "\tif (lease_ns >")], 100),
    ("RENEW answers and does nothing", [
        ("cmd_lock.c", "\tgrant_renew(g, lease_ns);\n", "")], 100),
    ("VALID knows nothing of leases", [
        ("min64(left_ns, grant_lease_rest_ns(g));", "left_ns;")], 100),
    ("CANCEL answers 1 and the wait goes on", [
        ("\tif (r) {\n\t\trequest_end(r);\n\t\tc->", "\tif (r) {\n\t\tc->")], 100),
    ("a cancelled wait leaves its claim behind", [
        ("\t\trequest_end(r);\n\t\tc->locks->env->stats.cancelled",
         "\t\tstruct directory *d = &r->lock->directory;\n\t\tbool touched = d->touched;\n\n\t\trequest_end(r);\n\t\tif (!touched)\n\t\t\tdirectory_untouch(d);\n\t\tc->locks->env->stats.cancelled")], 1000),
    ("the end of a request is not looked at", [
        ("\t\tr->client->request = NULL;\n\tdirectory_touch(&lock->directory);\n", "\t\tr->client->request = NULL;\n")], 1000),
    ("a queued wait that ran out is not told", [
        ("\t\tnotify(c, \"timeout\", bytes_view(&lock->name));", "\t\t;")], 100),
    ("a queued wait that was granted is not told", [
        ("\t\ttell_queued(c, lock, number);", "\t\t;")], 100),
    ("a queued wait that failed is not told", [
        ("\t\tnotify(c, \"failed\", bytes_view(&lock->name), error_word(no.code), bytes_view(&no.sentence));", "\t\t;")], 300),
    ("two requests of one client for one name", [
        ("cmd_lock.c", "\tif (in_use && !ask_may(", "\tif (in_use && (call->grant || !call_request(call)) && !ask_may(")], 100),
    ("RESET and the end of a client leave the queued waits", [
        ("release.c", "|| !TAILQ_EMPTY(&c->requests) ||", "|| c->request ||"),
        ("\telse if (!TAILQ_EMPTY(&c->requests))\n\t\trequest_end(TAILQ_FIRST(&c->requests));",
         "\telse if (c->request)\n\t\trequest_end(c->request);")], 100),
    ("kazoo's directory is joined under Curator's tags", [
        ('{ "kazoo", "__lock__", "__rlock__" }', '{ "kazoo", "__WRIT__", "__READ__" }')], 1000),
    ("a writer is named as a mutex is", [
        ('{ "rw", "__WRIT__", "__READ__" }', '{ "rw", "lock-", "__READ__" }')], 1000),
    ("the name asked for takes in what the server adds", [
        ("\tc->adopting = true;\n", "\tc->name_len = name.len;\n\tc->adopting = true;\n")], 1000),
    ("an audit takes a claim's znode for a stray", [
        ("directory_find(h->locks->directories, p->path)\n\t};", "NULL\n\t};")], 300),
    ("an audit skips the first child", [
        ("for (size_t i = 0; i < event->zk_answered.count; i++)\n\t\t\texamine_child",
         "for (size_t i = 1; i < event->zk_answered.count; i++)\n\t\t\texamine_child")], 1000),
    ("an audit skips a directory", [
        ("if (znode.len && znode.data[0] == '.')", "if (znode.len && (znode.data[0] == '.' || znode.data[0] == 'o'))")], 1000),
    ("an audit ends before its deletes are answered", [
        ("if (a->state == AUDIT_CLEAR && h->ensemble->operations.first >= a->clear_op) {",
         "if (a->state == AUDIT_CLEAR) {"),
        ("a->counts.undeleted += (int64_t)h->locks->directories->stray_count;", "")], 3000),
    ("an MLOCK that ends keeps what it took", [
        ("\tlet_go(m);\n\tmlock_free(m);\n", "\tmlock_free(m);\n")], 300),
    ("an MLOCK that ends takes what was held before", [
        ("m->parts[i].held ? NULL : grant_of(", "grant_of(")], 300),
    ("a loss on the way of an MLOCK is not noticed", [
        ("\t\t\tset_again(m);\n", "")], 1000),
    ("a loss on the way of an MLOCK is told", [
        ("return !m->parts[i].held;", "return false;")], 1000),
    ("an MLOCK that begins again keeps what it has", [
        ("\t\tlet_go(m);\n\t\tbegin(m, true);", "\t\tbegin(m, true);")], 1000),
    ("an MLOCK that begins again goes on where it was", [
        ("\tm->at = 0;\n", "")], 1000),
    ("an MLOCK adds no level to what was held before", [
        ("\t\tif (m->parts[i].held)\n\t\t\tgrant_reenter", "\t\tif (false)\n\t\t\tgrant_reenter")], 300),
    ("an MLOCK has no lease", [
        ("\t\telse if (m->lease_ns)\n", "\t\telse if (false)\n")], 1000),
    ("what an MLOCK queued for before is part of it", [
        ("if (lock && !ask_may(", "if (lock && (grant_find(lock, c) || !request_find(lock, c)) && !ask_may(")], 1000),
    ("an MLOCK waits for ever for each", [
        ("\tif (m->until_ns != INT64_MAX)\n", "\tif (false)\n")], 1000),
    ("an MLOCK's request looks for no cycle", [
        ("if (!aside && !terms->queued && terms->wait_ns != 0 &&",
         "if (!aside && !terms->queued && terms->wait_ns != 0 && !client->mlock &&")],
     1000),
    ("MUNLOCK tells of no loss", [
        ("\t\tif (g)\n\t\t\tgrant_end(g);\n\t\treply_error(c, g ? ERROR_LOST", "\t\treply_error(c, g ? ERROR_LOST")], 1000),
    ("MUNLOCK takes all levels", [
        ("\t\tif (depths[i])\n", "\t\tif (false)\n")], 1000),
    ("CLIENT UNBLOCK of an MLOCK leaves it behind", [
        ("cmd_client.c", "\t\trequest_time_out(other->request);\n",
         "\t\trequest_end(other->request);\n\t\treply_nil(other);\n\t\tother->mlock = NULL;\n")], 1000),
    ("a LOCK that closes a cycle waits", [
        (" && deadlock_look(client, lock, terms, &ret->sentence)) {", " && false) {")], 300),
    ("a search goes on with marks of the walk before", [
        ("\ts->number = ++s->client->locks->last_search;\n", "\ts->number = s->client->locks->last_search += s->stage == CYCLE;\n")],
     6000, "permits standalone"),
    ("what has left the set of waits still ties its owner", [
        ("\t\tr->client->group->tied--;\n", "\t\t;\n")], 6000, "permits standalone"),
    ("a try is refused for a cycle", [
        ("if (!aside && !terms->queued && terms->wait_ns != 0 &&", "if (!aside && !terms->queued &&")], 1000),
    ("detection that is turned off goes on", [
        ("!c->locks->env->conf->deadlock_detection || ", "")], 1000),
    ("who asked before is not waited for", [
        ("return r == s->planned ? TAILQ_LAST(&r->lock->requests, request_list) : before(r);",
         "return NULL;")], 1000),
    ("readers wait for readers", [
        ("\treturn g && (r->lock->slots || mode_conflicts(g->mode, r->mode)) ? g : NULL;", "\treturn g;")], 1000),
    ("a reader is waited for by readers behind it", [
        ("mode_conflicts(r->mode, waits->mode) && meet(s, &how))", "meet(s, &how))")], 3000),
    ("the walk ends at any writer before", [
        ("r->mode == MODE_EXCLUSIVE && blocks(r) : is_met", "r->mode == MODE_EXCLUSIVE : is_met")], 3000),
    ("the walk ends at a reader before", [
        ("r->mode == MODE_EXCLUSIVE && blocks(r) : is_met", "blocks(r) : is_met")], 3000),
    ("a wait that has run out is followed", [
        ("return !r->queued && !r->expired && !r->aside && !r->client->closed;",
         "return !r->queued && !r->aside && !r->client->closed;")], 3000),
    ("who waits by ENQUEUE only is waited for by nobody", [
        ("c->grant_count == c->lost_count && !c->request_count", "c->grant_count == c->lost_count")], 3000),
    ("clients of one owner are strangers", [
        ("\tif (!met->group) {", "\tif (true) {")], 1000),
    ("an owner changes while something is held", [
        ("c->grant_count > c->lost_count || c->request_count", "c->request_count")], 1000),
    ("an owner changes while something is waited for", [
        ("c->grant_count > c->lost_count || c->request_count", "c->grant_count > c->lost_count")], 3000),
    ("RESET leaves the owner", [
        ("cmd_client.c", "\tgroup_leave(c);\n", "")], 3000),
    ("strays stay where a list shows them", [
        ("\t\t\tclaim_stray(d, child);\n", "")], 3000),
    ("one permit more than the limit", [
        ("children > (size_t)s->limit;", "children > (size_t)s->limit + 1;")], 100, "calm permits"),
    ("a permit counts before it is listed", [
        ("return permits(s, true) >= wanted(s)", "return permits(s, false) >= wanted(s)"),
        ("int64_t held = permits(s, true);", "int64_t held = permits(s, false);"),
    ], 100, "calm permits"),
    ("permits are granted without a proof", [
        ("permits(s, true) >= wanted(s) && session_grants(s->locks->ensemble);", "permits(s, true) >= wanted(s);"),
        ("c->state != CLAIM_HELD || !session_grants(s->locks->ensemble))\n\t\treturn;\n",
         "c->state != CLAIM_HELD)\n\t\treturn;\n")], 3000, "permits"),
    ("permits that nobody has stay", [
        ("\t\tleave(s, -missing);", "\t\tleave(s, 0);")], 100, "calm permits"),
    ("held permits leave before those that only wait", [
        ("for (int held = 0; held <= 1; held++)", "for (int held = 1; held >= 0; held--)")], 300, "calm permits"),
    ("nobody watches for room", [
        ("\t\tdirectory_arm(slots);", "\t\t;")], 100, "calm permits"),
    ("a semaphore whose data changed is not read again", [
        ("\tif (s->state == SEMAPHORE_UNKNOWN && directory_may_send(&s->lock->directory) &&",
         "\tif (s->state == SEMAPHORE_UNKNOWN && !s->limit && directory_may_send(&s->lock->directory) &&")], 300, "permits"),
    ("a limit that was overwritten is not said again", [
        ("\t\tpermit_limit_say(s, s->gathering);", "\t\t;")], 300, "permits, operator"),
    ("more permits leave the lease as it is", [
        ("\t\tgrant_extend(g, r->lease_ns);\n", "")], 300, "calm permits"),
    ("who waits for more is not told that it has lost what it had", [
        ("\ttell_losses(s);\n\tlock_ledger_keep", "\tlock_ledger_keep")], 300, "calm permits"),
    ("who is before it in line for permits keeps it waiting", [
        ("\treturn s->stage == CYCLE;\n", "\treturn false;\n")], 3000, "calm permits"),
    ("whoever has permits is waited for", [
        ("s->left < waits->count", "s->left < waits->limit")], 1000, "permits standalone"),
    ("nobody is waited for in line for permits", [
        ("\tif (client_tied(s, r->client))\n\t\treturn true;\n\tif (owner_tied(s, r->client)) /*", "\tif (false) /*")], 3000, "permits standalone"),
    ("no deadlock through permits is seen", [
        ("\tif (s->cut || !s->permits)\n", "\tif (true)\n")], 1000, "permits standalone"),
    ("an ACQUIRE looks for no deadlock", [
        ("if (!aside && !terms->queued && terms->wait_ns != 0 &&",
         "if (!aside && !terms->queued && terms->wait_ns != 0 && terms->kind != KIND_SEMAPHORE &&")], 1000, "permits standalone"),
    ("a semaphore's queue near its last numbers is joined again and again", [
        ("\tif (d->part && !d->czxid)\n\t\td->czxid = event->zk_answered.stat.czxid;\n", "")], 1000,
     "near the wrap"),
    ("permits taken by force are only asked for", [
        ("\tgrant_lose(g, LOSS_FORCED);", "\tif (!g->lock->slots)\n\t\tgrant_lose(g, LOSS_FORCED);")],
     300, "calm permits"),
    ("AUDIT does not look into semaphores", [
        ("\t\tadd_name(a, FLAVOUR_MUTEX, p->name, \"/locks\");\n\t\tadd_name(a, FLAVOUR_SLOTS, p->name, \"/leases\");\n", "")], 10000, "permits, operator"),
    ("a letter is acted upon when it is read, deleted or not", [
        ("\t\tif (code == ZK_OK)\n\t\t\ttake_letter(h, id, bytes_view(&m->data));\n", ""),
        ("\t\tget_answered(h, event);\n\t} else {\n",
         "\t\tget_answered(h, event);\n\t\tif (event->zk_answered.code == ZK_OK)\n"
         "\t\t\ttake_letter(h, slice_of(m->sorted[m->done]), bytes_view(&m->data));\n\t} else {\n")], 2000, "refused"),
    ("who loses a lock by force is not told", [
        ("\tgrant_lose(g, LOSS_FORCED);\n", "\tgrant_end(g);\n")], 100),
    ("the znode is deleted although the owner answered", [
        ("\tif (holders == REVOKE_NOT_MINE)", "\tif (true)")], 1000),
    ("the znode is deleted and nobody is asked", [
        ("\t\tif (t->host.len) {\n\t\t\task(", "\t\tif (t->host.len && !is_forced(d)) {\n\t\t\task(")], 300),
    ("a letter that was never answered stays in its box", [
        ("\t\tletter_withdraw(container_of(t, struct letter, timer));\n", "")], 3000),
    ("the mailbox is not watched again", [
        ("\tif (h->inbox.state == INBOX_WATCHING) {\n\t\tinbox_list(h);\n",
         "\tif (h->inbox.state == INBOX_WATCHING) {\n\t\treturn true;\n")], 1000),
    ("what comes while the mailbox is read is overlooked", [
        ("\tif (m->again) {", "\tif (false) {")], 5000),
    ("a mailbox that is gone is not made anew", [
        ("m->tries++ < TRIES_MAX) {\n\t\tmake(h);", "m->tries++ < TRIES_MAX) {\n\t\trest(h);")], 5000),
    ("a session that ends within its proof costs nobody anything", [
        ("\treturn s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY ? enter(zk, SESSION_LOST) : 0;", "\treturn 0;"),
        ("\tproof_forget(&s->proof);\n\ts->announced = false;\n", "\ts->announced = false;\n")], 1000),
    ("a leader is told before its data are acknowledged", [
        ("has_begun(head, c) &&\n\t    head->proclamation.state == PROCLAMATION_DONE)", "has_begun(head, c))")], 300),
    ("a proclamation of unknown outcome counts as done", [
        ("\tif (code == ZK_OK) {\n\t\tr->proclamation", "\tif (code == ZK_OK || code == ZK_UNKNOWN) {\n\t\tr->proclamation")], 3000),
    ("a proclamation of unknown outcome is not written again", [
        ("\telse if (head->proclamation.state == PROCLAMATION_AGAIN)", "\telse if (false)")], 3000),
    ("who is proclaimed takes no number", [
        ("send(head, c, claims_take_token(lock, c, head->mode, false));",
         "send(head, c, (c->czxid << 10) | c->handoffs);")], 300),
    ("a claim goes back while its data are being written", [
        ("\t.serves_soon = may_proclaim,\n", "")], 300),
    ("an election lingers", [
        ("!lock->rule->lingers || c->rivals", "c->rivals")], 1000),
    ("observers look no more after a reconnection", [
        ("if (d->claim_count || lock->observer_count)", "if (d->claim_count)"),
        ("\t.suspended = observe_suspended,\n", "")], 1000),
    ("what changes while the first is read is forgotten", [
        ("o->state = o->old ? OBSERVE_IDLE : OBSERVE_KNOWN;", "o->state = OBSERVE_KNOWN;"),
        ("\t} else if (code != ZK_NONODE && code != ZK_UNKNOWN) {\n\t\tdirectory_pause(&lock->directory);",
         "\t} else if (code == ZK_NONODE) {\n\t\to->state = OBSERVE_KNOWN;\n\t} else if (code != ZK_UNKNOWN) {\n"
         "\t\tdirectory_pause(&lock->directory);")], 3000),
    ("observers are told what they know", [
        ("\tif (o->known && o->token == token)\n\t\treturn;\n", ""),
        ("\treturn o->told && o->token == observation_of(o->lock)->token;", "\treturn false;")], 300),
    ("a claim's list is not made again while the directory is read for an observer", [
        ("(d->state == DIRECTORY_UNKNOWN || d->state == DIRECTORY_ASKED) && d->claim",
         "d->state == DIRECTORY_UNKNOWN && d->claim")], 8000),
    ("a client that is gone stays among those to be closed", [
        ("\tif (c->closing && !c->closed)\n\t\tTAILQ_REMOVE(&locks->closing, c, closing_link);\n", "")], 10000, "anything"),
    ("who is closed by what another lets go of is closed with the next event", [
        ("while (!TAILQ_EMPTY(&b->locks.closing));", "while (false);")], 1500, "anything"),
    ("a name that changes its kind is thought to be what it was", [
        ("lock.c", "\tlock->directory.state = DIRECTORY_UNKNOWN;\n\tlock_ledger_write", "\tlock_ledger_write")], 300, "anything"),
    ("an election that turns out to be none is observed", [
        ("facts & FACT_FAILED && f->failed == FAILED_ALL", "false")], 300, "anything"),
    ("an MLOCK that ends keeps what it took, whatever is asked", [
        ("\tlet_go(m);\n\tmlock_free(m);\n", "\tmlock_free(m);\n")], 300, "anything"),
    ("a LOCK that closes a circle waits, whatever is asked", [
        (" && deadlock_look(client, lock, terms, &ret->sentence)) {", " && false) {")], 300, "anything"),
    ("a leader's data are not waited for by observers of another host", [
        ("\telse if (o->state == OBSERVE_KNOWN)\n\t\to->state = OBSERVE_IDLE;\n", "")], 300, "anything"),
    ("what the connection holds is entered again unasked", [
        ("o->given & OPTION_REENTER, &no)", "kind == KIND_LOCK, &no)")], 100),
    ("that it is held is answered before a loss is told", [
        ("\telse if (g && g->lost)\n\t\t*ret = refusal_lost", "\telse if (g && g->lost && reenter)\n\t\t*ret = refusal_lost")], 300),
    ("a leader campaigns again", [
        ("o->given & OPTION_REENTER, &no)", "o->given & OPTION_REENTER || kind == KIND_ELECTION, &no)")], 300),
    ("an MLOCK enters again unasked", [
        ("&terms, m->reenter, ret)", "&terms, true, ret)")], 300),
    ("an MLOCK tells that one is held before the loss of another", [
        ("\t\tif (!g || !g->lost)\n\t\t\tcontinue;",
         "\t\tif (!m->reenter && g && !g->lost) {\n\t\t\t*ret = refusal_of(ERROR_HELD, \"held\");\n\t\t\treturn true;\n\t\t}"
         "\n\t\tif (!g || !g->lost)\n\t\t\tcontinue;")], 3000),
    ("an MLOCK takes those before the one that is held", [
        ("&terms, m->reenter, ret)", "&terms, true, ret)"),
        ("\twhile (m->at < m->count && m->parts[m->at].held)\n\t\tm->at++;",
         "\twhile (m->at < m->count && m->parts[m->at].held) {\n\t\tif (!m->reenter) {\n"
         "\t\t\tno = refusal_of(ERROR_HELD, \"held\");\n\t\t\trefuse(m, &no);\n\t\t\treturn;\n\t\t}\n\t\tm->at++;\n\t}")], 1000),
    ("an MLOCK keeps those before the one that is held", [
        ("&terms, m->reenter, ret)", "&terms, true, ret)"),
        ("\twhile (m->at < m->count && m->parts[m->at].held)\n\t\tm->at++;",
         "\twhile (m->at < m->count && m->parts[m->at].held) {\n\t\tif (!m->reenter) {\n"
         "\t\t\tno = refusal_of(ERROR_HELD, \"held\");\n\t\t\tmlock_free(m);\n\t\t\trefusal_reply(c, &no);\n\t\t\treturn;"
         "\n\t\t}\n\t\tm->at++;\n\t}")], 1000),
    ("who does not read is asked without end", [
        ("notify_full(g->client) || notify_unresponsive(g->client)", "notify_full(g->client)")], 300, "anything"),
    ("who has read is not known to have", [
        ("client_of(b, event->conn)->revoke_bytes = 0;", "(void)event;")], 300, "anything"),
    ("a release is not in the log", [
        ("\tif (!g->lost && (!g->slot || ", "\tif (false && (!g->slot || ")], 100, "anything"),
    ("a lost grant is in the log as released, too", [
        ("\tif (!g->lost && (!g->slot || ", "\tif ((!g->slot || ")], 100, "anything"),
    ("a loss is not in the log", [
        ("\thold_say(g, LOG_EVENT_lost, loss_word(loss), g->depth);\n", "")], 100, "anything"),
    ("permits of a hold that goes on end it in the log", [
        ("h.over = why && count == g->depth;", "h.over = why != NULL;")], 100, "anything"),
    ("long wait: none is in the log", [
        ("\thold_watch_wait(r);\n", "")], 100, "anything"),
    ("long wait: a shorter one is in the log", [
        ("r->asked_ns + long_ns);", "r->asked_ns + long_ns / 2);")], 100, "anything"),
    ("long wait: it is in the log each second", [
        ("LOG_EVENT_waits, NULL);\n",
         "LOG_EVENT_waits, NULL), heap_set(&locks->env->timers, t, locks->env->now_ns + NS_PER_S);\n")], 100, "anything"),
    ("long wait: its end is not in the log", [
        ("\tr->said = true;\n", "")], 100, "anything"),
    ("long wait: the end of a shorter one is in the log", [
        ("\tif (r->said)\n\t\tsay_wait(", "\tif (r->client)\n\t\tsay_wait(")], 100, "anything"),
    ("long wait: one event says more than it may", [
        ("all_in_pieces ? 1 : SAID_MAX));", "all_in_pieces ? 2 : SAID_MAX));")], 300, "anything"),
    ("long wait: what one event may not say is not said", [
        ("\t\theap_set(&locks->env->timers, t, locks->env->now_ns + later_ms * NS_PER_MS);\n", "\t\t;\n")], 300, "anything"),
    ("long wait: a snapshot forgets that it is in the log", [
        ("\tFIELD_FLAG(struct request, \"said\", said),\n", "")], 100, "snapshots, anything"),
    ("long wait: a snapshot forgets when one is long", [
        ("\tentry_due(&w, \"age\", &r->age);\n", "")], 100, "snapshots, anything"),
    ("a try takes an idle claim for a held one", [
        ("return c->contested || c->in_use || ", "return c->listed || ")], 300, "tries"),
    ("a claim whose data say that it is held lingers", [
        ("\tif (c->tried || c->says_held)\n", "\tif (c->tried)\n")], 3000),
    ("every broker's znode is in use", [
        ("return !record_is_ours(data) || ", "return true || ")], 4000, "tries"),
    ("whoever waits does so with a try's znode", [
        (" || (c->tries && !lock_is_tried(c->directory->lock)))", ")")], 3000),
    ("what was seen of a znode is believed after its event", [
        ("\tsighting_forget(d, child);\n", "")], 3000, "tries"),
    ("what was seen of a znode is believed after its event, and for longer", [
        ("d->directories->env->now_ns >= seen->until_ns", "false"), ("\tsighting_forget(d, child);\n", "")], 300,
     "tries"),
    ("another configuration is not used", [
        ("\t\tb->env.conf = event->conf.now;\n", "")], 300, "reloads"),
    ("the budget goes on with the limits of the configuration before", [
        ("broker.c", "\t\tbudget_limits(&b->env, &b->ensemble.budget);\n", "")], 1000, "reloads"),
    ("a drained daemon lets requests wait", [
        ("\tif (env_halts(locks->env))\n\t\treturn refuse(", "\tif (locks->env->stopping)\n\t\treturn refuse(")], 300, "anything"),
    ("a drain leaves those that wait", [
        ("\tend_requests(locks);\n", "\tif (locks->env->stopping)\n\t\tend_requests(locks);\n")], 300, "anything"),
    ("who goes on after a kill does not know that the daemon is drained", [
        ("\tledger_draining(locks->env->ledger, draining);\n", "")], 300, "anything"),
] + (ACCOUNTS + SCAN + DELEGATIONS + KILLS + KINDS + PLACES + PROCESSES + PROOFS + READERS + RESTORES + RULES + SCRIPTS +
     SECOND + SERVERS + SNAPSHOTS)
