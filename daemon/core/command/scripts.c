/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/scripts.h"

#include "base/mem.h"
#include "core/command/script_hashes.h"

struct scripts {
	size_t added;
	struct {
		char hash[SHA1_HEX_CHARS + 1];
		struct script script;
	} rows[SCRIPTS_MAX];
};

const struct script *scripts_find(const struct scripts *own, struct slice hash)
{
	for (size_t i = 0; i < sizeof(script_hashes) / sizeof(*script_hashes); i++)
		if (slice_is(hash, script_hashes[i].hash))
			return &script_hashes[i].script;
	for (size_t i = 0; own && i < SCRIPTS_MAX && i < own->added; i++)
		if (slice_is(hash, own->rows[i].hash))
			return &own->rows[i].script;
	return NULL;
}

void scripts_add(struct scripts **own, const char hash[SHA1_HEX_CHARS + 1], const struct script *script)
{
	size_t at;

	if (!*own)
		*own = mem_new(sizeof(**own));
	at = (*own)->added++ % SCRIPTS_MAX;
	memcpy((*own)->rows[at].hash, hash, SHA1_HEX_CHARS + 1);
	(*own)->rows[at].script = *script;
}
