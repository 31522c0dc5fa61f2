/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/lasting.h"

#include <string.h>

#include "base/mem.h"
#include "core/claim/directories.h"
#include "core/port/entry.h"

enum { UNIT_LENGTH_MAX = 4096 };

/* Far more than any limit. A snapshot may not contain more, so that sums do not overflow. */
static const int64_t COUNT_MAX = INT64_C(1) << 32;

uint64_t lasting_count(const struct directories *all)
{
	return all->env->accounts.pools[POOL_LASTING].used;
}

static void record(const struct directories *all)
{
	ledger_lasting(all->env->ledger, lasting_count(all));
}

static struct lasting *find(const struct directories *all, const struct account *a)
{
	struct lasting *l;

	TAILQ_FOREACH(l, &all->lasting, link)
		if (l->charge.account == a)
			return l;
	return NULL;
}

static void add(struct directories *all, struct account *a, uint64_t count)
{
	struct lasting *l = find(all, a);

	if (!l) {
		l = mem_new(sizeof(*l));
		TAILQ_INSERT_TAIL(&all->lasting, l, link);
	}
	charge_set(&l->charge, a, POOL_LASTING, l->charge.amount + count);
	record(all);
}

static void end(struct directories *all, struct lasting *l)
{
	charge_give_back(&l->charge, POOL_LASTING);
	TAILQ_REMOVE(&all->lasting, l, link);
	mem_free(l);
}

static void give_back(struct directories *all, struct lasting *l)
{
	if (!l)
		return;
	if (l->charge.amount > 1)
		charge_set(&l->charge, l->charge.account, POOL_LASTING, l->charge.amount - 1);
	else
		end(all, l);
	record(all);
}

const char *lasting_refusal(const struct directory *d)
{
	if (!directory_lasts(d) || d->maker || account_may(d->payer, POOL_LASTING, 1, d->privileged))
		return NULL;
	return pools_refusal(d->directories->env, d->payer, POOL_LASTING, d->privileged);
}

void lasting_make(struct directory *d)
{
	if (!directory_lasts(d) || d->maker)
		return;
	d->maker = d->payer;
	d->maker->references++;
	add(d->directories, d->maker, 1);
}

void lasting_forget(struct directory *d)
{
	if (d->maker)
		account_leave(d->maker);
	d->maker = NULL;
}

void lasting_gone(struct directory *d)
{
	if (!d->maker)
		return;
	give_back(d->directories, find(d->directories, d->maker));
	lasting_forget(d);
}

void lasting_removed(struct directory *d)
{
	if (d->maker)
		lasting_gone(d);
	else if (directory_lasts(d))
		give_back(d->directories, TAILQ_FIRST(&d->directories->lasting));
}

void lasting_init(struct directories *all)
{
	TAILQ_INIT(&all->lasting);
}

void lasting_deinit(struct directories *all)
{
	while (!TAILQ_EMPTY(&all->lasting))
		end(all, TAILQ_FIRST(&all->lasting));
}

void lasting_salvage(struct directories *all, uint64_t count)
{
	if (count)
		add(all, &all->env->accounts.nobody, count < (uint64_t)COUNT_MAX ? count : (uint64_t)COUNT_MAX);
}

/* ---- snapshots ---- */

/* The account `nobody` is written without a user. */
static void write_account(const struct directories *all, const struct account *a, struct entry_writer *w)
{
	if (a == &all->env->accounts.nobody)
		return;
	entry_number(w, "user", (int64_t)a->uid + 1);
	entry_text(w, "unit", slice_of(a->unit));
}

static bool read_account(struct directories *all, const struct entry *e, struct account **ret)
{
	struct slice unit;
	int64_t user;

	if (!entry_get_number(e, "user", 0, (int64_t)UINT32_MAX + 1, &user) ||
	    !entry_get_text(e, "unit", UNIT_LENGTH_MAX, &unit))
		return false;
	*ret = user ? account_enter(&all->env->accounts, (uint32_t)(user - 1), unit.data, unit.len) : NULL;
	return true;
}

void lasting_snapshot(const struct directories *all, struct bytes *out)
{
	const struct lasting *l;

	TAILQ_FOREACH(l, &all->lasting, link) {
		struct entry_writer w = entry_begin(out, "lasting");

		write_account(all, l->charge.account, &w);
		entry_number(&w, "count", (int64_t)l->charge.amount);
		entry_end(&w);
	}
}

bool lasting_restore(struct directories *all, const struct entry *e)
{
	struct account *a;
	int64_t count;

	if (!entry_get_number(e, "count", 1, COUNT_MAX, &count) || !read_account(all, e, &a))
		return false;
	add(all, a ? a : &all->env->accounts.nobody, (uint64_t)count);
	if (a)
		account_leave(a);
	return true;
}

void lasting_write_maker(const struct directory *d, struct entry_writer *w)
{
	if (d->maker)
		write_account(d->directories, d->maker, w);
}

bool lasting_read_maker(struct directory *d, const struct entry *e)
{
	lasting_forget(d);
	return read_account(d->directories, e, &d->maker);
}
