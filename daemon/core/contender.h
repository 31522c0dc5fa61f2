/*
 * The children of a lock directory, and the names of ours.
 *
 * Ours:  _c_SSSSSSSS-SSSS-8SSS-8SNN-NNNNNNNNNNNN-__WRIT__dddddddddd
 * The uuid carries the session id (S) and a nonce (N); its version nibble is 8, where Curator's and kazoo's have 4.
 * Numbers are compared unsigned, which keeps the order of creation across the wrap at 2^31.
 */
#pragma once

#include <stdint.h>

#include "core/mode.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

enum {
	CONTENDER_UUID_LEN = 3 + 36,          /* with the "_c_" before it */
	CONTENDER_TAG_LEN = 1 + 8,            /* "-__WRIT__" */
	CONTENDER_DIGITS = 10,
	CONTENDER_NAME_MAX = 64,              /* of ours, with the NUL */
};

/* From here on the number is too near the wrap: nobody new joins until the directory was made anew. */
#define CONTENDER_WRAP_NEAR ((uint32_t)INT32_MAX - (1u << 20))

struct contender {
	struct slice name; /* borrowed from the list */
	enum mode mode;    /* what is not known to be a reader counts as exclusive */
	bool known;        /* a kind of the directory's flavour; else it is waited for and reported */
	uint32_t seq;
};

/* False when `child` has no sequence number at its end: it cannot be one. */
bool contender_parse(struct slice child, struct contender *c);
/* a goes before b. Of two with one number each waits for the other: nobody is let in by a guess. */
bool contender_before(const struct contender *a, const struct contender *b);
/* Appends the name asked for, without the number the server adds: "_c_<uuid>-__WRIT__". */
void contender_name(struct bytes *out, int64_t session, uint64_t nonce, enum mode mode);
/* The child carries a uuid that this session made. */
bool contender_of_session(struct slice child, int64_t session);
