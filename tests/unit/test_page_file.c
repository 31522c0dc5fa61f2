/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the session page: what an earlier one says when a daemon has made its own. */

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/files/page.h"

static const uint8_t first_id[SESSION_PAGE_ID_BYTES] = { 1 }, second_id[SESSION_PAGE_ID_BYTES] = { 2 };
static const struct session_view safe = { .epoch = 3, .state = SESSION_SAFE, .safe_until_ns = 99 };

static char dir[64], path[128];
static struct page *page;

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/lockbroker-page.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/session", dir);
	return 0;
}

static int remove_dir(void **state)
{
	unlink(path);
	strcat(path, ".spare");
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, make_dir, remove_dir)

/* As a client maps it. */
static struct session_page *map(void)
{
	int fd = open(path, O_RDWR);
	struct session_page *at;

	assert_true(fd >= 0);
	at = mmap(NULL, SESSION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

static void unmap(struct session_page *at)
{
	munmap(at, SESSION_PAGE_BYTES);
}

/* A page that says `safe`, and whose daemon was killed, perhaps while it wrote. */
static struct session_page *killed(bool while_it_wrote)
{
	struct session_page *at;

	assert_int_equal(page_open(&page, dir, first_id, false), 0);
	page_update(page, &safe);
	page_forget(page);
	at = map();
	at->sequence += while_it_wrote;
	return at;
}

static void expect(const struct session_page *at, bool moved, enum session_state state, uint64_t epoch, int64_t until)
{
	struct session_view view;

	assert_true(session_page_read(at, &view));
	assert_int_equal(view.moved, moved);
	assert_int_equal(view.state, state);
	assert_int_equal(view.epoch, epoch);
	assert_int_equal(view.safe_until_ns, until);
}

TEST(a_page_whose_clients_go_on_has_moved)
{
	for (int odd = 0; odd < 2; odd++) {
		struct session_page *old, *new;

		old = killed(odd);
		assert_int_equal(page_open(&page, dir, second_id, true), 0);
		expect(old, true, SESSION_JEOPARDY, 3, 99);
		new = map();
		assert_true(session_page_is(new, SLICE("02000000000000000000000000000000")));
		page_update(page, &(struct session_view){ .epoch = 4, .state = SESSION_SAFE, .safe_until_ns = 200 });
		expect(new, false, SESSION_SAFE, 4, 200);
		expect(old, true, SESSION_JEOPARDY, 3, 99);
		page_close(page);
		expect(new, false, SESSION_NONE, 0, 0);
		expect(old, true, SESSION_JEOPARDY, 3, 99);
		unmap(old);
		unmap(new);
		remove_dir(state);
		make_dir(state);
	}
}

TEST(a_page_whose_clients_are_gone_proves_nothing)
{
	struct session_page *old;

	old = killed(true);
	assert_int_equal(page_open(&page, dir, second_id, false), 0);
	expect(old, false, SESSION_NONE, 0, 0);
	page_close(page);
	unmap(old);
}

/* One daemon after the other is killed before it has served: the first one's clients still have to learn of it. */
TEST(it_has_moved_however_many_crashes_ago)
{
	struct session_page *first, *second;

	first = killed(false);
	assert_int_equal(page_open(&page, dir, second_id, true), 0);
	page_forget(page);
	second = map();
	assert_int_equal(page_open(&page, dir, first_id, true), 0);
	expect(first, true, SESSION_JEOPARDY, 3, 99);
	expect(second, true, SESSION_JEOPARDY, 0, 0);
	page_close(page);
	unmap(first);
	unmap(second);
}

TEST(a_page_that_was_removed_moves_to_one_of_the_same_id)
{
	struct session_page *old, *new;

	assert_int_equal(page_open(&page, dir, first_id, false), 0);
	page_update(page, &safe);
	old = map();
	assert_false(page_is_missing(page, dir));
	unlink(path);
	assert_true(page_is_missing(page, dir));
	assert_int_equal(page_again(page, dir), 0);
	assert_false(page_is_missing(page, dir));
	new = map();
	assert_true(session_page_is(new, SLICE("01000000000000000000000000000000")));
	expect(new, false, SESSION_SAFE, 3, 99);
	expect(old, true, SESSION_JEOPARDY, 3, 99);
	page_update(page, &(struct session_view){ .epoch = 3, .state = SESSION_SAFE, .safe_until_ns = 200 });
	expect(new, false, SESSION_SAFE, 3, 200);
	expect(old, true, SESSION_JEOPARDY, 3, 99);
	page_close(page);
	expect(new, false, SESSION_NONE, 0, 0);
	unmap(old);
	unmap(new);
}

TEST(it_says_which_page_it_has_ended)
{
	struct session_page *old;

	assert_int_equal(page_open(&page, dir, first_id, false), 0);
	assert_string_equal(page_ended(page), "");
	page_close(page);
	old = map();
	assert_int_equal(page_open(&page, dir, second_id, false), 0);
	assert_string_equal(page_ended(page), "01000000000000000000000000000000");
	page_close(page);
	unmap(old);
}
