/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lines of the log pass: a bucket for each kind of event, and for each account that causes events of that kind.
 * A bucket has room for the burst of its kind (log_event.h), and again for one line after each of its intervals. The lines
 * that do not pass are counted, and their number is logged later.
 *
 * There are at most LOG_BUCKETS_MAX buckets of accounts. One that is full again, and holds nothing back, is as good as
 * none, and so its place is free; when no place is free, further accounts share the bucket of the kind.
 *
 * All lines together pass a last bucket, so that systemd's journal, which suppresses lines of a unit beyond 10,000 in
 * 30 s, never suppresses one: at most LOG_ALL_LINES at once, and one each LOG_ALL_EVERY_NS, which is 5,800 in 30 s. Half of
 * its room is not for lines of holds and waits, and a tenth is not for lines that an account causes: so the latter never
 * keep a loss, and neither keeps a line about the daemon itself, from the log.
 *
 * Pure: the caller has the clock, and no two threads may be in here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log_event.h"
#include "protocol/slice.h"

enum { LOG_BUCKETS_MAX = 128, LOG_UNIT_MAX = 64 };
/* So long after the first line that was held back, a line tells how many there were. */
#define LOG_TELL_NS (INT64_C(10) * 1000000000)
enum { LOG_ALL_LINES = 1500 };
#define LOG_ALL_EVERY_NS (INT64_C(7) * 1000000)

/* The cause of an event: a user, and the unit of a user who has an account for each unit; otherwise it is empty. */
struct log_account {
	uint32_t uid;
	struct slice unit;
};

struct log_bucket {
	bool used, named; /* named: it is of an account */
	enum log_event event;
	uint32_t uid;
	uint64_t unit_hash;      /* distinguishes units, whose names may be cut */
	char unit[LOG_UNIT_MAX]; /* without a 0 at the end */
	size_t unit_len;
	int64_t full_ns;  /* when it is full again */
	uint64_t held;    /* lines */
	int64_t since_ns; /* the first of them */
};

struct log_buckets {
	struct log_bucket events[LOG_EVENT_COUNT], accounts[LOG_BUCKETS_MAX];
	size_t holding; /* buckets that hold something back */
	int64_t all_full_ns; /* when the bucket of all lines is full again */
};

uint64_t log_unit_hash(struct slice unit); /* distinguishes units */
/* True: a line of that kind passes. `account`: NULL if nobody, or nobody in particular, causes it. */
bool log_buckets_pass(struct log_buckets *b, enum log_event event, const struct log_account *account, int64_t now_ns);
/*
 * Takes a bucket that has held lines back for long enough, or, with `all`, any that holds some: a copy, in which `held` is
 * their number. False: there is none.
 */
bool log_buckets_take(struct log_buckets *b, bool all, int64_t now_ns, struct log_bucket *ret);
