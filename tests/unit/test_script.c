/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts are recognized (core/command/script.h): those of libraries and of their like, whatever their style; and nothing
 * that is almost one of them.
 */
#include "script_meaning.h"

#include <stdlib.h>

#include "core/command/lua.h"
#define CATALOGUE_TEXTS
#include "core/command/script_catalogue.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const commands[] = { "get",  "set",   "del", "exists", "pexpire", "pttl",
					"incr", "setnx", "NX",  "PX",     "hget",    "type",
					     "mget", "mset",  "ttl", "msetnx", "expire",  "getrange" };

#define IF_OURS "if redis.call('get', KEYS[1]) == ARGV[1] then "

TEST(home_made_scripts_are_recognized)
{
	static const struct {
		const char *text, *meaning;
	} known[] = {
		{ IF_OURS "return redis.call('unlink', KEYS[1]) else return -1 end", "R1 .-1 .-1 first" },
		{ IF_OURS "redis.call('del', KEYS[1]) return 7 end return 8", "R7 .8 .8 first" },
		{ IF_OURS "redis.call('del', KEYS[1]) return 'OK' else return nil end", "Rtext .nil .nil first" },
		{ IF_OURS "redis.call('del', KEYS[1]) end", "Rnil .nil .nil first" },
		{ IF_OURS "redis.call('del', KEYS[1]) else return 0 end", "Rnil .0 .0 first" },
		{ IF_OURS "return redis.call('del', KEYS[1]) end", "R1 .nil .nil first" },
		{ IF_OURS "return redis.call('expire', KEYS[1], tonumber(ARGV[2])) else return false end",
		  "E1 .nil .nil first s" },
		{ IF_OURS "return redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2], 'XX') else return 0 end",
		  "EOK .0 .0 first s" },
		{ IF_OURS "return true end return false", ".1 .nil .nil first" },
		{ IF_OURS "redis.call('del', KEYS[1]) return redis.status_reply('OK') end return 0", "ROK .0 .0 first" },
		{ "return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}", ".pair .pair .pair first" },
		{ "local v = redis.call('get', KEYS[1]) if not v then return -1 end "
		  "if v == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
		  "R1 .-1 .0 first" },
		{ "return redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2], 'NX')", ".nil AOK .nil first s" },
		{ "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('expire', KEYS[1], ARGV[2]) return 1 "
		  "else return 0 end",
		  ".0 A1 .0 first s" },
		{ "local ok = redis.call('setnx', KEYS[1], ARGV[1]) if ok == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) end "
		  "return ok",
		  ".0 A1 .0 first ms" },
		{ "if redis.call('exists', KEYS[1]) == 0 then redis.call('setex', KEYS[1], ARGV[2], ARGV[1]) return 1 end "
		  "return 0",
		  ".0 A1 .0 first s" },
	};
	char is[MEANING_CHARS];

	for (size_t i = 0; i < COUNT(known); i++) {
		print_message("%s\n", known[i].text);
		assert_string_equal(meaning(known[i].text, is), known[i].meaning);
	}
}

TEST(style_does_not_matter)
{
	static const char *const same[] = {
		IF_OURS "return redis.call('del', KEYS[1]) else return 0 end",
		IF_OURS "return redis.call('del', KEYS[1]) end return 0",
		"if(redis.call(\"GET\",KEYS[1])==ARGV[1])then return redis.call(\"Del\",KEYS[1])else return 0 end",
		"if ((redis.call('GET',KEYS[1])==ARGV[1])) then\r\n\treturn redis.call('DEL',KEYS[1]);\nelse\v\freturn 0;\nend;",
		"-- release\nif redis.call('get', --[[ the ]] KEYS[1]) --[==[ x ]] ]=] ]==] == ARGV[1] then -- [[\n"
		"return redis.call('del', KEYS[1]) else return 0 end -- done",
		"local current_value2 = redis.call('get', KEYS[1]); if current_value2 == ARGV[1] then "
		"return redis.call('del', KEYS[1]) end return 0",
		"if ARGV[1] == redis.call('get', KEYS[1]) then return redis.call('del', KEYS[1]) else return 0 end",
		IF_OURS "return redis . call ( 'del' , KEYS [ 1 ] ) else return 00 end",
	};
	char is[MEANING_CHARS];

	for (size_t i = 0; i < COUNT(same); i++) {
		print_message("%s\n", same[i]);
		assert_string_equal(meaning(same[i], is), "R1 .0 .0 first");
	}
}

TEST(what_is_almost_one_is_none)
{
	static const char *const none[] = {
		"",
		" ",
		";",
		"return",
		"return 1",
		"--",
		"--[[",
		"--[==[ ]]",
		"'",
		"\"",
		"if",
		"$ttl",
		"$else",
		"local local = 1",
		/* Not whole, or more than that. */
		IF_OURS "return redis.call('del', KEYS[1])",
		IF_OURS "return redis.call('del', KEYS[1]) else return 0",
		IF_OURS "return redis.call('del', KEYS[1]) else return end",
		IF_OURS "return redis.call('del', KEYS[1]) else return 0 end return 1",
		IF_OURS "return redis.call('del', KEYS[1]) else return 0 end --[[",
		IF_OURS "return redis.call('del', KEYS[1]) else return '0' end",
		IF_OURS "return redis.call('del', KEYS[1]) else return - nil end",
		/* Both branches would answer, and the second only would. */
		IF_OURS "redis.call('del', KEYS[1]) end return 0",
		/* No Lua. */
		"if (redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.call('get', KEYS[1]) == ARGV[1]) then return redis.call('del', KEYS[1]) else return 0 end",
		"if () then return 0 end",
		"if; redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		IF_OURS "; return redis.call('del', KEYS[1]) else return 0 end",
		IF_OURS "return; redis.call('del', KEYS[1]) else return 0 end",
		IF_OURS "return redis; .call('del', KEYS[1]) else return 0 end",
		IF_OURS "return redis.call('del'; KEYS[1]) else return 0 end",
		IF_OURS "return redis.call('del', KEYS[1]);; else return 0 end",
		IF_OURS "return redis.call('del', KEYS[1]) else; return 0 end",
		"; " IF_OURS "return redis.call('del', KEYS[1]) else return 0 end",
		IF_OURS "return redis.call('del', KEYS[[1]]) else return 0 end",
		IF_OURS "return redis.call('d\\el', KEYS[1]) else return 0 end",
		IF_OURS "return redis.call('del', KEYS[1.0]) else return 0 end",
		IF_OURS "return redis.call('del', KEYS[1]) else return 0x0 end",
		IF_OURS "return redis.call('del', KEYS[1]) else return 1000000000 end",
		"#!lua\n" IF_OURS "return redis.call('del', KEYS[1]) else return 0 end",
		/* A keyword or a global is no name of a local, and one that is not declared is none either. */
		"local KEYS = redis.call('get', KEYS[1]) if KEYS == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
		"v = redis.call('get', KEYS[1]) if v == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		"for k, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end "
		"for k, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end return #KEYS",
		/* Numbers are no strings in Lua: these never delete. */
		"if tonumber(redis.call('get', KEYS[1])) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
		"if redis.call('get', KEYS[1]) == tonumber(ARGV[1]) then return redis.call('del', KEYS[1]) else return 0 end",
		/* One time in two units. */
		"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) "
		"elseif redis.call('set', KEYS[1], ARGV[1], 'nx', 'ex', ARGV[2]) then return 1 else return 0 end",
		/* Another case of letters is another word, but for Redis. */
		IF_OURS "return redis.call('del', KEYS[1]) else return NIL end",
		IF_OURS "redis.call('del', KEYS[1]) return 'ok' else return 0 end",
		"if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'YES') or redis.call('get', KEYS[1]) == ARGV[1] then "
		"return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end",
	};
	char is[MEANING_CHARS];

	for (size_t i = 0; i < COUNT(none); i++) {
		print_message("%s\n", none[i]);
		assert_string_equal(meaning(none[i], is), "none");
	}
}

TEST(only_a_status_of_ok_is_answered_by_a_function)
{
	static const char *const none[] = {
		IF_OURS "redis.call('del', KEYS[1]) return redis.error_reply('OK') else return 0 end",
		IF_OURS "redis.call('del', KEYS[1]) return redis.status_reply('ok') else return 0 end",
		IF_OURS "redis.call('del', KEYS[1]) return redis.status_reply() else return 0 end",
		IF_OURS "redis.call('del', KEYS[1]) return - redis.status_reply('OK') else return 0 end",
		/* The name of a function is no name of a local. */
		("local unpack = redis.call('mget', unpack(KEYS)) for i, k in ipairs(KEYS) do if unpack[i] ~= ARGV[1] then "
		 "return false end end redis.call('del', unpack(KEYS)) return 1"),
	};
	char is[MEANING_CHARS];

	for (size_t i = 0; i < COUNT(none); i++) {
		print_message("%s\n", none[i]);
		assert_string_equal(meaning(none[i], is), "none");
	}
}

/* ---- each word of each script, changed ---- */

/* The text with `with` in the place of that word, without its quotes. */
static const char *changed(const char *text, const struct lua_word *word, const char *with, char *ret, size_t size)
{
	size_t at = (size_t)(word->text.data - text), behind = at + word->text.len;

	assert_true((size_t)snprintf(ret, size, "%.*s%s%s", (int)at, text, with, text + behind) < size);
	return ret;
}

static size_t times(const struct lua_word *words, const struct lua_word *word)
{
	size_t count = 0;

	for (; words->kind != LUA_END; words++)
		count += words->kind == word->kind && slice_eq(words->text, word->text);
	return count;
}

static bool is_index(const struct lua_word *word)
{
	return lua_is(word - 1, LUA_MARK, "[");
}

/* What is changed is none, or it means something else. `strictly`: it is none. */
static void expect_other(const char *from, const char *text, bool strictly)
{
	char is[MEANING_CHARS], was[MEANING_CHARS];
	const char *now = meaning(text, is);

	if (strcmp(now, "none") == 0)
		return;
	if (strictly || strcmp(now, meaning(from, was)) == 0)
		fail_msg("\"%s\" became \"%s\":\n%s", meaning(from, was), now, text);
}

/* As an answer, or to a lock, the one is the other. */
static bool is_same(const struct lua_word *word, const char *with)
{
	return (lua_is(word, LUA_NAME, "true") && strcmp(with, "1") == 0) ||
	       (lua_is(word, LUA_NAME, "false") && strcmp(with, "nil") == 0) || slice_is(word->text, with) ||
	       (lua_is(word, LUA_STRING, "UNLINK") && strcmp(with, "del") == 0);
}

static void change_word(const char *text, const struct lua_word *words, const struct lua_word *word)
{
	static const char *const marks[] = { "==", "~=", "<", ">", "<=", ">=", "=", "+", "-",
					     ",",  ".",  "(", ")", "[",  "]",  "#", ";" };
	static const char *const names[] = { "x9",     "redis", "KEYS", "ARGV",  "not",    "and",
					     "or",     "if",    "then", "else",  "elseif", "end",
					     "return", "local", "true", "false", "nil",    "1" };
	char buffer[SCRIPT_BYTES_MAX];

	switch (word->kind) {
	case LUA_NUMBER:
		expect_other(text, changed(text, word, word->number == 1 ? "2" : "1", buffer, sizeof(buffer)),
			     is_index(word));
		expect_other(text, changed(text, word, word->number == 3 ? "4" : "3", buffer, sizeof(buffer)),
			     is_index(word));
		expect_other(text, changed(text, word, "", buffer, sizeof(buffer)), true);
		break;
	case LUA_STRING:
		for (size_t i = 0; i < COUNT(commands); i++)
			if (!is_same(word, commands[i]))
				expect_other(text, changed(text, word, commands[i], buffer, sizeof(buffer)), false);
		expect_other(text, changed(text, word, "type", buffer, sizeof(buffer)), true);
		break;
	case LUA_MARK:
		for (size_t i = 0; i < COUNT(marks); i++)
			if (!slice_eq(word->text, slice_of(marks[i])))
				expect_other(text, changed(text, word, marks[i], buffer, sizeof(buffer)), true);
		/* A minus may be missing before a number that is answered. */
		if (!lua_is(word, LUA_MARK, ";"))
			expect_other(text, changed(text, word, "", buffer, sizeof(buffer)),
				     !lua_is(word, LUA_MARK, "-"));
		break;
	case LUA_NAME:
		for (size_t i = 0; i < COUNT(names); i++)
			if (!is_same(word, names[i]) && (i || times(words, word) > 1))
				expect_other(text, changed(text, word, names[i], buffer, sizeof(buffer)), false);
		expect_other(text, changed(text, word, "", buffer, sizeof(buffer)), false);
		break;
	case LUA_HOLE:
	case LUA_END:
		break;
	}
}

static void change_each_word(const char *text)
{
	static struct lua_word words[LUA_WORDS_MAX + 1];

	assert_true(lua_words(slice_of(text), words));
	for (const struct lua_word *word = words; word->kind != LUA_END; word++)
		change_word(text, words, word);
}

TEST(each_word_counts)
{
	for (size_t i = 0; i < COUNT(catalogue); i++)
		change_each_word(catalogue[i].text);
}

TEST(each_word_counts_beside_names)
{
	static const char *const named[] = {
		"local key = KEYS[1] local value = ARGV[1] if redis.call('get', key) == value then return redis.call('del', key) "
		"end return 0",
		"local key, value, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2]) if redis.call('get', key) == value then "
		"return redis.call('pexpire', key, ttl) else return 0 end",
		"local value = tostring(ARGV[1]) local ttl = ARGV[2] local held = redis.pcall('get', KEYS[1]) "
		"if not held then redis.call('set', KEYS[1], value, 'EX', ttl) return 1 elseif held == value then "
		"redis.call('expire', KEYS[1], ttl) return 2 end return 0",
		"local id = ARGV[1] local ms = ARGV[2] for _, key in ipairs(KEYS) do if redis.call('get', key) ~= id then "
		"return 0 end end for _, key in ipairs(KEYS) do redis.call('set', key, id, 'PX', ms) end return #KEYS",
	};

	for (size_t i = 0; i < COUNT(named); i++)
		change_each_word(named[i]);
}

/* ---- limits and sentences ---- */

TEST(a_long_script_is_none)
{
	static const char script[] = IF_OURS "return redis.call('del', KEYS[1]) else return 0 end";
	char text[SCRIPT_BYTES_MAX + 1];
	struct script s;
	const char *why = NULL;

	memset(text, ' ', sizeof(text));
	memcpy(text, script, sizeof(script) - 1);
	assert_true(script_recognize((struct slice){ text, SCRIPT_BYTES_MAX }, &s, &why));
	assert_false(script_recognize((struct slice){ text, SCRIPT_BYTES_MAX + 1 }, &s, &why));
	assert_non_null(strstr(why, "4096 bytes"));
	memset(text, '(', sizeof(text));
	assert_false(script_recognize((struct slice){ text, SCRIPT_BYTES_MAX }, &s, &why));
}

TEST(words_are_bounded)
{
	static struct lua_word words[LUA_WORDS_MAX + 1];
	char text[2 * LUA_WORDS_MAX + 2];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 ? ' ' : 'a';
	assert_true(lua_words((struct slice){ text, 2 * LUA_WORDS_MAX }, words));
	assert_int_equal(words[LUA_WORDS_MAX].kind, LUA_END);
	assert_false(lua_words((struct slice){ text, 2 * LUA_WORDS_MAX + 1 }, words));
}

TEST(a_refusal_names_what_is_not_known)
{
	static const struct {
		const char *text, *word;
	} refused[] = {
		{ "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then return redis.call('hincrby', KEYS[1], ARGV[2], 1) end",
		  "Redisson" },
		{ "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], ARGV[1])", "published" },
		{ "redis.call(\"ZADD\", key, now + ttl, uniqueToken) local x = now[2] / 1000", "Symfony" },
		{ "return 1", "runs no Lua" },
		{ "return \\", "runs no Lua" },
	};
	struct script s;
	const char *why;

	for (size_t i = 0; i < COUNT(refused); i++) {
		assert_false(script_recognize(slice_of(refused[i].text), &s, &why));
		assert_non_null(strstr(why, refused[i].word));
	}
}
