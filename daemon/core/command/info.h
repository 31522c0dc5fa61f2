/* SPDX-License-Identifier: Apache-2.0 */
/* The text of INFO and of the commands that list things. */
#pragma once

#include "protocol/bytes.h"

struct hosts;
struct client;

/* INFO has that section, or the word stands for all sections. */
bool info_knows(struct slice section);
/* INFO's text: the sections named, all when none is. */
void info_write(struct hosts *h, struct bytes *out, size_t count, const struct slice *sections);
/* LOCKS and CLIENT LIST. */
void info_locks(struct client *c, const struct slice *pattern);
void info_clients(struct client *c);
