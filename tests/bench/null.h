/* SPDX-License-Identifier: Apache-2.0 */
/* What the null broker and its clients say to each other. A reply is the request it answers. */
#pragma once

#include <stdint.h>

enum null_op { NULL_LOCK, NULL_UNLOCK };

struct null_message {
	uint32_t op;   /* enum null_op */
	uint32_t lock; /* below NULL_LOCKS */
};

enum { NULL_LOCKS = 4096 };
