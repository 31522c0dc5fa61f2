/* SPDX-License-Identifier: Apache-2.0 */
/* The codec: however the bytes come in, at every limit and one past it, and for hostile bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "protocol/resp.h"

enum { ARGS_MAX = 8, REQUEST_MAX = 256, VALUES_MAX = 32, REPLY_MAX = 256 };

/* What a whole stream is read as: "LOCK|a b;PING;" or, at its end, "!sentence" (broken) or "?" (more is needed). */
typedef void (*read_stream)(struct slice stream, size_t first, size_t step, struct bytes *seen);

/* A copy of exactly that size, so that a sanitizer sees each byte read past the end. */
static struct slice exact_copy(const char *data, size_t len)
{
	char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	if (len)
		memcpy(copy, data, len);
	return (struct slice){ copy, len };
}

/* One call of a reader with the bytes [from, to) of the stream, in memory of their own. */
typedef enum resp_result (*read_one)(void *reader, struct slice input, size_t *used, struct bytes *seen);

static void stream_through(read_one one, void *reader, struct slice stream, size_t first, size_t step,
			   struct bytes *seen)
{
	enum resp_result result = RESP_MORE;
	size_t from = 0, to = first < stream.len ? first : stream.len;

	for (;;) {
		struct slice input = exact_copy(stream.data + from, to - from);
		size_t used = SIZE_MAX;

		result = one(reader, input, &used, seen);
		free((void *)input.data);
		if (result == RESP_BROKEN)
			return;
		if (result == RESP_DONE) {
			assert_true(used > 0 && used <= to - from);
			from += used;
		} else if (to == stream.len) {
			break;
		} else {
			to = to + step < stream.len ? to + step : stream.len;
		}
	}
	if (from < stream.len)
		bytes_char(seen, '?');
}

static enum resp_result request_one(void *reader, struct slice input, size_t *used, struct bytes *seen)
{
	struct resp_reader *r = reader;
	enum resp_result result = resp_read_request(r, input, used);

	if (result == RESP_DONE) {
		for (size_t i = 0; i < r->argc; i++) {
			if (i)
				bytes_char(seen, '|');
			bytes_slice(seen, r->argv[i]);
		}
		bytes_char(seen, ';');
	} else if (result == RESP_BROKEN) {
		bytes_char(seen, '!');
		bytes_text(seen, r->error);
		assert_int_equal(resp_read_request(r, input, used), RESP_BROKEN);
	}
	return result;
}

static void read_requests(struct slice stream, size_t first, size_t step, struct bytes *seen)
{
	struct resp_reader r;

	resp_reader_init(&r, ARGS_MAX, REQUEST_MAX);
	stream_through(request_one, &r, stream, first, step, seen);
	resp_reader_deinit(&r);
}

/* A tree as text: arrays [..], maps {..}, pushes <..>, and that each subtree's span is right. */
static size_t show_value(const struct resp_value *v, struct bytes *seen)
{
	size_t at = 1, children = (size_t)v->integer * (v->type == RESP_MAP ? 2 : 1);

	switch (v->type) {
	case RESP_STATUS:
	case RESP_ERROR:
	case RESP_BULK:
	case RESP_DOUBLE:
		bytes_char(seen, "+-$,"[v->type == RESP_STATUS  ? 0
					: v->type == RESP_ERROR ? 1
					: v->type == RESP_BULK  ? 2
								: 3]);
		bytes_slice(seen, v->text);
		break;
	case RESP_INTEGER:
		bytes_char(seen, ':');
		bytes_int(seen, v->integer);
		break;
	case RESP_BOOL:
		bytes_text(seen, v->integer ? "#t" : "#f");
		break;
	case RESP_NIL:
		bytes_char(seen, '_');
		break;
	case RESP_ARRAY:
	case RESP_MAP:
	case RESP_PUSH:
		bytes_char(seen, v->type == RESP_ARRAY ? '[' : v->type == RESP_MAP ? '{' : '<');
		while (children--)
			at += show_value(v + at, seen);
		bytes_char(seen, v->type == RESP_ARRAY ? ']' : v->type == RESP_MAP ? '}' : '>');
		break;
	}
	bytes_char(seen, ' ');
	assert_int_equal(v->span, at);
	return at;
}

static enum resp_result reply_one(void *reader, struct slice input, size_t *used, struct bytes *seen)
{
	struct resp_replies *r = reader;
	enum resp_result result = resp_read_reply(r, input, used);

	if (result == RESP_DONE) {
		assert_int_equal(show_value(r->values, seen), r->count);
		bytes_char(seen, ';');
	} else if (result == RESP_BROKEN) {
		bytes_char(seen, '!');
		bytes_text(seen, r->error);
		assert_int_equal(resp_read_reply(r, input, used), RESP_BROKEN);
	}
	return result;
}

static void read_replies(struct slice stream, size_t first, size_t step, struct bytes *seen)
{
	struct resp_replies r;

	resp_replies_init(&r, VALUES_MAX, REPLY_MAX);
	stream_through(reply_one, &r, stream, first, step, seen);
	resp_replies_deinit(&r);
}

/* Whole, cut in two at every place, and byte by byte. */
static void expect_always(read_stream read, struct slice stream, const char *expected)
{
	for (size_t first = 0; first <= stream.len + 1; first++) {
		struct bytes seen = { 0 };
		bool dribble = first == stream.len + 1;

		read(stream, dribble ? 1 : first, dribble ? 1 : stream.len, &seen);
		bytes_char(&seen, '\0');
		assert_string_equal(seen.data, expected);
		bytes_free(&seen);
	}
}

#define REQUESTS(stream, expected) expect_always(read_requests, SLICE(stream), expected)
#define REPLIES(stream, expected) expect_always(read_replies, SLICE(stream), expected)

/* Each of the streams, which NULL ends, is broken with that sentence. */
static void expect_broken(read_stream read, const char *sentence, const char *const *streams)
{
	for (; *streams; streams++)
		expect_always(read, slice_of(*streams), sentence);
}

#define STREAMS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- requests ---- */

TEST(arrays_of_bulk_strings_are_requests)
{
	REQUESTS("*1\r\n$4\r\nPING\r\n", "PING;");
	REQUESTS("*3\r\n$4\r\nLOCK\r\n$1\r\na\r\n$0\r\n\r\n*1\r\n$4\r\nQUIT\r\n", "LOCK|a|;QUIT;");
	REQUESTS("*2\r\n$4\r\nECHO\r\n$4\r\n\r\n$1\r\n", "ECHO|\r\n$1;");
	REQUESTS("*2\r\n$4\r\nECHO\r\n$2\r\n\xff\xfe\r\n", "ECHO|\xff\xfe;");
	REQUESTS("", "");
}

TEST(empty_requests_are_skipped)
{
	REQUESTS("*0\r\n*-1\r\n\r\n\n  \r\nPING\r\n", ";;;;;PING;");
}

TEST(inline_requests_are_words)
{
	REQUESTS("PING\r\n", "PING;");
	REQUESTS("PING\n", "PING;");
	REQUESTS("  LOCK\ta  WAIT 0 \r\nPING\r\n", "LOCK|a|WAIT|0;PING;");
	REQUESTS("LOCK a*b\n*1\r\n$4\r\nPING\r\n", "LOCK|a*b;PING;");
}

TEST(inline_quotes_are_as_in_redis)
{
	REQUESTS("LOCK \"a b\"\r\n", "LOCK|a b;");
	REQUESTS("LOCK 'a b' \"c\"\r\n", "LOCK|a b|c;");
	REQUESTS("\"\\n\\r\\t\\b\\a\\\"\\\\\\q\"\n", "\n\r\t\b\a\"\\q;");
	REQUESTS("\"\\x41\\x4a\\x4A\\xzz\\x4\"\n", "AJJxzzx4;");
	REQUESTS("'it\\'s \\n \\x41'\n", "it's \\n \\x41;");
	REQUESTS("a\"b c\" d'e'\n", "ab c|de;");
	REQUESTS("ECHO \"\" ''\n", "ECHO||;");
	REQUESTS("\"a\" \"b\" \"c\" \"d e\" f\n\"g\"\n", "a|b|c|d e|f;g;");
}

TEST(unbalanced_quotes_break)
{
	expect_broken(read_requests, "!unbalanced quotes in request",
		      STREAMS("LOCK \"a\r\n", "LOCK 'a\r\n", "LOCK \"a\"b\r\n", "LOCK 'a\"b\" c\r\n",
			      "LOCK \"a\\\"\r\n", "\"a\\\n"));
}

TEST(half_requests_wait)
{
	REQUESTS("*", "?");
	REQUESTS("*2\r\n$4\r\nLOCK\r\n", "?");
	REQUESTS("*2\r\n$4\r\nLOCK\r\n$3\r\nab", "?");
	REQUESTS("*1\r\n$4\r\nPING\r\n*1\r", "PING;?");
	REQUESTS("PIN", "?");
}

TEST(bad_counts_break)
{
	expect_broken(read_requests, "!invalid multibulk length",
		      STREAMS("*-2\r\n", "*9\r\n", "*1000000000\r\n", "*99999999999999999999999\r\n",
			      "*9223372036854775807\r\n", "*01\r\n", "*-0\r\n", "*+1\r\n", "* 1\r\n", "*1 \r\n", "*1\n",
			      "*1\rx", "*\r\n", "*?\r\n"));
}

TEST(bad_lengths_break)
{
	expect_broken(read_requests, "!invalid bulk length",
		      STREAMS("*1\r\n$-1\r\n", "*1\r\n$-9223372036854775808\r\n", "*1\r\n$9223372036854775807\r\n",
			      "*1\r\n$18446744073709551615\r\n", "*1\r\n$4294967296\r\n", "*1\r\n$\r\n",
			      "*1\r\n$4x\r\n", "*1\r\n$04\r\n"));
	expect_broken(read_requests, "!a bulk string is longer than announced",
		      STREAMS("*1\r\n$2\r\nabc\r\n", "*1\r\n$2\r\nab\n\n"));
}

TEST(what_is_no_request_breaks)
{
	REQUESTS("*1\r\n*1\r\n$1\r\na\r\n", "!expected '$', got '*'");
	REQUESTS("*1\r\n:1\r\n", "!expected '$', got ':'");
	REQUESTS("*1\r\nPING\r\n", "!expected '$', got 'P'");
	REQUESTS("*1\r\n\x01", "!expected '$', got '\\x01'");
	REQUESTS("$4\r\nPING\r\n", "!expected '*' or a word, got '$'");
	REQUESTS("%1\r\n", "!expected '*' or a word, got '%'");
	REQUESTS(">1\r\n", "!expected '*' or a word, got '>'");
	REQUESTS("\x16\x03\x01", "!expected '*' or a word, got '\\x16'");
	REQUESTS("\0\0", "!expected '*' or a word, got '\\x00'");
	REQUESTS("PING\n\xff", "PING;!expected '*' or a word, got '\\xff'");
}

TEST(words_are_limited)
{
	REQUESTS("*8\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$1\r\nh\r\n",
		 "|||||||h;");
	REQUESTS("a b c d e f g h\n", "a|b|c|d|e|f|g|h;");
	REQUESTS("a b c d e f g h i\n", "!too many words in an inline request");
}

/* "*1\r\n$LLL\r\n" and its end are 12 bytes besides the word. */
static struct slice one_word_request(struct bytes *b, size_t total)
{
	bytes_text(b, "*1\r\n$");
	bytes_int(b, (int64_t)total - 12);
	bytes_text(b, "\r\n");
	while (b->len < total - 2)
		bytes_char(b, 'x');
	bytes_text(b, "\r\n");
	assert_int_equal(b->len, total);
	return bytes_view(b);
}

TEST(request_bytes_are_limited)
{
	struct bytes whole = { 0 }, past = { 0 }, line = { 0 };
	struct resp_reader r;
	size_t used;

	resp_reader_init(&r, ARGS_MAX, REQUEST_MAX);
	assert_int_equal(resp_read_request(&r, one_word_request(&whole, REQUEST_MAX), &used), RESP_DONE);
	assert_int_equal(used, REQUEST_MAX);
	/* The announcement is enough: the body is not waited for. */
	one_word_request(&past, REQUEST_MAX + 1);
	assert_int_equal(resp_read_request(&r, (struct slice){ past.data, 10 }, &used), RESP_BROKEN);
	resp_reader_deinit(&r);

	while (line.len < REQUEST_MAX - 1)
		bytes_char(&line, 'x');
	resp_reader_init(&r, ARGS_MAX, REQUEST_MAX);
	assert_int_equal(resp_read_request(&r, bytes_view(&line), &used), RESP_MORE);
	bytes_char(&line, '\n');
	assert_int_equal(resp_read_request(&r, bytes_view(&line), &used), RESP_DONE);
	assert_int_equal(used, REQUEST_MAX);
	line.data[REQUEST_MAX - 1] = 'x';
	bytes_char(&line, '\n');
	assert_int_equal(resp_read_request(&r, bytes_view(&line), &used), RESP_BROKEN);
	assert_string_equal(r.error, "too big inline request");
	resp_reader_deinit(&r);
	bytes_free(&whole);
	bytes_free(&past);
	bytes_free(&line);
}

TEST(inline_lines_end_at_64_kib_whatever_a_request_may_be)
{
	enum { LINE = 64 * 1024 };
	struct bytes line = { 0 };
	struct resp_reader r;
	size_t used;

	resp_reader_init(&r, ARGS_MAX, 1 << 20);
	while (line.len < LINE)
		bytes_char(&line, 'x');
	line.data[LINE - 1] = '\n';
	assert_int_equal(resp_read_request(&r, bytes_view(&line), &used), RESP_DONE);
	assert_int_equal(r.argv[0].len, LINE - 1);
	line.data[LINE - 1] = 'x';
	assert_int_equal(resp_read_request(&r, bytes_view(&line), &used), RESP_BROKEN);
	resp_reader_deinit(&r);
	bytes_free(&line);
}

TEST(an_announced_count_allocates_nothing)
{
	struct resp_reader r;
	size_t used;

	resp_reader_init(&r, (size_t)1 << 40, (size_t)1 << 50);
	assert_int_equal(resp_read_request(&r, SLICE("*1000000000000\r\n$1\r\na\r\n$500000000000000\r\n"), &used),
			 RESP_MORE);
	assert_true(r.argv_cap <= 64);
	resp_reader_deinit(&r);
}

/* Every prefix of a random stream is read as the whole stream is read: nothing is decided by where a read ended. */
TEST(junk_is_read_the_same_however_it_is_cut)
{
	static const char alphabet[] = "*$\r\n0123459-PINGa \"'\\x\0\xff:%>#_,=~(!+";
	uint64_t seed = 12345;

	for (int round = 0; round < 3000; round++) {
		char junk[48];
		struct bytes whole = { 0 };
		size_t len = 1 + (size_t)round % sizeof(junk);
		struct slice stream = { junk, len };

		for (size_t i = 0; i < len; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			junk[i] = alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
		}
		if (round % 2)
			junk[0] = "*$%~>:="[(seed >> 40) % 7];
		read_requests(stream, len, 1, &whole);
		bytes_char(&whole, '\0');
		expect_always(read_requests, stream, whole.data);
		bytes_clear(&whole);
		read_replies(stream, len, 1, &whole);
		bytes_char(&whole, '\0');
		expect_always(read_replies, stream, whole.data);
		bytes_free(&whole);
	}
}

TEST(requests_survive_a_round_trip)
{
	struct slice words[3] = { SLICE("LOCK"), SLICE(""), SLICE("a\r\n\0b") };
	struct bytes out = { 0 };
	struct resp_reader r;
	size_t used;

	resp_request(&out, 3, words);
	resp_reader_init(&r, ARGS_MAX, REQUEST_MAX);
	assert_int_equal(resp_read_request(&r, bytes_view(&out), &used), RESP_DONE);
	assert_int_equal(used, out.len);
	assert_int_equal(r.argc, 3);
	for (int i = 0; i < 3; i++)
		assert_true(slice_eq(r.argv[i], words[i]));
	resp_reader_deinit(&r);
	bytes_free(&out);
}

/* Lengths of one, two, and more digits, one after the other in the same memory. */
TEST(requests_of_any_length_are_read_as_written)
{
	static const size_t lengths[] = { 0, 9, 10, 99, 100, 999, 1000, 12345 };
	enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };
	struct slice words[LENGTHS];
	char *text = calloc(1, 12345);
	struct bytes out = { 0 };
	struct resp_reader r;
	size_t used, begin;

	resp_reader_init(&r, ARGS_MAX, 65536);
	for (size_t count = 1; count <= LENGTHS; count++) {
		words[count - 1] = (struct slice){ text, lengths[count - 1] };
		begin = out.len;
		resp_request(&out, count, words);
		assert_int_equal(resp_read_request(&r, (struct slice){ out.data + begin, out.len - begin }, &used),
				 RESP_DONE);
		assert_int_equal(used, out.len - begin);
		assert_int_equal(r.argc, count);
		for (size_t i = 0; i < count; i++)
			assert_true(slice_eq(r.argv[i], words[i]));
	}
	resp_reader_deinit(&r);
	bytes_free(&out);
	free(text);
}

static void read_long_requests(struct slice stream, size_t first, size_t step, struct bytes *seen)
{
	struct resp_reader r;

	resp_reader_init(&r, 100, 4096);
	stream_through(request_one, &r, stream, first, step, seen);
	resp_reader_deinit(&r);
}

/* More than the reader first has room for, in the same reader one after the other: in each the words stay in place. */
TEST(requests_of_many_words_may_come_in_parts)
{
	static const size_t counts[] = { 50, 3, 27, 1, 17 };
	struct bytes stream = { 0 }, expected = { 0 };

	for (size_t at = 0; at < sizeof(counts) / sizeof(*counts); at++) {
		size_t words = counts[at];

		bytes_char(&stream, '*');
		bytes_int(&stream, (int64_t)words);
		bytes_text(&stream, "\r\n");
		for (size_t i = 0; i < words; i++) {
			resp_bulk(&stream, (struct slice){ "abcdefghijklmnopqrstuvwxyz", (i + words) % 13 });
			bytes_append(&expected, "abcdefghijklmnopqrstuvwxyz", (i + words) % 13);
			bytes_char(&expected, i + 1 < words ? '|' : ';');
		}
		bytes_text(&stream, "GET inline\r\n");
		bytes_text(&expected, "GET|inline;");
	}
	bytes_char(&expected, '\0');
	expect_always(read_long_requests, bytes_view(&stream), expected.data);
	bytes_free(&stream);
	bytes_free(&expected);
}

/* Whole requests, as nearly all are, need no memory but for their words. */
TEST(only_a_request_in_parts_needs_its_places)
{
	struct resp_reader r;
	size_t used;

	resp_reader_init(&r, ARGS_MAX, REQUEST_MAX);
	assert_int_equal(resp_read_request(&r, SLICE("*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), &used), RESP_DONE);
	assert_int_equal(resp_read_request(&r, SLICE("*2\r\n"), &used), RESP_MORE);
	assert_null(r.starts);
	assert_int_equal(resp_read_request(&r, SLICE("*2\r\n$3\r\nGET\r\n"), &used), RESP_MORE);
	assert_non_null(r.starts);
	resp_reader_deinit(&r);
}

/* ---- replies ---- */

TEST(replies_of_resp2)
{
	REPLIES("+OK\r\n-ERR no\r\n:-5\r\n$2\r\nhi\r\n$-1\r\n*-1\r\n*0\r\n", "+OK ;-ERR no ;:-5 ;$hi ;_ ;_ ;[] ;");
	REPLIES("*2\r\n*1\r\n:1\r\n$0\r\n\r\n", "[[:1 ] $ ] ;");
	REPLIES(":9223372036854775807\r\n:-9223372036854775808\r\n", ":9223372036854775807 ;:-9223372036854775808 ;");
	REPLIES("+\r\n", "+ ;");
}

TEST(replies_of_resp3)
{
	REPLIES("_\r\n#t\r\n#f\r\n,1.5\r\n,inf\r\n(-123456789012345678901234567890\r\n",
		"_ ;#t ;#f ;,1.5 ;,inf ;$-123456789012345678901234567890 ;");
	REPLIES("=6\r\ntxt:hi\r\n!5\r\nERR x\r\n", "$hi ;-ERR x ;");
	REPLIES("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", "{+a :1 +b [_ ] } ;");
	REPLIES("~2\r\n:1\r\n:2\r\n>3\r\n+lost\r\n$1\r\na\r\n:7\r\n", "[:1 :2 ] ;<+lost $a :7 > ;");
	REPLIES("%0\r\n~0\r\n>0\r\n", "{} ;[] ;<> ;");
	REPLIES("*2\r\n*0\r\n%1\r\n*0\r\n*0\r\n", "[[] {[] [] } ] ;");
}

TEST(half_replies_wait)
{
	REPLIES("+OK", "?");
	REPLIES("+OK\r", "?");
	REPLIES(":1\r\n*2\r\n:1\r\n", ":1 ;?");
	REPLIES("$5\r\nab", "?");
}

TEST(bad_replies_break)
{
	expect_broken(read_replies, "!unknown type of a value", STREAMS("x\r\n", "|1\r\n", ";4\r\n"));
	expect_broken(read_replies, "!invalid integer",
		      STREAMS(":1x\r\n", ":9223372036854775808\r\n", ":-9223372036854775809\r\n"));
	expect_broken(read_replies, "!invalid bulk length", STREAMS("$?\r\n", "$-2\r\n", "=-1\r\n"));
	expect_broken(read_replies, "!invalid multibulk length",
		      STREAMS("*?\r\n", "%-1\r\n", "%4611686018427387905\r\n"));
	expect_broken(read_replies, "!a push within a reply", STREAMS("*1\r\n>1\r\n:1\r\n"));
	expect_broken(read_replies, "!invalid value", STREAMS("#x\r\n", "#\r\n", "_x\r\n", ",\r\n", "(12a\r\n"));
	expect_broken(read_replies, "!a verbatim string without its format", STREAMS("=2\r\nab\r\n"));
	expect_broken(read_replies, "!a bulk string is longer than announced", STREAMS("$1\r\nab\r\n"));
	expect_broken(read_replies, "!a line does not end as it should", STREAMS("+a\n", "+a\rb\r\n", "+\n"));
}

TEST(replies_are_limited)
{
	struct bytes b = { 0 }, seen = { 0 };

	for (int i = 0; i < RESP_DEPTH_MAX; i++)
		bytes_text(&b, "*1\r\n");
	bytes_text(&b, ":1\r\n");
	expect_always(read_replies, bytes_view(&b), "[[[[[[[[:1 ] ] ] ] ] ] ] ] ;");
	b.len -= 4;
	bytes_text(&b, "*1\r\n:1\r\n");
	expect_always(read_replies, bytes_view(&b), "!a reply is nested too deep");

	REPLIES("*33\r\n", "!invalid multibulk length");
	REPLIES("%17\r\n", "!invalid multibulk length");
	bytes_clear(&b);
	bytes_text(&b, "*31\r\n");
	for (int i = 0; i < 31; i++)
		bytes_text(&b, "*0\r\n");
	read_replies(bytes_view(&b), b.len, 1, &seen);
	assert_int_equal(seen.data[seen.len - 1], ';');
	bytes_free(&seen);
	bytes_clear(&b);
	bytes_text(&b, "*32\r\n");
	for (int i = 0; i < 32; i++)
		bytes_text(&b, "_\r\n");
	expect_always(read_replies, bytes_view(&b), "!too many values in a reply");

	REPLIES("$249\r\n", "!invalid bulk length");
	bytes_clear(&b);
	bytes_text(&b, "$248\r\n");
	while (b.len < REPLY_MAX - 2)
		bytes_char(&b, 'x');
	bytes_text(&b, "\r\n");
	read_replies(bytes_view(&b), b.len, 1, &seen);
	assert_int_equal(seen.data[seen.len - 1], ';');
	bytes_free(&seen);
	bytes_clear(&b);
	bytes_char(&b, '+');
	while (b.len < REPLY_MAX)
		bytes_char(&b, 'x');
	expect_always(read_replies, bytes_view(&b), "!too big a reply");
	bytes_free(&b);
}
