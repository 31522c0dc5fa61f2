/* SPDX-License-Identifier: Apache-2.0 */
/* What servers can do, as it is found out. */
#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "io/zookeeper/capabilities.h"

static struct zk_capabilities all;
static struct zk_capable *server;

static int setup(void **state)
{
	memset(&all, 0, sizeof(all));
	server = zk_capable_connected(&all, "127.0.0.1:2181");
	return 0;
}

#define SERVER(name) TEST_WITH(name, setup, NULL)

SERVER(an_operation_that_is_carried_out_is_there)
{
	static const int rcs[] = { ZOK, ZNONODE, ZNODEEXISTS };

	for (size_t i = 0; i < sizeof(rcs) / sizeof(rcs[0]); i++) {
		setup(NULL);
		assert_true(zk_capable_untried(server, ZK_CREATE2));
		assert_false(zk_capable_answered(server, ZK_CREATE2, rcs[i]));
		assert_int_equal(server->state[ZK_CREATE2], ZK_PRESENT);
		assert_true(zk_capable_untried(server, ZK_CONTAINERS));
	}
	assert_int_equal(zk_capable_word(server), 0);
}

SERVER(one_that_is_refused_as_unknown_is_not)
{
	assert_true(zk_capable_answered(server, ZK_CREATE2, ZUNIMPLEMENTED));
	assert_true(zk_capable_answered(server, ZK_CONTAINERS, ZBADARGUMENTS));
	assert_int_equal(zk_capable_word(server), ZK_LACKS_CREATE2 | ZK_LACKS_CONTAINERS);
	assert_true(server->said[ZK_CREATE2] && server->said[ZK_CONTAINERS] && !server->said[ZK_STAT]);
}

/* An ACL, a server that is too busy, the end of the connection. */
SERVER(other_errors_say_nothing)
{
	static const int rcs[] = { ZNOAUTH, ZCONNECTIONLOSS, ZINVALIDACL, ZAPIERROR };

	for (size_t i = 0; i < sizeof(rcs) / sizeof(rcs[0]); i++) {
		assert_false(zk_capable_answered(server, ZK_CREATE2, rcs[i]));
		assert_true(zk_capable_untried(server, ZK_CREATE2));
	}
}

SERVER(arguments_that_are_bad_say_nothing_of_a_known_operation)
{
	zk_capable_answered(server, ZK_CREATE2, ZNONODE);
	assert_false(zk_capable_answered(server, ZK_CREATE2, ZBADARGUMENTS));
	assert_false(zk_capable_lacks(server, ZK_CREATE2));
}

SERVER(nothing_is_tried_where_all_is_refused)
{
	zk_capable_refuses(server);
	assert_false(zk_capable_untried(server, ZK_CREATE2) || zk_capable_untried(server, ZK_CONTAINERS));
	zk_capable_ended(server, ZK_CREATE2);
	assert_int_equal(server->state[ZK_CREATE2], ZK_UNTRIED);
	zk_capable_answered(server, ZK_CREATE2, ZOK);
	assert_true(zk_capable_untried(server, ZK_CONTAINERS));
}

SERVER(a_connection_that_ends_at_it_twice_in_a_row_shows_that_it_is_lacking)
{
	zk_capable_ended(server, ZK_CONTAINERS);
	assert_false(zk_capable_lacks(server, ZK_CONTAINERS));
	assert_true(zk_capable_untried(server, ZK_CONTAINERS));
	zk_capable_ended(server, ZK_CONTAINERS);
	assert_true(zk_capable_lacks(server, ZK_CONTAINERS));
}

SERVER(one_that_ends_by_chance_shows_nothing)
{
	zk_capable_ended(server, ZK_CONTAINERS);
	zk_capable_answered(server, ZK_CONTAINERS, ZNONODE);
	zk_capable_ended(server, ZK_CONTAINERS);
	assert_true(zk_capable_untried(server, ZK_CONTAINERS)); /* perhaps another program serves there now */
	zk_capable_ended(server, ZK_CONTAINERS);
	assert_false(zk_capable_lacks(server, ZK_CONTAINERS));
}

SERVER(a_server_that_is_exchanged_for_a_lesser_one_is_found_out)
{
	zk_capable_answered(server, ZK_CREATE2, ZOK);
	assert_true(zk_capable_answered(server, ZK_CREATE2, ZUNIMPLEMENTED));
	assert_true(zk_capable_lacks(server, ZK_CREATE2));
}

SERVER(what_is_lacking_is_tried_again_after_ten_minutes)
{
	zk_capable_answered(server, ZK_CREATE2, ZUNIMPLEMENTED);
	assert_ptr_equal(zk_capable_connected(&all, "127.0.0.1:2181"), server);
	assert_true(zk_capable_lacks(server, ZK_CREATE2));
	server->since_ns[ZK_CREATE2] -= 601 * CLOCK_NS_PER_S;
	zk_capable_connected(&all, "127.0.0.1:2181");
	assert_true(zk_capable_untried(server, ZK_CREATE2));
	assert_true(server->said[ZK_CREATE2]);
	zk_capable_answered(server, ZK_CREATE2, ZOK);
	assert_false(server->said[ZK_CREATE2]);
}

SERVER(each_server_is_known_by_itself)
{
	struct zk_capable *other = zk_capable_connected(&all, "127.0.0.1:2182");

	zk_capable_answered(server, ZK_CREATE2, ZUNIMPLEMENTED);
	assert_false(zk_capable_lacks(other, ZK_CREATE2));
	for (int i = 0; i < ZK_CAPABLE_SERVERS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "127.0.0.1:%d", 3000 + i);
		assert_true(zk_capable_untried(zk_capable_connected(&all, name), ZK_CREATE2));
	}
	assert_true(zk_capable_untried(zk_capable_connected(&all, "127.0.0.1:2181"), ZK_CREATE2));
}
