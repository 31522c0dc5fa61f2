/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/contender.h"

#include <assert.h>

enum { UUID_LEN = 3 + 36 }; /* with the "_c_" before it */

static const char hex[] = "0123456789abcdef";

/* The number the server put at the end: ten digits, or a minus sign and ten past the wrap. */
static bool parse_seq(struct slice child, uint32_t *seq, size_t *len)
{
	uint64_t value = 0;
	size_t at;

	if (child.len <= CONTENDER_DIGITS)
		return false;
	at = child.len - CONTENDER_DIGITS;
	for (size_t i = at; i < child.len; i++) {
		if (child.data[i] < '0' || child.data[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(child.data[i] - '0');
	}
	*len = CONTENDER_DIGITS;
	*seq = (uint32_t)value;
	/* "-lock--2147483648": the sign of a wrapped number follows the tag, which itself may end in a dash. */
	if (child.data[at - 1] == '-' && value >= 1u << 30 && at >= 2 &&
	    (child.data[at - 2] == '_' || child.data[at - 2] == '-')) {
		*len = CONTENDER_DIGITS + 1;
		*seq = (uint32_t)-(int64_t)value;
	}
	return true;
}

static bool ends_with(struct slice s, const char *tail)
{
	size_t len = strlen(tail);

	return s.len >= len && memcmp(s.data + s.len - len, tail, len) == 0;
}

bool contender_parse(struct slice child, enum flavour flavour, struct contender *c)
{
	const char *shared = flavour_tag(flavour, MODE_SHARED);
	struct slice tag;
	size_t len;

	*c = (struct contender){ .name = child, .mode = MODE_EXCLUSIVE };
	if (!parse_seq(child, &c->seq, &len))
		return false;
	tag = (struct slice){ child.data, child.len - len };
	if (shared && ends_with(tag, shared))
		c->mode = MODE_SHARED;
	c->known = c->mode == MODE_SHARED || ends_with(tag, flavour_tag(flavour, MODE_EXCLUSIVE));
	return true;
}

bool contender_before(const struct contender *a, const struct contender *b)
{
	return a->seq <= b->seq;
}

/* Sixteen digits of the session go around the two fixed ones of a version 8 uuid. */
static void uuid_head(int64_t session, char out[21])
{
	uint64_t value = (uint64_t)session;
	char digits[16];

	for (int i = 15; i >= 0; i--, value >>= 4)
		digits[i] = hex[value & 15];
	memcpy(out, digits, 8);
	out[8] = '-';
	memcpy(out + 9, digits + 8, 4);
	out[13] = '-';
	out[14] = '8';
	memcpy(out + 15, digits + 12, 3);
	out[18] = '-';
	out[19] = '8';
	out[20] = digits[15];
}

static void append_uuid(struct bytes *out, struct contender_id id)
{
	char head[21];

	uuid_head(id.session, head);
	bytes_text(out, "_c_");
	bytes_append(out, head, sizeof(head));
	bytes_hex(out, (id.nonce >> 48) & 0xff, 2);
	bytes_char(out, '-');
	bytes_hex(out, id.nonce & 0xffffffffffff, 12);
	bytes_char(out, '-');
}

void contender_name(struct bytes *out, struct contender_id id, enum flavour flavour, enum mode mode)
{
	if (flavour == FLAVOUR_KAZOO) {
		bytes_hex(out, (uint64_t)id.session, 16);
		bytes_hex(out, id.nonce, 16);
	} else {
		append_uuid(out, id);
	}
	bytes_text(out, flavour_tag(flavour, mode));
}

/* kazoo's own names are version 4 uuids, whose variant (8 to b) stands where our names have two zeros. */
static bool has_nonce_mark(struct slice child, bool kazoo)
{
	const char *at = child.data + (kazoo ? 18 : 3 + 21);

	return (*at >= '8' && *at <= '9') || (*at >= 'a' && *at <= 'f');
}

bool contender_tries(struct slice child, enum flavour flavour)
{
	if (flavour == FLAVOUR_KAZOO)
		return child.len >= 32 && child.data[16] == '0' && child.data[17] == '0' && has_nonce_mark(child, true);
	return child.len >= UUID_LEN && memcmp(child.data, "_c_", 3) == 0 && memcmp(child.data + 3 + 13, "-8", 2) == 0 &&
	       memcmp(child.data + 3 + 18, "-8", 2) == 0 && has_nonce_mark(child, false);
}

bool contender_same_session(struct slice a, struct slice b, enum flavour flavour)
{
	size_t len = flavour == FLAVOUR_KAZOO ? 16 : 3 + 21;

	return a.len >= len && b.len >= len && memcmp(a.data, b.data, len) == 0;
}

static bool begins_with_session(struct slice child, int64_t session)
{
	uint64_t value = (uint64_t)session;

	if (child.len < 32)
		return false;
	for (int i = 15; i >= 0; i--, value >>= 4)
		if (child.data[i] != hex[value & 15])
			return false;
	return true;
}

bool contender_of_session(struct slice child, enum flavour flavour, int64_t session)
{
	char head[21];

	if (flavour == FLAVOUR_KAZOO)
		return begins_with_session(child, session);
	if (child.len < UUID_LEN || memcmp(child.data, "_c_", 3) != 0)
		return false;
	uuid_head(session, head);
	return memcmp(child.data + 3, head, sizeof(head)) == 0;
}
