/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/effect.h"

#include "base/mem.h"

enum { EFFECTS_FIRST_SIZE = 64 };

struct effect *effects_add(struct effects *e, enum effect_type type)
{
	struct effect *effect;

	if (e->count == e->cap) {
		e->cap = e->cap ? e->cap * 2 : EFFECTS_FIRST_SIZE;
		e->list = mem_resize(e->list, e->cap * sizeof(*e->list));
	}
	effect = &e->list[e->count++];
	*effect = (struct effect){ .type = type };
	return effect;
}

struct span effects_take(struct effects *e)
{
	struct span text = { e->taken, e->arena.len - e->taken };

	e->taken = e->arena.len;
	return text;
}

struct effect *effects_log(struct effects *e, enum effect_level level)
{
	struct effect *line = effects_add(e, EFFECT_LOG);

	line->level = level;
	line->text = effects_take(e);
	return line;
}

struct effect *effects_say_values(struct effects *e, enum effect_level level, const char *format,
				  const struct bytes_value *values, size_t count)
{
	bytes_format_values(&e->arena, format, values, count);
	return effects_log(e, level);
}

void effects_clear(struct effects *e)
{
	e->count = e->taken = 0;
	bytes_clear(&e->arena);
}

void effects_free(struct effects *e)
{
	mem_free(e->list);
	bytes_free(&e->arena);
	*e = (struct effects){ 0 };
}
