/* SPDX-License-Identifier: Apache-2.0 */
/* Operators drain a daemon: nothing is granted until they want it no longer. */
#include "core_test.h"

#define STATE(draining, held, waiting, claims) \
	"*8 $8 draining :" draining " $4 held :" held " $7 waiting :" waiting " $6 claims :" claims
#define WHY "operators drain this daemon: it grants nothing until they say `lockbroker drain --off`"

static int standalone(void **state)
{
	return fixture_setup(fixture_new(true), 4, state);
}

TEST_IN(nothing_is_granted_while_it_is_drained, standalone)
{
	fixture_operators(f, true);
	fixture_resp3(f, 0);
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 2, "LOCK a", "");
	fixture_say(f, 3, "DRAIN STATE", STATE("0", "1", "1", "1"));
	fixture_ask(f, 3, "DRAIN");
	fixture_expect(f, 2, "-DRAINING " WHY);
	fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $8 draining");
	fixture_expect(f, 3, STATE("1", "1", "0", "1"));
	assert_true(fixture_logged(f, "operators drain this daemon: it grants nothing"));
	fixture_say(f, 2, "LOCK b", "-DRAINING " WHY);
	fixture_say(f, 2, "MLOCK 1 b", "-DRAINING " WHY);
	fixture_say(f, 2, "ACQUIRE s LIMIT 1", "-DRAINING " WHY);
	fixture_say(f, 2, "CAMPAIGN e DATA x", "-DRAINING " WHY);
	/* What is held stays, and the daemon does not stop. */
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 3, "DRAIN STATE", STATE("1", "0", "0", "0"));
	assert_int_equal(f->stopped, 0);
	fixture_say(f, 3, "DRAIN OFF", STATE("0", "0", "0", "0"));
	assert_true(fixture_logged(f, "this daemon grants again"));
	fixture_say(f, 2, "LOCK b", ":2048");
}

TEST_IN(each_change_is_logged_once_and_holders_are_asked_again, standalone)
{
	fixture_operators(f, true);
	fixture_resp3(f, 0);
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 3, "DRAIN OFF", STATE("0", "1", "0", "1"));
	assert_false(fixture_logged(f, "grants again"));
	fixture_say(f, 3, "DRAIN", STATE("1", "1", "0", "1"));
	fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $8 draining");
	assert_true(fixture_logged(f, "operators drain"));
	fixture_say(f, 3, "DRAIN", STATE("1", "1", "0", "1"));
	fixture_expect_push(f, 0, "");
	fixture_pass(f, 1000);
	fixture_say(f, 3, "DRAIN", STATE("1", "1", "0", "1"));
	fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $8 draining");
	assert_false(fixture_logged(f, "operators drain"));
}
