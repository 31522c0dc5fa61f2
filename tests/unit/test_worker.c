/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of an exchange with its keeper: what it gives to be kept, and what it tells the service manager. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/notify.h"
#include "keeper_fixture.h"

static int answered, signalled;
static uint64_t answered_id;

static void note_answer(void *arg, uint64_t id, bool kept)
{
	answered += kept ? 1 : 100;
	answered_id = id;
}

static void note_signal(void *arg, int number, pid_t sender)
{
	signalled = number * 1000 + (int)sender;
}

static struct keeper *k; /* the worker's end */

static void make_worker(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", worker);
	setenv(KEEPER_VARIABLE, text, 1);
	k = keeper_new();
}

static int begin(void **state)
{
	int rc = set_up(state);

	make_worker();
	return rc;
}

static int end(void **state)
{
	keeper_free(k);
	return tear_down(state);
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

/* The worker gives itself to the next process. */
static void hand_over(void)
{
	struct parcel p = { 0 };
	struct keeper *next;

	keeper_pack(k, &p);
	p.fds[0] = dup(p.fds[0]);
	next = keeper_unpack(&p);
	assert_non_null(next);
	keeper_free(k);
	parcel_discard(&p);
	k = next;
}

TEST(the_workers_end_keeps_and_drops)
{
	struct watch_base *base = watch_base_new();
	struct keeper_past past;
	int fd = some_fd();

	assert_non_null(k);
	assert_null(getenv(KEEPER_VARIABLE));
	exchange_turn(&x);
	keeper_receive(k, &past);
	assert_int_equal(past.count, 0);
	keeper_attach(k, base, note_signal, NULL);
	keeper_on_kept(k, note_answer, NULL);
	assert_int_equal(keeper_pid(k), getpid());
	/* Taken back before it is sent, then sent. */
	assert_true(keeper_keep(k, 5, fd));
	keeper_drop(k, 5);
	assert_true(keeper_keep(k, 6, fd));
	keeper_settle(k);
	exchange_signal(&x, SIGHUP, 3);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 1);
	for (int i = 0; i < 3; i++)
		watch_base_turn(base, false);
	assert_int_equal(answered, 1);
	assert_int_equal(answered_id, 6);
	assert_int_equal(signalled, SIGHUP * 1000 + 3);
	keeper_drop(k, 6);
	keeper_settle(k);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 0);
	keeper_free(k);
	k = NULL;
	watch_base_free(base);
	close(fd);
}

TEST(of_two_that_wait_one_is_taken_back)
{
	int first = some_fd(), second = some_fd();
	struct stat sent, kept;
	uint64_t id;

	assert_true(keeper_keep(k, 5, first));
	assert_true(keeper_keep(k, 6, second));
	keeper_drop(k, 5);
	keeper_settle(k);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 1);
	assert_int_equal(fstat(second, &sent), 0);
	assert_int_equal(fstat(descriptors_at(x.descriptors, 0, &id), &kept), 0);
	assert_int_equal(id, 6);
	assert_int_equal(kept.st_ino, sent.st_ino);
	close(first);
	close(second);
}

/* The kernel passes on as many as this process may have. */
static void is_refused(void *arg, int fd)
{
	close(fd);
}

TEST_WITH(descriptors_that_do_not_fit_are_dropped, set_up, end)
{
	struct rlimit limit, few;
	struct keeper_past past;
	int next;

	begun();
	says(KEEPER_KEEP, 1, 3);
	close(x.fd);
	close(worker);
	assert_int_equal(keeper_message_pair(&x.fd, &worker), 0);
	exchange_begin(&x, x.fd, 1);
	exchange_turn(&x);
	make_worker();
	next = some_fd();
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = (rlim_t)next + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	keeper_receive(k, &past);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(past.count, 1);
	keeper_settle(k);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 1);
	keeper_refuse(k, &past, is_refused, NULL);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 0);
}

TEST(what_cannot_be_sent_now_waits_or_is_asked_for_later)
{
	int fd = some_fd(), kept = 0;

	while (keeper_keep(k, (uint64_t)kept, fd))
		kept++;
	assert_true(kept > KEEPER_BATCH);
	for (int i = 0; i < 1000; i++)
		keeper_drop(k, (uint64_t)i);
	exchange_turn(&x);
	keeper_settle(k);
	exchange_turn(&x);
	assert_true(keeper_keep(k, 7, fd));
	keeper_settle(k);
	exchange_turn(&x);
	close(fd);
}

/* It is of no use for the next worker. */
TEST(who_has_most_is_known_as_long_as_the_worker_lives)
{
	char text[2 * KEEPER_TEXT_MAX];

	assert_string_equal(x.most, "");
	keeper_most(k, "user 1000");
	keeper_most(k, "user 1001");
	assert_true(exchange_turn(&x));
	assert_string_equal(x.most, "user 1001");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	keeper_most(k, text);
	assert_true(exchange_turn(&x));
	assert_int_equal(strspn(x.most, "x"), KEEPER_TEXT_MAX - 1);
	exchange_begin(&x, x.fd, 1);
	assert_string_equal(x.most, "");
	keeper_most(NULL, "nobody");
}

/* The loop of the daemon goes on, and a later one comes. */
TEST(who_has_most_is_dropped_while_the_keeper_does_not_read)
{
	for (int i = 0; i < 10000; i++)
		keeper_most(k, "user 1000");
	assert_true(exchange_turn(&x));
	keeper_most(k, "user 1001");
	assert_true(exchange_turn(&x));
	assert_string_equal(x.most, "user 1001");
}

/* Nobody asks for those again. */
TEST(a_role_is_kept_however_many_connections_wait)
{
	struct keeper_message m;
	int fd = some_fd(), roles = 0;
	uint64_t id;

	for (id = 1; keeper_keep(k, id % ROOM / 2, fd); id++)
		;
	for (uint64_t role = 1; role <= KEEPER_ROLES_MAX; role++)
		assert_true(keeper_keep(k, KEEPER_ROLE | role, fd));
	/* Another one of the same role. */
	keeper_drop(k, KEEPER_CONF);
	assert_true(keeper_keep(k, KEEPER_CONF, fd));
	for (uint64_t sent = 0; sent <= id; sent++) {
		exchange_turn(&x);
		while (told(&m))
			;
		keeper_settle(k);
	}
	for (size_t i = 0; i < descriptors_count(x.descriptors); i++) {
		descriptors_at(x.descriptors, i, &id);
		roles += (id & KEEPER_ROLE) != 0;
	}
	assert_int_equal(roles, KEEPER_ROLES_MAX);
	close(fd);
}

/* It may have asked before the hand-over, so this process asks again; before that is sent, the connection ends. */
TEST(what_the_process_before_has_given_is_dropped_whatever_was_asked_since)
{
	int fd = some_fd();

	begun();
	says(KEEPER_KEEP, 8, 2);
	hand_over();
	assert_true(keeper_keep(k, 8, fd));
	keeper_drop(k, 8);
	keeper_settle(k);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 1);
	close(fd);
}

TEST(a_hand_over_takes_along_what_was_not_sent)
{
	begun();
	says(KEEPER_KEEP, 8, 2);
	keeper_drop(k, 8);
	hand_over();
	keeper_settle(k);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 1);
	assert_null(keeper_unpack(&(struct parcel){ 0 }));
}

/* ---- what is for the service manager ---- */

static struct notify manager;
static int ends[2]; /* of the connection to the service manager, whose end is the second one */

static int begin_with_manager(void **state)
{
	int rc = begin(state);

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
	manager = (struct notify){ .fd = ends[0] };
	x.manager = &manager;
	begun();
	return rc;
}

static int end_with_manager(void **state)
{
	close(ends[0]);
	close(ends[1]);
	return end(state);
}

#define WITH_MANAGER(name) TEST_WITH(name, begin_with_manager, end_with_manager)

/* What it is told next, and with how many descriptors, which are closed; NULL: nothing. */
static const char *manager_is_told(int fd, size_t *ret_fds)
{
	static char text[KEEPER_TEXT_MAX + 1];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { text, sizeof(text) - 1 };
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	ssize_t len = recvmsg(fd, &m, MSG_DONTWAIT);
	struct cmsghdr *c = len < 0 ? NULL : CMSG_FIRSTHDR(&m);

	*ret_fds = c != NULL;
	if (c) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		assert_int_equal(close(fd), 0);
	}
	text[len < 0 ? 0 : len] = '\0';
	return len < 0 ? NULL : text;
}

static void expect_told(int fd, const char *text, size_t fds)
{
	size_t with;

	assert_string_equal(manager_is_told(fd, &with), text);
	assert_int_equal(with, fds);
}

WITH_MANAGER(what_a_worker_tells_the_service_manager_is_passed_on_as_it_is)
{
	char longest[KEEPER_TEXT_MAX + 1], eight[] = "12345678";
	struct notify n = { .keeper = k };
	int fd = some_fd();
	size_t with;

	memset(longest, 'x', KEEPER_TEXT_MAX);
	longest[KEEPER_TEXT_MAX] = '\0';
	notify_send(&n, "STATUS=well");
	notify_send(&n, eight);
	notify_send(&n, longest);
	assert_int_equal(notify_store(&n, "name", fd), 0);
	notify_send(&n, "READY=1");
	exchange_turn(&x);
	expect_told(ends[1], "STATUS=well", 0);
	expect_told(ends[1], eight, 0);
	expect_told(ends[1], longest, 0);
	expect_told(ends[1], "FDSTORE=1\nFDNAME=name\nFDPOLL=0", 1);
	expect_told(ends[1], "READY=1", 0);
	assert_null(manager_is_told(ends[1], &with));
	close(fd);
}

/* Neither side takes more. */
static void fill_channel(void)
{
	struct keeper_message m = { .kind = 77, .count = KEEPER_BATCH };

	while (keeper_message_send(worker, &m, NULL) == 0)
		;
}

WITH_MANAGER(what_cannot_be_told_yet_waits_in_order_and_goes_along_with_a_hand_over)
{
	int told_ready = 0;
	size_t with;

	fill_channel();
	assert_int_equal(keeper_notify(k, "RELOADING=1", -1), 0);
	assert_int_equal(keeper_notify(k, "STATUS=one", -1), 0);
	assert_int_equal(keeper_notify(k, "STATUS=two", -1), 0);
	assert_int_equal(keeper_notify(k, "READY=1", -1), 0);
	assert_int_equal(keeper_notify(k, "STORE", ends[0]), -EAGAIN);
	hand_over();
	exchange_turn(&x);
	keeper_settle(k);
	exchange_turn(&x);
	expect_told(ends[1], "RELOADING=1", 0);
	expect_told(ends[1], "STATUS=two", 0);
	expect_told(ends[1], "READY=1", 0);
	assert_null(manager_is_told(ends[1], &with));
	/* Bounded. */
	fill_channel();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(keeper_notify(k, "READY=1", -1), 0);
	exchange_turn(&x);
	keeper_settle(k);
	exchange_turn(&x);
	while (manager_is_told(ends[1], &with))
		told_ready++;
	assert_in_range(told_ready, 1, 100);
}

static void fill_manager(void)
{
	static const char text[] = "STATUS=one more";

	while (send(ends[0], text, strlen(text), 0) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

/* Whether the barrier came to the manager: else who waits at it reads what says so. */
static bool passes_barrier(void)
{
	int fds[2];
	char byte;
	ssize_t len;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(keeper_notify(k, "BARRIER=1", fds[1]), 0);
	exchange_turn(&x);
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	len = read(fds[0], &byte, 1);
	close(fds[0]);
	return len < 0 && errno == EAGAIN;
}

WITH_MANAGER(what_is_to_be_stored_and_is_lost_makes_the_barrier_fail)
{
	struct notify n = { .keeper = k };
	int fd = some_fd();
	size_t with, stored = 0;

	fill_manager();
	assert_int_equal(notify_store(&n, "name", fd), 0);
	exchange_turn(&x); /* it waits, and gives up */
	while (manager_is_told(ends[1], &with))
		stored += with;
	assert_int_equal(stored, 0);
	assert_false(passes_barrier());
	assert_null(manager_is_told(ends[1], &with));
	/* Another attempt is as good as the first one. */
	assert_int_equal(notify_store(&n, "name", fd), 0);
	assert_true(passes_barrier());
	expect_told(ends[1], "FDSTORE=1\nFDNAME=name\nFDPOLL=0", 1);
	expect_told(ends[1], "BARRIER=1", 1);
	/* One that is lost itself fails, too. */
	fill_manager();
	assert_false(passes_barrier());
	close(fd);
}

WITH_MANAGER(what_is_to_be_stored_waits_for_room)
{
	struct notify n = { .keeper = k };
	int fd = some_fd();
	pid_t reader;

	fill_manager();
	assert_int_equal(notify_store(&n, "name", fd), 0);
	reader = fork();
	if (reader == 0) {
		usleep(20000); /* it is late, so that there is no room at first */
		while (recv(ends[1], &(char){ 0 }, 1, 0) > 0)
			;
		_exit(errno == EAGAIN ? 0 : 1);
	}
	exchange_turn(&x);
	assert_int_equal(waitpid(reader, NULL, 0), reader);
	assert_false(manager.lost);
	close(fd);
}

TEST_WITH(without_a_keeper_nothing_happens, NULL, NULL)
{
	struct keeper_past past;

	unsetenv(KEEPER_VARIABLE);
	assert_null(keeper_new());
	keeper_receive(NULL, &past);
	assert_int_equal(past.count, 0);
	assert_false(keeper_keep(NULL, 1, 0));
	keeper_drop(NULL, 1);
	keeper_settle(NULL);
	keeper_alive(NULL, 1);
	keeper_again(NULL);
	keeper_refuse(NULL, &past, NULL, NULL);
	assert_int_equal(keeper_pid(NULL), getpid());
}

/* ---- the connection to the service manager ---- */

/* Its end, with a path or, from "@" on, an abstract name. */
static int make_manager(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, name, strlen(name));
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))), 0);
	return fd;
}

static int open_notify(struct notify *n, const char *name)
{
	int rc;

	setenv("NOTIFY_SOCKET", name, 1);
	rc = notify_open(n);
	assert_true(rc < 0 || !*name || !getenv("NOTIFY_SOCKET"));
	unsetenv("NOTIFY_SOCKET");
	return rc;
}

TEST_WITH(the_service_manager_has_a_path_or_an_abstract_name, NULL, NULL)
{
	char folder[] = "/tmp/test_worker.XXXXXX", path[64], name[64], longest[109];
	struct notify n;
	int at, fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/notify", folder);
	snprintf(name, sizeof(name), "@%s", folder);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[108] = '\0';
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_open(&n), 0);
	assert_int_equal(n.fd, -1);
	assert_int_equal(notify_barrier(&n, 0), -ENOTCONN);
	assert_int_equal(open_notify(&n, ""), 0);
	assert_int_equal(n.fd, -1);
	assert_int_equal(open_notify(&n, "notify"), -EINVAL);
	assert_int_equal(n.fd, -1);
	assert_int_equal(open_notify(&n, longest), -EINVAL);
	longest[107] = '\0';
	assert_int_equal(open_notify(&n, longest), -ENOENT);
	assert_int_equal(n.fd, -1);
	for (int i = 0; i < 2; i++) {
		at = make_manager(i ? path : name);
		assert_int_equal(open_notify(&n, i ? path : name), 0);
		notify_send(&n, "READY=1");
		expect_told(at, "READY=1", 0);
		fd = n.fd;
		notify_close(&n);
		assert_int_equal(n.fd, -1);
		assert_int_equal(fcntl(fd, F_GETFD), -1);
		close(at);
	}
	unlink(path);
	rmdir(folder);
}

/* It closes the descriptor of a barrier, after it has written `word`, if there is one. */
static void answer_barrier(const char *word)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char text[32];
	struct iovec part = { text, sizeof(text) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	int fd;

	if (recvmsg(ends[1], &message, 0) != (ssize_t)strlen("BARRIER=1") || !CMSG_FIRSTHDR(&message))
		_exit(1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	_exit(write(fd, word, strlen(word)) == (ssize_t)strlen(word) ? 0 : 1);
}

static int pass_barrier(const struct notify *n, const char *word)
{
	pid_t child = fork();
	int rc, status, next;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		answer_barrier(word);
	}
	next = some_fd();
	close(next);
	rc = notify_barrier(n, 60000);
	assert_int_equal(some_fd(), next);
	close(next);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return rc;
}

TEST_WITH(what_the_main_process_tells_has_the_words_of_the_service_manager, NULL, NULL)
{
	struct notify n = { .fd = -1 };
	int fd = some_fd();

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
	n.fd = ends[0];
	notify_stopping(&n, 1500);
	expect_told(ends[1], "STOPPING=1\nEXTEND_TIMEOUT_USEC=1500000", 0);
	notify_main_pid(&n, 4711);
	expect_told(ends[1], "MAINPID=4711", 0);
	notify_status(&n, "a\nb\x1f c and more", 6);
	expect_told(ends[1], "STATUS=a b  c", 0);
	assert_int_equal(notify_store(&n, "name", fd), 0);
	expect_told(ends[1], "FDSTORE=1\nFDNAME=name\nFDPOLL=0", 1);
	notify_unstore(&n, "name");
	expect_told(ends[1], "FDSTOREREMOVE=1\nFDNAME=name", 0);
	assert_int_equal(pass_barrier(&n, ""), 0);
	assert_int_equal(pass_barrier(&n, "!"), -ENOBUFS);
	/* Nobody has read it yet. */
	assert_int_equal(notify_barrier(&n, 0), -ETIMEDOUT);
	close(ends[1]);
	assert_int_equal(notify_barrier(&n, 60000), -ECONNREFUSED);
	close(ends[0]);
	close(fd);
}
