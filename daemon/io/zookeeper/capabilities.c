/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/capabilities.h"

#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/port/event.h"

#define AGAIN_NS (600 * CLOCK_NS_PER_S)

static const struct {
	const char *name, *instead;
	unsigned int word;
} known[] = {
	[ZK_CREATE2] = { "create2", "create and get are used instead", ZK_LACKS_CREATE2 },
	[ZK_STAT] = { "the Stat of create2", "the Stat of a get is used instead", ZK_LACKS_STAT },
	[ZK_CONTAINERS] = { "createContainer", "directories of locks are persistent, and removed when they are idle",
			    ZK_LACKS_CONTAINERS },
	[ZK_CZXID] = { "the czxid of a znode", "the server is not used, because tokens are made of this number", 0 },
};

struct zk_capable *zk_capable_connected(struct zk_capabilities *all, const char *server)
{
	struct zk_capable *c = all->list;

	while (c < all->list + ZK_CAPABLE_SERVERS && strcmp(c->server, server) != 0)
		c++;
	if (c == all->list + ZK_CAPABLE_SERVERS) {
		c = &all->list[all->next++ % ZK_CAPABLE_SERVERS];
		*c = (struct zk_capable){ 0 };
		snprintf(c->server, sizeof(c->server), "%s", server);
	}
	for (int i = 0; i < ZK_CAPABILITIES; i++)
		if (c->state[i] == ZK_LACKING && clock_now_ns() - c->since_ns[i] >= AGAIN_NS)
			c->state[i] = ZK_UNTRIED;
	return c;
}

bool zk_capable_lacks(const struct zk_capable *c, enum zk_capability what)
{
	return c && c->state[what] == ZK_LACKING;
}

bool zk_capable_untried(const struct zk_capable *c, enum zk_capability what)
{
	return c && !c->refuses && (c->state[what] == ZK_UNTRIED || c->state[what] == ZK_SUSPECT);
}

void zk_capable_shown(struct zk_capable *c, enum zk_capability what, bool present, const char *how)
{
	c->state[what] = present ? ZK_PRESENT : ZK_LACKING;
	if (present) {
		c->said[what] = false;
		return;
	}
	c->since_ns[what] = clock_now_ns();
	if (c->said[what])
		return;
	c->said[what] = true;
	log_warning(zookeeper_lacks, LOG_FIELDS("server=%v operation=%v error=%v", c->server, known[what].name, how),
		    "ZooKeeper: %s lacks %s (%s): %s", c->server, known[what].name, how, known[what].instead);
}

bool zk_capable_answered(struct zk_capable *c, enum zk_capability what, int rc)
{
	if (rc == ZUNIMPLEMENTED || (rc == ZBADARGUMENTS && zk_capable_untried(c, what))) {
		zk_capable_shown(c, what, false, zerror(rc));
		return true;
	}
	if (rc == ZOK || rc == ZNONODE || rc == ZNODEEXISTS) {
		c->refuses = false;
		zk_capable_shown(c, what, true, NULL);
	}
	return false;
}

void zk_capable_refuses(struct zk_capable *c)
{
	c->refuses = true;
}

void zk_capable_ended(struct zk_capable *c, enum zk_capability what)
{
	if (c->refuses)
		return;
	if (c->state[what] == ZK_SUSPECT)
		zk_capable_shown(c, what, false, "no answer, and twice the connection has ended");
	else if (c->state[what] != ZK_LACKING)
		c->state[what] = c->state[what] == ZK_UNTRIED ? ZK_SUSPECT : ZK_UNTRIED;
}

unsigned int zk_capable_word(const struct zk_capable *c)
{
	unsigned int word = 0;

	for (int i = 0; i < ZK_CAPABILITIES; i++)
		word |= zk_capable_lacks(c, (enum zk_capability)i) ? known[i].word : 0;
	return word;
}
