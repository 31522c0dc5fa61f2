/* SPDX-License-Identifier: Apache-2.0 */
/* What one user's processes may do to the others'. Each attack is a loop of one process, which has no end (asker.h). */
#pragma once

void (*attack_find(const char *name))(void);
