/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_MAX = 128, LINE_MAX_BYTES = 256 };

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

static void leave_out(const char *name, const char *why)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(tests[i].name, name) != 0)
			continue;
		memmove(&tests[i], &tests[i + 1], (--count - i) * sizeof(tests[i]));
		printf("skipped: %s: %s", name, why);
		return;
	}
	fprintf(stderr, "there is no test to be skipped of that name: %s\n", name);
	abort();
}

/* The tests of this program that the file $UNIT_SKIPS names, with the reason. */
static void leave_out_skips(void)
{
	const char *path = getenv("UNIT_SKIPS");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[LINE_MAX_BYTES];

	while (f && fgets(line, sizeof(line), f)) {
		char *name = strchr(line, ' '), *why = strstr(line, ": ");

		if (!name || !why || why < name)
			continue;
		*name++ = *why = '\0';
		if (strcmp(line, program_invocation_short_name) == 0)
			leave_out(name, why + 2);
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	leave_out_skips();
	unit_begin(argc, argv);
	/* The macro of this name counts an array; here as many are run as there are. */
	return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}
