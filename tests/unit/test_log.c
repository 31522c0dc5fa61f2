/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the log: their form, what no text can do to it, and how many of them pass. */
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define S INT64_C(1000000000)

/* ---- buckets ---- */

static struct log_buckets buckets;

static int empty_buckets(void **state)
{
	buckets = (struct log_buckets){ 0 };
	return 0;
}

#define BUCKETS(name) TEST_WITH(name, empty_buckets, NULL)

/* client_closed: five at once, and one more every two seconds. */
static int passed(const struct log_account *account, int times, int64_t now_ns)
{
	int count = 0;

	while (times-- > 0)
		count += log_buckets_pass(&buckets, LOG_EVENT_client_closed, account, now_ns);
	return count;
}

BUCKETS(as_many_pass_as_a_bucket_has_room_for)
{
	struct log_bucket held;

	assert_int_equal(passed(NULL, 5, 1), 5);
	assert_int_equal(buckets.holding, 0);
	assert_int_equal(passed(NULL, 1, 1), 0);
	assert_int_equal(buckets.holding, 1);
	assert_int_equal(passed(NULL, 9, 2 * S), 0);
	assert_int_equal(passed(NULL, 9, 2 * S + 1), 1);
	assert_int_equal(passed(NULL, 9, 20 * S), 5);
	assert_true(log_buckets_take(&buckets, false, 20 * S, &held));
	assert_true(held.held == 1 + 9 + 8 + 4 && held.event == LOG_EVENT_client_closed && !held.named);
	assert_false(log_buckets_take(&buckets, true, 20 * S, &held));
	assert_int_equal(buckets.holding, 0);
	/* Another kind has a bucket of its own. */
	assert_true(log_buckets_pass(&buckets, LOG_EVENT_accept_failed, NULL, 20 * S));
}

BUCKETS(what_is_held_back_is_told_ten_seconds_after_the_first_line)
{
	struct log_bucket held;

	passed(NULL, 6, 3 * S);
	assert_false(log_buckets_take(&buckets, false, 3 * S + LOG_TELL_NS - 1, &held));
	assert_true(log_buckets_take(&buckets, false, 3 * S + LOG_TELL_NS, &held));
	assert_int_equal(held.held, 1);
	passed(NULL, 9, 3 * S + LOG_TELL_NS);
	assert_true(log_buckets_take(&buckets, true, 3 * S + LOG_TELL_NS, &held));
}

BUCKETS(no_account_uses_up_the_lines_of_another)
{
	const struct log_account app = { 1000, { 0 } }, web = { 0, SLICE("web.service") },
				 mail = { 0, SLICE("mail.service") };
	struct log_bucket held;

	assert_int_equal(passed(&app, 100, 1), 5);
	assert_int_equal(passed(&web, 100, 1), 5);
	assert_int_equal(passed(&mail, 5, 1), 5);
	assert_int_equal(passed(NULL, 5, 1), 5);
	assert_int_equal(buckets.holding, 2);
	assert_true(log_buckets_take(&buckets, true, 1, &held));
	assert_true(held.named && held.uid == 1000 && held.unit_len == 0 && held.held == 95);
	assert_true(log_buckets_take(&buckets, true, 1, &held));
	assert_true(held.named && held.uid == 0 && held.unit_len == 11 && memcmp(held.unit, "web.service", 11) == 0);
}

/* The table is full at LOG_BUCKETS_MAX accounts; one more shares the bucket of the kind. */
BUCKETS(the_memory_for_accounts_is_bounded)
{
	struct log_account one = { 0, { 0 } };

	for (one.uid = 1; one.uid <= LOG_BUCKETS_MAX; one.uid++)
		assert_int_equal(passed(&one, 9, 1), 5);
	assert_int_equal(buckets.holding, LOG_BUCKETS_MAX);
	one.uid = 5000;
	assert_int_equal(passed(&one, 3, 1), 3);
	one.uid = 5001;
	assert_int_equal(passed(&one, 3, 1), 2);
	assert_int_equal(buckets.holding, LOG_BUCKETS_MAX + 1);
	assert_true(buckets.events[LOG_EVENT_client_closed].held == 1);
}

BUCKETS(a_bucket_that_is_full_again_makes_room)
{
	struct log_account one = { 0, { 0 } };

	for (one.uid = 1; one.uid <= LOG_BUCKETS_MAX; one.uid++)
		assert_int_equal(passed(&one, 5, 1), 5);
	one.uid = 5000;
	assert_int_equal(passed(&one, 9, 1 + 10 * S - 1), 5);
	assert_false(buckets.accounts[0].uid == 5000);
	one.uid = 5001;
	assert_int_equal(passed(&one, 9, 1 + 10 * S), 5);
	assert_true(buckets.accounts[0].uid == 5001);
}

BUCKETS(a_long_unit_is_told_from_one_that_begins_alike)
{
	char x[LOG_UNIT_MAX + 1], y[LOG_UNIT_MAX + 1];
	const struct log_account one = { 0, { x, sizeof(x) } }, other = { 0, { y, sizeof(y) } };
	struct log_bucket held;

	memset(x, 'u', sizeof(x));
	memset(y, 'u', sizeof(y));
	y[LOG_UNIT_MAX] = 'v';
	assert_int_equal(passed(&one, 6, 1), 5);
	assert_int_equal(passed(&other, 6, 1), 5);
	assert_true(log_buckets_take(&buckets, true, 1, &held));
	assert_int_equal(held.unit_len, LOG_UNIT_MAX);
}

/* ---- lines ---- */

static int set_up(void **state)
{
	unit_capture(STDERR_FILENO);
	log_setup(LOG_LEVEL_INFO, LOG_FORM_PLAIN);
	return 0;
}

static int tear_down(void **state)
{
	unit_captured();
	return 0;
}

#define LINE(name) TEST_WITH(name, set_up, tear_down)

/* What was logged since the last time. */
static const char *logged(void)
{
	const char *text = unit_captured();

	unit_capture(STDERR_FILENO);
	return text;
}

LINE(a_line_is_a_sentence_and_fields)
{
	log_info(znode_deleted, LOG_FIELDS("path=%v znode=%v", "/a", "b c"), "somebody deleted %s", "it");
	assert_string_equal(logged(), "info: somebody deleted it  event=znode_deleted path=/a znode=\"b c\"\n");
	log_warning(keeper_full, LOG_NO_FIELDS, "full");
	assert_string_equal(logged(), "warning: full  event=keeper_full\n");
	log_caused(LOG_LEVEL_ERROR, LOG_EVENT_client_closed, &(struct log_account){ 7, SLICE("a b.service") },
		   LOG_FIELDS("bytes=%d", 8), "closed");
	assert_string_equal(logged(), "error: closed  event=client_closed uid=7 unit=\"a b.service\" bytes=8\n");
	log_debug(stopped, LOG_NO_FIELDS, "not shown");
	assert_string_equal(logged(), "");
}

LINE(no_text_looks_like_a_field_or_a_line)
{
	log_info(conf_changed, LOG_FIELDS("error=%v", "x\" event=forged\n"),
		 "a  event=forged\nerror: \x1b[1m\xc2\x9b  \n\n");
	assert_string_equal(
		logged(), "info: a event=forged?error: ?[1m??  event=conf_changed error=\"x\\\" event=forged\\x0a\"\n");
	log_info(conf_changed, LOG_NO_FIELDS, "  blanks  first");
	assert_string_equal(logged(), "info: blanks first  event=conf_changed\n");
}

LINE(what_is_too_long_for_a_line_is_cut_at_a_field)
{
	static char sentence[5000], value[BYTES_SHOWN_MAX + 1];
	const char *line;

	memset(sentence, 's', sizeof(sentence) - 1);
	memset(value, ' ', BYTES_SHOWN_MAX);
	log_info(conf_changed, LOG_FIELDS("a=%v b=%v", value, "\n"), "%s", sentence);
	line = logged();
	assert_true(strlen(line) < 4096 && strstr(line, "ss  event=conf_changed a=\"  ") &&
		    strstr(line, " b=\"\\x0a\"\n"));
	memset(value, '\n', BYTES_SHOWN_MAX);
	log_info(conf_changed, LOG_FIELDS("a=%v b=%v c=%d", value, value, 1), "%s", sentence);
	line = logged();
	assert_true(strlen(line) < 4096 && strcmp(line + strlen(line) - 6, "\\x0a\"\n") == 0 && !strstr(line, " b="));
}

LINE(lines_that_are_held_back_are_counted)
{
	const struct log_account app = { 1000, { 0 } };

	for (int i = 0; i < 1239; i++)
		log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_refused, &app, LOG_NO_FIELDS, "refused");
	assert_true(log_holds_back());
	logged();
	log_tell_held(false);
	assert_string_equal(logged(), "");
	log_tell_held(true);
	assert_string_equal(logged(),
			    "warning: held back 1234 lines of the event client_refused  event=held_back uid=1000 "
			    "of=client_refused lines=1234\n");
	assert_false(log_holds_back());
	log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_refused, &app, LOG_NO_FIELDS, "refused");
	logged();
	log_tell_held(true);
	assert_non_null(strstr(logged(), "warning: held back 1 line of the event client_refused "));
}
