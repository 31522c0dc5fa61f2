/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flight.h"

#include <string.h>

#include "base/log_event.h"
#include "base/mem.h"

static const struct {
	const char *word, *sentence, *who, *number, *text;
} kinds[] = {
#define X(name, sentence, who, number, text) { #name, sentence, who, number, text },
	FLIGHT_KINDS(X)
#undef X
};

/* Behind what is cut. */
static const char more[] = "...";

struct flight_ring *flight_new(size_t bytes, int64_t wall_ns)
{
	struct flight_ring *f;

	if (bytes < sizeof(*f) + sizeof(struct flight_record) + FLIGHT_TEXT_MAX)
		return NULL;
	f = mem_new_array(bytes, 1);
	f->size = bytes - sizeof(*f);
	f->wall_ns = wall_ns;
	return f;
}

void flight_free(struct flight_ring *f)
{
	mem_free(f);
}

/* ---- bytes of the ring ---- */

/* What stands at the place goes on at the beginning of the ring: so much of it stands before that. */
static size_t before_the_end(const struct flight_ring *f, uint64_t place, size_t len)
{
	size_t left = f->size - place % f->size;

	return len < left ? len : left;
}

static void write_at(struct flight_ring *f, uint64_t place, const void *data, size_t len)
{
	size_t before = before_the_end(f, place, len);

	memcpy(f->bytes + place % f->size, data, before);
	memcpy(f->bytes, (const char *)data + before, len - before);
}

static void read_at(const struct flight_ring *f, uint64_t place, void *ret, size_t len)
{
	size_t before = before_the_end(f, place, len);

	memcpy(ret, f->bytes + place % f->size, before);
	memcpy((char *)ret + before, f->bytes, len - before);
}

static struct flight_record record_at(const struct flight_ring *f, uint64_t place)
{
	struct flight_record r;

	read_at(f, place, &r, sizeof(r));
	return r;
}

/* ---- records ---- */

/* The end of what is longer is cut off, with the rest of a character that is cut. */
static size_t fitting(struct slice text)
{
	size_t most = FLIGHT_TEXT_MAX - strlen(more), len = most;

	if (text.len <= FLIGHT_TEXT_MAX)
		return text.len;
	while (len + 3 > most && ((unsigned char)text.data[len] & 0xc0) == 0x80)
		len--;
	return len;
}

void flight_note(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, int64_t number,
		 struct slice text)
{
	size_t fits = fitting(text), cut = fits < text.len ? strlen(more) : 0;
	struct flight_record r = { at_ns, who, number, (uint16_t)kind, (uint16_t)(fits + cut) };

	if (!f)
		return;
	/* At any moment, a crash finds whole records only. */
	for (; f->end + sizeof(r) + r.len - f->first > f->size; f->oldest++)
		f->first += sizeof(r) + record_at(f, f->first).len;
	write_at(f, f->end, &r, sizeof(r));
	if (fits)
		write_at(f, f->end + sizeof(r), text.data, fits);
	write_at(f, f->end + sizeof(r) + fits, more, cut);
	f->last = f->end;
	f->end += sizeof(r) + r.len;
	f->next++;
}

void flight_note_again(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, struct slice text)
{
	struct flight_record last;

	if (!f)
		return;
	last = record_at(f, f->last);
	if (f->next == 0 || last.kind != kind || last.who != who) {
		flight_note(f, kind, at_ns, who, 1, text);
		return;
	}
	last.number++;
	last.at_ns = at_ns;
	write_at(f, f->last, &last, sizeof(last));
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

struct flight_reader flight_read(const struct flight_ring *f, uint64_t most)
{
	struct flight_reader reader = { .ring = f, .left = f ? f->next - f->oldest : 0, .at = f ? f->first : 0 };

	for (; reader.left > most; reader.left--)
		reader.at += sizeof(struct flight_record) + record_at(f, reader.at).len;
	return reader;
}

size_t flight_line(struct flight_reader *reader, char line[FLIGHT_LINE_MAX])
{
	const struct flight_ring *f = reader->ring;
	char text[FLIGHT_TEXT_MAX];
	struct flight_record r;
	struct line l = { line };
	int64_t wall_ns;
	bool logged;

	if (reader->left == 0)
		return 0;
	r = record_at(f, reader->at);
	/* Who crashes may have written anywhere. */
	if (r.kind >= FLIGHT_KIND_COUNT || r.len > FLIGHT_TEXT_MAX) {
		reader->left = 0;
		return 0;
	}
	read_at(f, reader->at + sizeof(r), text, r.len);
	reader->at += sizeof(r) + r.len;
	reader->left--;
	logged = r.kind == FLIGHT_log && r.who >= 0 && r.who < LOG_EVENT_COUNT;
	wall_ns = f->wall_ns + r.at_ns;
	if (logged)
		put_sentence(&l, text, r.len);
	else
		put(&l, kinds[r.kind].sentence);
	put(&l, "  event=");
	put(&l, logged ? log_event_word((enum log_event)r.who) : kinds[r.kind].word);
	put(&l, " at=");
	put_digits(&l, (uint64_t)wall_ns / 1000000000, 1);
	put(&l, ".");
	put_digits(&l, (uint64_t)wall_ns % 1000000000 / 1000, 6);
	put_field(&l, kinds[r.kind].who, r.who);
	put_field(&l, kinds[r.kind].number, r.number);
	if (kinds[r.kind].text[0]) {
		put(&l, " ");
		put(&l, kinds[r.kind].text);
		put(&l, "=");
		put_quoted(&l, text, r.len);
	}
	return (size_t)(l.at - line);
}
