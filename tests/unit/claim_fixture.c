/* SPDX-License-Identifier: Apache-2.0 */
#include "claim_fixture.h"

const char foreign_low[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
const char foreign_high[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000009";

int claim_setup_strict(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.handoff_max = 0;
	return fixture_setup(f, 4, state);
}

int claim_setup_linger(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.linger_ns = 100 * MS;
	return fixture_setup(f, 4, state);
}

void claim_waits(struct fixture *f, char name[128])
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, 5, 77, name, 128);
	fixture_answer_list(f, 1, 2, (const char *[]){ name, foreign_low });
	fixture_refuse_own(f);
	assert_true(fixture_op(f, EFFECT_ZK_GET, foreign_low)->effect.watch);
	fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
	fixture_no_op(f);
	fixture_expect(f, 0, "");
}
