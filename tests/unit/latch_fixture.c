/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of lock that only tests have, as the simulator has it. */
#include "tests/sim/latch.c"
