/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket pair between the two processes of a hand-over. A message arrives whole or not at all. The text of a parcel
 * is a descriptor (sealed_make()), the first one; descriptors are sent in parts of at most CHANNEL_PART_FDS, because
 * the kernel bounds that, and takes further descriptors only once the other side has received these.
 *
 *     from  message  text
 *     old   PARCEL   how many bytes the text has, and how many descriptors follow it as PART
 *     new   READY    its version
 *     new   REFUSED  a sentence: why it will not take over
 *     new   ACCEPT
 *     old   COMMIT
 *     old   SIGNAL   struct channel_signal: it came when this process had committed: now it is for the other one
 *
 * All calls wait at most until an instant; CHANNEL_FOREVER: as long as the other process lives.
 */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

struct parcel;

enum channel_kind {
	CHANNEL_READY = 1,
	CHANNEL_REFUSED,
	CHANNEL_PARCEL,
	CHANNEL_PART,
	CHANNEL_ACCEPT,
	CHANNEL_COMMIT,
	CHANNEL_SIGNAL,
};

enum {
	CHANNEL_TEXT_MAX = 4096, /* of a message that is no part */
	CHANNEL_PART_FDS = 250,
	CHANNEL_FDS_MAX = 1100000,
};

#define CHANNEL_BYTES_MAX (INT64_C(1) << 32)
#define CHANNEL_FOREVER INT64_MAX

struct channel_signal {
	int32_t number, sender; /* of the process that sent it; 0: none that can be seen from here */
};

struct channel_message {
	enum channel_kind kind;
	char text[CHANNEL_TEXT_MAX];
	size_t len;
};

/* Two ends, not inherited, that never block. 0 or -errno. */
int channel_pair(int ret_fds[2]);
/*
 * 0, or -errno, and nothing was received by the other side: -ETIMEDOUT, -EPIPE: the other end is closed. `text` is cut to
 * CHANNEL_TEXT_MAX.
 */
int channel_send(int fd, enum channel_kind kind, struct slice text, int64_t until_ns);
/* 0 or -errno: also -EBADMSG: that is no message. Descriptors that come with it are closed. */
int channel_receive(int fd, struct channel_message *ret, int64_t until_ns);
/* 0 or -errno as above; some of it may have been received. */
int channel_send_parcel(int fd, const struct parcel *parcel, int64_t until_ns);
/*
 * The rest of a parcel whose announcement was received. 0 or -errno: also -EBADMSG: not the announced parcel, -EMFILE:
 * this process may not have as many descriptors. The caller discards the parcel in any case.
 */
int channel_receive_parcel(int fd, const struct channel_message *announced, struct parcel *ret, int64_t until_ns);

/* A text as a descriptor: memory that nobody can change any longer, so that the receiver reads it where it is. */

/* 0 or -errno; *ret is the caller's, -1 if there is none. */
int sealed_make(struct slice text, int *ret);
/*
 * From now on that is the text of the parcel, which had none, until the parcel is freed. 0 or -errno: also -EBADMSG:
 * somebody can change it, or it is longer than `bytes_max`. The descriptor stays the caller's.
 */
int sealed_map(int fd, int64_t bytes_max, struct parcel *ret);

/*
 * A parcel as two descriptors, for somebody who keeps it while no process of ours runs: its text is memory, and all its
 * descriptors are on their way through one socket, so that there are two descriptors to keep, however many clients
 * there are.
 */
struct store {
	int text;  /* memory that cannot change any longer */
	int queue; /* the descriptors are received here, in order */
};

/*
 * 0 or -errno. *ret_kept is another descriptor, of which the end can be polled: it has hung up when nobody has `queue` any
 * longer. All three are the caller's.
 */
int store_make(const struct parcel *p, struct store *ret, int *ret_kept);
/* 0, or -errno: also -EBADMSG: that is no store, or not whole. The caller discards the parcel in any case. */
int store_read(const struct store *s, struct parcel *ret);
void store_close(struct store *s);
