/* SPDX-License-Identifier: Apache-2.0 */
/* What one process hands over to the next: entries and descriptors (parcel.h), over a socket pair (channel.h). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "io/base/parcel.h"
#include "io/handover/channel.h"

static int ends[2];

static int set_up(void **state)
{
	return channel_pair(ends);
}

static int tear_down(void **state)
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return 0;
}

static int64_t soon(void)
{
	return clock_now_ns() + 20 * CLOCK_NS_PER_S;
}

/* ---- entries ---- */

static void hold(struct parcel *p, const char *text, size_t len)
{
	*p = (struct parcel){ 0 };
	bytes_append(&p->text, text, len);
	parcel_rewind(p);
}

TEST(an_entry_is_found_by_its_word)
{
	struct parcel p = { 0 };
	struct entry_writer w = entry_begin(&p.text, "first");
	struct entry e;

	entry_number(&w, "least", INT64_MIN);
	entry_number(&w, "none", 0);
	entry_text(&w, "odd", SLICE("a\r\n\0"));
	entry_end(&w);
	w = entry_begin(&p.text, "second");
	entry_end(&w);
	assert_true(parcel_find(&p, "first", &e));
	assert_true(parcel_get_number(&e, "least") == INT64_MIN);
	assert_int_equal(parcel_get_number(&e, "none"), 0);
	assert_int_equal(parcel_get_number(&e, "odd"), 0);
	assert_true(slice_eq(parcel_get_text(&e, "odd"), SLICE("a\r\n\0")));
	assert_int_equal(parcel_get_text(&e, "least").len, 0);
	assert_non_null(parcel_get_text(&e, "unheard of").data);
	assert_true(parcel_find(&p, "second", &e));
	assert_int_equal(e.pairs, 0);
	assert_true(parcel_find(&p, "first", &e));
	assert_false(parcel_find(&p, "third", &e));
	assert_int_equal(parcel_get_number(&e, "least"), 0);
	assert_int_equal(p.why.len, 0);
	assert_int_equal(parcel_snapshot(&p).len, 0);
	parcel_free(&p);
}

TEST(a_snapshot_is_what_stands_behind_the_entries)
{
	static const char text[] = "any text\r\n*1\r\n+second\r\n";
	struct parcel p = { 0 };
	struct entry_writer w = entry_begin(&p.text, "first");
	struct entry e;

	entry_end(&w);
	parcel_end(&p);
	bytes_text(&p.text, text);
	assert_true(slice_is(parcel_snapshot(&p), text));
	assert_false(parcel_find(&p, "second", &e));
	assert_false(parcel_find(&p, "snapshot", &e));
	parcel_free(&p);
}

TEST(what_is_cut_short_or_garbled_is_no_entry)
{
	static const struct slice wholes[] = {
		SLICE("*5\r\n+conn\r\n+number\r\n:17\r\n+in\r\n$3\r\nabc\r\n"), /* an entry, and a record of 0.2.0 */
		SLICE("conn number   2:17,in 3:abc,\n"),
	};
	static const char *const broken[] = { "*3\r\n+conn\r\n+in\r\n", "conn number 2:17,in 4:abc,\n",
					      "conn number -1:17,\n", "conn number 99999999999999999999:17,\n" };
	struct parcel p;
	struct entry e;

	for (size_t i = 0; i < 2; i++) {
		for (size_t len = 1; len < wholes[i].len; len++) {
			hold(&p, wholes[i].data, len);
			assert_false(parcel_next(&p, &e));
			assert_true(p.why.len > 0);
			assert_int_equal(parcel_snapshot(&p).len, 0);
			parcel_free(&p);
		}
		hold(&p, wholes[i].data, wholes[i].len);
		assert_true(parcel_next(&p, &e));
		assert_int_equal(parcel_get_number(&e, "number"), 17);
		assert_int_equal(parcel_get_number(&e, "in"), 0);
		assert_true(slice_is(parcel_get_text(&e, "in"), "abc"));
		assert_false(parcel_next(&p, &e));
		assert_int_equal(p.why.len, 0);
		parcel_free(&p);
	}
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		hold(&p, broken[i], strlen(broken[i]));
		assert_false(parcel_next(&p, &e));
		assert_true(p.why.len > 0);
		parcel_free(&p);
	}
}

TEST(a_descriptor_is_taken_once_and_only_if_it_is_there)
{
	struct parcel p = { 0 };
	struct entry_writer w = entry_begin(&p.text, "it");
	struct entry e;

	parcel_fd(&p, &w, "null", open("/dev/null", O_RDONLY | O_CLOEXEC));
	parcel_fd(&p, &w, "none", -1);
	entry_number(&w, "beyond", 2);
	entry_number(&w, "before", -1);
	entry_end(&w);
	assert_true(parcel_find(&p, "it", &e));
	assert_int_equal(parcel_take_fd(&p, &e, "none"), -1);
	assert_int_equal(parcel_take_fd(&p, &e, "beyond"), -1);
	assert_int_equal(parcel_take_fd(&p, &e, "before"), -1);
	close(parcel_take_fd(&p, &e, "null"));
	assert_int_equal(parcel_take_fd(&p, &e, "null"), -1);
	parcel_discard(&p);
}

/* Twice as many as one of theirs has at most, and one more than fit. */
TEST(a_record_of_0_2_0_has_only_so_many_fields)
{
	struct parcel p = { 0 };
	struct entry e;

	bytes_text(&p.text, "many ");
	for (int i = 0; i < 64; i++)
		bytes_text(&p.text, "k 1:1,");
	bytes_char(&p.text, '\n');
	assert_true(parcel_find(&p, "many", &e));
	assert_int_equal(e.pairs, 64);
	p.text.len--;
	bytes_text(&p.text, "k 1:1,\n");
	assert_false(parcel_find(&p, "many", &e));
	parcel_free(&p);
}

/* What a process of 0.2.0 has handed over, byte for byte: a holder, a client that waits, one that has asked for nothing. */
TEST(what_a_process_of_0_2_0_hands_over_is_read)
{
	static const char *const words[] = { "process", "page", "listener", "operators", "saved", "tokens",
					     "conn",    "conn", "conn",     "keeper" };
	static const struct {
		const char *word, *key;
		int64_t number;
	} numbers[] = {
		{ "process", "pid_fd", 1 },       { "process", "frozen_ns", 53390742077117 },
		{ "listener", "lock", 4 },        { "listener", "ino", 1089248 },
		{ "saved", "conn_count", 12500 }, { "saved", "safe_until_ns", INT64_MAX },
		{ "tokens", "lock", 8 },          { "conn", "fd", 9 },
		{ "conn", "start", 5333180 },     { "keeper", "fd", 12 },
	};
	struct parcel p = { 0 };
	FILE *f = fopen("tests/unit/parcel_0_2_0.txt", "rb");
	struct entry e;
	size_t n;

	assert_non_null(f);
	bytes_reserve(&p.text, 8192);
	p.text.len = fread(p.text.data, 1, 8192, f);
	fclose(f);
	parcel_rewind(&p);
	for (n = 0; parcel_next(&p, &e); n++)
		assert_true(slice_is(e.word, words[n]));
	assert_int_equal(n, sizeof(words) / sizeof(words[0]));
	assert_int_equal(p.why.len, 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int64_t number;

		assert_true(parcel_find(&p, numbers[i].word, &e));
		assert_true(entry_get_number(&e, numbers[i].key, 0, INT64_MAX, &number));
		assert_true(number == numbers[i].number);
	}
	assert_true(parcel_find(&p, "operators", &e));
	assert_true(slice_is(parcel_get_text(&e, "path"), "/dev/shm/lockbroker-run.vxq8s3v6/lockbroker.t8i4nlt7/operator.sock"));
	assert_true(parcel_find(&p, "saved", &e));
	assert_int_equal(parcel_get_text(&e, "password").len, 16);
	assert_int_equal(parcel_snapshot(&p).len, 1567);
	assert_memory_equal(parcel_snapshot(&p).data, "lockbroker state 1 ", 19);
	parcel_free(&p);
}

/* ---- messages ---- */

TEST_WITH(a_message_arrives_whole, set_up, tear_down)
{
	struct channel_message m;

	assert_int_equal(channel_send(ends[0], CHANNEL_READY, SLICE("1.2.3"), soon()), 0);
	assert_int_equal(channel_send(ends[0], CHANNEL_ACCEPT, SLICE(""), soon()), 0);
	assert_int_equal(channel_receive(ends[1], &m, soon()), 0);
	assert_int_equal(m.kind, CHANNEL_READY);
	assert_true(slice_eq((struct slice){ m.text, m.len }, SLICE("1.2.3")));
	assert_int_equal(channel_receive(ends[1], &m, soon()), 0);
	assert_int_equal(m.kind, CHANNEL_ACCEPT);
	assert_int_equal(m.len, 0);
}

TEST_WITH(a_text_has_as_many_bytes_as_a_message_takes, set_up, tear_down)
{
	static char text[CHANNEL_TEXT_MAX + 1];
	struct channel_message m;

	memset(text, 'x', sizeof(text));
	for (size_t len = CHANNEL_TEXT_MAX; len <= CHANNEL_TEXT_MAX + 1; len++) {
		assert_int_equal(channel_send(ends[0], CHANNEL_REFUSED, (struct slice){ text, len }, soon()), 0);
		assert_int_equal(channel_receive(ends[1], &m, soon()), 0);
		assert_int_equal(m.len, CHANNEL_TEXT_MAX);
	}
}

TEST_WITH(nonsense_is_no_message, set_up, tear_down)
{
	static const char nonsense[] = "Usage: lockbrokerd [OPTION]...";
	static char long_text[CHANNEL_TEXT_MAX + 100];
	struct channel_message m;

	assert_true(send(ends[0], nonsense, sizeof(nonsense), 0) > 0);
	assert_int_equal(channel_receive(ends[1], &m, soon()), -EBADMSG);
	assert_int_equal(send(ends[0], "x", 1, 0), 1);
	assert_int_equal(channel_receive(ends[1], &m, soon()), -EBADMSG);
	assert_true(send(ends[0], long_text, sizeof(long_text), 0) > 0);
	assert_int_equal(channel_receive(ends[1], &m, soon()), -EBADMSG);
}

TEST_WITH(nobody_waits_for_longer_than_it_may, set_up, tear_down)
{
	struct channel_message m;
	int rc = 0;

	assert_int_equal(channel_receive(ends[1], &m, clock_now_ns() + CLOCK_NS_PER_MS), -ETIMEDOUT);
	while (rc == 0)
		rc = channel_send(ends[0], CHANNEL_READY, SLICE("is read by nobody"), clock_now_ns() + CLOCK_NS_PER_MS);
	assert_int_equal(rc, -ETIMEDOUT);
}

TEST_WITH(the_end_of_the_other_side_is_seen, set_up, tear_down)
{
	struct channel_message m;

	close(ends[0]);
	ends[0] = -1;
	assert_int_equal(channel_receive(ends[1], &m, CHANNEL_FOREVER), -EPIPE);
	assert_int_equal(channel_send(ends[1], CHANNEL_COMMIT, SLICE(""), CHANNEL_FOREVER), -EPIPE);
}

/* It did not read all that it was sent, which the kernel calls a reset; what it said is read all the same. */
TEST_WITH(what_was_said_before_the_end_is_read, set_up, tear_down)
{
	struct channel_message m;

	assert_int_equal(channel_send(ends[1], CHANNEL_COMMIT, SLICE("unread"), soon()), 0);
	assert_int_equal(channel_send(ends[0], CHANNEL_REFUSED, SLICE("no"), soon()), 0);
	close(ends[0]);
	ends[0] = -1;
	assert_int_equal(channel_receive(ends[1], &m, soon()), 0);
	assert_int_equal(m.kind, CHANNEL_REFUSED);
	assert_int_equal(channel_receive(ends[1], &m, soon()), -EPIPE);
}

/* ---- parcels ---- */

static struct parcel sent;

static void *send_parcel(void *arg)
{
	return (void *)(intptr_t)channel_send_parcel(ends[0], &sent, soon());
}

static int receive_parcel(struct parcel *ret)
{
	struct channel_message m;

	*ret = (struct parcel){ 0 };
	return channel_receive(ends[1], &m, soon()) ?: channel_receive_parcel(ends[1], &m, ret, soon());
}

/* Each descriptor is another inode: pipes. */
static void pack(size_t bytes, size_t fds)
{
	sent = (struct parcel){ 0 };
	for (size_t i = 0; i < bytes; i++)
		bytes_char(&sent.text, (char)(i * 7 + i / 65536));
	for (size_t i = 0; i < fds; i += 2) {
		int pair[2];

		assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
		parcel_add_fd(&sent, pair[0]);
		if (i + 1 < fds)
			parcel_add_fd(&sent, pair[1]);
		else
			close(pair[1]);
	}
}

static void same(const struct parcel *got)
{
	assert_true(slice_eq(bytes_view(&got->text), bytes_view(&sent.text)));
	assert_int_equal(got->fd_count, sent.fd_count);
	for (size_t i = 0; i < got->fd_count; i++) {
		struct stat a, b;

		assert_int_equal(fstat(sent.fds[i], &a), 0);
		assert_int_equal(fstat(got->fds[i], &b), 0);
		assert_true(a.st_ino == b.st_ino);
		assert_int_equal(fcntl(got->fds[i], F_GETFD), FD_CLOEXEC);
	}
}

TEST_WITH(parcels_of_all_sizes_arrive_with_their_descriptors_in_order, set_up, tear_down)
{
	static const struct {
		size_t bytes, fds;
	} sizes[] = {
		{ 0, 0 },
		{ 1, 0 },
		{ 0, 1 },
		{ 0, CHANNEL_PART_FDS },
		{ 65536, CHANNEL_PART_FDS },
		{ 65537, CHANNEL_PART_FDS - 1 },
		{ 4096, CHANNEL_PART_FDS + 1 },
		{ 3000000, 10 },
		{ 10, 400 },
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct parcel got;
		pthread_t thread;
		void *rc;

		pack(sizes[i].bytes, sizes[i].fds);
		assert_int_equal(pthread_create(&thread, NULL, send_parcel, NULL), 0);
		assert_int_equal(receive_parcel(&got), 0);
		pthread_join(thread, &rc);
		assert_null(rc);
		same(&got);
		parcel_discard(&got);
		parcel_discard(&sent);
	}
}

/* The other process has no room for all descriptors: none of them is left open, and it is told why. */
TEST_WITH(descriptors_for_which_there_is_no_room_are_an_error, set_up, tear_down)
{
	struct rlimit limit, low;
	struct parcel got;

	pack(100, 40);
	assert_int_equal(channel_send_parcel(ends[0], &sent, soon()), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)sent.fds[39] + 10;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(receive_parcel(&got), -EMFILE);
	parcel_discard(&got);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	parcel_discard(&sent);
}

TEST_WITH(a_parcel_that_is_not_as_announced_is_refused, set_up, tear_down)
{
	static const int64_t impossible[][2] = {
		{ -1, 0 }, { 0, -1 }, { CHANNEL_BYTES_MAX + 1, 0 }, { 0, CHANNEL_FDS_MAX + 1 }
	};
	const int64_t one[] = { 1, 1 };
	struct channel_message m = { .kind = CHANNEL_PARCEL, .len = sizeof(one) };
	struct parcel got;

	for (size_t i = 0; i < 4; i++) {
		memcpy(m.text, impossible[i], sizeof(impossible[i]));
		assert_int_equal(channel_receive_parcel(ends[1], &m, &got, soon()), -EBADMSG);
		parcel_discard(&got);
	}
	memcpy(m.text, one, sizeof(one));
	channel_send(ends[0], CHANNEL_PART, SLICE("two"), soon());
	assert_int_equal(channel_receive_parcel(ends[1], &m, &got, soon()), -EBADMSG);
	parcel_discard(&got);
	channel_send(ends[0], CHANNEL_PART, SLICE(""), soon());
	assert_int_equal(channel_receive_parcel(ends[1], &m, &got, soon()), -EBADMSG);
	parcel_discard(&got);
	m.len--;
	assert_int_equal(channel_receive_parcel(ends[1], &m, &got, soon()), -EBADMSG);
	parcel_discard(&got);
}

static void send_fd(int fd)
{
	const uint32_t header[] = { 0x4c42484f, CHANNEL_PART };

	assert_int_equal(unit_send_fds(ends[0], header, sizeof(header), &fd, 1, 0), sizeof(header));
}

TEST_WITH(a_text_that_can_change_or_has_another_length_is_refused, set_up, tear_down)
{
	struct channel_message m = { .kind = CHANNEL_PARCEL, .len = 2 * sizeof(int64_t) };
	struct parcel got;
	int changing = memfd_create("text", MFD_CLOEXEC), file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), text;

	assert_int_equal(write(changing, "hello", 5), 5);
	assert_int_equal(sealed_make(SLICE("hello"), &text), 0);
	for (int64_t bytes = 4; bytes <= 6; bytes++) {
		memcpy(m.text, (const int64_t[]){ bytes, 0 }, m.len);
		send_fd(text);
		assert_int_equal(channel_receive_parcel(ends[1], &m, &got, soon()), bytes == 5 ? 0 : -EBADMSG);
		assert_int_equal(got.text.len, bytes == 4 ? 0 : 5);
		parcel_discard(&got);
		send_fd(changing);
		assert_int_equal(channel_receive_parcel(ends[1], &m, &got, soon()), -EBADMSG);
		parcel_discard(&got);
	}
	/* Of a file that cannot be sealed at all nothing is believed, whatever its length. */
	assert_int_equal(sealed_map(file, INT64_MAX, &got), -EBADMSG);
	close(file);
	close(changing);
	close(text);
}
