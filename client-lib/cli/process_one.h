/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Process 1 of a container. The kernel drops a signal that has only its default action there, so a command that waits would
 * go on after the engine's "stop", until it is killed.
 */
#pragma once

/*
 * As process 1: from here on TERM, INT, HUP and QUIT end this process with 128 + the signal, as a shell shows a death
 * by it; signals that are ignored stay ignored. The end of the connection withdraws the requests. Any other process has
 * the default actions, which do the same. A program that takes our place by exec has the default actions again.
 */
void process_one_ends_by_signals(void);
