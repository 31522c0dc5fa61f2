/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/kind.h"

/* Weak, as the table of rules is (kind/kinds.c). */
__attribute__((weak)) const struct kind_words kind_words[KINDS_MAX] = {
#define X(name, word, noun) [KIND_##name] = { #word, noun },
	KINDS(X)
#undef X
};

bool kind_of_word(struct slice word, enum kind *ret)
{
	for (*ret = KIND_LOCK; kind_is_known(*ret); ++*ret)
		if (slice_is(word, kind_word(*ret)))
			return true;
	return false;
}
