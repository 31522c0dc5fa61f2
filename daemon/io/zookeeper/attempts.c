/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/attempts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum { BACKOFF_PART = 24 }; /* of T, while there is a session to lose */

#define BACKOFF_MAX_NS (5 * CLOCK_NS_PER_S) /* while there is none */

void zk_attempts_deinit(struct zk_attempts *a)
{
	free(a->servers);
}

void zk_attempts_servers(struct zk_attempts *a, const char *servers)
{
	const char *p;

	free(a->servers);
	a->servers = strdup(servers);
	if (!a->servers)
		abort();
	a->server_count = 1;
	for (p = servers; *p; p++)
		a->server_count += *p == ',';
}

void zk_attempts_set_servers(struct zk_attempts *a, zhandle_t *zh, const char *servers)
{
	int rc;

	zk_attempts_servers(a, servers);
	/*
	 * The library compares addresses without their ports: if the new list has the same hosts as the old one, as with local
	 * proxies, it would keep the old list. So it first gets an address that no server can have (RFC 5737).
	 */
	rc = zoo_set_servers(zh, "192.0.2.1:1");
	if (rc == ZOK)
		rc = zoo_set_servers(zh, servers);
	if (rc != ZOK)
		log_warning(zookeeper_trouble, LOG_FIELDS("error=%v", zerror(rc)),
			    "ZooKeeper client: cannot use the new addresses: %s", zerror(rc));
}

/* At the next interest(), the library takes the server after the current one. */
void zk_attempts_turn(const struct zk_attempts *a, zhandle_t *zh)
{
	size_t i;

	for (i = 0; a->server[0] && i < a->server_count; i++) {
		if (strcmp(zoo_get_current_server(zh), a->server) == 0)
			return;
		zoo_cycle_next_server(zh);
	}
}

void zk_attempts_begin(struct zk_attempts *a, zhandle_t *zh)
{
	snprintf(a->server, sizeof(a->server), "%s", zoo_get_current_server(zh));
}

/* There is a pause after each round of all servers. */
void zk_attempts_failed(struct zk_attempts *a, int timeout_ms)
{
	int64_t max_ns = a->proven ? timeout_ms * CLOCK_NS_PER_MS / BACKOFF_PART : BACKOFF_MAX_NS;

	if (++a->failures % a->server_count == 0)
		a->next_ns = clock_now_ns() + backoff_next_ns(&a->backoff, max_ns);
}

void zk_attempts_served(struct zk_attempts *a)
{
	a->proven = true;
	a->failures = 0;
	backoff_reset(&a->backoff);
}

int64_t zk_attempts_pause_ns(const struct zk_attempts *a)
{
	return a->next_ns - clock_now_ns();
}
