/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roots below which the directories of locks are: number 0 is the root of most locks, the others are the paths of
 * prefixes that have one.
 */
#pragma once

#include "core/port/conf.h"
#include "core/port/event.h"
#include "protocol/bytes.h"

struct root {
	size_t number;
	struct slice path, prefix; /* <path>/<znode name> is the lock <prefix><name> */
	struct bytes listed;       /* the names below it, each with a NUL */
	size_t looked;             /* ... up to these bytes */
};

/* That root or the one after it, of which nothing is listed yet. False: there is none. */
bool root_find(const struct broker_conf *conf, size_t number, struct root *ret);
/*
 * Appends the name of the lock whose directory has that name below the root, and sets its flavour. False: no lock lives
 * there, or a prefix puts a lock of that name elsewhere.
 */
bool root_lock(const struct broker_conf *conf, const struct root *root, struct slice znode, struct bytes *name,
	       enum flavour *ret_flavour);
/* Takes the names that a list shows below it, except the brokers' own: these begin with a dot, and no lock's name does. */
void root_listed(struct root *root, const struct event *event);
/* The next name of the list. False: that was all, and the list is freed. */
bool root_next(struct root *root, struct slice *ret_znode);
void root_forget(struct root *root);
