/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/base/parcel.h"
#include "io/base/socket.h"
#include "io/base/watch.h"
#include "protocol/number.h"

/* What waits to be told to the service manager, and how long a descriptor may. */
enum { NOTICES_MAX = 16, NOTICE_WAIT_MS = 1000 };

struct keeper {
	int fd;
	struct watch *input, *room;
	bool pending; /* something is to be sent: */
	bool here, again, alive, stays;
	uint64_t within_us;
	struct keeper_message keep; /* with `fds` */
	int fds[KEEPER_BATCH];
	struct keeper_message notices[NOTICES_MAX]; /* the oldest first */
	size_t notice_count;
	uint64_t *drops;
	size_t drop_count, drop_cap;
	void (*signalled)(void *arg, int number, pid_t sender);
	void *signalled_arg;
	void (*kept)(void *arg, uint64_t id, bool kept);
	void *kept_arg;
};

/* As if this process had been killed: whoever starts it again takes up what is left. */
static void end(void)
{
	log_error(keeper_ended, LOG_NO_FIELDS,
		  "the main process of the service (the keeper) has ended, so this process ends, too");
	_exit(EXIT_FAILURE);
}

static struct keeper *make(int fd)
{
	struct keeper *k = mem_new(sizeof(*k));

	k->fd = fd;
	k->keep.kind = KEEPER_KEEP;
	return k;
}

/* What the service manager has passed to the keeper is for this process. */
static void own_passed(void)
{
	char pid[NUMBER_CHARS_MAX + 1];

	if (!getenv("LISTEN_FDS"))
		return;
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	setenv("LISTEN_PID", pid, 1);
}

struct keeper *keeper_new(void)
{
	int fd;

	if (!getenv(KEEPER_VARIABLE))
		return NULL;
	own_passed();
	fd = socket_inherited(KEEPER_VARIABLE);
	return fd < 0 ? NULL : make(fd);
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	watch_free(k->input);
	watch_free(k->room);
	mem_free(k->drops);
	mem_free(k);
}

pid_t keeper_pid(const struct keeper *k)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	/* Of a socket pair, the process that made it. */
	if (!k || getsockopt(k->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return getpid();
	return who.pid;
}

/* ---- what is sent ---- */

/* False: not now. */
static bool say(struct keeper *k, enum keeper_kind kind, const uint64_t *numbers, size_t count)
{
	struct keeper_message m = { .kind = kind, .count = (uint32_t)count };

	if (count)
		memcpy(m.numbers, numbers, count * sizeof(*numbers));
	/* Who has ended cannot be told anything; that is seen when its messages are read. */
	return keeper_message_send(k->fd, &m, NULL) != -EAGAIN;
}

static bool send_drops(struct keeper *k)
{
	size_t sent = 0;

	while (sent < k->drop_count) {
		size_t left = k->drop_count - sent, count = left < KEEPER_BATCH ? left : KEEPER_BATCH;

		if (!say(k, KEEPER_DROP, k->drops + sent, count))
			break;
		sent += count;
	}
	k->drop_count -= sent;
	if (sent && k->drop_count)
		memmove(k->drops, k->drops + sent, k->drop_count * sizeof(*k->drops));
	return k->drop_count == 0;
}

static bool send_keep(struct keeper *k)
{
	if (k->keep.count && keeper_message_send(k->fd, &k->keep, k->fds) == -EAGAIN)
		return false;
	k->keep.count = 0;
	return true;
}

static bool send_notices(struct keeper *k)
{
	size_t sent = 0;

	while (sent < k->notice_count && keeper_message_send(k->fd, &k->notices[sent], NULL) != -EAGAIN)
		sent++;
	k->notice_count -= sent;
	memmove(k->notices, k->notices + sent, k->notice_count * sizeof(k->notices[0]));
	return k->notice_count == 0;
}

static bool send_words(struct keeper *k)
{
	k->here = k->here && !say(k, KEEPER_HERE, NULL, 0);
	k->alive = k->alive && !say(k, KEEPER_ALIVE, &k->within_us, 1);
	k->again = k->again && !say(k, KEEPER_AGAIN, NULL, 0);
	k->stays = k->stays && !say(k, KEEPER_STAYS, NULL, 0);
	return !k->here && !k->alive && !k->again && !k->stays;
}

/* What is dropped goes first: its id may be kept anew. */
static void send_pending(struct keeper *k)
{
	k->pending = !send_words(k) || !send_notices(k) || !send_drops(k) || !send_keep(k);
	if (k->pending && k->room && !watch_is_set(k->room))
		watch_set(k->room, k->fd, WATCH_WRITE, WATCH_NO_TIMEOUT);
}

void keeper_settle(struct keeper *k)
{
	if (k && k->pending)
		send_pending(k);
}

static void room(int fd, short what, void *arg)
{
	send_pending(arg);
}

/* Of each role one waits at most: connections leave room for all of them. */
static uint32_t room_for(uint64_t id)
{
	return id & KEEPER_ROLE ? KEEPER_BATCH : KEEPER_BATCH - KEEPER_ROLES_MAX;
}

bool keeper_keep(struct keeper *k, uint64_t id, int fd)
{
	if (!k)
		return false;
	if (k->keep.count >= room_for(id))
		send_pending(k);
	if (k->keep.count >= room_for(id))
		return false;
	k->keep.numbers[k->keep.count] = id;
	k->fds[k->keep.count++] = fd;
	k->pending = true;
	return true;
}

/* If it was not sent yet, it will not be. */
static void take_back(struct keeper *k, uint64_t id)
{
	for (size_t i = 0; i < k->keep.count; i++) {
		if (k->keep.numbers[i] != id)
			continue;
		k->keep.count--;
		k->keep.numbers[i] = k->keep.numbers[k->keep.count];
		k->fds[i] = k->fds[k->keep.count];
		return;
	}
}

void keeper_drop(struct keeper *k, uint64_t id)
{
	if (!k)
		return;
	take_back(k, id);
	/* Also then: the keeper may have one of that id from the process that handed over to this one. */
	k->drops = mem_room(k->drops, k->drop_count, &k->drop_cap, sizeof(*k->drops));
	k->drops[k->drop_count++] = id;
	k->pending = true;
}

static bool is_state(const struct keeper_message *m)
{
	return strncmp((const char *)m->numbers, "STATUS=", sizeof("STATUS=") - 1) == 0;
}

static void add_notice(struct keeper *k, const struct keeper_message *m)
{
	if (k->notice_count && is_state(m) && is_state(&k->notices[k->notice_count - 1]))
		k->notice_count--;
	if (k->notice_count < NOTICES_MAX)
		k->notices[k->notice_count++] = *m;
	k->pending = true;
}

/* The caller waits for what comes of it in any case. */
static int notify_with(struct keeper *k, const struct keeper_message *m, int passed)
{
	struct pollfd room = { .fd = k->fd, .events = POLLOUT };
	int rc = -EAGAIN;

	for (int waits = 0; rc == -EAGAIN && waits < 2; waits++) {
		if (waits)
			poll(&room, 1, NOTICE_WAIT_MS);
		if (send_notices(k))
			rc = keeper_message_send_with(k->fd, m, &passed, 1);
	}
	return rc;
}

int keeper_notify(struct keeper *k, const char *text, int fd)
{
	struct keeper_message m = { .kind = KEEPER_NOTIFY };

	keeper_message_text(&m, text);
	if (fd >= 0)
		return notify_with(k, &m, fd);
	add_notice(k, &m);
	send_pending(k);
	return 0;
}

void keeper_alive(struct keeper *k, int64_t within_us)
{
	if (!k)
		return;
	k->within_us = (uint64_t)within_us;
	k->alive = k->pending = true;
	send_pending(k);
}

void keeper_most(struct keeper *k, const char *text)
{
	struct keeper_message m = { .kind = KEEPER_MOST };
	char cut[KEEPER_TEXT_MAX];

	if (!k)
		return;
	snprintf(cut, sizeof(cut), "%s", text);
	keeper_message_text(&m, cut);
	keeper_message_send(k->fd, &m, NULL);
}

void keeper_again(struct keeper *k)
{
	if (k)
		k->again = k->pending = true;
}

void keeper_stays(struct keeper *k)
{
	if (k)
		k->stays = k->pending = true;
}

/* ---- what is received ---- */

static void discard(struct keeper_message_with *with)
{
	for (size_t i = 0; i < with->fd_count; i++)
		close(with->fds[i]);
}

static void heard(struct keeper *k, const struct keeper_message *m)
{
	if ((m->kind == KEEPER_KEPT || m->kind == KEEPER_REFUSED) && k->kept) {
		for (size_t i = 0; i < m->count; i++)
			k->kept(k->kept_arg, m->numbers[i], m->kind == KEEPER_KEPT);
	} else if (m->kind == KEEPER_SIGNAL && m->count == 2) {
		k->signalled(k->signalled_arg, (int)m->numbers[0], (pid_t)m->numbers[1]);
	}
}

static void input(int fd, short what, void *arg)
{
	struct keeper_message_with with;
	struct keeper_message m;
	struct keeper *k = arg;
	int rc = keeper_message_receive(fd, &m, &with);

	if (rc == -EAGAIN || rc == -EBADMSG)
		return;
	if (rc < 0)
		end();
	discard(&with);
	heard(k, &m);
}

void keeper_attach(struct keeper *k, struct watch_base *base, void (*signalled)(void *arg, int number, pid_t sender),
		   void *arg)
{
	if (!k)
		return;
	k->signalled = signalled;
	k->signalled_arg = arg;
	k->input = watch_new(base, input, k);
	k->room = watch_new(base, room, k);
	watch_set(k->input, k->fd, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
	k->here = true;
	send_pending(k);
}

void keeper_on_kept(struct keeper *k, void (*kept)(void *arg, uint64_t id, bool kept), void *arg)
{
	if (!k)
		return;
	k->kept = kept;
	k->kept_arg = arg;
}

/* ---- the worker before this one ---- */

static void receive(struct keeper *k, struct keeper_message *m, struct keeper_message_with *with)
{
	struct pollfd ready = { .fd = k->fd, .events = POLLIN };
	int rc = keeper_message_receive(k->fd, m, with);

	while (rc == -EAGAIN) {
		poll(&ready, 1, -1);
		rc = keeper_message_receive(k->fd, m, with);
	}
	if (rc < 0)
		end();
}

/* Those for which this process had no room are the keeper's alone: with its copies their connections end. */
static void add_kept(struct keeper *k, struct keeper_past *past, size_t *cap, const struct keeper_message *m,
		     struct keeper_message_with *with)
{
	for (size_t i = with->fd_count; i < m->count; i++)
		keeper_drop(k, m->numbers[i]);
	for (size_t i = 0; i < with->fd_count; i++) {
		past->kept = mem_room(past->kept, past->count, cap, sizeof(*past->kept));
		past->kept[past->count++] = (struct keeper_copy){ .id = m->numbers[i], .fd = with->fds[i] };
	}
}

void keeper_receive(struct keeper *k, struct keeper_past *ret)
{
	struct keeper_message_with with;
	struct keeper_message m;
	size_t cap = 0;

	*ret = (struct keeper_past){ 0 };
	if (!k)
		return;
	do {
		receive(k, &m, &with);
		if (m.kind == KEEPER_BACK)
			add_kept(k, ret, &cap, &m, &with);
		else
			discard(&with);
	} while (m.kind != KEEPER_BEGIN || m.count != 1);
	ret->crashes = (unsigned int)m.numbers[0];
}

int keeper_take(struct keeper_past *past, uint64_t id)
{
	int fd = -1;

	for (size_t i = 0; i < past->count && fd < 0; i++) {
		if (past->kept[i].id != id)
			continue;
		fd = past->kept[i].fd;
		past->kept[i].fd = -1;
	}
	return fd;
}

void keeper_refuse(struct keeper *k, struct keeper_past *past, void (*finish)(void *arg, int fd), void *arg)
{
	for (size_t i = 0; i < past->count; i++) {
		const struct keeper_copy *kept = &past->kept[i];

		if (kept->fd < 0)
			continue;
		if (kept->id & KEEPER_ROLE) {
			close(kept->fd);
		} else {
			shutdown(kept->fd, SHUT_RDWR);
			finish(arg, kept->fd);
		}
		keeper_drop(k, kept->id);
	}
	keeper_past_free(past);
	keeper_settle(k);
}

void keeper_past_free(struct keeper_past *past)
{
	mem_free(past->kept);
	*past = (struct keeper_past){ 0 };
}

/* ---- a hand-over ---- */

/* Each with a byte 0 behind it. */
static void pack_notices(const struct keeper *k, struct entry_writer *w)
{
	struct bytes all = { 0 };

	for (size_t i = 0; i < k->notice_count; i++) {
		const struct keeper_message *m = &k->notices[i];

		bytes_slice(&all, (struct slice){ (const char *)m->numbers, keeper_message_text_len(m) });
		bytes_slice(&all, (struct slice){ "", 1 });
	}
	entry_text(w, "notices", bytes_view(&all));
	bytes_free(&all);
}

static void unpack_notices(struct keeper *k, struct slice all)
{
	const char *end;

	for (; (end = memchr(all.data, 0, all.len)); all.len -= (size_t)(end + 1 - all.data), all.data = end + 1) {
		struct keeper_message m = { .kind = KEEPER_NOTIFY };

		if (end - all.data > KEEPER_TEXT_MAX)
			continue;
		keeper_message_text(&m, all.data);
		add_notice(k, &m);
	}
}

void keeper_pack(const struct keeper *k, struct parcel *p)
{
	struct entry_writer w;

	if (!k)
		return;
	w = entry_begin(&p->text, "keeper");
	parcel_fd(p, &w, "fd", k->fd);
	entry_text(&w, "drops", (struct slice){ (const char *)k->drops, k->drop_count * sizeof(*k->drops) });
	pack_notices(k, &w);
	entry_end(&w);
}

struct keeper *keeper_unpack(struct parcel *p)
{
	struct entry e;
	struct keeper *k;
	struct slice drops;
	int fd;

	if (!parcel_find(p, "keeper", &e))
		return NULL;
	fd = parcel_take_fd(p, &e, "fd");
	if (fd < 0)
		return NULL;
	k = make(fd);
	drops = parcel_get_text(&e, "drops");
	for (size_t at = 0; at + sizeof(uint64_t) <= drops.len; at += sizeof(uint64_t)) {
		uint64_t id;

		memcpy(&id, drops.data + at, sizeof(id));
		keeper_drop(k, id);
	}
	unpack_notices(k, parcel_get_text(&e, "notices"));
	return k;
}
