/* SPDX-License-Identifier: Apache-2.0 */
#include "revocation_fixture.h"

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
	struct fixture *f = fixture_new(true);

	return fixture_setup(f, 4, state);
}

void held_by(struct fixture *f, const char *child, const char *data)
{
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, &child);
	fixture_op(f, EFFECT_ZK_GET, child);
	fixture_answer_get(f, 70, BETA, data);
}

void held_by_beta(struct fixture *f)
{
	held_by(f, elsewhere, "1\nhost=beta\n");
}

void letter_arrives(struct fixture *f, const char *name, const char *data, enum zk_code deleted)
{
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 1, &name);
	fixture_op(f, EFFECT_ZK_GET, name);
	fixture_answer_get(f, 80, BETA, data);
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, deleted);
}

const char *path_end(const char *path)
{
	return strrchr(path, '/') + 1;
}
