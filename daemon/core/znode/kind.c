/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/kind.h"

/* Weak, as the table of rules is (kind/kinds.c). */
__attribute__((weak)) const struct kind_words kind_words[KINDS_MAX] = {
	[KIND_LOCK] = { "lock", "a lock" },
	[KIND_ELECTION] = { "election", "an election" },
	[KIND_SEMAPHORE] = { "semaphore", "a semaphore" },
};

bool kind_of_word(struct slice word, enum kind *ret)
{
	for (*ret = KIND_LOCK; kind_is_known(*ret); ++*ret)
		if (slice_is(word, kind_word(*ret)))
			return true;
	return false;
}
