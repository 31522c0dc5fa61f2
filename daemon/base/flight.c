/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flight.h"

#include <string.h>

#include "base/log_event.h"
#include "base/mem.h"

_Static_assert(sizeof(struct flight_record) == 128, "a record has two lines of the cache");

static const struct {
	const char *word, *sentence, *who, *number, *text;
} kinds[] = {
#define X(name, sentence, who, number, text) { #name, sentence, who, number, text },
	FLIGHT_KINDS(X)
#undef X
};

static const char *const events[] = {
#define X(name, burst, every_ms) #name,
	LOG_EVENTS(X)
#undef X
};

struct flight_ring *flight_new(size_t bytes, int64_t wall_ns)
{
	struct flight_ring *f;

	if (bytes < sizeof(*f) + sizeof(struct flight_record))
		return NULL;
	f = mem_new_array(bytes, 1);
	f->size = (bytes - sizeof(*f)) / sizeof(struct flight_record);
	f->wall_ns = wall_ns;
	return f;
}

void flight_free(struct flight_ring *f)
{
	mem_free(f);
}

void flight_note(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, int64_t number,
		 struct slice text)
{
	struct flight_record *r;

	if (!f)
		return;
	r = &f->records[f->next++ % f->size];
	r->at_ns = at_ns;
	r->who = who;
	r->number = number;
	r->kind = (uint16_t)kind;
	r->len = (uint16_t)(text.len < FLIGHT_TEXT_MAX ? text.len : FLIGHT_TEXT_MAX);
	if (r->len)
		memcpy(r->text, text.data, r->len);
}

void flight_note_again(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, struct slice text)
{
	struct flight_record *last;

	if (!f)
		return;
	last = f->next ? &f->records[(f->next - 1) % f->size] : NULL;
	if (!last || last->kind != kind || last->who != who) {
		flight_note(f, kind, at_ns, who, 1, text);
		return;
	}
	last->number++;
	last->at_ns = at_ns;
}

uint64_t flight_oldest(const struct flight_ring *f)
{
	return f->next > f->size ? f->next - f->size : 0;
}

/* ---- a record as text, without what allocates or is of stdio ---- */

/* A record of a kind, its event and its keys fit for sure: this is only for the text. */
struct line {
	char *at;
};

static void put(struct line *l, const char *text)
{
	size_t len = strlen(text);

	memcpy(l->at, text, len);
	l->at += len;
}

static void put_digits(struct line *l, uint64_t value, int least)
{
	char digits[24];
	int count = 0;

	while (value || count < least) {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	}
	while (count > 0)
		*l->at++ = digits[--count];
}

static void put_number(struct line *l, int64_t value)
{
	if (value < 0)
		*l->at++ = '-';
	put_digits(l, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

static void put_quoted(struct line *l, const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";

	*l->at++ = '"';
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < ' ' || c > '~') {
			put(l, "\\x");
			*l->at++ = hex[c >> 4];
			*l->at++ = hex[c & 15];
			continue;
		}
		if (c == '"' || c == '\\')
			*l->at++ = '\\';
		*l->at++ = (char)c;
	}
	*l->at++ = '"';
}

/* The sentence of a line: it has no field of its own, and so must not look as if it had. */
static void put_sentence(struct line *l, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == ' ' && (i + 1 == len || text[i + 1] == ' '))
			continue;
		*l->at++ = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	}
}

static void put_field(struct line *l, const char *key, int64_t value)
{
	if (!key[0])
		return;
	put(l, " ");
	put(l, key);
	put(l, "=");
	put_number(l, value);
}

size_t flight_line(const struct flight_ring *f, uint64_t number, char line[FLIGHT_LINE_MAX])
{
	const struct flight_record *r = &f->records[number % f->size];
	struct line l = { line };
	int64_t wall_ns;
	bool logged;

	if (number < flight_oldest(f) || number >= f->next || r->kind >= FLIGHT_KIND_COUNT || r->len > FLIGHT_TEXT_MAX)
		return 0;
	logged = r->kind == FLIGHT_log && r->who >= 0 && r->who < LOG_EVENT_COUNT;
	wall_ns = f->wall_ns + r->at_ns;
	if (logged)
		put_sentence(&l, r->text, r->len);
	else
		put(&l, kinds[r->kind].sentence);
	put(&l, "  event=");
	put(&l, logged ? events[r->who] : kinds[r->kind].word);
	put(&l, " at=");
	put_digits(&l, (uint64_t)wall_ns / 1000000000, 1);
	put(&l, ".");
	put_digits(&l, (uint64_t)wall_ns % 1000000000 / 1000, 6);
	put_field(&l, kinds[r->kind].who, r->who);
	put_field(&l, kinds[r->kind].number, r->number);
	if (kinds[r->kind].text[0]) {
		put(&l, " ");
		put(&l, kinds[r->kind].text);
		put(&l, "=");
		put_quoted(&l, r->text, r->len);
	}
	return (size_t)(l.at - line);
}
