/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits in the log: a wait of log.long_wait_ms is reported once when it becomes that long, and once when it ends. A shorter
 * wait is not reported. No event reports more than 16 waits and holds that go on (one, if all is done in pieces); the others
 * are reported in the next milliseconds.
 */
#include "anything.h"

#include <inttypes.h>

static struct any_wait *find(struct any_host *a, uint64_t client, struct slice name)
{
	for (int i = 0; i < a->wait_count; i++)
		if (a->waits[i].client == client && slice_eq(name, (struct slice){ a->waits[i].name, a->waits[i].len }))
			return &a->waits[i];
	return NULL;
}

static void begins(struct host *h, const struct hold_record *hold)
{
	struct any_host *a = any_of(h);
	struct any_wait *said = &a->waits[a->wait_count];

	if (find(a, hold->client, hold->name))
		world_fail(h->w, -1, "host %d: that client %" PRIu64 " waits for long is logged again", h->index, hold->client);
	if (!h->conf.long_wait_ns || hold->now_ns - hold->asked_ns < h->conf.long_wait_ns)
		world_fail(h->w, -1, "host %d: client %" PRIu64 " has not waited for long, and that is logged", h->index,
			   hold->client);
	if (a->wait_count == ANY_WAITS)
		world_fail(h->w, -1, "host %d: more than %d wait for long", h->index, ANY_WAITS);
	a->wait_count++;
	said->client = hold->client;
	said->asked_ns = hold->asked_ns;
	said->len = hold->name.len;
	memcpy(said->name, hold->name.data, hold->name.len);
	h->w->stats->long_waits++;
}

static void ends(struct host *h, const struct hold_record *hold)
{
	struct any_host *a = any_of(h);
	struct any_wait *said = find(a, hold->client, hold->name);

	if (!said || said->asked_ns != hold->asked_ns)
		world_fail(h->w, -1, "host %d: the end of a wait of client %" PRIu64 " is logged that was not", h->index,
			   hold->client);
	*said = a->waits[--a->wait_count];
}

void waits_logged(struct host *h, enum log_event event, const struct hold_record *hold)
{
	any_of(h)->said += event == LOG_EVENT_waits || event == LOG_EVENT_granted;
	if (event == LOG_EVENT_waits)
		begins(h, hold);
	else if (event == LOG_EVENT_waited)
		ends(h, hold);
}

void waits_forget(struct host *h)
{
	any_of(h)->wait_count = 0;
	any_of(h)->left_until = 0;
}

/* After each event. */
void waits_check(struct host *h)
{
	const struct broker *b = h->broker;
	struct any_host *a = any_of(h);
	const struct client *c;
	const struct request *r;
	int going_on = 0, most = b->env.conf->all_in_pieces ? 1 : 16;

	if (a->said > most)
		world_fail(h->w, -1, "host %d: one event logs %d that go on", h->index, a->said);
	a->said = 0;
	if (b->locks.said > (size_t)most)
		a->left_until = b->env.now_ns + (int64_t)b->locks.said / most * MS;
	TAILQ_FOREACH(c, &b->locks.clients, link)
		TAILQ_FOREACH(r, &c->requests, client_link) {
			const struct any_wait *said = find(a, c->id, bytes_view(&r->lock->name));

			if (said && said->asked_ns == r->asked_ns)
				going_on++;
			else if (h->conf.long_wait_ns && b->env.now_ns >= r->asked_ns + h->conf.long_wait_ns &&
				 b->env.now_ns > a->left_until)
				world_fail(h->w, -1, "host %d: client %" PRIu64 " waits for long, and that is not logged",
					   h->index, c->id);
		}
	if (going_on != a->wait_count)
		world_fail(h->w, -1, "host %d: %d long waits have ended, and that is not logged", h->index,
			   a->wait_count - going_on);
}
