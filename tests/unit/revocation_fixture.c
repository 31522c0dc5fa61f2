/* SPDX-License-Identifier: Apache-2.0 */
#include "revocation_fixture.h"

#include <stdio.h>
#include <string.h>

const char elsewhere[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
const char letter[] = "0000000100000-2000abcdef012345-00000000000000aa";

int demand_setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	f->mail = true;
	return fixture_setup(f, 4, state);
}

int demand_setup_standalone(void **state)
{
	return fixture_setup(fixture_new(true), 4, state);
}

void held_by(struct fixture *f, const char *child, const char *data)
{
	fixture_serve_list(f, "/lb/a", 1, &child);
	fixture_serve_get(f, child, 70, BETA, data);
}

void held_by_beta(struct fixture *f)
{
	held_by(f, elsewhere, "1\nhost=beta\n");
}

void letter_arrives(struct fixture *f, const char *name, const char *data, enum zk_code deleted)
{
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_serve_list(f, "/lb/.mail/alpha", 1, &name);
	fixture_serve_get(f, name, 80, BETA, data);
	fixture_serve(f, EFFECT_ZK_DELETE, name, deleted);
}

void letter_is_sent(struct fixture *f, const char *host, const char *part)
{
	assert_non_null(strstr(letter_posted(f, host), part));
}

const char *path_end(const char *path)
{
	return strrchr(path, '/') + 1;
}

char posted[128];

const char *letter_posted(struct fixture *f, const char *host)
{
	static char data[1024];
	const struct fixture_op *op = fixture_op(f, EFFECT_ZK_CREATE, "");
	size_t len = strlen(host);

	assert_memory_equal(op->path, "/lb/.mail/", 10);
	assert_memory_equal(op->path + 10, host, len);
	assert_int_equal(op->path[10 + len], '/');
	snprintf(posted, sizeof(posted), "%s", path_end(op->path));
	snprintf(data, sizeof(data), "%s", op->data);
	fixture_answer(f, ZK_OK);
	return data;
}

void answer_arrives(struct fixture *f, const char *id, const char *line)
{
	char data[256];

	snprintf(data, sizeof(data), "1\nkind=answer\nfrom=beta\nre=%s\n%s\n", id, line);
	letter_arrives(f, letter, data, ZK_OK);
}

void beta_is_listed(struct fixture *f)
{
	held_by_beta(f);
	fixture_pass(f, 0);
}

struct fixture *letters_new(void)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	f->conf.limits.memory_bytes = 1 << 24;
	f->conf.limits.session_path_bytes = 1 << 20;
	f->mail = f->plain = true;
	return f;
}
