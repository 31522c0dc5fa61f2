/* SPDX-License-Identifier: Apache-2.0 */
/* All kinds of locks. */
#pragma once

#include "core/lock/kind_rule.h"
#include "core/znode/kind.h"

extern const struct kind_rule *const kind_rules[KINDS_MAX];
