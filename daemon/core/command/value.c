/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/value.h"

#include "core/client/reply.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "protocol/limits.h"
#include "protocol/number.h"

bool value_valid(struct client *c, struct slice value)
{
	if (value.len >= 1 && value.len <= BEARER_VALUE_MAX)
		return true;
	reply_error(c, ERROR_ERR, "the value of a lock is 1..512 bytes: %d", value.len);
	_Static_assert(BEARER_VALUE_MAX == 512, "the sentence names it");
	return false;
}

void value_lease_error(const struct call *call)
{
	struct bytes word = { 0 };

	args_command_word(&word, call->command);
	reply_error(call->client, ERROR_ERR, "invalid expire time in '%s' command: a lease ends 1 ms to 365 days from now",
		    bytes_view(&word));
	_Static_assert(LIMIT_MS_MAX == INT64_C(365) * 24 * 3600 * 1000, "the sentence names it");
	bytes_free(&word);
}

bool value_lease(const struct call *call, struct slice word, bool in_s, int64_t *ret_ns)
{
	int64_t number, unit = in_s ? 1000 : 1;

	if (number_parse(word, &number) && number >= 1 && number <= LIMIT_MS_MAX / unit) {
		*ret_ns = number * unit * NS_PER_MS;
		return true;
	}
	value_lease_error(call);
	return false;
}

enum value_holder value_holder(struct call *call, struct slice name, struct slice value, struct grant **ret,
			   const struct lookup_fact **ret_fact)
{
	struct client *c = call->client;
	struct lock *lock = lock_find(c->locks, name);
	const struct lookup_fact *fact = lookup_done(c->lookup, name);
	struct grant *g;

	if (!lock && !args_valid_name(c, name))
		return VALUE_WAIT;
	/* Whoever has it by now: what this request has done stays as it was answered. */
	g = lock && !fact ? delegated_holder(lock) : NULL;
	if (ret)
		*ret = g;
	if (g && value.len && place_find(lock, c, value) == g->client)
		return VALUE_NOBODY; /* it is only kept for that value */
	if (g)
		return value.len && bearer_grant_of(lock, c, value) ? VALUE_MINE : VALUE_OTHER;
	if (c->locks->env->conf->standalone)
		return VALUE_NOBODY;
	if (!fact)
		fact = lookup_look(call, name);
	if (!fact)
		return VALUE_WAIT;
	if (ret_fact)
		*ret_fact = fact;
	if (!fact->unknown)
		return fact->held ? VALUE_ELSEWHERE : VALUE_NOBODY;
	reply_error(c, ERROR_UNAVAILABLE, "ZooKeeper cannot be asked what other hosts hold: %s", name);
	return VALUE_WAIT;
}

enum value_holder value_forward(struct call *call, struct slice name, const struct forward_terms *terms)
{
	switch (forward_look(call, name, terms)) {
	case FORWARD_OURS:
		return VALUE_MINE;
	case FORWARD_FREE:
		return VALUE_NOBODY;
	case FORWARD_THEIRS:
		return VALUE_OTHER;
	case FORWARD_UNASKED:
		break;
	}
	return VALUE_WAIT;
}

static void write_held(struct client *c, struct slice host)
{
	struct bytes text = { 0 };

	bytes_format(&text, "held@%s", host);
	resp_bulk(reply_out(c), bytes_view(&text));
	bytes_free(&text);
}

void value_write(struct client *c, enum value_holder is, const struct grant *g, const struct lookup_fact *fact)
{
	switch (is) {
	case VALUE_WAIT:
	case VALUE_NOBODY:
		resp_nil(reply_out(c), c->version);
		break;
	case VALUE_ELSEWHERE:
		write_held(c, bytes_view(&fact->host));
		break;
	case VALUE_MINE:
	case VALUE_OTHER:
		if (bearer_grant(g->lock, c))
			resp_bulk(reply_out(c), bytes_view(&g->client->bearer->value));
		else
			write_held(c, slice_of(c->locks->env->conf->host));
		break;
	}
}

int64_t value_left_ms(const struct grant *g)
{
	return g && g->lease.place ? grant_lease_rest_ns(g) / NS_PER_MS : -1;
}

void value_set(struct call *call, const struct bid_terms *terms)
{
	if (terms->lease_ns || lifeline_may_be(call->client))
		bid_begin(call->client, terms);
	else
		reply_error(call->client, ERROR_ERR,
			    "without a time a lock is held until its process ends at most, and the process that has "
			    "connected cannot be seen from here: give a time with PX: %s",
			    terms->names[0]);
}
