/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the clients in the worlds that have values. A process may outlive its connection, and connect again; its
 * number may be another one's later. The adapter that is played here tells the broker of the ends of those that it was
 * asked to watch, late, and after hand-overs and kills only if it is asked again. What has to be so is checked in
 * anything_values.c, and at the end: nothing is left of processes that have ended.
 */
#include "anything.h"

#include <inttypes.h>

/* Whatever its host. */
static uint32_t conn_of(uint32_t pid)
{
	return (pid - 1000) % 100;
}

static struct any_line *line_of(const struct host *h, uint64_t life)
{
	struct any_host *a = any_of(h);

	for (int i = 0; i < ANY_LINES; i++)
		if (a->lines[i].life == life)
			return &a->lines[i];
	return NULL;
}

static void tell(struct host *h, struct any_line *line, enum process_is is)
{
	static const char *const words[] = { "is watched", "has ended", "is not watched" };

	TRACE(h->w, -1, "host %d <- process %" PRIu64 " %s", h->index, line->number, words[is]);
	line->told = is;
	line->is_told = true;
	host_handle(h, &(struct event){ .type = EVENT_LIFELINE,
					.lifeline = { .number = line->number,
						      .pid = line->pid,
						      .is = is,
						      .sentence = is == PROCESS_REFUSED ? SLICE("no room") : SLICE("") } });
}

static bool has_ended(const struct host *h, const struct any_line *line)
{
	const struct any_process *p = &any_of(h)->processes[conn_of(line->pid)];

	return !p->lives || p->started != line->started;
}

static void due(void *host, uint64_t life)
{
	struct host *h = host;
	struct any_line *line = line_of(h, life);

	if (!line || !h->broker || h->dying)
		return;
	if (h->stopped_until > h->w->sched.now)
		sched_at(&h->w->sched, h->stopped_until, due, h, life);
	else if (has_ended(h, line) && (!line->is_told || line->told == PROCESS_WATCHED))
		tell(h, line, PROCESS_ENDED);
	else if (!line->is_told)
		tell(h, line, !line->must && rng_percent(&h->w->rng, 10) ? PROCESS_REFUSED : PROCESS_WATCHED);
}

static void watch(struct host *h, const struct effect *e)
{
	static uint64_t last_life;
	struct any_line *line = h->w->any ? line_of(h, 0) : NULL;

	if (!line)
		world_fail(h->w, -1, "host %d: process %u is to be watched, and so many are", h->index, e->pid);
	*line = (struct any_line){
		.life = ++last_life,
		.number = e->lifeline.number,
		.started = e->lifeline.started,
		.pid = e->pid,
		.must = e->holds,
	};
	sched_at(&h->w->sched, h->w->sched.now + rng_between(&h->w->rng, 0, MS), due, h, line->life);
}

static void watch_no_longer(struct host *h, uint64_t number)
{
	struct any_host *a = any_of(h);

	for (int i = 0; i < ANY_LINES; i++)
		if (a->lines[i].life && a->lines[i].number == number) {
			a->lines[i] = (struct any_line){ 0 };
			return;
		}
	world_fail(h->w, -1, "host %d: a process is not to be watched any longer, and was not", h->index);
}

void lines_effect(struct host *h, const struct effect *e)
{
	if (e->type == EFFECT_LIFELINE)
		watch(h, e);
	else
		watch_no_longer(h, e->lifeline.number);
}

void lines_forget(struct host *h)
{
	memset(any_of(h)->lines, 0, sizeof(any_of(h)->lines));
}

uint64_t any_process_begin(struct host *h, uint32_t conn)
{
	struct any_process *p = &any_of(h)->processes[conn];

	if (!p->lives)
		p->started = p->started ? p->started + ANY_PEERS : 1 + conn;
	p->lives = true;
	return p->started;
}

void any_process_end(struct host *h, uint32_t conn)
{
	struct any_host *a = any_of(h);
	int64_t late;

	if (!a->processes[conn].lives)
		return;
	a->processes[conn].lives = false;
	TRACE(h->w, -1, "host %d: the process of client %u has ended", h->index, conn);
	/* Another process may have its number before that is told. */
	late = rng_percent(&h->w->rng, 70) ? rng_between(&h->w->rng, 0, 50 * MS) : rng_between(&h->w->rng, 0, 2 * SECOND);
	for (int i = 0; i < ANY_LINES; i++)
		if (a->lines[i].life && conn_of(a->lines[i].pid) == conn)
			sched_at(&h->w->sched, h->w->sched.now + late, due, h, a->lines[i].life);
}

bool any_process_lives(const struct host *h, uint32_t pid, uint64_t started)
{
	const struct any_process *p = &any_of(h)->processes[conn_of(pid)];

	return p->lives && p->started == started;
}
