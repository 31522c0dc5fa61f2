/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * RESP, the Redis serialization protocol, versions 2 and 3, and inline requests. Pure: bytes in, values out.
 *
 * Reading is incremental: the caller keeps the bytes that were not consumed and passes them again with the bytes that
 * came since; the reader remembers how far it looked, so that the work is linear however the bytes dribble in. Limits are
 * checked on the announced lengths, before the reader waits for a body. After RESP_BROKEN the stream cannot be trusted
 * any longer: the caller answers once and closes it.
 */
#pragma once

#include <stdint.h>

#include "bytes.h"
#include "errors.h"
#include "slice.h"

enum resp_result {
	RESP_MORE,   /* not whole yet */
	RESP_DONE,
	RESP_BROKEN, /* ->error says why, to follow "Protocol error: " */
};

/* Requests (the daemon's side): an array of bulk strings, or one line of words with Redis's quoting. */
struct resp_reader {
	size_t args_max;      /* words in a request */
	size_t request_bytes_max; /* the whole request, framing included; an inline line at most 64 KiB too */
	const char *error;    /* after RESP_BROKEN: a sentence, lives as long as the reader */
	/* After RESP_DONE, until the next call: the words. They point into the input (inline words with quotes
	 * into the reader's own memory). argc 0: an empty request, to be skipped. */
	struct slice *argv;
	size_t argc;
	/* Private. */
	enum { RESP_AT_START, RESP_IN_WORDS, RESP_IN_LINE } state;
	size_t at;            /* all before it is understood */
	size_t announced;     /* words of the request */
	int64_t length;       /* of the word at `at`; -1: it is not here yet */
	size_t argv_cap;
	/* Where in the input the first words of a request that came in parts are: it may move between calls. */
	size_t *starts, starts_cap, started;
	struct bytes scratch; /* words without their quotes; a sentence that is not static */
};

void resp_reader_init(struct resp_reader *r, size_t args_max, size_t request_bytes_max);
void resp_reader_deinit(struct resp_reader *r);
/* Bytes that it keeps besides the input: for each word, and for words whose quotes were taken off. */
size_t resp_reader_memory(const struct resp_reader *r);
/* `input` starts at the first byte not consumed. On RESP_DONE *used bytes belong to this request. */
enum resp_result resp_read_request(struct resp_reader *r, struct slice input, size_t *used);

/* Writing. `version` is 2 or 3 where the two differ. */
void resp_status(struct bytes *out, const char *text);
/* CR and LF in the sentence become spaces: a reply is one line whatever a client put into it. */
void resp_error(struct bytes *out, enum error_code code, struct slice sentence);
void resp_integer(struct bytes *out, int64_t value);
void resp_bulk(struct bytes *out, struct slice text);
void resp_nil(struct bytes *out, int version);
/* The null a RESP2 client expects where an array would stand ("*-1"). */
void resp_nil_array(struct bytes *out, int version);
void resp_array(struct bytes *out, size_t items);
/* `pairs` keys and values follow; a flat array in RESP2. */
void resp_map(struct bytes *out, size_t pairs, int version);
/* A push of RESP3; an array in RESP2 (an answer of EVENTS). */
void resp_push(struct bytes *out, size_t items, int version);
/* A request, as clients send it. */
void resp_request(struct bytes *out, size_t argc, const struct slice *argv);

/* Replies (the client's side). One value, whole, as a tree in one array: children follow their parent. */
enum resp_type {
	RESP_STATUS, RESP_ERROR, RESP_INTEGER, RESP_BULK, RESP_NIL, RESP_ARRAY, RESP_MAP, RESP_PUSH,
	RESP_BOOL, RESP_DOUBLE,
};

struct resp_value {
	enum resp_type type;
	struct slice text;    /* STATUS, ERROR, BULK, DOUBLE: the bytes, in the input; else empty */
	int64_t integer;      /* INTEGER, BOOL; ARRAY, MAP (pairs), PUSH: the number of items */
	size_t span;          /* values in this subtree, itself counted: the next sibling is at +span */
};

enum { RESP_DEPTH_MAX = 8 };

struct resp_replies {
	size_t values_max, reply_bytes_max;
	struct resp_value *values; /* after RESP_DONE, until the next call: values[0] is the reply */
	size_t count;
	const char *error;
	/* Private. The containers that are open, outermost first, and how many values each still lacks. */
	struct { size_t value, left; } stack[RESP_DEPTH_MAX];
	int depth;
	bool ended;
	size_t cap;
	size_t at;            /* all before it is understood */
	size_t looked;        /* no end of line before it */
	int64_t bulk;         /* length of the body at `at`; -1: no body is awaited */
	char bulk_type;
};

void resp_replies_init(struct resp_replies *r, size_t values_max, size_t reply_bytes_max);
void resp_replies_deinit(struct resp_replies *r);
enum resp_result resp_read_reply(struct resp_replies *r, struct slice input, size_t *used);
