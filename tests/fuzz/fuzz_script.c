/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script of any bytes: it is recognized or refused with a sentence, and what is recognized means the same with a comment
 * before it and blanks behind it.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Idaemon tests/fuzz/fuzz_script.c daemon/core/command/script.c
 *         daemon/core/command/lua.c
 */
#include <assert.h>
#include <stdlib.h>

#include "core/command/script.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "--[==[ a ]] comment\n]==]", behind[] = " \r\n";
	char *own = malloc(size + 1), *longer = malloc(size + sizeof(before) + sizeof(behind));
	struct script script, again;
	const char *why = NULL;
	size_t len = sizeof(before) - 1;

	if (!own || !longer)
		abort();
	memcpy(longer, before, len);
	if (size) {
		memcpy(own, data, size);
		memcpy(longer + len, data, size);
	}
	len += size;
	memcpy(longer + len, behind, sizeof(behind) - 1);
	len += sizeof(behind) - 1;
	if (script_recognize((struct slice){ own, size }, &script, &why)) {
		assert(size <= SCRIPT_BYTES_MAX && script.argc <= 4);
		/* Only one that reads whatever is there takes no value. */
		assert(script.argc || script.cases[SCRIPT_OURS].answer == SCRIPT_PAIR);
		for (int i = 0; i < SCRIPT_CASES; i++)
			assert(script.cases[i].answer != SCRIPT_UNSAID);
		if (len <= SCRIPT_BYTES_MAX) {
			assert(script_recognize((struct slice){ longer, len }, &again, &why));
			assert(memcmp(&script, &again, sizeof(script)) == 0);
		}
	} else {
		assert(why && why[0]);
	}
	free(own);
	free(longer);
	return 0;
}
