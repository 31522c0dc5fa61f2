/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/holder.h"

#include "client-lib/cli/progress.h"
#include "client-lib/cli/reply_text.h"

void holder_text_cell(struct sheet *s, struct slice program, struct slice data)
{
	struct bytes text = { 0 };

	bytes_slice(&text, program);
	if (data.len > 0) {
		bytes_text(&text, text.len > 0 ? " (" : "(");
		bytes_slice(&text, data);
		bytes_text(&text, ")");
	}
	sheet_text(s, bytes_view(&text));
	bytes_free(&text);
}

void holder_cell(struct sheet *s, const struct lb_reply *row)
{
	holder_text_cell(s, cli_progress_program(row), reply_field(row, "data"));
}

void holder_mode_cell(struct sheet *s, const struct lb_reply *row)
{
	const struct lb_reply *wanted = lb_reply_field(row, "count");
	long long permits = (long long)lb_reply_integer(wanted ? wanted : lb_reply_field(row, "depth"));
	char text[64];

	if (s->limit > 0)
		snprintf(text, sizeof(text), "%lld of %lld", permits, s->limit);
	else
		snprintf(text, sizeof(text), "%lld permit%s", permits, permits == 1 ? "" : "s");
	if (s->limit == SHEET_ELECTION)
		sheet_text(s, lb_reply_field(row, "position") ? SLICE("candidate") : SLICE("leader"));
	else if (s->limit == SHEET_LOCK && !wanted)
		sheet_text(s, reply_field(row, "mode"));
	else if (!permits) /* how many of them another host waits for is not known */
		sheet_text(s, SLICE("semaphore"));
	else
		sheet_text(s, slice_of(text));
}

void holder_held_cell(struct sheet *s, const struct lb_reply *row)
{
	long long held = reply_number(row, "held_ms");

	sheet_duration(s, !row || held < 0 ? -1 : held + reply_number(row, "age_ms"));
}
