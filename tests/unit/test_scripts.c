/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of scripts (core/command/script.h): those of libraries are in it from the start, others up to a limit. */
#include "script_meaning.h"

#include "base/mem.h"
#define CATALOGUE_TEXTS
#include "core/command/script_catalogue.h"

TEST(libraries_scripts_are_recognized_and_known_by_their_hash)
{
	char hash[SHA1_HEX_CHARS + 1], is[MEANING_CHARS], meant[MEANING_CHARS];
	const struct script *known;
	struct script s;
	const char *why;

	for (size_t i = 0; i < sizeof(catalogue) / sizeof(*catalogue); i++) {
		print_message("%s\n", catalogue[i].library);
		sha1_hex(slice_of(catalogue[i].text), hash);
		assert_string_equal(catalogue[i].hash, hash);
		known = scripts_find(NULL, slice_of(hash));
		assert_non_null(known);
		assert_true(script_recognize(slice_of(catalogue[i].text), &s, &why));
		assert_string_equal(meaning_of(&s, is), meaning_of(known, meant));
		assert_memory_equal(known, &s, sizeof(s));
	}
	/* In other letters, too. */
	assert_non_null(scripts_find(NULL, SLICE("647C65A442733A1AA440F99908D249D13B4D6C4A")));
	assert_null(scripts_find(NULL, SLICE("647c65a442733a1aa440f99908d249d13b4d6c4")));
	assert_null(scripts_find(NULL, SLICE("647c65a442733a1aa440f99908d249d13b4d6c4b")));
	assert_null(scripts_find(NULL, SLICE("")));
}

static const char *hash_of(size_t i, char ret[SHA1_HEX_CHARS + 1])
{
	char text[20];

	snprintf(text, sizeof(text), "%zu", i);
	sha1_hex(slice_of(text), ret);
	return ret;
}

TEST(the_last_64_are_remembered)
{
	struct scripts *own = NULL;
	const struct script *known;
	struct script s;
	char hash[SHA1_HEX_CHARS + 1];

	for (size_t i = 0; i < SCRIPTS_MAX; i++) {
		assert_null(scripts_find(own, slice_of(hash_of(i, hash))));
		s = (struct script){ .argc = 1, .unit_ms = (int64_t)i };
		scripts_add(&own, hash, &s);
	}
	for (size_t i = 0; i < SCRIPTS_MAX; i++) {
		known = scripts_find(own, slice_of(hash_of(i, hash)));
		assert_non_null(known);
		assert_int_equal(known->unit_ms, i);
	}
	/* One more: the oldest one is forgotten, and no other. */
	scripts_add(&own, hash_of(SCRIPTS_MAX, hash), &s);
	assert_null(scripts_find(own, slice_of(hash_of(0, hash))));
	for (size_t i = 1; i <= SCRIPTS_MAX; i++)
		assert_non_null(scripts_find(own, slice_of(hash_of(i, hash))));
	mem_free(own);
}
