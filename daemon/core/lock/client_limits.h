/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may have: its own limits, and its account's shares (port/pools.h). */
#pragma once

#include <stdbool.h>

struct client;

/* False, with `why`: a limit of the client is reached, or its account's share. `queued`: an event will tell the end. */
bool client_may_ask(const struct client *c, bool queued, const char **why);
bool client_may_be_told(const struct client *c, const char **why); /* one event more, which it may leave unread */
bool client_may_observe(const struct client *c, const char **why);
/* Which limit leaves no room for one more grant: that of the client itself, or that of its account. */
enum client_lack { CLIENT_LACKS_NOTHING, CLIENT_LACKS_ITS_GRANTS, CLIENT_LACKS_GRANTS };
enum client_lack client_lacks(const struct client *c);
