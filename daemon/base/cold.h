/* SPDX-License-Identifier: Apache-2.0 */
/* A function that seldom runs: the compiler keeps it apart, and what calls it needs no room for what it does. */
#pragma once

#define COLD __attribute__((cold, noinline))
