/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a daemon leaves to its successor, as a file: its memory, whose it is, and whatever stands in it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "io/files/saved_file.h"
#include "saved_fixture.h"

enum { FILE_MAX = 1 << 19, ROUNDS = 3000 };

/* ---- memory ---- */

TEST(memory_grows_and_is_found_again_as_one)
{
	const size_t part = saved_pages(16384);
	struct saved_previous *left;
	char *first, *second;

	daemon_begins();
	first = saved_grow(s, part);
	second = saved_grow(s, 1 << 20);
	strcpy(first, "first");
	strcpy(second + (1 << 20) - 5, "last");
	daemon_ends();
	left = read_left();
	assert_int_equal(left->memory.len, part + (1 << 20));
	assert_string_equal(left->memory.data, "first");
	assert_string_equal(left->memory.data + left->memory.len - 5, "last");
	saved_previous_free(left);
}

static uint64_t blocks_of(const char *file)
{
	struct stat st;

	assert_int_equal(stat(file, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* What is read there are zeros; what is there again can be written, and is found again. */
TEST(memory_that_is_given_back_is_the_file_systems)
{
	enum { PART = 1 << 16 };
	struct saved_previous *left;
	char *first, *second;
	size_t bytes = 0;
	uint64_t before;

	daemon_begins();
	first = saved_grow(s, PART);
	second = saved_grow(s, 4 * PART);
	before = blocks_of(path);
	memset(first, 'a', PART);
	memset(second, 'b', 4 * PART);
	assert_null(saved_refill(s, &bytes));
	assert_int_equal(errno, 0);
	saved_give_back(s, second, PART);
	saved_give_back(s, second + 2 * PART, PART);
	assert_int_equal(blocks_of(path), before - 2 * PART);
	assert_ptr_equal(saved_refill(s, &bytes), second + 2 * PART);
	assert_int_equal(bytes, PART);
	assert_int_equal(blocks_of(path), before - PART);
	memset(second + 2 * PART, 'c', PART);
	daemon_ends();
	left = read_left();
	assert_int_equal(left->memory.len, 5 * PART);
	for (size_t i = 0; i < 5 * PART; i++)
		assert_int_equal(left->memory.data[i], i / PART == 1 ? 0 : "a\0bcb"[i / PART]);
	saved_previous_free(left);
}

/* One of a process that gave memory back has holes: it becomes shorter, and whole. */
static void punch(const char *name, off_t bytes)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);

	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes), 0);
	close(fd);
}

static void remove_spares(void)
{
	const char *const names[] = { "saved.spare", "session.spare", "session.spare.spare" };
	char spare[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(spare, sizeof(spare), "%s/%s", dir, names[i]);
		unlink(spare);
	}
}

TEST(a_spare_is_as_long_as_the_next_file_has_to_be)
{
	enum { PART = 1 << 20 };
	char spare[sizeof(path) + 6], *memory;
	uint64_t whole, size;

	daemon_begins();
	memory = saved_grow(s, 4 * PART);
	snprintf(spare, sizeof(spare), "%s.spare", path);
	assert_int_equal(saved_leave_spare(s), 0);
	assert_false(saved_cut(s, PART));
	whole = blocks_of(spare);
	punch(spare, PART);
	assert_int_equal(blocks_of(spare), whole - PART);
	assert_int_equal(saved_leave_spare(s), 0); /* it is filled again */
	assert_int_equal(blocks_of(spare), whole);
	saved_give_back(s, memory, 3 * PART);
	for (size = whole; saved_cut(s, PART); size = blocks_of(spare))
		assert_true(size - blocks_of(spare) <= PART);
	assert_int_equal(blocks_of(spare), whole - 3 * PART);
	unlink(spare);
	assert_int_equal(link(path, spare), 0);
	assert_true(saved_leave_spare(s) < 0); /* it has another name */
	unlink(path);
	assert_int_equal(saved_leave_spare(s), 0);
	assert_int_equal(blocks_of(spare), whole - 3 * PART);
	daemon_ends();
	remove_spares();
}

TEST(memory_has_an_end)
{
	daemon_begins();
	assert_null(saved_grow(s, 0));
	assert_null(saved_grow(s, SAVED_MEMORY_MAX + 1));
	assert_non_null(saved_grow(s, 4096));
	assert_null(saved_grow(s, SAVED_MEMORY_MAX));
}

/* The daemon was killed while it made the file longer: that part does not count yet. */
TEST(memory_that_was_being_added_is_none)
{
	struct saved_previous *left;

	daemon_begins();
	saved_grow(s, saved_pages(1));
	daemon_ends();
	assert_int_equal(truncate(path, 1 << 20), 0);
	left = read_left();
	assert_non_null(left->file);
	assert_int_equal(left->memory.len, saved_pages(1));
	saved_previous_free(left);
}

/* ---- whatever stands in it ---- */

enum { AT_DEVICE = 24, DEVICE_BYTES = 16 }; /* device and inode, which it says of itself */

static void write_copy(const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

/* It is no copy: it says which file it is, if it is long enough to say it. */
static void write_file(const void *data, size_t size)
{
	uint64_t self[2];
	struct stat st;
	int fd;

	write_copy(data, size);
	if (size < AT_DEVICE + DEVICE_BYTES)
		return;
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	self[0] = st.st_dev;
	self[1] = st.st_ino;
	assert_int_equal(pwrite(fd, self, sizeof(self), AT_DEVICE), sizeof(self));
	close(fd);
}

static size_t read_file(char *data)
{
	int fd = open(path, O_RDONLY);
	ssize_t size = read(fd, data, FILE_MAX);

	assert_true(fd >= 0 && size > 0);
	close(fd);
	return (size_t)size;
}

/* With larger pages the file is longer: some lengths are left out then. */
TEST(of_every_length_only_the_whole_is_gone_by)
{
	const size_t step = saved_pages(1) / SAVED_PAGE_MIN;
	char whole[FILE_MAX];
	size_t size, len;

	daemon_dies(1, getpid(), own_start());
	size = read_file(whole);
	for (len = 0; len <= size; len += step) {
		write_file(whole, len);
		daemon_begins();
		assert_int_equal(left_count(), len == size);
		daemon_ends();
	}
}

/* The daemon that a copy tells of may live: its session is none of ours. */
TEST(a_copy_is_not_gone_by)
{
	char whole[FILE_MAX];
	size_t size;

	daemon_dies(1, getpid(), own_start());
	size = read_file(whole);
	unlink(path);
	write_copy(whole, size);
	daemon_begins();
	assert_int_equal(left_count(), 0);
}

/* Bytes changed by chance: whatever is made of it, it is bounded and within the file. */
TEST(no_bytes_do_harm)
{
	char whole[FILE_MAX], spoiled[FILE_MAX];
	size_t size;
	int round, i;

	daemon_dies(1, getpid(), own_start());
	daemon_dies(2, getpid(), own_start());
	size = read_file(whole);
	srandom(1);
	for (round = 0; round < ROUNDS; round++) {
		struct broker_former list[FORMERS_MAX];
		size_t count;

		memcpy(spoiled, whole, size);
		for (i = random() % 6; i >= 0; i--) {
			size_t at = (size_t)random() % (random() % 2 ? size : 88);

			spoiled[at] = (char)(random() % 3 ? random() : 0xff);
		}
		write_file(spoiled, random() % 8 ? size : (size_t)random() % size);
		daemon_begins();
		count = saved_formers(s, list);
		assert_true(count <= FORMERS_MAX);
		saved_holders_live(s);
		daemon_ends();
	}
}

/* Whoever has a pointer into its memory goes on writing there. */
TEST(a_file_that_was_removed_is_made_again_with_all_that_it_had)
{
	struct saved_previous *left;
	const size_t page = saved_pages(1);
	char *first, *second;

	daemon_begins();
	session_is(7, 10 * SECOND);
	first = saved_grow(s, page);
	second = saved_grow(s, 2 * page);
	memset(first, 'a', page);
	memset(second, 'b', 2 * page);
	assert_false(saved_is_missing(s, dir));
	unlink(path);
	assert_true(saved_is_missing(s, dir));
	assert_int_equal(saved_again(s, dir), 0);
	assert_false(saved_is_missing(s, dir));
	second[2 * page - 1] = 'c';
	connected(3, getpid(), own_start(), -1);
	saved_holder(s, 3, true);
	assert_int_equal(saved_previous_read(&left, &conf), -EBUSY);
	daemon_ends();
	assert_int_equal(saved_previous_read(&left, &conf), 0);
	assert_int_equal(left->session.id, 7);
	assert_true(left->conns[3].holds);
	assert_int_equal(left->memory.len, 3 * page);
	assert_int_equal(left->memory.data[0], 'a');
	assert_int_equal(left->memory.data[page], 'b');
	assert_int_equal(left->memory.data[3 * page - 1], 'c');
	saved_previous_free(left);
	remove_spares();
}

/* ---- whose it is ---- */

TEST(a_process_on_its_way_out_is_seen)
{
	int end[2];
	char byte;
	pid_t pid;

	assert_false(saved_previous_is_ending(dir));
	assert_int_equal(pipe(end), 0);
	pid = fork();
	if (pid == 0) {
		daemon_begins();
		daemon_ends();
		byte = 'x';
		_exit(write(end[1], &byte, 1) == 1 && pause());
	}
	assert_int_equal(read(end[0], &byte, 1), 1);
	assert_true(saved_previous_is_ending(dir));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(saved_previous_is_ending(dir));
	close(end[0]);
	close(end[1]);
}

TEST(it_is_one_daemons_at_a_time)
{
	struct saved_previous *left = NULL;

	daemon_begins();
	assert_int_equal(saved_previous_read(&left, &conf), -EBUSY);
}
