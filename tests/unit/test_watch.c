/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes the loop: instants that have passed, descriptors, and what callbacks do to each other. */
#include "io/base/watch.h"

#include "tests/unit/unit.h"
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define MS INT64_C(1000000)

/* One watch, and what its callback does. */
struct probe {
	struct watch *watch;
	int count, fd;
	short what;
	int64_t again_ns; /* set anew for that instant; 0: not */
	struct watch **free_it;
};

static struct watch_base *base;
static int fds[2]; /* the ends of a connection */

static void fired(int fd, short what, void *arg)
{
	struct probe *p = arg;

	p->count++;
	p->fd = fd;
	p->what = what;
	if (p->again_ns)
		watch_set_by(p->watch, p->again_ns);
	if (p->free_it) {
		watch_free(*p->free_it);
		*p->free_it = NULL;
	}
}

static int begin(void **state)
{
	base = watch_base_new();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	return base ? 0 : -1;
}

static int end(void **state)
{
	watch_base_free(base);
	close(fds[0]);
	close(fds[1]);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

TEST(a_timer_that_is_set_in_its_callback_waits_for_the_next_turn)
{
	const int64_t instants[] = { 1, clock_now_ns() - 1000 * MS, clock_now_ns() };
	struct probe p = { 0 };

	p.watch = watch_new(base, fired, &p);
	for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
		p.count = 0;
		p.again_ns = instants[i];
		watch_set_by(p.watch, instants[i]);
		watch_base_turn(base, true);
		assert_int_equal(p.count, 1);
		watch_base_turn(base, true);
		assert_int_equal(p.count, 2);
		assert_true(watch_is_set(p.watch));
	}
	watch_free(p.watch);
}

TEST(all_that_are_due_fire_in_one_turn_in_their_order)
{
	struct probe p[3] = { 0 };
	int64_t now_ns = clock_now_ns();

	for (int i = 0; i < 3; i++) {
		p[i].watch = watch_new(base, fired, &p[i]);
		watch_set_by(p[i].watch, now_ns - i * MS);
	}
	p[2].free_it = &p[1].watch;
	watch_base_turn(base, true);
	assert_int_equal(p[2].count, 1);
	assert_int_equal(p[1].count, 0);
	assert_int_equal(p[0].count, 1);
	assert_false(watch_is_set(p[0].watch));
	watch_free(p[0].watch);
	watch_free(p[2].watch);
}

TEST(an_instant_is_not_met_early_and_an_earlier_one_counts)
{
	struct probe late = { 0 }, early = { 0 };
	int64_t due_ns;

	late.watch = watch_new(base, fired, &late);
	early.watch = watch_new(base, fired, &early);
	watch_set(late.watch, -1, 0, 3600 * CLOCK_NS_PER_S);
	watch_base_turn(base, false);
	due_ns = clock_now_ns() + 20 * MS;
	watch_set_by(early.watch, due_ns);
	while (!early.count)
		watch_base_turn(base, true);
	assert_true(clock_now_ns() >= due_ns);
	assert_int_equal(early.what, WATCH_TIMEOUT);
	assert_int_equal(late.count, 0);
	watch_free(late.watch);
	watch_free(early.watch);
}

TEST(a_descriptor_or_its_time_whichever_is_first_and_only_once)
{
	struct probe p = { 0 };

	p.watch = watch_new(base, fired, &p);
	watch_set(p.watch, fds[0], WATCH_READ, 0);
	watch_base_turn(base, true);
	assert_int_equal(p.count, 1);
	assert_int_equal(p.what, WATCH_TIMEOUT);
	assert_int_equal(p.fd, fds[0]);
	assert_int_equal(write(fds[1], "x", 1), 1);
	watch_base_turn(base, false);
	assert_int_equal(p.count, 1);
	watch_set(p.watch, fds[0], WATCH_READ, 3600 * CLOCK_NS_PER_S);
	watch_base_turn(base, true);
	assert_int_equal(p.count, 2);
	assert_int_equal(p.what, WATCH_READ);
	assert_false(watch_is_set(p.watch));
	watch_free(p.watch);
}

/* Both are found ready at once; the one that comes first ends the other. */
TEST(what_is_cleared_meanwhile_is_not_told)
{
	struct probe p[2] = { 0 };

	assert_int_equal(write(fds[1], "x", 1), 1);
	for (int i = 0; i < 2; i++) {
		p[i].watch = watch_new(base, fired, &p[i]);
		p[i].free_it = &p[!i].watch;
	}
	watch_set(p[0].watch, fds[0], WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
	watch_set_by(p[1].watch, 1);
	watch_base_turn(base, true);
	assert_int_equal(p[0].count + p[1].count, 1);
	watch_free(p[0].watch);
	watch_free(p[1].watch);
}

/* As a connection is: one waits for input, the other for room to write. */
TEST(two_watch_one_descriptor)
{
	struct probe in = { 0 }, out = { 0 };

	in.watch = watch_new(base, fired, &in);
	out.watch = watch_new(base, fired, &out);
	watch_set(in.watch, fds[0], WATCH_READ | WATCH_HANGUP | WATCH_KEEP, WATCH_NO_TIMEOUT);
	watch_set(out.watch, fds[0], WATCH_WRITE, WATCH_NO_TIMEOUT);
	watch_base_turn(base, true);
	assert_int_equal(in.count, 0);
	assert_int_equal(out.count, 1);
	assert_int_equal(out.what, WATCH_WRITE);
	assert_false(watch_is_set(out.watch));
	watch_set(out.watch, fds[0], WATCH_WRITE, WATCH_NO_TIMEOUT);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
	watch_base_turn(base, true);
	assert_int_equal(in.count, 1);
	assert_int_equal(in.what, WATCH_READ | WATCH_HANGUP);
	assert_int_equal(out.count, 2);
	watch_base_turn(base, true);
	assert_int_equal(in.count, 2);
	assert_int_equal(out.count, 2);
	/* Both are ready, and whoever is first ends the other. */
	watch_set(out.watch, fds[0], WATCH_WRITE, WATCH_NO_TIMEOUT);
	in.free_it = &out.watch;
	out.free_it = &in.watch;
	watch_base_turn(base, true);
	assert_int_equal(in.count + out.count, 5);
	watch_free(in.watch);
	watch_free(out.watch);
}

/* What is so already when it is set is told once, whatever was told before. */
TEST(an_edge_is_told_once_for_each_time_it_is_set)
{
	const unsigned int flags = WATCH_READ | WATCH_HANGUP | WATCH_EDGE | WATCH_KEEP;
	struct probe p = { 0 };

	assert_int_equal(write(fds[1], "x", 1), 1);
	p.watch = watch_new(base, fired, &p);
	for (int times = 1; times <= 3; times++) {
		watch_set(p.watch, fds[0], flags, WATCH_NO_TIMEOUT);
		watch_base_turn(base, false);
		watch_base_turn(base, false);
		assert_int_equal(p.count, times);
		assert_int_equal(p.what, WATCH_READ | WATCH_EDGE);
	}
	close(fds[1]);
	fds[1] = -1;
	watch_base_turn(base, false);
	watch_base_turn(base, false);
	assert_int_equal(p.count, 4);
	assert_true(p.what & WATCH_HANGUP);
	watch_free(p.watch);
}
