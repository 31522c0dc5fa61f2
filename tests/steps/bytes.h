/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before each source of the pure parts in a build with STEPS=1: what they have libc do with bytes, count.c does for
 * them and counts it. What tests do with bytes is not counted.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

void *memcpy(void *to, const void *from, size_t size) __asm__("steps_memcpy");
void *memmove(void *to, const void *from, size_t size) __asm__("steps_memmove");
void *memset(void *to, int byte, size_t size) __asm__("steps_memset");
int memcmp(const void *a, const void *b, size_t size) __asm__("steps_memcmp");
void *memchr(const void *in, int byte, size_t size) __asm__("steps_memchr");
size_t strlen(const char *text) __asm__("steps_strlen");
void *calloc(size_t count, size_t size) __asm__("steps_calloc");
