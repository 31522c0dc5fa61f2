/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_budget.h"

#define NS_PER_DAY (INT64_C(86400) * 1000000000)

void log_budget_set(struct log_budget *b, int64_t bytes_per_day)
{
	b->every_ns = NS_PER_DAY / bytes_per_day * LOG_ENTRY_BYTES;
}

static void forget(struct log_budget *b, size_t i)
{
	b->accounts[i] = b->accounts[--b->count];
}

/* The places that have come back until now. */
static void come_back(struct log_budget *b, int64_t now_ns)
{
	int64_t places = (now_ns - b->back_ns) / b->every_ns;

	if (!b->used || places > LOG_BUDGET_IMPORTANT)
		b->back_ns = now_ns;
	else
		b->back_ns += places * b->every_ns;
	for (; places > 0 && b->used; places--) {
		struct log_budget_account *a;

		if (b->next >= b->count)
			b->next = 0;
		a = &b->accounts[b->next];
		b->used--;
		if (--a->used)
			b->next++;
		else
			forget(b, b->next);
	}
}

/* NULL: it has no places. The last one stands for all that find no room. */
static struct log_budget_account *find(struct log_budget *b, const struct log_budget_account *who)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->accounts[i].uid == who->uid && b->accounts[i].unit_hash == who->unit_hash)
			return &b->accounts[i];
	return b->count == LOG_BUDGET_ACCOUNTS ? &b->accounts[b->count - 1] : NULL;
}

bool log_budget_pass(struct log_budget *b, const struct log_account *account, bool important, int64_t now_ns)
{
	struct log_budget_account who = { .uid = account->uid, .unit_hash = log_unit_hash(account->unit) }, *a;
	uint32_t places = important ? LOG_BUDGET_IMPORTANT : LOG_BUDGET_LINES;

	come_back(b, now_ns);
	a = find(b, &who);
	if (b->used >= places || (a && a->used >= (places - (b->used - a->used)) / 5 * 4))
		return false;
	if (!a) {
		a = &b->accounts[b->count++];
		*a = who;
	}
	a->used++;
	b->used++;
	return true;
}
