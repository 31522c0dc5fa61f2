/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn_watch.h"

#include "base/cold.h"
#include "base/log.h"
#include "base/queue.h"
#include "io/base/watch.h"

void conn_set_dirty(struct conn *c)
{
	if (c->is_dirty)
		return;
	c->is_dirty = true;
	TAILQ_INSERT_TAIL(&c->env->dirty, c, dirty);
}

void conn_watch(struct conn *c)
{
	watch_set(c->input, c->fd, WATCH_READ | WATCH_HANGUP | WATCH_EDGE | WATCH_KEEP, WATCH_NO_TIMEOUT);
}

/* By the edge, as its input: a descriptor is watched in one way. */
void conn_watch_output(struct conn *c)
{
	watch_set(c->output, c->fd, WATCH_WRITE | WATCH_EDGE, c->closing ? CONN_PATIENCE_NS : WATCH_NO_TIMEOUT);
}

void conn_die(struct conn *c)
{
	c->dead = true;
	c->env->dead++;
	if (c->place.held)
		party_release(&c->env->parties, &c->place);
	watch_clear(c->input);
	watch_clear(c->output);
	conn_set_ready(c);
}

bool conn_is_ghost(const struct conn *c)
{
	return c->fd < 0;
}

bool conn_is_busy(const struct conn *c)
{
	return c->waiting || c->closing || c->dead || c->in.len > 0 || c->unreported || c->report ||
	       conn_unwritten(c) > 0;
}

struct log_account conn_log_account(const struct account *account)
{
	return (struct log_account){ account->uid, slice_of(account->unit ? account->unit : "") };
}

COLD void conn_tell(struct conn *c, enum event_type type)
{
	const struct event event = { .type = type, .conn = c->number };

	feed_event(c->env->feed, &event);
}
