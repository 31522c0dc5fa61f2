/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a whole core: the body of each is called with the fixture that was set up for it, `f`. Stands behind fixtures. */
#pragma once

#include "core_fixture.h"

#define TEST_OF(name, setup, teardown) \
	static void name##_with(struct fixture *f); \
	TEST_WITH(name, setup, teardown) \
	{ \
		name##_with(*state); \
	} \
	static void name##_with(struct fixture *f)

/* TEST() and ALONE() are made from it. */
#undef TEST_IN
#define TEST_IN(name, setup) TEST_OF(name, setup, fixture_teardown)

/* Defines a set-up: so many connections, standalone or with ZooKeeper. */
#define SETUP(name, standalone, conns) \
	static int name(void **state) \
	{ \
		return fixture_setup(fixture_new(standalone), conns, state); \
	}
