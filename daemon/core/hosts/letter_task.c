/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/letter_task.h"

#include "base/mem.h"
#include "core/hosts/hosts.h"
#include "core/hosts/participant.h"
#include "core/znode/record.h"
#include "protocol/name.h"

/* ---- what a letter means ---- */

bool letter_task_is_for_us(const struct hosts *h, struct slice data)
{
	struct bytes session = { 0 };
	bool same;

	bytes_format(&session, "%x", h->ensemble->session.id);
	same = slice_eq(record_get(data, "to"), bytes_view(&session));
	bytes_free(&session);
	return same;
}

/* One of the permits that this host had when the letter was written is still there; `znode` was the last of them. */
static bool has_older(const struct directory *slots, struct slice znode)
{
	struct contender last, one;
	const struct claim *c;

	if (!contender_parse(znode, FLAVOUR_SLOTS, &last))
		return false;
	TAILQ_FOREACH(c, &slots->slots, link)
		if (c->state == CLAIM_HELD && contender_parse(slice_of(c->name), FLAVOUR_SLOTS, &one) &&
		    contender_before(&one, &last))
			return true;
	return false;
}

/*
 * The lock whose grants rest on the znode that the letter names: later grants on another znode are not meant. A host's
 * permits are alike, and no client's permit rests on a certain lease: all are meant, or none.
 */
static struct lock *meant(struct hosts *h, struct slice data)
{
	struct slice name = record_get(data, "name"), znode = record_get(data, "znode");
	struct lock *lock = name_valid(name) ? lock_find(h->locks, name) : NULL;

	if (lock && lock->slots)
		return has_older(lock->slots, znode) ? lock : NULL;
	if (!lock || !lock->directory.claim || lock->directory.claim->state != CLAIM_HELD ||
	    !claim_keeps_out(&lock->directory, znode))
		return NULL;
	return lock;
}

/* ---- the answer ---- */

static void answer(struct hosts *h, struct slice host, struct slice id, int64_t holders)
{
	struct bytes *data = operation_data(h->ensemble);

	if (!outbox_room(h, LETTER_ANSWER, NULL, 1)) {
		h->env->stats.limits_total++;
		return;
	}
	record_begin(data);
	bytes_format(data, "kind=%s\nfrom=%s\n", letter_kind_word(LETTER_ANSWER), h->env->conf->host);
	bytes_format(data, "re=%s\nholders=%d\n", id, holders);
	outbox_post(h, host, NULL);
}

static struct revoker by(struct slice data)
{
	return (struct revoker){
		.host = record_get(data, "from"),
		.command = record_get(data, "command"),
		.client = record_get(data, "client"),
		.uid = participant_number(data, "uid", -1),
		.pid = participant_number(data, "pid", -1),
	};
}

/* ---- done ---- */

void letter_tasks_init(struct letter_tasks *e)
{
	TAILQ_INIT(&e->list);
	work_user_init(&e->worker);
}

static void forget(struct letter_task *e)
{
	work_drop(&e->hosts->env->works, &e->work);
	TAILQ_REMOVE(&e->hosts->letter_tasks.list, e, link);
	e->hosts->letter_tasks.count--;
	revoke_end(&e->revoke);
	bytes_free(&e->id);
	bytes_free(&e->data);
	mem_free(e);
}

static void finish(struct letter_task *e)
{
	struct slice data = bytes_view(&e->data);
	struct revoker who = by(data);
	struct hosts *h = e->hosts;

	if (e->revoke.forced) {
		revoke_log(h, record_get(data, "name"), e->revoke.count, &who, bytes_view(&e->id));
		if (h->ensemble->session.connected)
			answer(h, who.host, bytes_view(&e->id), e->revoke.count);
	}
	forget(e);
}

/* Whoever holds it then is meant. True: it is done. */
static bool start(struct letter_task *e)
{
	struct slice data = bytes_view(&e->data);

	return revoke_begin(&e->revoke, e->hosts->locks, meant(e->hosts, data), record_get(data, "reason"));
}

static bool some(struct letter_task *e, int64_t most, int64_t *steps)
{
	if (!e->revoke.locks && start(e))
		return true;
	return revoke_some(&e->revoke, record_get(bytes_view(&e->data), "reason"), most, steps);
}

int64_t letter_task_continue(struct letter_task *e, int64_t steps)
{
	int64_t done = 0;

	if (some(e, e->hosts->env->conf->all_in_pieces ? 1 : steps, &done))
		finish(e);
	return done ? done : WORK_TURN_STEPS;
}

void letter_tasks_finish(struct hosts *h)
{
	struct letter_task *e;
	int64_t steps = 0;

	while ((e = TAILQ_FIRST(&h->letter_tasks.list))) {
		some(e, INT64_MAX, &steps);
		finish(e);
	}
}

void letter_tasks_deinit(struct hosts *h)
{
	while (!TAILQ_EMPTY(&h->letter_tasks.list))
		forget(TAILQ_FIRST(&h->letter_tasks.list));
}

/* ---- received ---- */

static void begin(struct hosts *h, bool forced, struct slice id, struct slice data)
{
	struct letter_task *e = mem_new(sizeof(*e));
	int64_t steps = 0;
	bool over;

	e->work.kind = WORK_LETTER_TASK;
	e->hosts = h;
	e->revoke.forced = forced;
	bytes_slice(&e->id, id);
	bytes_slice(&e->data, data);
	TAILQ_INSERT_TAIL(&h->letter_tasks.list, e, link);
	h->letter_tasks.count++;
	/* Those before it go first. */
	over = (TAILQ_EMPTY(&h->letter_tasks.worker.items) && start(e)) ||
	       (h->letter_tasks.count > LETTER_TASKS_MAX && some(e, INT64_MAX, &steps));
	if (over)
		finish(e);
	else
		work_add(&h->env->works, &h->letter_tasks.worker, &e->work);
}

static void force_received(struct hosts *h, struct slice id, struct slice data)
{
	struct revoker who = by(data);

	if (!letter_host_valid(who.host) || !name_valid(record_get(data, "name"))) {
		h->env->stats.mail_ignored_total++;
	} else if (letter_task_is_for_us(h, data)) {
		begin(h, true, id, data);
	} else {
		answer(h, who.host, id, REVOKE_NOT_MINE);
	}
}

void letter_task_received(struct hosts *h, enum letter_kind kind, struct slice id, struct slice data)
{
	if (kind == LETTER_FORCE)
		force_received(h, id, data);
	else if (letter_task_is_for_us(h, data) && revoke_reason_valid(record_get(data, "reason")))
		begin(h, false, id, data);
	else
		h->env->stats.mail_ignored_total++;
}
