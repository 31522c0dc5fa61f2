/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children of a lock directory, and the names of ours, by the directory's flavour.
 *
 * Ours:  _c_SSSSSSSS-SSSS-8SSS-8SNN-NNNNNNNNNNNN-<tag>dddddddddd    kazoo: SSSSSSSSSSSSSSSSNNNNNNNNNNNNNNNN<tag>dddddddddd
 * The uuid carries the session id (S) and a nonce (N); its version nibble is 8, where Curator's have 4. The first bit of
 * the nonce's first N (of kazoo's names: of its third digit) says that only tries want the znode (sighting.h).
 * Numbers are compared unsigned, which keeps the order of creation across the wrap at 2^31.
 */
#pragma once

#include <stdint.h>

#include "core/znode/flavour.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

enum {
	CONTENDER_DIGITS = 10,
	CONTENDER_NAME_MAX = 64,              /* of ours, with the NUL */
};

/* The bit of a nonce that marks a try's znode. A session's first nonces, and all of older brokers, are below it. */
#define CONTENDER_TRY (UINT64_C(1) << 55)

/* From this number on the wrap is too near: no contender joins until the directory has been created again. */
#define CONTENDER_WRAP_NEAR ((uint32_t)INT32_MAX - (1u << 20))

struct contender {
	struct slice name; /* borrowed from the list */
	enum mode mode;    /* exclusive unless it is known to be a reader */
	bool known;        /* its name is of the directory's flavour; else it is waited for and reported */
	uint32_t seq;
};

/* False when `child` has no sequence number at its end: it cannot be a contender. */
bool contender_parse(struct slice child, enum flavour flavour, struct contender *c);
/* `a` goes before `b`. Two with the same number wait for each other: nobody is let in by a guess. */
bool contender_before(const struct contender *a, const struct contender *b);
/*
 * Appends the name to be created, without the number that the server adds: "_c_<uuid>-__WRIT__". The nonce differs for
 * each name of the session.
 */
void contender_name(struct bytes *out, int64_t session, uint64_t nonce, enum flavour flavour, enum mode mode);
/* The part of a name that may be shown, behind the session that made it; a name that no broker makes, as a whole. In a
 * directory it is as unique. */
struct slice contender_shown(struct slice child);
/* The child carries a uuid that this session made. */
bool contender_of_session(struct slice child, enum flavour flavour, int64_t session);
/* A broker made it for tries only. No other library makes such names. */
bool contender_tries(struct slice child, enum flavour flavour);
/* If brokers made both of them, one session did. */
bool contender_same_session(struct slice a, struct slice b, enum flavour flavour);
