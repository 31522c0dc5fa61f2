/* SPDX-License-Identifier: Apache-2.0 */
#include "io/ledger_file.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/port/ledger.h"
#include "core/snapshot.h"
#include "io/base/feed.h"
#include "io/base/watch.h"
#include "io/files/saved.h"

/* A file system without room is not asked for it all the time. */
#define PAUSE_NS CLOCK_NS_PER_S

/* The broker's memory is about so many times what the ledger needs for it. */
enum { LEDGER_FILE_PART = 3 };

/* Memory is added in steps of this size, new or given back before: the kernel makes the pages of one step in 0.2 ms. */
enum { GROW_BYTES = 256 << 10 };

/* In one piece: the most chunks that are looked at, and by how much the file or its spare is shortened. */
enum { LOOK_CHUNKS = 4, CUT_BYTES = 256 << 10 };

enum ledger_file_state { LEDGER_FILE_REST, LEDGER_FILE_LOOKING, LEDGER_FILE_CUTTING };

struct ledger_file {
	struct feed *feed;
	struct saved *saved;
	struct ledger *ledger;
	size_t bytes; /* the bytes that are not given back */
	enum ledger_file_state state;
	bool spare;          /* one with as many bytes is there */
	size_t low;          /* with less room than that there is something to do */
	int64_t again_ns;    /* no more is asked for before */
	struct watch *again; /* then there is a turn, though nobody asks for anything */
};

_Static_assert(LEDGER_FILE_FIRST % LEDGER_CHUNK_BYTES == 0 && LEDGER_FILE_MORE % LEDGER_CHUNK_BYTES == 0 &&
		       GROW_BYTES % LEDGER_CHUNK_BYTES == 0,
	       "whole chunks");

/* What a process has taken over needs about so much, so that nobody waits while the memory grows step by step. */
static size_t first_bytes(struct feed *feed)
{
	return LEDGER_FILE_FIRST + snapshot_memory(feed_broker(feed)) / LEDGER_FILE_PART / LEDGER_FILE_MORE * LEDGER_FILE_MORE;
}

static void try_again(int fd, short what, void *arg)
{
	struct ledger_file *r = arg;

	r->again_ns = INT64_MIN;
}

struct ledger_file *ledger_file_new(struct feed *feed, struct saved *saved)
{
	size_t bytes = first_bytes(feed);
	void *memory = saved_grow(saved, bytes);
	struct ledger_file *r;

	/* That of the spare, which the ledger of the process before this one fitted into. */
	if (!memory) {
		bytes = saved_room(saved) / LEDGER_CHUNK_BYTES * LEDGER_CHUNK_BYTES;
		memory = saved_grow(saved, bytes);
	}
	if (!memory)
		return NULL;
	r = mem_new(sizeof(*r));
	r->feed = feed;
	r->saved = saved;
	r->bytes = bytes;
	r->low = SIZE_MAX;
	/* The process before this one may have needed more: its file is the measure of one that is made ahead. */
	r->state = saved_has_excess(saved) ? LEDGER_FILE_CUTTING : LEDGER_FILE_REST;
	r->ledger = ledger_new(memory, bytes);
	r->again = watch_new(feed_base(feed), try_again, r);
	feed_record(feed, r->ledger);
	ledger_file_settle(r);
	return r;
}

void ledger_file_free(struct ledger_file *r)
{
	if (!r)
		return;
	feed_record(r->feed, NULL);
	watch_free(r->again);
	ledger_free(r->ledger);
	mem_free(r);
}

static void pause_asking(struct ledger_file *r)
{
	r->again_ns = feed_seen(r->feed) + PAUSE_NS;
	watch_set(r->again, -1, 0, PAUSE_NS);
}

static void add(struct ledger_file *r, void *memory, size_t bytes)
{
	r->bytes += bytes;
	r->spare = false;
	ledger_add(r->ledger, memory, bytes);
}

/* Takes memory again that was given back. False: there is none, or the file system has no room. */
static bool refill(struct ledger_file *r)
{
	size_t bytes, all = 0;
	void *memory;

	while (all < GROW_BYTES && (memory = saved_refill(r->saved, &bytes))) {
		add(r, memory, bytes);
		all += bytes;
	}
	return all > 0;
}

static bool grow(struct ledger_file *r)
{
	void *memory;

	if (refill(r))
		return true;
	memory = saved_grow(r->saved, GROW_BYTES);
	if (memory) {
		add(r, memory, GROW_BYTES);
		return true;
	}
	pause_asking(r);
	return false;
}

static void leave_spare(struct ledger_file *r)
{
	int rc = r->spare ? 0 : saved_leave_spare(r->saved);

	r->spare = rc == 0;
	r->low = r->spare ? LEDGER_FILE_LOW : SIZE_MAX;
	if (r->spare)
		return;
	pause_asking(r);
	if (rc != -EAGAIN)
		log_warning(
			saved_failed, LOG_FIELDS("error=%v", strerror(-rc)),
			"daemon.rundir has no room for a spare of the file saved: %s; if the daemon is killed while it is "
			"full, all locks may be lost",
			strerror(-rc));
}

/* False: there is not enough, and no more to be had. */
static bool make_room(struct ledger_file *r)
{
	while (ledger_room(r->ledger) < LEDGER_FILE_LOW)
		if (!grow(r))
			return false;
	return true;
}

static void settle(struct ledger_file *r)
{
	bool grows = make_room(r);

	while (ledger_full(r->ledger)) {
		size_t room = ledger_room(r->ledger);

		feed_record_missing(r->feed);
		/* What has used nothing of it fits into no cell. */
		if (!grows || ledger_room(r->ledger) == room)
			break;
		grows = make_room(r);
	}
	if (ledger_full(r->ledger))
		log_error(saved_failed, LOG_NO_FIELDS,
			  "the file saved cannot become larger: %s; if the daemon is killed now, all locks are lost",
			  grows ? "a record is too long for it" : strerror(errno));
	leave_spare(r);
}

void ledger_file_settle(struct ledger_file *r)
{
	if (r && ledger_room(r->ledger) < r->low && feed_seen(r->feed) >= r->again_ns)
		settle(r);
}

/* ---- becoming smaller ---- */

bool ledger_file_may_be_due(const struct ledger_file *r)
{
	return r && r->state == LEDGER_FILE_REST && r->bytes > LEDGER_FILE_FELL;
}

void ledger_file_ask(struct ledger_file *r)
{
	if (!r || r->state != LEDGER_FILE_REST || !ledger_may_shrink(r->ledger, LEDGER_FILE_FELL))
		return;
	r->state = LEDGER_FILE_LOOKING;
	ledger_shrink_begin(r->ledger);
}

bool ledger_file_shrinks(const struct ledger_file *r)
{
	return r && r->state != LEDGER_FILE_REST;
}

/* False: that was all. */
static bool look(struct ledger_file *r)
{
	size_t bytes = 0;
	void *memory;

	for (int i = 0; i < LOOK_CHUNKS && !bytes; i++)
		if (!ledger_shrink(r->ledger, LEDGER_FILE_KEEP, &memory, &bytes))
			return false;
	if (bytes) {
		saved_give_back(r->saved, memory, bytes);
		r->bytes -= bytes;
	}
	return true;
}

void ledger_file_piece(struct ledger_file *r)
{
	if (r->state == LEDGER_FILE_LOOKING && !look(r))
		r->state = LEDGER_FILE_CUTTING;
	else if (r->state == LEDGER_FILE_CUTTING && !saved_cut(r->saved, CUT_BYTES))
		r->state = LEDGER_FILE_REST;
}
