/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the names of ZooKeeper servers. The C client would do so inside its calls, on the loop, so that it gets only
 * numeric addresses.
 */
#pragma once

#include <stdbool.h>

struct resolved {
	/*
	 * In the C client's form: address:port, separated by commas, no address twice, IPv6 without brackets (it splits at
	 * the last colon). NULL: no name could be resolved.
	 */
	char *servers;
	char *failed; /* a sentence about the names that could not be resolved; NULL: there are none */
};

/* `servers` is zookeeper.servers. True if resolving it does not need the network. */
bool resolve_is_numeric(const char *servers);
/* May block for long unless resolve_is_numeric(). */
void resolve_servers(const char *servers, struct resolved *ret);
/* Whether that "address:port" is in the list. */
bool resolve_lists(const char *list, const char *server);
/* Whether these are the same addresses, in any order. */
bool resolve_same(const char *a, const char *b);
void resolved_free(struct resolved *r);
