/* SPDX-License-Identifier: Apache-2.0 */
/* Which answers of a server the C client may read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "zk_fixture.h"

static struct bytes b; /* what the server writes */
static char sentence[ZK_ANSWER_SENTENCE_MAX];

static int end(void **state)
{
	bytes_free(&b);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, NULL, end)

/* An answer begins, in the place of the one before. */
static void begin_answer(int32_t xid, int32_t error)
{
	bytes_clear(&b);
	put_header(&b, xid, error);
}

static const struct zk_asked bodies[] = {
	{ ZK_BODY_CREATED, SLICE("/a/b") }, { ZK_BODY_NUMBERED, SLICE("/a/x-") }, { ZK_BODY_LIST, SLICE("/a") },
	{ ZK_BODY_DATA, SLICE("/a/b") },    { ZK_BODY_STAT, SLICE("/a/b") },      { ZK_BODY_NONE, SLICE("/a/b") },
};

static bool is_right(const struct zk_asked *asked)
{
	bool right;

	/* A copy that ends where the answer ends: a sanitizer sees who reads on. */
	char *copy = b.len ? malloc(b.len) : NULL;

	if (copy)
		memcpy(copy, b.data, b.len);
	sentence[0] = '\0';
	right = zk_answer_is_right((struct slice){ copy, b.len }, asked, false, sentence);
	free(copy);
	assert_int_equal(right, sentence[0] == '\0');
	return right;
}

TEST(an_answer_is_right_when_it_is_whole)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		begin_answer(1, 0);
		put_body(&b, bodies[i].body);
		assert_true(is_right(&bodies[i]));
		while (b.len-- > 0)
			assert_false(is_right(&bodies[i]));
		/* What a later server may add is not read. */
		begin_answer(1, 0);
		put_body(&b, bodies[i].body);
		put(&b, 5);
		assert_true(is_right(&bodies[i]));
		/* Nor is anything after an error. */
		begin_answer(1, -101);
		assert_true(is_right(&bodies[i]));
	}
}

/* The answer to what was asked is wrong, whatever follows, and the sentence says why. */
static void is_wrong(const struct zk_asked *asked, const char *why)
{
	put_stat(&b);
	assert_false(is_right(asked));
	if (!strstr(sentence, why))
		fail_msg("\"%s\" does not say \"%s\"", sentence, why);
}

TEST(a_znode_that_nobody_asked_for_is_wrong)
{
	static const char *const others[] = { "", "/x", "/a", "/a/bc", "/a/c" };
	static const char *const unnumbered[] = { "/a/x-",           "/a/x-1",           "/a/x-000000000a",
						  "/a/x-00000000001", "/a/x--000000001",   "/a/y-0000000001",
						  "/a/x-/0000000001", "/a/x--00000000001x" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		begin_answer(1, 0);
		put_text(&b, others[i]);
		is_wrong(&bodies[0], "the answer to the creation of /a/b names a");
	}
	for (size_t i = 0; i < sizeof(unnumbered) / sizeof(unnumbered[0]); i++) {
		begin_answer(1, 0);
		put_text(&b, unnumbered[i]);
		is_wrong(&bodies[1], "the answer to the creation of /a/x- names a");
	}
	/* The directory's counter has wrapped. */
	begin_answer(1, 0);
	put_text(&b, "/a/x--2147483648");
	put_stat(&b);
	assert_true(is_right(&bodies[1]));
}

TEST(a_list_has_as_many_names_as_it_says)
{
	static const char *const no_children[] = { "", "a/b" };
	static const int32_t counts[] = { -1, INT32_MIN, 1, 1000, INT32_MAX };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		begin_answer(1, 0);
		put(&b, counts[i]);
		is_wrong(&bodies[2], "the list of children of /a ");
	}
	for (size_t i = 0; i < sizeof(no_children) / sizeof(no_children[0]); i++) {
		begin_answer(1, 0);
		put(&b, 1);
		put_text(&b, no_children[i]);
		is_wrong(&bodies[2], "cannot be one");
	}
	begin_answer(1, 0);
	put(&b, 1);
	put(&b, 3);
	bytes_append(&b, "a\0b", 3);
	is_wrong(&bodies[2], "NUL");
	begin_answer(1, 0);
	put(&b, 1);
	put(&b, -1);
	is_wrong(&bodies[2], "negative");
}

TEST(data_may_be_missing_but_have_no_other_negative_length)
{
	begin_answer(1, 0);
	put(&b, -1);
	put_stat(&b);
	assert_true(is_right(&bodies[3]));
	begin_answer(1, 0);
	put(&b, -2);
	is_wrong(&bodies[3], "the content of /a/b has data of negative length");
	begin_answer(1, 0);
	put(&b, INT32_MAX);
	is_wrong(&bodies[3], "ends too early");
}

/* One of them would look as if the ensemble had gone back. */
TEST(no_transaction_has_a_negative_number)
{
	static const size_t places[] = { 0, 8, 60 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		size_t stat;

		begin_answer(1, 0);
		stat = b.len;
		put_stat(&b);
		assert_true(is_right(&bodies[4]));
		b.data[stat + places[i]] = (char)0xff;
		assert_false(is_right(&bodies[4]));
		assert_non_null(strstr(sentence, "new content for /a/b has a transaction of negative number"));
	}
}

TEST(the_event_of_a_watch_is_about_a_znode)
{
	static const struct {
		int32_t type;
		const char *path;
		bool right;
	} events[] = {
		{ 1, "/a", true }, { 4, "/", true },   { 7, "/a/b", true }, { -1, "/a", false },
		{ 0, "/a", false }, { 2, "", false }, { 2, "a", false },
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		bytes_clear(&b);
		put_event(&b, events[i].type, events[i].path);
		assert_int_equal(is_right(NULL), events[i].right);
	}
	bytes_clear(&b);
	put_event(&b, 2, "/a");
	while (b.len-- > 0)
		assert_false(is_right(NULL));
}

TEST(a_sentence_about_an_answer_does_not_tell_the_session)
{
	static const struct {
		struct slice path;
		const char *shown;
	} paths[] = {
		{ SLICE("/a/_c_01234567-89ab-8cde-8f00-0123456789ab-lock-0000000001"), "/a/lock-0000000001" },
		{ SLICE("/a/.mail/host/1234567890123-0123456789abcdef-1"), "/a/.mail/host/..." },
		{ SLICE("/a/.mail/host"), "/a/.mail/..." },
		{ SLICE("/a"), "/a" },
	};

	begin_answer(1, 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char wanted[128];

		snprintf(wanted, sizeof(wanted), "spoils its answers: the answer to new content for %s ends too early",
			 paths[i].shown);
		assert_false(is_right(&(struct zk_asked){ ZK_BODY_STAT, paths[i].path }));
		assert_string_equal(sentence, wanted);
	}
}

TEST(an_answer_that_was_not_asked_for_is_wrong)
{
	begin_answer(1, 0);
	assert_false(is_right(NULL));
	assert_string_equal(sentence, "spoils its answers: an answer was not asked for");
	begin_answer(1, -101);
	assert_false(is_right(NULL));
	begin_answer(AUTH_XID, 0);
	assert_false(is_right(&bodies[0]));
	assert_true(zk_answer_is_right(bytes_view(&b), NULL, true, sentence));
	begin_answer(PING_XID, 0);
	assert_true(is_right(NULL));
	begin_answer(SET_WATCHES_XID, 0);
	assert_true(is_right(&bodies[0]));
}

TEST(an_answer_has_a_header_and_a_bound)
{
	assert_false(zk_answer_fits(0));
	assert_false(zk_answer_fits(ZK_ANSWER_HEADER_BYTES - 1));
	assert_true(zk_answer_fits(ZK_ANSWER_HEADER_BYTES));
	assert_true(zk_answer_fits(ZK_ANSWER_BYTES_MAX));
	assert_false(zk_answer_fits(ZK_ANSWER_BYTES_MAX + 1));
	assert_false(zk_answer_fits(UINT32_MAX));
}
