/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/hosts.h"

#include "core/hosts/answer.h"
#include "core/hosts/scan.h"
#include "core/hosts/query_reply.h"

void hosts_init(struct hosts *h)
{
	accounts_set_total(&h->env->accounts, POOL_LETTERS, LETTER_REVOKES_MAX);
	TAILQ_INIT(&h->queries);
	TAILQ_INIT(&h->letters);
	TAILQ_INIT(&h->forwards);
	TAILQ_INIT(&h->audit.served);
	TAILQ_INIT(&h->audit.queued);
	letter_tasks_init(&h->letter_tasks);
	inbox_init(h);
}

void hosts_deinit(struct hosts *h)
{
	letter_tasks_deinit(h);
	outbox_forget_all(h);
	inbox_deinit(h);
	audit_deinit(h);
}

void hosts_move(struct hosts *h)
{
	struct query *q;

	TAILQ_FOREACH(q, &h->queries, link)
		if (!q->known) {
			answer_end(q->answer);
			scan_restart(q->scan);
		}
	query_move_all(h);
}

void hosts_suspended(struct hosts *h)
{
	inbox_suspended(h);
	letter_tasks_finish(h);
	revocation_suspended(h);
	forward_suspended(h);
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

void hosts_outbox_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	struct letter_news news = outbox_answered(h, op, event);

	if (news.target)
		revocation_letter(&news);
	else if (news.forward)
		forward_letter(news.forward, news.fate);
}
