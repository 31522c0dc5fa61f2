/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests with as many bytes as a request may have, one for each way in which a command could look at the same bytes again
 * and again. In a build that counts steps (tests/steps/) an event that takes too many ends the test.
 */
#include "core_test.h"

#include <string.h>

#include "base/mem.h"
#include "protocol/commands.h"
#include "protocol/name.h"

enum { REQUEST = 60000, WORDS_MAX = 512 };

static const struct broker_setting settings[] = {
	{ "locks.linger_ms", "100" },
	{ "locks.handoff_max", "64" },
	{ "zookeeper.session_timeout_ms", "10000" },
};

static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.limits.locks = f->conf.limits.requests = f->conf.limits.grants = 4096;
	f->conf.settings = settings;
	f->conf.setting_count = sizeof(settings) / sizeof(*settings);
	return fixture_setup(f, 2, state);
}

static void ask(struct fixture *f, const struct slice *words, size_t count)
{
	bytes_clear(&f->replies[0]);
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_ASKED, .conn = 0, .asked = { count, words } });
	for (int i = 0; i < 1000 && broker_has_work(f->broker); i++)
		fixture_simple(f, EVENT_TIME, 0);
	assert_true(f->replies[0].len > 0);
}

/* `begin`, then so many bytes of `fill` again and again, then `end`. Freed by the caller. */
static char *text_of(const char *begin, const char *fill, size_t bytes, const char *end)
{
	size_t len = strlen(begin), step = strlen(fill);
	char *text = mem_new(len + bytes + step + strlen(end) + 1);

	memcpy(text, begin, len);
	for (; bytes >= step; bytes -= step, len += step)
		memcpy(text + len, fill, step);
	strcpy(text + len, end);
	return text;
}

TEST_IN(each_command_is_described_in_few_steps_and_no_more_are_than_there_are, setup)
{
	static const struct slice names[] = { SLICE("x"), SLICE("xxxx"), SLICE("xxxxxx"), SLICE("get"), SLICE("quit") };
	struct slice words[2 + COMMAND_COUNT + 1] = { SLICE("COMMAND") };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (size_t k = 2; k < sizeof(words) / sizeof(*words); k++)
			words[k] = names[i];
		words[1] = i % 2 ? SLICE("INFO") : SLICE("DOCS");
		ask(f, words, 2 + COMMAND_COUNT);
		assert_int_not_equal(f->replies[0].data[0], '-');
		ask(f, words, 2 + COMMAND_COUNT + 1);
		assert_int_equal(f->replies[0].data[0], '-');
	}
}

TEST_IN(a_long_pattern_takes_few_steps_for_a_long_name, setup)
{
	static const char *const patterns[][3] = {
		{ "*[", "b", "]" }, { "*[", "b-d", "]" }, { "*[^", "b-d", "]" },
		{ "", "*", "b" },   { "", "?", "" },      { "", "*[^b]", "" },
		{ "", "*a", "b" },  { "", "*a?", "b" },   { "", "[^b][\x01-\xff]", "*" },
	};
	char *name = text_of("", "a", NAME_BYTES_MAX, "");

	ask(f, (struct slice[]){ SLICE("LOCK"), slice_of(name) }, 2);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		for (size_t bytes = 500; bytes <= REQUEST; bytes *= 4) {
			char *pattern = text_of(patterns[i][0], patterns[i][1], bytes, patterns[i][2]);

			ask(f, (struct slice[]){ SLICE("LOCKS"), slice_of(pattern) }, 2);
			ask(f, (struct slice[]){ SLICE("LOCKS"), slice_of(pattern), SLICE("ALL") }, 3);
			mem_free(pattern);
		}
	mem_free(name);
}

TEST_IN(a_configuration_is_matched_with_few_patterns, setup)
{
	char *pattern = text_of("*[", "q", REQUEST / 16, "]");
	struct slice words[18] = { SLICE("CONFIG"), SLICE("GET") };

	for (size_t i = 2; i < 18; i++)
		words[i] = slice_of(pattern);
	ask(f, words, 18);
	fixture_expect(f, 0, "*0");
	mem_free(pattern);
}

TEST_IN(many_long_words_take_few_steps, setup)
{
	static const char *const commands[] = { "MLOCK",   "MUNLOCK", "DEL",     "EXISTS", "LOCK",     "HELLO",
						"CLIENT",  "ACCESS",  "NOTHING", "UNLOCK", "SET",      "LOCKS",
						"COMMAND", "LOG",     "REVOKE",  "SCRIPT", "CAMPAIGN", "ENQUEUE" };
	struct slice words[WORDS_MAX];
	char *names[WORDS_MAX];

	for (size_t i = 0; i < WORDS_MAX; i++) {
		char begin[8] = { (char)('a' + i % 26), (char)('a' + i / 26), 0 };

		names[i] = text_of(begin, "n", REQUEST / WORDS_MAX - 2, "");
		words[i] = slice_of(names[i]);
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		words[0] = slice_of(commands[i]);
		words[1] = SLICE("64"); /* of MLOCK and MUNLOCK: how many names */
		ask(f, words, WORDS_MAX);
		ask(f, words, 66);
		ask(f, words, 3);
	}
	for (size_t i = 0; i < WORDS_MAX; i++)
		mem_free(names[i]);
}

TEST_IN(a_long_word_takes_few_steps, setup)
{
	static const char *const commands[] = { "EVAL",   "EVALSHA", "SCRIPT", "ECHO",    "PING",
						"SET",    "GET",     "LOCK",   "REVOKE",  "CAMPAIGN",
						"CLIENT", "COMMAND", "ACCESS", "NOTHING", "MLOCK" };
	static const char *const second[] = { "LOAD", "SETNAME", "a", "INFO", "1" };
	static const char *const fills[] = { "a",  " ",   "(",        "if a then ", "redis.call('get',KEYS[1]) ",
					     "--", "'\\", "\xc3\xa4", "9" };

	for (size_t i = 0; i < sizeof(fills) / sizeof(*fills); i++) {
		char *text = text_of("return ", fills[i], REQUEST, "");

		for (size_t k = 0; k < sizeof(commands) / sizeof(*commands); k++) {
			ask(f, (struct slice[]){ slice_of(commands[k]), slice_of(text) }, 2);
			ask(f,
			    (struct slice[]){ slice_of(commands[k]), slice_of(text), SLICE("1"), SLICE("a"),
					      SLICE("b") },
			    5);
			for (size_t m = 0; m < sizeof(second) / sizeof(*second); m++)
				ask(f,
				    (struct slice[]){ slice_of(commands[k]), slice_of(second[m]), slice_of(text),
						      SLICE("NX") },
				    4);
			ask(f, (struct slice[]){ SLICE("RESET") }, 1);
		}
		mem_free(text);
	}
}
