/* SPDX-License-Identifier: Apache-2.0 */
#include "semaphore_fixture.h"

#include <stdio.h>
#include <string.h>

const char foreign_lease[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000001";

static void answer_leases(struct fixture *f, const struct there *t)
{
	const char *children[8];
	size_t n = 0;

	for (size_t i = 0; i < t->own_count; i++)
		children[n++] = t->own[i];
	for (size_t i = 0; i < t->other_count; i++)
		children[n++] = t->others[i];
	fixture_answer_list(f, 2, n, children);
}

void there_answer_one(struct fixture *f, struct there *t)
{
	const struct fixture_op *op = fixture_oldest(f);
	bool joins = op->effect.type == EFFECT_ZK_CREATE && op->effect.create == ZK_EPHEMERAL_SEQUENTIAL;
	bool leases = strstr(op->path, "/leases");

	if (op->effect.type == EFFECT_ZK_SET && leases)
		snprintf(t->told, sizeof(t->told), "%s", op->data);
	if (joins && leases)
		fixture_answer_made(f, 5, t->zxid + 80, t->own[t->own_count++], 128);
	else if (joins)
		fixture_answer_made(f, 5, t->zxid + 70, t->mutex, 128);
	else if (op->effect.type == EFFECT_ZK_LIST && leases)
		answer_leases(f, t);
	else if (op->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, *t->mutex != '\0', (const char *[]){ t->mutex });
	else if (op->effect.type == EFFECT_ZK_GET && strcmp(op->path, "/lb/s") == 0)
		fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	else
		fixture_answer(f, ZK_OK);
}

void there_answer(struct fixture *f, struct there *t)
{
	while (fixture_is_open(f))
		there_answer_one(f, t);
}

void there_say(struct fixture *f, struct there *t, uint32_t conn, const char *words, const char *reply)
{
	fixture_ask(f, conn, words);
	there_answer(f, t);
	fixture_expect(f, conn, reply);
}

void turn_comes(struct fixture *f, const char *data, char mutex[128])
{
	assert_true(fixture_op(f, EFFECT_ZK_GET, "/lb/s")->effect.watch);
	fixture_answer_get(f, 1, 0, data);
	fixture_serve_made(f, "-lock-", 5, 70, mutex);
	fixture_serve_list(f, "/lb/s/locks", 1, (const char *[]){ mutex });
}

void turn_listed(struct fixture *f, const char *mutex)
{
	while (fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_LIST &&
	       strstr(fixture_oldest(f)->path, "/locks"))
		fixture_answer_list(f, 1, 1, &mutex);
}

void permit_held(struct fixture *f, char lease[128])
{
	struct there t = { 0 };

	there_say(f, &t, 0, "ACQUIRE s LIMIT 3", ":1");
	snprintf(lease, 128, "%s", t.own[0]);
}
