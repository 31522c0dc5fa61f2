/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A command that needs a library of its own is a program of its own, which the command becomes. */
#pragma once

#include "client-lib/cli/options.h"

/*
 * Becomes that program, with the words, NULL behind the last one, and with the socket of `w` in LOCKBROKER_SOCKET. The
 * program stands beside the command where both were built, and in libexec/lockbroker where they are installed. Returns the
 * exit status if that cannot be done, after it said why, and `comes_with`, a sentence.
 */
int cli_become(const struct cli_words *w, const char *program, char *const *words, const char *comes_with);
