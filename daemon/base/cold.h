/* SPDX-License-Identifier: Apache-2.0 */
/* A function that seldom runs: the compiler keeps it apart, and its callers reserve no stack for it. */
#pragma once

#define COLD __attribute__((cold, noinline))
