/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/kinds.h"

#define X(name, word, noun) extern const struct kind_rule word##_rule;
KINDS(X)
#undef X

/* Weak: a test program may have a table of more kinds. */
__attribute__((weak)) const struct kind_rule *const kind_rules[KINDS_MAX] = {
#define X(name, word, noun) [KIND_##name] = &word##_rule,
	KINDS(X)
#undef X
};
