/* SPDX-License-Identifier: Apache-2.0 */
/* A parcel as two descriptors (channel.h). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/base/parcel.h"
#include "io/handover/channel.h"

/* A text that no socket holds, and more descriptors than go into one message. */
enum { TEXT_BYTES = 3 << 20, FDS = 700 };

static struct parcel p;
static struct store s;
static int kept; /* -1: it is closed */

static int begin(void **state)
{
	kept = -1;
	return 0;
}

static void store(void)
{
	assert_int_equal(store_make(&p, &s, &kept), 0);
}

static void store_hello(void)
{
	bytes_text(&p.text, "hello");
	store();
}

/* The process that made it has gone. */
static void maker_ends(void)
{
	if (kept >= 0)
		close(kept);
	kept = -1;
	parcel_discard(&p);
}

static int end(void **state)
{
	maker_ends();
	store_close(&s);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void fill_parcel(void)
{
	bytes_reserve(&p.text, TEXT_BYTES);
	memset(p.text.data, 'x', TEXT_BYTES);
	p.text.len = TEXT_BYTES;
	for (int i = 0; i < FDS; i++)
		parcel_add_fd(&p, memfd_create("some", MFD_CLOEXEC));
}

TEST(what_is_read_is_what_was_stored)
{
	struct parcel read;
	ino_t inodes[FDS];

	fill_parcel();
	store();
	for (int i = 0; i < FDS; i++)
		inodes[i] = inode(p.fds[i]);
	maker_ends();
	assert_int_equal(store_read(&s, &read), 0);
	assert_int_equal(read.text.len, TEXT_BYTES);
	assert_int_equal(read.text.data[TEXT_BYTES - 1], 'x');
	assert_int_equal(read.fd_count, FDS);
	for (int i = 0; i < FDS; i++)
		assert_int_equal(inode(read.fds[i]), inodes[i]);
	parcel_discard(&read);
}

TEST(without_descriptors_it_is_the_text)
{
	struct parcel read;

	store_hello();
	assert_int_equal(store_read(&s, &read), 0);
	assert_true(slice_eq(bytes_view(&read.text), SLICE("hello")));
	assert_int_equal(read.fd_count, 0);
	parcel_discard(&read);
}

TEST(the_text_cannot_be_changed)
{
	store_hello();
	assert_int_equal(pwrite(s.text, "x", 1, 0), -1);
	assert_int_equal(ftruncate(s.text, 2), -1);
}

static void expect_refused(const struct store *refused)
{
	struct parcel read;

	assert_int_equal(store_read(refused, &read), -EBADMSG);
	parcel_discard(&read);
}

TEST(what_is_no_store_is_refused)
{
	struct store other = { .text = memfd_create("other", MFD_CLOEXEC) };
	int ends[2];

	store_hello();
	/* What somebody may still change. */
	other.queue = s.queue;
	assert_int_equal(write(other.text, "hello", 5), 5);
	expect_refused(&other);
	/* It was read already, its other end is closed, and nothing came. */
	expect_refused(&s);
	maker_ends();
	expect_refused(&s);
	assert_int_equal(channel_pair(ends), 0);
	other.queue = ends[0];
	assert_int_equal(write(ends[1], "hello", 5), 5);
	other.text = s.text;
	expect_refused(&other);
	close(ends[0]);
	close(ends[1]);
}
