/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a ZooKeeper server may send after the handshake, read by the real C client over a real connection: answers that are
 * right, changed, cut short, of another request or of none, and bytes that are no answers, cut into pieces. Whatever comes:
 * no crash in the client, and what is told of an answer is what the broker counts on.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/port/effect.h"
#include "fuzz.h"
#include "io/zookeeper/handshake.h"
#include "io/zookeeper/ops.h"

enum { OPS_MAX = 8, REPLY_BYTES = 41, XIDS = 6 };

/* Each makes a connection. */
const long fuzz_cost = 30;

static int listener = -1;
static char servers[64];
static int ours, theirs;

/* ---- the input ---- */

static const uint8_t *input;
static size_t left;

static uint8_t next(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

/* ---- what is told of an answer ---- */

static void answered(void *arg, struct event *event)
{
	static const char digits[] = "0123456789";
	struct slice path = event->zk_answered.path;

	if (event->zk_answered.code != ZK_OK)
		return;
	if (path.len) {
		struct slice number = { path.data + strlen("/a/x-"), path.len - strlen("/a/x-") };

		assert(path.len > strlen("/a/x-") && memcmp(path.data, "/a/x-", strlen("/a/x-")) == 0);
		if (number.len == 11 && number.data[0] == '-')
			number = (struct slice){ number.data + 1, 10 };
		assert(number.len == 10);
		for (size_t i = 0; i < number.len; i++)
			assert(strchr(digits, number.data[i]));
	}
	for (size_t i = 0; i < event->zk_answered.count; i++) {
		struct slice child = event->zk_answered.children[i];

		assert(child.len && strlen(child.data) == child.len && !memchr(child.data, '/', child.len));
	}
}

static void watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
	assert(type == ZOO_SESSION_EVENT || (path && path[0] == '/'));
}

/* ---- the connection ---- */

static void no_log(const char *line)
{
}

static void listen_once(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int rc;

	if (listener >= 0)
		return;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = bind(listener, (struct sockaddr *)&address, sizeof(address));
	assert(rc == 0);
	rc = listen(listener, 4);
	assert(rc == 0);
	rc = getsockname(listener, (struct sockaddr *)&address, &len);
	assert(rc == 0);
	snprintf(servers, sizeof(servers), "127.0.0.1:%d", ntohs(address.sin_port));
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
}

static int client_socket(zhandle_t *zh)
{
	struct timeval tv;
	int fd = -1, interest, rc = zookeeper_interest(zh, &fd, &interest, &tv);

	assert(rc == ZOK);
	return fd;
}

/* No state of the kernel is left of it. */
static void server_closes(void)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(theirs, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(theirs);
}

static zhandle_t *begin(void)
{
	static const unsigned char reply[REPLY_BYTES] = { [3] = 37, [10] = 39, [11] = 16, [19] = 5, [23] = 16 };
	zhandle_t *zh = zookeeper_init2(servers, watcher, 10000, NULL, NULL, ZOO_NO_LOG_CLIENTENV, no_log);
	char request[256];
	ssize_t n;

	assert(zh);
	zoo_set_servers_resolution_delay(zh, -1);
	ours = client_socket(zh);
	theirs = accept(listener, NULL, NULL);
	assert(ours >= 0 && theirs >= 0);
	zookeeper_process(zh, ZOOKEEPER_WRITE);
	n = recv(theirs, request, sizeof(request), 0);
	assert(n > 0);
	n = send(theirs, reply, sizeof(reply), 0);
	assert(n == sizeof(reply));
	while (zoo_state(zh) != ZOO_CONNECTED_STATE)
		zookeeper_process(zh, ZOOKEEPER_READ);
	return zh;
}

/* ---- what is asked ---- */

static const enum effect_type types[] = { EFFECT_ZK_CREATE, EFFECT_ZK_LIST, EFFECT_ZK_GET, EFFECT_ZK_DELETE, EFFECT_ZK_SET };

/* Returns the first one's xid. */
static uint32_t ask(struct zk_ops *ops, zhandle_t *zh, const uint8_t *kinds, size_t count)
{
	const struct zk_ops_client client = { zh, watcher, &ZOO_OPEN_ACL_UNSAFE, NULL };
	uint32_t words[2];
	ssize_t n;

	for (size_t i = 0; i < count; i++) {
		const struct effect effect = { .type = types[kinds[i] % 5], .create = ZK_EPHEMERAL_SEQUENTIAL, .op = i + 1,
					       .watch = kinds[i] & 64 };

		zk_ops_send(ops, &effect, SLICE("/a/x-"), SLICE(""), &client);
	}
	n = recv(theirs, words, sizeof(words), MSG_WAITALL);
	assert(n == sizeof(words));
	return ntohl(words[1]);
}

/* ---- what is answered ---- */

static void put(struct bytes *b, uint32_t number)
{
	number = htonl(number);
	bytes_append(b, &number, sizeof(number));
}

static void put_text(struct bytes *b, const char *text)
{
	put(b, (uint32_t)strlen(text));
	bytes_text(b, text);
}

static void put_body(struct bytes *b, enum effect_type type)
{
	if (type == EFFECT_ZK_DELETE)
		return;
	if (type == EFFECT_ZK_CREATE)
		put_text(b, "/a/x-0000000001");
	if (type == EFFECT_ZK_GET)
		put_text(b, "data");
	if (type == EFFECT_ZK_LIST) {
		put(b, 2);
		put_text(b, "b");
		put_text(b, "c");
	}
	for (size_t i = 0; i < 17; i++)
		put(b, 1);
}

static void put_event(struct bytes *b, uint32_t type)
{
	put(b, type);
	put(b, 3);
	put_text(b, "/a/x-");
}

/* One frame: what the next bytes of the input say. */
static void answer(struct bytes *out, uint32_t xid, enum effect_type type)
{
	const uint32_t xids[XIDS] = { xid, xid, xid, (uint32_t)-1, (uint32_t)-2, (uint32_t)-4 };
	uint8_t how = next(), changes = next();
	struct bytes b = { 0 };
	uint32_t length;

	put(&b, xids[how % XIDS]);
	put(&b, 0);
	put(&b, 9);
	put(&b, how & 64 ? 0xffffff00 | next() : 0);
	if (how % XIDS == 3)
		put_event(&b, next());
	else
		put_body(&b, type);
	for (size_t i = 0; i < changes % 4; i++) {
		size_t at = (size_t)(next() + 256 * (changes >> 7)) % b.len;

		b.data[at] = (char)next();
	}
	if (changes & 16)
		b.len -= next() % b.len;
	if (changes & 32)
		for (size_t more = next() % 64; more; more--)
			bytes_char(&b, (char)next());
	length = changes & 64 ? (uint32_t)next() << 24 | next() : (uint32_t)b.len;
	put(out, length);
	bytes_slice(out, bytes_view(&b));
	bytes_free(&b);
}

/* The client reads what there is. False: the connection has ended. */
static bool read_answers(struct zk_ops *ops, zhandle_t *zh, bool authenticates)
{
	char sentence[ZK_ANSWER_SENTENCE_MAX] = "";

	while (zoo_state(zh) == ZOO_CONNECTED_STATE) {
		enum zk_inlet_result look = zk_ops_look(ops, ours, zh, authenticates, sentence);

		if (look == ZK_INLET_MORE)
			return true;
		assert(look != ZK_INLET_WRONG || sentence[0]);
		if (look != ZK_INLET_READ)
			zk_handshake_reject(ours);
		if (zookeeper_process(zh, ZOOKEEPER_READ) != ZOK)
			return false;
	}
	return false;
}

static void serve(struct zk_ops *ops, zhandle_t *zh, uint32_t xid, const uint8_t *kinds, size_t count)
{
	struct bytes out = { 0 };
	size_t at = 0, piece = next();

	for (size_t i = 0; i <= count && left; i++)
		answer(&out, xid + (uint32_t)i, types[kinds[i < count ? i : 0] % 5]);
	while (at < out.len) {
		size_t size = piece && piece < out.len - at ? piece : out.len - at;
		ssize_t n = send(theirs, out.data + at, size, MSG_NOSIGNAL);

		if (n <= 0 || !read_answers(ops, zh, false))
			break;
		at += (size_t)n;
	}
	bytes_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t kinds[OPS_MAX] = { 0 };
	struct zk_paths paths;
	struct zk_ops ops;
	zhandle_t *zh;
	size_t count;
	uint64_t id;

	input = data;
	left = size;
	listen_once();
	zh = begin();
	zk_paths_init(&paths);
	zk_ops_init(&ops, &paths, answered, NULL);
	count = next() % (OPS_MAX - 1) + 1;
	for (size_t i = 0; i < count; i++)
		kinds[i] = next();
	serve(&ops, zh, ask(&ops, zh, kinds, count), kinds, count);
	while (zk_ops_abandon(&ops, &id))
		;
	if (zoo_state(zh) == ZOO_CONNECTED_STATE)
		zk_handshake_reject(ours);
	server_closes();
	zookeeper_close(zh);
	zk_ops_deinit(&ops);
	zk_paths_deinit(&paths);
	return 0;
}
