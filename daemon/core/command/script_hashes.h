/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SHA-1 of scripts as libraries have them, byte by byte, and what they mean. So the first EVALSHA of a library succeeds.
 * tests/unit/script_texts.h has the scripts themselves, and tests/unit/test_scripts.c compares.
 */
#pragma once

#include "core/command/script.h"

#define CASE(act, answer) \
	{ \
		SCRIPT_##act, SCRIPT_##answer, 0 \
	}
#define NUMBER(act, number) \
	{ \
		SCRIPT_##act, SCRIPT_NUMBER, number \
	}
#define MEANS(keys, ours, free, theirs, unit_ms, argc) \
	{ \
		SCRIPT_##keys, { ours, free, theirs }, unit_ms, argc \
	}

#define RELEASES MEANS(FIRST_KEY, NUMBER(RELEASE, 1), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 0, 1)
#define RELEASES_OR_GONE MEANS(FIRST_KEY, NUMBER(RELEASE, 1), NUMBER(KEEP, -1), NUMBER(KEEP, 0), 0, 1)
#define RELEASES_OR_NIL MEANS(FIRST_KEY, NUMBER(RELEASE, 1), CASE(KEEP, NIL), CASE(KEEP, NIL), 0, 1)
#define RELEASES_EACH MEANS(EACH_KEY, CASE(RELEASE, COUNT), CASE(KEEP, NIL), CASE(KEEP, NIL), 0, 1)
#define TELLS_LEFT MEANS(FIRST_KEY, CASE(KEEP, LEFT), NUMBER(KEEP, -3), NUMBER(KEEP, -3), 0, 1)
#define EXTENDS MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 1, 2)
#define EXTENDS_OR_NIL MEANS(FIRST_KEY, NUMBER(EXTEND, 1), CASE(KEEP, NIL), CASE(KEEP, NIL), 1, 2)
#define EXTENDS_BY MEANS(FIRST_KEY, NUMBER(EXTEND_BY, 1), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 1, 3)
#define EXTENDS_ALL MEANS(ALL_KEYS, CASE(EXTEND, COUNT), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 1, 2)
#define ACQUIRES MEANS(FIRST_KEY, CASE(KEEP, NIL), CASE(ACQUIRE, OK), CASE(KEEP, NIL), 1, 2)
#define ACQUIRES_FOR_S MEANS(FIRST_KEY, CASE(KEEP, NIL), CASE(ACQUIRE, OK), CASE(KEEP, NIL), 1000, 2)
#define ACQUIRES_ALL MEANS(ALL_KEYS, NUMBER(KEEP, 0), CASE(ACQUIRE, COUNT), NUMBER(KEEP, 0), 1, 2)
#define EXTENDS_OR_ACQUIRE MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(ACQUIRE, 1), NUMBER(KEEP, 0), 1, 2)
#define EXTENDS_OR_ACQUIRE_OR_NIL MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(ACQUIRE, 1), CASE(KEEP, NIL), 1, 2)
#define EXTENDS_OR_ACQUIRE_OR_MINUS MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(ACQUIRE, 1), NUMBER(KEEP, -1), 1, 2)
#define EXTENDS_OR_ACQUIRE_OK MEANS(FIRST_KEY, CASE(EXTEND, OK_TEXT), CASE(ACQUIRE, OK), CASE(KEEP, NIL), 1, 2)
#define EXTENDS_OR_ACQUIRE_IF_YES MEANS(FIRST_KEY, CASE(EXTEND, OK), CASE(ACQUIRE_IF_YES, OK), CASE(KEEP, NIL), 1, 3)

static const struct {
	const char *hash;
	struct script script;
} script_hashes[] = {
	/* redis-py */
	{ "c3f8721cbb97f72bc19e972846bd7aaf91901658", RELEASES },
	{ "a4e8783852e6b949f9ef3a97212805108459a890", EXTENDS_BY },
	{ "1cac51482acf5858da00f6d685d68f886cd6b6b2", EXTENDS },
	/* redlock 3 of npm */
	{ "862f31bf38e9b63ce28d6e9e5143551bb34ef981", ACQUIRES },
	{ "cf0e94b2e9ffc7e04395cf88f7583fc309985910", RELEASES },
	{ "a7aba3bc5d6e99b3003da8b9d80a63b9f4092ecf", EXTENDS },
	/* redlock 4.0 of npm */
	{ "d01fb69e6ecc8bad3ca9bacba9f4f9e96862313f", ACQUIRES_ALL },
	{ "517e7ed95f00c0c4a209c6a7afcc6ab797d30b85", RELEASES_EACH },
	{ "acaf90b4697bb48bb5f603e9e613a54df7536c70", EXTENDS_ALL },
	/* redlock 4.2 of npm */
	{ "e5a322e2634ef59a516e8ea150cb085afafee684", ACQUIRES_ALL },
	{ "0f0f23b9048b36752b5be114f357ba083449f908", RELEASES_EACH },
	{ "ce46f80993d5dac20dd066eb301a4e37994bdbed", EXTENDS_ALL },
	/* redlock 5 of npm */
	{ "96da70f7716f27d278a5218544df37fd8b0a5e4c", ACQUIRES_ALL },
	{ "e4612211c9f8f51c257e26e056b0a654b3187242", RELEASES_EACH },
	{ "aed6f382e410db8ba7926d4e5e9aab410bf2a78a", EXTENDS_ALL },
	/* Laravel */
	{ "647c65a442733a1aa440f99908d249d13b4d6c4a", RELEASES },
	{ "a08c9c69b7c07ae2485190873b90d128a23e502d", ACQUIRES_FOR_S },
	/* redsync, of old */
	{ "00583931c4e4d483f6233879c133c71ed5393f9d", RELEASES },
	/* redsync */
	{ "e950836ed1e694540c503ef9972b8de518044d3b", RELEASES_OR_GONE },
	{ "d75bb8b5bd13532ddedd17762e772346e39b321e", EXTENDS },
	{ "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", EXTENDS_OR_ACQUIRE },
	/* redlock-rb */
	{ "8e4905cee18e7c3188d10f2b8b170e403baed34f", RELEASES },
	{ "ceb2b2062e40c51a2b3963fd078bc71f11bdc65c", EXTENDS_OR_ACQUIRE_IF_YES },
	/* redlock-rb, of old */
	{ "963db4d9f0ccfdb859098be0b29f8b41dc02ed97", RELEASES },
	{ "a90bf4be8a6e440e3cc24540eb2f9ff1e16fbcc3", EXTENDS_OR_ACQUIRE_IF_YES },
	/* Spring */
	{ "175897a4e379e99e79a54937be09226f76cdcfe5", EXTENDS_OR_ACQUIRE_OR_NIL },
	{ "879e0f7b8d83c3266d4e996627438c05dbda0b89", EXTENDS_OR_NIL },
	{ "f0f9038aa2b6d6c3436c72d147573ea2a58f0ef2", RELEASES_OR_NIL },
	/* ShedLock */
	{ "194f3902b2dd08557818d09fc2e7682d91480e53", RELEASES },
	{ "67256370c2d1c87e2250898075542b1a7fa5b917", EXTENDS },
	/* redislock, besides what redlock 3 of npm has */
	{ "6484da7d58920897fdc22b7f9afd1a3d47524ea8", TELLS_LEFT },
	/* go-zero */
	{ "dbecad63894903ddf755d05d73a3eb7432ef75c0", EXTENDS_OR_ACQUIRE_OK },
	{ "e04ea1352c46ae16a15753d4960bee821bf3b3fa", RELEASES },
	/* RedLock.net */
	{ "18b2a577dbe847b16bebde190d69a1613d68e60e", RELEASES },
	{ "9f614a785a5f9ae8c6396c6b4bf94d2087342603", EXTENDS_OR_ACQUIRE_OR_MINUS },
	/* Symfony 5.1 */
	{ "81523960da32c1f15ecab9f1f0fae74f7e943d07", EXTENDS_OR_ACQUIRE },
};
