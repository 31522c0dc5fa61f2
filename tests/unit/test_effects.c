/* SPDX-License-Identifier: Apache-2.0 */
/* Effects and their arena (effect.h); nothing above the port is linked. */
#include <string.h>

#include "tests/unit/unit.h"

#include "core/port/effect.h"

static struct effects e;

static int tear_down(void **state)
{
	effects_free(&e);
	assert_true(!e.list && !e.count && !e.cap && !e.arena.data);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, NULL, tear_down)

static struct span written(const char *text)
{
	bytes_text(&e.arena, text);
	return effects_take(&e);
}

static bool reads(struct span s, const char *text)
{
	return slice_eq(effects_slice(&e, s), slice_of(text));
}

TEST(effects_stand_in_order_and_are_blank)
{
	effects_add(&e, EFFECT_CLOSE)->conn = 7;
	effects_add(&e, EFFECT_ZK_OPEN);
	assert_int_equal(e.count, 2);
	assert_true(e.list[0].type == EFFECT_CLOSE && e.list[0].conn == 7);
	assert_true(e.list[1].type == EFFECT_ZK_OPEN && e.list[1].conn == 0 && e.list[1].text.len == 0);
}

TEST(a_reused_place_is_blank_too)
{
	struct effect *effect = effects_add(&e, EFFECT_REPLY);

	effect->lazy = true;
	effect->text = written("old");
	effects_clear(&e);
	effect = effects_add(&e, EFFECT_REPLY);
	assert_true(!effect->lazy && effect->text.len == 0);
}

/* However often the arena and the list move. */
TEST(bytes_are_found_after_the_arena_has_grown)
{
	enum { MANY = 1000 };

	effects_add(&e, EFFECT_PUSH)->text = written("first");
	for (int i = 0; i < MANY; i++)
		effects_add(&e, EFFECT_PUSH)->text = written("some more of what is said");
	effects_add(&e, EFFECT_PUSH)->text = written("last");
	assert_int_equal(e.count, MANY + 2);
	assert_true(reads(e.list[0].text, "first"));
	assert_true(reads(e.list[MANY].text, "some more of what is said"));
	assert_true(reads(e.list[MANY + 1].text, "last"));
}

TEST(an_empty_span_is_no_bytes_at_all)
{
	struct span none = written("");

	assert_null(effects_slice(&e, none).data);
	written("x");
	assert_null(effects_slice(&e, none).data);
	assert_int_equal(effects_slice(&e, none).len, 0);
}

TEST(a_line_for_the_log_is_what_was_written_since)
{
	written("before");
	bytes_text(&e.arena, "a line");
	effects_log(&e, EFFECT_LEVEL_WARNING, LOG_EVENT_forced, EFFECT_FIELDS("name=%v holders=%d", "a b", 3));
	assert_true(e.list[0].type == EFFECT_LOG && e.list[0].level == EFFECT_LEVEL_WARNING);
	assert_true(reads(e.list[0].text, "a line"));
	assert_true(reads(e.list[0].data, "name=\"a b\" holders=3") && e.list[0].log.event == LOG_EVENT_forced);
}

TEST(who_has_caused_a_line_stands_behind_its_fields)
{
	struct effect *line;

	written("before");
	line = effects_say(&e, EFFECT_LEVEL_INFO, granted, EFFECT_FIELDS("token=%d", 7), "granted");
	effects_caused(&e, line, 1000, SLICE("web.service"));
	assert_true(reads(line->text, "granted") && reads(line->data, "token=7web.service"));
	assert_true(line->log.caused && line->log.uid == 1000 && line->log.unit_len == 11);
	line = effects_say(&e, EFFECT_LEVEL_INFO, stopped, EFFECT_NO_FIELDS, "no fields");
	assert_true(line->data.len == 0 && !line->log.caused);
	effects_caused(&e, line, 0, SLICE(""));
	assert_true(line->data.len == 0 && line->log.caused && line->log.unit_len == 0);
}

TEST(a_sentence_takes_values_of_any_type)
{
	struct effect *line =
		effects_say(&e, EFFECT_LEVEL_INFO, stopped, EFFECT_NO_FIELDS, "%s holds %q for %d ms", "who", SLICE("a b"), 5);

	assert_true(reads(line->text, "who holds \"a b\" for 5 ms"));
	line = effects_say(&e, EFFECT_LEVEL_ERROR, stopped, EFFECT_NO_FIELDS, "nothing to fill in");
	assert_true(reads(line->text, "nothing to fill in"));
	assert_true(line->level == EFFECT_LEVEL_ERROR && e.count == 2);
}

TEST(a_long_text_is_given_away_if_nothing_is_behind_it)
{
	struct bytes given;

	written("other");
	effects_add(&e, EFFECT_PUSH)->text = written("first");
	assert_true(effects_give(&e, &e.list[0], &given));
	assert_true(slice_eq(bytes_view(&given), SLICE("otherfirst")) && e.list[0].text.at == strlen("other"));
	bytes_free(&given);
	effects_clear(&e);
	effects_add(&e, EFFECT_PUSH)->text = written("first");
	effects_add(&e, EFFECT_CLOSE);
	assert_false(effects_give(&e, &e.list[0], &given));
	effects_clear(&e);
	effects_add(&e, EFFECT_PUSH)->text = written("first");
	written("more");
	assert_false(effects_give(&e, &e.list[0], &given));
	assert_true(reads(e.list[0].text, "first"));
	effects_clear(&e);
	written("others");
	effects_add(&e, EFFECT_PUSH)->text = written("first"); /* who takes it would have more that is not its own */
	assert_false(effects_give(&e, &e.list[0], &given));
}

TEST(clearing_keeps_the_memory)
{
	const struct effect *list;
	const char *arena;

	effects_say(&e, EFFECT_LEVEL_INFO, stopped, EFFECT_NO_FIELDS, "text");
	list = e.list;
	arena = e.arena.data;
	effects_clear(&e);
	assert_true(e.count == 0 && e.arena.len == 0);
	effects_say(&e, EFFECT_LEVEL_INFO, stopped, EFFECT_NO_FIELDS, "more");
	assert_true(e.list == list && e.arena.data == arena);
	assert_true(reads(e.list[0].text, "more"));
}
