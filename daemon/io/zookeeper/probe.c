/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/probe.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/base/file.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/zookeeper/handle.h"
#include "io/zookeeper/resolve.h"

enum {
	SERVERS_MAX = 32, /* further servers are not asked */
	SMALL_BYTES = 64, /* every server accepts this */
	STEPS_MAX = 40,
	SPREAD_MS = 3000, /* within which the first question is sent */
	CONNECT_MS = 1000,
	OPEN_MS = 300, /* a connection that stays open for so long: the length is accepted */
};
#define AGAIN_NS (10 * CLOCK_NS_PER_S)

enum server_state { SERVER_UNKNOWN, SERVER_FITS, SERVER_SMALL };

struct probed {
	char name[ZK_SERVER_NAME_MAX];
	enum server_state state;
	int64_t bytes;    /* SMALL */
	int64_t again_ns; /* not asked again before */
};

/* The purpose of the length that was just sent. */
enum phase { PHASE_IDLE, PHASE_SPREAD, PHASE_NEED, PHASE_SMALL, PHASE_SEARCH, PHASE_AGAIN, PHASE_SMALL_AGAIN };

enum answer { ANSWER_OPEN, ANSWER_CLOSED, ANSWER_NONE };

struct zk_probe {
	int64_t need_bytes;
	zk_probe_learned *learned;
	void *arg;
	struct watch *watch;
	struct probed servers[SERVERS_MAX];
	size_t count;
	enum phase phase;
	char server[ZK_SERVER_NAME_MAX]; /* the server that is being asked */
	int fd;
	bool sent;
	int64_t bytes;            /* the length that was sent */
	int64_t open, closed; /* the largest that was kept open, the smallest that was closed */
	int steps;
	int64_t told;
};

static void probe_send(struct zk_probe *p, int64_t bytes);

static void probe_close(struct zk_probe *p)
{
	watch_clear(p->watch);
	file_close(&p->fd);
}

static struct probed *probe_find(struct zk_probe *p, const char *server)
{
	size_t i;

	for (i = 0; i < p->count; i++)
		if (strcmp(p->servers[i].name, server) == 0)
			return &p->servers[i];
	return NULL;
}

static void probe_tell(struct zk_probe *p)
{
	const struct probed *least = NULL;
	size_t i;

	for (i = 0; i < p->count; i++)
		if (p->servers[i].state == SERVER_SMALL && (!least || p->servers[i].bytes < least->bytes))
			least = &p->servers[i];
	if ((least ? least->bytes : 0) == p->told)
		return;
	p->told = least ? least->bytes : 0;
	p->learned(p->arg, p->told, least ? least->name : "");
}

static void probe_end(struct zk_probe *p, enum server_state state)
{
	struct probed *s = probe_find(p, p->server);

	p->phase = PHASE_IDLE;
	if (!s)
		return;
	/* An earlier answer is kept if this time nothing could be concluded. */
	if (state != SERVER_UNKNOWN) {
		s->state = state;
		s->bytes = p->open;
	}
	log_debug(packet, LOG_FIELDS("server=%v", p->server), "%s: packets of %" PRId64 " bytes %s", p->server,
		  state == SERVER_SMALL ? p->open : p->bytes,
		  state == SERVER_UNKNOWN ? "give no answer"
		  : state == SERVER_FITS  ? "fit"
					  : "are the largest");
	probe_tell(p);
}

/* Goes down by halves, because a close is answered at once; then searches between the two. */
static void probe_search(struct zk_probe *p)
{
	if (p->closed - p->open <= p->open / 30 + 1) {
		p->phase = PHASE_AGAIN;
		probe_send(p, p->closed);
		return;
	}
	p->phase = PHASE_SEARCH;
	probe_send(p, p->closed / 4 > p->open ? p->closed / 2 : p->open + (p->closed - p->open) / 2);
}

static void probe_answered(struct zk_probe *p, enum answer answer)
{
	bool open = answer == ANSWER_OPEN;

	probe_close(p);
	if (answer == ANSWER_NONE || ++p->steps > STEPS_MAX) {
		probe_end(p, SERVER_UNKNOWN);
		return;
	}
	switch (p->phase) {
	case PHASE_NEED:
		if (open) {
			probe_end(p, SERVER_FITS);
			break;
		}
		p->closed = p->bytes;
		p->phase = PHASE_SMALL;
		probe_send(p, SMALL_BYTES);
		break;
	case PHASE_SMALL:
		if (!open) {
			probe_end(p, SERVER_UNKNOWN);
			break;
		}
		p->open = p->bytes;
		probe_search(p);
		break;
	case PHASE_SEARCH:
		if (open)
			p->open = p->bytes;
		else
			p->closed = p->bytes;
		probe_search(p);
		break;
	case PHASE_AGAIN:
		if (open) {
			probe_end(p, SERVER_UNKNOWN);
			break;
		}
		p->phase = PHASE_SMALL_AGAIN;
		probe_send(p, SMALL_BYTES);
		break;
	case PHASE_SMALL_AGAIN:
		probe_end(p, open ? SERVER_SMALL : SERVER_UNKNOWN);
		break;
	case PHASE_IDLE:
	case PHASE_SPREAD:
		assert(!"a length was sent");
	}
}

static bool probe_address(const char *server, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	const char *colon = strrchr(server, ':');
	char host[ZK_SERVER_NAME_MAX];
	uint16_t port;

	if (!colon || (size_t)(colon - server) >= sizeof(host))
		return false;
	memset(ret, 0, sizeof(*ret));
	memcpy(host, server, (size_t)(colon - server));
	host[colon - server] = '\0';
	port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		*ret_len = sizeof(*v4);
		return true;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
		return false;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = port;
	*ret_len = sizeof(*v6);
	return true;
}

/* Sends a length on a separate connection; probe_fired() sees the answer. */
static void probe_send(struct zk_probe *p, int64_t bytes)
{
	struct sockaddr_storage address;
	socklen_t len;

	p->bytes = bytes;
	p->sent = false;
	if (!probe_address(p->server, &address, &len)) {
		probe_end(p, SERVER_UNKNOWN);
		return;
	}
	p->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0 || (connect(p->fd, (const struct sockaddr *)&address, len) < 0 && errno != EINPROGRESS)) {
		probe_close(p);
		probe_end(p, SERVER_UNKNOWN);
		return;
	}
	watch_set(p->watch, p->fd, WATCH_WRITE, CONNECT_MS * CLOCK_NS_PER_MS);
}

static void probe_connected(struct zk_probe *p, short what)
{
	uint32_t length = htonl((uint32_t)p->bytes);

	if (!(what & WATCH_WRITE) ||
	    send(p->fd, &length, sizeof(length), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(length)) {
		probe_answered(p, ANSWER_NONE);
		return;
	}
	p->sent = true;
	watch_set(p->watch, p->fd, WATCH_READ, OPEN_MS * CLOCK_NS_PER_MS);
}

static void probe_fired(int fd, short what, void *arg)
{
	struct zk_probe *p = arg;
	ssize_t got;
	char byte;

	if (p->phase == PHASE_SPREAD) {
		p->phase = PHASE_NEED;
		probe_send(p, p->need_bytes + p->need_bytes / 10);
	} else if (!p->sent) {
		probe_connected(p, what);
	} else if (!(what & WATCH_READ)) {
		probe_answered(p, ANSWER_OPEN);
	} else {
		got = recv(fd, &byte, 1, MSG_DONTWAIT);
		/* A server that answers a length with bytes is not a ZooKeeper server. */
		probe_answered(p, got == 0 || (got < 0 && errno == ECONNRESET) ? ANSWER_CLOSED : ANSWER_NONE);
	}
}

struct zk_probe *zk_probe_new(struct watch_base *base, int64_t need_bytes, zk_probe_learned *learned, void *arg)
{
	struct zk_probe *p = mem_new(sizeof(*p));

	p->need_bytes = need_bytes;
	p->learned = learned;
	p->arg = arg;
	p->fd = -1;
	p->watch = watch_new(base, probe_fired, p);
	return p;
}

void zk_probe_free(struct zk_probe *p)
{
	if (!p)
		return;
	zk_probe_stop(p);
	watch_free(p->watch);
	mem_free(p);
}

void zk_probe_connected(struct zk_probe *p, const char *server)
{
	struct probed *s = probe_find(p, server);
	int64_t now_ns = clock_now_ns();

	if (!s && p->count < SERVERS_MAX && strlen(server) < ZK_SERVER_NAME_MAX) {
		s = &p->servers[p->count++];
		*s = (struct probed){ .state = SERVER_UNKNOWN };
		snprintf(s->name, sizeof(s->name), "%s", server);
	}
	/* If another server is being asked, this one has its turn at the next connection. */
	if (!s || s->state == SERVER_FITS || now_ns < s->again_ns || p->phase != PHASE_IDLE)
		return;
	s->again_ns = now_ns + AGAIN_NS;
	memcpy(p->server, s->name, sizeof(p->server));
	p->steps = 0;
	p->open = p->closed = 0;
	p->phase = PHASE_SPREAD;
	watch_set(p->watch, -1, 0, random() % SPREAD_MS * CLOCK_NS_PER_MS);
}

void zk_probe_servers(struct zk_probe *p, const char *servers)
{
	size_t i = 0;

	while (i < p->count)
		if (resolve_lists(servers, p->servers[i].name))
			i++;
		else
			p->servers[i] = p->servers[--p->count];
	probe_tell(p);
}

void zk_probe_stop(struct zk_probe *p)
{
	probe_close(p);
	p->phase = PHASE_IDLE;
}

/* ---- a hand-over ---- */

void zk_probe_pack(const struct zk_probe *p, struct parcel *parcel)
{
	struct entry_writer w = entry_begin(&parcel->text, "probe");

	entry_number(&w, "told", p->told);
	entry_end(&w);
	for (size_t i = 0; i < p->count; i++) {
		const struct probed *s = &p->servers[i];

		if (s->state == SERVER_UNKNOWN)
			continue;
		w = entry_begin(&parcel->text, "probed");
		entry_text(&w, "server", slice_of(s->name));
		entry_number(&w, "need", p->need_bytes);
		entry_number(&w, "small", s->state == SERVER_SMALL ? s->bytes : 0);
		entry_number(&w, "again_ns", s->again_ns);
		entry_end(&w);
	}
}

static void probe_take(struct zk_probe *p, const struct entry *e)
{
	struct slice name = parcel_get_text(e, "server");
	int64_t small = parcel_get_number(e, "small");
	struct probed *s = &p->servers[p->count];

	if (p->count == SERVERS_MAX || parcel_get_number(e, "need") != p->need_bytes || name.len == 0 ||
	    name.len >= sizeof(s->name) || small < 0)
		return;
	*s = (struct probed){ .state = small ? SERVER_SMALL : SERVER_FITS,
			      .bytes = small,
			      .again_ns = parcel_get_number(e, "again_ns") };
	memcpy(s->name, name.data, name.len);
	p->count++;
}

void zk_probe_unpack(struct zk_probe *p, struct parcel *parcel)
{
	struct entry e;

	parcel_rewind(parcel);
	while (parcel_next(parcel, &e))
		if (slice_is(e.word, "probed"))
			probe_take(p, &e);
		else if (slice_is(e.word, "probe"))
			p->told = parcel_get_number(&e, "told");
}
