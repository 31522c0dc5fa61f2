/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which children of a list are znodes of our claims. A semaphore may have thousands of both, so the children that have names
 * of the present session are put in order, and looked for there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "protocol/slice.h"

struct claim;
struct directory;
struct event;

struct own {
	const struct slice *list;      /* the children as ZooKeeper listed them; borrowed */
	const struct slice **children; /* those of the present session, by name; NULL: a child is not looked for so */
	size_t count;
	bool *known;                   /* by place in the list: a claim has it */
};

/* The child has the claim's name. Before its number is known: that name and a number behind it, nothing else. */
bool own_is(struct slice child, const struct claim *c);
/* For the answer of a list, and as long as that; own_end() ends it. */
struct own own_begin(const struct directory *d, const struct event *event);
void own_end(struct own *o);
/* The claim's znode; NULL: it is not in the list. */
const struct slice *own_find(const struct own *o, const struct claim *c);
/* Notes which children are znodes of the claims that the directory has now. */
void own_note(struct own *o, const struct directory *d);
