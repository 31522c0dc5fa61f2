/* SPDX-License-Identifier: Apache-2.0 */
/* Counting semaphores inside the host, in standalone mode (semaphore.h). */
#include "core_test.h"

SETUP(setup_standalone, true, 4)

ALONE(permits_are_counted_and_waited_for_in_order)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", "");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3", ""); /* one is free, and it is not the first */
	fixture_say(f, 0, "RELEASE s", ":1");
	fixture_expect(f, 1, ":2");
	fixture_expect(f, 2, "");
	fixture_say(f, 0, "RELEASE s", ":0");
	fixture_expect(f, 2, ":1");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client has 0 permits and cannot release 1");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_say(f, 2, "ACQUIRE s LIMIT 3 COUNT 2", ":3");
	fixture_say(f, 2, "RELEASE s COUNT 4", "-NOTHELD this client has 3 permits and cannot release 4");
	fixture_say(f, 2, "RELEASE s COUNT 3", ":0");
}

ALONE(a_try_is_answered_at_once)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2 COUNT 2 WAIT 0", "$-1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2 WAIT 0", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2 WAIT 50", "");
	fixture_pass(f, 50);
	fixture_expect(f, 2, "$-1");
}

ALONE(nonsense_is_refused)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 COUNT 3",
		    "-ERR ACQUIRE needs LIMIT n, the same for all clients of the semaphore, and a COUNT of at most n");
	fixture_say(f, 0, "ACQUIRE s COUNT 1",
		    "-ERR ACQUIRE needs LIMIT n, the same for all clients of the semaphore, and a COUNT of at most n");
	fixture_say(f, 0, "ACQUIRE s LIMIT 0", "-ERR LIMIT takes a number of permits, 1..1000000");
	fixture_say(f, 0, "ACQUIRE s LIMIT 1000001", "-ERR LIMIT takes a number of permits, 1..1000000");
	fixture_say(f, 0, "ACQUIRE s LIMIT 1000000", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 1000000 COUNT 1000000",
		    "-DEADLOCK this client has 1 permits and asks for 1000000 more: it would wait for itself; release some first");
}

ALONE(locks_and_semaphores_are_told_apart)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "LOCK s", "-MISMATCH this name is in use as a semaphore, not as a lock: s");
	fixture_say(f, 1, "CAMPAIGN s DATA x", "-MISMATCH this name is in use as a semaphore, not as an election: s");
	fixture_say(f, 1, "LOCK l", ":2048");
	fixture_say(f, 0, "ACQUIRE l LIMIT 2", "-MISMATCH this name is in use as a lock, not as a semaphore: l");
	fixture_say(f, 0, "RESET", "+RESET");
	fixture_say(f, 1, "LOCK s", ":3072");
	fixture_say(f, 1, "CAMPAIGN e DATA x", ":4096");
	fixture_say(f, 0, "ACQUIRE e LIMIT 2", "-MISMATCH this name is in use as an election, not as a semaphore: e");
}

ALONE(a_lease_ends_and_the_next_is_served)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 COUNT 2 LEASE 100", ":2");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2 LEASE 0", "-ERR LEASE takes milliseconds, 1..31536000000");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", "");
	fixture_pass(f, 99);
	fixture_expect(f, 1, "");
	fixture_pass(f, 1);
	fixture_expect(f, 1, ":1");
	fixture_say(f, 0, "VALID s", ":0");
	fixture_say(f, 0, "RELEASE s", "-LOST the lease of the permits ran out: s");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client has 0 permits and cannot release 1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 10", ":1");
	fixture_pass(f, 10);
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 s :0 $5 lease");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 10", ":1");
	fixture_pass(f, 10);
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", "-LOST the lease of the permits ran out: s");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
}

ALONE(more_permits_never_shorten_a_lease)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 100", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 10", ":2");
	fixture_say(f, 0, "VALID s", ":100");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 200", ":3");
	fixture_say(f, 0, "VALID s", ":200");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5", ":4");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 LEASE 10", ":5");
	fixture_pass(f, 1000);
	fixture_say(f, 0, "RELEASE s COUNT 5", ":0");
}

ALONE(permits_are_renewed)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 100", ":1");
	fixture_say(f, 0, "RENEW s 300", ":1");
	fixture_say(f, 0, "VALID s", ":300");
	fixture_say(f, 0, "RENEW s 30", ":1");
	fixture_say(f, 1, "RENEW s 30", "-NOTHELD this client does not hold s");
	fixture_pass(f, 30);
	fixture_say(f, 0, "RENEW s 30", "-LOST the lease of the permits ran out: s");
	fixture_say(f, 0, "RENEW s 30", "-NOTHELD this client does not hold s");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 0, "RENEW s 20", ":1");
	fixture_pass(f, 20);
	fixture_say(f, 0, "VALID s", ":0");
}

ALONE(who_waits_for_more_and_loses_what_it_has_is_told)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 LEASE 50", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", "");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2 COUNT 2", "");
	fixture_pass(f, 50);
	fixture_expect(f, 0, "-LOST the lease of the permits ran out: s");
	fixture_say(f, 1, "RELEASE s", ":0");
	fixture_expect(f, 2, ":2");
	fixture_say(f, 0, "RELEASE s", "-NOTHELD this client has 0 permits and cannot release 1");
}

/* ---- circles of waits (deadlock.h) ---- */

/* Of whoever has permits enough to let it go on, all wait for it. */
ALONE(a_circle_through_permits_is_refused)
{
	fixture_say(f, 0, "LOCK l", ":1024");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "LOCK l", "");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ""); /* client 2 can give one back */
	fixture_say(f, 2, "LOCK l", "-DEADLOCK this client waits for \"l\" behind test (pid 101), which waits for \"l\" held by "
		    "test (pid 100), which waits for \"s\" held by this client: release one of them first");
	fixture_say(f, 2, "LOCK l WAIT 0", "$-1");
	fixture_say(f, 2, "RELEASE s", ":0");
	fixture_expect(f, 0, ":1");
	fixture_say(f, 0, "UNLOCK l", ":0");
	fixture_expect(f, 1, ":1025");
}

ALONE(an_acquire_may_be_what_closes_it)
{
	fixture_say(f, 0, "LOCK l", ":1024");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 1, "LOCK l", "");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", ":1"); /* there is room */
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 WAIT 0", "$-1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-DEADLOCK this client waits for \"s\" "
		    "held by test (pid 101), which waits for \"l\" "
		    "held by this client: release one of them first");
	fixture_say(f, 0, "UNLOCK l", ":0");
	fixture_expect(f, 1, ":1025");
}

/* Its owner's other connection is only before the holder in line for permits: it need not let go of anything. */
ALONE(who_is_before_it_in_line_for_permits_closes_no_circle)
{
	fixture_say(f, 0, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 1, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 3, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 2, "LOCK l", ":2048");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", "");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3", "");
	fixture_say(f, 0, "LOCK l", "");
	fixture_say(f, 3, "RELEASE s COUNT 2", ":0");
	fixture_expect(f, 1, ":2");
	fixture_expect(f, 2, ":1");
	fixture_say(f, 2, "UNLOCK l", ":0");
	fixture_expect(f, 0, ":2049");
}

ALONE(who_waits_for_many_keeps_those_behind_it)
{
	fixture_say(f, 0, "LOCK l", ":1024");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3 COUNT 3", ""); /* for those of client 1, which is first to wait for l */
	fixture_say(f, 1, "LOCK l", "");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "-DEADLOCK this client waits for \"s\" "
		    "held by test (pid 101), which waits for \"l\" "
		    "held by this client: release one of them first");
	f->conf.deadlock_detection = false;
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", "");
}

ALONE(two_who_want_more_of_the_same_are_told)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 2", "");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3 COUNT 2", "-DEADLOCK this client waits for \"s\" "
		    "behind test (pid 100), which waits "
		    "for \"s\" held by this client: release one of them first");
	fixture_say(f, 1, "RELEASE s", ":0");
	fixture_expect(f, 0, ":3");
}

/* What the first gets it keeps until the other has what it wants. */
ALONE(two_of_one_owner_want_too_many_together)
{
	fixture_say(f, 0, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 1, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 2, "ACQUIRE s LIMIT 5 COUNT 5", ":5");
	fixture_say(f, 0, "ACQUIRE s LIMIT 5 COUNT 3", "");
	fixture_say(f, 1, "ACQUIRE s LIMIT 5 COUNT 3", "-DEADLOCK this client waits for \"s\" "
		    "behind test (pid 100), which is one "
		    "owner with this client: release one of them first");
	fixture_say(f, 1, "ACQUIRE s LIMIT 5 COUNT 2", "");
	fixture_say(f, 2, "RELEASE s COUNT 5", ":0");
	fixture_expect(f, 0, ":3");
	fixture_expect(f, 1, ":2");
}
