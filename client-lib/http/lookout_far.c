/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/lookout_far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/http/json.h"

enum {
	PACKETS_OF_LOCK = 2, /* a list, and at least one znode */
	PACKETS_OF_ROOTS = 2,
	PAGE_MS = 1000,
	OPENED_IDLE_MS = 10000,
};

static void go_on(struct lookout *l);

/* What an answer cost: of each znode that is shown, its data were read. Standalone nothing is sent. */
static void charge(struct lookout *l, int64_t packets)
{
	if (!l->session.standalone)
		l->packets_left -= packets;
}

static int64_t count_of(const struct lb_reply *map, const char *key)
{
	return (int64_t)lb_reply_count(lb_reply_field(map, key));
}

/* ---- locks that viewers have opened ---- */

static void replace(char **text, char *by)
{
	free(*text);
	*text = by;
}

static void forget_opened(struct lookout_opened *o)
{
	bytes_free(&o->name);
	free(o->why);
	free(o->holders);
	free(o->queue);
	*o = (struct lookout_opened){ 0 };
}

/* Who waits for it is answered with what there is. */
static void answer_opened(struct lookout *l, struct lookout_opened *o)
{
	o->waits_ms = 0;
	l->conf->answered(l->conf->of, (int)(o - l->opened));
}

static void charge_opened(struct lookout *l, const struct lb_reply *rows)
{
	int64_t before = l->packets_left;

	charge(l, PACKETS_OF_LOCK + (int64_t)lb_reply_count(rows));
	l->opened_left -= before - l->packets_left;
}

static bool take_trouble(struct lookout *l, struct lookout_opened *o, const struct lb_reply *reply)
{
	struct slice error = reply ? broker_error(reply) : slice_of(broker_trouble(l->far));

	if (error.len == 0)
		return false;
	o->refused = reply && error.len > 7 && memcmp(error.data, "BADNAME", 7) == 0;
	snprintf(o->trouble, sizeof(o->trouble), "%.*s", (int)error.len, error.data);
	return true;
}

static int64_t count_here(const struct lb_reply *rows)
{
	int64_t count = 0;

	for (const struct lb_reply *row = lb_reply_item(rows, 0); row; row = reply_row_after(rows, row))
		count += reply_number(row, "client") > 0;
	return count;
}

static void take_queue(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	struct lookout_opened *o = &l->opened[l->asked_opened];
	int64_t now = lookout_now_ms();

	o->asking = false;
	if (!take_trouble(l, o, reply)) {
		replace(&o->queue, json_queue(reply, l->session.host, now));
		o->queue_count = (int64_t)lb_reply_count(reply);
		o->queue_here_count = count_here(reply);
		charge_opened(l, reply);
	}
	if (o->why || o->queue)
		o->answered_ms = now;
	answer_opened(l, o);
	go_on(l);
}

static void take_why(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	struct lookout_opened *o = &l->opened[l->asked_opened];
	struct sighting *s = sightings_find(&l->sightings, bytes_view(&o->name));
	const struct lb_reply *holders;
	int64_t now = lookout_now_ms();

	o->trouble[0] = '\0';
	o->refused = false; /* another daemon may take a name that the former one refused */
	if (take_trouble(l, o, reply))
		return;
	holders = lb_reply_field(reply, "holders");
	replace(&o->why, json_text_new(reply_field(reply, "why")));
	replace(&o->holders, json_holders(holders, l->session.host, now));
	o->holder_count = (int64_t)lb_reply_count(holders);
	charge_opened(l, holders);
	if (s)
		sightings_take_why(&l->sightings, s, reply, now);
}

/* One after the other has its turn, however many are wanted all the time. */
static bool ask_opened(struct lookout *l)
{
	struct slice why[] = { SLICE("WHY"), SLICE("") }, queue[] = { SLICE("QUEUE"), SLICE("") };

	if (l->opened_left <= 0)
		return false;
	for (int i = 0, last = l->asked_opened; i < LOOKOUT_OPENED_MAX; i++) {
		int at = (last + 1 + i) % LOOKOUT_OPENED_MAX;
		struct lookout_opened *o = &l->opened[at];

		if (o->waits_ms == 0)
			continue;
		l->asked_opened = at;
		why[1] = queue[1] = bytes_view(&o->name);
		if (broker_ask(l->far, take_why, l, 2, why) && broker_ask(l->far, take_queue, l, 2, queue)) {
			o->asking = true;
			return true;
		}
		take_trouble(l, o, NULL);
		answer_opened(l, o);
	}
	return false;
}

/* Of those that nobody asks for any longer, the one for which nobody has asked for longest. Negative: there is none. */
static int find_place(struct lookout *l, struct slice name)
{
	int found = -1;
	int64_t oldest = lookout_now_ms() - OPENED_IDLE_MS;

	for (int i = 0; i < LOOKOUT_OPENED_MAX; i++)
		if (slice_eq(bytes_view(&l->opened[i].name), name))
			return i;
	for (int i = 0; i < LOOKOUT_OPENED_MAX; i++) {
		const struct lookout_opened *o = &l->opened[i];

		if (o->waits_ms == 0 && !o->asking && o->wanted_ms < oldest) {
			found = i;
			oldest = o->wanted_ms;
		}
	}
	return found;
}

int lookout_open(struct lookout *l, struct slice name)
{
	int place = find_place(l, name);
	struct lookout_opened *o = &l->opened[place < 0 ? 0 : place];

	if (place < 0)
		return place;
	if (!slice_eq(bytes_view(&o->name), name)) {
		forget_opened(o);
		bytes_set(&o->name, name);
	}
	o->wanted_ms = lookout_now_ms();
	if (o->waits_ms == 0 && (o->answered_ms == 0 || o->wanted_ms - o->answered_ms >= LOOKOUT_OPENED_MS)) {
		o->waits_ms = o->wanted_ms;
		go_on(l);
	}
	return place;
}

static void end_patience(struct lookout *l)
{
	for (int i = 0; i < LOOKOUT_OPENED_MAX; i++) {
		struct lookout_opened *o = &l->opened[i];

		if (o->waits_ms == 0 || lookout_now_ms() - o->waits_ms < LOOKOUT_PATIENCE_MS)
			continue;
		snprintf(o->trouble, sizeof(o->trouble), "There is no answer yet: %s.",
			 o->asking ? "ZooKeeper is slow" : "many locks are open");
		answer_opened(l, o);
	}
}

/* ---- locks that this host waits for ---- */

struct candidate {
	struct sighting *best;
	int64_t before_ms;
};

static void consider(void *of, struct sighting *s)
{
	struct candidate *c = of;

	if (s->waiters == 0 || s->holders > 0 || s->asked_ms > c->before_ms)
		return;
	if (!c->best || s->waits_since_ms < c->best->waits_since_ms)
		c->best = s;
}

static void take_waited(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	struct sighting *s = sightings_find(&l->sightings, bytes_view(&l->asked_name));
	int64_t cost;

	if (reply && broker_error(reply).len == 0) {
		cost = PACKETS_OF_LOCK + count_of(reply, "holders");
		charge(l, cost);
		l->waited_left -= cost;
		if (s)
			sightings_take_why(&l->sightings, s, reply, lookout_now_ms());
	}
	go_on(l);
}

static bool ask_waited(struct lookout *l)
{
	struct candidate c = { .before_ms = lookout_now_ms() - LOOKOUT_WAITED_MS + 500 };
	struct slice words[] = { SLICE("WHY"), SLICE("") };

	if (l->waited_left <= 0 || l->packets_left <= LOOKOUT_REST_PACKETS)
		return false;
	sightings_walk(&l->sightings, consider, &c);
	if (!c.best)
		return false;
	c.best->asked_ms = lookout_now_ms();
	bytes_set(&l->asked_name, c.best->name);
	words[1] = c.best->name;
	return broker_ask(l->far, take_waited, l, 2, words);
}

/* ---- hosts ---- */

static char *copy(struct slice text)
{
	char *made = strndup(text.data, text.len);

	if (!made)
		abort();
	return made;
}

static void take_hosts(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	const struct lb_reply *row;
	size_t count;

	if (reply && broker_error(reply).len == 0) {
		for (size_t i = 0; i < l->host_count; i++) {
			free(l->hosts[i].name);
			free(l->hosts[i].version);
		}
		free(l->hosts);
		count = lb_reply_count(reply);
		charge(l, 1 + (int64_t)count);
		l->host_count = count < LOOKOUT_HOSTS_MAX ? count : LOOKOUT_HOSTS_MAX;
		l->hosts = calloc(l->host_count + 1, sizeof(*l->hosts));
		if (!l->hosts)
			abort();
		row = lb_reply_item(reply, 0);
		for (size_t i = 0; i < l->host_count; i++, row = reply_row_after(reply, row))
			l->hosts[i] =
				(struct lookout_host){ copy(reply_field(row, "host")),
						       copy(reply_field(row, "version")), reply_number(row, "started"),
						       reply_number(row, "self") != 0 };
		l->hosts_taken_ms = lookout_now_ms();
	}
	go_on(l);
}

static bool ask_hosts(struct lookout *l)
{
	const struct slice hosts = SLICE("HOSTS");

	int64_t now = lookout_now_ms(), pause = (int64_t)l->host_count * LOOKOUT_HOSTS_MS_A_HOST;

	if (now - l->hosts_ms < (pause > LOOKOUT_HOSTS_MS ? pause : LOOKOUT_HOSTS_MS) || l->session.standalone ||
	    !l->session.connected)
		return false;
	l->hosts_ms = now;
	return broker_ask(l->far, take_hosts, l, 1, &hosts);
}

/* ---- all locks ---- */

/* Directories that nobody uses cost a list each as well. */
static void charge_page(struct lookout *l, const struct lb_reply *locks, bool last)
{
	size_t count = lb_reply_count(locks);
	int64_t packets = last ? (int64_t)count : l->asked_count;

	for (const struct lb_reply *row = lb_reply_item(locks, 0); row; row = reply_row_after(locks, row)) {
		packets += count_of(row, "holders") + reply_number(row, "hosts_waiting");
		packets += 3 * slice_eq(reply_field(row, "kind"), SLICE("semaphore"));
	}
	charge(l, PACKETS_OF_ROOTS + packets);
	if (count > 0)
		l->packets_a_name = (l->packets_a_name + (double)packets / (double)count) / 2;
}

static void take_all(void *of, const struct lb_reply *reply)
{
	struct lookout *l = of;
	const struct lb_reply *locks, *row;
	struct slice next;
	int64_t now = lookout_now_ms();

	if (reply && broker_error(reply).len == 0) {
		locks = lb_reply_field(reply, "locks");
		next = reply_field(reply, "next");
		charge_page(l, locks, next.len == 0);
		for (row = lb_reply_item(locks, 0); row; row = reply_row_after(locks, row))
			sightings_take_far(&l->sightings, row, now);
		sightings_end_far(&l->sightings, l->page_ms, bytes_view(&l->far_after), next);
		bytes_set(&l->far_after, next);
	}
	go_on(l);
}

static bool ask_all(struct lookout *l)
{
	char count[24];
	struct slice words[] = { SLICE("LOCKS"),           SLICE("*"), SLICE("ALL"),
				 SLICE("COUNT"),           SLICE(""),  SLICE("AFTER"),
				 bytes_view(&l->far_after) };
	int64_t now = lookout_now_ms();

	if (now - l->page_ms < PAGE_MS || (!l->session.connected && !l->session.standalone))
		return false;
	l->asked_count = (int64_t)((double)(l->packets_left - PACKETS_OF_ROOTS) /
				   (l->packets_a_name > 2 ? l->packets_a_name : 2));
	if (l->session.standalone)
		l->asked_count = LOOKOUT_PAGE;
	if (l->asked_count < 1)
		return false;
	l->page_ms = now;
	snprintf(count, sizeof(count), "%lld", (long long)l->asked_count);
	words[4] = slice_of(count);
	return broker_ask(l->far, take_all, l, l->far_after.len > 0 ? 7 : 5, words);
}

/* ---- one after the other ---- */

static void go_on(struct lookout *l)
{
	if (broker_open(l->far) > 0 || !lookout_is_watched(l) || l->packets_left <= 0)
		return;
	if (!ask_opened(l) && !ask_waited(l) && !ask_hosts(l))
		ask_all(l);
}

void lookout_far_second(struct lookout *l)
{
	l->packets_left = l->packets_left < 0 ? l->packets_left + LOOKOUT_PACKETS : LOOKOUT_PACKETS;
	l->opened_left = LOOKOUT_OPENED_PACKETS;
	l->waited_left = LOOKOUT_WAITED_PACKETS;
	end_patience(l);
	go_on(l);
}
