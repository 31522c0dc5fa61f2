/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "errors.h"

#include <assert.h>
#include <stddef.h>

static const char *const words[ERROR_COUNT] = {
#define X(name, text) [ERROR_##name] = #name,
	PROTOCOL_ERRORS(X)
#undef X
};

const char *error_word(enum error_code code)
{
	assert((size_t)code < ERROR_COUNT);
	return words[code];
}
