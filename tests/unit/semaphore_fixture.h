/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphore s between hosts: what the tests of permits have in common. */
#pragma once

#include "core_fixture.h"

/* What stands in the directory of a semaphore. */
#define SEMAPHORE_DATA(limit) "1\nkind=semaphore\nlimit=" #limit "\n"

/* A lease of another host, made before ours. */
extern const char foreign_lease[];

/* ZooKeeper as it would answer when these leases stand, our turn in the mutex has come, and the limit is 3. */
struct there {
	int64_t zxid; /* transactions before it */
	char mutex[128], own[4][128];
	size_t own_count, other_count;
	const char *others[4];
	char told[1024]; /* data set last in a lease */
};

/* Answers the oldest operation; all of them. */
void there_answer_one(struct fixture *f, struct there *t);
void there_answer(struct fixture *f, struct there *t);
/* As fixture_say(), with those answers. */
void there_say(struct fixture *f, struct there *t, uint32_t conn, const char *words, const char *reply);

/* The data are read, with a watch on them, and `mutex` is made and is the first in the queue. */
void turn_comes(struct fixture *f, const char *data, char mutex[128]);
/* The queue is listed, as it is watched for who waits elsewhere: there is nobody. */
void turn_listed(struct fixture *f, const char *mutex);
/* Connection 0 has one permit of three, `lease`; nothing is open. */
void permit_held(struct fixture *f, char lease[128]);
