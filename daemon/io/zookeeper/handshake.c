/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/handshake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

/* The server's reply, up to the password; in network byte order. */
struct handshake {
	uint32_t len, protocol, timeout, session[2], password_len;
};

enum {
	HANDSHAKE_LEN_OLD = 36, /* without the read-only byte */
	HANDSHAKE_LEN = 37,
	HANDSHAKE_PASSWORD_LEN = 16,
};

static void set_readable_at(int fd, int bytes)
{
	/* If this fails, a reply that comes in pieces is taken for a bogus one. */
	int rc = setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));

	(void)rc;
}

enum zk_handshake zk_handshake_look(int fd, bool *waited)
{
	struct handshake h;
	ssize_t len = recv(fd, &h, sizeof(h), MSG_PEEK | MSG_DONTWAIT);

	if (len == 0)
		return ZK_HANDSHAKE_END;
	if (len < 0)
		return errno == ECONNRESET ? ZK_HANDSHAKE_END : ZK_HANDSHAKE_READ;
	if ((size_t)len < sizeof(h)) {
		/* The socket is readable again with so few bytes: no more will come. */
		if (*waited)
			return ZK_HANDSHAKE_BOGUS;
		*waited = true;
		set_readable_at(fd, (int)sizeof(h));
		return ZK_HANDSHAKE_MORE;
	}
	set_readable_at(fd, 1);
	if ((ntohl(h.len) != HANDSHAKE_LEN && ntohl(h.len) != HANDSHAKE_LEN_OLD) || h.protocol != 0 ||
	    ntohl(h.password_len) != HANDSHAKE_PASSWORD_LEN)
		return ZK_HANDSHAKE_BOGUS;
	return ZK_HANDSHAKE_READ;
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
