/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/reply.h"

#include <assert.h>

#include "core/lock/locks.h"

struct bytes *reply_out(struct client *c)
{
	return &c->locks->env->out->arena;
}

size_t reply_begin(struct client *c)
{
	assert(c->asking);
	return effects_begin(c->locks->env->out);
}

/* A list can be of any length: one that is too long is refused, and the client asks for less. */
static struct span text_since(struct client *c, size_t begin)
{
	struct effects *out = c->locks->env->out;
	struct span text = effects_end(out, begin);

	if (text.len <= c->locks->env->conf->limits.output_bytes)
		return text;
	out->arena.len = begin;
	c->locks->env->stats.limits_total++;
	resp_error(&out->arena, ERROR_LIMIT, SLICE("the answer is longer than limits.output_bytes"));
	return effects_end(out, begin);
}

static void send(struct client *c, struct span text)
{
	struct effect *e = effects_add(c->locks->env->out, EFFECT_REPLY);

	e->conn = c->conn;
	e->text = text;
	e->lazy = c->lazy;
	c->asking = c->lazy = false;
}

void reply_end(struct client *c, size_t begin)
{
	send(c, text_since(c, begin));
}

void reply_end_settled(struct client *c, size_t begin)
{
	assert(!c->answered && !c->locks->after);
	c->locks->after = c;
	c->answered = true;
	c->answer = text_since(c, begin);
}

void reply_settled(struct client *c)
{
	if (!c->answered)
		return;
	c->answered = false;
	if (!c->closed)
		send(c, c->answer);
}

struct effect *reply_push(struct client *c, size_t begin)
{
	struct effects *out = c->locks->env->out;
	struct span text = effects_end(out, begin);
	struct effect *e = effects_add(out, EFFECT_PUSH);

	e->conn = c->conn;
	e->text = text;
	return e;
}

void reply_integer(struct client *c, int64_t value)
{
	size_t begin = reply_begin(c);

	resp_integer(reply_out(c), value);
	reply_end(c, begin);
}

void reply_integer_settled(struct client *c, int64_t value)
{
	size_t begin = reply_begin(c);

	resp_integer(reply_out(c), value);
	reply_end_settled(c, begin);
}

void reply_nil(struct client *c)
{
	size_t begin = reply_begin(c);

	resp_nil(reply_out(c), c->version);
	reply_end(c, begin);
}

void reply_nil_array(struct client *c)
{
	size_t begin = reply_begin(c);

	resp_nil_array(reply_out(c), c->version);
	reply_end(c, begin);
}

void reply_status(struct client *c, const char *text)
{
	size_t begin = reply_begin(c);

	resp_status(reply_out(c), text);
	reply_end(c, begin);
}

void reply_error_values(struct client *c, enum error_code code, const char *format, const struct bytes_value *values,
			size_t count)
{
	struct bytes sentence = { 0 };
	size_t begin = reply_begin(c);

	bytes_format_values(&sentence, format, values, count);
	resp_error(reply_out(c), code, bytes_view(&sentence));
	reply_end(c, begin);
	bytes_free(&sentence);
}

void reply_values(struct bytes *out, const struct bytes_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (values[i].is_number)
			resp_integer(out, values[i].number);
		else
			resp_bulk(out, values[i].text);
}
