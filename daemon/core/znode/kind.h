/* SPDX-License-Identifier: Apache-2.0 */
/* What a lock's directory is for. Written into its data when it is made; one name is of one kind at a time. */
#pragma once

enum kind { KIND_LOCK, KIND_ELECTION };

enum { KINDS = KIND_ELECTION + 1 };

/* As it stands in a directory's data. */
static inline const char *kind_word(enum kind kind)
{
	return kind == KIND_LOCK ? "lock" : "election";
}
