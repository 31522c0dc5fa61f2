/* SPDX-License-Identifier: Apache-2.0 */
/* What a lock's directory is for. Its data say so from its creation on; one name is of one kind at a time. */
#pragma once

enum kind { KIND_LOCK, KIND_ELECTION, KIND_SEMAPHORE };

enum { KINDS = KIND_SEMAPHORE + 1 };

/* The word for it in a directory's data. */
static inline const char *kind_word(enum kind kind)
{
	static const char *const words[KINDS] = { "lock", "election", "semaphore" };

	return words[kind];
}

/* As sentences call it. */
static inline const char *kind_noun(enum kind kind)
{
	static const char *const nouns[KINDS] = { "a lock", "an election", "a semaphore" };

	return nouns[kind];
}
