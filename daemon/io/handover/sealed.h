/* SPDX-License-Identifier: Apache-2.0 */
/* A text as a descriptor: memory that nobody can change any longer, so that who receives it reads it where it is. */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

struct parcel;

/* 0 or -errno; *ret is the caller's, -1 if there is none. */
int sealed_make(struct slice text, int *ret);
/*
 * From now on that is the text of the parcel, which had none, until the parcel is freed. 0 or -errno: also -EBADMSG:
 * somebody can change it, or it is longer than `bytes_max`. The descriptor stays the caller's.
 */
int sealed_map(int fd, int64_t bytes_max, struct parcel *ret);
