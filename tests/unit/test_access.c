/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of [access]: how they are written, and which of them counts. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "base/unit_name.h"
#include "core/port/access.h"

enum { RULES = 8 };

static struct rule list[RULES];
static struct access_rules rules = { .list = list };
static const uint32_t groups[] = { 100, 200 };
static struct access_peer peer;

static int begin(void **state)
{
	rules = (struct access_rules){ .list = list };
	peer = (struct access_peer){ .uid = 1000, .unit = SLICE("web.service"), .groups = groups, .group_count = 2,
				     .groups_known = true };
	return 0;
}

static int end(void **state)
{
	while (rules.count)
		rule_free(&list[--rules.count]);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static void add(const char *text)
{
	char error[RULE_ERROR_MAX];

	assert_true(rules.count < RULES);
	if (rule_parse(&list[rules.count], text, "file:1", error) < 0)
		fail_msg("%s: %s", text, error);
	rules.verbs |= list[rules.count++].verbs;
}

static bool may(enum rule_verb verb, const char *name)
{
	return access_may(&rules, &peer, verb, slice_of(name), NULL);
}

TEST(without_a_rule_others_holdings_are_left_alone)
{
	for (int verb = 0; verb < RULE_VERB_COUNT; verb++)
		assert_int_equal(may((enum rule_verb)verb, "a"), verb != RULE_revoke && verb != RULE_limit);
}

TEST(the_first_rule_that_matches_counts)
{
	const struct rule *rule;

	add("allow 1000 app/* lock");
	add("deny * * lock,shared");
	add("allow * * shared");
	assert_true(may(RULE_lock, "app/a"));
	assert_false(may(RULE_lock, "other"));
	assert_false(may(RULE_shared, "app/a"));
	assert_true(may(RULE_acquire, "other"));
	access_may(&rules, &peer, RULE_lock, SLICE("other"), &rule);
	assert_ptr_equal(rule, &list[1]);
	access_may(&rules, &peer, RULE_look, SLICE("other"), &rule);
	assert_null(rule);
}

TEST(a_rule_concerns_whom_it_names)
{
	static const struct { const char *who; bool concerned; } rows[] = {
		{ "*", true },          { "1000", true },      { "1001", false },      { "900-1000", true },
		{ "1000-1000", true },  { "1001-2000", false }, { "@200", true },      { "@300", false },
		{ "unit:web.service", true }, { "unit:db.service", false }, { "unit:web.servic.e", false },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "deny %s * lock", rows[i].who);
		add(text);
		if (may(RULE_lock, "a") == rows[i].concerned)
			fail_msg("%s", text);
		end(state);
		begin(state);
	}
}

TEST(who_is_of_no_unit_is_in_none)
{
	peer.unit = (struct slice){ 0 };
	add("deny unit:web.service * lock");
	add("allow unit:web.service * revoke");
	assert_true(may(RULE_lock, "a"));
	assert_false(may(RULE_revoke, "a"));
}

/* A process can end before its unit is read: it gets nothing by that. */
TEST(an_unknown_unit_is_the_one_that_is_denied)
{
	peer.unit = SLICE(UNIT_UNKNOWN);
	add("allow unit:web.service * revoke");
	add("deny unit:web.service a lock");
	add("allow unit:web.service a* shared");
	add("deny unit:db.service a* shared");
	assert_false(may(RULE_revoke, "a"));
	assert_false(may(RULE_lock, "a"));
	assert_true(may(RULE_lock, "b"));
	assert_false(may(RULE_shared, "a"));
	assert_int_equal(access_verbs(&rules, &peer), 1 << RULE_lock | 1 << RULE_shared);
}

/* Whatever groups are not known: nobody gets through for that. */
TEST(unknown_groups_are_those_that_are_denied)
{
	peer.groups_known = false;
	add("allow @300 * revoke");
	add("deny @300 * lock");
	add("deny @100 * shared");
	assert_false(may(RULE_revoke, "a"));
	assert_false(may(RULE_lock, "a"));
	assert_false(may(RULE_shared, "a"));
}

TEST(operators_may_do_everything)
{
	peer.operator = true;
	add("deny * * lock,revoke,limit,look");
	assert_true(may(RULE_lock, "a") && may(RULE_revoke, "a") && may(RULE_limit, "a") && may(RULE_look, "a"));
}

TEST(a_star_is_all_verbs)
{
	add("deny * a* *");
	for (int verb = 0; verb < RULE_VERB_COUNT; verb++)
		assert_false(may((enum rule_verb)verb, "a"));
	assert_true(may(RULE_campaign, "b"));
	assert_int_equal(list[0].verbs, (1 << RULE_VERB_COUNT) - 1);
}

TEST(root_is_a_user)
{
	peer.uid = 0;
	add("deny 0 * lock");
	assert_false(may(RULE_lock, "a"));
	assert_false(may(RULE_revoke, "a"));
}

TEST(a_rule_has_its_words_with_single_blanks)
{
	add("  allow\t@200   a?b*  LOCK,shared,Look ");
	assert_string_equal(list[0].text, "allow @200 a?b* LOCK,shared,Look");
	assert_string_equal(list[0].where, "file:1");
	assert_int_equal(list[0].verbs, 1 << RULE_lock | 1 << RULE_shared | 1 << RULE_look);
	assert_int_equal(list[0].low, 200);
}

TEST(what_is_no_rule_is_refused_with_a_sentence)
{
	static const struct { const char *text, *says; } rows[] = {
		{ "", "must be:" },
		{ "allow", "must be:" },
		{ "allow * *", "must be:" },
		{ "allow * * lock more", "must be:" },
		{ "permit * * lock", "must be:" },
		{ "ALLOW * * lock", "must be:" },
		{ "allow * * fly", "there is no verb \"fly\"" },
		{ "allow * * lock,", "after the last comma" },
		{ "allow * * ,lock", "there is no verb \"\"" },
		{ "allow * * lock,,look", "there is no verb \"\"" },
		{ "allow 2000-1000 * lock", "the range 2000-1000 is empty" },
		{ "allow 4294967295 * lock", "is neither a user" },
		{ "allow 99999999999 * lock", "is neither a user" },
		{ "allow -1 * lock", "is neither a user" },
		{ "allow 1000- * lock", "is neither a user" },
		{ "allow @ * lock", "is neither a user" },
		{ "allow unit:web * lock", "unit:web has no kind" },
	};
	char error[RULE_ERROR_MAX], text[RULE_TEXT_MAX + 2];
	struct rule r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(rule_parse(&r, rows[i].text, "f", error) < 0);
		if (!strstr(error, rows[i].says))
			fail_msg("%s: %s", rows[i].text, error);
		assert_null(r.text);
	}
	memset(text, ' ', sizeof(text));
	text[RULE_TEXT_MAX + 1] = '\0';
	assert_true(rule_parse(&r, text, "f", error) < 0);
	assert_non_null(strstr(error, "at most 2048 bytes"));
	memcpy(text, "deny * * lock", 13);
	text[RULE_TEXT_MAX] = '\0';
	assert_int_equal(rule_parse(&r, text, "f", error), 0);
	rule_free(&r);
}

TEST(a_name_is_resolved_later)
{
	add("deny alice * lock");
	assert_true(list[0].low > list[0].high);
	assert_int_equal(list[0].name.len, 5);
	assert_memory_equal(list[0].name.data, "alice", 5);
	assert_true(may(RULE_lock, "a"));
	list[0].low = list[0].high = 1000;
	assert_false(may(RULE_lock, "a"));
}
