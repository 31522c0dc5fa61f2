/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * <rundir>/session: the daemon's proof of its session, in one page of memory that holders map read-only.
 * It stays true when the daemon hangs: a reader compares safe_until with the clock, and asks nobody.
 *
 * One writer, any number of readers, no lock: `sequence` is odd while the page is being written, and stays odd if the
 * writer is killed then. Byte order and alignment are the host's; the size never changes, and reserved bytes are zero.
 *
 * When a daemon was killed and another process continues its session, the page has moved: the old page is never written
 * again, and is true until its safe_until; the daemon says on the connection where the new page is.
 *
 * A path may lead somewhere else in another mount namespace, to the page of another daemon. So the page has an id,
 * random and new with each page, that the daemon also says on each connection: a page with another id is not that
 * daemon's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "slice.h"

enum { SESSION_PAGE_BYTES = 64, SESSION_PAGE_MAGIC = 0x4c425350, SESSION_PAGE_VERSION = 1 };
enum { SESSION_PAGE_ID_BYTES = 16, SESSION_PAGE_ID_CHARS = 2 * SESSION_PAGE_ID_BYTES };

enum session_state {
	SESSION_NONE,     /* nothing is proven, or the daemon has ended */
	SESSION_SAFE,
	SESSION_JEOPARDY,
	SESSION_LOST,
};

/* A state of the page, and of no session. */
enum { SESSION_PAGE_MOVED = SESSION_LOST + 1 };

struct session_page {
	uint32_t magic, version;
	uint64_t sequence;
	uint64_t epoch;        /* one more with every loss: grants of an earlier one are void */
	uint64_t state;        /* enum session_state, or SESSION_PAGE_MOVED */
	int64_t safe_until_ns; /* CLOCK_BOOTTIME; INT64_MAX in standalone mode; 0 when nothing is proven */
	uint8_t id[SESSION_PAGE_ID_BYTES]; /* written once */
	uint64_t reserved;
};

struct session_view {
	uint64_t epoch;
	enum session_state state;
	int64_t safe_until_ns;
	bool moved; /* read from a page that has moved, whose state is JEOPARDY: nobody extends its proof */
};

/* An empty page: NONE. */
void session_page_init(struct session_page *page, const uint8_t id[SESSION_PAGE_ID_BYTES]);
/* The text of an id: lower-case hex, NUL-terminated. */
void session_page_id_text(const uint8_t id[SESSION_PAGE_ID_BYTES], char ret[SESSION_PAGE_ID_CHARS + 1]);
/* True when that is the text of the page's id. */
bool session_page_is(const struct session_page *page, struct slice id);
/* Also if another writer was killed while it wrote. */
void session_page_write(struct session_page *page, const struct session_view *view);
/* In place of a writer that was killed. */
void session_page_move(struct session_page *page);
/* False, and *ret untouched, when it is not such a page or no consistent copy can be read. Never waits. */
bool session_page_read(const struct session_page *page, struct session_view *ret);
