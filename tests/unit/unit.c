/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <assert.h>

enum { UNIT_MAX = 128 };

static struct CMUnitTest tests[UNIT_MAX];
static size_t count;

void unit_add(const char *name, CMUnitTestFunction run, CMFixtureFunction begin, CMFixtureFunction end, void *value)
{
	assert(count < UNIT_MAX);
	tests[count++] = (struct CMUnitTest){ name, run, begin, end, value };
}

__attribute__((weak)) void unit_begin(int argc, char **argv)
{
	(void)argc;
	(void)argv;
}

int main(int argc, char **argv)
{
	unit_begin(argc, argv);
	/* The macro of this name counts an array; here as many are run as there are. */
	return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}
