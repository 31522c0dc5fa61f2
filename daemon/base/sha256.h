/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256: with it a host shows another one that it knows a secret, without the secret. */
#pragma once

#include "protocol/slice.h"

enum { SHA256_HEX_CHARS = 64 };

/* As lower-case hexadecimal digits, which end with 0. Nothing of the text is left in memory. */
void sha256_hex(struct slice text, char ret[SHA256_HEX_CHARS + 1]);
