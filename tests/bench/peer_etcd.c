/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd's own lock service (v3lock), by the gateway that serves gRPC as JSON over HTTP on the same port: a lease and a
 * connection for each process. The gateway is in the server, so a request has as many ways as one by gRPC.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "line.h"
#include "load.h"

enum { LEASE_S = 600, BODY_MAX = 1024, KEY_MAX = 256 };

struct etcd {
	struct line line;
	char lease[32], key[KEY_MAX]; /* the key of the lock that is held */
	char body[BODY_MAX];
};

static int post(struct etcd *e, const char *path, const char *body)
{
	const char *line, *bytes;
	char length[24];
	size_t len = 0;
	int status;

	snprintf(length, sizeof(length), "%zu", strlen(body));
	if (line_texts(&e->line, "POST ", path, " HTTP/1.1\r\nHost: etcd\r\nContent-Length: ", length, "\r\n\r\n", body,
		       NULL))
		return -1;
	line = line_read(&e->line);
	if (!line || sscanf(line, "HTTP/1.1 %d", &status) != 1)
		return -1;
	while ((line = line_read(&e->line)) && *line) {
		if (strncasecmp(line, "Content-Length:", 15) == 0)
			len = strtoul(line + 15, NULL, 10);
	}
	if (!line || len >= sizeof(e->body) || !(bytes = line_bytes(&e->line, len)))
		return -1;
	memcpy(e->body, bytes, len);
	e->body[len] = '\0';
	if (status != 200)
		fprintf(stderr, "bench: etcd says %s\n", e->body);
	return status == 200 ? 0 : -1;
}

/* The text of that member of the answer. */
static int member(const struct etcd *e, const char *word, char *text, size_t size)
{
	const char *at = strstr(e->body, word);
	size_t len = at ? strcspn(at + strlen(word), "\"") : 0;

	if (len == 0 || len >= size) {
		fprintf(stderr, "bench: etcd says %s\n", e->body);
		return -1;
	}
	memcpy(text, at + strlen(word), len);
	text[len] = '\0';
	return 0;
}

static int etcd_connect(struct line *l, const char *target)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *port = strrchr(target, ':');
	int one = 1;

	address.sin_port = htons((uint16_t)(port ? atoi(port + 1) : 0));
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0) {
		perror("bench: etcd");
		return -1;
	}
	return 0;
}

static void *etcd_open(const char *target)
{
	struct etcd *e = calloc(1, sizeof(*e));
	char body[64];

	snprintf(body, sizeof(body), "{\"TTL\": %d}", LEASE_S);
	if (e && etcd_connect(&e->line, target) == 0 && post(e, "/v3/lease/grant", body) == 0 &&
	    member(e, "\"ID\":\"", e->lease, sizeof(e->lease)) == 0)
		return e;
	free(e);
	return NULL;
}

static void put_base64(char *to, const char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t i, k, len = strlen(text);

	for (i = 0; i < len; i += 3) {
		uint32_t bits = 0;

		for (k = 0; k < 3; k++)
			bits = bits << 8 | (i + k < len ? (unsigned char)text[i + k] : 0);
		for (k = 0; k < 4; k++)
			*to++ = i + k <= len ? digits[bits >> (18 - 6 * k) & 63] : '=';
	}
	*to = '\0';
}

static int etcd_lock(void *session, const struct lock_name *name)
{
	struct etcd *e = session;
	char coded[(sizeof(name->text) + 2) / 3 * 4 + 1], body[256];

	put_base64(coded, name->text);
	snprintf(body, sizeof(body), "{\"name\": \"%s\", \"lease\": \"%s\"}", coded, e->lease);
	return post(e, "/v3/lock/lock", body) || member(e, "\"key\":\"", e->key, sizeof(e->key)) ? -1 : 0;
}

static int etcd_unlock(void *session, const struct lock_name *name)
{
	struct etcd *e = session;
	char body[KEY_MAX + 32];

	(void)name;
	snprintf(body, sizeof(body), "{\"key\": \"%s\"}", e->key);
	return post(e, "/v3/lock/unlock", body);
}

const struct peer peer_etcd = { .word = "etcd", .open = etcd_open, .lock = etcd_lock, .unlock = etcd_unlock };
