/* SPDX-License-Identifier: Apache-2.0 */
#include "names_fixture.h"

#include <stdio.h>
#include <string.h>

#include "core/state.h"

#define KAZOO_DATA "1\nkind=lock\nflavour=kazoo\n"

struct dir dirs[DIRS];
size_t dir_count, made, removed;
static int64_t last_czxid;

int names_setup(void **state, size_t names, size_t per_s, unsigned int share)
{
	struct fixture *f = fixture_new(false);

	memset(dirs, 0, sizeof(dirs));
	dir_count = made = removed = 0;
	last_czxid = 1000;
	f->conf.limits.new_names = names;
	f->conf.limits.new_names_per_s = per_s;
	f->conf.limits.user_share = share;
	f->conf.limits.grants_per_client = f->conf.limits.grants = f->conf.limits.requests = 1000;
	f->conf.limits.requests_per_client = f->conf.limits.events_per_client = 1000;
	f->conf.limits.locks = 5000;
	f->conf.limits.session_path_bytes = 100000;
	f->plain = true;
	fixture_setup(f, 0, state);
	for (uint32_t conn = 0; conn < OPERATOR; conn++)
		fixture_connect_as(f, conn, 1000 + conn, SLICE(""), false);
	fixture_connect_as(f, OPERATOR, 0, SLICE(""), true);
	return 0;
}

static const struct broker_prefix prefixes[] = {
	{ "k/", FLAVOUR_KAZOO, "", 60000 * MS },
	{ "old/", FLAVOUR_KAZOO, "", 0 },
};

int names_setup_kazoo(void **state)
{
	int rc = names_setup(state, 4, 0, 75);
	struct fixture *f = *state;

	f->conf.prefixes = prefixes;
	f->conf.prefix_count = 2;
	return rc;
}

size_t dir_of(const char *path, bool make)
{
	for (size_t i = 0; i < dir_count; i++)
		if (strcmp(dirs[i].path, path) == 0)
			return i;
	if (!make)
		return DIRS;
	snprintf(dirs[dir_count].path, sizeof(dirs[0].path), "%s", path);
	return dir_count++;
}

static size_t parent_of(const char *path)
{
	char parent[64];

	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	return dir_of(parent, false);
}

static void create(struct fixture *f, const struct fixture_op *op)
{
	size_t parent = parent_of(op->path);

	if (op->effect.create != ZK_EPHEMERAL_SEQUENTIAL) {
		dirs[dir_of(op->path, true)].made++;
		made++;
		fixture_answer(f, ZK_OK);
	} else if (parent == DIRS) {
		fixture_answer(f, ZK_NONODE);
	} else {
		fixture_answer_made(f, 1, ++last_czxid, dirs[parent].child, sizeof(dirs[parent].child));
	}
}

/* Of a directory or of the child in it. */
static void delete(struct fixture *f, const struct fixture_op *op)
{
	size_t dir = dir_of(op->path, false), parent = parent_of(op->path);

	if (parent < DIRS)
		dirs[parent].child[0] = '\0';
	if (dir == DIRS) {
		fixture_answer(f, ZK_OK);
	} else if (dirs[dir].child[0]) {
		fixture_answer(f, ZK_NOTEMPTY);
	} else {
		snprintf(dirs[dir].path, sizeof(dirs[0].path), "gone");
		removed++;
		fixture_answer(f, ZK_OK);
	}
}

void answer_all(struct fixture *f)
{
	while (fixture_is_open(f)) {
		const struct fixture_op *op = fixture_oldest(f);
		size_t dir = dir_of(op->path, false);

		if (op->effect.type == EFFECT_ZK_CREATE)
			create(f, op);
		else if (op->effect.type == EFFECT_ZK_DELETE)
			delete(f, op);
		else if (strstr(op->path, "/."))
			fixture_answer(f, ZK_OK);
		else if (dir == DIRS)
			fixture_answer(f, ZK_NONODE);
		else if (op->effect.type == EFFECT_ZK_GET)
			fixture_answer_get(f, 1, 0, strstr(op->path, "%2F") ? KAZOO_DATA : LOCK_DATA);
		else
			fixture_answer_list(f, 1, dirs[dir].child[0] != '\0', (const char *[]){ dirs[dir].child });
	}
}

void ask(struct fixture *f, uint32_t conn, const char *words)
{
	bytes_clear(&f->replies[conn]);
	fixture_ask(f, conn, words);
	answer_all(f);
}

void pass(struct fixture *f, int64_t ms)
{
	for (; ms > 0; ms -= 100) {
		fixture_pass(f, 100);
		answer_all(f);
	}
}

void pass_s(struct fixture *f, int64_t s)
{
	for (int64_t i = 0; i < s; i++)
		pass(f, 1000);
}

bool got(const struct fixture *f, uint32_t conn, const char *begin)
{
	struct slice reply = bytes_view(&f->replies[conn]);

	return reply.len > strlen(begin) && memcmp(reply.data, begin, strlen(begin)) == 0;
}

void use(struct fixture *f, const char *name)
{
	char words[64];

	snprintf(words, sizeof(words), "LOCK %s", name);
	ask(f, 0, words);
	assert_true(got(f, 0, ":"));
	snprintf(words, sizeof(words), "UNLOCK %s", name);
	ask(f, 0, words);
}

void hand_over(struct fixture *f)
{
	int64_t due;

	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
	due = broker_deadline(f->broker);
	fixture_hand_over(f);
	assert_int_equal(broker_deadline(f->broker), due);
	fixture_reconnected(f);
	answer_all(f);
}
