/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/client_log.h"

#include <string.h>

#include "base/log.h"

/* Whoever knows a session can end it. */
static void log_line(const char *text)
{
	static const char secret[] = "sessionId=";
	const char *id = strstr(text, secret), *rest;

	if (!id) {
		log_debug(zookeeper_client, LOG_NO_FIELDS, "ZooKeeper client: %s", text);
		return;
	}
	rest = id + strlen(secret);
	log_debug(zookeeper_client, LOG_NO_FIELDS, "ZooKeeper client: %.*s...%s", (int)(rest - text), text,
		  rest + strcspn(rest, ", "));
}

void zk_client_log(const char *message)
{
	const char *text = strstr(message, "@");

	text = text ? strstr(text, ": ") : NULL;
	log_line(text ? text + 2 : message);
}
