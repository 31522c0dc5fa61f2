/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the journal: their form, that no text forges a field, and what becomes of them while the journal takes none. */
#include "base/journal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/bytes.h"
#include "protocol/bytes_format.h"
#include "tests/unit/unit.h"

/* ---- a journal ---- */

static char folder[64], path[96];
static int receiver;

static void begin_journal(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(receiver, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void end_journal(void)
{
	close(receiver);
	unlink(path);
}

static int set_up(void **state)
{
	strcpy(folder, "/tmp/lockbroker-journal.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	begin_journal();
	assert_int_equal(journal_open(path), 0);
	return 0;
}

static int tear_down(void **state)
{
	journal_close();
	end_journal();
	rmdir(folder);
	return 0;
}

#define JOURNAL(name) TEST_WITH(name, set_up, tear_down)

struct entry {
	char data[16384];
	size_t len;
	size_t fields; /* all of it is fields in the form with a length */
};

/* The next entry; false: there is none. */
static bool take(struct entry *e)
{
	ssize_t len = recv(receiver, e->data, sizeof(e->data), 0);

	e->len = len < 0 ? 0 : (size_t)len;
	e->fields = 0;
	return len >= 0;
}

/* The value of the field, which must be there `times` times, among fields that are all well-formed. */
static struct slice field(struct entry *e, const char *name, int times)
{
	struct slice found = { NULL, 0 };
	size_t at = 0;
	int count = 0;

	e->fields = 0;
	while (at < e->len) {
		const char *end = memchr(e->data + at, '\n', e->len - at);
		uint64_t len = 0;

		assert_non_null(end);
		assert_true((size_t)(end - e->data) + 9 <= e->len);
		for (int i = 0; i < 8; i++)
			len |= (uint64_t)(unsigned char)end[1 + i] << 8 * i;
		assert_true(len < e->len && (size_t)(end - e->data) + 9 + len < e->len);
		assert_int_equal(end[9 + len], '\n');
		if (strlen(name) == (size_t)(end - e->data) - at && memcmp(e->data + at, name, strlen(name)) == 0) {
			found = (struct slice){ end + 9, len };
			count++;
		}
		e->fields++;
		at = (size_t)(end - e->data) + 9 + len + 1;
	}
	assert_int_equal(at, e->len);
	assert_int_equal(count, times);
	return found;
}

static void assert_field(struct entry *e, const char *name, const char *value)
{
	assert_true(slice_is(field(e, name, 1), value));
}

/* The next entry has that message. */
static void expect_next(const char *message)
{
	struct entry e;

	assert_true(take(&e) || (journal_go_on(), take(&e)));
	assert_field(&e, "MESSAGE", message);
}

static void line(const char *text, bool may_be_dropped)
{
	journal_line(NULL, 6, slice_of(text), SLICE("event=test"), may_be_dropped);
}

JOURNAL(a_line_is_an_entry_with_its_fields)
{
	struct entry e;

	journal_line("0123", 4, SLICE("somebody deleted it  event=znode_deleted path=/a znode=\"b c\" other_host=web-1"),
		     SLICE("event=znode_deleted path=/a znode=\"b c\" other_host=web-1"), false);
	assert_true(take(&e));
	assert_field(&e, "MESSAGE", "somebody deleted it  event=znode_deleted path=/a znode=\"b c\" other_host=web-1");
	assert_field(&e, "PRIORITY", "4");
	assert_field(&e, "SYSLOG_IDENTIFIER", "lockbrokerd");
	assert_field(&e, "LOCKBROKER_EVENT", "znode_deleted");
	assert_field(&e, "LOCKBROKER_PATH", "/a");
	assert_field(&e, "LOCKBROKER_ZNODE", "b c");
	assert_field(&e, "LOCKBROKER_OTHER_HOST", "web-1");
	assert_field(&e, "MESSAGE_ID", "0123");
	assert_int_equal(e.fields, 8);
	assert_false(take(&e));
}

/* Any bytes, quoted as bytes_format() has them in the text of the fields, are the bytes of one field. */
JOURNAL(no_text_forges_a_field)
{
	static const char worst[] = "x\nMESSAGE=forged\n\"\\ \x01\xff=LOCKBROKER_TOKEN=1\nLOCKBROKER_TOKEN\n\x01";
	struct bytes fields = { 0 };
	struct entry e;
	unsigned int seed = 1;

	for (int round = 0; round < 3000; round++) {
		char name[200];
		size_t len = round ? (size_t)rand_r(&seed) % sizeof(name) : sizeof(worst);
		struct slice text = { name, len };

		for (size_t i = 0; i < len; i++)
			name[i] = round ? (char)(round % 2 ? rand_r(&seed) : "\"\\\n =x"[rand_r(&seed) % 6]) : worst[i];
		bytes_clear(&fields);
		bytes_format(&fields, "event=granted name=%v token=%d command=%v", text, 7, text);
		journal_line(NULL, 6, SLICE("granted"), bytes_view(&fields), true);
		assert_true(take(&e));
		assert_true(slice_eq(field(&e, "LOCKBROKER_NAME", 1), text));
		assert_true(slice_eq(field(&e, "LOCKBROKER_COMMAND", 1), text));
		assert_field(&e, "LOCKBROKER_TOKEN", "7");
		assert_field(&e, "MESSAGE", "granted");
		assert_int_equal(e.fields, 7);
	}
	bytes_free(&fields);
}

/* How many lines the queue of the socket takes. */
static int fill(void)
{
	int lines = 0;

	while (!journal_waits()) {
		line("fills", false);
		lines++;
	}
	return lines;
}

JOURNAL(what_the_queue_does_not_take_waits_and_comes_in_order)
{
	int lines = fill();
	char text[32];
	struct entry e;

	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof(text), "line %d", i);
		line(text, i % 2);
	}
	for (int i = 0; i < lines; i++)
		expect_next("fills");
	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof(text), "line %d", i);
		expect_next(text);
	}
	journal_go_on();
	assert_false(journal_waits() || take(&e));
}

JOURNAL(a_line_does_not_pass_those_that_wait)
{
	struct entry e;
	int lines = fill();

	line("late", false);
	for (int i = 1; i < lines; i++)
		assert_true(take(&e));
	line("later", false);
	assert_true(take(&e));
	assert_field(&e, "MESSAGE", "fills");
	assert_true(take(&e));
	assert_field(&e, "MESSAGE", "late");
	assert_true(take(&e));
	assert_field(&e, "MESSAGE", "later");
}

JOURNAL(a_journal_that_is_gone_gets_everything_when_it_is_back)
{
	struct entry e;

	end_journal();
	line("while it was gone", false);
	assert_true(journal_waits());
	journal_go_on();
	assert_true(journal_waits());
	begin_journal();
	journal_go_on();
	assert_false(journal_waits());
	assert_true(take(&e));
	assert_field(&e, "MESSAGE", "while it was gone");
	assert_false(take(&e));
}

/*
 * Reads until the line that tells how many were left out, and returns their number. The other lines are counted by
 * their first letter.
 */
static int read_all(int counts[256])
{
	struct entry e;

	for (;;) {
		if (!take(&e)) {
			journal_go_on();
			continue;
		}
		if (slice_is(field(&e, "LOCKBROKER_EVENT", 1), "unread"))
			return atoi(field(&e, "LOCKBROKER_LINES", 1).data);
		counts[(unsigned char)*field(&e, "MESSAGE", 1).data]++;
	}
}

static void long_lines(char letter, int lines, bool may_be_dropped)
{
	static char text[4000];

	memset(text, letter, sizeof(text) - 1);
	for (int i = 0; i < lines; i++)
		line(text, may_be_dropped);
}

JOURNAL(grants_make_room_and_are_counted_and_nothing_else_is_dropped)
{
	int counts[256] = { 0 }, left_out;

	end_journal();
	long_lines('g', 200, true); /* 800,000 bytes */
	long_lines('l', 30, false);
	begin_journal();
	left_out = read_all(counts);
	assert_int_equal(counts['l'], 30);
	assert_int_equal(counts['g'] + left_out, 200);
	assert_true(counts['g'] > 0 && left_out > 130);
}

JOURNAL(beyond_its_room_even_losses_are_left_out_and_counted)
{
	int counts[256] = { 0 }, left_out;

	end_journal();
	long_lines('l', 100, false);
	begin_journal();
	left_out = read_all(counts);
	assert_true(counts['l'] >= 60 && counts['l'] * 4000 <= JOURNAL_WAITING_MAX);
	assert_int_equal(counts['l'] + left_out, 100);
}

JOURNAL(what_is_left_at_the_end_goes_to_stderr)
{
	unit_capture(STDERR_FILENO);
	end_journal();
	journal_line(NULL, 3, SLICE("the last words  event=stopped"), SLICE("event=stopped"), false);
	journal_close();
	assert_string_equal(unit_captured(), "<3>the last words  event=stopped\n");
	begin_journal();
	assert_int_equal(journal_open(path), 0);
}

JOURNAL(an_instance_has_an_identifier_of_its_own)
{
	struct entry e;

	journal_close();
	setenv("LOCKBROKER_LOG_IDENTIFIER", "lockbrokerd@one", 1);
	assert_int_equal(journal_open(path), 0);
	line("x", false);
	assert_true(take(&e));
	assert_field(&e, "SYSLOG_IDENTIFIER", "lockbrokerd@one");
	unsetenv("LOCKBROKER_LOG_IDENTIFIER");
}

JOURNAL(only_the_stderr_that_is_named_is_the_journal)
{
	char text[64];
	struct stat st;

	unsetenv("JOURNAL_STREAM");
	assert_false(journal_is_stderr());
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", text, 1);
	assert_true(journal_is_stderr());
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino + 1);
	setenv("JOURNAL_STREAM", text, 1);
	assert_false(journal_is_stderr());
	unsetenv("JOURNAL_STREAM");
}
