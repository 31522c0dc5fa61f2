/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/lifelines.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/account.h"
#include "base/charge.h"
#include "base/clock.h"
#include "base/cold.h"
#include "base/container.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/queue.h"
#include "core/port/effect.h"
#include "io/base/feed.h"
#include "io/base/file.h"
#include "io/base/process.h"
#include "io/base/watch.h"
#include "io/socket/remains.h"
#include "io/socket/socket_pools.h"

#define AGAIN_NS CLOCK_NS_PER_S

TAILQ_HEAD(one_list, one);

struct one {
	struct lifelines *all;
	struct map_node node; /* all->numbers */
	TAILQ_ENTRY(one) link;
	uint64_t number, started;
	pid_t pid;
	int fd; /* -1: none */
	bool is_known, must, privileged; /* is_known: in `known` */
	struct account *account;
	struct charge charge;
	struct watch *watch;
};

struct lifelines {
	struct feed *feed;
	struct accounts *accounts;
	struct remains *remains;
	struct map numbers;
	struct one_list asked, known, over; /* over: not to be freed while its watch may be under way */
};

static bool is_running(const struct one *o)
{
	char text[PROCESS_STAT_MAX];
	struct process process = { 0 };

	return process_read(o->pid, text, &process) == 0 && process.start == o->started && !process.ended;
}

/* 0, -ESRCH: it has ended, or -errno. */
static int open_process(struct one *o)
{
	int fd;

	if (!is_running(o))
		return -ESRCH;
	fd = (int)syscall(SYS_pidfd_open, o->pid, 0);
	if (fd < 0)
		return -errno;
	if (!is_running(o)) {
		close(fd);
		return -ESRCH;
	}
	o->fd = fd;
	watch_set(o->watch, fd, WATCH_READ, WATCH_NO_TIMEOUT);
	return 0;
}

static void shut(struct one *o)
{
	watch_clear(o->watch);
	file_close(&o->fd);
	charge_give_back(&o->charge, SOCKET_CONNECTIONS);
}

static void tell(struct one *o, enum process_is is, struct slice sentence)
{
	feed_event(o->all->feed, &(struct event){ .type = EVENT_LIFELINE,
						  .lifeline = { .number = o->number,
								.pid = (uint32_t)o->pid,
								.is = is,
								.sentence = sentence } });
}

static void refuse(struct one *o, int error)
{
	struct bytes sentence = { 0 };

	if (error)
		bytes_format(&sentence, "the process cannot be watched: %s", slice_of(strerror(error)));
	else
		account_refusal(o->account, SOCKET_CONNECTIONS, o->privileged,
				&socket_pools_words[SOCKET_CONNECTIONS], &sentence);
	shut(o);
	tell(o, PROCESS_REFUSED, bytes_view(&sentence));
	bytes_free(&sentence);
}

static void ended(struct one *o)
{
	shut(o);
	tell(o, PROCESS_ENDED, (struct slice){ 0 });
}

static void fired(int fd, short what, void *arg)
{
	struct one *o = arg;

	(void)fd;
	(void)what;
	if (o->fd >= 0) {
		ended(o);
		return;
	}
	switch (open_process(o)) {
	case 0:
		break;
	case -ESRCH:
		ended(o);
		break;
	default:
		watch_set(o->watch, -1, 0, AGAIN_NS);
	}
}

static COLD void begin(struct one *o)
{
	int rc;

	if (!o->must && !remains_admit(o->all->remains, o->account, SOCKET_CONNECTIONS, o->privileged)) {
		refuse(o, 0);
		return;
	}
	charge_force(&o->charge, o->account, SOCKET_CONNECTIONS, 1);
	rc = open_process(o);
	if (rc == -ESRCH) {
		ended(o);
	} else if (rc < 0 && !o->must) {
		refuse(o, -rc);
	} else {
		if (rc < 0)
			watch_set(o->watch, -1, 0, AGAIN_NS);
		tell(o, PROCESS_WATCHED, (struct slice){ 0 });
	}
}

struct lifelines *lifelines_new(struct feed *feed, struct accounts *accounts, struct remains *remains)
{
	struct lifelines *l = mem_new(sizeof(*l));

	l->feed = feed;
	l->accounts = accounts;
	l->remains = remains;
	map_init(&l->numbers, 0, 0);
	TAILQ_INIT(&l->asked);
	TAILQ_INIT(&l->known);
	TAILQ_INIT(&l->over);
	return l;
}

void lifelines_watch(struct lifelines *l, const struct effect *effect, struct slice unit)
{
	struct one *o = mem_new(sizeof(*o));

	o->all = l;
	o->number = effect->lifeline.number;
	o->started = effect->lifeline.started;
	o->pid = (pid_t)effect->pid;
	o->fd = -1;
	o->must = effect->holds;
	o->privileged = effect->privileged;
	o->account = account_enter(l->accounts, effect->lifeline.uid, unit.data, unit.len);
	o->watch = watch_new(feed_base(l->feed), fired, o);
	map_add(&l->numbers, &o->node, o->number);
	TAILQ_INSERT_TAIL(&l->asked, o, link);
}

static struct one *find(const struct lifelines *l, uint64_t number)
{
	struct one *o;

	MAP_FOREACH(o, &l->numbers, number, node)
		if (o->number == number)
			return o;
	return NULL;
}

static void drop(struct one *o)
{
	struct lifelines *l = o->all;

	map_remove(&l->numbers, &o->node);
	TAILQ_REMOVE(o->is_known ? &l->known : &l->asked, o, link);
	shut(o);
	TAILQ_INSERT_TAIL(&l->over, o, link);
}

void lifelines_over(struct lifelines *l, uint64_t number)
{
	struct one *o = find(l, number);

	assert(o);
	drop(o);
}

static COLD void free_over(struct lifelines *l)
{
	struct one *o;

	while ((o = TAILQ_FIRST(&l->over))) {
		TAILQ_REMOVE(&l->over, o, link);
		watch_free(o->watch);
		account_leave(o->account);
		mem_free(o);
	}
}

void lifelines_free(struct lifelines *l)
{
	if (!l)
		return;
	while (!TAILQ_EMPTY(&l->asked))
		drop(TAILQ_FIRST(&l->asked));
	while (!TAILQ_EMPTY(&l->known))
		drop(TAILQ_FIRST(&l->known));
	free_over(l);
	map_deinit(&l->numbers);
	mem_free(l);
}

void lifelines_settle(struct lifelines *l)
{
	struct one *o;

	while ((o = TAILQ_FIRST(&l->asked))) {
		TAILQ_REMOVE(&l->asked, o, link);
		TAILQ_INSERT_TAIL(&l->known, o, link);
		o->is_known = true;
		begin(o);
	}
	if (!TAILQ_EMPTY(&l->over))
		free_over(l);
}
