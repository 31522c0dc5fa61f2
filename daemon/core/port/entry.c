/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/entry.h"

#include <assert.h>
#include <string.h>

#include "protocol/bytes_format.h"
#include "protocol/number.h"

/* ---- writing ---- */

/* Room for the number of values, which stands before them and is known only at the end: mostly it has two digits. */
enum { HEAD_BYTES = 5 };

struct entry_writer entry_begin(struct bytes *out, const char *word)
{
	struct entry_writer w = { .out = out, .begin = out->len, .values = 1 };

	bytes_append(out, "*00\r\n", HEAD_BYTES);
	resp_status(out, word);
	return w;
}

/* There is room for it. */
static char *write_key(char *at, struct slice key)
{
	*at++ = '+';
	memcpy(at, key.data, key.len);
	at += key.len;
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

static void put_key(struct entry_writer *w, struct slice key)
{
	bytes_reserve(w->out, key.len + 3);
	w->out->len = (size_t)(write_key(w->out->data + w->out->len, key) - w->out->data);
	w->values += 2;
}

static void put_number(struct entry_writer *w, struct slice key, int64_t value)
{
	char digits[NUMBER_CHARS_MAX], *end = digits + sizeof(digits), *from, *at;

	if (!value)
		return;
	from = number_write(value, end);
	bytes_reserve(w->out, key.len + 3 + 1 + NUMBER_CHARS_MAX + 2);
	at = write_key(w->out->data + w->out->len, key);
	*at++ = ':';
	memcpy(at, from, (size_t)(end - from));
	at += end - from;
	*at++ = '\r';
	*at++ = '\n';
	w->out->len = (size_t)(at - w->out->data);
	w->values += 2;
}

static void put_text(struct entry_writer *w, struct slice key, struct slice text)
{
	if (!text.len)
		return;
	put_key(w, key);
	resp_bulk(w->out, text);
}

void entry_number(struct entry_writer *w, const char *key, int64_t value)
{
	put_number(w, slice_of(key), value);
}

void entry_text(struct entry_writer *w, const char *key, struct slice text)
{
	put_text(w, slice_of(key), text);
}

void entry_due(struct entry_writer *w, const char *key, const struct timer *t)
{
	if (!t->place)
		return;
	put_key(w, slice_of(key));
	resp_integer(w->out, t->due_ns);
}

void entry_list(struct entry_writer *w, const char *key, size_t count)
{
	put_key(w, slice_of(key));
	resp_array(w->out, count);
}

void entry_pairs(struct entry_writer *w, const struct entry_pairs *pairs)
{
	if (!pairs)
		return;
	bytes_slice(w->out, pairs->text);
	w->values += 2 * pairs->count;
}

static int64_t number_of(const struct field *f, const void *at)
{
	switch (f->type) {
	case FIELD_BOOL:
		return *(const bool *)at;
	case FIELD_U8:
		return *(const uint8_t *)at;
	case FIELD_I32:
		return *(const int32_t *)at;
	case FIELD_U32:
		return *(const uint32_t *)at;
	case FIELD_I64:
		return *(const int64_t *)at;
	case FIELD_U64:
		return (int64_t) * (const uint64_t *)at;
	case FIELD_BYTES:
		break;
	}
	return 0;
}

void entry_fields(struct entry_writer *w, const struct field *fields, size_t count, const void *from)
{
	for (const struct field *f = fields; f < fields + count; f++) {
		const void *at = (const char *)from + f->at;

		if (f->type == FIELD_BYTES)
			put_text(w, f->key, bytes_view(at));
		else
			put_number(w, f->key, number_of(f, at));
	}
}

void entry_end(struct entry_writer *w)
{
	char head[32];
	struct bytes line = { .data = head, .cap = sizeof(head) };
	size_t from = w->begin + HEAD_BYTES, len = w->out->len - from;

	resp_array(&line, w->values);
	if (line.len != HEAD_BYTES) {
		bytes_reserve(w->out, line.len);
		memmove(w->out->data + w->begin + line.len, w->out->data + from, len);
		w->out->len = w->begin + line.len + len;
	}
	memcpy(w->out->data + w->begin, line.data, line.len);
}

/* ---- reading ---- */

void entry_reader_init(struct entry_reader *r, struct slice text, struct bytes *why)
{
	resp_replies_init(&r->replies, text.len + 1, text.len + 1);
	r->rest = text;
	r->why = why;
}

void entry_reader_deinit(struct entry_reader *r)
{
	resp_replies_deinit(&r->replies);
}

/*
 * Most entries are numbers and texts with short keys. These are read here in one go, because nobody is served until all are
 * read; NULL, or false: it is something else, which resp_read_reply() reads, or refuses.
 */
enum { USUAL_DIGITS = 18, USUAL_LINE = 40 };

static const char *end_line(const char *at)
{
	return at[0] == '\r' && at[1] == '\n' ? at + 2 : NULL;
}

static const char *read_integer(const char *at, const char *end, int64_t *ret)
{
	bool negative = *at == '-';
	const char *first = at + negative;
	int64_t value = 0;

	if (end - first < USUAL_DIGITS + 2)
		return NULL;
	for (at = first; at < first + USUAL_DIGITS && *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (*at - '0');
	if (at == first || (*first == '0' && (negative || at > first + 1)))
		return NULL;
	*ret = negative ? -value : value;
	return end_line(at);
}

static const char *read_key(const char *at, const char *end, struct slice *ret)
{
	const char *first = at + 1;

	if (end - at < 1 + USUAL_LINE + 2 || *at != '+')
		return NULL;
	for (at = first; at < first + USUAL_LINE && *at != '\r' && *at != '\n'; at++)
		;
	*ret = (struct slice){ first, (size_t)(at - first) };
	return end_line(at);
}

/* There is room for the shortest of each kind. */
static const char *read_usual_value(const char *at, const char *end, struct resp_value *ret)
{
	int64_t len;

	*ret = (struct resp_value){ .span = 1 };
	if (*at == ':') {
		ret->type = RESP_INTEGER;
		return read_integer(at + 1, end, &ret->integer);
	}
	if (*at != '$')
		return NULL;
	at = read_integer(at + 1, end, &len);
	if (!at || len < 0 || end - at < 2 || len > end - at - 2)
		return NULL;
	ret->type = RESP_BULK;
	ret->text = (struct slice){ at, (size_t)len };
	return end_line(at + len);
}

static bool read_usual(struct entry_reader *r, struct entry *ret)
{
	const char *at = r->rest.data, *end = at + r->rest.len;
	int64_t count;

	if (end - at < USUAL_LINE || *at != '*')
		return false;
	at = read_integer(at + 1, end, &count);
	if (!at || count < 1 || (size_t)count > sizeof(r->usual) / sizeof(r->usual[0]) || count % 2 != 1)
		return false;
	at = read_key(at, end, &ret->word);
	for (int64_t i = 0; at && i < count - 1; i += 2) {
		r->usual[i] = (struct resp_value){ .type = RESP_STATUS, .span = 1 };
		at = read_key(at, end, &r->usual[i].text);
		at = at && at < end ? read_usual_value(at, end, &r->usual[i + 1]) : NULL;
	}
	if (!at)
		return false;
	ret->values = r->usual;
	ret->pairs = (size_t)(count - 1) / 2;
	ret->why = r->why;
	r->rest = (struct slice){ at, (size_t)(end - at) };
	return true;
}

/* A word, then a status and any value for each field. */
static bool has_shape(const struct resp_value *v)
{
	bool key = true;

	if (v->type != RESP_ARRAY || v->integer % 2 != 1 || v[1].type != RESP_STATUS)
		return false;
	for (const struct resp_value *at = v + 2; at < v + v->span; at += at->span, key = !key)
		if (key && at->type != RESP_STATUS)
			return false;
	return true;
}

bool entry_next(struct entry_reader *r, struct entry *ret)
{
	const struct resp_value *v;
	size_t used;

	if (!r->rest.len)
		return false;
	if (read_usual(r, ret))
		return true;
	if (resp_read_reply(&r->replies, r->rest, &used) != RESP_DONE || !has_shape(r->replies.values)) {
		bytes_text(r->why, "it is garbled");
		return false;
	}
	v = r->replies.values;
	*ret = (struct entry){ v[1].text, v + 2, (size_t)(v->integer - 1) / 2, r->why };
	r->rest.data += used;
	r->rest.len -= used;
	return true;
}

bool entry_refuse(const struct entry *e, const char *what)
{
	bytes_format(e->why, "%s of its entry %q", what, e->word);
	return false;
}

static bool refuse_key(const struct entry *e, struct slice key)
{
	bytes_format(e->why, "the %s of its entry %q cannot be", key, e->word);
	return false;
}

const struct resp_value *entry_value(const struct entry *e, const char *key)
{
	const struct slice wanted = slice_of(key);
	const struct resp_value *v = e->values;

	for (size_t i = 0; i < e->pairs; i++, v += 1 + v[1].span)
		if (slice_eq(v->text, wanted))
			return v + 1;
	return NULL;
}

static bool is_number(const struct resp_value *v, int64_t low, int64_t high)
{
	return v->type == RESP_INTEGER && v->integer >= low && v->integer <= high;
}

bool entry_get_number(const struct entry *e, const char *key, int64_t low, int64_t high, int64_t *ret)
{
	const struct resp_value *v = entry_value(e, key);

	*ret = v ? v->integer : 0;
	if (v ? !is_number(v, low, high) : low > 0)
		return refuse_key(e, slice_of(key));
	return true;
}

bool entry_get_flag(const struct entry *e, const char *key, bool *ret)
{
	int64_t number;
	bool good = entry_get_number(e, key, 0, 1, &number);

	*ret = number == 1;
	return good;
}

bool entry_get_text(const struct entry *e, const char *key, size_t longest, struct slice *ret)
{
	const struct resp_value *v = entry_value(e, key);

	*ret = v ? v->text : (struct slice){ 0 };
	if (v && (v->type != RESP_BULK || v->text.len > longest))
		return refuse_key(e, slice_of(key));
	return true;
}

const struct resp_value *entry_get_list(const struct entry *e, const char *key)
{
	const struct resp_value *v = entry_value(e, key);

	return v && v->type == RESP_ARRAY ? v : NULL;
}

bool entry_get_due(const struct entry *e, const char *key, struct heap *timers, struct timer *t)
{
	const struct resp_value *v = entry_value(e, key);

	if (!v)
		return true;
	if (!is_number(v, -ENTRY_INSTANT_MAX, ENTRY_INSTANT_MAX))
		return refuse_key(e, slice_of(key));
	heap_set(timers, t, v->integer);
	return true;
}

static void set_number(const struct field *f, void *at, int64_t value)
{
	switch (f->type) {
	case FIELD_BOOL:
		*(bool *)at = value != 0;
		break;
	case FIELD_U8:
		*(uint8_t *)at = (uint8_t)value;
		break;
	case FIELD_I32:
		*(int32_t *)at = (int32_t)value;
		break;
	case FIELD_U32:
		*(uint32_t *)at = (uint32_t)value;
		break;
	case FIELD_I64:
		*(int64_t *)at = value;
		break;
	case FIELD_U64:
		*(uint64_t *)at = (uint64_t)value;
		break;
	case FIELD_BYTES:
		break;
	}
}

/* The type is wide enough for it, too. */
static bool is_value_of(const struct field *f, const struct resp_value *v)
{
	int64_t low = INT64_MIN, high = INT64_MAX;

	if (f->type == FIELD_BYTES)
		return v->type == RESP_BULK && v->text.len <= (uint64_t)f->high;
	if (f->type == FIELD_U8 || f->type == FIELD_U32)
		low = 0;
	if (f->type == FIELD_U8)
		high = UINT8_MAX;
	if (f->type == FIELD_U32)
		high = UINT32_MAX;
	if (f->type == FIELD_I32) {
		low = INT32_MIN;
		high = INT32_MAX;
	}
	if (!is_number(v, low, high))
		return false;
	if (f->open && (v->integer == INT64_MIN || v->integer == INT64_MAX))
		return true;
	return v->integer >= f->low && v->integer <= f->high;
}

static void take_value(const struct field *f, const struct resp_value *v, void *at)
{
	if (f->type != FIELD_BYTES) {
		set_number(f, at, v->integer);
		return;
	}
	bytes_clear(at);
	bytes_slice(at, v->text);
}

/* Both are mostly in the same order: the search goes on where the last one ended. NULL: it is not in the table. */
static const struct field *field_of(const struct field *fields, size_t count, size_t *from, struct slice key)
{
	for (size_t i = 0, at = *from; i < count; i++, at++) {
		if (at == count)
			at = 0;
		if (slice_eq(fields[at].key, key)) {
			*from = at + 1;
			return &fields[at];
		}
	}
	return NULL;
}

bool entry_get_fields(const struct entry *e, const struct field *fields, size_t count, void *to)
{
	const struct resp_value *v = e->values;
	size_t from = 0;

	for (const struct field *f = fields; f < fields + count; f++) {
		if (f->type == FIELD_BYTES)
			bytes_clear((struct bytes *)((char *)to + f->at));
		else
			set_number(f, (char *)to + f->at, 0);
	}
	for (size_t i = 0; i < e->pairs; i++, v += 1 + v[1].span) {
		const struct field *f = field_of(fields, count, &from, v->text);

		if (f && !is_value_of(f, v + 1))
			return refuse_key(e, v->text);
		if (f)
			take_value(f, v + 1, (char *)to + f->at);
	}
	return true;
}

/* ---- the seal of a snapshot ---- */

static const char MAGIC[] = "lockbroker state ";

enum { MAGIC_BYTES = sizeof(MAGIC) - 1, LINE_BYTES = MAGIC_BYTES + 1 + 1 + 16 + 1 + 16 + 1 };

/* Four words at a time, each in a lane of its own: a processor works on all of them at once. */
enum { LANES = 4, LANES_BYTES = LANES * sizeof(uint64_t) };

static const uint64_t FACTORS[] = { 0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f };

static uint64_t rotate(uint64_t x, int bits)
{
	return (x << bits) | (x >> (64 - bits));
}

static inline void add_words(uint64_t lanes[LANES], const char *at)
{
	uint64_t words[LANES];

	memcpy(words, at, sizeof(words));
	for (int i = 0; i < LANES; i++)
		lanes[i] = rotate(lanes[i] + words[i] * FACTORS[1], 31) * FACTORS[0];
}

uint64_t seal_checksum(struct slice bytes)
{
	uint64_t lanes[LANES] = { 1, 2, 3, 4 }, sum = bytes.len;
	char last[LANES_BYTES] = { 0 };
	size_t at = 0;

	for (; bytes.len - at >= LANES_BYTES; at += LANES_BYTES)
		add_words(lanes, bytes.data + at);
	if (at < bytes.len)
		memcpy(last, bytes.data + at, bytes.len - at);
	add_words(lanes, last);
	for (int i = 0; i < LANES; i++)
		sum = rotate(sum ^ lanes[i], 27) * FACTORS[0] + FACTORS[1];
	return sum ^ sum >> 32;
}

static void write_line(struct bytes *line, int64_t version, struct slice body)
{
	bytes_format(line, "%s%d %x %x\n", MAGIC, version, body.len, seal_checksum(body));
}

size_t seal_begin(struct bytes *text)
{
	size_t begin = text->len;

	bytes_reserve(text, LINE_BYTES);
	text->len += LINE_BYTES;
	return begin;
}

void seal_end(struct bytes *text, size_t begin)
{
	struct slice body = { text->data + begin + LINE_BYTES, text->len - begin - LINE_BYTES };
	struct bytes line = { 0 };

	write_line(&line, SEAL_VERSION, body);
	assert(line.len == LINE_BYTES);
	memcpy(text->data + begin, line.data, line.len);
	bytes_free(&line);
}

/* False: it is no such line. */
static bool read_version(struct slice text, int64_t *ret)
{
	const char *at = text.data + MAGIC_BYTES, *end;

	if (text.len <= MAGIC_BYTES || memcmp(text.data, MAGIC, MAGIC_BYTES) != 0)
		return false;
	end = memchr(at, ' ', text.len - MAGIC_BYTES);
	return end && number_parse((struct slice){ at, (size_t)(end - at) }, ret);
}

struct slice seal_open(struct slice text, struct bytes *why)
{
	struct bytes line = { 0 };
	struct slice body;
	int64_t version;
	bool same;

	if (!read_version(text, &version)) {
		bytes_text(why, "it is not the state of a lockbrokerd");
		return (struct slice){ 0 };
	}
	if (version < SEAL_VERSION - 1 || version > SEAL_VERSION + 1) {
		bytes_format(why, "it is of version %d, and this lockbrokerd reads %d to %d", version, SEAL_VERSION - 1,
			     SEAL_VERSION + 1);
		return (struct slice){ 0 };
	}
	if (text.len < LINE_BYTES) {
		bytes_text(why, "it is cut short");
		return (struct slice){ 0 };
	}
	body = (struct slice){ text.data + LINE_BYTES, text.len - LINE_BYTES };
	write_line(&line, version, body);
	same = slice_eq(bytes_view(&line), (struct slice){ text.data, LINE_BYTES });
	bytes_free(&line);
	if (!same)
		bytes_text(why, "it is cut short or garbled");
	return same ? body : (struct slice){ 0 };
}
