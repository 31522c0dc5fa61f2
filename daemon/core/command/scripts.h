/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts that EVALSHA finds by their hash. Those of libraries are known from the start (script_hashes.h). Others are
 * remembered for the user who sent them, the last SCRIPTS_MAX of them, until no client of that user is connected or
 * another process serves. Libraries send a script again that is answered -NOSCRIPT, for Redis forgets them likewise.
 */
#pragma once

#include "base/sha1.h"
#include "core/command/script.h"

enum { SCRIPTS_MAX = 64 };

struct scripts; /* of a user; memory in one piece, which is freed with mem_free() */

/* `hash`: in hexadecimal digits. `own` may be NULL: none are remembered. NULL: nothing is known by that hash. */
const struct script *scripts_find(const struct scripts *own, struct slice hash);
/* Remembers a script that was recognized, whose hash scripts_find() does not know; the oldest one is forgotten for it. */
void scripts_add(struct scripts **own, const char hash[SHA1_HEX_CHARS + 1], const struct script *script);
