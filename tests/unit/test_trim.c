/* SPDX-License-Identifier: Apache-2.0 */
/* When free memory is given back, and that each piece of that is small. */
#include "io/base/trim.h"

#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define HAS_HEAP false
#else
#define HAS_HEAP true
#endif

enum { BLOCKS = 100000, BLOCK_BYTES = 600, USED_EACH = 1000, MB = 1 << 20 };

static int64_t now_ns = 5;

static size_t resident(void)
{
	long size, pages;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &size, &pages), 2);
	fclose(f);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void finish(struct trim *t)
{
	for (int i = 0; t->state != TRIM_REST; i++) {
		assert_true(i < 100000);
		trim_piece(t, now_ns);
	}
}

TEST(it_is_due_when_less_is_used_than_before)
{
	struct trim t;

	trim_init(&t);
	assert_false(trim_may_be_due(&t));
	trim_note(&t, TRIM_FELL_BYTES - 1);
	assert_false(trim_may_be_due(&t));
	trim_note(&t, TRIM_FELL_BYTES);
	assert_true(trim_may_be_due(&t));
	trim_note(&t, 1);
	trim_ask(&t, 1, now_ns);
	assert_int_equal(t.state, TRIM_REST);
	trim_ask(&t, 0, now_ns);
	assert_int_equal(t.state, TRIM_TAKING);
	assert_false(trim_may_be_due(&t));
	trim_deinit(&t);
}

TEST(it_is_due_once_in_ten_seconds)
{
	struct trim t;

	trim_init(&t);
	trim_note(&t, 2 * (uint64_t)TRIM_FELL_BYTES);
	trim_ask(&t, 0, now_ns);
	finish(&t);
	/* What was used before the last time is not counted again. */
	trim_ask(&t, 0, now_ns + 2 * TRIM_PAUSE_NS);
	assert_int_equal(t.state, TRIM_REST);
	trim_note(&t, TRIM_FELL_BYTES);
	trim_ask(&t, 0, now_ns + TRIM_PAUSE_NS - 1);
	assert_int_equal(t.state, TRIM_REST);
	trim_ask(&t, 0, now_ns + TRIM_PAUSE_NS);
	assert_int_equal(t.state, TRIM_TAKING);
	finish(&t);
}

/* One block of many stays between those that are free, and what is in it. */
TEST(free_memory_between_used_memory_is_given_back_in_pieces)
{
	char **blocks = calloc(BLOCKS, sizeof(*blocks));
	size_t most, least, before, pieces = 0;
	struct trim t;

	trim_setup();
	trim_init(&t);
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		assert_non_null(blocks[i]);
		memset(blocks[i], (int)(i / USED_EACH), BLOCK_BYTES);
	}
	most = resident();
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % USED_EACH) {
			free(blocks[i]);
			blocks[i] = NULL;
		}
	trim_note(&t, BLOCKS * BLOCK_BYTES);
	trim_ask(&t, 0, now_ns);
	for (before = resident(); t.state != TRIM_REST; before = least, pieces++) {
		trim_piece(&t, now_ns);
		least = resident();
		assert_true(least + TRIM_PIECE_BYTES + MB / 2 >= before); /* the end of the heap goes with the last piece */
	}
	if (HAS_HEAP) {
		assert_true(pieces > 40 * MB / TRIM_PIECE_BYTES);
		assert_true(resident() + 45 * MB < most);
	}
	for (size_t i = 0; i < BLOCKS; i += USED_EACH) {
		for (size_t j = 0; j < BLOCK_BYTES; j++)
			assert_int_equal(blocks[i][j], (char)(i / USED_EACH));
		free(blocks[i]);
	}
	free(blocks);
	trim_deinit(&t);
}

/* Its blocks are freed, wherever it stops. */
TEST(it_can_be_stopped)
{
	char *last, *block = malloc(3 * TRIM_PIECE_BYTES);
	struct trim t;

	trim_init(&t);
	t.heap = NULL; /* so that there seems to be a heap, whoever allocates */
	last = malloc(100);
	free(block);
	trim_note(&t, TRIM_FELL_BYTES);
	trim_ask(&t, 0, now_ns);
	for (int i = 0; i < 2 && t.state != TRIM_REST; i++)
		trim_piece(&t, now_ns);
	trim_deinit(&t);
	assert_null(t.blocks);
	assert_int_equal(t.state, TRIM_REST);
	free(last);
}
