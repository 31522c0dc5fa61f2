/* SPDX-License-Identifier: Apache-2.0 */
/* The litmus tests by which memory models are compared, with their usual names: what the machine reorders, and what not. */
#include "tests/model/weak_model.h"

#include <stddef.h>

enum { X, Y };

#define WRITE(order, word, what) STORES("stores", order, word, what)
#define READ_TO(order, word, to) LOADS("loads", order, word, to, ANY)
#define TAKES \
	{ \
		LINKS("links", RELAXED, X, 0), SWAPS("swaps", RELAXED, X, 1) \
	}

static bool all_ended(const struct weak_scope *s, const struct model *m)
{
	for (int i = 0; i < PROCESSORS; i++)
		if (!weak_model_ended(s, m, i))
			return false;
	return true;
}

static bool are_loaded(const struct model *m, int processor, uint8_t first, uint8_t second)
{
	return m->p[processor].loaded[0] == first && m->p[processor].loaded[1] == second;
}

static const char *sb(const struct weak_scope *s, const struct model *m)
{
	return all_ended(s, m) && !m->p[0].loaded[0] && !m->p[1].loaded[0] ? "two stores are late" : NULL;
}

static const char *mp(const struct weak_scope *s, const struct model *m)
{
	return all_ended(s, m) && are_loaded(m, 1, 1, 0) ? "a message is before its content" : NULL;
}

static const char *lb(const struct weak_scope *s, const struct model *m)
{
	return all_ended(s, m) && m->p[0].loaded[0] && m->p[1].loaded[0] ? "two loads are late" : NULL;
}

static const char *two_writes(const struct weak_scope *s, const struct model *m)
{
	return all_ended(s, m) && m->memory[X] == 1 && m->memory[Y] == 1 ? "the first stores are last" : NULL;
}

static const char *iriw(const struct weak_scope *s, const struct model *m)
{
	return all_ended(s, m) && are_loaded(m, 2, 1, 0) && are_loaded(m, 3, 1, 0) ? "two orders of the same stores"
										   : NULL;
}

static const char *two_takes(const struct weak_scope *s, const struct model *m)
{
	return weak_model_ended(s, m, 0) && weak_model_ended(s, m, 1) ? "both have taken the word" : NULL;
}

static const char *own(const struct weak_scope *s, const struct model *m)
{
	return all_ended(s, m) && !m->p[0].loaded[0] ? "it does not see its own store" : NULL;
}

const struct weak_litmus weak_litmus[LITMUS] = {
	{ true,
	  { "SB",
	    { 0 },
	    { { WRITE(RELEASE, X, 1), READ_TO(ACQUIRE, Y, 0) }, { WRITE(RELEASE, Y, 1), READ_TO(ACQUIRE, X, 0) } },
	    sb } },
	{ true,
	  { "MP",
	    { 0 },
	    { { WRITE(RELAXED, X, 1), WRITE(RELAXED, Y, 1) }, { READ_TO(ACQUIRE, Y, 0), READ_TO(RELAXED, X, 1) } },
	    mp } },
	{ true,
	  { "MP, only with release",
	    { 0 },
	    { { WRITE(RELAXED, X, 1), WRITE(RELEASE, Y, 1) }, { READ_TO(RELAXED, Y, 0), READ_TO(RELAXED, X, 1) } },
	    mp } },
	{ false,
	  { "MP, with release and acquire",
	    { 0 },
	    { { WRITE(RELAXED, X, 1), WRITE(RELEASE, Y, 1) }, { READ_TO(ACQUIRE, Y, 0), READ_TO(RELAXED, X, 1) } },
	    mp } },
	{ false,
	  { "MP, with fences",
	    { 0 },
	    { { WRITE(RELAXED, X, 1), FENCES("a fence", FENCE_RELEASE), WRITE(RELAXED, Y, 1) },
	      { READ_TO(RELAXED, Y, 0), FENCES("a fence", FENCE_ACQUIRE), READ_TO(RELAXED, X, 1) } },
	    mp } },
	{ true,
	  { "LB",
	    { 0 },
	    { { READ_TO(RELAXED, X, 0), WRITE(RELAXED, Y, 1) }, { READ_TO(RELAXED, Y, 0), WRITE(RELAXED, X, 1) } },
	    lb } },
	{ false,
	  { "LB, with acquire",
	    { 0 },
	    { { READ_TO(ACQUIRE, X, 0), WRITE(RELAXED, Y, 1) }, { READ_TO(ACQUIRE, Y, 0), WRITE(RELAXED, X, 1) } },
	    lb } },
	{ false,
	  { "LB, with release",
	    { 0 },
	    { { READ_TO(RELAXED, X, 0), WRITE(RELEASE, Y, 1) }, { READ_TO(RELAXED, Y, 0), WRITE(RELEASE, X, 1) } },
	    lb } },
	{ true,
	  { "2+2W",
	    { 0 },
	    { { WRITE(RELAXED, X, 1), WRITE(RELAXED, Y, 2) }, { WRITE(RELAXED, Y, 1), WRITE(RELAXED, X, 2) } },
	    two_writes } },
	{ false,
	  { "2+2W, with release",
	    { 0 },
	    { { WRITE(RELAXED, X, 1), WRITE(RELEASE, Y, 2) }, { WRITE(RELAXED, Y, 1), WRITE(RELEASE, X, 2) } },
	    two_writes } },
	{ true,
	  { "IRIW",
	    { 0 },
	    { { WRITE(RELAXED, X, 1) },
	      { WRITE(RELAXED, Y, 1) },
	      { READ_TO(RELAXED, X, 0), READ_TO(RELAXED, Y, 1) },
	      { READ_TO(RELAXED, Y, 0), READ_TO(RELAXED, X, 1) } },
	    iriw } },
	{ false,
	  { "IRIW, with acquire",
	    { 0 },
	    { { WRITE(RELAXED, X, 1) },
	      { WRITE(RELAXED, Y, 1) },
	      { READ_TO(ACQUIRE, X, 0), READ_TO(RELAXED, Y, 1) },
	      { READ_TO(ACQUIRE, Y, 0), READ_TO(RELAXED, X, 1) } },
	    iriw } },
	{ false,
	  { "CoRR", { 0 }, { { WRITE(RELAXED, X, 1) }, { READ_TO(RELAXED, X, 0), READ_TO(RELAXED, X, 1) } }, mp } },
	{ false, { "its own store", { 0 }, { { WRITE(RELAXED, X, 1), READ_TO(RELAXED, X, 0) } }, own } },
	{ false, { "two takes of a word", { 0 }, { TAKES, TAKES }, two_takes } },
};
