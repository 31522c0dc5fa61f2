/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's parts: what it keeps, what it and a worker tell each other, crashes, watchdogs, what it leaves behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/base/keeper.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/handover/program.h"
#include "io/notify.h"
#include "keeper/crashes.h"
#include "keeper/descriptors.h"
#include "keeper/exchange.h"
#include "keeper/reexec.h"
#include "keeper/supervisor.h"
#include "keeper/watchdogs.h"

enum { ROOM = 300 };

static struct exchange x;
static int worker; /* its end */

static int set_up(void **state)
{
	int fd;

	(void)state;
	x = (struct exchange){ .descriptors = descriptors_new(ROOM), .fd = -1 };
	if (keeper_message_pair(&fd, &worker) < 0)
		return -1;
	exchange_begin(&x, fd, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	descriptors_free(x.descriptors);
	if (x.fd >= 0)
		close(x.fd);
	if (worker >= 0)
		close(worker);
	return 0;
}

#define WITH_WORKER(name) TEST_WITH(name, set_up, tear_down)

static int some_fd(void)
{
	int fd = memfd_create("something", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* The worker says that; a descriptor for each number of a KEEP. */
static void says(enum keeper_kind kind, uint64_t first, uint32_t count)
{
	struct keeper_message m = { .kind = kind, .count = count };
	int fds[KEEPER_BATCH] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		m.numbers[i] = first + i;
		fds[i] = kind == KEEPER_KEEP ? some_fd() : -1;
	}
	assert_int_equal(keeper_message_send(worker, &m, kind == KEEPER_KEEP ? fds : NULL), 0);
	for (uint32_t i = 0; kind == KEEPER_KEEP && i < count; i++)
		close(fds[i]);
	assert_true(exchange_turn(&x));
}

/* What the worker is told next; 0: nothing. Descriptors are closed. */
static uint32_t told(struct keeper_message *ret)
{
	struct keeper_message_with with;
	int rc = keeper_message_receive(worker, ret, &with);

	if (rc == -EAGAIN)
		return 0;
	assert_int_equal(rc, 0);
	if (ret->kind == KEEPER_BACK)
		assert_int_equal(with.fd_count, ret->count);
	while (with.fd_count)
		close(with.fds[--with.fd_count]);
	return ret->kind;
}

static void begun(void)
{
	struct keeper_message m;

	assert_true(exchange_turn(&x));
	assert_int_equal(told(&m), KEEPER_BEGIN);
}

/* ---- what is kept ---- */

TEST(what_is_kept_is_found_by_its_id)
{
	struct descriptors *c = descriptors_new(2);
	int a = some_fd(), b = some_fd(), other = some_fd(), much = some_fd();
	uint64_t id;

	(void)state;
	assert_true(descriptors_put(c, 1, a) && descriptors_put(c, 2, b));
	assert_true(descriptors_put(c, 1, other)); /* in its place */
	assert_false(is_open(a));
	assert_false(descriptors_put(c, 3, much)); /* one too many */
	assert_false(is_open(much));
	descriptors_drop(c, 7);
	descriptors_drop(c, 1);
	assert_false(is_open(other));
	assert_int_equal(descriptors_count(c), 1);
	assert_int_equal(descriptors_at(c, 0, &id), b);
	assert_int_equal(id, 2);
	descriptors_free(c);
	assert_false(is_open(b));
}

TEST(connections_are_shut_down_and_roles_stay)
{
	struct descriptors *c = descriptors_new(10);
	int ends[2], role[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, role), 0);
	descriptors_put(c, 1, dup(ends[0]));
	descriptors_put(c, KEEPER_LISTENER, dup(role[0]));
	assert_int_equal(descriptors_end_connections(c), 1);
	/* Although somebody else has it, too. */
	assert_int_equal(recv(ends[1], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(role[1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(descriptors_count(c), 1);
	descriptors_free(c);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(role[i]);
	}
}

/* ---- what is said ---- */

WITH_WORKER(a_worker_is_given_all_and_told_of_crashes_before_anything_else)
{
	struct keeper_message m;
	uint64_t seen = 0;

	(void)state;
	begun();
	says(KEEPER_KEEP, 1, KEEPER_BATCH);
	says(KEEPER_KEEP, 1 + KEEPER_BATCH, 1);
	close(worker);
	assert_false(exchange_turn(&x));
	assert_int_equal(x.fd, -1);
	assert_int_equal(keeper_message_pair(&x.fd, &worker), 0);
	exchange_begin(&x, x.fd, 2);
	exchange_signal(&x, SIGTERM, 7);
	exchange_turn(&x);
	while (told(&m) == KEEPER_BACK)
		for (uint32_t i = 0; i < m.count; i++)
			seen += m.numbers[i];
	assert_int_equal(seen, 65 * 66 / 2);
	assert_int_equal(m.kind, KEEPER_BEGIN);
	assert_int_equal(m.numbers[0], 2);
	assert_int_equal(told(&m), KEEPER_SIGNAL);
	assert_int_equal(m.numbers[0], SIGTERM);
	assert_int_equal(m.numbers[1], 7);
	assert_int_equal(told(&m), 0);
}

WITH_WORKER(all_that_there_is_room_for_is_kept_and_the_rest_refused)
{
	struct keeper_message m;
	uint32_t kept = 0, refused = 0;

	(void)state;
	begun();
	for (uint64_t id = 0; id < ROOM + 1; id += 43) /* 7 * 43 == ROOM + 1 */
		says(KEEPER_KEEP, id, 43);
	for (uint32_t kind = told(&m); kind; kind = told(&m)) {
		kept += kind == KEEPER_KEPT ? m.count : 0;
		refused += kind == KEEPER_REFUSED ? m.count : 0;
	}
	assert_int_equal(kept, ROOM);
	assert_int_equal(refused, 1);
	says(KEEPER_DROP, 0, 1);
	says(KEEPER_KEEP, ROOM, 1);
	assert_int_equal(told(&m), KEEPER_KEPT);
}

WITH_WORKER(a_worker_that_does_not_read_is_not_read_and_costs_a_bounded_queue)
{
	struct keeper_message one = { .kind = KEEPER_KEEP, .count = 1 }, m;
	int fd = some_fd(), sent = 0, answers = 0, signals = 0;

	(void)state;
	begun();
	/* Until neither side takes more. */
	for (int idle = 0; idle < 2; idle++) {
		for (; keeper_message_send(worker, &one, &fd) == 0; idle = 0)
			one.numbers[0] = (uint64_t)++sent % ROOM;
		exchange_turn(&x);
	}
	assert_false(exchange_tell(&x));
	exchange_signal(&x, SIGHUP, 1);
	exchange_signal(&x, SIGHUP, 2); /* one, as signals are */
	exchange_signal(&x, 64, 1);     /* there is no such */
	for (uint32_t kind = told(&m); kind; kind = told(&m)) {
		answers += kind == KEEPER_KEPT;
		signals += kind == KEEPER_SIGNAL;
		exchange_turn(&x);
	}
	assert_true(exchange_tell(&x));
	assert_int_equal(answers, sent);
	assert_int_equal(signals, 1);
	close(fd);
}

WITH_WORKER(what_a_worker_says_is_noted)
{
	struct keeper_message unknown = { .kind = 77, .count = 3 };

	(void)state;
	begun();
	says(KEEPER_HERE, 0, 0);
	assert_true(x.heard.here);
	assert_int_equal(x.heard.sender, getpid());
	says(KEEPER_ALIVE, 500, 1);
	assert_true(x.heard.alive && x.heard.within_us == 500);
	assert_int_equal(keeper_message_send(worker, &unknown, NULL), 0);
	says(KEEPER_STAYS, 0, 0);
	assert_true(x.heard.stays && !x.heard.again);
	says(KEEPER_AGAIN, 0, 0);
	assert_true(x.heard.again);
}

WITH_WORKER(nonsense_is_no_message_and_its_descriptors_are_closed)
{
	static const char *const texts[] = { "", "x", "1234567", "\1\0\0\0\1\0\0\0", "\1\0\0\0\377\377\377\377" };
	static const size_t lengths[] = { 1, 1, 7, 8, 8 };

	(void)state;
	begun();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(send(worker, texts[i], lengths[i], 0), lengths[i]);
		assert_true(exchange_turn(&x));
	}
	says(KEEPER_KEEP, 1, 1);
	assert_int_equal(descriptors_count(x.descriptors), 1);
}

/* ---- the worker's end ---- */

static int answered, signalled;
static uint64_t answered_id;

static void note_answer(void *arg, uint64_t id, bool kept)
{
	(void)arg;
	answered += kept ? 1 : 100;
	answered_id = id;
}

static void note_signal(void *arg, int number, pid_t sender)
{
	(void)arg;
	signalled = number * 1000 + (int)sender;
}

static struct keeper *make_worker(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", worker);
	setenv(KEEPER_VARIABLE, text, 1);
	return keeper_new();
}

WITH_WORKER(the_workers_end_keeps_and_drops)
{
	struct watch_base *base = watch_base_new();
	struct keeper *k = make_worker();
	struct keeper_past past;
	int fd = some_fd();

	(void)state;
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
	watch_base_free(base);
	close(fd);
}

/* The kernel passes on as many as this process may have. */
static void end(void *arg, int fd)
{
	close(fd);
}

WITH_WORKER(descriptors_that_do_not_fit_are_dropped)
{
	struct rlimit limit, few;
	struct keeper_past past;
	struct keeper *k;
	int next;

	(void)state;
	begun();
	says(KEEPER_KEEP, 1, 3);
	close(x.fd);
	close(worker);
	assert_int_equal(keeper_message_pair(&x.fd, &worker), 0);
	exchange_begin(&x, x.fd, 1);
	exchange_turn(&x);
	k = make_worker();
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
	keeper_refuse(k, &past, end, NULL);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 0);
	keeper_free(k);
}

WITH_WORKER(what_cannot_be_sent_now_waits_or_is_asked_for_later)
{
	struct keeper *k = make_worker();
	int fd = some_fd(), kept = 0;

	(void)state;
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
	keeper_free(k);
	close(fd);
}

/* It is of no use for the next worker. */
WITH_WORKER(who_has_most_is_known_as_long_as_the_worker_lives)
{
	struct keeper *k = make_worker();
	char text[2 * KEEPER_TEXT_MAX];

	(void)state;
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
	keeper_free(k);
}

/* The loop of the daemon goes on, and a later one comes. */
WITH_WORKER(who_has_most_is_dropped_while_the_keeper_does_not_read)
{
	struct keeper *k = make_worker();

	(void)state;
	for (int i = 0; i < 10000; i++)
		keeper_most(k, "user 1000");
	assert_true(exchange_turn(&x));
	keeper_most(k, "user 1001");
	assert_true(exchange_turn(&x));
	assert_string_equal(x.most, "user 1001");
	keeper_free(k);
}

/* Nobody asks for those again. */
WITH_WORKER(a_role_is_kept_however_many_connections_wait)
{
	struct keeper *k = make_worker();
	struct keeper_message m;
	int fd = some_fd(), roles = 0;
	uint64_t id;

	(void)state;
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
	keeper_free(k);
	close(fd);
}

/* It may have asked before the hand-over, so this process asks again; before that is sent, the connection ends. */
WITH_WORKER(what_the_process_before_has_given_is_dropped_whatever_was_asked_since)
{
	struct keeper *k = make_worker(), *next;
	struct parcel p = { 0 };
	int fd = some_fd();

	(void)state;
	begun();
	says(KEEPER_KEEP, 8, 2);
	keeper_pack(k, &p);
	p.fds[0] = dup(p.fds[0]);
	next = keeper_unpack(&p);
	assert_true(keeper_keep(next, 8, fd));
	keeper_drop(next, 8);
	keeper_settle(next);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 1);
	close(fd);
	keeper_free(k);
	keeper_free(next);
	parcel_discard(&p);
}

WITH_WORKER(a_hand_over_takes_along_what_was_not_sent)
{
	struct keeper *k = make_worker(), *next;
	struct parcel p = { 0 };

	(void)state;
	begun();
	says(KEEPER_KEEP, 8, 2);
	keeper_drop(k, 8);
	keeper_pack(k, &p);
	p.fds[0] = dup(p.fds[0]);
	next = keeper_unpack(&p);
	assert_non_null(next);
	keeper_settle(next);
	exchange_turn(&x);
	assert_int_equal(descriptors_count(x.descriptors), 1);
	assert_null(keeper_unpack(&(struct parcel){ 0 }));
	keeper_free(k);
	keeper_free(next);
	parcel_discard(&p);
}

/* ---- what is for the service manager ---- */

/* What it is told next, and with how many descriptors, which are closed; NULL: nothing. */
static const char *manager_is_told(int manager, size_t *ret_fds)
{
	static char text[KEEPER_TEXT_MAX + 1];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { text, sizeof(text) - 1 };
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	ssize_t len = recvmsg(manager, &m, MSG_DONTWAIT);
	struct cmsghdr *c = len < 0 ? NULL : CMSG_FIRSTHDR(&m);

	*ret_fds = c != NULL;
	if (c) {
		int fd;

		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		assert_int_equal(close(fd), 0);
	}
	text[len < 0 ? 0 : len] = '\0';
	return len < 0 ? NULL : text;
}

static void expect_told(int manager, const char *text, size_t fds)
{
	size_t with;

	assert_string_equal(manager_is_told(manager, &with), text);
	assert_int_equal(with, fds);
}

WITH_WORKER(what_a_worker_tells_the_service_manager_is_passed_on_as_it_is)
{
	char longest[KEEPER_TEXT_MAX + 1], eight[] = "12345678";
	struct keeper *k = make_worker();
	struct notify n = { .keeper = k }, manager = { .fd = -1 };
	int ends[2], fd = some_fd();
	size_t with;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	manager.fd = ends[0];
	x.manager = &manager;
	begun();
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
	keeper_free(k);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* Neither side takes more. */
static void fill_channel(void)
{
	struct keeper_message m = { .kind = 77, .count = KEEPER_BATCH };

	while (keeper_message_send(worker, &m, NULL) == 0)
		;
}

WITH_WORKER(what_cannot_be_told_yet_waits_in_order_and_goes_along_with_a_hand_over)
{
	struct keeper *k = make_worker(), *next;
	struct notify manager = { .fd = -1 };
	struct parcel p = { 0 };
	int ends[2], told_ready = 0;
	size_t with;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	manager.fd = ends[0];
	x.manager = &manager;
	begun();
	fill_channel();
	assert_int_equal(keeper_notify(k, "RELOADING=1", -1), 0);
	assert_int_equal(keeper_notify(k, "STATUS=one", -1), 0);
	assert_int_equal(keeper_notify(k, "STATUS=two", -1), 0);
	assert_int_equal(keeper_notify(k, "READY=1", -1), 0);
	assert_int_equal(keeper_notify(k, "STORE", ends[0]), -EAGAIN);
	keeper_pack(k, &p);
	p.fds[0] = dup(p.fds[0]);
	next = keeper_unpack(&p);
	exchange_turn(&x);
	keeper_settle(next);
	exchange_turn(&x);
	expect_told(ends[1], "RELOADING=1", 0);
	expect_told(ends[1], "STATUS=two", 0);
	expect_told(ends[1], "READY=1", 0);
	assert_null(manager_is_told(ends[1], &with));
	/* Bounded. */
	fill_channel();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(keeper_notify(next, "READY=1", -1), 0);
	exchange_turn(&x);
	keeper_settle(next);
	exchange_turn(&x);
	while (manager_is_told(ends[1], &with))
		told_ready++;
	assert_in_range(told_ready, 1, 100);
	keeper_free(k);
	keeper_free(next);
	parcel_discard(&p);
	close(ends[0]);
	close(ends[1]);
}

static void fill_manager(int fd)
{
	static const char text[] = "STATUS=one more";

	while (send(fd, text, strlen(text), 0) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

static int full_manager(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
	fill_manager(ends[0]);
	return ends[0];
}

/* Whether the barrier came to the manager: else who waits at it reads what says so. */
static bool passes_barrier(struct keeper *k)
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

WITH_WORKER(what_is_to_be_stored_and_is_lost_makes_the_barrier_fail)
{
	struct keeper *k = make_worker();
	struct notify n = { .keeper = k }, manager = { .fd = -1 };
	int ends[2], fd = some_fd();
	size_t with, stored = 0;

	(void)state;
	manager.fd = full_manager(ends);
	x.manager = &manager;
	begun();
	assert_int_equal(notify_store(&n, "name", fd), 0);
	exchange_turn(&x); /* it waits, and gives up */
	while (manager_is_told(ends[1], &with))
		stored += with;
	assert_int_equal(stored, 0);
	assert_false(passes_barrier(k));
	assert_null(manager_is_told(ends[1], &with));
	/* Another attempt is as good as the first one. */
	assert_int_equal(notify_store(&n, "name", fd), 0);
	assert_true(passes_barrier(k));
	expect_told(ends[1], "FDSTORE=1\nFDNAME=name\nFDPOLL=0", 1);
	expect_told(ends[1], "BARRIER=1", 1);
	/* One that is lost itself fails, too. */
	fill_manager(ends[0]);
	assert_false(passes_barrier(k));
	keeper_free(k);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

WITH_WORKER(what_is_to_be_stored_waits_for_room)
{
	struct keeper *k = make_worker();
	struct notify n = { .keeper = k }, manager = { .fd = -1 };
	int ends[2], fd = some_fd();
	pid_t reader;

	(void)state;
	manager.fd = full_manager(ends);
	x.manager = &manager;
	begun();
	assert_int_equal(notify_store(&n, "name", fd), 0);
	reader = fork();
	if (reader == 0) {
		usleep(20000);
		while (recv(ends[1], &(char){ 0 }, 1, 0) > 0)
			;
		_exit(errno == EAGAIN ? 0 : 1);
	}
	exchange_turn(&x);
	assert_int_equal(waitpid(reader, NULL, 0), reader);
	assert_false(manager.lost);
	keeper_free(k);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

TEST(without_a_keeper_nothing_happens)
{
	struct keeper_past past;

	(void)state;
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

/* ---- crashes and watchdogs ---- */

TEST(crashes_count_for_a_minute)
{
	const int64_t s = CLOCK_NS_PER_S;
	struct crashes c = { 0 };

	(void)state;
	assert_int_equal(crashes_add(&c, 100 * s), 1);
	assert_int_equal(crashes_add(&c, 160 * s), 2);
	assert_int_equal(crashes_recent(&c, 160 * s + 1), 1);
	assert_int_equal(crashes_add(&c, 161 * s), 2);
	for (unsigned int i = 3; i <= CRASHES_MAX; i++)
		assert_int_equal(crashes_add(&c, 161 * s), i);
	assert_int_equal(crashes_recent(&c, 300 * s), 0);
	assert_int_equal(c.pause_ns, 0);
}

/* The fifth, and each that comes within a minute after the start of the worker that followed the one before. */
TEST(after_many_crashes_there_is_a_pause)
{
	static const int64_t pauses_s[] = { 0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30 };
	const int64_t s = CLOCK_NS_PER_S;
	struct crashes c = { 0 };
	int64_t now_ns = 100 * s;

	(void)state;
	for (size_t i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++) {
		assert_int_equal(crashes_add(&c, now_ns), i < CRASHES_MAX ? i + 1 : CRASHES_MAX);
		assert_int_equal(c.pause_ns, pauses_s[i] * s);
		now_ns += c.pause_ns;
		assert_int_equal(crashes_recent(&c, now_ns), i < CRASHES_MAX ? i + 1 : CRASHES_MAX);
	}
	/* Such a worker lives for a minute, and the next one for longer. */
	assert_int_equal(crashes_add(&c, now_ns + 60 * s), CRASHES_MAX);
	assert_int_equal(c.pause_ns, 30 * s);
	assert_int_equal(crashes_add(&c, now_ns + 151 * s), 1);
	assert_int_equal(c.pause_ns, 0);
}

static int own_argc;
static char **own_argv;

/* The keeper runs this program as its worker, which unit_begin() then ends at once. */
TEST(a_worker_that_cannot_stop_is_not_started_for_ever)
{
	char said[8192] = "";
	size_t len = 0;
	int ends[2], status;
	pid_t keeper;

	assert_int_equal(pipe(ends), 0);
	keeper = fork();
	assert_true(keeper >= 0);
	if (keeper == 0) {
		dup2(ends[1], STDERR_FILENO);
		log_setup(LOG_LEVEL_ERROR, LOG_FORM_PLAIN);
		_exit(supervisor_run(program_new(own_argc, own_argv), LOG_FORM_PLAIN));
	}
	close(ends[1]);
	while (!strstr(said, "another one starts in 1 s")) {
		ssize_t got = read(ends[0], said + len, sizeof(said) - 1 - len);

		if (got <= 0)
			fail_msg("it ended, and has said: %s", said);
		len += (size_t)got;
		said[len] = '\0';
	}
	kill(keeper, SIGTERM);
	assert_int_equal(waitpid(keeper, &status, 0), keeper);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
	close(ends[0]);
}

TEST(a_worker_that_hangs_is_due)
{
	const int64_t s = CLOCK_NS_PER_S;
	struct watchdogs v;

	(void)state;
	unsetenv("NOTIFY_SOCKET");
	watchdogs_open(&v);
	watchdogs_begin(&v, 0);
	assert_int_equal(watchdogs_deadline(&v), INT64_MAX);
	watchdogs_alive(&v, 10 * s, 2000000);
	assert_int_equal(watchdogs_deadline(&v), 12 * s);
	assert_int_equal(watchdogs_look(&v, 12 * s - 1), WATCHDOGS_NOTHING);
	assert_int_equal(watchdogs_look(&v, 12 * s), WATCHDOGS_NOTHING);
	watchdogs_alive(&v, 12 * s, 2000000); /* just in time */
	assert_int_equal(watchdogs_look(&v, 14 * s), WATCHDOGS_NOTHING);
	assert_int_equal(watchdogs_look(&v, 15 * s), WATCHDOGS_ABORT);
	watchdogs_alive(&v, 15 * s, 2000000);
	assert_int_equal(watchdogs_look(&v, 25 * s - 1), WATCHDOGS_NOTHING);
	assert_int_equal(watchdogs_look(&v, 25 * s), WATCHDOGS_KILL);
	assert_int_equal(watchdogs_look(&v, 100 * s), WATCHDOGS_NOTHING);
	watchdogs_end(&v);
	assert_int_equal(watchdogs_deadline(&v), INT64_MAX);
	watchdogs_close(&v);
}

/* ---- what it leaves ---- */

WITH_WORKER(what_a_keeper_leaves_the_next_one_has)
{
	struct reexec l = { .log_level = 2,
			    .channel = dup(x.fd),
			    .group = 77,
			    .worker = 78,
			    .stop = SIGINT,
			    .keep = 1,
			    .signals = 1 << SIGHUP,
			    .within_us = 5,
			    .crashes = { .at_ns = { 1, 2 }, .count = 2, .pause_ns = 9 } };
	struct descriptors *next = descriptors_new(ROOM);
	struct reexec read;
	uint64_t id;
	int fd, kept = some_fd();

	(void)state;
	descriptors_put(x.descriptors, KEEPER_PIDFILE, kept);
	fd = reexec_make(&l, x.descriptors);
	assert_true(fd >= 0);
	assert_int_equal(reexec_read(fd, &read, next), 0);
	assert_false(is_open(fd));
	assert_int_equal(descriptors_count(next), 1);
	assert_int_equal(descriptors_at(next, 0, &id), kept);
	assert_true(id == KEEPER_PIDFILE);
	assert_int_equal(read.log_level, 2);
	assert_int_equal(read.channel, l.channel);
	assert_int_equal(read.group, 77);
	assert_int_equal(read.worker, 78);
	assert_int_equal(read.stop, SIGINT);
	assert_int_equal(read.keep, 1);
	assert_int_equal(read.signals, 1 << SIGHUP);
	assert_int_equal(read.within_us, 5);
	assert_int_equal(read.crashes.count, 2);
	assert_int_equal(read.crashes.at_ns[0], 1);
	assert_int_equal(read.crashes.at_ns[1], 2);
	assert_int_equal(read.crashes.pause_ns, 9);
	assert_true(fcntl(kept, F_GETFD) & FD_CLOEXEC);
	close(l.channel);
	descriptors_free(next); /* it was the same one, which is closed once more at the end: nothing happens */
}

WITH_WORKER(what_is_no_reexec_is_refused)
{
	static const char *const texts[] = { "", "hello", "keeper channel 1:9", "keeper group 1:1,channel 1:0,\n",
					     "keeper group 2:99,channel 6:999999,\n" };
	struct descriptors *c = descriptors_new(ROOM);
	struct reexec read;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = some_fd();

		assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		assert_int_equal(reexec_read(fd, &read, c), -EBADMSG);
	}
	assert_int_equal(reexec_read(dup(worker), &read, c), -EBADMSG);
	descriptors_free(c);
}

void unit_begin(int argc, char **argv)
{
	/* This is the worker of a keeper in a test. */
	if (getenv(KEEPER_VARIABLE))
		raise(SIGKILL);
	own_argc = argc;
	own_argv = argv;
}
