/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of a broker that came from a recorded snapshot, with changes: what a process leaves that was killed at any
 * instruction, or somebody who means harm. Four bytes of the input are one change. Whatever comes: it is refused with a
 * sentence, or the broker that comes of it is sound and goes on. It is run in the project's directory.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/port/ledger.h"
#include "core/record.h"
#include "core/salvage.h"
#include "core/snapshot.h"
#include "fuzz.h"
#include "fuzz_broker.h"

enum { CHUNKS = 8, BYTES = CHUNKS * LEDGER_CHUNK_BYTES, WORDS = BYTES / 8, TEXT_MAX = 1 << 16, CHANGES_MAX = 3 };

static const int64_t NOW = 2000 * INT64_C(1000000000);

/* Words that are not 0, by their places: there a change matters. */
static uint64_t whole[WORDS];
static size_t used[WORDS], used_count;

static void make(void)
{
	struct bytes why = { 0 };
	struct broker *b;
	struct ledger *l;
	char *text;
	size_t len;
	FILE *f;

	if (used_count)
		return;
	text = malloc(TEXT_MAX);
	f = fopen("tests/unit/snapshot_1.txt", "rb");
	assert(f && text);
	len = fread(text, 1, TEXT_MAX, f);
	b = broker_restore(&conf, (struct slice){ text, len }, NOW, &why);
	assert(b);
	l = ledger_new(whole, sizeof(whole));
	broker_record(b, l);
	broker_free(b);
	ledger_free(l);
	fclose(f);
	free(text);
	for (size_t i = 0; i < WORDS; i++)
		if (whole[i])
			used[used_count++] = i;
	assert(used_count);
}

/* A word becomes one that matters, or another word of the ledger; or a cell becomes another one. */
static void change(uint64_t *memory, const uint8_t *at)
{
	static const uint64_t words[] = { 0,
					  1,
					  2,
					  3,
					  4,
					  5,
					  7,
					  127,
					  128,
					  1024,
					  UINT32_MAX,
					  (uint64_t)UINT32_MAX + 1,
					  INT64_MAX,
					  (uint64_t)INT64_MIN,
					  UINT64_MAX,
					  LEDGER_CHUNK,
					  LEDGER_CHUNK + LEDGER_CLASSES - 1 };
	uint32_t spread = ((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]) * 2654435761u;
	size_t which = used[(spread >> 8) % used_count], other = used[(spread >> 4) % used_count];
	size_t cell = which / 16 * 16, from = other / 16 * 16;

	switch (spread & 7) {
	case 0:
		memory[which] ^= UINT64_C(1) << (spread >> 3) % 64;
		break;
	case 1:
		memory[which] = memory[other];
		break;
	case 2:
		memory[which] += (spread >> 5 & 3) - 1;
		break;
	case 3: /* cells begin at 64 bytes */
		cell += cell + 24 <= WORDS ? 8 : 0;
		from += from + 24 <= WORDS ? 8 : 0;
		memmove(memory + cell, memory + from, 128);
		break;
	default:
		memory[which] = words[(spread >> 3) % (sizeof(words) / sizeof(words[0]))];
		break;
	}
}

static struct broker *salvaged(const struct ledger_view *v, uint8_t back_bits, struct bytes *why)
{
	bool back[8];
	struct salvage s = {
		.conf = &conf,
		.ledger = v,
		.session = salvage_session(v, (int64_t)v->head->session),
		.timeout_ns = 4 * SECOND,
		.safe_until_ns = NOW + SECOND,
		.back = back,
		.back_count = 8,
		.seed = 1,
		.now_ns = NOW,
	};
	struct bytes text = { 0 };
	struct broker *b = NULL;

	salvage_may_continue(v, back, 8);
	for (uint32_t i = 0; i < 8; i++)
		back[i] = back[i] && back_bits >> i & 1;
	if (salvage(&s, &text, why))
		b = broker_restore(&conf, bytes_view(&text), NOW, why);
	bytes_free(&text);
	return b;
}

static void check(const void *memory, uint8_t back)
{
	struct bytes why = { 0 };
	struct ledger_view *v = ledger_view_new(memory, BYTES, &why);
	struct broker *b;

	assert(v ? !why.len : why.len);
	if (v) {
		b = salvaged(v, back, &why);
		assert(b ? !why.len : why.len);
		ledger_view_free(v);
		if (b)
			live(b, NOW);
		broker_free(b);
	}
	bytes_free(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t *memory = malloc(BYTES);

	assert(memory);
	make();
	memcpy(memory, whole, BYTES);
	for (size_t i = 1; i + 4 <= size && i < 1 + 4 * CHANGES_MAX; i += 4)
		change(memory, data + i);
	check(memory, size ? data[0] : 0);
	free(memory);
	return 0;
}
