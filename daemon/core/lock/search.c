/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/search.h"

#include "core/lock/locks.h"

static bool is_mark(const struct search *s, uint64_t mark)
{
	return mark && (mark == s->number || mark == s->knot);
}

bool search_has(const struct search *s, const struct request *r)
{
	return is_mark(s, r->search[s->later]);
}

void search_untie(struct search *s, struct request *r)
{
	r->search[s->later] = 0;
	if (r->client->group)
		r->client->group->tied[s->later]--;
}

/* Whatever its mark: one that has left the set is still a step. */
static struct search_step *step_of(struct search *s, const struct request *r)
{
	return r->step < s->count && s->steps[r->step].request == r ? &s->steps[r->step] : NULL;
}

void search_loosen(struct locks *locks, const struct client *c)
{
	struct search *s = &locks->search;
	struct search_step *step;

	if (!s->client)
		return;
	if (c->request && search_has(s, c->request)) {
		s->loosened = true;
		step = step_of(s, c->request);
		if (step)
			step->loosened = true;
	}
	if (c->group && (c->group == s->client->group || is_mark(s, c->group->search[s->later])))
		s->loosened = s->group_loosened = true;
}

void search_leave_request(struct locks *locks, struct request *r)
{
	struct search *s = &locks->search;
	struct search_step *step;

	if (!s->client)
		return;
	search_loosen(locks, r->client);
	if (s->line == r)
		s->line = TAILQ_PREV(r, request_list, link);
	if (s->asked == r)
		s->asked = NULL;
	step = step_of(s, r);
	if (!step)
		return;
	step->request = NULL;
	if (s->stage != SEARCH_UNTIE && step->relied && r->step >= s->at)
		s->missed = true;
	if ((s->stage == SEARCH_GATHER || s->stage == SEARCH_UNTIE) && search_has(s, r))
		search_untie(s, r);
}

void search_leave_grant(struct locks *locks, const struct grant *g)
{
	struct search *s = &locks->search;

	if (!s->client)
		return;
	search_loosen(locks, g->client);
	if (s->holder == g)
		s->holder = TAILQ_NEXT(g, link);
}

void search_leave_group(struct locks *locks, const struct client *c)
{
	struct search *s = &locks->search;

	if (!s->client)
		return;
	search_loosen(locks, c);
	if (s->member == c)
		s->member = TAILQ_NEXT(c, group_link);
}
