/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts that give names to KEYS[n] and ARGV[n], or have tostring() and redis.pcall, are recognized
 * (core/command/script.h); those in which a name may stand for something else are not.
 */
#include "script_meaning.h"

#include "core/command/script.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define IF_OURS "if redis.call('get', KEYS[1]) == ARGV[1] then "
#define NAMES "local key = KEYS[1] local value = ARGV[1] local ttl = tonumber(ARGV[2]) "

static const struct {
	const char *text, *meaning;
} named[] = {
	{ "local key = KEYS[1] if redis.call('get', key) == ARGV[1] then return redis.call('del', key) end return 0",
	  "R1 .0 .0 first" },
	{ "local key = KEYS[1]\nlocal value = ARGV[1]\n-- ours?\nif (redis.call('GET', key) == value) then\n"
	  "\treturn redis.call('DEL', key)\nelse\n\treturn 0\nend\n",
	  "R1 .0 .0 first" },
	{ "local value = ARGV[1]; local key = KEYS[1]; if value == redis.call('get', key) then "
	  "return redis.call('del', key); end; return 0;",
	  "R1 .0 .0 first" },
	{ "local key, value = KEYS[1], ARGV[1] local v = redis.call('get', key) if v == value then "
	  "return redis.call('del', key) else return 0 end",
	  "R1 .0 .0 first" },
	{ NAMES "if redis.call('get', key) == value then return redis.call('pexpire', key, ttl) end return 0",
	  "E1 .0 .0 first ms" },
	{ "local key = KEYS[1] local value = ARGV[1] local ttl = ARGV[2] "
	  "if redis.call('get', key) == value then return redis.call('expire', key, tonumber(ttl)) end return 0",
	  "E1 .0 .0 first s" },
	{ "local ttl, key, value = tonumber(ARGV[2]), KEYS[1], tostring(ARGV[1]) local held = redis.call('get', key) "
	  "if not held then redis.call('set', key, value, 'PX', ttl) return 1 elseif held == value then "
	  "redis.call('pexpire', key, ttl) return 2 end return 0",
	  "E2 A1 .0 first ms" },
	{ NAMES
	  "if redis.call('setnx', key, value) == 1 then redis.call('expire', key, ttl) return 1 else return 0 end",
	  ".0 A1 .0 first s" },
	{ NAMES "return redis.call('set', key, value, 'NX', 'EX', ttl)", ".nil AOK .nil first s" },
	{ "local id = ARGV[1] local ms = ARGV[2] for _, key in ipairs(KEYS) do if redis.call('get', key) ~= id then "
	  "return 0 end end for _, key in ipairs(KEYS) do redis.call('set', key, id, 'PX', ms) end return #KEYS",
	  "Ecount .0 .0 all ms" },
	/* What a name stands for may have a name before. One may be unused, and whatever it stands for. */
	{ "local key = KEYS[1] local k = KEYS[1] local value = ARGV[1] local v = tostring(value) "
	  "if redis.call('get', k) == v then return redis.call('del', key) end return 0",
	  "R1 .0 .0 first" },
	{ "local a = KEYS[1] local b = a if redis.call('get', b) == ARGV[1] then return redis.call('del', a) end return 0",
	  "R1 .0 .0 first" },
	{ "local key = KEYS[1] local x = tonumber(ARGV[7]) if redis.call('get', key) == ARGV[1] then return 1 end return 0",
	  ".1 .0 .0 first" },
	/* The name of a field is another name. */
	{ "local call = KEYS[1] if redis.call('get', call) == ARGV[1] then return redis.call('del', call) end return 0",
	  "R1 .0 .0 first" },
	/* What changes nothing. */
	{ IF_OURS "return redis.pcall('UNLINK', KEYS[1]) else return 0 end", "R1 .0 .0 first" },
	{ "if redis.pcall(\"get\", KEYS[1]) == tostring(ARGV[1]) then return redis.call('del', KEYS[1]) else return 0 end",
	  "R1 .0 .0 first" },
	{ "local key = KEYS[1] local v = redis.pcall('get', key) if v == tostring(tostring(ARGV[1])) then "
	  "return redis.call('pexpire', key, tonumber(tostring(ARGV[2]))) else return 0 end",
	  "E1 .0 .0 first ms" },
	{ "if redis.pcall('exists', KEYS[1]) == 0 then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end",
	  ".nil AOK .nil first ms" },
	{ "return {redis.pcall('get', KEYS[1]), redis.pcall('pttl', KEYS[1])}", ".pair .pair .pair first" },
	{ "local count = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then redis.call('del', key) "
	  "count = count + 1 end end return count",
	  "Rcount .nil .nil each" },
};

TEST(words_may_have_names)
{
	char is[MEANING_CHARS];

	for (size_t i = 0; i < COUNT(named); i++) {
		print_message("%s\n", named[i].text);
		assert_string_equal(meaning(named[i].text, is), named[i].meaning);
	}
}

#define RELEASE "if redis.call('get', key) == value then return redis.call('del', key) end return 0"

static void expect_none(const char *const *texts, size_t count)
{
	char is[MEANING_CHARS];

	for (size_t i = 0; i < count; i++) {
		print_message("%s\n", texts[i]);
		assert_string_equal(meaning(texts[i], is), "none");
	}
}

TEST(a_name_has_to_be_declared_before)
{
	static const char *const none[] = {
		RELEASE,
		"local key = KEYS[1] " RELEASE,
		"key = KEYS[1] value = ARGV[1] " RELEASE,
		"local key = KEYS[1] if redis.call('get', key) == value then local value = ARGV[1] return redis.call('del', key) "
		"end return 0",
		"local key = KEYS[1] " RELEASE " local value = ARGV[1]",
		"do local key = KEYS[1] local value = ARGV[1] end " RELEASE,
	};

	expect_none(none, COUNT(none));
}

TEST(a_reserved_name_is_none)
{
	static const char *const none[] = {
		"local redis = KEYS[1] if redis.call('get', redis) == ARGV[1] then return redis.call('del', redis) end return 0",
		"local KEYS = KEYS[1] if redis.call('get', KEYS) == ARGV[1] then return redis.call('del', KEYS) end return 0",
		"local ARGV = ARGV[1] if redis.call('get', KEYS[1]) == ARGV then return redis.call('del', KEYS[1]) end return 0",
		"local end = KEYS[1] if redis.call('get', end) == ARGV[1] then return redis.call('del', end) end return 0",
		"local tonumber = KEYS[1] " IF_OURS
		"return redis.call('expire', KEYS[1], tonumber(ARGV[2])) end return 0",
		"local tostring = KEYS[1] if redis.call('get', KEYS[1]) == tostring(ARGV[1]) then return 1 end return 0",
		"local tostring = redis.call('get', KEYS[1]) if tostring == tostring(ARGV[1]) then return 1 end return 0",
		"local redis = KEYS[2] " IF_OURS "return redis.call('del', KEYS[1]) end return 0",
	};

	expect_none(none, COUNT(none));
}

TEST(a_name_that_is_declared_twice_is_none)
{
	static const char *const none[] = {
		/* Declared twice: the second one counts, or it is no Lua. */
		"local key = KEYS[2] local key = KEYS[1] local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] local key = KEYS[2] local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] local key = KEYS[1] local value = ARGV[1] " RELEASE,
		"local key, key, value = KEYS[1], KEYS[2], ARGV[1] " RELEASE,
		"local key, value, key = KEYS[1], ARGV[1], KEYS[1] " RELEASE,
		"local key, value = KEYS[1], ARGV[1] local v, key = ARGV[1], KEYS[1] " RELEASE,
	};

	expect_none(none, COUNT(none));
}

TEST(a_name_that_is_assigned_later_is_none)
{
	static const char *const none[] = {
		"local key, value = KEYS[1], ARGV[1] value = ARGV[2] " RELEASE,
		"local key, value = KEYS[1], ARGV[1] key = KEYS[1] " RELEASE,
		"local key, value = KEYS[1], ARGV[1] key, value = value, key " RELEASE,
		"local key, value = KEYS[1], ARGV[1] KEYS[1] = 'x' " RELEASE,
		"local key, value = KEYS[1], ARGV[1] ARGV = {} " RELEASE,
		"local key, value = KEYS[1], ARGV[1] if redis.call('get', key) == value then key = KEYS[2] "
		"return redis.call('del', key) end return 0",
	};

	expect_none(none, COUNT(none));
}

TEST(a_name_that_is_shadowed_is_none)
{
	static const char *const none[] = {
		"local v = KEYS[1] local v = redis.call('get', v) if v == ARGV[1] then return redis.call('del', KEYS[1]) "
		"end return 0",
		"local key, v = KEYS[1], ARGV[1] local v = redis.call('get', key) if v == v then return redis.call('del', key) end "
		"return 0",
		"local v = ARGV[1] local n = redis.call('setnx', KEYS[1], v) if v == 1 then redis.call('expire', KEYS[1], ARGV[2]) "
		"end return n",
		"local key = KEYS[1] for i, key in ipairs(KEYS) do if redis.call('get', key) ~= ARGV[1] then return 0 end end "
		"for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS",
		"local i = KEYS[1] for i, key in ipairs(KEYS) do if redis.call('get', key) ~= ARGV[1] then return 0 end end "
		"for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS",
		"local count = ARGV[1] local count = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then "
		"redis.call('del', key) count = count + 1 end end return count",
	};

	expect_none(none, COUNT(none));
}

TEST(each_name_has_one_expression)
{
	static const char *const none[] = {
		"local key, value = KEYS[1] " RELEASE,
		"local key, value = KEYS[1], " RELEASE,
		"local key = KEYS[1], ARGV[2] local value = ARGV[1] " RELEASE,
		"local key, = KEYS[1] local value = ARGV[1] " RELEASE,
		"local , key = KEYS[1] local value = ARGV[1] " RELEASE,
		"local key value = KEYS[1], ARGV[1] " RELEASE,
		"local key; local value = ARGV[1] " RELEASE,
		"local key == KEYS[1] local value = ARGV[1] " RELEASE,
		"local 1 = KEYS[1] local key = KEYS[1] local value = ARGV[1] " RELEASE,
		"local",
		"local key",
		"local key =",
		"local key = KEYS",
		"local key = KEYS[1",
		"local key = KEYS[1]",
		"local key, value = KEYS[1],",
		"local key = tonumber(ARGV[1]",
	};

	expect_none(none, COUNT(none));
}

TEST(a_name_stands_for_these_expressions_only)
{
	static const char *const none[] = {
		"local key = KEYS[2] local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] local value = ARGV[2] " RELEASE,
		"local key = ARGV[1] local value = KEYS[1] " RELEASE,
		"local key = KEYS[-1] local value = ARGV[1] " RELEASE,
		"local key = KEYS[1][1] local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] .. 'x' local value = ARGV[1] " RELEASE,
		"local key = 'x' .. KEYS[1] local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] 'x' local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] {} local value = ARGV[1] " RELEASE,
		"local key = KEYS[1]() local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] or KEYS[2] local value = ARGV[1] " RELEASE,
		"local key = KEYS[1] local value = not ARGV[1] " RELEASE,
		"local key = KEYS[1] local value = ARGV[1] == ARGV[2] " RELEASE,
		"local key = KEYS[1] local value = 'x' " RELEASE,
		"local key = KEYS[1] local value = ARGV[1] + 1 " RELEASE,
		"local key = KEYS[1]; ; local value = ARGV[1] " RELEASE,
		"local key = KEYS[key] local value = ARGV[1] " RELEASE,
		"local keys = KEYS local value = ARGV[1] if redis.call('get', keys[1]) == value then "
		"return redis.call('del', keys[1]) end return 0",
	};

	expect_none(none, COUNT(none));
}

TEST(a_number_is_no_value)
{
	static const char *const none[] = {
		/* Numbers are no strings in Lua: it never releases. */
		"local key = KEYS[1] local value = tonumber(ARGV[1]) " RELEASE,
		"local key, value = KEYS[1], tonumber(ARGV[1]) local v = redis.call('get', key) if v == value then return 1 end "
		"return 0",
		NAMES
		"if redis.call('get', key) == value then return redis.call('pexpire', key, tostring(ttl)) end return 0",
		NAMES "if redis.call('get', key) == value then return redis.call('pexpire', key, ttl / 2) end return 0",
		NAMES "if redis.call('get', key) == ttl then return redis.call('pexpire', key, value) end return 0",
		"local ttl = tonumber(ARGV[2], 16) " IF_OURS "return redis.call('pexpire', KEYS[1], ttl) end return 0",
		"local ttl = tonumber(KEYS[1]) " IF_OURS "return redis.call('pexpire', KEYS[1], ttl) end return 0",
	};

	expect_none(none, COUNT(none));
}

TEST(tostring_and_pcall_count_where_they_stand)
{
	static const char *const none[] = {
		"if redis.call('get', KEYS[1]) == tostring(ARGV[2]) then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.call('get', KEYS[1]) == tostring(ARGV[1], 1) then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.call('get', KEYS[1]) == tostring(ARGV) then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.call('get', KEYS[1]) == string.tostring(ARGV[1]) then return 1 else return 0 end",
		"if tostring(redis.call('get', KEYS[1])) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.call('get', KEYS[1]) == Tostring(ARGV[1]) then return redis.call('del', KEYS[1]) else return 0 end",
		/* These fail where the lease is no number: with pcall the script would go on. */
		IF_OURS "redis.pcall('pexpire', KEYS[1], ARGV[2]) return 1 end return 0",
		IF_OURS "redis.pcall('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0",
		"if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.pcall('expire', KEYS[1], ARGV[2]) return 1 end return 0",
		"if pcall('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.pcall(get, KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.Pcall('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		"local get = KEYS[1] if redis.get('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
		"else return 0 end",
	};

	expect_none(none, COUNT(none));
}

/* No form begins with the rest of such a statement; still, it is none that may be taken away. */
TEST(an_expression_that_goes_on_is_left_as_it_is)
{
	static const char *const rests[] = { ".. 'x'", "[1]",         "()",   "'x'",      "{}",
					     "or 'x'", "and ARGV[1]", "== 1", ", ARGV[1]" };
	static struct lua_word words[LUA_WORDS_MAX + 1];
	char text[128];

	for (size_t i = 0; i < COUNT(rests); i++) {
		snprintf(text, sizeof(text), "local key = KEYS[1] %s return key", rests[i]);
		assert_true(script_words(slice_of(text), words));
		assert_true(lua_is(&words[0], LUA_NAME, "local"));
	}
	assert_true(script_words(SLICE("local key = KEYS[1] return key"), words));
	assert_true(lua_is(&words[0], LUA_NAME, "return"));
	assert_true(lua_is(&words[1], LUA_NAME, "KEYS"));
}

/* Writes a script that gives `count` names to its key, in statements of so many. */
static const char *with_names(size_t count, size_t in_each, char *ret, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i += in_each) {
		len += (size_t)snprintf(ret + len, size - len, "local k%zu", i);
		for (size_t k = 1; k < in_each; k++)
			len += (size_t)snprintf(ret + len, size - len, ", k%zu", i + k);
		len += (size_t)snprintf(ret + len, size - len, " = KEYS[1]");
		for (size_t k = 1; k < in_each; k++)
			len += (size_t)snprintf(ret + len, size - len, ", KEYS[1]");
		len += (size_t)snprintf(ret + len, size - len, " ");
	}
	len += (size_t)snprintf(ret + len, size - len, IF_OURS "return redis.call('del', k%zu) else return 0 end",
				count - 1);
	assert_true(len < size);
	return ret;
}

TEST(names_are_bounded)
{
	static struct lua_word words[LUA_WORDS_MAX + 1];
	char text[1024], is[MEANING_CHARS];
	size_t len;

	_Static_assert(SCRIPT_NAMES_MAX == 8, "the numbers below are of that");
	assert_string_equal(meaning(with_names(8, 1, text, sizeof(text)), is), "R1 .0 .0 first");
	assert_string_equal(meaning(with_names(8, 4, text, sizeof(text)), is), "R1 .0 .0 first");
	assert_string_equal(meaning(with_names(8, 8, text, sizeof(text)), is), "R1 .0 .0 first");
	assert_string_equal(meaning(with_names(9, 1, text, sizeof(text)), is), "none");
	assert_string_equal(meaning(with_names(9, 3, text, sizeof(text)), is), "none");
	assert_string_equal(meaning(with_names(9, 9, text, sizeof(text)), is), "none");

	/* Each `k` becomes four words. */
	len = (size_t)snprintf(text, sizeof(text), "local k = KEYS[1] return");
	for (size_t i = 0; i < LUA_WORDS_MAX / 4 - 1; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " k");
	snprintf(text + len, sizeof(text) - len, " x x x");
	assert_true(script_words(slice_of(text), words));
	assert_int_equal(words[LUA_WORDS_MAX - 1].kind, LUA_NAME);
	assert_int_equal(words[LUA_WORDS_MAX].kind, LUA_END);
	snprintf(text + len, sizeof(text) - len, " k");
	assert_false(script_words(slice_of(text), words));
	assert_string_equal(meaning(text, is), "none");
}
