/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "name.h"

#include <assert.h>

/*
 * The code point at s[*at], *at moved past it; -1 when the bytes there are not UTF-8: a stray or missing
 * continuation, an overlong form, a surrogate, or beyond U+10FFFF.
 */
static int32_t utf8_next(struct slice s, size_t *at)
{
	unsigned char lead = (unsigned char)s.data[*at];
	int more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
	int32_t point = more == 0 ? lead : lead & (0x3f >> more);

	if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || s.len - *at <= (size_t)more)
		return -1;
	for (int i = 1; i <= more; i++) {
		unsigned char c = (unsigned char)s.data[*at + (size_t)i];

		if ((c & 0xc0) != 0x80)
			return -1;
		point = point << 6 | (c & 0x3f);
	}
	if ((more == 2 && point < 0x800) || (more == 3 && (point < 0x10000 || point > 0x10ffff)) ||
	    (point >= 0xd800 && point <= 0xdfff))
		return -1;
	*at += (size_t)more + 1;
	return point;
}

/* Eight bytes from ' ' to '~'. Below 0x80 nothing is carried from one byte to the next. */
static bool printable_word(const char *at)
{
	const uint64_t each = 0x0101010101010101u, high = each * 0x80;
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return ((word | (word + each)) & high) == 0 && (((word | high) - each * ' ') & high) == high;
}

/* Most names are such bytes, and none of them needs a look by itself. */
static bool is_printable(struct slice text)
{
	if (text.len < sizeof(uint64_t))
		return false;
	for (size_t at = 0; at + sizeof(uint64_t) <= text.len; at += sizeof(uint64_t))
		if (!printable_word(text.data + at))
			return false;
	return printable_word(text.data + text.len - sizeof(uint64_t));
}

bool name_is_text(struct slice text)
{
	size_t at = 0;

	if (is_printable(text))
		return true;
	while (at < text.len) {
		int32_t point;

		if (text.data[at] >= ' ' && text.data[at] <= '~') {
			at++;
			continue;
		}
		point = utf8_next(text, &at);
		if (point < 0x20 || (point >= 0x7f && point <= 0x9f))
			return false;
	}
	return true;
}

bool name_valid(struct slice name)
{
	if (name.len == 0 || name.len > NAME_BYTES_MAX || slice_eq(name, SLICE(".")) || slice_eq(name, SLICE("..")))
		return false;
	return name_is_text(name);
}

/* Does this byte stand for itself in a znode name (a leading dot does not)? */
static bool plain(char c, bool leading)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       (c == '.' && !leading);
}

void name_encode(struct slice name, struct bytes *znode)
{
	assert(name.len > 0 && name.len <= NAME_BYTES_MAX);
	bytes_reserve(znode, name.len * 3);
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.data[i];

		if (plain(name.data[i], i == 0)) {
			znode->data[znode->len++] = name.data[i];
		} else {
			znode->data[znode->len++] = '%';
			znode->data[znode->len++] = "0123456789ABCDEF"[c >> 4];
			znode->data[znode->len++] = "0123456789ABCDEF"[c & 15];
		}
	}
}

static int hex_upper(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool name_decode(struct slice znode, struct bytes *name)
{
	size_t begin = name->len;

	if (znode.len > NAME_BYTES_MAX * 3)
		return false;
	for (size_t i = 0; i < znode.len; i++) {
		int high, low;

		if (plain(znode.data[i], i == 0)) {
			bytes_char(name, znode.data[i]);
			continue;
		}
		if (znode.data[i] != '%' || znode.len - i < 3)
			goto foreign;
		high = hex_upper(znode.data[i + 1]);
		low = hex_upper(znode.data[i + 2]);
		/* A byte that stands for itself is never escaped: each name has one encoding. */
		if (high < 0 || low < 0 || plain((char)(high << 4 | low), i == 0))
			goto foreign;
		bytes_char(name, (char)(high << 4 | low));
		i += 2;
	}
	if (name->len > begin && name->len - begin <= NAME_BYTES_MAX)
		return true;
foreign:
	name->len = begin;
	return false;
}
