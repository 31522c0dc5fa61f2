/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of a delegation at once: the library takes and leaves a lock by its word, and a daemon takes it back for others
 * between any two of its steps. Only the lock orders the changes of both sides: ThreadSanitizer (make threads) reports a
 * step that does not order them, and in a plain run an update would be lost.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "client-lib/lockbroker.h"
#include "fake_daemon.h"

/* Where both share a core, a try of the others may take as many of the kernel's turns as there are yields before it. */
enum { ENOUGH = 1000, OTHERS_ENOUGH = 50, TURNS = 7 };

static struct {
	long inside; /* the thread that holds the lock adds one */
	long by_library, by_others;
	bool over;
} shared;

/* The page as the library has mapped it. */
static struct delegation_page *of_library(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct delegation_page *found = NULL;
	char line[256];
	void *at;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "memfd:page") && sscanf(line, "%p-", &at) == 1 && at != fake.page)
			found = at;
	fclose(maps);
	assert_non_null(found);
	return found;
}

static uint64_t taken_by_word(void)
{
	return __atomic_load_n(&fake.page->slots[0].uses, __ATOMIC_RELAXED);
}

static long others_had_it(void)
{
	return __atomic_load_n(&shared.by_others, __ATOMIC_RELAXED);
}

/* As a daemon that grants it to another client, which gives it back before the next request is looked at. */
static void another(struct fake_lock *lock)
{
	fake_recall(lock);
	if (lock->slot || lock->depth)
		return;
	shared.inside++;
	__atomic_fetch_add(&shared.by_others, 1, __ATOMIC_RELAXED);
}

static void *others(void *unused)
{
	for (unsigned int turn = 0; !__atomic_load_n(&shared.over, __ATOMIC_RELAXED); turn++) {
		if (turn % TURNS == 0)
			fake_with(another, "a");
		sched_yield();
	}
	return unused;
}

/* Only the other threads write in this test, so all sections that were counted are theirs. */
static void read_pair(struct lb *lb)
{
	assert_int_equal(lb_lock_shared(lb, "a", -1, NULL), LB_OK);
	assert_int_equal(shared.inside, others_had_it());
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
}

static void write_pair(struct lb *lb)
{
	assert_int_equal(lb_lock(lb, "a", NULL), LB_OK);
	shared.inside++;
	shared.by_library++;
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
}

static void daemon_uses(struct delegation_page *page)
{
	pthread_mutex_lock(&fake.mutex);
	fake.page = page;
	pthread_mutex_unlock(&fake.mutex);
}

/*
 * Until both sides have had it often enough: the library by its word, too. ThreadSanitizer knows memory by its address: the
 * daemon uses the library's.
 */
static void beside_others(void (*pair)(struct lb *lb))
{
	struct delegation_page *own = fake.page;
	pthread_t thread;
	struct lb *lb;

	memset(&shared, 0, sizeof(shared));
	assert_int_equal(lb_open(fake.socket, &lb), LB_OK);
	while (!taken_by_word())
		pair(lb);
	daemon_uses(of_library());
	assert_int_equal(pthread_create(&thread, NULL, others, NULL), 0);
	while (taken_by_word() < ENOUGH || others_had_it() < OTHERS_ENOUGH)
		pair(lb);
	__atomic_store_n(&shared.over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(shared.inside, shared.by_library + shared.by_others);
	daemon_uses(own);
	lb_close(lb);
}

TEST_WITH(each_side_has_it_alone, fake_begin, fake_end)
{
	beside_others(write_pair);
}

TEST_WITH(who_reads_does_so_while_nobody_writes, fake_begin, fake_end)
{
	beside_others(read_pair);
}
