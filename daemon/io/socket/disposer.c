/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/disposer.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/charge.h"
#include "base/clock.h"
#include "base/mem.h"
#include "io/base/watch.h"
#include "io/socket/intake.h"
#include "io/socket/socket_pools.h"

enum { DESCRIPTORS_MAX = 253 /* SCM_MAX_FD: the most of one message */, PART_BYTES = 8192 };

/* Between two checks whether the previous thread has ended. */
#define PAUSE_NS CLOCK_NS_PER_MS
#define PAUSE_MAX_NS CLOCK_NS_PER_S

struct waiting {
	int fd;
	struct charge charge; /* the one of the connection goes on */
	STAILQ_ENTRY(waiting) link;
};

struct disposer {
	STAILQ_HEAD(waiting_list, waiting) list; /* a thread that receives works on the first one */
	struct watch *received, *pause;
	int64_t pause_ns; /* the length of the next pause */
	int event;        /* eventfd, written by the thread at its end; -1: no descriptor was free yet */
	bool receives;
	pthread_t thread;
	/* Only the thread uses these, until it has written to `event`. */
	int fd;
	pid_t tid;
	bool failed; /* unshare() failed: the thread has received nothing */
};

/* ---- the thread ---- */

/* Closes all descriptors but two. The thread has a table of its own, so the process keeps them. */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 0)
		close_range(0, (unsigned int)low - 1, 0);
	if (high - low > 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0U, 0);
}

/* Reads up to the first message with descriptors, or to the end. The descriptors stay in the thread's table. */
static void receive(int fd)
{
	char bytes[PART_BYTES];
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct iovec part = { bytes, sizeof(bytes) };
	struct msghdr message;

	do {
		message = (struct msghdr){
			.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
		};
	} while (recvmsg(fd, &message, MSG_DONTWAIT) > 0 && !message.msg_controllen);
}

static void *disposer_thread(void *arg)
{
	struct disposer *d = arg;
	const uint64_t one = 1;
	int event = d->event;
	ssize_t written;

	d->tid = gettid();
	d->failed = unshare(CLONE_FILES) < 0;
	if (!d->failed) {
		close_others(event, d->fd);
		receive(d->fd);
	}
	written = write(event, &one, sizeof(one));
	(void)written; /* the counter cannot overflow */
	return NULL;
}

/* ---- the loop ---- */

static void pause_for_a_moment(struct disposer *d)
{
	watch_set(d->pause, -1, 0, d->pause_ns);
	if (d->pause_ns < PAUSE_MAX_NS)
		d->pause_ns *= 2;
}

/* True: the kernel is still closing the descriptors that the previous thread has received. */
static bool thread_is_there(const struct disposer *d)
{
	return d->tid && tgkill(getpid(), d->tid, 0) == 0;
}

static bool open_event(struct disposer *d)
{
	d->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->event >= 0)
		watch_set(d->received, d->event, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
	return d->event >= 0;
}

static bool start_thread(struct disposer *d)
{
	sigset_t all, old;

	if (d->event < 0 && !open_event(d))
		return false;
	d->fd = STAILQ_FIRST(&d->list)->fd;
	/* Signals belong to the loop's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	d->receives = pthread_create(&d->thread, NULL, disposer_thread, d) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return d->receives;
}

static void go_on(struct disposer *d)
{
	if (d->receives || watch_is_set(d->pause) || STAILQ_EMPTY(&d->list))
		return;
	if (thread_is_there(d) || !start_thread(d))
		pause_for_a_moment(d);
	else
		d->pause_ns = PAUSE_NS;
}

static void pause_over(int fd, short what, void *arg)
{
	go_on(arg);
}

static void thread_received(int fd, short what, void *arg)
{
	struct disposer *d = arg;
	struct waiting *w = STAILQ_FIRST(&d->list);
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return;
	/* The thread has only to return. pthread_join() does not wait until the kernel has closed its descriptors. */
	pthread_join(d->thread, NULL);
	d->receives = false;
	if (d->failed) {
		pause_for_a_moment(d);
		return;
	}
	if (intake_empty(w->fd)) {
		STAILQ_REMOVE_HEAD(&d->list, link);
		close(w->fd);
		charge_give_back(&w->charge, SOCKET_CONNECTIONS);
		mem_free(w);
	}
	go_on(d);
}

void disposer_take(struct disposer *d, int fd, struct account *account)
{
	struct waiting *w;

	if (intake_is_open(fd)) {
		shutdown(fd, SHUT_RDWR);
		if (!intake_empty(fd)) {
			w = mem_new(sizeof(*w));
			w->fd = fd;
			charge_force(&w->charge, account, SOCKET_CONNECTIONS, 1);
			STAILQ_INSERT_TAIL(&d->list, w, link);
			go_on(d);
			return;
		}
	}
	close(fd);
}

struct disposer *disposer_new(struct watch_base *base)
{
	struct disposer *d = mem_new(sizeof(*d));

	STAILQ_INIT(&d->list);
	d->pause_ns = PAUSE_NS;
	d->received = watch_new(base, thread_received, d);
	d->pause = watch_new(base, pause_over, d);
	open_event(d);
	return d;
}

void disposer_free(struct disposer *d)
{
	struct waiting *w;

	if (!d)
		return;
	while ((w = STAILQ_FIRST(&d->list))) {
		STAILQ_REMOVE_HEAD(&d->list, link);
		charge_give_back(&w->charge, SOCKET_CONNECTIONS);
		mem_free(w);
	}
	watch_free(d->received);
	watch_free(d->pause);
	/* The process ends without waiting for the thread, which may still use `d`. */
	if (d->receives) {
		pthread_detach(d->thread);
		return;
	}
	if (d->event >= 0)
		close(d->event);
	mem_free(d);
}
