/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of lock that only tests have (tests/sim/latch.h) does what others do, by its rule alone. */
#include "core_test.h"

SETUP(setup_standalone, true, 5)

ALONE(so_many_arrivals_open_it)
{
	fixture_say(f, 0, "ARRIVE l 3", "");
	fixture_say(f, 1, "ARRIVE l 3 WAIT 50", "");
	fixture_say(f, 2, "ARRIVE l 2", "-MISMATCH this latch opens for another number of clients: l");
	fixture_say(f, 2, "LEAVE l", "-NOTHELD this client does not hold l");
	fixture_pass(f, 50);
	fixture_expect(f, 1, "$-1");
	fixture_expect(f, 0, "");
	fixture_say(f, 2, "ARRIVE l 3", ":1024");
	fixture_expect(f, 0, ":1024");
	fixture_say(f, 3, "ARRIVE l 3", ":1024");
	fixture_say(f, 2, "ARRIVE l 3", "-HELD this client has passed it already: l");
	for (uint32_t conn = 0; conn < 4; conn++)
		if (conn != 1)
			fixture_say(f, conn, "LEAVE l", ":1");
	fixture_say(f, 3, "ARRIVE l 2 WAIT 0", "$-1");
}

ALONE(names_are_told_apart)
{
	fixture_say(f, 0, "ARRIVE l 1", ":1024");
	fixture_say(f, 1, "LOCK l", "-MISMATCH this name is in use as a latch, not as a lock: l");
	fixture_say(f, 1, "LOCK a", ":2048");
	fixture_say(f, 0, "ARRIVE a 1", "-MISMATCH this name is in use as a lock, not as a latch: a");
	fixture_say(f, 0, "LEAVE l", ":1");
	fixture_say(f, 1, "LOCK l", ":3072");
}

ALONE(what_it_keeps_is_handed_over)
{
	fixture_say(f, 0, "ARRIVE l 3", "");
	fixture_say(f, 1, "ARRIVE l 3", "");
	fixture_hand_over(f);
	fixture_say(f, 2, "ARRIVE l 3", ":1024");
	fixture_expect(f, 0, ":1024");
	fixture_expect(f, 1, ":1024");
	fixture_hand_over(f);
	fixture_say(f, 3, "ARRIVE l 3", ":1024");
}

ALONE(why_and_lists_show_it)
{
	fixture_say(f, 0, "ARRIVE l 2", "");
	fixture_say_part(f, 1, "WHY l", "fewer clients have arrived than open it");
	fixture_say_part(f, 1, "LOCKS * ALL", "kind\r\n$5\r\nlatch\r\n$5\r\nlimit\r\n:2\r\n");
	fixture_say(f, 2, "ARRIVE l 2", ":1024");
	fixture_say_part(f, 1, "WHY l", "held ");
}
