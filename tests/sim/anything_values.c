/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are held under a value, in every second world of "anything". Brokers are looked into after every event, also
 * over hand-overs and kills:
 *
 *   - one that is held under a value has a lease, which has not ended, or is tied to the process that has set it
 *   - what is tied to a process is released when the broker is told that it has ended
 *   - it keeps its value and the end of its lease, unless a request of the moment extends it
 *   - without ZooKeeper it goes only when its lease or that process ends, or by a request of the moment
 */
#include "anything.h"

#include <inttypes.h>

#include "core/lock/bearer.h"
#include "protocol/number.h"

bool values_turn(struct world *w)
{
	return w->seed % 2 && rng_percent(&w->rng, 35);
}

bool values_says_nx(const struct slice *words, size_t count)
{
	for (size_t i = 3; i < count; i++)
		if (slice_is(words[i], "NX"))
			return true;
	return false;
}

static bool releases(enum command command)
{
	return command == COMMAND_DEL || command == COMMAND_UNLINK || command == COMMAND_FORCEUNLOCK ||
	       command == COMMAND_DELIFEQ || command == COMMAND_DELEX || command == COMMAND_EVALSHA;
}

static bool extends(enum command command)
{
	return command == COMMAND_SET || command == COMMAND_SETNX || command == COMMAND_EXPIRE || command == COMMAND_PEXPIRE ||
	       command == COMMAND_EVALSHA;
}

/* A script does it to its own value only, and so does what says the same without one. */
static bool is_of(enum command command, const struct any_shown *shown, const struct any_value *v)
{
	return (command != COMMAND_EVALSHA && command != COMMAND_DELIFEQ && command != COMMAND_DELEX) ||
	       slice_eq((struct slice){ shown->text, shown->len }, (struct slice){ v->text, v->len });
}

static const struct slice releases_one = SLICE("c3f8721cbb97f72bc19e972846bd7aaf91901658");
static const struct slice extends_one = SLICE("a4e8783852e6b949f9ef3a97212805108459a890");

static const struct slice touches = SLICE("78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb"); /* its value is the last key */

static void show(struct any_shown *shown, struct slice value)
{
	shown->len = value.len <= sizeof(shown->text) ? value.len : 0;
	memcpy(shown->text, value.data, shown->len);
}

static void show_script(struct any_shown *shown, const struct slice *words, size_t count)
{
	int64_t keys;
	size_t at;

	if (count <= 3 || !number_parse(words[2], &keys) || keys <= 0 || (size_t)keys >= count)
		return;
	at = (size_t)keys + (slice_eq(words[1], touches) ? 2 : 3);
	if (at >= count)
		return;
	show(shown, words[at]);
	shown->releases = slice_eq(words[1], releases_one);
	shown->adds = slice_eq(words[1], extends_one);
	if (keys == 1 && (shown->releases || shown->adds))
		shown->only = any_name_of(words[3]);
}

void values_asking(struct any_peer *p, const struct slice *words, size_t count)
{
	struct any_shown *shown = &p->shown;

	*shown = (struct any_shown){ .uid = p->conn % 3, .only = -1 };
	if (p->command == COMMAND_EVALSHA)
		show_script(shown, words, count);
	if (count > 2 && (p->command == COMMAND_DELIFEQ || p->command == COMMAND_DELEX)) {
		show(shown, words[count - 1]);
		shown->releases = p->command == COMMAND_DELIFEQ || (count == 4 && slice_is(words[2], "IFEQ"));
		shown->only = shown->releases ? any_name_of(words[1]) : -1;
	}
	if (p->command == COMMAND_SET && count > 2) {
		show(shown, words[2]);
		shown->only = count > 3 && slice_is(words[3], "XX") ? any_name_of(words[1]) : -1;
	}
	/* Root's, and perhaps those of 2, are told apart by their units, too, on one host. */
	if (shown->uid != 1)
		shown->only = -1;
	places_asking(p, words, count);
	letters_asking(p, count > 1 ? any_name_of(words[1]) : -1);
	any_of(p->host)->shown = *shown;
}

/* A request of the moment may do that: the latest, which may have been cut off, or one that had to ask other hosts first. */
static bool is_asked(const struct host *h, bool (*does)(enum command command), const struct any_value *v)
{
	const struct any_host *a = any_of(h);
	bool is = does(a->asked) && is_of(a->asked, &a->shown, v);

	for (int i = 0; i < a->peer_count; i++)
		is = is || ((a->peers[i].asking || a->peers[i].replied) && does(a->peers[i].command) &&
			    is_of(a->peers[i].command, &a->peers[i].shown, v));
	return is;
}

static const struct grant *borne(const struct host *h, int name)
{
	const struct lock *lock = lock_find(&h->broker->locks, slice_of(any_names[name]));
	const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;

	return g && g->client->bearer && !bearer_has_place(g->client) ? g : NULL;
}

static int64_t due_of(const struct grant *g)
{
	return g->lease.place ? g->lease.due_ns : 0;
}

static void check_same(const struct host *h, int name, const struct any_value *v, const struct grant *g)
{
	struct slice value = bytes_view(&g->client->bearer->value);

	if (!slice_eq(value, (struct slice){ v->text, v->len }))
		world_fail(h->w, -1, "host %d: %s was held under %.*s, and is under %.*s", h->index, any_names[name],
			   (int)v->len, v->text, (int)value.len, value.data);
	if (due_of(g) != v->due && !is_asked(h, extends, v) && !letters_ask(h, name, v, false))
		world_fail(h->w, -1, "host %d: the lease of %s was to end at %" PRId64 ", and will at %" PRId64,
			   h->index, any_names[name], v->due, due_of(g));
}

static void check_gone(const struct host *h, int name, const struct any_value *v)
{
	bool stays = v->due ? v->due > host_now(h) : any_process_lives(h, v->pid, v->started);

	if (h->conf.standalone && stays && !is_asked(h, releases, v) && !is_asked(h, extends, v) &&
	    !letters_ask(h, name, v, false))
		world_fail(h->w, -1, "host %d: %s is not held under %.*s any longer", h->index, any_names[name],
			   (int)v->len, v->text);
}

static void keep(struct any_value *v, const struct grant *g)
{
	struct slice value = bytes_view(&g->client->bearer->value);

	v->token = g->token;
	v->uid = g->client->uid;
	v->due = due_of(g);
	v->pid = g->client->pid;
	v->started = g->client->started;
	v->len = value.len < sizeof(v->text) ? value.len : sizeof(v->text);
	memcpy(v->text, value.data, v->len);
}

void values_forget(struct host *h)
{
	memset(any_of(h)->values, 0, sizeof(any_of(h)->values));
	memset(any_of(h)->places, 0, sizeof(any_of(h)->places));
}

static void check_tied(const struct host *h, int name, const struct grant *g)
{
	const struct lifeline *l = g->client->bearer->lifeline;

	if (!l || l->pid != g->client->pid || l->started != g->client->started)
		world_fail(h->w, -1, "host %d: %s is held under a value, without an end", h->index, any_names[name]);
	if (l->state == LIFELINE_ENDED && !broker_has_work(h->broker))
		world_fail(h->w, -1, "host %d: %s is held, and its process has ended", h->index, any_names[name]);
}

void values_check(struct host *h)
{
	for (int name = 0; name < ANY_NAMES; name++) {
		struct any_value *v = &any_of(h)->values[name];
		const struct grant *g = borne(h, name);

		if (g && !g->lease.place)
			check_tied(h, name, g);
		else if (g && g->lease.due_ns < h->broker->env.now_ns)
			world_fail(h->w, -1, "host %d: %s is held under a value, and its lease is over", h->index,
				   any_names[name]);
		if (v->token && g && g->token == v->token)
			check_same(h, name, v, g);
		else if (v->token)
			check_gone(h, name, v);
		v->token = 0;
		if (g)
			keep(v, g);
	}
}
