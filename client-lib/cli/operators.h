/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operators' socket. The daemon carries out commands of operators only for clients of that socket, so `lockbroker`
 * uses it for these commands by itself.
 *
 *   --socket PATH given        -> operator.sock beside it, if it is the same daemon's and may be opened; else PATH
 *   else, and it may be opened -> LOCKBROKER_OPERATOR_SOCKET, or operator.sock beside the socket of everybody
 *   else                       -> the socket of everybody: the daemon says what is not permitted
 */
#pragma once

#include <stdbool.h>

enum { OPERATORS_PATH_MAX = 4096 };

/* The request, a word and its arguments, is one for operators. */
bool operators_only(int argc, char *const *words);
/* The socket for such a request, as `socket` of lb_open(); may be `path`. */
const char *operators_socket(const char *socket, char path[OPERATORS_PATH_MAX]);
