/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/resolve.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { RESOLVE_ADDRESS_MAX = 80, /* IPv6 with a zone */ };

/* Cuts the next host:port off the list; NULL at its end. Brackets are removed. */
static char *next_server(char **list, char **ret_port)
{
	char *host, *port;

	do {
		host = strsep(list, ",");
		if (!host)
			return NULL;
		host += strspn(host, " \t");
		host[strcspn(host, " \t")] = '\0';
	} while (!*host);
	port = strrchr(host, ':');
	assert(port); /* conf has checked it */
	*port = '\0';
	*ret_port = port + 1;
	if (*host == '[') {
		host++;
		host[strcspn(host, "]")] = '\0';
	}
	return host;
}

static const char *after_comma(const char *list)
{
	const char *comma = strchr(list, ',');

	return comma ? comma + 1 : NULL;
}

static bool listed(const char *list, const char *server, size_t len)
{
	const char *p;

	for (p = list; p; p = after_comma(p))
		if (strncmp(p, server, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	return false;
}

bool resolve_lists(const char *list, const char *server)
{
	return listed(list, server, strlen(server));
}

/* No list has an address twice, so lists of equal length with the same members are equal. */
bool resolve_same(const char *a, const char *b)
{
	const char *p;

	for (p = a; p; p = after_comma(p))
		if (!listed(b, p, strcspn(p, ",")))
			return false;
	return strlen(a) == strlen(b);
}

static void append(char **list, const char *separator, const char *text)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", *list ? *list : "", *list ? separator : "", text) < 0)
		abort();
	free(*list);
	*list = joined;
}

static void add_addresses(const struct addrinfo *first, struct resolved *ret)
{
	char host[RESOLVE_ADDRESS_MAX], port[8], server[RESOLVE_ADDRESS_MAX + 8];
	const struct addrinfo *ai;

	for (ai = first; ai; ai = ai->ai_next) {
		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof(host), port, sizeof(port),
				NI_NUMERICHOST | NI_NUMERICSERV) != 0)
			continue;
		snprintf(server, sizeof(server), "%s:%s", host, port);
		if (!listed(ret->servers, server, strlen(server)))
			append(&ret->servers, ",", server);
	}
}

static int resolution(const char *host, const char *port, int flags, struct addrinfo **ret)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | flags,
	};

	return getaddrinfo(host, port, &hints, ret);
}

bool resolve_is_numeric(const char *servers)
{
	char *copy = mem_text(servers), *rest = copy, *host, *port;
	struct addrinfo *found;
	bool numeric = true;

	while (numeric && (host = next_server(&rest, &port))) {
		numeric = resolution(host, port, AI_NUMERICHOST, &found) == 0;
		if (numeric)
			freeaddrinfo(found);
	}
	free(copy);
	return numeric;
}

void resolve_servers(const char *servers, struct resolved *ret)
{
	char *copy = mem_text(servers), *rest = copy, *host, *port, *sentence;
	struct addrinfo *found;
	int rc;

	*ret = (struct resolved){ 0 };
	while ((host = next_server(&rest, &port))) {
		rc = resolution(host, port, 0, &found);
		if (rc == 0) {
			add_addresses(found, ret);
			freeaddrinfo(found);
			continue;
		}
		if (asprintf(&sentence, "%s: %s", host, gai_strerror(rc)) < 0)
			abort();
		append(&ret->failed, "; ", sentence);
		free(sentence);
	}
	free(copy);
}

void resolved_free(struct resolved *r)
{
	free(r->servers);
	free(r->failed);
	*r = (struct resolved){ 0 };
}
