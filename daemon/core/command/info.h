/* SPDX-License-Identifier: Apache-2.0 */
/* What INFO and the commands that list things show. */
#pragma once

#include "protocol/bytes.h"

struct hosts;
struct client;
struct lock;

/* INFO has that section, or the word is one for all of them. */
bool info_knows(struct slice section);
/* INFO's text: the sections named, all when none is. */
void info_write(struct hosts *h, struct bytes *out, size_t count, const struct slice *sections);
/* LOCKS and CLIENT LIST. */
void info_locks(struct client *c, const struct slice *pattern);
void info_clients(struct client *c);
/* A pair of a map. */
void info_text(struct bytes *out, struct slice key, struct slice value);
void info_int(struct bytes *out, struct slice key, int64_t value);
/* The state of the host's claim, in a word; `lock` may be NULL. */
const char *info_lock_state(const struct lock *lock);
