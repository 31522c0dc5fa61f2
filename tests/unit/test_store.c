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

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static struct parcel made(void)
{
	struct parcel p = { 0 };

	bytes_reserve(&p.text, TEXT_BYTES);
	memset(p.text.data, 'x', TEXT_BYTES);
	p.text.len = TEXT_BYTES;
	for (int i = 0; i < FDS; i++)
		parcel_add_fd(&p, memfd_create("some", MFD_CLOEXEC));
	return p;
}

/* Whoever made it has gone. */
TEST(what_is_read_is_what_was_stored)
{
	struct parcel p = made(), read;
	struct store s;
	ino_t inodes[FDS];
	int kept;

	assert_int_equal(store_make(&p, &s, &kept), 0);
	for (int i = 0; i < FDS; i++)
		inodes[i] = inode(p.fds[i]);
	close(kept);
	parcel_discard(&p);
	assert_int_equal(store_read(&s, &read), 0);
	assert_int_equal(read.text.len, TEXT_BYTES);
	assert_int_equal(read.text.data[TEXT_BYTES - 1], 'x');
	assert_int_equal(read.fd_count, FDS);
	for (int i = 0; i < FDS; i++)
		assert_int_equal(inode(read.fds[i]), inodes[i]);
	parcel_discard(&read);
	store_close(&s);
}

TEST(without_descriptors_it_is_the_text)
{
	struct parcel p = { 0 }, read;
	struct store s;
	int kept;

	bytes_text(&p.text, "hello");
	assert_int_equal(store_make(&p, &s, &kept), 0);
	assert_int_equal(store_read(&s, &read), 0);
	assert_true(slice_eq(bytes_view(&read.text), SLICE("hello")));
	assert_int_equal(read.fd_count, 0);
	parcel_discard(&read);
	close(kept);
	store_close(&s);
	parcel_free(&p);
}

TEST(the_text_cannot_be_changed)
{
	struct parcel p = { 0 };
	struct store s;
	int kept;

	bytes_text(&p.text, "hello");
	assert_int_equal(store_make(&p, &s, &kept), 0);
	assert_int_equal(pwrite(s.text, "x", 1, 0), -1);
	assert_int_equal(ftruncate(s.text, 2), -1);
	close(kept);
	store_close(&s);
	parcel_free(&p);
}

static void expect_refused(const struct store *s)
{
	struct parcel read;

	assert_int_equal(store_read(s, &read), -EBADMSG);
	parcel_discard(&read);
}

TEST(what_is_no_store_is_refused)
{
	struct parcel p = { 0 };
	struct store s, other = { .text = memfd_create("other", MFD_CLOEXEC) };
	int kept, ends[2];

	bytes_text(&p.text, "hello");
	assert_int_equal(store_make(&p, &s, &kept), 0);
	/* What somebody may still change. */
	other.queue = s.queue;
	assert_int_equal(write(other.text, "hello", 5), 5);
	expect_refused(&other);
	/* It was read already, its other end is closed, and nothing came. */
	expect_refused(&s);
	close(kept);
	expect_refused(&s);
	assert_int_equal(channel_pair(ends), 0);
	other.queue = ends[0];
	assert_int_equal(write(ends[1], "hello", 5), 5);
	other.text = s.text;
	expect_refused(&other);
	close(ends[0]);
	close(ends[1]);
	store_close(&s);
	parcel_free(&p);
}
