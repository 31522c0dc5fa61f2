/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines of a process that crashes: the signal and the address that it could not use, the last records of the
 * flight recorder, where it was, and the addresses of its calls, each a line of the log. It is written with write(2)
 * only, on a stack of its own; then the signal has its default action, which ends the process. Where a sanitizer has
 * handlers, those stay, but for SIGABRT.
 */
#pragma once

struct flight_ring;

enum { CRASH_RECORDS_MAX = 200, CRASH_FRAMES_MAX = 64, CRASH_MOST_MAX = 256 };

/* For SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT. `flight` may be NULL, and must outlive crash_end(). */
void crash_begin(const struct flight_ring *flight);
/*
 * The account that is charged for most memory, for a crash for want of memory. Bytes that a field cannot show are left
 * out.
 */
void crash_most(const char *text);
/* From now on only the default actions count. */
void crash_end(void);
