/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The part of lookout.h about locks that viewers look at and that are none of the first of an order, where this host has
 * many. There is no question for some names; but LOCKS takes a pattern, and a viewer looks at locks whose names stand
 * together. So the names are put into groups, each of which has a prefix that few other locks of this host have.
 */
#pragma once

#include "client-lib/http/lookout.h"

/* Asks for them, in turn if they are more than some questions show. False: the daemon cannot be reached. */
bool lookout_shown_ask(struct lookout *l, broker_answered answered);
/* The prefix of the next answer. Answers come in the order of the questions. */
struct slice lookout_shown_next(struct lookout *l);
