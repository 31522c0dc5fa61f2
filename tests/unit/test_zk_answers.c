/* SPDX-License-Identifier: Apache-2.0 */
/* Which answers of a server the C client may read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "zk_fixture.h"

static char sentence[ZK_ANSWER_SENTENCE_MAX];

static const struct zk_asked bodies[] = {
	{ ZK_BODY_CREATED, SLICE("/a/b") }, { ZK_BODY_NUMBERED, SLICE("/a/x-") }, { ZK_BODY_LIST, SLICE("/a") },
	{ ZK_BODY_DATA, SLICE("/a/b") },    { ZK_BODY_STAT, SLICE("/a/b") },      { ZK_BODY_NONE, SLICE("/a/b") },
};

static bool is_right(const struct bytes *b, const struct zk_asked *asked)
{
	bool right;

	/* A copy that ends where the answer ends: a sanitizer sees who reads on. */
	char *copy = b->len ? malloc(b->len) : NULL;

	if (copy)
		memcpy(copy, b->data, b->len);
	sentence[0] = '\0';
	right = zk_answer_is_right((struct slice){ copy, b->len }, asked, false, sentence);
	free(copy);
	assert_int_equal(right, sentence[0] == '\0');
	return right;
}

TEST_WITH(an_answer_is_right_when_it_is_whole, NULL, NULL)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct bytes b = { 0 };

		put_header(&b, 1, 0);
		put_body(&b, bodies[i].body);
		assert_true(is_right(&b, &bodies[i]));
		while (b.len-- > 0)
			assert_false(is_right(&b, &bodies[i]));
		/* What a later server may add is not read. */
		b.len = 0;
		put_header(&b, 1, 0);
		put_body(&b, bodies[i].body);
		put(&b, 5);
		assert_true(is_right(&b, &bodies[i]));
		/* Nor is anything after an error. */
		b.len = 0;
		put_header(&b, 1, -101);
		assert_true(is_right(&b, &bodies[i]));
		bytes_free(&b);
	}
}

/* The bytes after the header of an answer to what was asked are wrong, and the sentence says why. */
static void is_wrong(const struct zk_asked *asked, const struct bytes *body, const char *why)
{
	struct bytes b = { 0 };

	put_header(&b, 1, 0);
	bytes_slice(&b, bytes_view(body));
	put_stat(&b);
	assert_false(is_right(&b, asked));
	if (!strstr(sentence, why))
		fail_msg("\"%s\" does not say \"%s\"", sentence, why);
	bytes_free(&b);
}

TEST_WITH(a_znode_that_nobody_asked_for_is_wrong, NULL, NULL)
{
	static const char *const others[] = { "", "/x", "/a", "/a/bc", "/a/c" };
	static const char *const unnumbered[] = { "/a/x-",           "/a/x-1",           "/a/x-000000000a",
						  "/a/x-00000000001", "/a/x--000000001",   "/a/y-0000000001",
						  "/a/x-/0000000001", "/a/x--00000000001x" };
	struct bytes b = { 0 };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		b.len = 0;
		put_text(&b, others[i]);
		is_wrong(&bodies[0], &b, "the answer to the creation of /a/b names a");
	}
	for (size_t i = 0; i < sizeof(unnumbered) / sizeof(unnumbered[0]); i++) {
		b.len = 0;
		put_text(&b, unnumbered[i]);
		is_wrong(&bodies[1], &b, "the answer to the creation of /a/x- names a");
	}
	/* The directory's counter has wrapped. */
	b.len = 0;
	put_header(&b, 1, 0);
	put_text(&b, "/a/x--2147483648");
	put_stat(&b);
	assert_true(is_right(&b, &bodies[1]));
	bytes_free(&b);
}

TEST_WITH(a_list_has_as_many_names_as_it_says, NULL, NULL)
{
	static const char *const no_children[] = { "", "a/b" };
	static const int32_t counts[] = { -1, INT32_MIN, 1, 1000, INT32_MAX };
	struct bytes b = { 0 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		b.len = 0;
		put(&b, counts[i]);
		is_wrong(&bodies[2], &b, "the list of children of /a ");
	}
	for (size_t i = 0; i < sizeof(no_children) / sizeof(no_children[0]); i++) {
		b.len = 0;
		put(&b, 1);
		put_text(&b, no_children[i]);
		is_wrong(&bodies[2], &b, "cannot be one");
	}
	b.len = 0;
	put(&b, 1);
	put(&b, 3);
	bytes_append(&b, "a\0b", 3);
	is_wrong(&bodies[2], &b, "NUL");
	b.len = 0;
	put(&b, 1);
	put(&b, -1);
	is_wrong(&bodies[2], &b, "negative");
	bytes_free(&b);
}

TEST_WITH(data_may_be_missing_but_have_no_other_negative_length, NULL, NULL)
{
	struct bytes b = { 0 };

	put_header(&b, 1, 0);
	put(&b, -1);
	put_stat(&b);
	assert_true(is_right(&b, &bodies[3]));
	b.len = 0;
	put(&b, -2);
	is_wrong(&bodies[3], &b, "the content of /a/b has data of negative length");
	b.len = 0;
	put(&b, INT32_MAX);
	is_wrong(&bodies[3], &b, "ends too early");
	bytes_free(&b);
}

/* One of them would look as if the ensemble had gone back. */
TEST_WITH(no_transaction_has_a_negative_number, NULL, NULL)
{
	static const size_t places[] = { 0, 8, 60 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct bytes b = { 0 };
		size_t stat;

		put_header(&b, 1, 0);
		stat = b.len;
		put_stat(&b);
		assert_true(is_right(&b, &bodies[4]));
		b.data[stat + places[i]] = (char)0xff;
		assert_false(is_right(&b, &bodies[4]));
		assert_non_null(strstr(sentence, "new content for /a/b has a transaction of negative number"));
		bytes_free(&b);
	}
}

TEST_WITH(the_event_of_a_watch_is_about_a_znode, NULL, NULL)
{
	static const struct {
		int32_t type;
		const char *path;
		bool right;
	} events[] = {
		{ 1, "/a", true }, { 4, "/", true },   { 7, "/a/b", true }, { -1, "/a", false },
		{ 0, "/a", false }, { 2, "", false }, { 2, "a", false },
	};
	struct bytes b = { 0 };

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		b.len = 0;
		put_event(&b, events[i].type, events[i].path);
		assert_int_equal(is_right(&b, NULL), events[i].right);
	}
	b.len = 0;
	put_event(&b, 2, "/a");
	while (b.len-- > 0)
		assert_false(is_right(&b, NULL));
	bytes_free(&b);
}

TEST_WITH(a_sentence_about_an_answer_does_not_tell_the_session, NULL, NULL)
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
	struct bytes b = { 0 };

	put_header(&b, 1, 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char wanted[128];

		snprintf(wanted, sizeof(wanted), "spoils its answers: the answer to new content for %s ends too early",
			 paths[i].shown);
		assert_false(is_right(&b, &(struct zk_asked){ ZK_BODY_STAT, paths[i].path }));
		assert_string_equal(sentence, wanted);
	}
	bytes_free(&b);
}

TEST_WITH(an_answer_that_was_not_asked_for_is_wrong, NULL, NULL)
{
	struct bytes b = { 0 };

	put_header(&b, 1, 0);
	assert_false(is_right(&b, NULL));
	assert_string_equal(sentence, "spoils its answers: an answer was not asked for");
	b.len = 0;
	put_header(&b, 1, -101);
	assert_false(is_right(&b, NULL));
	b.len = 0;
	put_header(&b, AUTH_XID, 0);
	assert_false(is_right(&b, &bodies[0]));
	assert_true(zk_answer_is_right(bytes_view(&b), NULL, true, sentence));
	b.len = 0;
	put_header(&b, PING_XID, 0);
	assert_true(is_right(&b, NULL));
	b.len = 0;
	put_header(&b, SET_WATCHES_XID, 0);
	assert_true(is_right(&b, &bodies[0]));
	bytes_free(&b);
}

TEST_WITH(an_answer_has_a_header_and_a_bound, NULL, NULL)
{
	assert_false(zk_answer_fits(0));
	assert_false(zk_answer_fits(ZK_ANSWER_HEADER_BYTES - 1));
	assert_true(zk_answer_fits(ZK_ANSWER_HEADER_BYTES));
	assert_true(zk_answer_fits(ZK_ANSWER_BYTES_MAX));
	assert_false(zk_answer_fits(ZK_ANSWER_BYTES_MAX + 1));
	assert_false(zk_answer_fits(UINT32_MAX));
}
