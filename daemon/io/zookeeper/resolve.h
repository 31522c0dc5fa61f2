/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of ZooKeeper servers to numeric addresses. The C client would resolve inside its calls, on the loop;
 * it gets numbers only.
 */
#pragma once

#include <stdbool.h>

struct resolved {
	/* What the C client reads: address:port, separated by commas, no address twice, IPv6 without brackets (it
	 * splits at the last colon). NULL: not one could be resolved. */
	char *servers;
	char *failed; /* a sentence about the names that could not be resolved; NULL: all could */
};

/* `servers` as zookeeper.servers has them: nothing in it needs the network to be resolved. */
bool resolve_is_numeric(const char *servers);
/* May block for long unless resolve_is_numeric(). */
void resolve_servers(const char *servers, struct resolved *ret);
/* The same addresses, in whatever order. */
bool resolve_same(const char *a, const char *b);
void resolved_free(struct resolved *r);
