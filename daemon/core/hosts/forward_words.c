/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/forward_words.h"

static const char *const acts[FORWARD_ACTS] = {
	[FORWARD_LOOK] = "look",
	[FORWARD_RELEASE] = "release",
	[FORWARD_EXTEND] = "extend",
};

static const char *const founds[] = {
	[FORWARD_UNASKED] = "moved", /* in a letter: the session that was asked is over */
	[FORWARD_OURS] = "ours",
	[FORWARD_FREE] = "free",
	[FORWARD_THEIRS] = "theirs",
};

const char *forward_act_word(enum forward_act act)
{
	return acts[act];
}

const char *forward_found_word(enum forward_found found)
{
	return founds[found];
}

enum forward_act forward_act_of(struct slice word)
{
	enum forward_act act = FORWARD_LOOK;

	while (act < FORWARD_ACTS && !slice_eq(word, slice_of(acts[act])))
		act++;
	return act;
}

enum forward_found forward_found_of(struct slice word)
{
	for (enum forward_found found = FORWARD_OURS; found <= FORWARD_THEIRS; found++)
		if (slice_eq(word, slice_of(founds[found])))
			return found;
	return FORWARD_UNASKED;
}
