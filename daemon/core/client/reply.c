/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/reply.h"

#include <assert.h>
#include <string.h>

#include "core/lock/locks.h"

struct bytes *reply_out(struct client *c)
{
	return &c->locks->env->out->arena;
}

static const char too_long[] = "the answer is longer than limits.output_bytes";

/* A list can be of any length: one that is too long is refused, and the client asks for less. */
static struct span take_text(struct client *c)
{
	struct effects *out = c->locks->env->out;
	struct span text = effects_take(out);

	if (text.len <= c->locks->env->conf->limits.output_bytes)
		return text;
	out->arena.len = out->taken = text.at;
	c->locks->env->stats.limits_total++;
	resp_error(&out->arena, ERROR_LIMIT, slice_of(too_long));
	return effects_take(out);
}

static void send(struct client *c, struct span text)
{
	struct effect *e = effects_add(c->locks->env->out, EFFECT_REPLY);

	assert(c->asking);
	e->conn = c->conn;
	e->text = text;
	e->lazy = c->lazy;
	c->asking = c->lazy = false;
}

void reply_end(struct client *c)
{
	send(c, take_text(c));
}

void reply_end_whole(struct client *c)
{
	send(c, effects_take(c->locks->env->out));
}

void reply_begin_rows(struct bytes *rows)
{
	static const char unused[REPLY_HEAD_BYTES];

	bytes_set(rows, (struct slice){ unused, sizeof(unused) });
}

void reply_rows(struct client *c, struct bytes *rows, size_t count)
{
	struct effects *out = c->locks->env->out;
	struct bytes head = { 0 }, empty = out->arena;

	resp_array(&head, count);
	assert(head.len <= REPLY_HEAD_BYTES && rows->len >= REPLY_HEAD_BYTES);
	if (out->arena.len == 0 && rows->len >= EFFECT_LONG_BYTES) {
		out->taken = REPLY_HEAD_BYTES - head.len;
		out->arena = *rows;
		memcpy(out->arena.data + out->taken, head.data, head.len);
		*rows = empty;
	} else {
		bytes_slice(&out->arena, bytes_view(&head));
		bytes_append(&out->arena, rows->data + REPLY_HEAD_BYTES, rows->len - REPLY_HEAD_BYTES);
	}
	bytes_free(&head);
	bytes_free(rows);
	reply_end(c);
}

void reply_end_settled(struct client *c)
{
	assert(!c->answered && !c->locks->after);
	c->locks->after = c;
	c->answered = true;
	c->answer = take_text(c);
}

void reply_settled(struct client *c)
{
	if (!c->answered)
		return;
	c->answered = false;
	if (!c->closed)
		send(c, c->answer);
}

bool reply_limit(struct client *c, const char *why)
{
	c->locks->env->stats.limits_total++;
	reply_error(c, ERROR_LIMIT, "%s", why);
	return false;
}

bool reply_affords(struct client *c, enum pool_number pool, size_t amount)
{
	return account_may(c->account, pool, amount, c->privileged) ||
	       reply_limit(c, pools_refusal(c->locks->env, c->account, pool, c->privileged));
}

void reply_too_long(struct client *c)
{
	reply_limit(c, too_long);
}

struct effect *reply_push(struct client *c)
{
	struct effects *out = c->locks->env->out;
	struct effect *e = effects_add(out, EFFECT_PUSH);

	e->conn = c->conn;
	e->text = effects_take(out);
	return e;
}

void reply_integer(struct client *c, int64_t value)
{
	resp_integer(reply_out(c), value);
	reply_end(c);
}

void reply_integer_settled(struct client *c, int64_t value)
{
	resp_integer(reply_out(c), value);
	reply_end_settled(c);
}

void reply_nil(struct client *c)
{
	resp_nil(reply_out(c), c->version);
	reply_end(c);
}

void reply_nil_array(struct client *c)
{
	resp_nil_array(reply_out(c), c->version);
	reply_end(c);
}

void reply_status(struct client *c, const char *text)
{
	resp_status(reply_out(c), text);
	reply_end(c);
}

void reply_error_values(struct client *c, enum error_code code, const char *format, const struct bytes_value *values,
			size_t count)
{
	struct bytes sentence = { 0 };

	bytes_format_values(&sentence, format, values, count);
	flight_note_again(c->locks->env->conf->flight, FLIGHT_refused, c->locks->env->now_ns, (int64_t)c->id,
			  bytes_view(&sentence));
	resp_error(reply_out(c), code, bytes_view(&sentence));
	reply_end(c);
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

void reply_denied(struct client *c, const char *what)
{
	reply_error(c, ERROR_DENIED,
		    "only operators may %s: use the operators' socket %s (lockbroker does so by itself for root)", what,
		    c->locks->env->conf->operator_socket);
}

bool reply_permits(struct client *c, enum rule_verb verb, struct slice name, const char *what)
{
	const struct rule *rule;

	if (client_may(c, verb, name, &rule))
		return true;
	if (rule)
		reply_error(c, ERROR_DENIED, DENIED_BY, rule_verb_does(verb), name, rule->text, rule->where);
	else
		reply_denied(c, what);
	return false;
}
