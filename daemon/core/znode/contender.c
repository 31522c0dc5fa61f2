/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/contender.h"


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

/* How our names begin: each dot is a digit of the session. In a version 8 uuid they go around two fixed digits. */
static const char *beginning(enum flavour flavour)
{
	return flavour == FLAVOUR_KAZOO ? "................" : "_c_........-....-8...-8.";
}

/* The nonce in digits; it has a dash before and behind the last twelve in a uuid. */
static size_t nonce_len(enum flavour flavour)
{
	return flavour == FLAVOUR_KAZOO ? 16 : 2 + 1 + 12;
}

void contender_name(struct bytes *out, int64_t session, uint64_t nonce, enum flavour flavour, enum mode mode)
{
	int shift = 64;

	for (const char *at = beginning(flavour); *at; at++)
		if (*at == '.')
			bytes_hex(out, (uint64_t)session >> (shift -= 4) & 15, 1);
		else
			bytes_char(out, *at);
	if (flavour == FLAVOUR_KAZOO) {
		bytes_hex(out, nonce, 16);
	} else {
		bytes_hex(out, (nonce >> 48) & 0xff, 2);
		bytes_char(out, '-');
		bytes_hex(out, nonce & 0xffffffffffff, 12);
		bytes_char(out, '-');
	}
	bytes_text(out, flavour_tag(flavour, mode));
}

/*
 * The nonce in a name that has the form of our names and, unless `session` is NULL, the digits of that session. NULL: the
 * name has not. Sessions of one ensemble begin alike and end differently, so the last digits are compared first: a list may
 * have thousands of names.
 */
static const char *find_nonce(struct slice child, enum flavour flavour, const int64_t *session)
{
	const char *form = beginning(flavour);
	size_t len = strlen(form);
	uint64_t left = session ? (uint64_t)*session : 0;

	if (child.len < len + nonce_len(flavour))
		return NULL;
	for (size_t i = len; i-- > 0;) {
		if (form[i] != '.' && child.data[i] != form[i])
			return NULL;
		if (form[i] == '.' && session && child.data[i] != hex[left & 15])
			return NULL;
		left >>= form[i] == '.' ? 4 : 0;
	}
	return child.data + len;
}

/* Whether the first so many characters are digits, as those of our names of flavour kazoo; kazoo's own begin likewise. */
static bool begins_with_digits(struct slice child, size_t count)
{
	if (child.len < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!strchr(hex, child.data[i]) || !child.data[i])
			return false;
	return true;
}

struct slice contender_shown(struct slice child)
{
	size_t uuid = strlen(beginning(FLAVOUR_RW)) + nonce_len(FLAVOUR_RW) + 1;
	size_t digits = strlen(beginning(FLAVOUR_KAZOO)) + nonce_len(FLAVOUR_KAZOO);
	size_t cut = 0;

	if (child.len >= uuid && find_nonce(child, FLAVOUR_RW, NULL))
		cut = uuid;
	else if (begins_with_digits(child, digits))
		cut = digits;
	else
		return child;
	return (struct slice){ child.data + cut, child.len - cut };
}

bool contender_of_session(struct slice child, enum flavour flavour, int64_t session)
{
	return find_nonce(child, flavour, &session);
}

/* kazoo's own names are version 4 uuids, whose variant (8 to b) stands where our names have two zeros. */
bool contender_tries(struct slice child, enum flavour flavour)
{
	size_t zeros = flavour == FLAVOUR_KAZOO ? 2 : 0, at = strlen(beginning(flavour)) + zeros;
	char mark = at < child.len ? child.data[at] : '0';
	const char *nonce;

	/* Most names do not belong to tries, which one character shows. */
	if (!(mark >= '8' && mark <= '9') && !(mark >= 'a' && mark <= 'f'))
		return false;
	nonce = find_nonce(child, flavour, NULL);
	return nonce && memcmp(nonce, "00", zeros) == 0;
}

bool contender_same_session(struct slice a, struct slice b, enum flavour flavour)
{
	size_t len = strlen(beginning(flavour));

	return a.len >= len && b.len >= len && memcmp(a.data, b.data, len) == 0;
}
