/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/base/watch.h"

/* When no thread could be started. */
#define RETRY_NS CLOCK_NS_PER_S

STAILQ_HEAD(work_list, work);

struct worker {
	pthread_t thread;
	pthread_mutex_t mutex; /* guards the lists and the flags */
	pthread_cond_t idle;
	struct work_list todo, finished;
	bool running; /* there is a thread, and it will look for more jobs */
	bool joinable, stopping;
	int fd; /* eventfd: something is finished */
	struct watch *watch, *retry;
};

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	const uint64_t one = 1;
	struct work *work;
	ssize_t written;

	pthread_mutex_lock(&w->mutex);
	while ((work = STAILQ_FIRST(&w->todo))) {
		STAILQ_REMOVE_HEAD(&w->todo, entry);
		pthread_mutex_unlock(&w->mutex);
		work->run(work);
		pthread_mutex_lock(&w->mutex);
		STAILQ_INSERT_TAIL(&w->finished, work, entry);
		written = write(w->fd, &one, sizeof(one));
		(void)written; /* this fails only if the counter is full, and then the loop is awake */
	}
	w->running = false;
	pthread_cond_signal(&w->idle);
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

/* For a thread that is no longer running. */
static void worker_join(struct worker *w)
{
	if (w->joinable)
		pthread_join(w->thread, NULL);
	w->joinable = false;
}

static void worker_finished(int fd, short what, void *arg)
{
	struct worker *w = arg;
	struct work_list finished = STAILQ_HEAD_INITIALIZER(finished);
	struct work *work;
	uint64_t count;
	ssize_t got = read(fd, &count, sizeof(count));

	(void)got;
	pthread_mutex_lock(&w->mutex);
	STAILQ_CONCAT(&finished, &w->finished);
	if (!w->running)
		worker_join(w);
	pthread_mutex_unlock(&w->mutex);
	while ((work = STAILQ_FIRST(&finished))) {
		STAILQ_REMOVE_HEAD(&finished, entry);
		if (work->done)
			work->done(work);
	}
}

/* Starts the thread; if that fails, it is tried again later. */
static void worker_start(struct worker *w)
{
	sigset_t all, old;

	worker_join(w);
	/* Signals belong to the loop's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	w->joinable = w->running = pthread_create(&w->thread, NULL, worker_thread, w) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!w->running)
		watch_set(w->retry, -1, 0, RETRY_NS);
}

static void worker_retry(int fd, short what, void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->mutex);
	if (!w->running && !w->stopping && !STAILQ_EMPTY(&w->todo))
		worker_start(w);
	pthread_mutex_unlock(&w->mutex);
}

static void worker_free(struct worker *w)
{
	watch_free(w->watch);
	watch_free(w->retry);
	if (w->fd >= 0)
		close(w->fd);
	pthread_cond_destroy(&w->idle);
	pthread_mutex_destroy(&w->mutex);
	mem_free(w);
}

int worker_new(struct worker **ret_worker, struct watch_base *base)
{
	struct worker *w = mem_new(sizeof(*w));
	pthread_condattr_t attr;

	STAILQ_INIT(&w->todo);
	STAILQ_INIT(&w->finished);
	pthread_mutex_init(&w->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->idle, &attr);
	pthread_condattr_destroy(&attr);
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0) {
		int rc = -errno;

		worker_free(w);
		return rc;
	}
	w->watch = watch_new(base, worker_finished, w);
	watch_set(w->watch, w->fd, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
	w->retry = watch_new(base, worker_retry, w);
	/*
	 * No thread is ever cancelled. Once there was a second thread, glibc before 2.41 prepares for cancellation at each
	 * system call; these settings avoid that.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	*ret_worker = w;
	return 0;
}

void worker_add(struct worker *w, struct work *work)
{
	pthread_mutex_lock(&w->mutex);
	assert(!w->stopping);
	STAILQ_INSERT_TAIL(&w->todo, work, entry);
	if (!w->running)
		worker_start(w);
	pthread_mutex_unlock(&w->mutex);
}

int worker_stop(struct worker *w, int64_t timeout_ns)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(timeout_ns / CLOCK_NS_PER_S);
	until.tv_nsec += (long)(timeout_ns % CLOCK_NS_PER_S);
	if (until.tv_nsec >= CLOCK_NS_PER_S) {
		until.tv_sec++;
		until.tv_nsec -= CLOCK_NS_PER_S;
	}
	pthread_mutex_lock(&w->mutex);
	w->stopping = true;
	while (rc == 0 && w->running)
		rc = pthread_cond_timedwait(&w->idle, &w->mutex, &until);
	pthread_mutex_unlock(&w->mutex);
	if (rc)
		return -rc;
	worker_join(w);
	worker_free(w);
	return 0;
}
