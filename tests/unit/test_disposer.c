/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that clients send: a read receives none of them, and the close of the socket waits for none. The descriptors
 * here are of lingering sockets: a close waits for an hour, because the peer reads nothing.
 */
#include "io/socket/disposer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/account.h"
#include "io/base/watch.h"
#include "io/socket/intake.h"
#include "io/socket/socket_pools.h"

/* Fewer than the 1024 that an ordinary user may have under way. */
enum { LINGER_S = 3600, MESSAGES = 3, MANY = 253 };

static struct watch_base *base;
static struct disposer *disposer;
static struct accounts accounts;
static struct account *account;
static int ours, theirs; /* the ends of a connection */

static int begin(void **state)
{
	int ends[2];

	accounts_init(&accounts, SOCKET_POOLS, 1, 2);
	accounts_set_total(&accounts, SOCKET_CONNECTIONS, 1);
	account = account_enter(&accounts, 1, "", 0);
	base = watch_base_new();
	disposer = disposer_new(base);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	ours = ends[0];
	theirs = ends[1];
	return 0;
}

static int end(void **state)
{
	disposer_free(disposer);
	watch_base_free(base);
	account_leave(account);
	accounts_deinit(&accounts);
	close(theirs);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

/* A lingering socket, with more unread than the peer's buffer takes. *ret_peer is the other end, which reads nothing. */
static int lingering(int *ret_peer)
{
	const struct linger linger = { 1, LINGER_S };
	static const char bytes[65536];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listening, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	*ret_peer = accept(listening, NULL, NULL);
	close(listening);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
	return fd;
}

/* Sends a lingering socket, `count` times, to the daemon's end. */
static void sends_lingering(int *ret_peer, int count, int flags)
{
	int fds[MANY], fd = lingering(ret_peer);

	for (int i = 0; i < count; i++)
		fds[i] = fd;
	assert_int_equal(unit_send_fds(theirs, "x", 1, fds, (size_t)count, flags), 1);
	close(fd);
}

/* The lingering socket was closed: its peer reads the end of the stream. */
static void assert_ends(int peer)
{
	static char bytes[65536];
	ssize_t len;

	while ((len = recv(peer, bytes, sizeof(bytes), 0)) > 0)
		continue;
	assert_int_equal(len, 0);
	close(peer);
}

static void assert_told_the_end(void)
{
	char byte;

	assert_int_equal(recv(theirs, &byte, 1, 0), 0);
}

static uint64_t charged(void)
{
	return account->used[SOCKET_CONNECTIONS];
}

static void turns_until_all_is_closed(void)
{
	while (charged())
		watch_base_turn(base, true);
}

/* ---- functions of the C library, which the disposer uses, too ---- */

static bool without_table, still_there;
static int threads;
static sigset_t blocked; /* of the thread */

int unshare(int flags)
{
	threads++;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (without_table) {
		without_table = false;
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_unshare, flags);
}

int tgkill(pid_t pid, pid_t tid, int number)
{
	return still_there ? 0 : (int)syscall(SYS_tgkill, pid, tid, number);
}

/* ---- what is read ---- */

TEST(a_read_stops_before_a_descriptor_and_reports_it)
{
	int before, peer;
	char text[16];

	assert_true(intake_is_open(ours));
	assert_int_equal(send(theirs, "ab", 2, 0), 2);
	assert_int_equal(intake_read(ours, true, text, 1), 1);
	assert_int_equal(intake_read(ours, true, text, sizeof(text)), 1);
	assert_int_equal(intake_read(ours, true, text, sizeof(text)), -1);
	assert_int_equal(errno, EAGAIN);
	sends_lingering(&peer, 1, 0);
	before = unit_descriptors();
	for (int i = 0; i < 3; i++)
		assert_int_equal(intake_read(ours, true, text, sizeof(text)), INTAKE_BRINGS);
	assert_int_equal(unit_descriptors(), before);
	disposer_take(disposer, ours, account);
	turns_until_all_is_closed();
	assert_ends(peer);
}

TEST(the_end_is_read)
{
	char text[16];

	assert_true(intake_is_open(ours));
	shutdown(theirs, SHUT_WR);
	assert_int_equal(intake_read(ours, true, text, sizeof(text)), 0);
	close(ours);
}

TEST(credentials_of_the_sender_are_not_taken_for_descriptors)
{
	const int one = 1;
	char text[16];

	assert_int_equal(setsockopt(ours, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)), 0);
	assert_true(intake_is_open(ours));
	assert_int_equal(send(theirs, "a", 1, 0), 1);
	assert_int_equal(intake_read(ours, true, text, sizeof(text)), 1);
	close(ours);
}

/* The kernel would drop an urgent byte that is not delivered in line, and its descriptor, at the next read. */
TEST(urgent_bytes_are_in_their_place)
{
	char text[16];
	int peer;

	assert_true(intake_is_open(ours));
	assert_int_equal(send(theirs, "a", 1, 0), 1);
	sends_lingering(&peer, 1, MSG_OOB);
	assert_int_equal(send(theirs, "b", 1, 0), 1);
	assert_int_equal(intake_read(ours, true, text, sizeof(text)), 1);
	assert_int_equal(intake_read(ours, true, text, sizeof(text)), INTAKE_BRINGS);
	disposer_take(disposer, ours, account);
	turns_until_all_is_closed();
	assert_ends(peer);
}

/* ---- what is closed ---- */

TEST(a_socket_without_descriptors_is_closed_at_once)
{
	int before = unit_descriptors();

	assert_int_equal(send(theirs, "abc", 3, 0), 3);
	disposer_take(disposer, ours, account);
	assert_int_equal(unit_descriptors(), before - 1);
	assert_int_equal(charged(), 0);
	assert_told_the_end();
}

TEST(the_client_sees_the_end_at_once_and_stays_charged_until_the_close)
{
	int peer, before;

	sends_lingering(&peer, 1, 0);
	before = unit_descriptors();
	disposer_take(disposer, ours, account);
	assert_int_equal(charged(), 1);
	assert_told_the_end();
	assert_int_equal(send(theirs, "a", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	turns_until_all_is_closed();
	assert_int_equal(unit_descriptors(), before - 1);
	assert_ends(peer);
}

/* Fills this process's table of descriptors. */
static struct rlimit fill(int *ret, int count)
{
	struct rlimit limit, few;

	for (int i = 0; i < count; i++)
		ret[i] = dup(ours);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = (rlim_t)ret[count - 1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(dup(ours), -1);
	return limit;
}

TEST(the_most_descriptors_are_received_while_the_process_has_no_room)
{
	int peers[MESSAGES], filled[2 * MANY], before;
	struct rlimit limit;

	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(send(theirs, "abc", 3, 0), 3);
		sends_lingering(&peers[i], MANY, 0);
	}
	before = unit_descriptors();
	limit = fill(filled, 2 * MANY);
	disposer_take(disposer, ours, account);
	turns_until_all_is_closed();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 2 * MANY; i++)
		close(filled[i]);
	assert_int_equal(unit_descriptors(), before - 1);
	for (int i = 0; i < MESSAGES; i++)
		assert_ends(peers[i]);
}

TEST(no_signal_interrupts_the_thread)
{
	int peer;

	sends_lingering(&peer, 1, 0);
	sigemptyset(&blocked);
	disposer_take(disposer, ours, account);
	turns_until_all_is_closed();
	assert_true(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGCHLD));
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGTERM));
	assert_ends(peer);
}

TEST(many_connections_wait_for_their_turns)
{
	int first_ours = ours, first_theirs = theirs, peers[MESSAGES], others[MESSAGES], ends[2];

	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
		theirs = others[i] = ends[1];
		sends_lingering(&peers[i], 1, 0);
		disposer_take(disposer, ends[0], account);
		assert_int_equal(charged(), i + 1);
	}
	turns_until_all_is_closed();
	for (int i = 0; i < MESSAGES; i++) {
		assert_ends(peers[i]);
		close(others[i]);
	}
	theirs = first_theirs;
	close(first_ours);
}

/* As if the client served the file system of the descriptors. */
TEST(no_thread_starts_while_the_previous_one_is_blocked)
{
	int ends[2], peers[2], first = theirs;

	sends_lingering(&peers[0], 1, 0);
	disposer_take(disposer, ours, account);
	turns_until_all_is_closed();
	still_there = true;
	threads = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	theirs = ends[1];
	sends_lingering(&peers[1], 1, 0);
	disposer_take(disposer, ends[0], account);
	assert_told_the_end();
	for (int i = 0; i < 3; i++)
		watch_base_turn(base, true);
	assert_int_equal(threads, 0);
	assert_int_equal(charged(), 1);
	still_there = false;
	turns_until_all_is_closed();
	assert_int_equal(threads, 1);
	for (int i = 0; i < 2; i++)
		assert_ends(peers[i]);
	close(first);
}

/* The end of a thread does not close descriptors in the process's own table. */
TEST(a_thread_without_a_table_of_its_own_receives_nothing)
{
	int peer;

	sends_lingering(&peer, 1, 0);
	without_table = true;
	threads = 0;
	disposer_take(disposer, ours, account);
	turns_until_all_is_closed();
	assert_int_equal(threads, 2);
	assert_ends(peer);
}

TEST(waiting_sockets_do_not_delay_the_end_of_the_process)
{
	int peer;

	sends_lingering(&peer, 1, 0);
	sends_lingering(&peer, 1, 0);
	disposer_take(disposer, ours, account);
	assert_int_equal(charged(), 1);
}
