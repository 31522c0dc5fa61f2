/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test is its definition: `TEST(name) { ... }` registers the function, and the program runs its tests in the order of the
 * file. TEST_WITH() names what is set up before and taken down after; a file whose tests share that defines TEST() by it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Registers a test, before main() only. `name` is a literal; *state is `value` when `begin` is called. */
void unit_add(const char *name, CMUnitTestFunction run, CMFixtureFunction begin, CMFixtureFunction end, void *value);

/* A program that has something to do before its first test defines it; in unit.c it does nothing. */
void unit_begin(int argc, char **argv);

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
