/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/party.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"

void parties_init(struct parties *p)
{
	map_init(&p->all, 0, 0); /* nobody can choose addresses that collide */
	TAILQ_INIT(&p->fresh);
	TAILQ_INIT(&p->ring);
	p->turns = p->ring_count = 0;
	p->doors = p->held = 0;
	p->only = NULL;
	p->served = NULL;
}

void parties_deinit(struct parties *p)
{
	assert(!p->all.count && !parties_have_work(p));
	map_deinit(&p->all);
}

/* A process may stand still while it serves somebody, who owes no more than this for that. */
static const int64_t SPENT_NS_MAX = 1000 * PARTY_TURN_NS;

static struct party *find(const struct parties *p, const void *owner, uint64_t hash)
{
	struct party *party;

	MAP_FOREACH(party, &p->all, hash, node)
		if (party->owner == owner)
			return party;
	return NULL;
}

static struct party *find_or_make(struct parties *p, const void *owner)
{
	uint64_t hash = map_hash(&p->all, &owner, sizeof(owner));
	struct party *party = find(p, owner, hash);

	if (party)
		return party;
	party = mem_new(sizeof(*party));
	party->owner = owner;
	party->turns = p->turns;
	TAILQ_INIT(&party->queue);
	TAILQ_INIT(&party->held);
	map_add(&p->all, &party->node, hash);
	return party;
}

void party_enter(struct parties *p, struct party_member *member, const void *owner)
{
	assert(!member->party);
	member->party = find_or_make(p, owner);
	member->party->connections++;
	p->doors += member->is_door;
}

static void leave_line(struct parties *p, struct party *party)
{
	p->ring_count -= party->line == &p->ring;
	TAILQ_REMOVE(party->line, party, link);
	party->line = NULL;
}

static void join_line(struct parties *p, struct party *party, struct party_ring *line)
{
	TAILQ_INSERT_TAIL(line, party, link);
	party->line = line;
	p->ring_count += line == &p->ring;
}

/* `member` is taken out of the queue, and its party out of line if nobody else is in that queue. */
static void leave_queue(struct parties *p, struct party_member *member)
{
	struct party *party = member->party;

	TAILQ_REMOVE(&party->queue, member, link);
	if (TAILQ_EMPTY(&party->queue))
		leave_line(p, party);
}

static void leave_held(struct parties *p, struct party_member *member)
{
	TAILQ_REMOVE(&member->party->held, member, link);
	member->held = member->queued = false;
	p->held--;
}

void party_hold(struct parties *p, struct party_member *member)
{
	assert(!member->queued);
	TAILQ_INSERT_TAIL(&member->party->held, member, link);
	member->held = member->queued = true;
	p->held++;
}

void party_release(struct parties *p, struct party_member *member)
{
	leave_held(p, member);
	party_add(p, member);
}

void party_leave(struct parties *p, struct party_member *member)
{
	struct party *party = member->party;

	if (!party)
		return;
	if (p->only == member)
		p->only = NULL;
	else if (member->held)
		leave_held(p, member);
	else if (member->queued)
		leave_queue(p, member);
	p->doors -= member->is_door;
	*member = (struct party_member){ 0 };
	if (--party->connections)
		return;
	if (p->served == party)
		p->served = NULL;
	map_remove(&p->all, &party->node);
	mem_free(party);
}

static bool has_turn(const struct party *party)
{
	return party->spent_ns < PARTY_TURN_NS;
}

/* It has used up a turn. */
static void pay(struct parties *p, struct party *party)
{
	party->spent_ns -= PARTY_TURN_NS;
	p->turns++;
}

/* As many turns have been used up since it was served as parties stand in line, and one at least. */
static bool was_round(const struct parties *p, const struct party *party)
{
	return p->turns - party->turns >= (p->ring_count ? p->ring_count : 1);
}

static void get_in_line(struct parties *p, struct party_member *member)
{
	struct party *party = member->party;

	TAILQ_INSERT_TAIL(&party->queue, member, link);
	if (party->line)
		return;
	if (was_round(p, party) && has_turn(party))
		party->spent_ns = 0;
	if (has_turn(party)) {
		join_line(p, party, &p->fresh);
		return;
	}
	pay(p, party);
	join_line(p, party, &p->ring);
}

__attribute__((noinline)) void party_queue(struct parties *p, struct party_member *member)
{
	if (p->only)
		get_in_line(p, p->only);
	p->only = NULL;
	get_in_line(p, member);
}

static void charge(struct party *party, int64_t ns)
{
	if (party)
		party->spent_ns = ns < SPENT_NS_MAX - party->spent_ns ? party->spent_ns + ns : SPENT_NS_MAX;
}

void parties_charge(struct parties *p, int64_t ns)
{
	charge(p->served, ns);
}

void parties_charge_owner(struct parties *p, const void *owner, int64_t ns)
{
	charge(find(p, owner, map_hash(&p->all, &owner, sizeof(owner))), ns);
}

static struct party *first_in_line(const struct parties *p)
{
	return TAILQ_EMPTY(&p->fresh) ? TAILQ_FIRST(&p->ring) : TAILQ_FIRST(&p->fresh);
}

static bool is_alone(const struct parties *p, const struct party *first)
{
	return !TAILQ_NEXT(first, link) && (first->line == &p->ring || TAILQ_EMPTY(&p->ring));
}

bool parties_is_one(const struct parties *p)
{
	return p->all.count - p->doors <= 1;
}

bool parties_contended(const struct parties *p)
{
	const struct party *first = p->only ? p->only->party : first_in_line(p);

	return first && (first != p->served || (!p->only && !is_alone(p, first)));
}

struct party_member *parties_next_in_line(struct parties *p)
{
	struct party_member *member;
	struct party *party;

	while ((party = first_in_line(p))) {
		if (has_turn(party))
			break;
		if (is_alone(p, party))
			party->spent_ns = PARTY_TURN_NS;
		pay(p, party);
		leave_line(p, party);
		join_line(p, party, &p->ring);
	}
	if (!party)
		return NULL;
	member = TAILQ_FIRST(&party->queue);
	leave_queue(p, member);
	member->queued = false;
	p->served = party;
	party->turns = p->turns;
	return member;
}
