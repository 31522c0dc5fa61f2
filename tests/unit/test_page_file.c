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

/* As a client maps it. */
static struct session_page *map(const char *dir)
{
	struct session_page *page;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/session", dir);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	page = mmap(NULL, SESSION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	close(fd);
	return page;
}

static void unmap(struct session_page *page)
{
	munmap(page, SESSION_PAGE_BYTES);
}

/* A page that says `safe`, and whose daemon was killed, perhaps while it wrote. */
static struct session_page *killed(const char *dir, bool while_it_wrote)
{
	struct session_page *at;
	struct page *page;

	assert_int_equal(page_open(&page, dir, first_id, false), 0);
	page_update(page, &safe);
	page_forget(page);
	at = map(dir);
	at->sequence += while_it_wrote;
	return at;
}

static void expect(const struct session_page *page, bool moved, enum session_state state, uint64_t epoch, int64_t until)
{
	struct session_view view;

	assert_true(session_page_read(page, &view));
	assert_int_equal(view.moved, moved);
	assert_int_equal(view.state, state);
	assert_int_equal(view.epoch, epoch);
	assert_int_equal(view.safe_until_ns, until);
}

static char *make_dir(char *text)
{
	strcpy(text, "/tmp/lockbroker-page.XXXXXX");
	assert_non_null(mkdtemp(text));
	return text;
}

static void remove_dir(const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/session", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/session.spare", dir);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

TEST(a_page_whose_clients_go_on_has_moved)
{
	(void)state;
	for (int odd = 0; odd < 2; odd++) {
		struct session_page *old, *new;
		struct page *page;
		char dir[64];

		old = killed(make_dir(dir), odd);
		assert_int_equal(page_open(&page, dir, second_id, true), 0);
		expect(old, true, SESSION_JEOPARDY, 3, 99);
		new = map(dir);
		assert_true(session_page_is(new, SLICE("02000000000000000000000000000000")));
		page_update(page, &(struct session_view){ .epoch = 4, .state = SESSION_SAFE, .safe_until_ns = 200 });
		expect(new, false, SESSION_SAFE, 4, 200);
		expect(old, true, SESSION_JEOPARDY, 3, 99);
		page_close(page);
		expect(new, false, SESSION_NONE, 0, 0);
		expect(old, true, SESSION_JEOPARDY, 3, 99);
		unmap(old);
		unmap(new);
		remove_dir(dir);
	}
}

TEST(a_page_whose_clients_are_gone_proves_nothing)
{
	struct session_page *old;
	struct page *page;
	char dir[64];

	(void)state;
	old = killed(make_dir(dir), true);
	assert_int_equal(page_open(&page, dir, second_id, false), 0);
	expect(old, false, SESSION_NONE, 0, 0);
	page_close(page);
	unmap(old);
	remove_dir(dir);
}

/* One daemon after the other is killed before it has served: the first one's clients still have to learn of it. */
TEST(it_has_moved_however_many_crashes_ago)
{
	struct session_page *first, *second;
	struct page *page;
	char dir[64];

	(void)state;
	first = killed(make_dir(dir), false);
	assert_int_equal(page_open(&page, dir, second_id, true), 0);
	page_forget(page);
	second = map(dir);
	assert_int_equal(page_open(&page, dir, first_id, true), 0);
	expect(first, true, SESSION_JEOPARDY, 3, 99);
	expect(second, true, SESSION_JEOPARDY, 0, 0);
	page_close(page);
	unmap(first);
	unmap(second);
	remove_dir(dir);
}

TEST(a_page_that_was_removed_moves_to_one_of_the_same_id)
{
	struct session_page *old, *new;
	char dir[64], path[128];
	struct page *page;

	(void)state;
	assert_int_equal(page_open(&page, make_dir(dir), first_id, false), 0);
	page_update(page, &safe);
	old = map(dir);
	assert_false(page_is_missing(page, dir));
	snprintf(path, sizeof(path), "%s/session", dir);
	unlink(path);
	assert_true(page_is_missing(page, dir));
	assert_int_equal(page_again(page, dir), 0);
	assert_false(page_is_missing(page, dir));
	new = map(dir);
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
	remove_dir(dir);
}

TEST(it_says_which_page_it_has_ended)
{
	struct session_page *old;
	struct page *page;
	char dir[64];

	(void)state;
	assert_int_equal(page_open(&page, make_dir(dir), first_id, false), 0);
	assert_string_equal(page_ended(page), "");
	page_close(page);
	old = map(dir);
	assert_int_equal(page_open(&page, dir, second_id, false), 0);
	assert_string_equal(page_ended(page), "01000000000000000000000000000000");
	page_close(page);
	unmap(old);
	remove_dir(dir);
}
