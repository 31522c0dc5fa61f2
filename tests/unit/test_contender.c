/* SPDX-License-Identifier: Apache-2.0 */
/* The names of contenders (contender.h); nothing but the floor of znodes and those below is linked. */

#include "tests/unit/unit.h"

#include "core/znode/contender.h"

static const int64_t SESSION = 0x100020003000405;

static const enum flavour LOCKS[] = { FLAVOUR_RW, FLAVOUR_MUTEX, FLAVOUR_KAZOO };

/* As the server completes the name. */
static void name_of(struct bytes *out, int64_t session, uint64_t nonce, enum flavour flavour, enum mode mode)
{
	bytes_clear(out);
	contender_name(out, session, nonce, flavour, mode);
	bytes_text(out, "0000000042");
}

TEST(our_names_are_read_back)
{
	struct bytes name = { 0 };
	struct contender c;

	for (size_t i = 0; i < 3; i++)
		for (int mode = MODE_SHARED; mode <= MODE_EXCLUSIVE; mode++) {
			if (mode == MODE_SHARED && LOCKS[i] == FLAVOUR_MUTEX)
				continue;
			name_of(&name, SESSION, 7, LOCKS[i], (enum mode)mode);
			assert_true(name.len < CONTENDER_NAME_MAX);
			assert_true(contender_parse(bytes_view(&name), LOCKS[i], &c));
			assert_true(c.known && c.seq == 42 && c.mode == (enum mode)mode);
			assert_true(contender_of_session(bytes_view(&name), LOCKS[i], SESSION));
			assert_false(contender_of_session(bytes_view(&name), LOCKS[i], SESSION + 1));
		}
	bytes_free(&name);
}

TEST(a_try_says_so)
{
	struct bytes name = { 0 };

	for (size_t i = 0; i < 3; i++) {
		name_of(&name, SESSION, 7, LOCKS[i], MODE_EXCLUSIVE);
		assert_false(contender_tries(bytes_view(&name), LOCKS[i]));
		name_of(&name, SESSION, 7 | CONTENDER_TRY, LOCKS[i], MODE_EXCLUSIVE);
		assert_true(contender_tries(bytes_view(&name), LOCKS[i]));
		assert_true(contender_of_session(bytes_view(&name), LOCKS[i], SESSION));
	}
	bytes_free(&name);
	/* Curator's uuid is of version 4. */
	assert_false(contender_tries(SLICE("_c_01020304-0506-4780-9a80-000000000007-__WRIT__0000000001"), FLAVOUR_RW));
}

TEST(two_of_one_session_are_known)
{
	struct bytes a = { 0 }, b = { 0 };

	for (size_t i = 0; i < 3; i++) {
		name_of(&a, SESSION, 1, LOCKS[i], MODE_EXCLUSIVE);
		name_of(&b, SESSION, 2, LOCKS[i], MODE_EXCLUSIVE);
		assert_true(contender_same_session(bytes_view(&a), bytes_view(&b), LOCKS[i]));
		name_of(&b, SESSION + 1, 1, LOCKS[i], MODE_EXCLUSIVE);
		assert_false(contender_same_session(bytes_view(&a), bytes_view(&b), LOCKS[i]));
	}
	bytes_free(&a);
	bytes_free(&b);
}

TEST(other_children_are_told_apart)
{
	struct contender c;

	assert_false(contender_parse(SLICE("notes"), FLAVOUR_RW, &c));
	assert_false(contender_parse(SLICE("0000000001"), FLAVOUR_RW, &c)); /* nothing stands before the number */
	assert_false(contender_parse(SLICE("lock-000000001x"), FLAVOUR_RW, &c));
	/* A number at the end: it is waited for, as a writer. */
	assert_true(contender_parse(SLICE("something-0000000001"), FLAVOUR_RW, &c));
	assert_true(!c.known && c.mode == MODE_EXCLUSIVE && c.seq == 1);
	/* A mutex knows no readers. */
	assert_true(contender_parse(SLICE("_c_x-__READ__0000000001"), FLAVOUR_MUTEX, &c));
	assert_true(!c.known && c.mode == MODE_EXCLUSIVE);
}

TEST(what_is_no_name_of_ours_is_shown_as_it_is)
{
	assert_int_equal(contender_shown((struct slice){ 0 }).len, 0);
	assert_int_equal(contender_shown(SLICE("notes")).len, 5);
	assert_int_equal(contender_shown(SLICE("lock-0000000001")).len, 15);
}

TEST(the_order_goes_on_past_the_wrap)
{
	struct contender before, after;

	assert_true(contender_parse(SLICE("_c_x-__WRIT__2147483647"), FLAVOUR_RW, &before));
	assert_true(contender_parse(SLICE("_c_y-__WRIT__-2147483648"), FLAVOUR_RW, &after));
	assert_true(before.known && after.known);
	assert_true(contender_before(&before, &after));
	assert_false(contender_before(&after, &before));
	/* Of two with one number each waits for the other. */
	assert_true(contender_before(&after, &after));
}
