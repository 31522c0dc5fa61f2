/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Instants, in milliseconds since 1970, as people write and read them: by the clock and the time zone of this process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/cli/shown.h"

/*
 * Reads one of
 *
 *     2026-11-30 20:31:05.250   parts may be left out from the end on: the seconds, the time; also with T between the two
 *     20:31:05                  today
 *     now, today, yesterday
 *     -1h30m                    so long ago: d, h, m, s
 *     @1796077865               seconds since 1970, also with a fraction
 *
 * `now_ms`: the present instant. `ret_span_ms`: the length of the written time: a day, a minute, a second, or 1 ms. False:
 * the text is none of these.
 */
bool cli_instant_read(const char *text, int64_t now_ms, int64_t *ret_ms, int64_t *ret_span_ms);
/* "2026-11-30 20:31:05.250"; of an instant of the same day as `after_ms`, without the day. Returns `ret`. */
const char *cli_instant_ms(int64_t ms, int64_t after_ms, char ret[CLI_DURATION_MAX]);
