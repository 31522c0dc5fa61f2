/* SPDX-License-Identifier: Apache-2.0 */
/* ACCOUNTS: who uses how much of what all share, those first who are nearest to their share. */
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/lock/locks.h"
#include "core/port/pools.h"
#include "protocol/bytes_format.h"

enum { ROWS_MAX = 100, PERCENT_MAX = 999 };

struct row {
	const struct account *account;
	const struct pool_words *words;
	const char *kept; /* "": nothing that its user may not know of */
	uint64_t used, allowed, percent;
	uint64_t reserve; /* for operators, whatever others use */
};

/* Only the first rows are kept: there may be thousands of users. */
struct rows {
	struct row list[ROWS_MAX];
	size_t count;
};

static void keep(struct rows *rows, const struct row *row)
{
	size_t i = rows->count;

	if (i == ROWS_MAX && rows->list[--i].percent >= row->percent)
		return;
	for (; i > 0 && rows->list[i - 1].percent < row->percent; i--)
		rows->list[i] = rows->list[i - 1];
	rows->list[i] = *row;
	rows->count += rows->count < ROWS_MAX;
}

static void look(struct rows *rows, const struct account *a, const struct pool_words *words)
{
	for (size_t pool = 0; pool < a->all->pool_count; pool++) {
		struct row row = { .account = a, .words = &words[pool], .used = a->used[pool] };

		if (!row.used)
			continue;
		row.kept = a->kept[pool] ? a->kept[pool] : "";
		row.allowed = account_allowed(a, pool, false);
		row.reserve = a->all->pools[pool].reserve;
		row.percent = row.allowed ? row.used * 100 / row.allowed : PERCENT_MAX;
		if (row.percent > PERCENT_MAX)
			row.percent = PERCENT_MAX;
		keep(rows, &row);
	}
}

static void look_at_all(struct rows *rows, const struct accounts *all, const struct pool_words *words)
{
	const struct account *a;

	look(rows, &all->nobody, words);
	TAILQ_FOREACH(a, &all->list, link)
		look(rows, a, words);
}

static void write_row(struct client *c, const struct row *row)
{
	struct bytes name = { 0 };

	account_name(row->account, &name);
	resp_map(reply_out(c), 7, c->version);
	reply_pairs(reply_out(c), "percent", row->percent, "account", bytes_view(&name), "used", row->used, "allowed",
		    row->allowed, "reserve", row->reserve);
	reply_pairs(reply_out(c), "of", row->words->noun, "kept", row->kept);
	bytes_free(&name);
}

void cmd_accounts(struct client *c, struct call *call)
{
	const struct env *env = c->locks->env;
	struct rows rows = { .count = 0 };

	(void)call;
	if (!client_is_operator(c)) {
		reply_denied(c, "see what others use");
		return;
	}
	look_at_all(&rows, &env->accounts, pools_words);
	if (env->conf->sockets)
		look_at_all(&rows, env->conf->sockets, env->conf->sockets_words);
	resp_array(reply_out(c), rows.count);
	for (size_t i = 0; i < rows.count; i++)
		write_row(c, &rows.list[i]);
	reply_end(c);
}
