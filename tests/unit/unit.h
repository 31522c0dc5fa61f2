/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test is its definition: `TEST(name) { ... }` registers the function, and the program runs its tests in the order of the
 * file. TEST_WITH() names what is set up before and taken down after; a file whose tests share that defines TEST() by it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

/* Registers a test, before main() only. `name` is a literal; *state is `value` when `begin` is called. */
void unit_add(const char *name, CMUnitTestFunction run, CMFixtureFunction begin, CMFixtureFunction end, void *value);

/* A program that has something to do before its first test defines it; in unit.c it does nothing. */
void unit_begin(int argc, char **argv);

/* What is written to the descriptor goes to a file, until unit_captured() returns it, which is valid until the next one. */
void unit_capture(int fd);
const char *unit_captured(void);

/* A child that does that ends by an assertion of the product. */
bool unit_aborts(void (*act)(void));

/* How many descriptors this process has open. */
int unit_descriptors(void);

/* As send() does, and these descriptors go with the text. */
ssize_t unit_send_fds(int to, const void *text, size_t len, const int *fds, size_t fd_count, int flags);

#define TEST_WITH(name, begin, end) \
	static void name(void **state); \
	__attribute__((constructor)) static void name##_is_a_test(void) \
	{ \
		unit_add(#name, name, begin, end, NULL); \
	} \
	static void name(void **state)

#ifndef TEST
#define TEST(name) TEST_WITH(name, NULL, NULL)
#endif
