/* SPDX-License-Identifier: Apache-2.0 */
#include "base/busiest.h"

#include <string.h>

#include "base/container.h"
#include "base/mem.h"
#include "base/minmax.h"

enum { COMMANDS_SHOWN = 3 };

void busiest_init(struct busiest *b, const uint64_t key[2])
{
	*b = (struct busiest){ 0 };
	map_init(&b->names, key[0], key[1]);
}

void busiest_clear(struct busiest *b)
{
	struct timer *t;

	while ((t = heap_first(&b->ranks))) {
		struct busy *one = container_of(t, struct busy, rank);

		heap_unset(&b->ranks, t);
		map_remove(&b->names, &one->node);
		bytes_free(&one->name);
		mem_free(one);
	}
	b->own = b->others = 0;
	b->longest_ms = 0;
}

void busiest_deinit(struct busiest *b)
{
	busiest_clear(b);
	map_deinit(&b->names);
	heap_deinit(&b->ranks);
}

/* One without a name, which nothing was counted for. */
static struct busy *counter(struct busiest *b)
{
	struct busy *one;

	if (b->ranks.count < BUSIEST_MAX)
		return mem_new(sizeof(*one));
	one = container_of(heap_first(&b->ranks), struct busy, rank);
	map_remove(&b->names, &one->node);
	b->longest_ms = max64(b->longest_ms, one->longest_ms);
	one->own = one->others = 0;
	one->longest_ms = 0;
	memset(one->commands, 0, sizeof(one->commands));
	return one;
}

static struct busy *find(struct busiest *b, struct slice name)
{
	uint64_t hash = map_hash(&b->names, name.data, name.len);
	struct busy *one;

	MAP_FOREACH(one, &b->names, hash, node)
		if (slice_eq(bytes_view(&one->name), name))
			return one;
	one = counter(b);
	bytes_set(&one->name, name);
	map_add(&b->names, &one->node, hash);
	return one;
}

/* As for names: one that is not there takes the place of the rarest. */
static void count_command(struct busy *b, struct slice command)
{
	struct busiest_command *rarest = b->commands;
	char text[BUSIEST_COMMAND_BYTES] = { 0 };

	memcpy(text, command.data, command.len < sizeof(text) ? command.len : sizeof(text));
	for (size_t i = 0; i < BUSIEST_COMMANDS; i++) {
		struct busiest_command *c = &b->commands[i];

		if (c->count && memcmp(c->text, text, sizeof(text)) == 0) {
			c->count++;
			return;
		}
		if (c->count < rarest->count)
			rarest = c;
	}
	memcpy(rarest->text, text, sizeof(text));
	rarest->count++;
}

void busiest_count(struct busiest *b, struct slice name, struct slice command, int64_t held_ms)
{
	struct busy *one = find(b, name);

	heap_set(&b->ranks, &one->rank, one->rank.due_ns + 1);
	if (command.len)
		count_command(one, command);
	if (held_ms < 0) {
		one->others++;
		b->others++;
		return;
	}
	one->own++;
	b->own++;
	one->longest_ms = max64(one->longest_ms, held_ms);
}

static uint64_t certain(const struct busy *b)
{
	return b->own + b->others;
}

size_t busiest_look(const struct busiest *b, const struct busy *ret[BUSIEST_SHOWN])
{
	size_t count = 0;

	for (size_t i = 1; i <= b->ranks.count; i++) {
		const struct busy *one = container_of(b->ranks.timers[i], struct busy, rank);
		size_t at = count;

		for (; at > 0 && certain(ret[at - 1]) < certain(one); at--)
			if (at < BUSIEST_SHOWN)
				ret[at] = ret[at - 1];
		if (at == BUSIEST_SHOWN)
			continue;
		ret[at] = one;
		count += count < BUSIEST_SHOWN;
	}
	return count;
}

int64_t busiest_longest_of_others(const struct busiest *b, const struct busy *const *shown, size_t count)
{
	int64_t longest_ms = b->longest_ms;

	for (size_t i = 1; i <= b->ranks.count; i++) {
		const struct busy *one = container_of(b->ranks.timers[i], struct busy, rank);
		bool other = true;

		for (size_t at = 0; at < count; at++)
			other &= shown[at] != one;
		if (other)
			longest_ms = max64(longest_ms, one->longest_ms);
	}
	return longest_ms;
}

void busiest_commands(const struct busy *b, struct bytes *ret)
{
	bool shown[BUSIEST_COMMANDS] = { 0 };

	for (int i = 0; i < COMMANDS_SHOWN; i++) {
		const struct busiest_command *most = NULL;

		for (size_t at = 0; at < BUSIEST_COMMANDS; at++)
			if (!shown[at] && b->commands[at].count && (!most || b->commands[at].count > most->count))
				most = &b->commands[at];
		if (!most)
			return;
		shown[most - b->commands] = true;
		if (i > 0)
			bytes_char(ret, ',');
		for (size_t at = 0; at < sizeof(most->text) && most->text[at]; at++)
			bytes_char(ret, strchr(" ,", most->text[at]) ? '?' : most->text[at]);
	}
}
