/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/handshake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/zookeeper/handle.h"

#define FAREWELL_NS (1500 * CLOCK_NS_PER_MS)

/* Waits until the server has closed its side, but not longer than a farewell may take, whatever else the server sends. */
static bool await_end(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t until_ns = clock_now_ns() + FAREWELL_NS, left_ns;
	char rest[4096];
	ssize_t got = -1;

	while ((left_ns = until_ns - clock_now_ns()) > 0 &&
	       poll(&p, 1, (int)(left_ns / CLOCK_NS_PER_MS) + 1) == 1 && (got = read(fd, rest, sizeof(rest))) > 0)
		;
	return got == 0;
}

/*
 * The library closes the socket as soon as it has read anything. Data that it left unread would make the kernel reset the
 * connection, and the server would lose the farewell; so a copy of the socket stays open until the server has closed it.
 */
bool zk_farewell(zhandle_t *zh, int fd)
{
	bool heard = false;
	int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (zh)
		zookeeper_close(zh);
	if (copy >= 0) {
		heard = await_end(copy);
		close(copy);
	}
	return heard;
}

/* The server's reply; in network byte order. */
struct handshake {
	uint32_t len, protocol, timeout, session[2], password_len;
	unsigned char password[16], read_only;
};

enum {
	HANDSHAKE_LEN_OLD = 36, /* without the read-only byte */
	HANDSHAKE_LEN = 37,
};

static void set_readable_at(int fd, int bytes)
{
	/* If this fails, a reply that comes in pieces is taken for a bogus one. */
	int rc = setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));

	(void)rc;
}

enum zk_handshake zk_handshake_look(int fd, int *waited)
{
	struct handshake h;
	ssize_t got = recv(fd, &h, sizeof(h), MSG_PEEK | MSG_DONTWAIT);
	int want = offsetof(struct handshake, password);

	if (got == 0)
		return ZK_HANDSHAKE_END;
	if (got < 0)
		return errno == ECONNRESET ? ZK_HANDSHAKE_END : ZK_HANDSHAKE_READ;
	if (got >= want) {
		if ((ntohl(h.len) != HANDSHAKE_LEN && ntohl(h.len) != HANDSHAKE_LEN_OLD) || h.protocol != 0 ||
		    ntohl(h.password_len) != sizeof(h.password))
			return ZK_HANDSHAKE_BOGUS;
		want = (int)(sizeof(h.len) + ntohl(h.len));
	}
	if (got >= want) {
		set_readable_at(fd, 1);
		return ZK_HANDSHAKE_READ;
	}
	/* The socket is readable again with fewer bytes: no more will come. */
	if (*waited == want)
		return ZK_HANDSHAKE_BOGUS;
	*waited = want;
	set_readable_at(fd, want);
	return ZK_HANDSHAKE_MORE;
}

bool zk_handshake_gives(zhandle_t *zh, int state, const struct zk_handle_conf *conf, const char *server,
			char ret_sentence[ZK_HANDSHAKE_SENTENCE_MAX])
{
	int timeout_ms = zoo_recv_timeout(zh);

	if (timeout_ms < conf->timeout_min_ms || timeout_ms > conf->timeout_max_ms)
		snprintf(ret_sentence, ZK_HANDSHAKE_SENTENCE_MAX,
			 "%s gave a session timeout of %d ms (asked for %d; %d to %d are usable): its tickTime, "
			 "minSessionTimeout or maxSessionTimeout does not fit zookeeper.tick_ms and session_timeout_ms",
			 server, timeout_ms, conf->timeout_ms, conf->timeout_min_ms, conf->timeout_max_ms);
	else if (zoo_client_id(zh)->client_id == 0)
		snprintf(ret_sentence, ZK_HANDSHAKE_SENTENCE_MAX, "%s gave no session", server);
	else if (state != ZOO_CONNECTED_STATE)
		snprintf(ret_sentence, ZK_HANDSHAKE_SENTENCE_MAX, "%s is read-only", server);
	else
		return true;
	return false;
}

bool zk_handshake_reached(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	return getpeername(fd, (struct sockaddr *)&peer, &len) == 0;
}

void zk_handshake_reject(int fd)
{
	char waste[1024];
	ssize_t len;

	shutdown(fd, SHUT_RDWR);
	do {
		len = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);
	} while (len > 0);
}
