/* What a configuration value may be, by the type of its key. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/conf.h"

#define CONF_ALLOWED_MAX 256

/* False when the value is not allowed. `ret_number` is set for the types that are numbers. */
bool conf_value_parse(const struct conf_key *key, const char *value, int64_t *ret_number);
/* What is allowed, to follow "must be". */
void conf_value_allowed(const struct conf_key *key, char allowed[CONF_ALLOWED_MAX]);
