/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket: what is replaced, what is refused, and what is left behind. */
#include "io/socket/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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
	struct listener l;

	assert_int_equal(listen_open(&l, &(struct listen_place){ "daemon.socket", path, mode, LISTEN_NO_GROUP }, -1, error), 0);
	return l;
}

static void refused(int rc, const char *sentence)
{
	struct listener l;

	assert_int_equal(listen_open(&l, &(struct listen_place){ "daemon.socket", path, 0600, LISTEN_NO_GROUP }, -1, error), rc);
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
	assert_int_equal(listen_open(&l, &(struct listen_place){ "daemon.socket", name, 0600, LISTEN_NO_GROUP }, -1, error),
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
	const struct listen_place place = { "daemon.socket", path, 0600, LISTEN_NO_GROUP };
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
	const struct listen_place place = { "daemon.socket", path, 0600, LISTEN_NO_GROUP };
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
