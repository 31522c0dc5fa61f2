/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parcel as two descriptors, for somebody who keeps it while no process of ours runs: its text is memory, and all its
 * descriptors are on their way through one socket, so that whoever keeps it has two to keep, however many clients there are.
 */
#pragma once

struct parcel;

struct store {
	int text;  /* memory that cannot change any longer */
	int queue; /* what is received here are the descriptors, in order */
};

/*
 * 0 or -errno. *ret_kept is another descriptor, of which the end can be polled: it has hung up when nobody has `queue` any
 * longer. All three are the caller's.
 */
int store_make(const struct parcel *p, struct store *ret, int *ret_kept);
/* 0, or -errno: also -EBADMSG: that is no store, or not whole. The caller discards the parcel in any case. */
int store_read(const struct store *s, struct parcel *ret);
void store_close(struct store *s);
