#include "core/contender.h"

#include <assert.h>

static const char exclusive_tag[] = "__WRIT__", shared_tag[] = "__READ__";

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

bool contender_parse(struct slice child, struct contender *c)
{
	struct slice tag;
	size_t len;

	*c = (struct contender){ .name = child, .mode = MODE_EXCLUSIVE };
	if (!parse_seq(child, &c->seq, &len))
		return false;
	tag = (struct slice){ child.data, child.len - len };
	if (ends_with(tag, shared_tag))
		c->mode = MODE_SHARED;
	c->known = ends_with(tag, exclusive_tag) || ends_with(tag, shared_tag);
	return true;
}

bool contender_before(const struct contender *a, const struct contender *b)
{
	return a->seq <= b->seq;
}

/* Sixteen digits of the session go around the two fixed ones of a version 8 uuid. */
static void session_digits(int64_t session, char out[20])
{
	static const char hex[] = "0123456789abcdef";
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
}

void contender_name(struct bytes *out, int64_t session, uint64_t nonce, enum mode mode)
{
	static const char hex[] = "0123456789abcdef";
	char head[20];

	session_digits(session, head);
	bytes_text(out, "_c_");
	bytes_append(out, head, sizeof(head));
	bytes_char(out, hex[(uint64_t)session & 15]);
	bytes_hex(out, (nonce >> 48) & 0xff, 2);
	bytes_char(out, '-');
	bytes_hex(out, nonce & 0xffffffffffff, 12);
	bytes_char(out, '-');
	bytes_text(out, mode == MODE_SHARED ? shared_tag : exclusive_tag);
}

bool contender_of_session(struct slice child, int64_t session)
{
	static const char hex[] = "0123456789abcdef";
	char head[20];

	if (child.len < CONTENDER_UUID_LEN || memcmp(child.data, "_c_", 3) != 0)
		return false;
	session_digits(session, head);
	return memcmp(child.data + 3, head, sizeof(head)) == 0 &&
	       child.data[3 + sizeof(head)] == hex[(uint64_t)session & 15];
}
