/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The delegations of a handle: the page that it shares with the daemon, and its knowledge of each slot (delegated.h).
 * Not part of the public interface.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/delegation.h"

enum { DELEGATED_ASKED = 16 };

struct delegated {
	char *name; /* NULL: it was never used */
	bool held, shared;
	struct delegation_terms terms; /* generation 0: not delegated so far */
};

struct delegations {
	struct delegation_page *page; /* NULL: there is none */
	const uint8_t *ours;          /* 1 in the process that has mapped the page; a child of it, which has not, reads 0 */
	bool off;                     /* the program wants none */
	bool offered, refused;        /* by the daemon, on this connection */
	struct {
		uint32_t hash;
		uint32_t times;
	} asked[DELEGATED_ASKED];     /* names that were asked for, by their hash; a later one replaces an earlier one */
	int64_t heard_ns, now_ns;     /* when the handle has looked at its connection, and at the clock; CLOCK_BOOTTIME */
	struct delegated *slots;      /* DELEGATION_SLOTS; NULL: there was no page so far */
	unsigned latest;              /* the slot that was used last */
};

/* Maps the page of that descriptor, if it is one; the descriptor stays the caller's. */
void delegations_map(struct delegations *d, int fd);
/* NULL: nothing is delegated to this process. */
struct delegation_page *delegations_page(struct delegations *d);
/* The connection has ended, or the handle. */
void delegations_drop(struct delegations *d);
