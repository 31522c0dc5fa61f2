/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are held under a value (lock/bearer.h), for the commands that speak of them: SET and its kin, and scripts.
 *
 * A command first looks at each name that it is about. Where that says VALUE_WAIT it returns: it has been answered, or it
 * runs again from its beginning, with the same words, once other hosts have answered (hosts/lookup.h). When all is known it
 * acts, and answers: bid_release() and bid_extend() act at once; a release is answered by bid_reply_settled() or
 * reply_integer_settled(), when the next holder has the lock; value_set() answers by itself.
 *
 *   look      | means                                       | then a script that compares values
 *   WAIT      | nothing yet, or it has been answered        | returns
 *   NOBODY    | nobody holds it, on any host                | as if the key were absent
 *   MINE      | this host holds it for this user and value  | as if the key had that value
 *   OTHER     | somebody else holds it on this host         | as if the key had another value
 *   ELSEWHERE | another host holds it: under which value is | value_forward(): that host says which of the others it is
 *             |   not known here                            |
 */
#pragma once

#include <stdint.h>

#include "core/client/args.h"
#include "core/client/bid.h"
#include "core/hosts/forward.h"
#include "core/hosts/lookup.h"

enum value_holder { VALUE_WAIT, VALUE_NOBODY, VALUE_MINE, VALUE_OTHER, VALUE_ELSEWHERE };

/* False: it is no value, 1..BEARER_VALUE_MAX bytes, and that was answered. */
bool value_valid(struct client *c, struct slice value);
/*
 * A lease that ends in so many milliseconds, 1..LIMIT_MS_MAX (in s: 1000 each). False: the word is none, and that was
 * answered.
 */
bool value_lease(const struct call *call, struct slice word, bool in_s, int64_t *ret_ns);
void value_lease_error(const struct call *call); /* the answer: it begins as in Redis, and shows the bounds */
/* The holder of that name; an invalid name is answered. *ret: for MINE and OTHER its grant, ELSEWHERE *ret_fact. Each may
 * be NULL. A value that is empty is nobody's. */
enum value_holder value_holder(struct call *call, struct slice name, struct slice value, struct grant **ret,
			   const struct lookup_fact **ret_fact);
/*
 * Of an ELSEWHERE: the host that holds it is asked to look, to release or to extend (hosts/forward.h). Says how it was found
 * there; MINE: it is done. WAIT, as above: never "it is gone" as long as that is not known.
 */
enum value_holder value_forward(struct call *call, struct slice name, const struct forward_terms *terms);
/* Writes the answer of GET for these facts, without the end of the reply. */
void value_write(struct client *c, enum value_holder is, const struct grant *g, const struct lookup_fact *fact);
/* The rest of its lease, >= 0. -1: it has no lease, or (NULL) another host holds the lock, whose lease is not known here. */
int64_t value_left_ms(const struct grant *g);
/* If all are free they are held under the value, on these terms: `granted` is answered; else `taken`, or an error. */
void value_set(struct call *call, const struct bid_terms *terms);
