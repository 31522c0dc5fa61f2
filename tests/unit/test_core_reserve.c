/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' reserve of each pool (pools.h): when users have taken all that they may, an operator is served. */
#include <stdio.h>
#include <string.h>

#include "core/port/pools.h"
#include "core/state.h"
#include "revocation_fixture.h"

enum { USER, OTHER_USER, OPERATOR, ROOT, CONNS, LOCKS = 1000, MANY = 1000000 };

#define ELECTION "1\nkind=election\nflavour=rw\n"

/* The znode of each lock; a lock is known by the end of its path. */
static struct {
	char path[64], child[128];
} znodes[LOCKS];
static size_t count;

static const struct broker_limits plenty = {
	.clients = 64, .locks = MANY, .requests_per_lock = MANY, .requests_per_client = MANY, .requests = MANY, .grants = MANY,
	.observers = MANY, .memory_bytes = MANY, .grants_per_client = MANY, .events_per_client = MANY,
	.output_bytes = 1 << 20, .session_path_bytes = 900000, .user_share = 100,
};

#define LIMIT(field) offsetof(struct broker_limits, field)

/* The pool that ends first when a user asks for one name after the other, and whether all of them are held elsewhere. */
static const struct row {
	const char *name;
	enum pool_number pool;
	const char *command;
	bool elsewhere;
	size_t limit, total; /* where it is in the limits */
	const char *then;    /* what is asked for when it is at its end; NULL: the same */
} rows[] = {
	{ "requests", POOL_REQUESTS, "ENQUEUE", true, LIMIT(requests), 100, NULL },
	{ "grants", POOL_GRANTS, "LOCK", false, LIMIT(grants), 100, NULL },
	{ "names of locks", POOL_LOCKS, "LOCK", false, LIMIT(locks), 100, NULL },
	{ "bytes of events", POOL_MEMORY, "ENQUEUE", true, LIMIT(memory_bytes), 40000, NULL },
	{ "observers", POOL_OBSERVERS, "OBSERVE", false, LIMIT(observers), 100, NULL },
	{ "path bytes", POOL_PATHS, "LOCK", false, LIMIT(session_path_bytes), 20000, NULL },
	{ "watch bytes of locks", POOL_WATCHES, "OBSERVE", false, LIMIT(session_path_bytes), 20000, "CAMPAIGN" },
	{ "watch bytes of observers", POOL_WATCHES, "OBSERVE", false, LIMIT(session_path_bytes), 20000, NULL },
};

static const struct row *row;

/* One user may take all but the reserve. */
static int begin(void **state)
{
	struct fixture *f = fixture_new(false);

	row = *state;
	memset(znodes, 0, sizeof(znodes));
	count = 0;
	f->conf.limits = plenty;
	memcpy((char *)&f->conf.limits + row->limit, &row->total, sizeof(row->total));
	f->plain = true;
	fixture_setup(f, 0, state);
	fixture_connect_as(f, USER, 1000, SLICE(""), false);
	fixture_connect_as(f, OTHER_USER, 1001, SLICE(""), false);
	fixture_connect_as(f, OPERATOR, 0, SLICE(""), true);
	fixture_connect_as(f, ROOT, 0, SLICE(""), false);
	return 0;
}

static char *child_of(const char *path, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(znodes[i].path) == len && memcmp(znodes[i].path, path, len) == 0)
			return znodes[i].child;
	assert_true(count < LOCKS && len < sizeof(znodes[0].path));
	memcpy(znodes[count].path, path, len);
	return znodes[count++].child;
}

static void list(struct fixture *f, const char *child)
{
	if (row->elsewhere)
		fixture_answer_list(f, 1, 1U + (child[0] != '\0'), (const char *[]){ elsewhere, child });
	else
		fixture_answer_list(f, 1, child[0] != '\0', (const char *[]){ child });
}

/* A ZooKeeper that has all directories, and in them what is made here, behind that of another host. */
static void answer_all(struct fixture *f)
{
	while (fixture_is_open(f)) {
		const struct fixture_op *op = fixture_oldest(f);
		char *child;

		if (strstr(op->path, "/.") || op->effect.type == EFFECT_ZK_DELETE) {
			fixture_answer(f, ZK_OK);
		} else if (op->effect.type == EFFECT_ZK_GET && strstr(op->path, elsewhere)) {
			fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
		} else if (op->effect.type == EFFECT_ZK_GET) {
			fixture_answer_get(f, 1, 0, strcmp(row->command, "OBSERVE") == 0 ? ELECTION : LOCK_DATA);
		} else if (op->effect.type == EFFECT_ZK_LIST) {
			list(f, child_of(op->path, strlen(op->path)));
		} else {
			child = child_of(op->path, (size_t)(strrchr(op->path, '/') - op->path));
			fixture_answer_made(f, 5, 1000 + (int64_t)count, child, sizeof(znodes[0].child));
		}
	}
}

/* What it is answered begins so. */
static bool is_told(struct fixture *f, uint32_t conn, const char *command, const char *name, const char *begin)
{
	bool data = strcmp(command, "CAMPAIGN") == 0;
	struct slice reply;

	bytes_clear(&f->replies[conn]);
	fixture_ask(f, conn, fixture_words(f, "%s %s%s", command, name, data ? " DATA x" : ""));
	answer_all(f);
	reply = bytes_view(&f->replies[conn]);
	return reply.len > strlen(begin) && memcmp(reply.data, begin, strlen(begin)) == 0;
}

static void an_operator_has_it_when_users_have_taken_all_that_they_may(void **state)
{
	struct fixture *f = *state;
	const char *then = row->then ? row->then : row->command;
	char name[16];
	int i = 0;

	do
		snprintf(name, sizeof(name), "n%d", i++);
	while (!is_told(f, USER, row->command, name, "-") && i < LOCKS);
	bytes_char(&f->replies[USER], '\0');
	assert_non_null(strstr(f->replies[USER].data, "-LIMIT user 1000 uses "));
	fixture_expect_part(f, USER, pools_words[row->pool].noun);
	assert_true(is_told(f, OTHER_USER, then, "more", "-LIMIT user 1001 uses 0 of "));
	assert_true(is_told(f, ROOT, then, "more", "-LIMIT user 0 uses 0 of "));
	assert_false(is_told(f, OPERATOR, then, "more", "-"));
	/* It is the same user, by another door. */
	assert_true(is_told(f, ROOT, then, "evenmore", "-LIMIT user 0 uses "));
}

__attribute__((constructor)) static void each_row_is_a_test(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		unit_add(rows[i].name, an_operator_has_it_when_users_have_taken_all_that_they_may, begin, fixture_teardown,
				 (void *)(uintptr_t)&rows[i]);
}
