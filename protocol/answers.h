/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One table says which command may answer which error; PROTOCOL.md shows it, and the tests compare it with the real answers
 * of brokers. An event that carries an error (`failed`, `unobserved`) is a source of it, too.
 */
#pragma once

#include <stdbool.h>

#include "commands.h"
#include "errors.h"

/* Sources of errors: the commands, and then these. */
enum { SOURCE_FAILED = COMMAND_COUNT, SOURCE_UNOBSERVED, SOURCE_COUNT };

/* Any command may answer ERR (its words are wrong) and LIMIT (its answer is too long). */
bool answers_error(int source, enum error_code code);
/* Any command may answer that code. */
bool answers_any(enum error_code code);
