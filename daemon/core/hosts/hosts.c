/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/hosts.h"

#include "core/hosts/query_reply.h"
#include "core/hosts/revoke.h"
#include "core/znode/record.h"
#include "protocol/number.h"

void hosts_init(struct hosts *h)
{
	TAILQ_INIT(&h->queries);
	TAILQ_INIT(&h->letters);
	TAILQ_INIT(&h->audit.served);
	TAILQ_INIT(&h->audit.queued);
	inbox_init(h);
}

void hosts_deinit(struct hosts *h)
{
	outbox_forget_all(h);
	inbox_deinit(h);
	audit_deinit(h);
}

void hosts_connected(struct hosts *h)
{
	inbox_list(h);
	outbox_connected(h);
}

void hosts_suspended(struct hosts *h)
{
	inbox_suspended(h);
	revocation_suspended(h);
}

/* Most often nothing is under way. */
void hosts_continue(struct hosts *h)
{
	struct query *q;

	if (h->inbox.state != INBOX_READING && TAILQ_EMPTY(&h->queries) && audit_is_idle(&h->audit))
		return;
	inbox_continue(h);
	while ((q = query_finished(h)))
		if (q->revocation)
			revocation_found(q->revocation);
		else
			query_reply(q);
	audit_continue(h);
}

/* False: it is not an answer to a letter of ours. */
static bool take_answer(struct hosts *h, struct slice data)
{
	struct slice id = record_get(data, "re");
	int64_t holders;

	if (!number_parse(record_get(data, "holders"), &holders))
		return false;
	outbox_was_read(h, id);
	revocation_answered(h, id, holders);
	return true;
}

static void take_letter(struct hosts *h, const struct inbox_letter *l)
{
	struct slice kind = record_get(l->data, "kind");

	h->env->stats.mail_received_total++;
	if (slice_is(kind, letter_kind_word(LETTER_REVOKE)))
		revoke_received(h, LETTER_REVOKE, l->id, l->data);
	else if (slice_is(kind, letter_kind_word(LETTER_FORCE)))
		revoke_received(h, LETTER_FORCE, l->id, l->data);
	else if (!slice_is(kind, letter_kind_word(LETTER_ANSWER)) || !take_answer(h, l->data))
		h->env->stats.mail_ignored_total++;
}

void hosts_inbox_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	struct inbox_letter letter;

	if (!inbox_answered(h, op, event, &letter))
		return;
	take_letter(h, &letter);
	inbox_continue(h);
}

void hosts_outbox_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	struct letter_news news = outbox_answered(h, op, event);

	if (news.target)
		revocation_letter(&news);
}
