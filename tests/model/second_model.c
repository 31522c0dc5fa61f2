/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/second_model.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static const char two[] = "it holds, and was never first";
static const char passed[] = "it holds, and one stands before it that a list has shown";

struct model second_model_start(const struct model_scope *scope)
{
	struct model m;

	memset(&m, 0, sizeof(m)); /* its padding, too, is compared */
	m.joins = scope->joins;
	m.writes = scope->writes;
	m.connections = scope->connections;
	m.by_hand = scope->by_hand;
	m.pred = m.ahead = NOBODY;
	return m;
}

static uint8_t bit(uint8_t number)
{
	return (uint8_t)(1u << number);
}

/* Bits of the znodes with smaller numbers that conflict. */
static uint8_t before(const struct model *m, uint8_t number)
{
	uint8_t smaller = (uint8_t)(bit(number) - 1);

	return m->readers & bit(number) ? smaller & (uint8_t)~m->readers : smaller;
}

/* NOBODY: it is empty. */
static uint8_t last(uint8_t bits)
{
	for (uint8_t n = NUMBERS; n-- > 0;)
		if (bits & bit(n))
			return n;
	return NOBODY;
}

static bool has_room(const struct model_queue *q, uint8_t count)
{
	return q->count + count <= QUEUE;
}

static void put(struct model_queue *q, enum model_message kind, uint8_t what)
{
	assert(q->count < QUEUE);
	q->at[q->count++] = (uint16_t)(kind << 8 | what);
}

static uint16_t take(struct model_queue *q)
{
	uint16_t first = q->at[0];

	memmove(&q->at[0], &q->at[1], sizeof(q->at) - sizeof(q->at[0]));
	q->at[QUEUE - 1] = 0;
	q->count--;
	return first;
}

/* ---- the server ---- */

static void changed(struct model *m)
{
	for (uint8_t n = 0; n < NUMBERS; n++)
		if (m->truth & bit(n) && !(m->truth & before(m, n)))
			m->was_first |= bit(n);
}

static void tell(struct model *m, enum model_message kind, uint8_t number)
{
	if (m->watched & bit(number))
		put(&m->answers, kind, number);
	m->watched &= (uint8_t)~bit(number);
}

/* The host's server learns of a znode that was made or deleted. */
static void learn(struct model *m, uint8_t number)
{
	m->exists ^= bit(number);
	if (m->exists & bit(number))
		return;
	m->shown &= (uint8_t)~bit(number);
	tell(m, DELETED, number);
}

static void learn_next(struct model *m)
{
	uint8_t number = m->late[0];

	memmove(&m->late[0], &m->late[1], sizeof(m->late) - sizeof(m->late[0]));
	m->late[LAG - 1] = 0;
	m->behind--;
	learn(m, number);
}

static void change(struct model *m, const struct model_scope *s, uint8_t number)
{
	m->truth ^= bit(number);
	changed(m);
	assert(m->behind < LAG);
	m->late[m->behind++] = number;
	if (!s->lag)
		learn_next(m);
}

/* The server that answers a write knows its change, and all changes before it. */
static void write(struct model *m, uint8_t number)
{
	m->truth ^= bit(number);
	changed(m);
	learn(m, number);
}

/* A delete tells the watch, and is answered. */
static void answer(struct model *m, const struct model_scope *s)
{
	uint16_t request = take(&m->requests);
	uint8_t n = (uint8_t)request;

	switch ((enum model_message)(request >> 8)) {
	case CREATE:
		n = m->made < s->numbers ? m->made++ : NOBODY;
		if (n != NOBODY) {
			m->ours |= bit(n);
			m->readers |= (uint8_t)((request & 1) << n);
			write(m, n);
		}
		put(&m->answers, CREATED, n);
		break;
	case LIST:
		put(&m->answers, LISTED, m->exists);
		break;
	case GET:
		if (m->exists & bit(n))
			m->watched |= bit(n);
		put(&m->answers, m->exists & bit(n) ? GOT : GOT_NONODE, n);
		break;
	case DELETE:
		if (m->exists & bit(n))
			write(m, n);
		put(&m->answers, GONE, n);
		break;
	case CREATED:
	case LISTED:
	case GOT:
	case GOT_NONODE:
	case GONE:
	case DELETED:
	case CHANGED:
		assert(false);
	}
}

/* ---- the host ---- */

static void list(struct model *m)
{
	put(&m->requests, LIST, 0);
}

static void forget(struct model *m)
{
	m->before = m->writers = m->pred_watch = m->ahead_watch = 0;
	m->pred = m->ahead = NOBODY;
}

static const char *hold(struct model *m, const struct model_scope *s)
{
	forget(m);
	m->state = HELD;
	if (m->own == ASKED)
		m->own = UNSET;
	if (m->exists & m->shown & before(m, m->number))
		return passed;
	return m->was_first & bit(m->number) || s->by_hand ? NULL : two;
}

static bool is_second(const struct model *m, const struct model_scope *s)
{
	if (!(m->before == 1 || (m->before && s->broken == MODEL_MORE_BEFORE)) ||
	    (m->own != STANDS && s->broken != MODEL_NO_OWN_WATCH &&
			   !(m->own == ASKED && s->broken == MODEL_OWN_UNANSWERED)))
		return false;
	return m->old == NO_CLAIM || s->broken == (m->old == HELD ? MODEL_OWN_HELD : MODEL_OWN_LEAVING);
}

static const char *pred_gone(struct model *m, const struct model_scope *s)
{
	if (is_second(m, s))
		return hold(m, s);
	forget(m);
	list(m);
	return NULL;
}

/* What is watched is asked for in this order: own, ahead, predecessor. Its own older claim it does not watch. */
static void watch(struct model *m, const struct model_scope *s)
{
	if (m->state != WAITING || m->pred == NOBODY || (m->old != NO_CLAIM && m->pred == m->old_number))
		return;
	if (m->own == UNSET && s->broken != MODEL_NO_OWN_WATCH) {
		m->own = ASKED;
		put(&m->requests, GET, m->number);
	}
	if (m->before != 1 && m->ahead != NOBODY && !m->ahead_watch) {
		m->ahead_watch = 1;
		put(&m->requests, GET, m->ahead);
	}
	if (!m->pred_watch) {
		m->pred_watch = 1;
		put(&m->requests, GET, m->pred);
	}
}

static void end(struct model *m)
{
	forget(m);
	m->state = NO_CLAIM;
	m->number = m->own = 0;
}

static uint8_t count(uint8_t bits)
{
	return (uint8_t)__builtin_popcount(bits);
}

static const char *listed(struct model *m, const struct model_scope *s, uint8_t shows)
{
	uint8_t ahead, others, pred, farther;

	m->shown |= shows & m->exists;
	if (m->state != WAITING && m->state != HELD)
		return NULL;
	if (!(shows & bit(m->number))) {
		end(m);
		return NULL;
	}
	ahead = shows & before(m, m->number);
	if (m->state == HELD)
		return NULL;
	if (!ahead)
		return hold(m, s);
	pred = last(ahead);
	if (pred != m->pred)
		forget(m);
	m->pred = pred;
	others = ahead & (uint8_t) ~(m->old == NO_CLAIM ? 0 : bit(m->old_number));
	if (s->broken == MODEL_READER_UNCOUNTED)
		others &= (uint8_t)~m->readers;
	m->before = m->ours & bit(pred) ? 0 : count(others);
	m->writers = !(ahead & m->readers);
	farther = last(ahead & (uint8_t)(bit(pred) - 1));
	if (farther != NOBODY && m->ours & bit(farther))
		farther = NOBODY;
	m->ahead_watch = m->ahead_watch && m->ahead == farther;
	m->ahead = farther;
	return NULL;
}

static void ahead_listed(struct model *m)
{
	m->before = m->ahead_watch = 0;
	m->ahead = NOBODY;
	list(m);
}

static void ahead_gone(struct model *m, const struct model_scope *s)
{
	if ((m->before != 2 && s->broken != MODEL_AHEAD_GONE) || !m->writers) {
		ahead_listed(m);
		return;
	}
	m->ahead = NOBODY;
	m->ahead_watch = 0;
	m->before = 1;
}

static void own_used_up(struct model *m, const struct model_scope *s, enum model_message event)
{
	if (s->broken != (event == CHANGED ? MODEL_OWN_AFTER_WRITTEN : MODEL_OWN_AFTER_DELETED))
		m->own = UNSET;
	if (event == DELETED)
		list(m);
}

static const char *watched(struct model *m, const struct model_scope *s, enum model_message event, uint8_t number)
{
	if ((m->state == WAITING || m->state == HELD) && number == m->number) {
		own_used_up(m, s, event);
	} else if (m->state == WAITING && (number == m->pred || (s->broken == MODEL_ANY_WATCHED && m->pred != NOBODY))) {
		if (event == DELETED)
			return pred_gone(m, s);
		m->pred_watch = 0;
	} else if (m->state == WAITING && number == m->ahead) {
		m->ahead_watch = 0;
		if (event == DELETED)
			ahead_gone(m, s);
	}
	return NULL;
}

static const char *got(struct model *m, const struct model_scope *s, enum model_message answer, uint8_t number)
{
	if (m->state != WAITING && m->state != HELD)
		return NULL;
	if (number == m->number) {
		if (answer == GOT_NONODE)
			list(m);
		else if (m->own == ASKED)
			m->own = STANDS;
		return NULL;
	}
	if (m->state == HELD || answer == GOT)
		return NULL;
	if (number == m->pred || s->broken == MODEL_FORMER_PREDECESSOR)
		return pred_gone(m, s);
	if (m->ahead_watch)
		ahead_listed(m);
	return NULL;
}

/* Its older claim is gone: a list shows who is first, if that was before it. */
static void gone(struct model *m, uint8_t number)
{
	if (m->old != LEAVING || number != m->old_number)
		return;
	m->old = NO_CLAIM;
	m->old_number = 0;
	if (m->state == WAITING && m->pred == number) {
		forget(m);
		list(m);
	}
}

static void created(struct model *m, uint8_t number)
{
	if (m->state != JOINING)
		return;
	m->state = number == NOBODY ? NO_CLAIM : WAITING;
	m->number = number == NOBODY ? 0 : number;
}

static const char *hear(struct model *m, const struct model_scope *s)
{
	uint16_t message = take(&m->answers);
	enum model_message kind = (enum model_message)(message >> 8);
	uint8_t what = (uint8_t)message;
	const char *bad = NULL;

	switch (kind) {
	case CREATED:
		created(m, what);
		break;
	case LISTED:
		bad = listed(m, s, what);
		break;
	case GOT:
	case GOT_NONODE:
		bad = got(m, s, kind, what);
		break;
	case GONE:
		gone(m, what);
		break;
	case DELETED:
	case CHANGED:
		bad = watched(m, s, kind, what);
		break;
	case CREATE:
	case LIST:
	case GET:
	case DELETE:
		assert(false);
	}
	watch(m, s);
	return bad;
}

static void join(struct model *m, bool reads)
{
	m->joins--;
	m->state = JOINING;
	m->own = UNSET;
	put(&m->requests, CREATE, reads);
	list(m);
}

/* The claim goes: it is the older one until its deletion is answered. */
static void leave(struct model *m)
{
	m->old = LEAVING;
	m->old_number = m->number;
	put(&m->requests, DELETE, m->number);
	end(m);
}

/* What was under way is done or not, and nobody is told. */
static void connect_again(struct model *m, const struct model_scope *s)
{
	uint8_t pred = m->pred, known = m->before, own = m->own;

	m->connections--;
	m->watched = m->shown = 0;
	memset(&m->requests, 0, sizeof(m->requests));
	memset(&m->answers, 0, sizeof(m->answers));
	forget(m);
	m->own = UNSET;
	if (m->old == LEAVING)
		put(&m->requests, DELETE, m->old_number);
	if (m->state == WAITING && s->broken == MODEL_OLD_CONNECTION && pred != NOBODY) {
		m->pred = pred;
		m->before = known;
		m->own = own == ASKED ? UNSET : own;
		watch(m, s);
	} else if (m->state != NO_CLAIM) {
		list(m);
	}
}

/* ---- all steps ---- */

static void go(struct model_walk *walk, const struct model *next, const char *step, const char *bad)
{
	walk->to(walk, next, step, bad);
}

static void host_steps(struct model_walk *walk, const struct model *m)
{
	const struct model_scope *s = walk->scope;
	struct model n = *m;
	const char *bad;

	if (m->answers.count && has_room(&m->requests, 4)) {
		bad = hear(&n, s);
		go(walk, &n, "H hears", bad);
	}
	if (!has_room(&m->requests, 2))
		return;
	n = *m;
	for (uint8_t reads = 0; reads <= s->modes; reads++) {
		n = *m;
		if (m->state == NO_CLAIM && m->joins && m->old != HELD) {
			join(&n, reads);
			go(walk, &n, "H joins", NULL);
		} else if (m->state == HELD && m->joins && s->next && m->old == NO_CLAIM) {
			n.old = HELD;
			n.old_number = m->number;
			end(&n);
			join(&n, reads);
			go(walk, &n, "H joins behind itself", NULL);
		}
	}
	n = *m;
	if ((m->state == HELD || m->state == WAITING) && m->old == NO_CLAIM) {
		leave(&n);
		go(walk, &n, "H leaves", NULL);
	} else if (m->old == HELD) {
		n.old = LEAVING;
		put(&n.requests, DELETE, m->old_number);
		go(walk, &n, "H's older claim leaves", NULL);
	}
	n = *m;
	if (m->connections && m->state != JOINING) {
		connect_again(&n, s);
		go(walk, &n, "H makes a new connection", NULL);
	}
	n = *m;
	if (s->by_hand && m->state == WAITING && m->pred != NOBODY && !m->requests.count) {
		list(&n);
		go(walk, &n, "H lists for another reason", NULL);
	}
}

/* A list that is on its way shows it as it was before. */
static bool is_told_as_listed(const struct model *m, uint8_t number)
{
	for (uint8_t i = 0; i < m->answers.count; i++)
		if (m->answers.at[i] >> 8 == LISTED && m->answers.at[i] & bit(number))
			return true;
	return false;
}

static void others_steps(struct model_walk *walk, const struct model *m)
{
	const struct model_scope *s = walk->scope;
	struct model n = *m;

	if (!has_room(&m->answers, 2) || m->behind > s->lag || m->behind == LAG)
		return;
	for (uint8_t reads = 0; reads <= s->modes && m->made < s->numbers; reads++) {
		n = *m;
		n.readers |= (uint8_t)(reads << n.made);
		change(&n, s, n.made++);
		go(walk, &n, reads ? "a reader joins" : "another one joins", NULL);
	}
	for (uint8_t i = 0; i < m->made; i++) {
		n = *m;
		if (m->truth & bit(i)) {
			change(&n, s, i);
			go(walk, &n, m->ours & bit(i) ? "an operator deletes H's znode" : "another one goes", NULL);
		} else if (m->by_hand && !(m->ours & bit(i)) && !is_told_as_listed(m, i)) {
			n.by_hand--;
			change(&n, s, i);
			go(walk, &n, "a znode is made by hand", NULL);
		}
		n = *m;
		if (m->writes && m->watched & bit(i)) {
			n.writes--;
			tell(&n, CHANGED, i);
			go(walk, &n, "a znode is written", NULL);
		}
	}
}

static bool is_write(uint16_t request)
{
	return request >> 8 == CREATE || request >> 8 == DELETE;
}

void second_model_steps(struct model_walk *walk, const struct model *m)
{
	struct model n = *m;

	host_steps(walk, m);
	if (m->requests.count && has_room(&m->answers, 2) && !(m->behind && is_write(m->requests.at[0]))) {
		answer(&n, walk->scope);
		go(walk, &n, "the server answers", NULL);
	}
	n = *m;
	if (m->behind && has_room(&m->answers, 1)) {
		learn_next(&n);
		go(walk, &n, "the server learns what another one did", NULL);
	}
	others_steps(walk, m);
}

/* Nothing is under way: who waits then watches one that stands, or an older claim of its own. */
const char *second_model_bad(const struct model *m)
{
	if (m->state != WAITING || m->requests.count || m->answers.count || m->behind)
		return NULL;
	if (m->pred != NOBODY && m->exists & m->watched & bit(m->pred))
		return NULL;
	return m->old != NO_CLAIM && m->pred == m->old_number ? NULL : "it waits for ever";
}
