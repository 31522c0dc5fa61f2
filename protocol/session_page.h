/*
 * <rundir>/session: what the daemon has proven of its session, in one page of memory that holders map read-only.
 * It stays true when the daemon hangs: who reads it compares safe_until with the clock, without asking anybody.
 *
 * One writer, any number of readers, no lock: `sequence` is odd while the page is being written. Byte order and
 * alignment are the host's; the size never changes, and what is reserved is zero.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SESSION_PAGE_BYTES = 64, SESSION_PAGE_MAGIC = 0x4c425350, SESSION_PAGE_VERSION = 1 };

enum session_page_state {
	SESSION_PAGE_NONE,     /* nothing is proven, or the daemon has ended */
	SESSION_PAGE_SAFE,
	SESSION_PAGE_JEOPARDY,
	SESSION_PAGE_LOST,
};

struct session_page {
	uint32_t magic, version;
	uint64_t sequence;
	uint64_t epoch;        /* one more with every loss: grants of an earlier one are void */
	uint64_t state;        /* enum session_page_state */
	int64_t safe_until_ns; /* CLOCK_BOOTTIME; INT64_MAX in standalone mode; 0 when nothing is proven */
	uint64_t reserved[3];
};

struct session_view {
	uint64_t epoch;
	enum session_page_state state;
	int64_t safe_until_ns;
};

/* An empty page: NONE. */
void session_page_init(struct session_page *page);
void session_page_write(struct session_page *page, const struct session_view *view);
/* False, and *ret untouched, when it is no such page or is not to be had in one piece. Never waits. */
bool session_page_read(const struct session_page *page, struct session_view *ret);
