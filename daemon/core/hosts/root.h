/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roots below which the directories of locks are: number 0 is that of most locks, the others are the paths of prefixes
 * that have one.
 */
#pragma once

#include "core/port/conf.h"
#include "protocol/bytes.h"

struct root {
	size_t number;
	struct slice path, prefix; /* <path>/<znode name> is the lock <prefix><name> */
};

/* That root or the one after it. False: there is none. */
bool root_find(const struct broker_conf *conf, size_t number, struct root *ret);
/*
 * Appends the name of the lock whose directory has that name below the root, and sets its flavour. False: no lock lives
 * there, or a prefix puts a lock of that name elsewhere.
 */
bool root_lock(const struct broker_conf *conf, const struct root *root, struct slice znode, struct bytes *name,
	       enum flavour *ret_flavour);
/* Names that begin with a dot are the brokers' own: no lock's name does. */
static inline bool root_skips(struct slice znode)
{
	return znode.len && znode.data[0] == '.';
}
