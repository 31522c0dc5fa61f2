/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings that cannot change from one process to the next: the paths, the name of the host, the meaning of lock
 * names. The old process says it at once, so that the new one can refuse while the old one serves.
 */
#pragma once

#include <stdbool.h>

#include "protocol/slice.h"

struct bytes;
struct conf;
struct secret;

enum { IDENTITY_ERROR_MAX = 512 };

/* The identity of a process. `secret` NULL: it has none for ZooKeeper. */
struct identity {
	const struct conf *conf;
	const struct secret *secret;
	bool standalone;
};

/* Its entry in a parcel. */
void identity_pack(struct bytes *text, const struct identity *self);
/* True, with a sentence: the text has the entry of another daemon, or of one whose work this one may not use, or none. */
bool identity_differs(struct slice text, const struct identity *self, char error[IDENTITY_ERROR_MAX]);
