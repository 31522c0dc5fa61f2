/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for the log as effects: a sentence for people, and fields for tools (base/log.h has their form). Both are
 * written as bytes_format() takes them; text of somebody else's stands in a sentence as %q or %n, and in
 * fields as %v.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log_event.h"
#include "protocol/bytes_format.h"

struct effect;
struct effects;

enum effect_level { EFFECT_LEVEL_ERROR, EFFECT_LEVEL_WARNING, EFFECT_LEVEL_INFO, EFFECT_LEVEL_DEBUG };

/* What a line of the log is about. */
struct effect_log {
	uint8_t event; /* enum log_event */
	bool caused;   /* by somebody: the last `unit_len` bytes of `data` are the unit, and no fields */
	uint16_t unit_len;
	uint32_t uid;
};

/* The fields of a line for the log: as bytes_format() takes them, "key=%v other=%d". */
#define EFFECT_FIELDS(format, ...) (format), BYTES_ARGUMENTS(__VA_ARGS__)
#define EFFECT_NO_FIELDS "", NULL, 0
/* A line for the log whose sentence are the bytes that effects_take() would take. */
struct effect *effects_log(struct effects *e, enum effect_level level, enum log_event event, const char *fields,
			   const struct bytes_value *values, size_t count);
/* A line for the log: its event, EFFECT_FIELDS() or EFFECT_NO_FIELDS, and a sentence (bytes_format.h). */
#define effects_say(e, level, event, fields, format, ...) \
	effects_say_values(e, level, LOG_EVENT_##event, fields, format, BYTES_ARGUMENTS(__VA_ARGS__))
struct effect *effects_say_values(struct effects *e, enum effect_level level, enum log_event event, const char *fields,
				  const struct bytes_value *field_values, size_t field_count, const char *format,
				  const struct bytes_value *values, size_t count);
/* The user and unit that have caused that line, the last effect. */
void effects_caused(struct effects *e, struct effect *line, uint32_t uid, struct slice unit);
