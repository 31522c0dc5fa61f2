/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a daemon leaves to its successor, whatever stands in it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/log.h"
#include "core/session/former.h"
#include "io/base/parcel.h"
#include "io/base/peer.h"
#include "io/base/process.h"
#include "io/files/saved.h"
#include "io/files/saved_left.h"
#include "io/files/saved_table.h"

#define SECOND INT64_C(1000000000)
#define NOW (1000 * SECOND)

enum { CLIENTS = 8, FILE_MAX = 65536, ROUNDS = 3000 };

static char dir[64], path[96];

static struct saved_conf conf = { .rundir = dir, .boot_id = "boot", .host = "alpha", .clients = CLIENTS, .now_ns = NOW };

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/test_saved.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/saved", dir);
	conf.boot_id = "boot";
	conf.host = "alpha";
	conf.clients = CLIENTS;
	log_setup(LOG_LEVEL_ERROR, LOG_FORM_PLAIN); /* it warns of every spoiled file */
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, make_dir, remove_dir)

static struct saved *opened(void)
{
	struct saved_left *left = NULL;
	struct saved *s = NULL;

	assert_int_equal(saved_left_read(&left, &conf), 0);
	assert_int_equal(saved_open(&s, &conf, left), 0);
	saved_left_free(left);
	return s;
}

static void connected(struct saved *s, uint32_t conn, pid_t pid, uint64_t start, int fd)
{
	saved_connected(s, conn, &(struct saved_conn){ .pid = (uint32_t)pid, .start = start }, fd);
}

static void session_is(struct saved *s, int64_t id, int64_t safe_for_ns)
{
	struct zk_identity identity = { .session = id };

	snprintf(identity.password, sizeof(identity.password), "secret of %d", (int)id);
	saved_session(s, &identity, 15 * SECOND);
	saved_safe_until(s, NOW + safe_for_ns);
}

/* A daemon of that session with a holder, killed. Returns the holder's end of the connection. */
static int daemon_is_killed(int64_t id, pid_t pid, uint64_t start, bool looked)
{
	struct saved *s = opened();
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	session_is(s, id, 10 * SECOND);
	connected(s, 3, pid, start, ends[0]);
	saved_holder(s, 3, true);
	if (looked)
		saved_look(s);
	saved_close(s);
	close(ends[0]);
	return ends[1];
}

/* ... and the connection with it. */
static void daemon_dies(int64_t id, pid_t pid, uint64_t start)
{
	close(daemon_is_killed(id, pid, start, true));
}

static uint64_t own_start(void)
{
	char text[PROCESS_STAT_MAX];
	struct process process;

	assert_int_equal(process_read(getpid(), text, &process), 0);
	return process.start;
}

static void left_is(const struct saved *s, size_t at, int64_t session, int64_t not_before_ns)
{
	struct broker_former list[FORMERS_MAX];
	struct zk_identity identity;
	char password[ZK_PASSWORD_BYTES] = { 0 };

	assert_true(saved_formers(s, list) > at);
	assert_int_equal(list[at].session, session);
	assert_int_equal(list[at].not_before_ns, not_before_ns);
	assert_true(saved_identity(s, session, &identity));
	snprintf(password, sizeof(password), "secret of %d", (int)session);
	assert_memory_equal(identity.password, password, sizeof(password));
}

static size_t left_count(const struct saved *s)
{
	struct broker_former list[FORMERS_MAX];

	return saved_formers(s, list);
}

TEST(nothing_is_left_by_nobody)
{
	struct saved *s = opened();
	struct stat st;

	(void)state;
	assert_int_equal(left_count(s), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | S_ISVTX | 0600);
	saved_close(s);
}

TEST(a_living_holder_has_until_the_last_instant)
{
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	s = opened();
	left_is(s, 0, 1, NOW + 10 * SECOND);
	assert_true(saved_holders_live(s));
	assert_int_equal(saved_held_session(s), 1);
	saved_close(s);
}

TEST(a_dead_holder_has_nothing)
{
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start() + 1);
	s = opened();
	left_is(s, 0, 1, 0);
	assert_int_equal(saved_held_session(s), 0);
	saved_close(s);
}

TEST(who_cannot_be_told_lives)
{
	struct saved *s;

	(void)state;
	daemon_dies(1, 0, 0);
	s = opened();
	left_is(s, 0, 1, NOW + 10 * SECOND);
	saved_close(s);
}

TEST(who_let_go_is_no_holder)
{
	struct saved *s = opened();

	(void)state;
	session_is(s, 1, 10 * SECOND);
	connected(s, 3, getpid(), own_start(), -1);
	saved_holder(s, 3, true);
	saved_holder(s, 3, false);
	saved_close(s);
	s = opened();
	left_is(s, 0, 1, 0);
	saved_close(s);
}

TEST(the_instant_only_grows_under_one_session)
{
	struct saved *s = opened();

	(void)state;
	session_is(s, 1, 10 * SECOND);
	saved_safe_until(s, NOW + 8 * SECOND);
	saved_safe_until(s, 0);
	session_is(s, 1, 9 * SECOND); /* connected again */
	connected(s, 0, getpid(), own_start(), -1);
	saved_holder(s, 0, true);
	saved_close(s);
	s = opened();
	left_is(s, 0, 1, NOW + 10 * SECOND);
	session_is(s, 2, 3 * SECOND);
	session_is(s, 4, 2 * SECOND); /* a new one begins anew */
	connected(s, 0, getpid(), own_start(), -1);
	saved_holder(s, 0, true);
	saved_close(s);
	s = opened();
	assert_int_equal(left_count(s), 2);
	left_is(s, 0, 1, NOW + 10 * SECOND);
	left_is(s, 1, 4, NOW + 2 * SECOND);
	saved_close(s);
}

TEST(an_instant_of_another_clock_is_bounded)
{
	struct saved *s = opened();

	(void)state;
	session_is(s, 1, 100 * SECOND);
	connected(s, 0, getpid(), own_start(), -1);
	saved_holder(s, 0, true);
	saved_close(s);
	s = opened();
	left_is(s, 0, 1, NOW + 15 * SECOND);
	saved_close(s);
}

TEST(what_is_freed_or_over_stays_so)
{
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	daemon_dies(2, getpid(), own_start());
	s = opened();
	left_is(s, 0, 1, NOW + 10 * SECOND);
	left_is(s, 1, 2, NOW + 10 * SECOND);
	saved_free_former(s, 1);
	saved_end_former(s, 2);
	saved_close(s);
	s = opened();
	assert_int_equal(left_count(s), 1);
	left_is(s, 0, 1, 0);
	saved_close(s);
}

TEST(the_oldest_of_too_many_is_forgotten)
{
	struct saved *s;
	int64_t id;

	(void)state;
	for (id = 1; id <= FORMERS_MAX + 2; id++)
		daemon_dies(id, getpid(), own_start());
	s = opened();
	assert_int_equal(left_count(s), FORMERS_MAX);
	left_is(s, 0, 3, NOW + 10 * SECOND);
	left_is(s, FORMERS_MAX - 1, FORMERS_MAX + 2, NOW + 10 * SECOND);
	saved_close(s);
}

TEST(what_is_given_up_is_left_until_it_is_over)
{
	struct saved *s = opened();
	struct zk_identity identity;

	(void)state;
	session_is(s, 1, 3 * SECOND);
	saved_add_former(s, 1);
	left_is(s, 0, 1, NOW + 3 * SECOND);
	session_is(s, 2, 5 * SECOND);
	saved_add_former(s, 2);
	saved_close(s);
	s = opened();
	assert_int_equal(left_count(s), 2);
	left_is(s, 0, 1, NOW + 3 * SECOND);
	left_is(s, 1, 2, NOW + 5 * SECOND);
	saved_end_former(s, 1);
	assert_false(saved_identity(s, 1, &identity));
	saved_close(s);
	s = opened();
	assert_int_equal(left_count(s), 1);
	saved_close(s);
}

/* Killed between the two stores: it stands there twice. */
TEST(what_is_given_up_when_the_kill_comes_is_left_once)
{
	struct saved *s = opened();

	(void)state;
	session_is(s, 1, 3 * SECOND);
	saved_add_former(s, 1);
	saved_session(s, &(struct zk_identity){ .session = 1, .password = "secret of 1" }, 15 * SECOND);
	saved_close(s);
	s = opened();
	assert_int_equal(left_count(s), 1);
	left_is(s, 0, 1, NOW + 3 * SECOND);
	saved_close(s);
}

TEST(an_ended_session_is_not_left)
{
	struct saved *s = opened();

	(void)state;
	session_is(s, 1, SECOND);
	saved_session_ended(s);
	saved_close(s);
	s = opened();
	assert_int_equal(left_count(s), 0);
	saved_close(s);
}

/* It may have come here with a copy of a disk, from a host whose daemon lives. */
TEST(another_boot_is_nobodys_predecessor)
{
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	conf.boot_id = "another";
	s = opened();
	assert_int_equal(left_count(s), 0);
	saved_close(s);
}

TEST(another_name_is_nobodys_predecessor)
{
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	conf.host = "beta";
	s = opened();
	assert_int_equal(left_count(s), 0);
	saved_close(s);
}

/* ---- memory ---- */

static struct saved_left *read_left(void)
{
	struct saved_left *left = NULL;

	assert_int_equal(saved_left_read(&left, &conf), 0);
	return left;
}

TEST(memory_grows_and_is_found_again_as_one)
{
	struct saved *s = opened();
	char *first = saved_grow(s, 16384), *second = saved_grow(s, 1 << 20);
	struct saved_left *left;

	(void)state;
	strcpy(first, "first");
	strcpy(second + (1 << 20) - 5, "last");
	saved_close(s);
	left = read_left();
	assert_int_equal(left->memory.len, 16384 + (1 << 20));
	assert_string_equal(left->memory.data, "first");
	assert_string_equal(left->memory.data + left->memory.len - 5, "last");
	saved_left_free(left);
}

static uint64_t blocks_of(const char *file)
{
	struct stat st;

	assert_int_equal(stat(file, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* What is read there are zeros; what is there again can be written, and is found again. */
TEST(memory_that_is_given_back_is_the_file_systems)
{
	enum { PART = 1 << 16 };
	struct saved *s = opened();
	char *first = saved_grow(s, PART), *second = saved_grow(s, 4 * PART);
	uint64_t before = blocks_of(path);
	struct saved_left *left;
	size_t bytes = 0;

	(void)state;
	memset(first, 'a', PART);
	memset(second, 'b', 4 * PART);
	assert_null(saved_refill(s, &bytes));
	assert_int_equal(errno, 0);
	saved_give_back(s, second, PART);
	saved_give_back(s, second + 2 * PART, PART);
	assert_int_equal(blocks_of(path), before - 2 * PART);
	assert_ptr_equal(saved_refill(s, &bytes), second + 2 * PART);
	assert_int_equal(bytes, PART);
	assert_int_equal(blocks_of(path), before - PART);
	memset(second + 2 * PART, 'c', PART);
	saved_close(s);
	left = read_left();
	assert_int_equal(left->memory.len, 5 * PART);
	for (size_t i = 0; i < 5 * PART; i++)
		assert_int_equal(left->memory.data[i], i / PART == 1 ? 0 : "a\0bcb"[i / PART]);
	saved_left_free(left);
}

/* One of a process that gave memory back has holes: it becomes shorter, and whole. */
static void punch(const char *name, off_t bytes)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);

	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes), 0);
	close(fd);
}

TEST(a_spare_is_as_long_as_the_next_file_has_to_be)
{
	enum { PART = 1 << 20 };
	struct saved *s = opened();
	char spare[sizeof(path) + 6], *memory = saved_grow(s, 4 * PART);
	const char *const others[] = { "session.spare", "session.spare.spare" };
	uint64_t whole, size;

	(void)state;
	snprintf(spare, sizeof(spare), "%s.spare", path);
	assert_int_equal(saved_leave_spare(s), 0);
	assert_false(saved_cut_spare(s, PART));
	whole = blocks_of(spare);
	punch(spare, PART);
	assert_int_equal(blocks_of(spare), whole - PART);
	assert_int_equal(saved_leave_spare(s), 0); /* it is filled again */
	assert_int_equal(blocks_of(spare), whole);
	saved_give_back(s, memory, 3 * PART);
	for (size = whole; saved_cut_spare(s, PART); size = blocks_of(spare))
		assert_true(size - blocks_of(spare) <= PART);
	assert_int_equal(blocks_of(spare), whole - 3 * PART);
	unlink(spare);
	assert_int_equal(link(path, spare), 0);
	assert_true(saved_leave_spare(s) < 0); /* it has another name */
	unlink(path);
	assert_int_equal(saved_leave_spare(s), 0);
	assert_int_equal(blocks_of(spare), whole - 3 * PART);
	saved_close(s);
	unlink(spare);
	for (size_t i = 0; i < 2; i++) {
		snprintf(spare, sizeof(spare), "%s/%s", dir, others[i]);
		unlink(spare);
	}
}

TEST(memory_has_an_end)
{
	struct saved *s = opened();

	(void)state;
	assert_null(saved_grow(s, 0));
	assert_null(saved_grow(s, SAVED_MEMORY_MAX + 1));
	assert_non_null(saved_grow(s, 4096));
	assert_null(saved_grow(s, SAVED_MEMORY_MAX));
	saved_close(s);
}

/* The daemon was killed while it made the file longer: that part does not count yet. */
TEST(memory_that_was_being_added_is_none)
{
	struct saved *s = opened();
	struct saved_left *left;

	(void)state;
	saved_grow(s, 4096);
	saved_close(s);
	assert_int_equal(truncate(path, 1 << 20), 0);
	left = read_left();
	assert_non_null(left->file);
	assert_int_equal(left->memory.len, 4096);
	saved_left_free(left);
}

/* ---- going on ---- */

static const struct saved_conn who = { .pid = 10, .uid = 20, .gid = 30, .start = 40, .peer = 50 };

/* What a process that goes on finds, and that nothing has changed before the new file has its name. */
TEST(who_goes_on_has_session_and_formers)
{
	struct saved_left *left;
	struct saved *s;
	struct zk_identity identity;
	struct stat before, after;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	daemon_dies(2, getpid(), own_start());
	assert_int_equal(stat(path, &before), 0);
	left = read_left();
	assert_true(left->here);
	assert_int_equal(left->session.id, 2);
	assert_int_equal(saved_continue(&s, &conf, left), 0);
	saved_left_free(left);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(saved_left_read(&left, &conf), -EBUSY);
	assert_int_equal(saved_publish(s), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(saved_left_read(&left, &conf), -EBUSY);
	left_is(s, 0, 1, NOW + 10 * SECOND);
	assert_int_equal(left_count(s), 1);
	assert_true(saved_present(s, &identity));
	assert_int_equal(identity.session, 2);
	assert_string_equal(identity.password, "secret of 2");
	saved_close(s);
}

TEST(who_goes_on_and_is_killed_at_once_leaves_what_there_was)
{
	struct saved_left *left;
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	left = read_left();
	assert_int_equal(saved_continue(&s, &conf, left), 0);
	saved_left_free(left);
	saved_connected(s, 1, &who, -1);
	saved_close(s);
	left = read_left();
	assert_int_equal(left->session.id, 1);
	assert_int_equal(left->conns[1].pid, 0);
	saved_left_free(left);
}

/* Connections keep their numbers, also if there may be fewer of them by now. */
TEST(a_table_is_never_smaller_than_the_one_before)
{
	struct saved_left *left;
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	conf.clients = 2;
	left = read_left();
	assert_int_equal(saved_continue(&s, &conf, left), 0);
	assert_int_equal(saved_clients(s), CLIENTS);
	saved_left_free(left);
	saved_close(s);
}

TEST(a_connection_is_found_as_it_was)
{
	struct saved *s = opened();
	struct saved_left *left;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	saved_connected(s, 1, &who, ends[0]);
	*saved_keep(s, 1, true) = 0;
	saved_connected(s, 2, &who, ends[1]);
	saved_keep(s, 2, true);
	saved_gone(s, 2);
	saved_connected(s, 3, &who, -1);
	saved_close(s);
	left = read_left();
	assert_true(left->conns[1].cookie == peer_cookie(ends[0]) && left->conns[1].kept && !left->conns[1].mark);
	assert_true(left->conns[1].pid == 10 && left->conns[1].uid == 20 && left->conns[1].gid == 30);
	assert_true(left->conns[1].start == 40 && left->conns[1].peer == 50);
	assert_false(left->conns[2].cookie || left->conns[2].kept);
	assert_true(left->conns[3].pid == 10 && !left->conns[3].cookie);
	saved_left_free(left);
	close(ends[0]);
	close(ends[1]);
}

/* Something is in the way of the new name: what the earlier process left is not true for ever. */
TEST(a_file_that_stays_behind_is_spoiled)
{
	char in_the_way[128];
	struct saved_left *left;
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	left = read_left();
	assert_non_null(left->file);
	assert_int_equal(saved_continue(&s, &conf, left), 0);
	saved_left_free(left);
	snprintf(in_the_way, sizeof(in_the_way), "%s/saved.new", dir);
	assert_int_equal(unlink(in_the_way), 0);
	assert_int_equal(saved_publish(s), -ENOENT);
	saved_spoil_earlier(s);
	saved_close(s);
	left = read_left();
	assert_null(left->file);
	saved_left_free(left);
}

/* What a hand-over passes on: the sessions, the file with its lock, and who held something under an earlier session. */
TEST(a_parcel_has_what_the_file_has)
{
	struct parcel p = { 0 };
	struct saved_left *left;
	struct saved *s, *next;
	struct zk_identity identity;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	s = opened();
	session_is(s, 2, 5 * SECOND);
	saved_pack(s, &p);
	p.fds[0] = dup(p.fds[0]); /* a process of its own */
	assert_int_equal(saved_left_unpack(&left, &p), 0);
	assert_int_equal(saved_continue(&next, &conf, left), 0);
	saved_left_free(left);
	assert_int_equal(saved_publish(next), 0);
	left_is(next, 0, 1, NOW + 10 * SECOND);
	assert_int_equal(saved_held_session(next), 1);
	assert_true(saved_holders_live(next));
	assert_true(saved_present(next, &identity));
	assert_int_equal(identity.session, 2);
	saved_close(s);
	saved_close(next);
	parcel_free(&p);
}

TEST(a_parcel_without_the_file_is_refused)
{
	struct parcel p = { 0 };
	struct saved_left *left;

	(void)state;
	assert_int_equal(saved_left_unpack(&left, &p), -EBADMSG);
	parcel_begin(&p, "saved");
	parcel_fd(&p, "fd", open("/dev/null", O_RDONLY));
	parcel_end(&p);
	assert_int_equal(saved_left_unpack(&left, &p), -EBADMSG);
	parcel_free(&p);
}

TEST(it_is_one_daemons_at_a_time)
{
	struct saved *s = opened();
	struct saved_left *left = NULL;

	(void)state;
	assert_int_equal(saved_left_read(&left, &conf), -EBUSY);
	saved_close(s);
}

/* ---- whatever stands in it ---- */

enum { AT_DEVICE = 24, DEVICE_BYTES = 16 }; /* device and inode, which it says of itself */

static void write_copy(const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

/* It is no copy: it says which file it is, if it is long enough to say it. */
static void write_file(const void *data, size_t size)
{
	uint64_t self[2];
	struct stat st;
	int fd;

	write_copy(data, size);
	if (size < AT_DEVICE + DEVICE_BYTES)
		return;
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	self[0] = st.st_dev;
	self[1] = st.st_ino;
	assert_int_equal(pwrite(fd, self, sizeof(self), AT_DEVICE), sizeof(self));
	close(fd);
}

static size_t read_file(char *data)
{
	int fd = open(path, O_RDONLY);
	ssize_t size = read(fd, data, FILE_MAX);

	assert_true(fd >= 0 && size > 0);
	close(fd);
	return (size_t)size;
}

TEST(of_every_length_only_the_whole_is_gone_by)
{
	char whole[FILE_MAX];
	size_t size, len;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	size = read_file(whole);
	for (len = 0; len <= size; len++) {
		struct saved *s;

		write_file(whole, len);
		s = opened();
		assert_int_equal(left_count(s), len == size);
		saved_close(s);
	}
}

/* The daemon that a copy tells of may live: its session is none of ours. */
TEST(a_copy_is_not_gone_by)
{
	char whole[FILE_MAX];
	struct saved *s;
	size_t size;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	size = read_file(whole);
	unlink(path);
	write_copy(whole, size);
	s = opened();
	assert_int_equal(left_count(s), 0);
	saved_close(s);
}

/* Who connected has ended, and a child of it has the connection. */
TEST(whoever_has_the_connection_of_an_ended_holder_is_one)
{
	int child = daemon_is_killed(1, getpid(), own_start() + 1, true);
	struct saved *s = opened();

	(void)state;
	left_is(s, 0, 1, NOW + 10 * SECOND);
	assert_true(saved_holders_live(s));
	close(child);
	assert_false(saved_holders_live(s));
	saved_close(s);
}

/* The daemon did not live to learn which connection that is. */
TEST(a_connection_that_is_not_known_may_be_left_to_a_child)
{
	struct saved *s;

	(void)state;
	close(daemon_is_killed(1, getpid(), own_start() + 1, false));
	s = opened();
	left_is(s, 0, 1, NOW + 10 * SECOND);
	assert_true(saved_holders_live(s));
	saved_close(s);
}

/* A question about each of thousands would take seconds where there are many sockets. */
TEST(many_ended_holders_are_looked_at_little_by_little)
{
	enum { MANY = 4000 };
	int of_all[2], of_last[2], calls = 0;
	struct saved *s;

	(void)state;
	conf.clients = MANY;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of_all), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of_last), 0);
	s = opened();
	session_is(s, 1, 10 * SECOND);
	for (uint32_t i = 0; i < MANY; i++) {
		connected(s, i, getpid(), own_start() + 1, i == MANY - 1 ? of_last[0] : of_all[0]);
		saved_holder(s, i, true);
	}
	for (int i = 0; i < MANY; i++)
		saved_look(s);
	saved_close(s);
	close(of_all[0]);
	close(of_all[1]);
	s = opened();
	left_is(s, 0, 1, NOW + 10 * SECOND);
	close(of_last[0]);
	close(of_last[1]);
	while (saved_holders_live(s))
		calls++;
	assert_in_range(calls, 2, MANY);
	saved_close(s);
}

/* It may have read until when it is safe. */
TEST(a_living_holder_that_closed_its_connection_is_one)
{
	struct saved *s;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	s = opened();
	assert_true(saved_holders_live(s));
	saved_close(s);
}

/* Bytes changed by chance: whatever is made of it, it is bounded and within the file. */
TEST(no_bytes_do_harm)
{
	char whole[FILE_MAX], spoiled[FILE_MAX];
	size_t size;
	int round, i;

	(void)state;
	daemon_dies(1, getpid(), own_start());
	daemon_dies(2, getpid(), own_start());
	size = read_file(whole);
	srandom(1);
	for (round = 0; round < ROUNDS; round++) {
		struct broker_former list[FORMERS_MAX];
		struct saved *s;
		size_t count;

		memcpy(spoiled, whole, size);
		for (i = random() % 6; i >= 0; i--) {
			size_t at = (size_t)random() % (random() % 2 ? size : 88);

			spoiled[at] = (char)(random() % 3 ? random() : 0xff);
		}
		write_file(spoiled, random() % 8 ? size : (size_t)random() % size);
		s = opened();
		count = saved_formers(s, list);
		assert_true(count <= FORMERS_MAX);
		saved_holders_live(s);
		saved_close(s);
	}
}

static void remove_spares(void)
{
	const char *const names[] = { "saved.spare", "session.spare", "session.spare.spare" };
	char spare[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(spare, sizeof(spare), "%s/%s", dir, names[i]);
		unlink(spare);
	}
}

/* Whoever has a pointer into its memory goes on writing there. */
TEST(a_file_that_was_removed_is_made_again_with_all_that_it_had)
{
	struct saved_left *left;
	struct saved *s = opened();
	char *first, *second;

	(void)state;
	session_is(s, 7, 10 * SECOND);
	first = saved_grow(s, 4096);
	second = saved_grow(s, 8192);
	memset(first, 'a', 4096);
	memset(second, 'b', 8192);
	assert_false(saved_is_missing(s, dir));
	unlink(path);
	assert_true(saved_is_missing(s, dir));
	assert_int_equal(saved_again(s, dir), 0);
	assert_false(saved_is_missing(s, dir));
	second[8191] = 'c';
	connected(s, 3, getpid(), own_start(), -1);
	saved_holder(s, 3, true);
	assert_int_equal(saved_left_read(&left, &conf), -EBUSY);
	saved_close(s);
	assert_int_equal(saved_left_read(&left, &conf), 0);
	assert_int_equal(left->session.id, 7);
	assert_true(left->conns[3].holds);
	assert_int_equal(left->memory.len, 4096 + 8192);
	assert_int_equal(left->memory.data[0], 'a');
	assert_int_equal(left->memory.data[4096], 'b');
	assert_int_equal(left->memory.data[4096 + 8191], 'c');
	saved_left_free(left);
	remove_spares();
}

TEST(a_process_on_its_way_out_is_seen)
{
	struct saved *s = NULL;
	int end[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_false(saved_left_is_ending(dir));
	assert_int_equal(pipe(end), 0);
	pid = fork();
	if (pid == 0) {
		s = opened();
		saved_close(s);
		byte = 'x';
		_exit(write(end[1], &byte, 1) == 1 && pause());
	}
	assert_int_equal(read(end[0], &byte, 1), 1);
	assert_true(saved_left_is_ending(dir));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(saved_left_is_ending(dir));
	close(end[0]);
	close(end[1]);
}
