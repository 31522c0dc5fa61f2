/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planned hand-over, the new process's side; handover.h has both. Until COMMIT has come, this process touches nothing
 * that it is given: it may be killed at any time, and the old one goes on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct identity;
struct parcel;
struct takeover;
struct watch_base;

struct takeover_calls {
	/* Once, when the old process has exited. */
	void (*over)(void *arg);
	/* After that, for each signal that came when it had committed. */
	void (*passed)(void *arg, int number, pid_t sender);
	void *arg;
};

/* NULL: no process hands over to this one, which is started as usual. To be called first. */
struct takeover *takeover_new(void);
/* Takes NULL. */
void takeover_free(struct takeover *t);
/* Why this process will not take over: it is to exit now. `t` NULL: nobody is told. */
void takeover_refuse(struct takeover *t, const char *sentence);
/* True: this process is of that daemon. Otherwise it has refused. */
bool takeover_meet(struct takeover *t, const struct identity *self);
/* Prepared: waits for everything. NULL: this process has refused, or the old one goes on. */
struct parcel *takeover_receive(struct takeover *t);
/* All is checked: waits for COMMIT. False: the old process goes on. */
bool takeover_accept(struct takeover *t);
/* After COMMIT, when this process serves. */
void takeover_watch(struct takeover *t, struct watch_base *base, const struct takeover_calls *calls);
