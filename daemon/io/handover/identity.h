/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot change from one process to the next: where things are, who the host is, what the names of locks stand for.
 * The old process says it at once, so that the new one can refuse while the old one serves.
 */
#pragma once

#include <stdbool.h>

struct conf;
struct parcel;
struct secret;

enum { IDENTITY_ERROR_MAX = 512 };

/* What a process says of itself. `secret` NULL: it has none for ZooKeeper. */
struct identity {
	const struct conf *conf;
	const struct secret *secret;
	bool standalone;
};

void identity_pack(struct parcel *p, const struct identity *self);
/* True, with a sentence: this is another daemon than the one that packed it, or it may not use what that one has made. */
bool identity_differs(const struct parcel *p, const struct identity *self, char error[IDENTITY_ERROR_MAX]);
