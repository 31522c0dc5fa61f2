/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/party.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"

void parties_init(struct parties *p)
{
	map_init(&p->all, 0, 0); /* nobody can choose user ids that collide */
	TAILQ_INIT(&p->ring);
	p->only = NULL;
	p->served = NULL;
}

void parties_deinit(struct parties *p)
{
	assert(!p->all.count && !parties_have_work(p));
	map_deinit(&p->all);
}

static struct party *find(struct parties *p, uint32_t uid)
{
	uint64_t hash = map_hash(&p->all, &uid, sizeof(uid));
	struct party *party;

	MAP_FOREACH(party, &p->all, hash, node)
		if (party->uid == uid)
			return party;
	party = mem_new(sizeof(*party));
	party->uid = uid;
	TAILQ_INIT(&party->queue);
	map_add(&p->all, &party->node, hash);
	return party;
}

void party_enter(struct parties *p, struct party_place *place, uint32_t uid)
{
	assert(!place->party);
	place->party = find(p, uid);
	place->party->connections++;
}

/* `place` is taken out of the queue, and its party out of the ring if nobody else is in that queue. */
static void leave_queue(struct parties *p, struct party_place *place)
{
	struct party *party = place->party;

	TAILQ_REMOVE(&party->queue, place, link);
	if (!TAILQ_EMPTY(&party->queue))
		return;
	TAILQ_REMOVE(&p->ring, party, link);
	party->in_line = false;
}

void party_leave(struct parties *p, struct party_place *place)
{
	struct party *party = place->party;

	if (!party)
		return;
	if (p->only == place)
		p->only = NULL;
	else if (place->queued)
		leave_queue(p, place);
	*place = (struct party_place){ 0 };
	if (--party->connections)
		return;
	if (p->served == party)
		p->served = NULL;
	map_remove(&p->all, &party->node);
	mem_free(party);
}

/* Who was served last goes on with its turn, if that is not over: its only connection may have more to be done at once. */
static void get_in_line(struct parties *p, struct party_place *place)
{
	struct party *party = place->party;

	TAILQ_INSERT_TAIL(&party->queue, place, link);
	if (party->in_line)
		return;
	party->in_line = true;
	if (party == p->served)
		TAILQ_INSERT_HEAD(&p->ring, party, link);
	else
		TAILQ_INSERT_TAIL(&p->ring, party, link);
}

void party_queue(struct parties *p, struct party_place *place)
{
	if (p->only)
		get_in_line(p, p->only);
	p->only = NULL;
	get_in_line(p, place);
}

void parties_charge(struct parties *p, int64_t ns)
{
	if (p->served)
		p->served->spent_ns += ns;
}

bool parties_contended(const struct parties *p)
{
	const struct party *first = p->only ? p->only->party : TAILQ_FIRST(&p->ring);

	return first && (first != p->served || (!p->only && TAILQ_NEXT(first, link)));
}

struct party_place *parties_next_in_line(struct parties *p)
{
	struct party_place *place;
	struct party *party;

	while ((party = TAILQ_FIRST(&p->ring))) {
		if (!TAILQ_NEXT(party, link)) {
			party->spent_ns = 0;
			break;
		}
		if (party->spent_ns < PARTY_TURN_NS)
			break;
		party->spent_ns -= PARTY_TURN_NS;
		TAILQ_REMOVE(&p->ring, party, link);
		TAILQ_INSERT_TAIL(&p->ring, party, link);
	}
	if (!party)
		return NULL;
	place = TAILQ_FIRST(&party->queue);
	leave_queue(p, place);
	place->queued = false;
	p->served = party;
	return place;
}
