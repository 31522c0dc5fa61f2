/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: what they match, and that neither a pattern nor a text makes the other one take long. */
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "base/glob.h"
#include "protocol/bytes.h"
#include "protocol/name.h"

_Static_assert((int)GLOB_ELEMENTS_MAX >= (int)NAME_BYTES_MAX, "a pattern without stars may match the longest name");

static bool matches_counted(struct slice pattern, struct slice text, size_t *steps)
{
	struct glob *g = glob_new(pattern);
	bool does = glob_matches(g, text, steps);

	assert_true(slice_eq(glob_pattern(g), pattern));
	glob_free(g);
	return does;
}

static bool matches(const char *pattern, const char *name)
{
	size_t steps = 0;

	return matches_counted(slice_of(pattern), slice_of(name), &steps);
}

TEST(patterns_match_as_in_redis)
{
	/* clang-format off */
	static const char *const yes[][2] = {
		{ "", "" }, { "*", "" }, { "*", "abc" }, { "**", "abc" }, { "a*", "abc" }, { "*c", "abc" }, { "*b*", "abc" },
		{ "a*c", "abbbc" }, { "a*bc*d", "abcbcxd" }, { "*?", "ab" }, { "?", "a" }, { "a?c", "abc" },
		{ "[abc]", "b" }, { "[^abc]", "d" }, { "[a-c]x", "bx" }, { "[c-a]x", "bx" }, { "[a-]", "]" }, { "[\\]]", "]" },
		{ "[\\^a]", "^" }, { "[a", "a" }, { "[^]", "a" }, { "[a\\-c]", "-" }, { "*[0-9]", "n7" },
		{ "h[^e]llo", "hallo" }, { "\\*", "*" }, { "a\\", "a\\" }, { "\\[a]", "[a]" },
	};
	static const char *const no[][2] = {
		{ "", "a" }, { "a", "" }, { "a", "A" }, { "a*", "ba" }, { "*c", "abcd" }, { "?", "" }, { "?", "ab" },
		{ "a?c", "ac" }, { "a*bc*d", "abcbcx" }, { "[abc]", "d" }, { "[^abc]", "b" }, { "[]", "a" }, { "[", "[" },
		{ "[a\\-c]", "b" }, { "h[^e]llo", "hello" }, { "\\*", "a" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		assert_true(matches(yes[i][0], yes[i][1]));
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		assert_false(matches(no[i][0], no[i][1]));
}

TEST(no_pattern_matches_everything)
{
	size_t steps = 0;

	assert_true(glob_matches(NULL, SLICE("a"), &steps));
	assert_int_equal(glob_memory(NULL), 0);
	assert_int_equal(steps, 0);
}

TEST(a_class_has_its_end)
{
	static const char *const closed[] = { "", "*", "a]", "[a]", "x[^a-c]*[]", "\\[a", "[\\]]", "[[]", "a\\" };
	static const char *const open[] = { "[", "[a", "a*[b", "[a][b", "[a\\]", "[^" };

	for (size_t i = 0; i < sizeof(closed) / sizeof(*closed); i++)
		assert_true(glob_is_closed(slice_of(closed[i])));
	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++)
		assert_false(glob_is_closed(slice_of(open[i])));
}

/* ---- beside a matcher that tries everything ---- */

static bool element_accepts(struct slice p, size_t *at, unsigned char c)
{
	bool negated, found = false;
	unsigned char first = (unsigned char)p.data[(*at)++];

	if (first == '?')
		return true;
	if (first == '\\' && *at < p.len)
		return (unsigned char)p.data[(*at)++] == c;
	if (first != '[')
		return first == c;
	negated = *at < p.len && p.data[*at] == '^';
	for (*at += negated; *at < p.len && p.data[*at] != ']'; ++*at) {
		unsigned char low = (unsigned char)p.data[*at], high = low;

		if (low == '\\' && *at + 1 < p.len) {
			low = high = (unsigned char)p.data[++*at];
		} else if (*at + 2 < p.len && p.data[*at + 1] == '-') {
			high = (unsigned char)p.data[*at + 2];
			*at += 2;
		}
		found |= (c >= low && c <= high) || (c >= high && c <= low);
	}
	*at += *at < p.len;
	return found != negated;
}

static bool naive(struct slice p, size_t at, struct slice text)
{
	size_t next = at;

	if (at == p.len)
		return text.len == 0;
	if (p.data[at] == '*')
		return naive(p, at + 1, text) ||
		       (text.len && naive(p, at, (struct slice){ text.data + 1, text.len - 1 }));
	return text.len && element_accepts(p, &next, (unsigned char)text.data[0]) &&
	       naive(p, next, (struct slice){ text.data + 1, text.len - 1 });
}

TEST(it_matches_what_a_matcher_matches_that_tries_everything)
{
	static const char alphabet[] = "ab**??[]^-\\\xff\x80z";
	unsigned int seed = 1, yes = 0;
	char p[80], t[80];

	for (int round = 0; round < 200000; round++) {
		struct slice pattern = { p, (size_t)rand_r(&seed) % 12 }, text = { t, (size_t)rand_r(&seed) % 8 };
		size_t steps = 0;

		/* Words have 64 bits: sometimes places are in several. */
		if (round % 4 == 0) {
			pattern.len += 64 - 4;
			text.len += 64 - 4;
		}
		for (size_t i = 0; i < pattern.len; i++)
			p[i] = round % 4 == 0 && i < 60 ? '?'
							: alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		for (size_t i = 0; i < text.len; i++)
			t[i] = "ab]^-\\\xff\x80yz"[(size_t)rand_r(&seed) % 10];
		assert_int_equal(matches_counted(pattern, text, &steps), naive(pattern, 0, text));
		yes += naive(pattern, 0, text);
	}
	assert_in_range(yes, 5000, 190000);
}

/* ---- steps ---- */

TEST(patterns_cannot_be_made_to_explode)
{
	struct bytes pattern = { 0 }, name = { 0 };
	size_t steps = 0;

	for (int i = 0; i < 170; i++)
		bytes_text(&pattern, "*a?");
	bytes_char(&pattern, 'b');
	while (name.len < NAME_BYTES_MAX)
		bytes_char(&name, 'a');
	for (int i = 0; i < 100; i++)
		assert_false(matches_counted(bytes_view(&pattern), bytes_view(&name), &steps));
	assert_in_range(steps, 1, 100 * name.len * GLOB_WORDS_MAX);
	bytes_free(&pattern);
	bytes_free(&name);
}

TEST(a_long_class_costs_no_more_than_a_short_one)
{
	struct bytes pattern = { 0 }, name = { 0 };
	size_t steps = 0;

	bytes_text(&pattern, "*[");
	while (pattern.len < 60000)
		bytes_char(&pattern, 'z');
	bytes_char(&pattern, ']');
	while (name.len < NAME_BYTES_MAX)
		bytes_char(&name, 'a');
	assert_false(matches_counted(bytes_view(&pattern), bytes_view(&name), &steps));
	assert_in_range(steps, 1, name.len);
	name.data[NAME_BYTES_MAX - 1] = 'z';
	assert_true(matches_counted(bytes_view(&pattern), bytes_view(&name), &steps));
	bytes_free(&pattern);
	bytes_free(&name);
}

TEST(more_elements_than_a_name_has_bytes_match_nothing)
{
	struct bytes pattern = { 0 }, name = { 0 };
	size_t steps = 0;

	while (name.len < NAME_BYTES_MAX)
		bytes_char(&name, 'a');
	while (pattern.len < NAME_BYTES_MAX)
		bytes_char(&pattern, '?');
	assert_true(matches_counted(bytes_view(&pattern), bytes_view(&name), &steps));
	bytes_char(&pattern, '*');
	assert_true(matches_counted(bytes_view(&pattern), bytes_view(&name), &steps));
	steps = 0;
	while (pattern.len < 60000)
		bytes_char(&pattern, '?');
	assert_false(matches_counted(bytes_view(&pattern), bytes_view(&name), &steps));
	assert_int_equal(steps, 0);
	bytes_free(&pattern);
	bytes_free(&name);
}
