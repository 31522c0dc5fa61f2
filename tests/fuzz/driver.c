/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a fuzz target what libFuzzer has found for it and tests/fuzz/corpus keeps, then seeded mutations of a few good
 * streams: [rounds [seed]]. The same arguments give the same inputs, so a failure can be run again. A stand-in for
 * libFuzzer that needs no clang and ends by itself. It is run in the project's directory.
 */
#include <dirent.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "protocol/slice.h"

/* Sanitizers take most of the time in what surrounds an input: new ones beyond these are for `make fuzz`. */
#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS = 10000 };
#else
enum { ROUNDS = 60000 };
#endif
enum { INPUT_MAX = 512, KEPT_MAX = 1 << 16 };

static const struct slice streams[] = {
	SLICE("\x05*2\r\n$4\r\nLOCK\r\n$5\r\nhello\r\n*1\r\n$4\r\nPING\r\n"),
	SLICE("\x10*0\r\n*-1\r\nLOCK \"a \\x41\\n\" 'b' WAIT 100\r\nUNLOCK a\n"),
	SLICE("\x01*4\r\n$4\r\nLOCK\r\n$1\r\na\r\n$4\r\nWAIT\r\n$4\r\n1000\r\n"),
	SLICE("\xff+OK\r\n-ERR no\r\n:12345\r\n$5\r\nhello\r\n$-1\r\n*2\r\n:1\r\n*1\r\n+a\r\n"),
	SLICE("\x08%2\r\n+a\r\n#t\r\n+b\r\n*2\r\n_\r\n,1.5\r\n>3\r\n$4\r\nlost\r\n$1\r\na\r\n:9\r\n=6\r\ntxt:hi\r\n"),
	SLICE("\x03~1\r\n(123456\r\n!5\r\nERR x\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"),
};

/* clang-format off */
static const struct slice pieces[] = {
	SLICE("\r\n"), SLICE("*"), SLICE("$"), SLICE("-1"), SLICE("9223372036854775807"), SLICE("99999999999999999999"),
	SLICE("\""), SLICE("'"), SLICE("\\x"), SLICE("$1\r\na\r\n"), SLICE("*1\r\n"), SLICE("%1\r\n"), SLICE("\0"),
	SLICE("$1024\r\n"), SLICE(" "), SLICE("\n"),
};
/* clang-format on */

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static size_t below(uint64_t *state, size_t bound)
{
	return (size_t)(next(state) % bound);
}

/* Puts `with` in the place of `cut` bytes at `at`; what does not fit is left out. */
static size_t splice(char *input, size_t size, size_t at, size_t cut, struct slice with)
{
	if (cut > size - at)
		cut = size - at;
	if (size - cut + with.len > INPUT_MAX)
		return size;
	memmove(input + at + with.len, input + at + cut, size - at - cut);
	memcpy(input + at, with.data, with.len);
	return size - cut + with.len;
}

static size_t mutate(uint64_t *state, char *input, size_t size)
{
	size_t at = below(state, size + 1);
	char byte = (char)next(state);

	switch (below(state, 5)) {
	case 0:
		return splice(input, size, at, 1, (struct slice){ &byte, 1 });
	case 1:
		return splice(input, size, at, below(state, 8), SLICE(""));
	case 2:
		return splice(input, size, at, 0, pieces[below(state, sizeof(pieces) / sizeof(*pieces))]);
	case 3:
		return splice(input, size, at, 3, pieces[below(state, sizeof(pieces) / sizeof(*pieces))]);
	default:
		return splice(input, size, at, 0, streams[below(state, sizeof(streams) / sizeof(*streams))]);
	}
}

static void replay(const char *directory, const char *file)
{
	static uint8_t input[KEPT_MAX];
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	f = fopen(path, "rb");
	if (!f)
		err(1, "%s", path);
	LLVMFuzzerTestOneInput(input, fread(input, 1, sizeof(input), f));
	fclose(f);
}

/* How many there are. */
static long replay_kept(const char *program)
{
	const char *slash = strrchr(program, '/');
	char path[256];
	const struct dirent *entry;
	long count = 0;
	DIR *d;

	snprintf(path, sizeof(path), "tests/fuzz/corpus/%s", slash ? slash + 1 : program);
	d = opendir(path);
	if (!d)
		err(1, "%s", path);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		replay(path, entry->d_name);
		count++;
	}
	closedir(d);
	return count;
}

int main(int argc, char **argv)
{
	long kept = replay_kept(argv[0]);
	long rounds = (argc > 1 ? atol(argv[1]) : ROUNDS) / (&fuzz_cost ? fuzz_cost : 1);
	uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	for (long i = 0; i < rounds; i++) {
		struct slice stream = streams[below(&state, sizeof(streams) / sizeof(*streams))];
		char input[INPUT_MAX];
		size_t size = stream.len;

		memcpy(input, stream.data, size);
		for (size_t times = below(&state, 6); times > 0; times--)
			size = mutate(&state, input, size);
		if (size > 0)
			input[0] = (char)next(&state);
		LLVMFuzzerTestOneInput((const uint8_t *)input, size);
	}
	printf("%ld kept inputs, %ld others\n", kept, rounds);
	return 0;
}
