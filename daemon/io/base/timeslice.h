/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long this process has a core while others wait for it. The daemon has a large weight, so that it is not to wait
 * behind everybody's processes, and always has work while somebody asks for more than it can do: then a client that the
 * kernel put on its core would wait for whole slices of the scheduler, milliseconds each, to ask, and to read its
 * answer. So the slices are as short as the kernel lets them be, which costs no share of the time. To give way more
 * often (sched_yield(2)) would cost some: a process that only computes then keeps the core until the kernel's clock
 * ticks.
 */
#pragma once

#include <stdint.h>

#define TIMESLICE_NS (100 * INT64_C(1000)) /* the least that Linux takes */

/*
 * Of this process, and of the processes that it starts. Needs no privilege. A kernel before 6.12 ignores it, and a
 * process that was given another policy than the usual one keeps that.
 */
void timeslice_setup(void);
