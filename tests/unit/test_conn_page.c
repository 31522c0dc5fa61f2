/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that a connection shares with its process, and how its descriptor gets there. Instead of the broker there is a
 * feed that asks for a page at every request, and pushes BEFORE bytes before its answer and one byte after it. And what is
 * charged for a page that a client keeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/unit/unit.h"

#include "io/socket/remains.h"
#include "io/socket/socket_pools.h"
#include "protocol/delegation.h"
#include "handed_over.h"

enum { CLIENTS = 3, PAGES = 2, OUTPUT_BYTES = 200000, MUCH = 60000 };

#define LATER_NS INT64_C(2000000000) /* after the next look of the server */

static size_t before;                  /* how much is pushed before the answer */
static struct delegation_page *shared; /* the latest one that the broker was told of, or given */
static int made, given, refused, limited, gone;
static bool too_many; /* descriptors are under way to others who do not receive them */

/* The C library's, for the server as well. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (too_many && m->msg_controllen) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return (ssize_t)syscall(SYS_sendmsg, fd, m, flags);
}

/* ---- the feed ---- */

void feed_give_page(struct feed *f, uint32_t conn, struct delegation_page *page)
{
	shared = page;
	given++;
}

static struct slice many(size_t count)
{
	static char text[MUCH];

	memset(text, 'x', sizeof(text));
	return (struct slice){ text, count };
}

static void page_event(const struct event *e)
{
	if (!e->page.page) {
		refused++;
		limited += e->page.limited;
		server_reply(server, e->conn, e->page.sentence, false);
		return;
	}
	made++;
	shared = e->page.page;
	if (before)
		server_push(server, e->conn, many(before), false);
	server_reply_page(server, e->conn, SLICE(":63"));
	server_push(server, e->conn, SLICE("p"), false);
}

void feed_asked(struct feed *f, uint32_t conn, size_t argc, const struct slice *argv)
{
	server_page(server, conn);
}

void feed_event(struct feed *f, const struct event *event)
{
	if (event->type == EVENT_CLIENT_PAGE)
		page_event(event);
	gone += event->type == EVENT_CLIENT_GONE;
}

/* ---- a client ---- */

static const struct server_conf conf = {
	.user_share = 100,
	.clients = CLIENTS,
	.pages = PAGES,
	.request_bytes = 100,
	.request_args = 8,
	.output_bytes = OUTPUT_BYTES,
};

static int begin(void **state)
{
	made = given = refused = limited = gone = 0;
	before = 0;
	shared = NULL;
	too_many = false;
	open_server(&conf);
	return 0;
}

static int end(void **state)
{
	close_server();
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static void turns(void)
{
	for (int i = 0; i < 8; i++)
		turn();
}

static void asks(int fd)
{
	says(fd, SLICE("DELEGATE\r\n"));
	turns();
}

/* One byte, and what came with it, or -1. 0: there is none. */
static int hears(int fd, char *ret)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec data = { ret, 1 };
	struct msghdr m = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int passed;

	if (got <= 0) {
		*ret = '\0';
		return -1;
	}
	if (!CMSG_FIRSTHDR(&m))
		return -1;
	assert_int_equal(control.head.cmsg_type, SCM_RIGHTS);
	assert_int_equal(control.head.cmsg_len, CMSG_LEN(sizeof(int)));
	assert_false(m.msg_flags & MSG_CTRUNC);
	memcpy(&passed, CMSG_DATA(&control.head), sizeof(passed));
	return passed;
}

/* All that there is, byte by byte, with one descriptor at that place, which is returned. */
static int hears_all(int fd, size_t at, const char *behind)
{
	int page = -1, passed;
	size_t count = 0;
	char c;

	for (;; count++) {
		passed = hears(fd, &c);
		if (!c) {
			turns();
			passed = hears(fd, &c);
		}
		if (!c)
			break;
		assert_int_equal(passed >= 0, count == at);
		assert_int_equal(c, count < at ? 'x' : behind[count - at]);
		page = passed >= 0 ? passed : page;
	}
	assert_int_equal(count, at + strlen(behind));
	return page;
}

static int gets_page(int fd)
{
	asks(fd);
	return hears_all(fd, 0, ":63p");
}

static struct delegation_page *mapped(int fd)
{
	void *at = mmap(NULL, DELEGATION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static uint64_t connections(void)
{
	return server_accounts(server)->pools[SOCKET_CONNECTIONS].used;
}

static uint64_t pages(void)
{
	return server_accounts(server)->pools[SOCKET_PAGES].used;
}

/* So many pages, and all else as it was. */
static void set_pages(size_t count)
{
	struct server_conf other = conf;

	other.pages = count;
	server_limits(server, &other);
}

static void looks(void)
{
	now_ns += LATER_NS;
	turns();
}

static int has_page(void)
{
	int fd = connected(), page = gets_page(fd);

	assert_true(page >= 0);
	close(page);
	return fd;
}

/* It is refused for want of pages, which ends nothing. */
static void is_refused_a_page(int fd)
{
	static const char end[] =
		" allowed pages of delegations (limits.clients and the open files, limits.user_share): "
		"close some connections";
	int before_refused = refused;
	char text[256] = "";
	ssize_t len;

	asks(fd);
	assert_int_equal(refused, before_refused + 1);
	assert_int_equal(limited, refused);
	len = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	assert_true(len > 0);
	assert_non_null(strstr(text, end));
}

/* ---- tests ---- */

TEST(it_comes_with_the_first_byte_of_the_reply)
{
	int fd = connected(), page = gets_page(fd);
	struct delegation_page *mine;

	mine = mapped(page);
	assert_true(delegation_is_page(mine));
	mine->slots[0].word = 5;
	assert_int_equal(shared->slots[0].word, 5);
	munmap(mine, DELEGATION_PAGE_BYTES);
	close(page);
	close(fd);
}

TEST(it_comes_with_no_other_byte_behind_output_that_is_not_read)
{
	int fd = connected(), page;

	before = MUCH;
	asks(fd);
	page = hears_all(fd, MUCH, ":63p");
	assert_true(page >= 0);
	close(page);
	close(fd);
}

/* What others do not receive costs nobody else the connection. */
TEST(where_the_kernel_passes_no_more_the_reply_comes_without_it)
{
	int fd = connected();
	char text[8] = "";

	too_many = true;
	asks(fd);
	assert_int_equal(recv(fd, text, sizeof(text), MSG_DONTWAIT), 4);
	assert_string_equal(text, ":63p");
	assert_int_equal(gone, 0);
	close(fd);
}

TEST(nobody_can_resize_it)
{
	int fd = connected(), page = gets_page(fd);

	assert_int_equal(fcntl(page, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(ftruncate(page, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(page, 2 * DELEGATION_PAGE_BYTES), -1);
	assert_int_equal(fcntl(page, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(page);
	close(fd);
}

/* Whoever keeps it mapped keeps nothing of this process's memory, and finds that nothing is delegated. */
TEST(with_the_connection_it_ends)
{
	int there = unit_descriptors(), fd = connected(), page = gets_page(fd);
	struct delegation_page *mine;

	mine = mapped(page);
	mine->slots[0].word = 6;
	close(fd);
	turns();
	assert_int_equal(gone, 1);
	assert_int_equal(mine->slots[0].word, 0);
	assert_false(delegation_is_page(mine));
	close(page);
	looks();
	assert_int_equal(connections(), 0);
	assert_int_equal(pages(), 1); /* it is mapped */
	munmap(mine, DELEGATION_PAGE_BYTES);
	looks();
	assert_int_equal(pages(), 0);
	assert_int_equal(unit_descriptors(), there);
}

/* However many pages there are, as many connections come in as limits.clients says, and no more. */
TEST(a_page_takes_no_connection)
{
	int fds[CLIENTS], other;
	char text[8] = "";

	set_pages(CLIENTS);
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = has_page();
		assert_int_equal(connections(), i + 1);
		assert_int_equal(pages(), i + 1);
	}
	other = connected();
	assert_int_equal(recv(other, text, 7, MSG_DONTWAIT), 7);
	assert_string_equal(text, "-LIMIT ");
	close(other);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
}

TEST(a_page_too_many_is_refused)
{
	int fds[PAGES], other;

	for (int i = 0; i < PAGES; i++)
		fds[i] = has_page();
	other = connected();
	is_refused_a_page(other);
	assert_int_equal(pages(), PAGES);
	assert_int_equal(connections(), PAGES + 1);
	assert_int_equal(made, PAGES);
	close(fds[0]);
	turns();
	close(gets_page(other));
	assert_int_equal(made, PAGES + 1);
	close(fds[1]);
	close(other);
}

/* As a reload may leave it, or few descriptors. */
TEST(without_pages_connections_come_in_as_before)
{
	int first = has_page(), fds[CLIENTS - 1];

	set_pages(0);
	for (int i = 0; i < CLIENTS - 1; i++) {
		fds[i] = connected();
		is_refused_a_page(fds[i]);
	}
	assert_int_equal(connections(), CLIENTS);
	assert_int_equal(pages(), 1);
	close(first);
	turns();
	is_refused_a_page(fds[0]);
	assert_int_equal(pages(), 0);
	assert_int_equal(gone, 1);
	for (int i = 0; i < CLIENTS - 1; i++)
		close(fds[i]);
}

/* Each page costs a descriptor, and one more that is under way. Connections come first. */
TEST(pages_have_what_connections_leave)
{
	const size_t clients = 1000, needed = clients + SOCKET_SPARE_FILES;

	assert_int_equal(socket_pools_pages(clients, 0), 0);
	assert_int_equal(socket_pools_pages(clients, clients), 0);
	assert_int_equal(socket_pools_pages(clients, needed + 1), 0);
	assert_int_equal(socket_pools_pages(clients, needed + 2), 1);
	assert_int_equal(socket_pools_pages(clients, needed + 2 * clients - 1), clients - 1);
	assert_int_equal(socket_pools_pages(clients, needed + 2 * clients), clients);
	assert_int_equal(socket_pools_pages(clients, UINT64_MAX), clients);
}

/* One that asks and ends before the page is there costs nothing. */
TEST(who_does_not_wait_for_it_leaves_nothing)
{
	int there = unit_descriptors(), fd = connected();

	assert_int_equal(send(fd, "DELEGATE\r\n", 10, MSG_NOSIGNAL), 10);
	close(fd);
	turns();
	assert_int_equal(gone, 1);
	assert_int_equal(unit_descriptors(), there);
	assert_int_equal(connections() + pages(), 0);
}

/* As many connections as pages are: the answer is unread, and the page under way. */
static uint64_t charged(void)
{
	assert_int_equal(connections(), pages());
	return pages();
}

/* A client whose page was sent, which has received nothing of it, and which ends its sending direction. */
static int leaves_unread(void)
{
	int fd = connected();

	asks(fd);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	turns();
	assert_int_equal(gone, 1);
	return fd;
}

/* The kernel counts what is under way against the user of this process, so the daemon charges it to the client. */
TEST(who_ends_without_receiving_it_is_charged_until_it_is_received)
{
	int there = unit_descriptors(), fd = leaves_unread(), page;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(charged(), 1);
		assert_int_equal(unit_descriptors(), there + 3);
		looks();
	}
	page = hears_all(fd, 0, ":63p");
	looks();
	assert_int_equal(connections(), 0);
	assert_int_equal(pages(), 1);
	close(page);
	looks();
	assert_int_equal(charged(), 0);
	close(fd);
	assert_int_equal(unit_descriptors(), there);
}

TEST(who_ends_without_receiving_it_is_charged_until_its_end_is_closed)
{
	int there = unit_descriptors(), fd = leaves_unread();

	close(fd);
	assert_int_equal(charged(), 1);
	looks();
	assert_int_equal(charged(), 0);
	assert_int_equal(unit_descriptors(), there);
}

/* A copy of the client's end, in another process or itself under way, keeps the connection unread. */
TEST(a_copy_of_the_end_keeps_it_charged)
{
	int fd = leaves_unread(), copy = dup(fd);

	close(fd);
	looks();
	assert_int_equal(charged(), 1);
	close(copy);
	looks();
	assert_int_equal(charged(), 0);
}

/* A descriptor that a process keeps, its mapping, and one that is under way to another process. */
TEST(whoever_has_it_open_keeps_it_charged)
{
	int fd = connected(), page, pair[2];
	char byte = 0;

	page = gets_page(fd);
	close(fd);
	turns();
	looks();
	assert_int_equal(connections(), 0);
	assert_int_equal(pages(), 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(unit_send_fds(pair[0], "x", 1, &page, 1, 0), 1);
	close(page);
	looks();
	assert_int_equal(pages(), 1);
	page = hears(pair[1], &byte);
	looks();
	assert_int_equal(pages(), 1);
	close(page);
	looks();
	assert_int_equal(pages(), 0);
	close(pair[0]);
	close(pair[1]);
}

/* Another user cannot open it anew, nor watch it. */
TEST(only_the_daemons_user_can_open_it)
{
	int fd = connected(), page = gets_page(fd);
	struct stat st;

	assert_int_equal(fstat(page, &st), 0);
	assert_int_equal(st.st_mode & ALLPERMS, S_IRUSR | S_IWUSR);
	close(page);
	close(fd);
}

/* Before a page is refused, those that the account kept are looked at again. */
TEST(who_has_closed_it_need_not_wait_for_the_next_look)
{
	int fd, other, page;

	set_pages(1);
	fd = connected();
	page = gets_page(fd);
	close(fd);
	turns();
	other = connected();
	is_refused_a_page(other);
	close(page);
	close(gets_page(other));
	assert_int_equal(made, 2);
	close(other);
}

/* What a descriptor of O_PATH keeps cannot be seen: so many pages go back at once, and the others one after the other. */
TEST(pages_that_nobody_has_open_go_back_at_a_bounded_rate)
{
	int hidden[REMAINS_LATE_BURST + 2], fd, page, count = 0;
	char path[64];

	set_pages(CLIENTS);
	while (count < REMAINS_LATE_BURST + 2) {
		fd = connected();
		page = gets_page(fd);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", page);
		hidden[count++] = open(path, O_PATH);
		close(page);
		close(fd);
		turns();
		assert_int_equal(pages(), count > REMAINS_LATE_BURST ? count - REMAINS_LATE_BURST : 0);
	}
	for (int left = 2; left > 0; left--) {
		looks();
		assert_int_equal(pages(), left);
		now_ns += REMAINS_LATE_NS;
		looks();
		assert_int_equal(pages(), left - 1);
	}
	while (count)
		close(hidden[--count]);
}

TEST(who_has_left_as_many_unread_as_it_may_gets_no_more)
{
	int fd, other;

	set_pages(1);
	fd = leaves_unread();
	other = connected();
	is_refused_a_page(other);
	close(hears_all(fd, 0, ":63p"));
	looks();
	close(gets_page(other));
	assert_int_equal(made, 2);
	close(other);
	close(fd);
}

TEST(who_received_it_is_charged_for_nothing_at_its_end)
{
	int fd = connected();

	close(gets_page(fd));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	turns();
	assert_int_equal(gone, 1);
	assert_int_equal(charged(), 0);
	close(fd);
}

TEST(the_next_process_charges_a_page_that_is_kept)
{
	int fd = connected(), page = gets_page(fd);

	close(fd);
	turns();
	hand_over(&conf, 1);
	looks();
	assert_int_equal(pages(), 1);
	close(page);
	looks();
	assert_int_equal(pages(), 0);
}

TEST(the_next_process_has_the_same_page_and_sends_it)
{
	int fd = connected(), page;
	struct delegation_page *mine;

	before = MUCH;
	asks(fd);
	shared->slots[2].word = 7;
	hand_over(&conf, 2);
	assert_int_equal(given, 1);
	assert_int_equal(shared->slots[2].word, 7);
	assert_int_equal(charged(), 1);
	page = hears_all(fd, MUCH, ":63p");
	mine = mapped(page);
	assert_int_equal(mine->slots[2].word, 7);
	mine->slots[2].word = 8;
	assert_int_equal(shared->slots[2].word, 8);
	hand_over(&conf, 2);
	assert_int_equal(shared->slots[2].word, 8);
	assert_int_equal(hears_all(fd, 0, ""), -1);
	munmap(mine, DELEGATION_PAGE_BYTES);
	close(page);
	close(fd);
}

/* After that the old process ends, and closes its descriptor. */
TEST(the_next_process_charges_what_was_left_unread)
{
	int fd = leaves_unread();

	hand_over(&conf, 2);
	assert_int_equal(charged(), 1);
	looks();
	assert_int_equal(charged(), 1);
	close(hears_all(fd, 0, ":63p"));
	looks();
	assert_int_equal(charged(), 0);
	close(fd);
}
