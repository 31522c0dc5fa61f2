/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/revoke.h"

#include "core/claim/rollover.h"
#include "core/client/notify.h"
#include "core/client/tell.h"
#include "core/hosts/hosts.h"
#include "core/hosts/participant.h"
#include "core/kind/semaphore.h"
#include "core/znode/record.h"
#include "protocol/name.h"

/* Asked faster than it reads, a client would be closed and lose what it holds: no other client may cause that. */
static const int64_t ASK_EVERY_NS = 1000000000;

bool revoke_reason_valid(struct slice reason)
{
	return reason.len > 0 && reason.len <= REVOKE_REASON_MAX && name_is_text(reason);
}

struct revoker revoke_by(const struct client *c)
{
	return (struct revoker){
		.host = slice_of(c->locks->env->conf->host),
		.command = bytes_view(&c->comm),
		.client = bytes_view(&c->name),
		.uid = c->uid,
		.pid = c->pid,
	};
}

int64_t revoke_ask(struct lock *lock, struct slice reason)
{
	int64_t count = 0;
	struct grant *g;

	if (!lock)
		return 0;
	TAILQ_FOREACH(g, &lock->grants, link) {
		bool asked = g->asked_back_ns && lock->locks->env->now_ns - g->asked_back_ns < ASK_EVERY_NS;

		if (!asked && (notify_full(g->client) || notify_unresponsive(g->client)))
			continue;
		count++;
		if (asked)
			continue;
		g->asked_back_ns = lock->locks->env->now_ns;
		notify_revoke(g->client, g, reason);
		lock->locks->env->stats.revokes_total++;
	}
	return count;
}

/* A log does not tell the session in it: what follows that is the letter's as well. */
static struct slice shown(struct slice id)
{
	const char *dash = memrchr(id.data, '-', id.len);

	return dash ? (struct slice){ dash + 1, (size_t)(id.data + id.len - dash - 1) } : id;
}

void revoke_log(struct hosts *h, struct slice name, int64_t holders, const struct revoker *by, struct slice id)
{
	struct bytes *out = &h->env->out->arena;

	bytes_format(out, "lock %n taken by force from %d holders, for uid %d, pid %d (%q", name, holders, by->uid,
		     by->pid, by->command);
	if (by->client.len)
		bytes_format(out, ", %q", by->client);
	bytes_format(out, ") of host %q", by->host);
	if (id.len)
		bytes_format(out, ", letter %q", shown(id));
	effects_log(h->env->out, EFFECT_LEVEL_WARNING, LOG_EVENT_forced,
		    EFFECT_FIELDS("name=%v holders=%d by_uid=%d by_pid=%d by_command=%v by_host=%v", name, holders,
				  by->uid, by->pid, by->command, by->host));
}

int64_t revoke_force(struct lock *lock)
{
	int64_t count = lock ? (int64_t)lock->grant_count : 0;

	if (!count)
		return 0;
	grant_lose_all(lock, LOSS_FORCED);
	tell_outcomes(lock->locks); /* before the answer and the log line */
	lock->locks->env->stats.forced_total += (uint64_t)count;
	directory_touch(lock_held(lock));
	return count;
}

/* ---- by letter ---- */

static bool is_for_us(const struct hosts *h, struct slice data)
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
	    !rollover_keeps_out(&lock->directory, znode))
		return NULL;
	return lock;
}

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

static void force_received(struct hosts *h, struct slice id, struct slice data)
{
	struct revoker by = {
		.host = record_get(data, "from"),
		.command = record_get(data, "command"),
		.client = record_get(data, "client"),
		.uid = participant_number(data, "uid", -1),
		.pid = participant_number(data, "pid", -1),
	};
	struct slice name = record_get(data, "name");
	int64_t holders = REVOKE_NOT_MINE;

	if (!letter_host_valid(by.host) || !name_valid(name)) {
		h->env->stats.mail_ignored_total++;
		return;
	}
	if (is_for_us(h, data)) {
		holders = revoke_force(meant(h, data));
		revoke_log(h, name, holders, &by, id);
	}
	answer(h, by.host, id, holders);
}

void revoke_received(struct hosts *h, enum letter_kind kind, struct slice id, struct slice data)
{
	struct slice reason = record_get(data, "reason");

	if (kind == LETTER_FORCE)
		force_received(h, id, data);
	else if (is_for_us(h, data) && revoke_reason_valid(reason))
		revoke_ask(meant(h, data), reason);
	else
		h->env->stats.mail_ignored_total++;
}
