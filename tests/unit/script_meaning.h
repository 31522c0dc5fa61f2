/* SPDX-License-Identifier: Apache-2.0 */
/* What a recognized script means, in a line: for each case what it does and answers; its keys; the unit of its lease. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "core/command/script.h"

enum { MEANING_CHARS = 80 };

/* "R1 .0 .0 first": it releases what is ours and answers 1; else it does nothing and answers 0; it has one key. */
static inline const char *meaning_of(const struct script *s, char ret[MEANING_CHARS])
{
	static const char acts[] = ".REBAY";
	static const char *const answers[] = { "?",    "nil",   "",     "OK",    "text", "count",
					       "left", "least", "pair", "token", "fence" };
	static const char *const keys[] = { "first", "all", "each" };
	char number[16];
	size_t len = 0;

	for (int i = 0; i < SCRIPT_CASES; i++) {
		snprintf(number, sizeof(number), "%d", s->cases[i].number);
		len += (size_t)snprintf(ret + len, MEANING_CHARS - len, "%c%s%s ", acts[s->cases[i].act],
					answers[s->cases[i].answer], s->cases[i].answer == SCRIPT_NUMBER ? number : "");
	}
	snprintf(ret + len, MEANING_CHARS - len, "%s%s%s", keys[s->keys],
		 s->unit_ms == 0      ? ""
		 : s->unit_ms == 1    ? " ms"
		 : s->unit_ms == 1000 ? " s"
				      : " ?",
		 s->argv_of_keys    ? " of keys"
		 : s->value_at == 2 ? " behind a database"
		 : s->lease_at == 3 ? " behind a token"
				    : "");
	return ret;
}

/* "none": it is not recognized, and `why` is a sentence. */
static inline const char *meaning(const char *text, char ret[MEANING_CHARS])
{
	struct script s;
	const char *why = NULL;

	if (script_recognize(slice_of(text), &s, &why))
		return meaning_of(&s, ret);
	assert_non_null(why);
	return "none";
}
