/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "io/notify.h"
#include "keeper/descriptors.h"

static void reset(struct exchange *x, int fd)
{
	x->fd = fd;
	x->given = 0;
	x->kept = (struct keeper_message){ .kind = KEEPER_KEPT };
	x->refused = (struct keeper_message){ .kind = KEEPER_REFUSED };
	x->heard = (struct exchange_heard){ 0 };
	x->most[0] = '\0';
}

void exchange_begin(struct exchange *x, int fd, unsigned int crashes)
{
	reset(x, fd);
	x->begun = false;
	x->crashes = crashes;
}

void exchange_go_on(struct exchange *x, int fd)
{
	reset(x, fd);
	x->begun = true;
}

/* ---- what the worker is told ---- */

/* False: not now. If the worker has ended, that is seen when it is read. */
static bool tell(const struct exchange *x, const struct keeper_message *m, const int *fds)
{
	return keeper_message_send(x->fd, m, fds) != -EAGAIN;
}

static bool give_back(struct exchange *x)
{
	size_t all = descriptors_count(x->descriptors);

	while (x->given < all) {
		struct keeper_message m = { .kind = KEEPER_BACK };
		int fds[KEEPER_BATCH];

		for (; m.count < KEEPER_BATCH && x->given + m.count < all; m.count++)
			fds[m.count] = descriptors_at(x->descriptors, x->given + m.count, &m.numbers[m.count]);
		if (!tell(x, &m, fds))
			return false;
		x->given += m.count;
	}
	return true;
}

static bool begin(struct exchange *x)
{
	struct keeper_message m = { .kind = KEEPER_BEGIN, .count = 1, .numbers = { x->crashes } };

	if (!x->begun)
		x->begun = give_back(x) && tell(x, &m, NULL);
	return x->begun;
}

static bool tell_signals(struct exchange *x)
{
	struct keeper_message m = { .kind = KEEPER_SIGNAL, .count = 2 };

	for (int number = 1; x->signals && number < EXCHANGE_SIGNALS; number++) {
		if (!(x->signals & UINT64_C(1) << number))
			continue;
		m.numbers[0] = (uint64_t)number;
		m.numbers[1] = (uint64_t)x->senders[number];
		if (!tell(x, &m, NULL))
			return false;
		x->signals &= ~(UINT64_C(1) << number);
	}
	return true;
}

static bool answer(struct exchange *x, struct keeper_message *m)
{
	if (m->count && !tell(x, m, NULL))
		return false;
	m->count = 0;
	return true;
}

bool exchange_tell(struct exchange *x)
{
	return begin(x) && tell_signals(x) && answer(x, &x->kept) && answer(x, &x->refused);
}

/* At once if it can be: those that come one after the other keep their order. */
void exchange_signal(struct exchange *x, int number, pid_t sender)
{
	if (number <= 0 || number >= EXCHANGE_SIGNALS)
		return;
	x->signals |= UINT64_C(1) << number;
	x->senders[number] = sender;
	if (x->fd >= 0)
		exchange_tell(x);
}

/* ---- what the worker says ---- */

static void keep(struct exchange *x, const struct keeper_message *m, const struct keeper_message_with *with)
{
	for (size_t i = 0; i < m->count; i++) {
		bool kept = i < with->fd_count && descriptors_put(x->descriptors, m->numbers[i], with->fds[i]);
		struct keeper_message *to = kept ? &x->kept : &x->refused;

		to->numbers[to->count++] = m->numbers[i];
	}
}

static void hear(struct exchange *x, const struct keeper_message *m, struct keeper_message_with *with)
{
	if (with->sender > 0)
		x->heard.sender = with->sender;
	if (m->kind == KEEPER_KEEP) {
		keep(x, m, with);
		return;
	}
	if (m->kind == KEEPER_NOTIFY && x->manager)
		notify_pass_on(x->manager, (const char *)m->numbers, keeper_message_text_len(m), with->fds,
			       with->fd_count);
	while (with->fd_count)
		close(with->fds[--with->fd_count]);
	if (m->kind == KEEPER_DROP) {
		for (size_t i = 0; i < m->count; i++)
			descriptors_drop(x->descriptors, m->numbers[i]);
	} else if (m->kind == KEEPER_ALIVE && m->count == 1) {
		x->heard.alive = true;
		x->heard.within_us = m->numbers[0];
	} else if (m->kind == KEEPER_HERE) {
		x->heard.here = true;
	} else if (m->kind == KEEPER_AGAIN) {
		x->heard.again = true;
	} else if (m->kind == KEEPER_STAYS) {
		x->heard.stays = true;
	} else if (m->kind == KEEPER_MOST) {
		snprintf(x->most, sizeof(x->most), "%.*s", (int)keeper_message_text_len(m), (const char *)m->numbers);
	}
}

bool exchange_turn(struct exchange *x)
{
	struct keeper_message_with with;
	struct keeper_message m;
	int rc;

	while (!x->heard.again && exchange_tell(x)) {
		rc = keeper_message_receive(x->fd, &m, &with);
		if (rc == -EAGAIN)
			break;
		if (rc == 0)
			hear(x, &m, &with);
		if (rc == 0 || rc == -EBADMSG)
			continue;
		close(x->fd);
		x->fd = -1;
		return false;
	}
	return true;
}
