/* SPDX-License-Identifier: Apache-2.0 */
/* The delegation page: each step of both sides, and two threads for two processes. */
#include <pthread.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "protocol/delegation.h"

static const struct delegation_terms terms = {
	.generation = 7, .token = 4711, .epoch = 3, .grant_min_ns = 100, .page_id = { 0x01, 0xab },
};

static struct delegation_slot granted(enum delegation_state state)
{
	struct delegation_slot slot = { 0 };

	delegation_grant(&slot, &terms, state);
	return slot;
}

TEST(an_empty_page_delegates_nothing)
{
	struct delegation_page page;
	struct delegation_terms read;

	memset(&page, 0, sizeof(page));
	assert_false(delegation_is_page(&page));
	delegation_init(&page);
	assert_true(delegation_is_page(&page));
	page.version++;
	assert_false(delegation_is_page(&page));
	assert_true(delegation_none(&page.slots[0]));
	assert_false(delegation_take(&page.slots[0], 0));
	assert_false(delegation_holds(&page.slots[0], 0));
	assert_false(delegation_leave(&page.slots[0], 0));
	assert_false(delegation_read(&page.slots[0], 0, &read));
}

TEST(what_was_delegated_is_read)
{
	struct delegation_slot slot = granted(DELEGATION_HELD);
	struct delegation_terms read;

	assert_true(delegation_read(&slot, 6, &read));
	assert_int_equal(read.generation, 7);
	assert_int_equal(read.token, 4711);
	assert_int_equal(read.epoch, 3);
	assert_int_equal(read.grant_min_ns, 100);
	assert_memory_equal(read.page_id, terms.page_id, sizeof(terms.page_id));
}

TEST(what_is_not_held_for_the_first_time_is_not_read)
{
	struct delegation_slot slot = granted(DELEGATION_HELD), free_slot = granted(DELEGATION_FREE);
	struct delegation_terms read;

	assert_false(delegation_read(&slot, 7, &read));
	assert_false(delegation_read(&free_slot, 0, &read));
	delegation_recall(&slot);
	assert_false(delegation_read(&slot, 0, &read));
	slot = granted(DELEGATION_HELD);
	delegation_lose(&slot);
	assert_false(delegation_read(&slot, 0, &read));
}

TEST(a_free_one_is_taken_and_left_again_and_again)
{
	struct delegation_slot slot = granted(DELEGATION_HELD);

	for (int i = 0; i < 3; i++) {
		assert_true(delegation_holds(&slot, 7));
		assert_int_equal(delegation_look(&slot).state, DELEGATION_HELD);
		assert_false(delegation_take(&slot, 7));
		assert_true(delegation_leave(&slot, 7));
		assert_false(delegation_holds(&slot, 7));
		assert_int_equal(delegation_look(&slot).state, DELEGATION_FREE);
		assert_false(delegation_leave(&slot, 7));
		assert_true(delegation_take(&slot, 7));
	}
}

TEST(another_generation_is_not_touched)
{
	struct delegation_slot slot = granted(DELEGATION_FREE);

	assert_false(delegation_take(&slot, 6));
	assert_true(delegation_take(&slot, 7));
	assert_false(delegation_holds(&slot, 6));
	assert_false(delegation_leave(&slot, 6));
	assert_true(delegation_leave(&slot, 7));
}

TEST(a_free_one_is_recalled_at_once)
{
	struct delegation_slot slot = granted(DELEGATION_FREE);

	assert_int_equal(delegation_recall(&slot), DELEGATION_FREE);
	assert_true(delegation_none(&slot));
	assert_false(delegation_take(&slot, 7));
}

TEST(a_held_one_that_is_recalled_is_held_until_it_is_given_back)
{
	struct delegation_slot slot = granted(DELEGATION_HELD);

	assert_int_equal(delegation_recall(&slot), DELEGATION_HELD);
	assert_int_equal(delegation_recall(&slot), DELEGATION_HELD);
	assert_true(delegation_holds(&slot, 7));
	assert_false(delegation_leave(&slot, 7));
	assert_false(delegation_take(&slot, 7));
	assert_false(delegation_none(&slot));
	delegation_end(&slot);
	assert_true(delegation_none(&slot));
	assert_false(delegation_holds(&slot, 7));
}

TEST(a_lost_one_is_not_held)
{
	struct delegation_slot slot = granted(DELEGATION_HELD), free_slot = granted(DELEGATION_FREE);

	assert_int_equal(delegation_lose(&slot), DELEGATION_HELD);
	assert_false(delegation_holds(&slot, 7));
	assert_false(delegation_leave(&slot, 7));
	assert_int_equal(delegation_lose(&free_slot), DELEGATION_FREE);
	assert_true(delegation_none(&free_slot));
	slot = granted(DELEGATION_HELD);
	delegation_recall(&slot);
	assert_int_equal(delegation_lose(&slot), DELEGATION_HELD);
	assert_false(delegation_holds(&slot, 7));
}

/* Neither NONE nor the fourth state, marks nor generations that a client has written are believed. */
TEST(what_a_client_has_written_is_free_or_held)
{
	for (uint64_t low = 0; low < 16; low++) {
		struct delegation_slot slot = { .word = UINT64_MAX << 16 | low };
		enum delegation_state is = (low & 3) == DELEGATION_HELD ? DELEGATION_HELD : DELEGATION_FREE;

		assert_int_equal(delegation_look(&slot).state, is);
		assert_int_equal(delegation_recall(&slot), is);
		assert_int_equal(delegation_look(&slot).state, is);
		slot.word = low;
		assert_int_equal(delegation_lose(&slot), is);
		delegation_end(&slot);
		assert_true(delegation_none(&slot));
	}
}

TEST(a_session_stands_for_longer_than_it_has_to)
{
	const struct session_view safe = { .epoch = 3, .state = SESSION_SAFE, .safe_until_ns = 1000 };
	struct session_page page;
	struct session_view view = safe;

	session_page_init(&page, terms.page_id);
	assert_true(delegation_stands(&terms, &page, &view, 899, terms.grant_min_ns));
	assert_false(delegation_stands(&terms, &page, &view, 900, terms.grant_min_ns));
	assert_true(delegation_stands(&terms, &page, &view, 900, 0));
	assert_false(delegation_stands(&terms, &page, &view, 1000, 0));
	view.state = SESSION_JEOPARDY;
	assert_true(delegation_stands(&terms, &page, &view, 0, 100));
	view.moved = true;
	assert_false(delegation_stands(&terms, &page, &view, 0, 100));
	view = safe;
	view.state = SESSION_LOST;
	assert_false(delegation_stands(&terms, &page, &view, 0, 100));
	view.state = SESSION_NONE;
	assert_false(delegation_stands(&terms, &page, &view, 0, 100));
	view = safe;
	view.epoch++;
	assert_false(delegation_stands(&terms, &page, &view, 0, 100));
	view = safe;
	view.safe_until_ns = INT64_MAX;
	assert_true(delegation_stands(&terms, &page, &view, INT64_MAX / 2, 100));
	page.id[5]++;
	assert_false(delegation_stands(&terms, &page, &view, 0, 100));
}

/* ---- a process takes and leaves it while the daemon takes it back and delegates it again ---- */

enum { ROUNDS = 2000 };

enum asks { NOTHING, AN_ANSWER, THE_END };

static struct {
	struct delegation_slot slot;
	long inside;    /* written by the holder; only the word orders the writes */
	enum asks asks; /* AN_ANSWER: the process has sent UNLOCK or LOCK, and waits */
	long by_process, by_daemon;
	/* For a thread that waits: if it spun, it would take the other thread's time on a busy machine. */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
} shared = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static enum asks asked(void)
{
	return __atomic_load_n(&shared.asks, __ATOMIC_ACQUIRE);
}

static void set(enum asks asks)
{
	pthread_mutex_lock(&shared.mutex);
	__atomic_store_n(&shared.asks, asks, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&shared.changed);
	pthread_mutex_unlock(&shared.mutex);
}

static void wait_while(enum asks asks)
{
	pthread_mutex_lock(&shared.mutex);
	while (asked() == asks)
		pthread_cond_wait(&shared.changed, &shared.mutex);
	pthread_mutex_unlock(&shared.mutex);
}

static void ask(void)
{
	set(AN_ANSWER);
	wait_while(AN_ANSWER);
}

/* What was wanted again before it was read is an ordinary grant. */
static void *process(void *failed)
{
	struct delegation_terms t = { 0 };
	bool delegated = false;

	while (shared.by_process < ROUNDS) {
		if (!delegated || !delegation_take(&shared.slot, t.generation)) {
			ask();
			delegated = delegation_read(&shared.slot, t.generation, &t);
			*(bool *)failed |= delegated && t.token != (int64_t)t.generation * 10;
		}
		shared.inside++;
		shared.by_process++;
		if (!delegated || !delegation_leave(&shared.slot, t.generation)) {
			ask();
			delegated = false;
		}
	}
	set(THE_END);
	return NULL;
}

/* What the daemon has: it may enter only where it found the word FREE, or was asked by the process. */
static void daemon_enters(void)
{
	shared.inside++;
	shared.by_daemon++;
}

TEST(both_sides_exclude_each_other)
{
	struct delegation_terms t = { .generation = 0 };
	bool has = true, wanted = false, failed = false;
	pthread_t thread;
	enum asks asks;

	assert_int_equal(pthread_create(&thread, NULL, process, &failed), 0);
	while ((asks = asked()) != THE_END) {
		if (asks && !has) {
			/* UNLOCK */
			delegation_end(&shared.slot);
			has = true;
			wanted = false;
			daemon_enters();
			set(NOTHING);
		} else if (asks) {
			/* LOCK */
			t.generation++;
			t.token = (int64_t)t.generation * 10;
			delegation_grant(&shared.slot, &t, DELEGATION_HELD);
			has = false;
			set(NOTHING);
		} else if (!has && !wanted) {
			if (delegation_recall(&shared.slot) == DELEGATION_FREE) {
				has = true;
				daemon_enters();
			} else {
				wanted = true;
			}
		} else {
			wait_while(NOTHING);
		}
	}
	pthread_join(thread, NULL);
	assert_false(failed);
	assert_int_equal(shared.by_process, ROUNDS);
	assert_int_equal(shared.inside, shared.by_process + shared.by_daemon);
}
