/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The systemd unit of a process that connects: its name, as web.service; empty, if it belongs to none; or UNIT_UNKNOWN. No
 * unit has that name, since every unit's name ends in its kind.
 *
 * A unit is unknown if the process has no number here, may not be read, or ended before its control group was read. A
 * process can end early on purpose, so an unknown unit is trusted with nothing: a rule that denies a unit matches it, a rule
 * that allows a unit does not. All such processes of a user whose units have accounts of their own share one account.
 */
#pragma once

#include <stdbool.h>

#include "protocol/slice.h"

#define UNIT_UNKNOWN "unknown"

static inline bool unit_is_unknown(struct slice unit)
{
	return slice_eq(unit, SLICE(UNIT_UNKNOWN));
}
