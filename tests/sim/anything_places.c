/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of values that are refused again and again (core/lock/place.h), in the worlds that have values. Brokers are looked
 * into after every event, also over hand-overs:
 *
 *   - a place ends within a second, also one whose turn has come: a lock is kept for nobody for longer
 *   - places are served in order: what holds a lock under a value, or has it kept, asked before those that wait
 *   - each value of a user has one place at a lock, and finds it
 *   - when a turn ends unused, no place of that lock goes on
 *   - a value that its user asks for once gets no place
 *   - a client is told that it has got a lock, also one that was kept for it, only while the session may grant
 */
#include "anything.h"

#include "core/lock/bearer.h"
#include "core/lock/place.h"
#include "protocol/number.h"

/* Values whose hashes collide share a count: a count that is too high only hides errors. */
static uint8_t *tries_of(const struct host *h, uint32_t uid, struct slice name, struct slice value)
{
	uint32_t hash = 2166136261u ^ uid;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ (uint8_t)name.data[i]) * 16777619u;
	for (size_t i = 0; i < value.len; i++)
		hash = (hash ^ (uint8_t)value.data[i]) * 16777619u;
	return &any_of(h)->tries[(hash ^ hash >> 16) % ANY_TRIES];
}

static void note_try(const struct host *h, uint32_t uid, struct slice name, struct slice value)
{
	uint8_t *tries = tries_of(h, uid, name, value);

	*tries = *tries < 2 ? *tries + 1 : 2;
}

/* The words of a script: the number of its keys, the keys, and then the value. */
void places_asking(struct any_peer *p, const struct slice *words, size_t count)
{
	int64_t keys;

	if (count > 2 && (p->command == COMMAND_SET || p->command == COMMAND_SETNX))
		note_try(p->host, p->shown.uid, words[1], words[2]);
	else if (p->command == COMMAND_EVALSHA && count > 4 && number_parse(words[2], &keys) && keys > 0 &&
		 (size_t)keys < count - 3)
		note_try(p->host, p->shown.uid, words[3], words[keys + 3]);
	p->shown.takes = p->command == COMMAND_SETNX || (p->command == COMMAND_SET && values_says_nx(words, count));
}

void places_replied(const struct any_peer *p, struct slice reply)
{
	const struct host *h = p->host;
	bool taken = slice_eq(reply, SLICE("+OK\r\n")) || slice_eq(reply, SLICE(":1\r\n"));

	/* In pieces, the reply may come later than the grant. */
	if (p->shown.takes && taken && !h->conf.all_in_pieces && !session_grants(&h->broker->ensemble))
		world_fail(h->w, -1, "host %d client %u: is told that it has got a lock, but the session may not grant one",
			   h->index, p->conn);
}

static const struct client *place_of(const struct request *r)
{
	return r->client->bearer && bearer_has_place(r->client) ? r->client : NULL;
}

static void check_second(const struct host *h, int name, const struct client *c)
{
	int64_t left = c->bearer->place.timer.due_ns - h->broker->env.now_ns;

	if (left < 0 || left > SECOND)
		world_fail(h->w, -1, "host %d: a place for %s ends only in %d ms", h->index, any_names[name],
			   (int)(left / MS));
}

static void check_found(const struct host *h, int name, const struct client *c)
{
	if (place_find(lock_find(&h->broker->locks, slice_of(any_names[name])), c,
		       bytes_view(&c->bearer->value)) != c)
		world_fail(h->w, -1, "host %d: a place for %s is not found under its value", h->index, any_names[name]);
}

/* Where it stood in line; behind all that are known: it did not. */
static int stood(const struct any_place *before, const struct client *c)
{
	int at = 0;

	while (at < before->line_count && before->line[at] != c->id)
		at++;
	return at;
}

static void check_waiting(const struct host *h, int name, const struct lock *lock, const struct client *has)
{
	const struct any_place *before = &any_of(h)->places[name];
	bool over = before->kept && before->due <= h->broker->env.now_ns &&
		    !client_by_id(&h->broker->locks, before->kept);
	const struct client *fresh = NULL;
	const struct request *r;

	TAILQ_FOREACH(r, &lock->requests, link) {
		const struct client *c = place_of(r);
		int at = c ? stood(before, c) : 0;

		if (!c)
			continue;
		if ((at == before->line_count || !before->is_place[at]) &&
		    *tries_of(h, c->uid, bytes_view(&lock->name), bytes_view(&c->bearer->value)) < 2)
			world_fail(h->w, -1, "host %d: client %d has a place at %s, and asked once", h->index, (int)c->id,
				   any_names[name]);
		if (at == before->line_count || !before->is_place[at])
			fresh = c;
		else if (fresh)
			world_fail(h->w, -1, "host %d: client %d has a place at %s before client %d, which had one earlier",
				   h->index, (int)fresh->id, any_names[name], (int)c->id);
		check_second(h, name, c);
		check_found(h, name, c);
		if (has && has->id != before->has && stood(before, c) < stood(before, has))
			world_fail(h->w, -1, "host %d: client %d has %s, and client %d stood before it", h->index,
				   (int)has->id, any_names[name], (int)c->id);
		if (over && c->id <= before->last)
			world_fail(h->w, -1, "host %d: a turn of %s has ended unused, and client %d still has a place",
				   h->index, any_names[name], (int)c->id);
	}
}

static void note_line(struct any_place *seen, const struct lock *lock)
{
	const struct request *r;

	TAILQ_FOREACH(r, &lock->requests, link) {
		if (seen->line_count == ANY_LINE_MAX)
			break;
		seen->is_place[seen->line_count] = place_of(r);
		seen->line[seen->line_count++] = r->client->id;
	}
}

void places_check(struct host *h)
{
	for (int name = 0; name < ANY_NAMES; name++) {
		const struct lock *lock = lock_find(&h->broker->locks, slice_of(any_names[name]));
		const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;
		const struct client *has = g && g->client->bearer ? g->client : NULL;
		struct any_place *seen = &any_of(h)->places[name];

		if (lock)
			check_waiting(h, name, lock, has);
		*seen = (struct any_place){ .last = h->broker->locks.last_client, .has = has ? has->id : 0 };
		if (lock)
			note_line(seen, lock);
		if (!has || !bearer_has_place(has))
			continue;
		check_second(h, name, has);
		check_found(h, name, has);
		seen->kept = has->id;
		seen->due = has->bearer->place.timer.due_ns;
	}
}
