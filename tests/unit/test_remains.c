/* SPDX-License-Identifier: Apache-2.0 */
/* What clients keep of connections that have ended: answers that they do not read, and why they were refused. */
#include "io/socket/remains.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/account.h"
#include "base/charge.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/socket/disposer.h"

enum { TOTAL = 50, USER = 1000, ACCOUNTS = SOCKET_REFUSALS_MAX / REMAINS_REFUSALS + 1 };

#define EVER INT64_MAX

static struct accounts accounts;
static struct account *user;
static struct watch_base *base;
static struct disposer *disposer;
static struct remains *remains;
static int64_t now_ns, clock_ns; /* what a look at the clock takes */

/* ---- the feed ---- */

int64_t feed_now(struct feed *f)
{
	now_ns += clock_ns;
	return now_ns;
}

int64_t feed_seen(const struct feed *f)
{
	return now_ns;
}

/* ---- */

static int begin(void **state)
{
	now_ns = 1;
	clock_ns = 0;
	accounts_init(&accounts, SOCKET_POOLS, 0, 0);
	accounts_set_total(&accounts, SOCKET_CONNECTIONS, TOTAL);
	accounts_set_total(&accounts, SOCKET_PAGES, TOTAL);
	user = account_enter(&accounts, USER, "", 0);
	base = watch_base_new();
	disposer = disposer_new(base);
	remains = remains_new(NULL, disposer);
	return 0;
}

static int end(void **state)
{
	remains_free(remains);
	disposer_free(disposer);
	watch_base_free(base);
	account_leave(user);
	accounts_deinit(&accounts);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

/* The client's end of a connection on which so much was sent that it has not read. */
static int connection(size_t bytes, int *ret_fd)
{
	static const char text[4096];
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	if (bytes)
		assert_int_equal(send(fds[0], text, bytes, 0), bytes);
	*ret_fd = fds[0];
	return fds[1];
}

static int leaves_answers(void)
{
	int fd, other = connection(100, &fd);

	assert_true(remains_keep_answers(remains, user, fd));
	return other;
}

static int is_refused(struct account *account)
{
	int fd, other = connection(100, &fd);

	assert_true(remains_may_tell(remains, account));
	remains_take_refusal(remains, account, fd);
	return other;
}

static void reads(int fd)
{
	char text[4096];

	while (recv(fd, text, sizeof(text), 0) > 0)
		;
}

static uint64_t used(void)
{
	return user->used[SOCKET_CONNECTIONS];
}

static void looks(void)
{
	remains_look(remains, EVER);
}

static void has_kept(const char *text)
{
	assert_non_null(user->kept[SOCKET_CONNECTIONS]);
	assert_non_null(strstr(user->kept[SOCKET_CONNECTIONS], text));
}

/* ---- tests ---- */

TEST(who_has_read_everything_keeps_nothing)
{
	int fd, other = connection(0, &fd);

	assert_false(remains_keep_answers(remains, user, fd));
	assert_true(remains_is_empty(remains));
	assert_int_equal(used(), 0);
	close(fd);
	close(other);
}

TEST(unread_answers_are_charged_as_a_connection_until_they_are_read)
{
	int other = leaves_answers();
	char text[10];

	looks();
	assert_int_equal(used(), 1);
	assert_int_equal(recv(other, text, sizeof(text), 0), sizeof(text));
	looks();
	assert_int_equal(used(), 1);
	reads(other);
	looks();
	assert_int_equal(used(), 0);
	assert_true(remains_is_empty(remains));
	close(other);
}

TEST(they_are_charged_until_the_last_copy_of_the_other_end_is_closed)
{
	int other = leaves_answers(), copy = dup(other);

	close(other);
	looks();
	assert_int_equal(used(), 1);
	close(copy);
	looks();
	assert_int_equal(used(), 0);
}

/* The connection has ended for the client, although this process keeps the socket. */
TEST(the_client_sees_the_end)
{
	int other = leaves_answers();
	char byte;

	reads(other);
	assert_int_equal(recv(other, &byte, 1, 0), 0);
	assert_int_equal(send(other, "x", 1, MSG_NOSIGNAL), -1);
	close(other);
}

/* Who opens and closes fast is not refused for what was read since the latest look. */
TEST(before_a_connection_is_refused_those_of_its_account_are_looked_at)
{
	int others[TOTAL], count = 0;

	while (remains_admit(remains, user, SOCKET_CONNECTIONS, false))
		others[count++] = leaves_answers();
	assert_int_equal(used(), count);
	assert_int_equal(count, TOTAL - TOTAL / ACCOUNT_RESERVE_PART);
	assert_false(remains_admit(remains, user, SOCKET_CONNECTIONS, false));
	reads(others[count / 2]);
	assert_true(remains_admit(remains, user, SOCKET_CONNECTIONS, false));
	assert_int_equal(used(), count - 1);
	while (count)
		close(others[--count]);
}

TEST(it_says_how_many_and_of_which_processes)
{
	int first = leaves_answers(), second = leaves_answers();
	char text[64];

	assert_null(user->kept[SOCKET_CONNECTIONS]);
	looks();
	has_kept("connections that have ended with unread answers (");
	snprintf(text, sizeof(text), "bytes): 2 (process %d: 2)", getpid());
	has_kept(text);
	reads(first);
	looks();
	snprintf(text, sizeof(text), "bytes): 1 (process %d: 1)", getpid());
	has_kept(text);
	reads(second);
	looks();
	assert_null(user->kept[SOCKET_CONNECTIONS]);
	close(first);
	close(second);
}

TEST(it_says_so_though_a_look_at_all_takes_longer_than_it_may)
{
	enum { MANY = 20, ROUND = 8 };
	int fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = leaves_answers();
	clock_ns = 1;
	for (int i = 0; i < 2; i++)
		remains_look(remains, now_ns + ROUND);
	has_kept("bytes): 20 (process ");
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
}

TEST(those_that_keep_most_are_named_however_many_keep_one)
{
	struct remains_tally tally = { .count = 0 };
	struct bytes text = { 0 };

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < 400; i++) {
			uint32_t pid = i % 4 == 0 ? 7 : i % 8 == 1 ? 8 : 1000 + i;

			if (pass)
				remains_count(&tally, pid, 10);
			else
				remains_propose(&tally, pid);
		}
	remains_answers_text(&tally, &text);
	bytes_char(&text, 0);
	assert_non_null(strstr(text.data, "(4000 bytes): 400 (process 7: 100, process 8: 50, "));
	assert_non_null(strstr(text.data, "others: "));
	bytes_free(&text);
}

TEST(who_begins_to_keep_many_when_all_places_are_taken_is_named)
{
	struct remains_tally tally = { .count = 0 };
	struct bytes text = { 0 };

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < 5 * REMAINS_TOP; i++) {
			uint32_t pid = i < 2 * REMAINS_TOP ? 1000 + i % REMAINS_TOP : 7;

			if (pass)
				remains_count(&tally, pid, 10);
			else
				remains_propose(&tally, pid);
		}
	remains_answers_text(&tally, &text);
	bytes_char(&text, 0);
	assert_non_null(strstr(text.data, ": 40 (process 7: 24, "));
	bytes_free(&text);
}

TEST(of_refused_ones_some_are_told_why_and_the_others_nothing)
{
	int others[REMAINS_REFUSALS];

	for (int i = 0; i < REMAINS_REFUSALS; i++)
		others[i] = is_refused(user);
	assert_int_equal(used(), 0);
	assert_false(remains_may_tell(remains, user));
	reads(others[REMAINS_REFUSALS - 1]);
	assert_true(remains_may_tell(remains, user));
	for (int i = 0; i < REMAINS_REFUSALS; i++)
		close(others[i]);
	looks();
	assert_true(remains_is_empty(remains));
}

TEST(of_all_accounts_together_no_more_are_told_than_files_are_reserved_for)
{
	struct account *account;
	int told = 0;

	for (uint32_t i = 0; i < ACCOUNTS; i++) {
		account = account_enter(&accounts, USER + 1 + i, "", 0);
		for (int n = 0; n < REMAINS_REFUSALS && remains_may_tell(remains, account); n++, told++)
			(void)is_refused(account); /* its end stays open */
		account_leave(account);
	}
	assert_int_equal(told, SOCKET_REFUSALS_MAX);
	assert_false(remains_may_tell(remains, user));
}

TEST(the_next_process_charges_the_same)
{
	int other = leaves_answers(), refused = is_refused(user);
	struct parcel parcel = { 0 };
	struct entry e;

	remains_pack(remains, &parcel);
	assert_int_equal(parcel.fd_count, 1); /* a refusal is forgotten */
	parcel.fds[0] = dup(parcel.fds[0]);
	remains_free(remains);
	assert_int_equal(used(), 0);
	remains = remains_new(NULL, disposer);
	parcel_rewind(&parcel);
	while (parcel_next(&parcel, &e))
		assert_true(remains_unpack(remains, &accounts, &parcel, &e));
	parcel_free(&parcel);
	looks();
	assert_int_equal(used(), 1);
	reads(other);
	looks();
	assert_int_equal(used(), 0);
	close(other);
	close(refused);
}
