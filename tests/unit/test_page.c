/* SPDX-License-Identifier: Apache-2.0 */
/* The session page: whole or not at all, and never waited for. */
#include <pthread.h>

#include "tests/unit/unit.h"

#include "protocol/session_page.h"

static const uint8_t id[SESSION_PAGE_ID_BYTES] = { 0x01, 0xab, 0x20 };

TEST(what_was_written_is_read)
{
	const struct session_view in = { .epoch = 7, .state = SESSION_JEOPARDY, .safe_until_ns = 123456789 };
	struct session_page page;
	struct session_view out;

	session_page_init(&page, id);
	assert_true(session_page_read(&page, &out));
	assert_int_equal(out.state, SESSION_NONE);
	session_page_write(&page, &in);
	assert_true(session_page_read(&page, &out));
	assert_int_equal(out.epoch, 7);
	assert_int_equal(out.state, SESSION_JEOPARDY);
	assert_int_equal(out.safe_until_ns, 123456789);
}

TEST(what_is_no_page_is_refused)
{
	struct session_page page;
	struct session_view out;

	session_page_init(&page, id);
	page.version++;
	assert_false(session_page_read(&page, &out));
	session_page_init(&page, id);
	page.magic = 0;
	assert_false(session_page_read(&page, &out));
	session_page_init(&page, id);
	page.state = SESSION_PAGE_MOVED + 1;
	assert_false(session_page_read(&page, &out));
}

TEST(a_page_is_known_by_its_id)
{
	const uint8_t other[SESSION_PAGE_ID_BYTES] = { 0x01, 0xab, 0x21 };
	struct session_page page;

	session_page_init(&page, id);
	assert_true(session_page_is(&page, SLICE("01ab2000000000000000000000000000")));
	assert_false(session_page_is(&page, SLICE("01ab210000000000000000000000000")));
	assert_false(session_page_is(&page, SLICE("")));
	session_page_init(&page, other);
	assert_false(session_page_is(&page, SLICE("01ab2000000000000000000000000000")));
}

/* A daemon that was stopped while it wrote. */
TEST(a_half_written_page_is_not_waited_for)
{
	struct session_page page;
	struct session_view out;

	session_page_init(&page, id);
	page.sequence = 5;
	assert_false(session_page_read(&page, &out));
}

TEST(a_writer_that_follows_a_killed_one_is_not_read_half_way)
{
	const struct session_view in = { .epoch = 3, .state = SESSION_SAFE, .safe_until_ns = 99 };
	struct session_page page;
	struct session_view out;

	session_page_init(&page, id);
	page.sequence = 5;
	page.safe_until_ns = 77;
	session_page_write(&page, &in);
	assert_int_equal(page.sequence, 6);
	assert_true(session_page_read(&page, &out));
	assert_int_equal(out.epoch, 3);
	assert_int_equal(out.safe_until_ns, 99);
	session_page_write(&page, &in);
	assert_int_equal(page.sequence, 8);
}

/* Whatever it said, and whether or not its writer was killed while it wrote. */
TEST(a_page_that_has_moved_counts_until_its_safe_until)
{
	static const struct {
		uint64_t state;
		int64_t safe_until_ns;
	} cases[] = {
		{ SESSION_NONE, 0 },
		{ SESSION_SAFE, 99 },
		{ SESSION_JEOPARDY, 99 },
		{ SESSION_LOST, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (uint64_t odd = 0; odd < 2; odd++) {
			struct session_page page;
			struct session_view out;

			session_page_init(&page, id);
			page.epoch = 7;
			page.state = cases[i].state;
			page.safe_until_ns = 99;
			page.sequence = 4 + odd;
			session_page_move(&page);
			/* Killed, too, before it was said where the next one is. */
			session_page_move(&page);
			assert_int_equal(page.sequence, 8);
			assert_true(session_page_read(&page, &out));
			assert_true(out.moved);
			assert_int_equal(out.epoch, 7);
			assert_int_equal(out.state, SESSION_JEOPARDY);
			assert_int_equal(out.safe_until_ns, cases[i].safe_until_ns);
		}
	}
}

enum { ROUNDS = 200000 };

static void *write_much(void *arg)
{
	for (int64_t i = 1; i <= ROUNDS; i++) {
		const struct session_view view = { .epoch = (uint64_t)i, .state = SESSION_SAFE, .safe_until_ns = -i };

		session_page_write(arg, &view);
	}
	return NULL;
}

TEST(a_reader_never_sees_half_a_write)
{
	struct session_page page;
	struct session_view out = { 0 };
	pthread_t writer;

	session_page_init(&page, id);
	assert_int_equal(pthread_create(&writer, NULL, write_much, &page), 0);
	while (out.epoch < ROUNDS)
		if (session_page_read(&page, &out))
			assert_int_equal((int64_t)out.epoch, -out.safe_until_ns);
	pthread_join(writer, NULL);
}
