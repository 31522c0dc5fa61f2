/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/effect.h"

#include "base/mem.h"

enum { EFFECTS_FIRST_SIZE = 64 };

_Static_assert(LOG_EVENT_COUNT <= UINT8_MAX, "an event fits into a byte");

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

struct effect *effects_log(struct effects *e, enum effect_level level, enum log_event event, const char *fields,
			   const struct bytes_value *values, size_t count)
{
	struct effect *line = effects_add(e, EFFECT_LOG);

	line->level = level;
	line->log.event = (uint8_t)event;
	line->text = effects_take(e);
	bytes_format_values(&e->arena, fields, values, count);
	line->data = effects_take(e);
	return line;
}

struct effect *effects_say_values(struct effects *e, enum effect_level level, enum log_event event, const char *fields,
				  const struct bytes_value *field_values, size_t field_count, const char *format,
				  const struct bytes_value *values, size_t count)
{
	bytes_format_values(&e->arena, format, values, count);
	return effects_log(e, level, event, fields, field_values, field_count);
}

void effects_caused(struct effects *e, struct effect *line, uint32_t uid, struct slice unit)
{
	line->log.caused = true;
	line->log.uid = uid;
	line->log.unit_len = (uint16_t)unit.len;
	bytes_slice(&e->arena, unit);
	effects_take(e);
	line->data.len += unit.len;
}

bool effects_give(struct effects *e, const struct effect *last, struct bytes *ret)
{
	bool is_most = last->text.at <= last->text.len;

	if (last != &e->list[e->count - 1] || last->text.at + last->text.len != e->arena.len || !is_most)
		return false;
	*ret = e->arena;
	e->arena = (struct bytes){ 0 };
	return true;
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
