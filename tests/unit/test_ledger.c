/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a ledger: what whoever reads them finds, at whatever instruction their process was killed. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "core/port/ledger.h"

enum { CHUNKS = 3, BYTES = CHUNKS * LEDGER_CHUNK_BYTES, CELLS = (LEDGER_CHUNK_BYTES - LEDGER_CELLS_AT) / LEDGER_CELL_MIN };
enum { GIVEN_MAX = 64 };

static void *memory_new(size_t bytes)
{
	void *memory = aligned_alloc(64, bytes);

	assert_non_null(memory);
	return memset(memory, 0, bytes);
}

/* Every field has that value. */
static struct ledger_grant *put(struct ledger *l, int64_t value, size_t text)
{
	struct ledger_grant *g = ledger_take(l, sizeof(*g) + text);

	g->head.number = 1;
	g->lock = g->client = g->token = g->flags = (uint64_t)value;
	g->depth = g->lease_ns = g->granted_ns = value;
	g->length = text;
	memset(g->data, (int)value, text);
	ledger_publish(l, &g->head, LEDGER_GRANT);
	return g;
}

static struct ledger_grant *replace(struct ledger *l, struct ledger_grant *old, int64_t value, size_t text)
{
	struct ledger_grant *g = put(l, value, text);

	ledger_drop(l, &old->head);
	return g;
}

static bool is_whole(const struct ledger_grant *g)
{
	for (uint64_t i = 0; i < g->length; i++)
		if (g->data[i] != (char)g->depth)
			return false;
	return g->head.number == 1 && g->lock == (uint64_t)g->depth && g->client == g->lock && g->token == g->lock &&
	       g->flags == g->lock && g->granted_ns == g->depth;
}

/* The depth of the grant as a reader finds it; 0: there is none, -1: it is mixed. */
static int64_t depth_read(const char *memory)
{
	const struct ledger_grant *latest = NULL;

	for (size_t at = LEDGER_CHUNK_BYTES; at < BYTES; at += LEDGER_CHUNK_BYTES) {
		uint64_t word = *(const uint64_t *)(const void *)(memory + at);
		size_t size = (size_t)LEDGER_CELL_MIN << (word & 7);

		if (!word)
			continue;
		for (size_t i = LEDGER_CELLS_AT; i + size <= LEDGER_CHUNK_BYTES; i += size) {
			const struct ledger_grant *g = (const void *)(memory + at + i);

			if (LEDGER_TYPE(g->head.word) == LEDGER_NONE)
				continue;
			if (!latest || LEDGER_GENERATION(g->head.word) > LEDGER_GENERATION(latest->head.word))
				latest = g;
		}
	}
	return !latest ? 0 : is_whole(latest) ? latest->depth : -1;
}

/* Of all that no record is in: nobody can rely on what is there, but for the words of the chunks. Returns how much it is. */
static size_t give_back(struct ledger *l, size_t keep, void (*took)(struct ledger *, char *, size_t))
{
	struct given {
		void *memory;
		size_t bytes;
	} given[GIVEN_MAX];
	size_t count = 0, all = 0;

	ledger_shrink_begin(l);
	while (ledger_shrink(l, keep, &given[count].memory, &given[count].bytes)) {
		all += given[count].bytes;
		count += given[count].bytes > 0;
		assert_true(count < GIVEN_MAX);
	}
	while (count-- > 0)
		took(l, given[count].memory, given[count].bytes);
	return all;
}

/* It is somebody else's for a while. */
static void lend(struct ledger *l, char *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LEDGER_CHUNK_BYTES)
		memset(memory + at + sizeof(uint64_t), 0xa5, LEDGER_CHUNK_BYTES - sizeof(uint64_t));
	ledger_add(l, memory, bytes);
}

static void drop_it(struct ledger *l, char *memory, size_t bytes)
{
	memset(memory, 0, bytes);
}

/* A grant begins, its text becomes another, and longer, one number changes, and it ends; and another in the same cells. */
static void live(struct ledger *l)
{
	struct ledger_grant *g = put(l, 1, 0);

	g = replace(l, g, 2, 20);
	g = replace(l, g, 3, 200);
	ledger_store(l, (uint64_t *)&g->lease_ns, 99);
	ledger_drop(l, &g->head);
	g = put(l, 4, 20);
	give_back(l, BYTES, lend); /* the chunk of the longer one */
	g = replace(l, g, 5, 200);
	ledger_drop(l, &g->head);
	give_back(l, BYTES, lend);
	g = put(l, 6, 0);
	ledger_drop(l, &g->head);
}

static const int64_t lives[] = { 0, 1, 2, 3, 0, 4, 5, 0, 6, 0 };

/* The process is stopped after each of its instructions. */
TEST(killed_at_any_instruction_it_reads_as_before_or_after)
{
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ledger *l = ledger_new(memory, BYTES);
	size_t at = 0;
	int status;
	pid_t pid;

	assert_true(memory != MAP_FAILED);
	ledger_drop(l, &put(l, 1, 0)->head);
	ledger_drop(l, &put(l, 1, 200)->head);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		live(l);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status)) {
		int64_t depth = depth_read(memory);

		if (depth != lives[at])
			at++;
		if (at == sizeof(lives) / sizeof(lives[0]) || depth != lives[at]) {
			kill(pid, SIGKILL);
			fail_msg("after step %zu it reads %lld", at, (long long)depth);
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(at, sizeof(lives) / sizeof(lives[0]) - 1);
	ledger_free(l);
	munmap(memory, BYTES);
}

TEST(all_cells_are_used_and_one_more_is_missing)
{
	char *memory = memory_new(BYTES), *more;
	struct ledger *l = ledger_new(memory, BYTES);
	struct ledger_grant *g = NULL, *last;

	for (size_t i = 0; i < 2 * CELLS; i++)
		g = put(l, 1, 0);
	assert_false(ledger_full(l));
	assert_int_equal(ledger_room(l), 0);
	last = put(l, 2, 20);
	assert_true(ledger_full(l) && l->head->missing == 1);
	assert_int_equal(ledger_records(l), 2 * CELLS + 1);
	assert_int_equal(depth_read(memory), 1);
	assert_ptr_equal(ledger_move(l, last), last);
	ledger_drop(l, &g->head);
	last = ledger_move(l, last);
	assert_ptr_equal(last, g);
	assert_false(ledger_full(l));
	assert_int_equal(depth_read(memory), 2);
	more = memory_new(LEDGER_CHUNK_BYTES);
	ledger_add(l, more, LEDGER_CHUNK_BYTES);
	g = put(l, 3, 0);
	assert_true((char *)g > more && (char *)g < more + LEDGER_CHUNK_BYTES && !ledger_full(l));
	ledger_free(l);
	free(more);
	free(memory);
}

TEST(what_is_longer_than_any_cell_is_missing_until_it_ends)
{
	char *memory = memory_new(BYTES);
	struct ledger *l = ledger_new(memory, BYTES);
	size_t longest = (LEDGER_CELL_MIN << (LEDGER_CLASSES - 1)) - sizeof(struct ledger_grant);
	struct ledger_grant *g = put(l, 1, longest);

	assert_false(ledger_full(l));
	g = replace(l, g, 2, longest + 1);
	assert_true(ledger_full(l));
	ledger_drop(l, &g->head);
	assert_false(ledger_full(l));
	assert_int_equal(ledger_records(l), 0);
	put(l, 3, longest + 1); /* it goes with the ledger */
	ledger_free(l);
	free(memory);
}

/* Records of all sizes come and go, and each is read as it is, however often memory without a record is given back. */
TEST(what_no_record_is_in_is_given_back_and_nothing_else)
{
	enum { MANY = 40, RECORDS = 1500, ROUNDS = 60000 };
	char *memory = memory_new(MANY * LEDGER_CHUNK_BYTES);
	struct ledger *l = ledger_new(memory, MANY * LEDGER_CHUNK_BYTES);
	struct ledger_grant *list[RECORDS] = { 0 };
	size_t lent = 0, held = 0, most = RECORDS;

	srand(7);
	for (int round = 0; round < ROUNDS; round++) {
		size_t i = (size_t)rand() % RECORDS, text = rand() % 8 ? 0 : (size_t)rand() % 700;

		if (round % (ROUNDS / 8) == 0)
			most = most == RECORDS ? 20 : RECORDS;
		if (list[i] && (held > most || rand() % 2)) {
			assert_true(is_whole(list[i]) && list[i]->depth == (int64_t)i % 100);
			ledger_drop(l, &list[i]->head);
			list[i] = NULL;
			held--;
		} else if (!list[i] && held < most) {
			list[i] = put(l, (int64_t)i % 100, text);
			held++;
		}
		if (round % 500 == 0)
			lent += give_back(l, 2 * LEDGER_CHUNK_BYTES, lend);
		assert_int_equal(ledger_records(l), held);
		assert_false(ledger_full(l));
	}
	for (size_t i = 0; i < RECORDS; i++)
		if (list[i])
			assert_true(is_whole(list[i]) && list[i]->depth == (int64_t)i % 100);
	assert_true(lent > 10 * LEDGER_CHUNK_BYTES);
	ledger_free(l);
	free(memory);
}

TEST(without_a_record_all_is_given_back_but_what_is_to_stay)
{
	enum { MANY = 40 };
	char *memory = memory_new(MANY * LEDGER_CHUNK_BYTES);
	struct ledger *l = ledger_new(memory, MANY * LEDGER_CHUNK_BYTES);
	struct ledger_grant *list[30 * CELLS];
	size_t all = (MANY - 1) * LEDGER_CHUNK_BYTES, keep = 3 * LEDGER_CHUNK_BYTES;

	for (size_t i = 0; i < 30 * CELLS; i++)
		list[i] = put(l, 1, 0);
	assert_false(ledger_may_shrink(l, 0));
	for (size_t i = 1; i < 30 * CELLS; i++)
		ledger_drop(l, &list[i]->head);
	assert_true(ledger_may_shrink(l, all / 2) && !ledger_may_shrink(l, all));
	assert_int_equal(give_back(l, keep, drop_it), all - keep - LEDGER_CHUNK_BYTES);
	assert_true(is_whole(list[0]) && depth_read(memory) == 1);
	assert_int_equal(ledger_room(l), keep);
	assert_int_equal(give_back(l, 0, drop_it), keep);
	ledger_drop(l, &list[0]->head);
	assert_int_equal(give_back(l, 0, drop_it), LEDGER_CHUNK_BYTES);
	put(l, 1, 0);
	assert_true(ledger_full(l));
	ledger_add(l, memory + LEDGER_CHUNK_BYTES, LEDGER_CHUNK_BYTES);
	put(l, 2, 0);
	assert_int_equal(depth_read(memory), 2);
	ledger_free(l);
	free(memory);
}

TEST(a_number_is_below_its_ceiling_before_it_is_used)
{
	char *memory = memory_new(BYTES);
	struct ledger *l = ledger_new(memory, BYTES);
	uint64_t raised = 0, before = 0;

	for (uint64_t number = 1; number < 5000; number++) {
		ledger_number(l, CEILING_NONCE, number);
		assert_true(l->head->ceilings[CEILING_NONCE] >= number);
		raised += l->head->ceilings[CEILING_NONCE] != before;
		before = l->head->ceilings[CEILING_NONCE];
	}
	assert_in_range(raised, 1, 10);
	ledger_number(NULL, CEILING_NONCE, 1);
	ledger_free(l);
	free(memory);
}
