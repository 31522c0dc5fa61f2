/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which command may answer which error: one table, which PROTOCOL.md shows and the tests compare with what brokers
 * really answer. An event that carries an error (`failed`, `unobserved`) is a source of it, too.
 */
#pragma once

#include <stdbool.h>

#include "commands.h"
#include "errors.h"

/* Sources of errors: the commands, and then these. */
enum { SOURCE_FAILED = COMMAND_COUNT, SOURCE_UNOBSERVED, SOURCE_COUNT };

/* Any command may answer ERR (how it is said) and LIMIT (its answer is too long). */
bool answers_error(int source, enum error_code code);
/* That code may come from whichever command. */
bool answers_any(enum error_code code);
