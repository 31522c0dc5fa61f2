/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known to use the ZooKeeper C client safely, part by part. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/log.h"
#include "io/zookeeper/handle.h"
#include "io/zookeeper/handshake.h"
#include "io/zookeeper/ops.h"
#include "io/zookeeper/paths.h"
#include "io/zookeeper/resolve.h"
#include "io/zookeeper/secret.h"

/* ---- the reply to a handshake ---- */

static int ours, theirs;
static int waited;

static int connect_ends(void **state)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	ours = ends[0];
	theirs = ends[1];
	waited = 0;
	return 0;
}

static int close_ends(void **state)
{
	close(ours);
	if (theirs >= 0)
		close(theirs);
	return 0;
}

#define LOOK(name) TEST_WITH(name, connect_ends, close_ends)

static void says(const void *bytes, size_t len)
{
	assert_int_equal(send(theirs, bytes, len, 0), len);
}

enum { REPLY_BYTES = 41 };

/* As a server sends it. */
static void reply(uint32_t ret[11], uint32_t len, uint32_t protocol, uint32_t password_len)
{
	const uint32_t words[11] = { len, protocol, 15000, 1, 2, password_len };

	for (size_t i = 0; i < 11; i++)
		ret[i] = htonl(words[i]);
}

static enum zk_handshake look(void)
{
	return zk_handshake_look(ours, &waited);
}

LOOK(a_reply_is_left_to_the_client)
{
	uint32_t words[11];
	char rest[REPLY_BYTES];

	reply(words, 37, 0, 16);
	says(words, REPLY_BYTES);
	assert_int_equal(look(), ZK_HANDSHAKE_READ);
	assert_int_equal(recv(ours, rest, sizeof(rest), 0), sizeof(rest));
	assert_memory_equal(rest, words, sizeof(rest));
	/* Of a server that knows no read-only mode. */
	reply(words, 36, 0, 16);
	says(words, REPLY_BYTES - 1);
	assert_int_equal(look(), ZK_HANDSHAKE_READ);
}

/* First for its head and then for the rest of it. */
LOOK(a_reply_is_waited_for_until_it_is_whole)
{
	static const size_t pieces[] = { 10, 30, REPLY_BYTES };
	uint32_t words[11];
	size_t said = 0;

	reply(words, 37, 0, 16);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		says((const char *)words + said, pieces[i] - said);
		said = pieces[i];
		assert_int_equal(look(), said == REPLY_BYTES ? ZK_HANDSHAKE_READ : ZK_HANDSHAKE_MORE);
	}
	close_ends(NULL);
	connect_ends(NULL);
	says(words, 10);
	assert_int_equal(look(), ZK_HANDSHAKE_MORE);
	assert_int_equal(look(), ZK_HANDSHAKE_BOGUS);
}

LOOK(what_is_no_reply_is_bogus)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	const struct {
		uint32_t len, protocol, password_len;
	} wrong[] = { { 38, 0, 16 }, { 37, 1, 16 }, { 37, 0, 15 }, { 0, 0, 0 } };
	uint32_t words[11];

	says(http, sizeof(http) - 1);
	assert_int_equal(look(), ZK_HANDSHAKE_BOGUS);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		close_ends(NULL);
		connect_ends(NULL);
		reply(words, wrong[i].len, wrong[i].protocol, wrong[i].password_len);
		says(words, REPLY_BYTES);
		assert_int_equal(look(), ZK_HANDSHAKE_BOGUS);
	}
}

LOOK(after_a_rejection_only_the_end_is_read)
{
	char rest[8];

	says("nonsense that is long enough", 28);
	zk_handshake_reject(ours);
	assert_int_equal(recv(ours, rest, sizeof(rest), MSG_DONTWAIT), 0);
	assert_int_equal(look(), ZK_HANDSHAKE_END);
}

/* ---- a farewell ---- */

LOOK(a_farewell_ends_although_the_server_never_stops_sending)
{
	pid_t server = fork();

	assert_true(server >= 0);
	if (server == 0) {
		close(ours);
		while (send(theirs, "more", 4, MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	assert_false(zk_farewell(NULL, ours));
	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
}

LOOK(a_farewell_was_heard_when_the_server_has_closed)
{
	says("the answer", 10);
	close(theirs);
	theirs = -1;
	assert_true(zk_farewell(NULL, ours));
}

/* ---- addresses ---- */

TEST(addresses_are_resolved_without_the_network)
{
	struct resolved found;

	assert_true(resolve_is_numeric("127.0.0.1:2181, [::1]:2182,,"));
	assert_false(resolve_is_numeric("127.0.0.1:2181,zk1.invalid:2181"));
	resolve_servers(" 127.0.0.1:2181,[::1]:2182 ,127.0.0.1:2181", &found);
	assert_null(found.failed);
	assert_string_equal(found.servers, "127.0.0.1:2181,::1:2182");
	resolved_free(&found);
}

TEST(the_order_of_addresses_does_not_matter)
{
	assert_true(resolve_same("a:1,b:2,c:3", "c:3,a:1,b:2"));
	assert_false(resolve_same("a:1,b:2", "a:1,b:3"));
	assert_false(resolve_same("a:1", "a:1,b:2"));
	assert_false(resolve_same("a:11", "a:1,b"));
}

/* ---- watched paths ---- */

static char cleared[64];

static void each(void *arg, const char *path)
{
	snprintf(cleared + strlen(cleared), sizeof(cleared) - strlen(cleared), "%s", path);
}

TEST(a_path_is_forgotten_with_its_last_watch)
{
	struct zk_paths paths;

	zk_paths_init(&paths);
	zk_paths_add(&paths, "/a", ZK_PATH_DATA);
	zk_paths_add(&paths, "/a", ZK_PATH_CHILDREN);
	zk_paths_add(&paths, "/b", ZK_PATH_DATA);
	zk_paths_add(&paths, "/c", ZK_PATH_CHILDREN);
	zk_paths_remove(&paths, "/a", ZK_PATH_DATA);
	zk_paths_remove(&paths, "/c", ZK_PATH_DATA | ZK_PATH_CHILDREN);
	zk_paths_remove(&paths, "/d", ZK_PATH_DATA);
	cleared[0] = '\0';
	zk_paths_clear(&paths, each, NULL);
	assert_string_equal(cleared, "/a/b");
	cleared[0] = '\0';
	zk_paths_clear(&paths, each, NULL);
	assert_string_equal(cleared, "");
	zk_paths_deinit(&paths);
}

/* ---- answers ---- */

TEST(only_what_a_server_refuses_is_a_refusal)
{
	const struct {
		int rc;
		enum zk_code code;
	} known[] = {
		{ ZOK, ZK_OK }, { ZNONODE, ZK_NONODE }, { ZNODEEXISTS, ZK_NODEEXISTS }, { ZNOTEMPTY, ZK_NOTEMPTY },
		{ ZBADVERSION, ZK_BADVERSION }, { ZNOAUTH, ZK_REFUSED }, { ZBADARGUMENTS, ZK_REFUSED },
		{ ZCONNECTIONLOSS, ZK_UNKNOWN }, { ZOPERATIONTIMEOUT, ZK_UNKNOWN }, { ZSESSIONMOVED, ZK_UNKNOWN },
		{ ZSESSIONEXPIRED, ZK_UNKNOWN }, { ZSYSTEMERROR, ZK_UNKNOWN }, { -4711, ZK_REFUSED },
		{ ZTHROTTLEDOP, ZK_BUSY }, { ZNOTREADONLY, ZK_BUSY }, { -125, ZK_REFUSED },
		{ ZEPHEMERALONLOCALSESSION, ZK_REFUSED },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(zk_reply_code(known[i].rc), known[i].code);
}

TEST(a_refusal_says_why)
{
	static const struct {
		int rc;
		enum zk_cause cause;
		const char *says;
	} known[] = {
		{ ZNOAUTH, ZK_CAUSE_acl, "no ACL allows it" },
		{ -125, ZK_CAUSE_quota, "a quota of ZooKeeper is used up" },
		{ ZEPHEMERALONLOCALSESSION, ZK_CAUSE_local_session, "localSessionsUpgradingEnabled=true" },
		{ ZTHROTTLEDOP, ZK_CAUSE_throttled, "throttles requests" },
		{ ZNOTREADONLY, ZK_CAUSE_read_only, "the server is read-only" },
		{ ZNOCHILDRENFOREPHEMERALS, ZK_CAUSE_other, "(error -108)" },
		{ -4711, ZK_CAUSE_other, "the error -4711," },
	};
	struct zk_reply reply = { 0 };
	struct event event = { 0 };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		zk_reply_refused(&reply, known[i].rc, &event);
		assert_int_equal(event.zk_answered.cause, known[i].cause);
		assert_non_null(strstr(event.zk_answered.data.data, known[i].says));
	}
	zk_reply_deinit(&reply);
}

/* ---- the secret ---- */

static int secret_of(const char *text, mode_t mode, struct secret **ret)
{
	char path[] = "/tmp/test_zk_parts.XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	rc = secret_open(ret, path);
	assert_true((rc == 0) == (*ret != NULL));
	unlink(path);
	return rc;
}

TEST(a_secret_is_lines_that_nobody_else_can_read)
{
	static const char *const garbled[] = { "", "\n", "user\n", ":word\n", "user:\n", "user:word\nmore\n",
					       "user:word\n\n", "1:1\n2:2\n3:3\n4:4\n5:5\n6:6\n7:7\n8:8\n9:9\n" };
	struct secret *secret;

	assert_int_equal(secret_of("user:pass:word\n", 0600, &secret), 0);
	assert_int_equal(secret_lines(secret), 1);
	assert_string_equal(secret_line(secret, 0), "user:pass:word");
	secret_close(secret);
	assert_int_equal(secret_of("1:1\n2:2\n3:3\n4:4\n5:5\n6:6\n7:7\n8:8", 0400, &secret), 0);
	assert_int_equal(secret_lines(secret), SECRET_LINES_MAX);
	assert_string_equal(secret_line(secret, 0), "1:1");
	assert_string_equal(secret_line(secret, 7), "8:8");
	secret_close(secret);
	assert_int_equal(secret_of("user:word", 0640, &secret), -EPERM);
	assert_int_equal(secret_of("user:word", 0604, &secret), -EPERM);
	for (size_t i = 0; i < sizeof(garbled) / sizeof(garbled[0]); i++)
		assert_int_equal(secret_of(garbled[i], 0600, &secret), -EBADMSG);
	assert_int_equal(secret_open(&secret, "/tmp"), -EBADMSG);
	assert_int_equal(secret_open(&secret, "/nonexistent/secret"), -ENOENT);
	secret_close(NULL);
}

/* The process that goes on after a kill has the text from the one before it, whatever the file has by now. */
TEST(a_secret_is_read_again_from_its_text)
{
	struct secret *secret, *again;
	int fd = memfd_create("secret", MFD_CLOEXEC);

	assert_int_equal(secret_of("broker:new\nbroker:old\n", 0600, &secret), 0);
	assert_int_equal(write(fd, secret_text(secret).data, secret_text(secret).len), 22);
	assert_int_equal(secret_read(&again, fd), 0);
	assert_true(secret_same(secret, again));
	assert_string_equal(secret_owner(again), secret_owner(secret));
	secret_close(again);
	assert_int_equal(ftruncate(fd, 3), 0);
	assert_int_equal(secret_read(&again, fd), -EBADMSG);
	assert_null(again);
	close(fd);
	secret_close(secret);
}

TEST(whoever_has_the_line_of_an_owner_may_use_what_is_its_own)
{
	struct secret *old, *both, *new;

	assert_int_equal(secret_of("broker:old\n", 0600, &old), 0);
	assert_int_equal(secret_of("broker:new\nbroker:old\n", 0600, &both), 0);
	assert_int_equal(secret_of("broker:new\n", 0600, &new), 0);
	assert_true(secret_is_of(old, slice_of(secret_owner(old))));
	assert_true(secret_is_of(both, slice_of(secret_owner(old))));
	assert_true(secret_is_of(new, slice_of(secret_owner(both))));
	assert_false(secret_is_of(new, slice_of(secret_owner(old))));
	assert_false(secret_is_of(old, slice_of(secret_owner(both))));
	assert_false(secret_is_of(NULL, slice_of(secret_owner(old))));
	secret_close(old);
	secret_close(both);
	secret_close(new);
}

TEST(a_secret_is_as_long_as_there_is_room)
{
	char text[SECRET_BYTES_MAX + 1];
	struct secret *secret;

	memset(text, 'x', sizeof(text));
	text[1] = ':';
	text[SECRET_BYTES_MAX] = '\0';
	assert_int_equal(secret_of(text, 0600, &secret), -EBADMSG);
	text[SECRET_BYTES_MAX - 1] = '\0';
	assert_int_equal(secret_of(text, 0600, &secret), 0);
	assert_int_equal(strlen(secret_line(secret, 0)), SECRET_BYTES_MAX - 1);
	secret_close(secret);
}

TEST(a_secret_may_come_from_the_service_manager)
{
	char folder[] = "/tmp/test_zk_parts.XXXXXX", path[64], found[SECRET_PATH_MAX];
	struct secret *secret;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/zookeeper-auth", folder);
	assert_int_equal(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
	assert_int_equal(secret_open(&secret, ""), 0);
	assert_null(secret);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
	assert_int_equal(write(fd, "a:b\n", 4), 4);
	assert_int_equal(secret_open(&secret, ""), 0);
	assert_string_equal(secret_line(secret, 0), "a:b");
	secret_close(secret);
	/* By an ACL. */
	if (geteuid() == 0) {
		assert_int_equal(fchmod(fd, 0440), 0);
		assert_int_equal(secret_open(&secret, ""), 0);
		secret_close(secret);
	}
	assert_int_equal(fchmod(fd, 0444), 0);
	assert_int_equal(secret_open(&secret, ""), -EPERM);
	secret_path("/etc/other", found);
	assert_string_equal(found, "/etc/other");
	unsetenv("CREDENTIALS_DIRECTORY");
	assert_int_equal(secret_open(&secret, ""), 0);
	assert_null(secret);
	close(fd);
	unlink(path);
	rmdir(folder);
}

TEST(secrets_are_compared_by_their_lines)
{
	struct secret *one, *two;

	assert_int_equal(secret_of("a:b\nc:d\n", 0600, &one), 0);
	assert_int_equal(secret_of("a:b\nc:d", 0600, &two), 0);
	assert_true(secret_same(one, two) && secret_same(NULL, NULL));
	assert_false(secret_same(one, NULL) || secret_same(NULL, one));
	secret_close(two);
	assert_int_equal(secret_of("c:d\na:b\n", 0600, &two), 0);
	assert_false(secret_same(one, two));
	secret_close(one);
	secret_close(two);
}

/* ZooKeeper's own example. */
TEST(an_acl_names_a_user_by_the_hash)
{
	char id[64];

	digest_id("super:test", id, sizeof(id));
	assert_string_equal(id, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
}

/* ---- the log of the library ---- */

static void expect_logged(enum log_level level, const char *line, const char *expected)
{
	const char *logged;

	unit_capture(STDERR_FILENO);
	log_setup(level, LOG_FORM_PLAIN);
	zk_client_log(line);
	logged = unit_captured();
	if (*expected ? !strstr(logged, expected) : *logged)
		fail_msg("%s", logged);
	assert_null(strstr(logged, "4711"));
	assert_null(strstr(logged, "zookeeper.c"));
}

TEST(the_log_of_the_library_does_not_tell_the_session)
{
	expect_logged(LOG_LEVEL_INFO, "ZOO_INFO@check_events@zookeeper.c: initiated connection", "");
	expect_logged(LOG_LEVEL_DEBUG, "1:ZOO_INFO@check_events@zookeeper.c: initiated connection to server",
		      "ZooKeeper client: initiated connection to server  event=");
	expect_logged(LOG_LEVEL_DEBUG, "1:ZOO_INFO@check@zookeeper.c: session complete, sessionId=0x4711, negotiated timeout=7 ",
		      "ZooKeeper client: session complete, sessionId=..., negotiated timeout=7");
	expect_logged(LOG_LEVEL_DEBUG, "1:ZOO_INFO@check@zookeeper.c: closing sessionId=0x4711 to server",
		      "ZooKeeper client: closing sessionId=... to server");
	expect_logged(LOG_LEVEL_DEBUG, "1:ZOO_INFO@check@zookeeper.c: closing sessionId=0x4711",
		      "ZooKeeper client: closing sessionId=...  event=");
	expect_logged(LOG_LEVEL_DEBUG, "no place: at all", "ZooKeeper client: no place: at all  event=");
}
