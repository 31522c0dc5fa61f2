/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's parts: what it keeps, what it and a worker tell each other, crashes, watchdogs, what it leaves behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/handover/program.h"
#include "keeper/crashes.h"
#include "keeper/reexec.h"
#include "keeper/supervisor.h"
#include "keeper/watchdogs.h"
#include "keeper_fixture.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* ---- what is kept ---- */

TEST(what_is_kept_is_found_by_its_id)
{
	struct descriptors *c = descriptors_new(2);
	int a = some_fd(), b = some_fd(), other = some_fd(), much = some_fd();
	uint64_t id;

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

	begun();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(send(worker, texts[i], lengths[i], 0), lengths[i]);
		assert_true(exchange_turn(&x));
	}
	says(KEEPER_KEEP, 1, 1);
	assert_int_equal(descriptors_count(x.descriptors), 1);
}

/* ---- crashes and watchdogs ---- */

TEST(crashes_count_for_a_minute)
{
	const int64_t s = CLOCK_NS_PER_S;
	struct crashes c = { 0 };

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

/* Its words, with a channel and a descriptor that are open here. */
WITH_WORKER(what_a_keeper_of_0_2_0_leaves_is_read)
{
	struct descriptors *next = descriptors_new(ROOM);
	int fd = some_fd(), channel = dup(x.fd), kept = some_fd();
	struct reexec read;
	uint64_t id;

	dprintf(fd,
		"keeper log_level 1:2,channel %d:%d,group 2:77,worker 2:78,stop 1:2,keep 1:1,signals 1:2,within_us 1:5,\n"
		"crash at_ns 1:1,pause_ns 1:9,\ncrash at_ns 1:2,pause_ns 1:9,\nkept id 20:-9223372036854775805,fd %d:%d,\n",
		channel > 9 ? 2 : 1, channel, kept > 9 ? 2 : 1, kept);
	assert_int_equal(reexec_read(fd, &read, next), 0);
	assert_int_equal(read.log_level, 2);
	assert_int_equal(read.channel, channel);
	assert_int_equal(read.worker, 78);
	assert_int_equal(read.within_us, 5);
	assert_int_equal(read.crashes.count, 2);
	assert_int_equal(read.crashes.at_ns[1], 2);
	assert_int_equal(descriptors_at(next, 0, &id), kept);
	assert_true(id == KEEPER_PIDFILE);
	close(channel);
	descriptors_free(next);
}

WITH_WORKER(what_is_no_reexec_is_refused)
{
	static const char *const texts[] = { "",
					     "hello",
					     "keeper channel 1:9",
					     "keeper group 1:1,channel 1:0,\n",
					     "keeper group 2:99,channel 6:999999,\n",
					     "*5\r\n+keeper\r\n+group\r\n:99\r\n+channel\r\n:0\r\n",
					     "*5\r\n+keeper\r\n+group\r\n:99\r\n+channel\r\n:999999\r\n" };
	struct descriptors *c = descriptors_new(ROOM);
	struct reexec read;

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
