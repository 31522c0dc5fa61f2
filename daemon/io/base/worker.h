/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for work that blocks: name resolution, fsync, the farewell to ZooKeeper. Jobs run one after the other.
 * `run` is called in the thread and uses nothing but its job; `done` is called afterwards on the loop. The job belongs
 * to the worker between worker_add() and `done`.
 *
 * The thread lives only as long as there are jobs: in a process with a second thread each system call costs more, 3 to
 * 6 % of the rate of a null broker.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

struct work {
	void (*run)(struct work *work);
	void (*done)(struct work *work); /* NULL: nobody waits for it */
	STAILQ_ENTRY(work) entry;
};

struct watch_base;
struct worker;

/* 0 or -errno. */
int worker_new(struct worker **ret_worker, struct watch_base *base);
void worker_add(struct worker *w, struct work *work);
/*
 * Waits for the jobs, at most that long, and frees the worker; `done` is no longer called. -ETIMEDOUT if a job did not
 * end: the thread and its job are left to the end of the process.
 */
int worker_stop(struct worker *w, int64_t timeout_ns);
