/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn_room.h"

#include "base/cold.h"
#include "base/container.h"
#include "base/log.h"
#include "core/port/account_text.h"
#include "io/base/watch.h"
#include "protocol/commands.h"

#define CONN_LOOK_NS CLOCK_NS_PER_S

void conn_wake(struct conn *c)
{
	struct party_place *first = TAILQ_FIRST(&c->place.party->held);

	if (first && conn_has_room(container_of(first, struct conn, place)))
		party_release(&c->env->parties, first);
}

void conn_count_output(struct conn *c)
{
	size_t unwritten = conn_unwritten(c), before = c->unwritten.amount;
	size_t amount = unwritten > CONN_UNWRITTEN_SMALL ? unwritten - CONN_UNWRITTEN_SMALL : 0;

	if (c->expects && amount < c->env->output_bytes)
		amount = c->env->output_bytes;
	if (!before)
		c->heard_ns = feed_seen(c->env->feed);
	charge_set(&c->unwritten, c->account, SOCKET_OUTPUT, amount);
	if (amount < before)
		conn_wake(c);
}

COLD void conn_hold(struct conn *c)
{
	party_hold(&c->env->parties, &c->place);
	if (!watch_is_set(c->env->patience))
		watch_set(c->env->patience, -1, 0, CONN_LOOK_NS);
}

bool conn_asks_much(const struct conn *c, size_t request_bytes)
{
	return request_bytes > CONN_UNWRITTEN_SMALL || command_shows_much(c->reader.argc, c->reader.argv);
}

void conn_expect(struct conn *c)
{
	c->expects = true;
	conn_count_output(c);
}

static void close_deaf(struct conn *c, size_t more)
{
	const struct log_account who = conn_log_account(c->account);
	struct bytes sentence = { 0 };

	account_refusal(c->account, SOCKET_OUTPUT, c->privileged, &socket_pools_words[SOCKET_OUTPUT], &sentence);
	log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_closed, &who,
		   LOG_FIELDS("why=%s bytes=%d", "output", conn_unwritten(c) + more),
		   "closed a client that does not read: %.*s", (int)sentence.len, sentence.data);
	bytes_free(&sentence);
	conn_die(c);
	/* That is room for the next one, who need not wait until this one is freed. */
	c->out.len = c->written;
	c->expects = false;
	conn_count_output(c);
}

bool conn_admits(struct conn *c, size_t more)
{
	if (conn_may_have(c, more))
		return true;
	close_deaf(c, more);
	return false;
}

void conn_lose_patience(struct conn *c, int64_t now_ns)
{
	if (!c->dead && !c->closing && conn_unwritten(c) > CONN_UNWRITTEN_SMALL &&
	    !TAILQ_EMPTY(&c->place.party->held) && now_ns - c->heard_ns >= CONN_PATIENCE_NS)
		close_deaf(c, 0);
}
