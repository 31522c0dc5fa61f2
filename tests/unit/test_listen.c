/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket: what is replaced, what is refused, and what is left behind. */
#include "io/socket/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char dir[64], path[96], lock_path[104], error[LISTEN_ERROR_MAX];

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test_listen.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
	error[0] = '\0';
	return 0;
}

static int remove_dir(void **state)
{
	unlink(path);
	unlink(lock_path);
	/* Nothing else is left. */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, make_dir, remove_dir)

static struct listener opened(mode_t mode)
{
	struct listen_address address = { "daemon.socket", path, mode, LISTEN_NO_GROUP };
	struct listener l;

	assert_int_equal(listen_open(&l, &address, -1, error), 0);
	return l;
}

static void refused(int rc, const char *sentence)
{
	struct listen_address address = { "daemon.socket", path, 0600, LISTEN_NO_GROUP };
	struct listener l;

	assert_int_equal(listen_open(&l, &address, -1, error), rc);
	assert_int_equal(l.fd, -1);
	assert_non_null(strstr(error, sentence));
}

static bool connects(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool connected;

	memcpy(addr.sun_path, path, strlen(path));
	connected = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0;
	close(fd);
	return connected;
}

/* A daemon that was killed: its socket and its lock file stay. */
static void daemon_dies(void)
{
	struct listener l = opened(0600);

	close(l.fd);
	close(l.lock_fd);
	free(l.path);
}

TEST(it_has_its_mode_and_goes_when_it_is_closed)
{
	const mode_t modes[] = { 0600, 0660, 0666 };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct listener l = opened(modes[i]);
		struct stat st;

		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode, S_IFSOCK | S_ISVTX | modes[i]);
		assert_true(connects());
		listen_close(&l);
		assert_int_equal(access(path, F_OK), -1);
	}
}

TEST(a_stale_socket_is_replaced)
{
	struct listener l;

	daemon_dies();
	assert_int_equal(access(path, F_OK), 0);
	assert_false(connects());
	l = opened(0600);
	assert_true(connects());
	listen_close(&l);
}

TEST(a_live_one_is_refused_and_left_alone)
{
	struct listener l = opened(0600);

	refused(-EADDRINUSE, "another lockbrokerd is serving");
	assert_true(connects());
	listen_close(&l);
}

/* As with a daemon whose socket was passed to it. */
TEST(a_live_one_without_its_lock_is_refused_too)
{
	struct listener l = opened(0600);

	close(l.lock_fd);
	l.lock_fd = -1;
	refused(-EADDRINUSE, "another lockbrokerd is serving");
	listen_close(&l);
}

TEST(a_file_that_is_no_socket_is_left_alone)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	close(fd);
	refused(-EEXIST, "is not a socket");
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(lock_path, F_OK), -1);
}

TEST(a_socket_of_another_is_not_removed)
{
	struct listener first = opened(0600), second;

	unlink(path);
	close(first.lock_fd);
	first.lock_fd = -1;
	second = opened(0600);
	listen_close(&first);
	assert_true(connects());
	listen_close(&second);
}

TEST(a_path_is_as_long_as_an_address_can_hold)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	struct listener l;

	memset(name, 'x', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(listen_open(&l, &(struct listen_address){ "daemon.socket", name, 0600, LISTEN_NO_GROUP }, -1, error),
			 -ENAMETOOLONG);
	assert_non_null(strstr(error, "107 bytes"));
}

TEST(a_group_has_a_name_or_a_number)
{
	gid_t gid = 1;

	assert_int_equal(listen_group("daemon.socket_group", "", &gid, error), 0);
	assert_int_equal(gid, LISTEN_NO_GROUP);
	assert_int_equal(listen_group("daemon.socket_group", "root", &gid, error), 0);
	assert_int_equal(gid, 0);
	assert_int_equal(listen_group("daemon.socket_group", "4711", &gid, error), 0);
	assert_int_equal(gid, 4711);
	assert_int_equal(listen_group("daemon.socket_group", "no such group", &gid, error), -ENOENT);
	assert_non_null(strstr(error, "groupadd"));
}

TEST(a_directory_that_others_may_fill_is_told)
{
	const struct listen_address place = { "daemon.socket", path, 0600, LISTEN_NO_GROUP };
	const mode_t modes[] = { 0777, 0775, 0757, 01777, 0755 };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(chmod(dir, modes[i]), 0);
		assert_int_equal(listen_check_dir(&place, error), i < 3 ? -EPERM : 0);
	}
	assert_non_null(strstr(error, "its directory must belong to the daemon's user or root"));
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(dir, 4711, 4711), 0);
	assert_int_equal(listen_check_dir(&place, error), -EPERM);
	assert_int_equal(chown(dir, 0, 0), 0);
}

TEST(what_somebody_has_removed_is_missed_and_made_again)
{
	const struct listen_address place = { "daemon.socket", path, 0600, LISTEN_NO_GROUP };
	struct listener l = opened(0600), next;

	assert_false(listen_is_missing(&l) || listen_lock_is_missing(&l));
	unlink(path);
	unlink(lock_path);
	assert_true(listen_is_missing(&l) && listen_lock_is_missing(&l));
	assert_int_equal(listen_lock_again(&l, place.key, error), 0);
	assert_false(listen_lock_is_missing(&l));
	assert_int_equal(listen_open(&next, &place, l.lock_fd, error), 0);
	assert_int_equal(next.lock_fd, l.lock_fd);
	assert_false(listen_is_missing(&next));
	assert_true(connects());
	l.lock_fd = -1;
	listen_close(&l);
	assert_true(connects());
	listen_close(&next);
}

TEST(what_another_has_taken_meanwhile_is_left_to_it)
{
	struct listener l = opened(0600), other;

	unlink(path);
	unlink(lock_path);
	other = opened(0600);
	assert_true(listen_is_missing(&l) && listen_lock_is_missing(&l));
	assert_int_equal(listen_lock_again(&l, "daemon.socket", error), -EADDRINUSE);
	assert_non_null(strstr(error, "another lockbrokerd is serving"));
	assert_false(listen_is_missing(&other) || listen_lock_is_missing(&other));
	listen_close(&l);
	assert_true(connects());
	listen_close(&other);
}

TEST(it_belongs_to_its_group_and_still_to_its_owner_and_its_lock_to_the_owner_alone)
{
	struct listener l;
	struct stat st;

	if (geteuid() != 0)
		skip();
	assert_int_equal(listen_open(&l, &(struct listen_address){ "daemon.socket", path, 0660, 4711 }, -1, error), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_gid, 4711);
	assert_int_equal(st.st_mode, S_IFSOCK | S_ISVTX | 0660);
	assert_int_equal(stat(lock_path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | S_ISVTX | 0600);
	listen_close(&l);
}

/* ---- sockets that the service manager passes, from the descriptor 3 on ---- */

enum { PASSED_FIRST = 3 };

/* `sockets` has a letter for each: (u) a Unix socket that listens, (s) one that does not, (d) of datagrams, (i) of TCP. */
static void pass(const char *sockets)
{
	const struct sockaddr_un unnamed = { .sun_family = AF_UNIX };

	for (int i = 0; sockets[i]; i++) {
		int fd = socket(sockets[i] == 'i' ? AF_INET : AF_UNIX, sockets[i] == 'd' ? SOCK_DGRAM : SOCK_STREAM, 0);

		if (sockets[i] == 'u')
			bind(fd, (const struct sockaddr *)&unnamed, sizeof(unnamed.sun_family));
		if (sockets[i] == 'u' || sockets[i] == 'i')
			listen(fd, 1);
		dup2(fd, PASSED_FIRST + i);
		if (fd != PASSED_FIRST + i)
			close(fd);
	}
}

/* In a process of its own: which descriptor each kind of listener has, or how it is refused. */
static void passed(const char *sockets, long pid, const char *fds, const char *names, int clients_fd, int operators_fd,
		   const char *sentence)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct listener clients, operators;
		char number[24];
		int rc;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pass(sockets);
		snprintf(number, sizeof(number), "%ld", pid ? pid : (long)getpid());
		setenv("LISTEN_PID", number, 1);
		setenv("LISTEN_FDS", fds, 1);
		if (names)
			setenv("LISTEN_FDNAMES", names, 1);
		rc = listen_passed(&clients, &operators, error);
		if (sentence)
			_exit(rc == -EINVAL && strstr(error, sentence) ? 0 : 1);
		if (clients_fd >= 0 && (fcntl(clients_fd, F_GETFD) != FD_CLOEXEC || !(fcntl(clients_fd, F_GETFL) & O_NONBLOCK)))
			_exit(2);
		if (rc != 0 || clients.fd != clients_fd || operators.fd != operators_fd)
			_exit(3);
		if (clients.lock_fd != -1 || operators.lock_fd != -1 || clients.path || operators.path)
			_exit(4);
		_exit(getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES") ? 5 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(sockets_that_are_passed_are_told_by_their_names)
{
	passed("", 0, "0", NULL, -1, -1, NULL);
	passed("u", 0, "1", NULL, 3, -1, NULL);
	passed("u", 0, "1", "lockbrokerd.socket", 3, -1, NULL);
	passed("u", 0, "1", "operators", -1, 3, NULL);
	passed("uu", 0, "2", "lockbrokerd.socket:operators", 3, 4, NULL);
	passed("uu", 0, "2", "operators:x", 4, 3, NULL);
	passed("uu", 0, "2", "x:operator", 3, -1, "two sockets of one kind");
	passed("uu", 0, "2", "x:operatorss", 3, -1, "two sockets of one kind");
	passed("uu", 0, "2", NULL, -1, -1, "two sockets of one kind");
	passed("uu", 0, "2", "operators:operators", -1, -1, "two sockets of one kind");
	/* What is for another process is none of ours. */
	passed("u", 1, "1", NULL, -1, -1, NULL);
}

TEST(what_is_passed_has_to_be_one_or_two_unix_sockets_that_listen)
{
	passed("", 0, "3", NULL, -1, -1, "LISTEN_FDS passes 3 sockets; at most two are expected");
	passed("", 0, "10", NULL, -1, -1, "LISTEN_FDS passes 10 sockets");
	passed("", 0, "-1", NULL, -1, -1, "LISTEN_FDS passes -1 sockets");
	passed("s", 0, "1", NULL, -1, -1, "is not a listening Unix stream socket");
	passed("d", 0, "1", NULL, -1, -1, "is not a listening Unix stream socket");
	passed("i", 0, "1", NULL, -1, -1, "is not a listening Unix stream socket");
	passed("us", 0, "2", "x:operators", -1, -1, "is not a listening Unix stream socket");
}
