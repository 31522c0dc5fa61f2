/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers and texts that tell how the daemon does: one table (metrics.c) that INFO and METRICS show, each in its
 * own form. METRICS has the text format of Prometheus, version 0.0.4. Nothing in it is a user's: no name of a lock, of a
 * host or of a program. So its length is bounded, whatever users do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "protocol/bytes.h"

struct hosts;

enum { METRICS_BYTES_MAX = 64 * 1024 };

/* INFO has that section, or the word stands for all sections. */
bool metrics_info_knows(struct slice section);
/* INFO's text: the sections named, all when none is. `operators`: with the parts that only operators may see. */
void metrics_info(const struct hosts *h, bool operators, struct bytes *out, size_t count, const struct slice *sections);
/* METRICS' text, at most METRICS_BYTES_MAX bytes. */
void metrics_write(const struct hosts *h, struct bytes *out);
