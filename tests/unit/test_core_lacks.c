/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that lack something (event.h): directories that are persistent, not containers, and creates without a Stat. */
#include "core/state.h"
#include "names_fixture.h"
#include "core_test.h"

static void server_lacks(struct fixture *f, unsigned int lacks)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_LACKS, .zk_lacks = lacks });
}

static int setup(void **state)
{
	int rc = names_setup(state, 4, 0, 75);

	server_lacks(*state, ZK_LACKS_CONTAINERS);
	return rc;
}

/* Up to the create of the directory, which is the oldest operation then. */
static const struct fixture_op *make_directory(struct fixture *f, const char *words)
{
	fixture_ask(f, 0, words);
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_CREATE ||
	       fixture_oldest(f)->effect.create == ZK_EPHEMERAL_SEQUENTIAL)
		fixture_answer(f, ZK_NONODE);
	return fixture_oldest(f);
}

TEST_IN(a_server_without_containers_is_given_persistent_directories, setup)
{
	assert_int_equal(make_directory(f, "LOCK a")->effect.create, ZK_PERSISTENT);
	answer_all(f);
	server_lacks(f, 0);
	assert_int_equal(make_directory(f, "LOCK b")->effect.create, ZK_CONTAINER);
}

TEST_IN(so_is_it_for_a_semaphore, setup)
{
	assert_int_equal(make_directory(f, "ACQUIRE s LIMIT 1")->effect.create, ZK_PERSISTENT);
	assert_int_equal(lasting_count(&f->broker->directories), 1);
}

TEST_IN(an_idle_persistent_directory_is_removed_after_a_minute, setup)
{
	use(f, "a");
	assert_int_equal(lasting_count(&f->broker->directories), 1);
	pass_s(f, 58);
	assert_int_equal(removed, 0);
	pass_s(f, 4);
	assert_int_equal(removed, 1);
	assert_int_equal(lasting_count(&f->broker->directories), 0);
	use(f, "a");
	assert_int_equal(made, 2);
}

TEST_IN(one_that_was_made_there_is_removed_where_containers_are_known, setup)
{
	use(f, "a");
	server_lacks(f, 0);
	use(f, "a");
	pass_s(f, 62);
	assert_int_equal(removed, 1);
	use(f, "a");
	pass_s(f, 62);
	assert_int_equal(removed, 1);
}

TEST_IN(a_hand_over_goes_on_removing_it, setup)
{
	use(f, "a");
	pass_s(f, 50);
	hand_over(f);
	assert_int_equal(f->broker->ensemble.lacks, ZK_LACKS_CONTAINERS);
	assert_int_equal(removed, 0);
	pass_s(f, 12);
	assert_int_equal(removed, 1);
}

TEST_IN(persistent_directories_are_limited, setup)
{
	f->conf.limits.lasting_directories = 0;
	accounts_set_total(&f->broker->env.accounts, POOL_LASTING, 0);
	ask(f, 0, "LOCK a");
	assert_true(got(f, 0, "-LIMIT "));
	server_lacks(f, 0);
	use(f, "a");
}

/* ---- the czxid of a create ---- */

SETUP(setup_two, false, 2)

/* 0 asks for lock a, and nobody else does. */
static void join(struct fixture *f, uint32_t seq)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_alone(f, "-__WRIT__", seq, 0, f->znode);
}

TEST_IN(a_create_without_a_stat_is_read, setup_two)
{
	join(f, 7);
	fixture_serve_get(f, f->znode, 4711, SESSION, "");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":4824064"); /* 4711 << 10 */
}

TEST_IN(a_znode_of_another_session_is_not_its_own, setup_two)
{
	join(f, 7);
	fixture_answer_get(f, 4711, BETA, "");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, "");
}

TEST_IN(one_whose_numbers_run_out_is_left_there_too, setup_two)
{
	join(f, CONTENDER_WRAP_NEAR);
	fixture_answer_get(f, 4711, SESSION, "");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
	fixture_expect(f, 0, "");
}

TEST_IN(info_names_what_is_lacking, setup_two)
{
	server_lacks(f, ZK_LACKS_CREATE2 | ZK_LACKS_CONTAINERS);
	fixture_say_part(f, 0, "INFO zookeeper", "zookeeper_lacks:create2, createContainer\r\n");
}
