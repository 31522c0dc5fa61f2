/* SPDX-License-Identifier: Apache-2.0 */
#include "sched.h"

#include <assert.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 100 };

void sched_init(struct sched *s)
{
	*s = (struct sched){ .now = SECOND };
}

void sched_deinit(struct sched *s)
{
	while (s->spare) {
		struct message *m = s->spare;

		s->spare = m->next;
		bytes_free(&m->text);
		free(m);
	}
	free(s->heap);
}

static bool task_before(const struct task *a, const struct task *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sched_at(struct sched *s, int64_t at, void (*run)(void *, uint64_t), void *object, uint64_t argument)
{
	struct task t = { at < s->now ? s->now : at, s->order++, run, object, argument };
	size_t i = s->count++;

	if (s->count > s->cap) {
		s->cap = s->cap ? s->cap * 2 : 64;
		s->heap = realloc(s->heap, s->cap * sizeof(*s->heap));
		assert(s->heap);
	}
	for (; i && task_before(&t, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = t;
}

static struct task sched_pop(struct sched *s)
{
	struct task top = s->heap[0], last = s->heap[--s->count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->count) {
		if (child + 1 < s->count && task_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!task_before(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return top;
}

bool sched_step(struct sched *s, int64_t until)
{
	struct task t;

	if (s->count == 0 || s->heap[0].at > until)
		return false;
	t = sched_pop(s);
	s->now = t.at;
	t.run(t.object, t.argument);
	return true;
}

struct message *message_new(struct sched *s, int kind)
{
	struct message *m = s->spare;
	struct bytes text = { 0 };

	if (m) {
		s->spare = m->next;
		text = m->text;
		bytes_clear(&text);
	} else {
		m = malloc(sizeof(*m));
		assert(m);
	}
	*m = (struct message){ .kind = kind, .text = text };
	return m;
}

void message_free(struct sched *s, struct message *m)
{
	m->next = s->spare;
	s->spare = m;
}

void message_text(struct message *m, struct slice path, struct slice data)
{
	bytes_clear(&m->text);
	bytes_slice(&m->text, path);
	bytes_slice(&m->text, data);
	m->path_len = path.len;
	m->data_len = data.len;
}

void pipe_init(struct pipe *p, struct sched *s, void (*deliver)(void *, struct message *), void *owner)
{
	*p = (struct pipe){ .sched = s, .budget = -1, .deliver = deliver, .owner = owner };
	p->tail = &p->head;
}

struct message *pipe_take(struct pipe *p)
{
	struct message *m = p->head;

	if (!m)
		return NULL;
	p->head = m->next;
	if (!p->head)
		p->tail = &p->head;
	return m;
}

static void pipe_arm(struct pipe *p);

static void pipe_run(void *object, uint64_t argument)
{
	struct pipe *p = object;
	struct message *m = p->head;

	(void)argument;
	p->armed = false;
	if (m && p->budget != 0 && m->due <= p->sched->now && !(p->gate && *p->gate > p->sched->now)) {
		pipe_take(p);
		if (p->budget > 0)
			p->budget--;
		p->deliver(p->owner, m);
	}
	pipe_arm(p);
}

static void pipe_arm(struct pipe *p)
{
	int64_t at;

	if (p->armed || !p->head || p->budget == 0)
		return;
	at = p->head->due;
	if (p->gate && *p->gate > at)
		at = *p->gate;
	p->armed = true;
	sched_at(p->sched, at, pipe_run, p, 0);
}

/* Headers, a stat and the lengths of strings are not in its text. */
static int64_t bytes_of(const struct message *m)
{
	return (int64_t)(MESSAGE_BYTES + m->text.len + m->count * 3);
}

void pipe_push(struct pipe *p, struct message *m, int64_t delay)
{
	int64_t now = p->sched->now, due;

	p->bytes += bytes_of(m);
	p->passed = (p->passed > now ? p->passed : now) + (p->bytes_s ? bytes_of(m) * SECOND / p->bytes_s : 0);
	due = p->passed + delay;
	m->due = due < p->last ? p->last : due;
	p->last = m->due;
	m->next = NULL;
	*p->tail = m;
	p->tail = &m->next;
	pipe_arm(p);
}

void pipe_hold(struct pipe *p)
{
	p->budget = 0;
}

void pipe_release(struct pipe *p)
{
	p->budget = -1;
	pipe_arm(p);
}

void pipe_trickle(struct pipe *p, int messages)
{
	p->budget = messages;
	pipe_arm(p);
}

void pipe_clear(struct pipe *p)
{
	pipe_cut(p, 0);
	p->last = p->passed = 0;
}

void pipe_cut(struct pipe *p, int messages)
{
	struct message **at = &p->head, *m;

	while (*at && messages-- > 0)
		at = &(*at)->next;
	p->tail = at;
	while ((m = *at)) {
		*at = m->next;
		message_free(p->sched, m);
	}
}

int pipe_length(const struct pipe *p)
{
	const struct message *m;
	int length = 0;

	for (m = p->head; m; m = m->next)
		length++;
	return length;
}
