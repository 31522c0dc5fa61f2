/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of an entry (entry.h) that the text of a ledger's record has. The writer of the entry has the others in a struct.
 */
#pragma once

#include "protocol/slice.h"

struct entry_pairs {
	struct slice text;
	size_t count;
};
